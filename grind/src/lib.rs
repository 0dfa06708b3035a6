//! The runner: takes a command line, has the engine run the program, and writes the profile.
//!
//! The engine knows nothing of options, logs, debug information or file formats; all of that is here. Nothing here may
//! change what is counted or what the program does.

pub mod advice;
pub mod allocators;
pub mod attach;
pub mod backtrace;
pub mod built;
pub mod callgrind;
pub mod contexts;
pub mod control;
pub mod doctor;
pub mod elsewhere;
pub mod engine_log;
pub mod held;
pub mod invocation;
pub mod live;
pub mod log;
pub mod manual;
pub mod options;
pub mod os;
pub mod outfile;
pub mod parts;
pub mod progress;
pub mod resolve;
pub mod round;
pub mod run;
pub mod session;
pub mod simulation;
pub mod supervisor;
pub mod timeline;
pub mod tree;
pub mod view;
