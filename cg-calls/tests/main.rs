//! The tests from outside as one program, which is linked once. A file here is a module: `cargo test -p cg-calls express::` runs
//! what is in `express.rs`. No test may change what belongs to the whole process, since others run beside it.
#![forbid(unsafe_code)]

mod common;
mod express;
mod followed;
mod interposed;
mod naive;
mod oracle;
mod rules;
mod stepped;
mod twin;
