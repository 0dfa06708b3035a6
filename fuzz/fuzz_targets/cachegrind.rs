//! The reader of profiles under libFuzzer.
#![no_main]
// libFuzzer calls in by a C name.
#![allow(unsafe_code)]

libfuzzer_sys::fuzz_target!(|input: &[u8]| grind_fuzz::reader(input));
