//! The tests from outside as one program, which is linked once. A file here is a module: `cargo test -p cg-sim beyond::` runs
//! what is in `beyond.rs`. No test may change what belongs to the whole process, since others run beside it.
#![forbid(unsafe_code)]

mod beyond;
mod bounds;
mod calltree;
mod contexts;
mod distances;
mod included;
mod models;
mod oracle;
mod policies;
mod sharing;
mod twin;
mod usage;
