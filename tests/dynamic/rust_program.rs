// cc: -Copt-level=1
//! Ordinary Rust for the comparison with the reference, function by function: the first line tells how it is compiled.
// Collections, iterators, formatting, and a panic that is caught.
use std::collections::{BTreeMap, VecDeque};
fn parse(text: &str) -> Result<Vec<i64>, std::num::ParseIntError> {
    text.split(',').map(|w| w.trim().parse()).collect()
}
fn main() {
    std::panic::set_hook(Box::new(|_| println!("panicked")));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let mut queue = VecDeque::new();
    let mut state = 1u32;
    for i in 0..3000 {
        state = state.wrapping_mul(1664525).wrapping_add(1013904223);
        *counts.entry(format!("key{}", state >> 24)).or_default() += i;
        queue.push_back(state);
        if queue.len() > 100 {
            queue.pop_front();
        }
    }
    let mut v: Vec<u32> = queue.into_iter().collect();
    v.sort_unstable();
    let sum: i64 = parse("1, 2, 3, 40").unwrap().iter().sum();
    let caught = std::panic::catch_unwind(|| parse("x").unwrap().len()).is_err();
    println!("{} {} {} {:.6} {}", counts.len(), v[50], sum, f64::from(v[3]).sqrt(), caught);
}
