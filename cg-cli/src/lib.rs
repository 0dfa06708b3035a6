//! Manners that the programs share: spellings of options, `s/old/new/`, wildcards, names of files with `%p`, input, where output gets to,
//! colour, exit codes, manuals.
//!
//! A program keeps what it computes and how it looks; everything that should feel the same in all of them is here, once: that
//! of processes is a report of two of them. Nothing else here knows what a profile means.
#![forbid(unsafe_code)]

pub mod by_process;
pub mod color;
pub mod exit;
pub mod expand;
pub mod glob;
pub mod input;
pub mod json;
pub mod launcher;
pub mod load;
pub mod manual;
pub mod newest;
pub mod options;
pub mod paths;
pub mod processes;
pub mod progress;
pub mod rank;
pub mod reason;
pub mod rename;
pub mod saved;
pub mod source_map;
pub mod source_text;
pub mod substitute;
