//! What is done with an input at random: the targets, for libFuzzer and for the plain driver alike.
//!
//! A target panics when a law is broken; time and memory are watched by whoever calls it ([`limits`]). Targets do the same
//! for the same input, and leave nothing behind.

pub mod grammar;
pub mod limits;
pub mod mutate;
mod targets;
pub mod watch;

pub use targets::{TARGETS, target};

/// A target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, which is also that of the folder of its inputs.
    pub name: &'static str,
    /// Reads an input, as the product does; what that takes is measured.
    pub run: fn(&[u8]),
    /// Compares what was read with what else is known of it; only panics matter.
    pub laws: fn(&[u8]),
    /// Words that its inputs are made of.
    pub words: &'static [&'static str],
    /// Changes an input as only somebody can who knows what it is.
    pub change: Option<fn(&mut mutate::Random, &mut Vec<u8>)>,
    /// The largest input made, in bytes.
    pub largest: usize,
    /// Memory that it may take whatever the input; see [`limits`].
    pub overhead: usize,
    /// Memory that an input may take besides, by what it says and not by its length; the target says why.
    pub besides: fn(&[u8]) -> usize,
}

#[cfg(feature = "libfuzzer")]
pub use libfuzzer_sys;

/// The whole of a target's program under libFuzzer: its own changes and ours take turns.
#[cfg(feature = "libfuzzer")]
#[macro_export]
macro_rules! libfuzzer {
    ($name:literal) => {
        use $crate::libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

        fuzz_target!(|input: &[u8]| $crate::limits::insist($crate::target($name).expect("a target"), input));

        fuzz_mutator!(|data: &mut [u8], size: usize, room: usize, seed: u32| {
            let mut random = $crate::mutate::Random::new(seed.into());
            if random.below(2) == 0 {
                return fuzzer_mutate(data, size, room);
            }
            let mut input = data[..size].to_vec();
            let target = $crate::target($name).expect("a target");
            for _ in 0..=random.below(3) {
                $crate::mutate::change(&mut random, &mut input, &[], target);
            }
            let size = input.len().min(room);
            data[..size].copy_from_slice(&input[..size]);
            size
        });
    };
}
