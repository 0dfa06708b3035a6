//! The tests from outside as one program, which is linked once. A file here is a module: `cargo test -p grind cli::` runs
//! what is in `cli.rs`. No test may change what belongs to the whole process, since others run beside it.
#![forbid(unsafe_code)]

mod cli;
mod common;
mod faults;
mod live;
mod manners;
mod manual;
mod progress;
mod run;
