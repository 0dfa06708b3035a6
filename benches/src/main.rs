//! Placeholder until the set is in.
fn main() {}
