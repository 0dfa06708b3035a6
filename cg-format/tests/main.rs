//! The tests from outside as one program, which is linked once. A file here is a module: `cargo test -p cg-format callgrind::` runs
//! what is in `callgrind.rs`. No test may change what belongs to the whole process, since others run beside it.
#![forbid(unsafe_code)]

mod callgrind;
mod callgrind_twin;
mod limits;
mod naive;
mod twin;
