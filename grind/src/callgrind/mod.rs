//! The callgrind tool, as far as it is the runner's: [`control`] hears what is asked from outside, [`session`] answers. The rest is
//! in [`grind_analysis::callgrind`].
//!
//! Nothing here touches a profile.

pub mod session;
#[cfg(test)]
mod tests;
