//! What a profile says, before it is known how it looks: self and inclusive costs, cycles, totals, calls and lines.
//!
//! Every program that shows profiles computes through this crate, so that they print the same numbers by construction.
//! [`Collector`] is the sink that adds up a profile while `cg-format` reads it; [`Model`] is what follows from the sums.
//! Where there may be millions of calls, [`Detail`] is the sink, and [`Functions`] what follows.
//! The crate prints nothing, opens no file and knows no options.
#![forbid(unsafe_code)]

mod collect;
mod contexts;
mod cost;
mod detail;
mod functions;
mod graph;
mod model;

pub use collect::{Arc, Collector, Line, LineCall, Unit};
pub use contexts::{Context, Heads};
pub use cost::Cost;
pub use detail::{CallSite, Detail, JumpSite, Row};
pub use functions::{Between, Functions};
pub use graph::groups;
pub use model::{Entry, Link, Model, ModelError, Rules, SourceCall, SourceLine, Total, UNKNOWN};
