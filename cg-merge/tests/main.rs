//! The tests from outside as one program, which is linked once. A file here is a module: `cargo test -p cg-merge behaviour::` runs
//! what is in `behaviour.rs`. No test may change what belongs to the whole process, since others run beside it.
#![forbid(unsafe_code)]

mod behaviour;
mod by_process;
mod by_rank;
mod golden;
mod reduce;
