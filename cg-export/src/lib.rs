//! What `cg_export` and `cg_import` share: the messages of pprof's format, and the contexts that names of functions hold.
//!
//! Nothing here opens a file or prints.
#![forbid(unsafe_code)]

pub mod contexts;
pub mod pprof;
