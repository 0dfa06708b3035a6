//! The reader against its naive twin, and the laws of profiles, on profiles at random.
//!
//! `RANDOM_SECONDS=3600 cargo test --release -p cg-format twin::` is the long run; `RANDOM_SEED` starts it elsewhere.

use crate::naive;
use std::io::Read;
use std::time::{Duration, Instant};

use crate::naive::{Random, compare, profile, table};
use cg_format::cachegrind::{
    Detail, MergeError, Profile, ReadError, ReadErrorKind, ReadOptions, read, write, write_stored,
};

/// Runs `check` with ever new seeds: some thousand times, or as long as `RANDOM_SECONDS` says.
fn random(least: u64, check: impl Fn(&mut Random)) {
    let variable = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let until = variable("RANDOM_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let start = variable("RANDOM_SEED").unwrap_or(1);
    for seed in start.. {
        if until.map_or(seed >= start + least, |until| Instant::now() >= until) {
            break;
        }
        let mut source = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let guarded = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&mut source)));
        assert!(guarded.is_ok(), "RANDOM_SEED={seed} fails");
    }
}

fn readable(source: &mut Random) -> Profile {
    loop {
        if let Ok(profile) = read(&profile(source)[..], "x", &ReadOptions::default()) {
            return profile;
        }
    }
}

#[test]
fn the_reader_equals_its_twin() {
    random(20_000, |source| compare(&profile(source)));
}

#[test]
fn random_profiles_are_worth_reading() {
    let mut source = Random(7);
    let mut right = 0;
    for _ in 0..1000 {
        right += u64::from(naive::read(&profile(&mut source)).is_ok_and(|table| table.len() > 1));
    }
    assert!((300..950).contains(&right), "{right} of 1000 are right");
}

#[test]
fn pieces_may_be_cut_anywhere() {
    /// Gives a few bytes at a time.
    struct Drops<'a>(&'a [u8], Random);
    impl Read for Drops<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
            let count = (1 + self.1.below(9) as usize).min(self.0.len()).min(buffer.len());
            buffer[..count].copy_from_slice(&self.0[..count]);
            self.0 = &self.0[count..];
            Ok(count)
        }
    }
    random(2_000, |source| {
        let text = profile(source);
        let whole = read(&text[..], "x", &ReadOptions::default());
        let parts = read(Drops(&text, Random(source.next() | 1)), "x", &ReadOptions::default());
        match (whole, parts) {
            (Ok(whole), Ok(parts)) => assert_eq!(table(&whole), table(&parts)),
            (Err(whole), Err(parts)) => assert_eq!(whole.to_string(), parts.to_string()),
            (whole, parts) => panic!("{whole:?} against {parts:?}"),
        }
    });
}

#[test]
fn what_is_written_can_be_read() {
    random(5_000, |source| {
        let profile = readable(source);
        for stored in [false, true] {
            let mut text = Vec::new();
            if stored { write_stored(&mut text, &profile) } else { write(&mut text, &profile) }.unwrap();
            let again = read(&text[..], "again", &ReadOptions::default()).unwrap();
            assert_eq!(again.header, profile.header);
            assert_eq!(table(&again), table(&profile));
            assert_eq!(again.total(), profile.total());
        }
    });
}

#[test]
fn a_sorted_profile_depends_on_its_rows_alone() {
    random(2_000, |source| {
        let profile = readable(source);
        let mut rows: Vec<_> = table(&profile).into_iter().collect();
        for i in (1..rows.len()).rev() {
            rows.swap(i, source.below(i as u64 + 1) as usize);
        }
        let mut shuffled = Profile::with_header(profile.header.clone());
        for ((file, function, line), counts) in rows {
            // Sums of very large counts may pass the limit in one order and not in another.
            if shuffled.add(&file, &function, line, &counts).is_err() {
                return;
            }
        }
        let [mut one, mut other] = [Vec::new(), Vec::new()];
        write(&mut one, &profile).unwrap();
        write(&mut other, &shuffled).unwrap();
        assert_eq!(String::from_utf8_lossy(&one), String::from_utf8_lossy(&other));
    });
}

#[test]
fn merging_is_associative_and_a_difference_to_itself_is_zero() {
    random(2_000, |source| {
        let first = readable(source);
        // An event's name may be damaged so that no other profile has it.
        let mut alike = || {
            let mut others = (0..100).map(|_| readable(source));
            others.find(|other| other.header.events == first.header.events)
        };
        let (Some(second), Some(third)) = (alike(), alike()) else { return };
        let [mut left, mut right] = [first.clone(), second.clone()];
        let mut outer = first.clone();
        let too_large = |result| result == Err(MergeError::TooLarge);
        if too_large(left.merge(&second))
            || too_large(left.merge(&third))
            || too_large(right.merge(&third))
            || too_large(outer.merge(&right))
        {
            return;
        }
        let [mut one, mut other] = [Vec::new(), Vec::new()];
        write_stored(&mut one, &left).unwrap();
        write_stored(&mut other, &outer).unwrap();
        assert_eq!(String::from_utf8_lossy(&one), String::from_utf8_lossy(&other), "the order counts as well");
        let mut zero = first.clone();
        zero.negate();
        zero.merge(&first).unwrap();
        assert!(zero.total().iter().all(|count| *count == 0));
        assert!(table(&zero).values().flatten().all(|count| *count == 0));
        assert_eq!(table(&zero).len(), table(&first).len());
    });
}

#[test]
fn functions_alone_have_the_sums_of_their_lines() {
    random(2_000, |source| {
        let text = profile(source);
        let brief = read(&text[..], "x", &ReadOptions { detail: Detail::Functions, ..ReadOptions::default() });
        // Sums of very large counts may pass the limit in one way of adding and not in the other.
        let too_large = |error: &ReadError| matches!(error.kind, ReadErrorKind::TooLarge);
        let whole = match read(&text[..], "x", &ReadOptions::default()) {
            Ok(whole) => whole,
            Err(error) => {
                assert!(brief.is_err() || too_large(&error), "{error}");
                return;
            }
        };
        let mut sums = naive::Table::new();
        for ((file, function, _), counts) in table(&whole) {
            let sum = sums.entry((file, function, 0)).or_insert_with(|| vec![0; counts.len()]);
            sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
        }
        match brief {
            Ok(brief) => assert_eq!(table(&brief), sums),
            Err(error) => assert!(too_large(&error), "{error}"),
        }
    });
}
