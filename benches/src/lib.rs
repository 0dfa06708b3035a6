//! What the benchmarks have found, as data: runs in `runs/`, experiments in `experiments.toml`, and the figures that are made
//! from them for the README. Nothing here measures; a figure in a document is always one that was read from these files.
#![forbid(unsafe_code)]

pub mod data;
pub mod figures;
