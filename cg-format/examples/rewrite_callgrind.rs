//! Reads a callgrind profile and writes it anew: `rewrite_callgrind IN OUT [plain]`. With `plain` nothing is compressed.
//!
//! The script that compares readers of the format uses it, to see our writer through their eyes.

use std::error::Error;
use std::fs::File;

use cg_format::callgrind::{WriteOptions, Writer, read_profile};

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let (Some(from), Some(to)) = (args.get(1), args.get(2)) else { return Err("give IN and OUT".into()) };
    let profile = read_profile(File::open(from)?, from)?;
    let compress = args.get(3).is_none_or(|word| word != "plain");
    let options = WriteOptions { compress_strings: compress, compress_positions: compress };
    Writer::new(options).profile(&mut File::create(to)?, &profile)?;
    Ok(())
}
