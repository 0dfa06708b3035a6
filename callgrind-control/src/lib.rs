//! How a profile that is being made can be looked at and told what to do: the protocol and both of its ends.
//!
//! Each process that is profiled listens on a Unix socket called `control` in a folder of its own, `grind-callgrind-PID` or
//! `grind-cachegrind-PID`, below `$XDG_RUNTIME_DIR` or else `/tmp`. PID is that of the process. Nobody but the
//! owner may enter the folder; both ends check that, and that it is no link.
//!
//! The talk is lines of text. The run begins with `grind-control 1 PID`; a client that expected another PID hangs up:
//! **no request ever reaches a run that was not named.** Then the client sends a [`Request`], a line, and gets the
//! answer: any number of lines that begin with a blank, then `ok` or `error CAUSE`. It may send more, or hang up. Line
//! breaks and backslashes within a line are written `\n` and `\\`.
//!
//! ```text
//! run     grind-control 1 4711
//! client  status
//! run      command: ./prog 3
//! run      tool: callgrind
//! run      instrumentation: on
//! run      events: Ir
//! run      part: 1
//! run      thread: 1
//! run      total: 60123
//! run      frame: 59000 1 main
//! run      frame: 12 3 leaf
//! run     ok
//! client  dump before the loop
//! run      callgrind.out.4711.1
//! run     ok
//! ```
//!
//! A run serves requests where it can do what they say: [`Listener::start`] gives it a queue of [`Asked`] and calls it
//! whenever something was put in. Nothing here waits for ever: both ends give up on a partner that is silent.
#![forbid(unsafe_code)]

mod activity;
mod client;
mod lines;
mod message;
mod place;
mod server;

pub use activity::{ActiveFunction, ActiveThread, Activity, ActivityRequest};
pub use client::{Client, ClientError, runs, runs_by_tool};
pub use message::{Answer, Frame, Request, Status, Thread};
pub use place::{Tool, folder, of_socket};
pub use server::{Asked, Listener, Queue};

/// The version of the protocol, said in the greeting.
pub const VERSION: u32 = 1;

/// How long either end waits for the other one.
pub const PATIENCE: std::time::Duration = std::time::Duration::from_secs(10);
