//! The analysis: from what the engine counts and records to profiles.
//!
//! Sinks ([`simulator`], [`callgrind::sink`]) take records and drive the models; [`counts`] and [`callgrind::code`] keep what is
//! counted apart; `grind_names` gives it names; [`dump`] and [`callgrind::dumps`] make profiles of it. What a run
//! is asked to do by its user, what it tells, and when it does what, is the runner's: nothing here knows options as they
//! are typed, logs or terminals. Nothing here may change what is counted.

#![forbid(unsafe_code)]

pub mod callgrind;
pub mod counts;
pub mod cycles;
pub mod dump;
pub mod simulator;
