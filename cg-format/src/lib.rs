//! Profiles in files: which events exist, how counts are kept, and how a profile is read and written.
//!
//! Everything that knows the shape of a `cachegrind.out` or `callgrind.out` file lives here: the runner writes through this
//! crate and the post-processors read through it, so a rule of the format has one home. The crate prints nothing, knows no
//! options and never panics on input: whatever a file holds, the answer is a profile or a typed error that names the line.
//! Names of files and functions are bytes, because nothing promises that they are UTF-8.
//!
//! # Example
//!
//! ```
//! use cg_format::cachegrind::{Profile, ReadOptions, read, write};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut profile = Profile::new(["Ir", "Dr"]);
//! profile.header.cmd = b"./prog 3".to_vec();
//! profile.add(b"src/main.c", b"main", 12, &[40, 7])?;
//! profile.add(b"src/main.c", b"main", 3, &[2, 0])?;
//!
//! let mut out = Vec::new();
//! write(&mut out, &profile)?;
//! assert_eq!(
//!     out,
//!     b"cmd: ./prog 3\nevents: Ir Dr\nfl=src/main.c\nfn=main\n3 2 0\n12 40 7\nsummary: 42 7\n"
//! );
//!
//! let again = read(&out[..], "prog.out", &ReadOptions::default())?;
//! assert_eq!(again.total(), [42, 7]);
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

pub mod atomic;
pub mod cachegrind;
pub mod callgrind;
pub mod count;
pub mod events;
pub mod hash;
pub mod mem;
pub mod show;
mod text;
pub mod tree;

pub use text::{InputError, ReadError};
