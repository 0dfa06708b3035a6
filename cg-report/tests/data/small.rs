//! The source of the profiles `rust.*`, whose lines these are: nothing here may move to another line. It is not compiled.
use std::collections::HashMap; fn parse(text: &str) -> Vec<u64> { text.split(' ').filter_map(|w| w.parse().ok()).collect() }
#[inline(never)]
fn lookup(map: &HashMap<u64, u64>, keys: &[u64]) -> u64 { keys.iter().map(|k| map.get(k).copied().unwrap_or(0)).sum() }
#[inline(never)]
fn fib(n: u32) -> u64 { if n < 2 { n as u64 } else { fib(n - 1) + fib(n - 2) } }
#[inline(never)]
fn even(n: u32) -> bool { n == 0 || odd(n - 1) }
#[inline(never)]
fn odd(n: u32) -> bool { n != 0 && even(n - 1) }
fn main() {
    let text: String = (0..2000).map(|i| format!("{} ", i * 7 % 1000)).collect();
    let keys = parse(&text);
    let map: HashMap<u64, u64> = keys.iter().map(|k| (*k, k * k)).collect();
    let mut total = 0;
    for round in 0..20 { total += lookup(&map, &keys) + round; }
    let mut v: Vec<u64> = keys.iter().map(|k| k.wrapping_mul(0x9e3779b97f4a7c15) >> 40).collect();
    v.sort();
    println!("{} {} {} {}", total, fib(15), even(100), v[10]);
}
