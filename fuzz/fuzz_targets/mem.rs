//! The target `mem` under libFuzzer.
#![no_main]
// libFuzzer calls in by a C name.
#![allow(unsafe_code)]

grind_fuzz::libfuzzer!("mem");
