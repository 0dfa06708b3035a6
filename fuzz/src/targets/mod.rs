//! The targets: one file for each kind of foreign bytes that is read.

mod cachegrind;
mod callgrind;
mod control;
mod cxx;
mod elf;
mod mem;
mod options;
mod substitution;
mod text;

use crate::Target;

/// Every target.
pub const TARGETS: &[Target] = &[
    cachegrind::TARGET,
    callgrind::TARGET,
    control::TARGET,
    cxx::TARGET,
    elf::TARGET,
    mem::TARGET,
    options::TARGET,
    substitution::TARGET,
];

/// The target called `name`.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
