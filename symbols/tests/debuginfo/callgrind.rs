//! Reads the profiles of the reference tools: per instruction from Callgrind, per line from Cachegrind.

use std::collections::{BTreeMap, HashMap};

/// Executed instructions: object, link-time address, count.
pub(crate) fn instructions(profile: &[u8]) -> HashMap<String, BTreeMap<u64, u64>> {
    let mut found: HashMap<String, BTreeMap<u64, u64>> = HashMap::new();
    let mut object = String::new();
    let mut call = false;
    for line in String::from_utf8_lossy(profile).lines() {
        if let Some(name) = line.strip_prefix("ob=") {
            object = name.to_owned();
        } else if line.starts_with("calls=") {
            // The line that follows holds the inclusive cost of the call, which is no instruction's own.
            call = true;
        } else if line.starts_with("0x") {
            if std::mem::take(&mut call) {
                continue;
            }
            let mut words = line.split(' ');
            let address = words.next().and_then(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16).ok());
            let count = words.nth(1).and_then(|w| w.parse().ok()).unwrap_or(0);
            *found.entry(object.clone()).or_default().entry(address.expect("an address")).or_default() += count;
        }
    }
    found
}

/// File, function and line, as bytes: names need not be UTF-8.
pub(crate) type Key = (Vec<u8>, Vec<u8>, u32);

/// Counts per key.
pub(crate) fn lines(profile: &[u8]) -> BTreeMap<Key, u64> {
    let mut found = BTreeMap::new();
    let (mut file, mut function) = (Vec::new(), Vec::new());
    for line in profile.split(|&b| b == b'\n') {
        if let Some(name) = line.strip_prefix(b"fl=") {
            file = name.to_vec();
        } else if let Some(name) = line.strip_prefix(b"fn=") {
            function = name.to_vec();
        } else if line.first().is_some_and(u8::is_ascii_digit) {
            let text = String::from_utf8_lossy(line);
            let mut numbers = text.split(' ').map(|n| n.parse::<u64>().expect("a number"));
            let (Some(number), Some(count)) = (numbers.next(), numbers.next()) else { panic!("short line {text}") };
            if count > 0 {
                *found.entry((file.clone(), function.clone(), number as u32)).or_default() += count;
            }
        }
    }
    found
}
