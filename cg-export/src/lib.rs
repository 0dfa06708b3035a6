//! What `cg_export`, `cg_import` and `cg_report` share: readers of what other programs measured, and the messages of pprof's
//! format.
//!
//! Nothing here opens a file or prints.
#![forbid(unsafe_code)]

pub mod measured;
pub mod pprof;
pub mod read;
