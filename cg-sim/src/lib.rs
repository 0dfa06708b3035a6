//! Models of cache hierarchies and of branch predictors: what a profiler's cache and branch simulation counts.
//!
//! The models are those of Cachegrind and Callgrind, to the last miss. They are deterministic, know no profile format, no
//! process and no instruction, and never look at the machine that they run on, but for [`host::detect`], which is asked once.
//! Every model here is fast; its slow and obvious twin is in the tests, which drive both with the same traces.
//!
//! - [`hierarchy`]: the usual simulation of misses; [`writeback`]: with a last level that is written back, and a prefetcher;
//!   [`beyond`]: with a second level, other policies ([`policy`], [`cache`]), inclusion and prefetchers ([`prefetch`]), and what that leaves open ([`included`]);
//!   [`usage`]: how well lines are used, [`code_use`]: those of code; [`context`]: what one phase of a program reuses of another's;
//! - [`distance`]: after how many other lines a line is used again, which depends on no cache; [`bounds`]: within which bounds that is
//!   known from misses alone; [`sharing`]: which threads use
//!   which bytes of the same lines;
//! - [`predictor`]: mispredicted branches;
//! - [`calltree`]: to which calls the costs of evicted lines belong;
//! - [`tlb`]: which pages a thread has used last;
//! - [`geometry`], [`host`], [`machine`]: the shapes of caches.
//!
//! State that belongs to a thread ([`Level1`], [`Predictor`]) is apart from the state that threads share ([`LastLevel`]), so
//! a thread's first-level misses and mispredictions do not depend on scheduling. All state is [`Clone`]: a forked child
//! goes on with copies.

#![forbid(unsafe_code)]

pub mod beyond;
pub mod bounds;
pub mod cache;
pub mod calltree;
pub mod code_use;
pub mod context;
pub mod distance;
pub mod geometry;
pub mod hierarchy;
pub mod host;
pub mod included;
mod large;
mod line_map;
pub mod lru;
pub mod machine;
pub mod policy;
pub mod predictor;
pub mod prefetch;
mod sets;
pub mod sharing;
mod slots;
mod tags;
pub mod tlb;
pub mod usage;
pub mod writeback;

pub use beyond::{Beyond, Levels};
pub use geometry::{Geometries, Geometry};
pub use hierarchy::{Access, LastLevel, Level1, Port, Served};
pub use predictor::Predictor;
