//! What `cg_export` and `cg_import` share: the messages of pprof's format.
//!
//! Nothing here opens a file or prints.
#![forbid(unsafe_code)]

pub mod pprof;
