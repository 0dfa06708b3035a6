//! The runner's library half: everything between the engine's counts and the profile file.

pub mod debuginfo;
