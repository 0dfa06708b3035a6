//! The parser and the application of substitutions under libFuzzer.
#![no_main]
// libFuzzer calls in by a C name.
#![allow(unsafe_code)]

libfuzzer_sys::fuzz_target!(|input: &[u8]| grind_fuzz::substitution(input));
