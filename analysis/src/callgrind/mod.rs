//! The callgrind tool: the dynamic call graph of a program, as far as it is not the model's (`cg-calls`), the format's
//! (`cg-format`), the engine's or the runner's.
//!
//! - [`settings`] says what is asked for, and which functions it concerns;
//! - [`code`] describes the program's code to the model;
//! - [`counters`] keeps what is executed as one, and its costs;
//! - [`sink`] drives the model with what the engine records;
//! - [`rows`] turns what the model found into a part of a profile;
//! - [`boundaries`] tells the engine where functions begin and end;
//! - [`parts`] names the files, [`dumps`] writes them; [`objects_part`] is what was found of data objects in one;
//! - [`summary`] says what was collected;
//! - [`dump_service`] is where the recorder meets the session of the runner.
//!
//! Nothing here knows of ptrace. No cost may be lost or made up on the way from the model to the file.

pub mod code;
pub mod columns;
pub mod counters;
pub mod dump_service;
pub mod dumps;
pub mod objects_part;
pub mod parts;
pub mod rows;
pub mod settings;
pub mod sink;
pub mod summary;
