//! The runner: takes a command line, has the engine run the program, and writes the profile.
//!
//! The engine knows nothing of options, logs, debug information or file formats; all of that is here. Nothing here may
//! change what is counted or what the program does.

pub mod advice;
pub mod backtrace;
pub mod broken;
pub mod built;
pub mod callgrind;
pub mod contexts;
pub mod counts;
pub mod cycles;
pub mod doctor;
pub mod dump;
pub mod elsewhere;
pub mod engine_log;
pub mod expand;
pub mod glob;
pub mod invocation;
pub mod log;
pub mod made;
pub mod manual;
pub mod mapped;
pub mod objects;
pub mod options;
pub mod os;
pub mod outfile;
pub mod progress;
pub mod resolve;
pub mod run;
pub mod saved;
pub mod session;
pub mod simulation;
pub mod simulator;
pub mod source;
pub mod supervisor;
pub mod symbolizer;
pub mod tree;
