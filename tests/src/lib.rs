//! What the end-to-end tests share: finding the program under test, running programs natively, under it and under the
//! reference, reading profiles, and comparing them.
//!
//! It must never use grind's own crates for what a test expects: a mistake there would hide itself. The profile reader here is
//! a second, naive one, and instruction counts come from Valgrind or from single-stepping the program natively. (The laws of
//! call graphs, which expect nothing of the program, are `cg-format`'s.)
//!
//! `GRIND_BIN` (words separated by blanks) replaces the program under test. With
//! `GRIND_BIN="valgrind --tool=cachegrind --vex-guest-chase=no"` every oracle test must pass, and with
//! `GRIND_BIN=tests/selfcheck/off-by-one` every oracle test must fail; that is how the tests themselves are tested.
#![forbid(unsafe_code)]

pub mod apart;
pub mod build;
pub mod calls;
pub mod compare;
pub mod costs;
pub mod disturb;
pub mod dynamic;
pub mod json;
pub mod laws;
pub mod layers;
pub mod mem;
pub mod profile;
pub mod random;
pub mod run;
pub mod selfcount;
pub mod shared;
pub mod simulation;
pub mod step;
pub mod tools;
