//! The reader of callgrind profiles against a slow, obvious one, on real profiles and on random ones.

use std::collections::{BTreeMap, HashMap};

use cg_format::callgrind::{
    Call, FunctionId, Header, Jump, JumpKind, Part, PartHeader, Place, Position, Positions, Profile, Site,
    WriteOptions, Writer, read_profile,
};

/// Sums by function, file and line: self costs, calls with their counts and costs, and jumps.
type Sums = BTreeMap<String, Vec<i64>>;

fn add(sums: &mut Sums, key: String, values: &[i64]) {
    let sum = sums.entry(key).or_default();
    sum.resize(sum.len().max(values.len()), 0);
    sum.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
}

/// A reader that knows what the reference writes, and nothing else.
fn naive(text: &str) -> Sums {
    let mut sums = Sums::new();
    let mut known: HashMap<(char, String), String> = HashMap::new();
    let mut current: HashMap<String, String> = HashMap::new();
    let mut columns = vec!["line".to_owned()];
    let mut last: HashMap<String, i64> = HashMap::new();
    let mut next: Option<(String, Vec<i64>)> = None;
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(list) = line.strip_prefix("positions: ") {
            columns = list.split_whitespace().map(str::to_owned).collect();
            continue;
        }
        if line.starts_with(|c: char| c.is_ascii_digit() || "+-*".contains(c)) {
            let mut words = line.split_whitespace();
            for column in &columns {
                let value = place(words.next().unwrap(), last.get(column).copied().unwrap_or(0));
                last.insert(column.clone(), value);
            }
            let costs: Vec<i64> = words.map(|word| word.parse().unwrap()).collect();
            let here = format!(
                "{} {} {:?}",
                current["fn"],
                current["fi"],
                columns.iter().map(|c| last[c]).collect::<Vec<_>>()
            );
            match next.take() {
                None => add(&mut sums, here, &costs),
                Some((what, counts)) => add(&mut sums, format!("{here} {what}"), &[counts, costs].concat()),
            }
            continue;
        }
        let Some((key, value)) = line.split_once('=').filter(|(key, _)| !key.contains(':')) else { continue };
        match key {
            "calls" | "jump" | "jcnd" => {
                let mut words = value.split_whitespace();
                let counts: Vec<i64> = words.next().unwrap().split('/').map(|word| word.parse().unwrap()).collect();
                let target: Vec<i64> =
                    columns.iter().zip(words).map(|(c, word)| place(word, last.get(c).copied().unwrap_or(0))).collect();
                let what = if key == "calls" {
                    let file = current.remove("cfi").unwrap_or_else(|| current["fi"].clone());
                    format!("calls {} {file} {target:?}", current["cfn"])
                } else {
                    let file = current.remove("jfi").unwrap_or_else(|| current["fi"].clone());
                    format!("{key} {file} {target:?}")
                };
                next = Some((what, counts));
            }
            _ => {
                let kind = if key.ends_with("ob") {
                    'o'
                } else if key.ends_with("fn") {
                    'n'
                } else {
                    'f'
                };
                let name = match value.strip_prefix('(').and_then(|rest| rest.split_once(')')) {
                    Some((id, name)) if id.chars().all(|c| c.is_ascii_digit()) => {
                        let id = (kind, id.to_owned());
                        if let Some(name) = name.strip_prefix(' ') {
                            known.insert(id.clone(), name.to_owned());
                        }
                        known[&id].clone()
                    }
                    _ => value.to_owned(),
                };
                if key == "cfn" {
                    // Callees whose calls are left out take their files with them.
                    if let Some(file) = current.remove("late cfi") {
                        current.insert("cfi".to_owned(), file);
                    } else if current.contains_key("open") {
                        current.remove("cfi");
                    }
                    current.insert("open".to_owned(), String::new());
                }
                let key = match key {
                    "fl" | "fe" => "fi",
                    "cfi" if current.contains_key("open") => "late cfi",
                    key => key,
                };
                current.insert(key.to_owned(), name);
            }
        }
        if key == "calls" || key == "fn" {
            for key in ["open", "late cfi"] {
                current.remove(key);
            }
        }
        if key == "fn" {
            current.remove("cfi");
        }
    }
    sums
}

fn place(word: &str, last: i64) -> i64 {
    let absolute = |word: &str| match word.strip_prefix("0x") {
        Some(hex) => i64::from_str_radix(hex, 16).unwrap(),
        None => word.parse().unwrap(),
    };
    match word.as_bytes()[0] {
        b'*' => last,
        b'+' => last + absolute(&word[1..]),
        b'-' => last - absolute(&word[1..]),
        _ => absolute(word),
    }
}

/// The same sums from the real reader.
fn real(profile: &Profile) -> Sums {
    let mut sums = Sums::new();
    let names = &profile.names;
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    for part in &profile.parts {
        let Positions { instr, line } = part.header.positions;
        let numbers = |place: Place| {
            let all = [(instr, place.addr as i64), (line, i64::from(place.line))];
            all.into_iter().filter(|(shown, _)| *shown).map(|(_, value)| value).collect::<Vec<_>>()
        };
        for body in part.bodies() {
            for entry in &body.entries {
                let file = text(names.file_name(entry.at.file));
                let here = format!("{} {file} {:?}", text(names.function_name(body.function)), numbers(entry.at.place));
                match &entry.site {
                    Site::Row { costs } => add(&mut sums, here, body.costs(*costs)),
                    Site::Call { call, costs } => {
                        let callee = text(names.function_name(call.callee));
                        let file = text(names.file_name(names.get(call.callee).file));
                        let key = format!("{here} calls {callee} {file} {:?}", numbers(call.target));
                        add(&mut sums, key, &[&[call.count as i64], body.costs(*costs)].concat());
                    }
                    Site::Jump(jump) => {
                        let file = text(names.file_name(jump.target.file));
                        let (kind, counts) = match jump.kind {
                            JumpKind::Always { count } => ("jump", vec![count as i64]),
                            JumpKind::Conditional { taken, executed } => ("jcnd", vec![taken as i64, executed as i64]),
                        };
                        add(&mut sums, format!("{here} {kind} {file} {:?}", numbers(jump.target.place)), &counts);
                    }
                }
            }
        }
    }
    sums
}

/// Zeros at the end may be left out.
fn trimmed(mut sums: Sums) -> Sums {
    for values in sums.values_mut() {
        while values.last() == Some(&0) {
            values.pop();
        }
    }
    sums
}

#[test]
fn real_profiles_are_read_as_the_naive_reader_reads_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/profiles");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if !path.to_string_lossy().contains(".clout") {
            continue;
        }
        count += 1;
        let bytes = std::fs::read(&path).unwrap();
        let fast = trimmed(real(&read_profile(&bytes[..], "fast").unwrap()));
        let slow = trimmed(naive(std::str::from_utf8(&bytes).unwrap()));
        let odd: Vec<_> = slow.iter().filter(|(key, value)| fast.get(*key) != Some(value)).take(3).collect();
        assert!(fast == slow, "{}: {} and {}: {odd:?}", path.display(), fast.len(), slow.len());
    }
    assert!(count >= 8, "only {count} profiles");
}

#[test]
fn random_profiles_are_read_as_they_were_written() {
    let mut state: u64 = 1;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    for round in 0..200_u64 {
        let profile = random_profile(&mut random);
        let options = WriteOptions { compress_strings: round % 2 == 0, compress_positions: round % 3 == 0 };
        let mut bytes = Vec::new();
        Writer::new(options).profile(&mut bytes, &profile).unwrap();
        let again = read_profile(&bytes[..], "again").unwrap_or_else(|error| {
            panic!("{error}\n{}", String::from_utf8_lossy(&bytes));
        });
        let mut before = trimmed(real(&profile));
        let mut after = trimmed(real(&again));
        // What is all 0 need not be written.
        before.retain(|_, values| !values.is_empty());
        after.retain(|_, values| !values.is_empty());
        assert_eq!(before, after, "{}", String::from_utf8_lossy(&bytes));
        let slow = trimmed(naive(std::str::from_utf8(&bytes).unwrap()));
        assert_eq!(before, slow.into_iter().filter(|(_, values)| !values.is_empty()).collect());
        for (part, again) in profile.parts.iter().zip(&again.parts) {
            assert_eq!(part.total(), again.total());
        }
    }
}

fn random_profile(random: &mut impl FnMut(u64) -> u64) -> Profile {
    let mut profile =
        Profile { header: Header { creator: b"test".to_vec(), ..Header::default() }, ..Profile::default() };
    let names = &mut profile.names;
    let objects = [names.object(b"/bin/a"), names.object(b"/lib/b.so"), names.object(b"???")];
    let files = [names.file(b"a.c"), names.file(b"(7)"), names.file(b"dir with blanks/b.h"), names.file(b"???")];
    let functions: Vec<FunctionId> = (0..8)
        .map(|i| {
            let name = [&b"main"[..], b"operator=(int)", b"f'2'g", b"0x0000000000001000", b"(below main)", b"x::y"];
            let name = [name[i % 6], &[b'0' + i as u8]].concat();
            let (file, object) = (files[random(4) as usize], objects[random(3) as usize]);
            names.function(&name, file, object)
        })
        .collect();
    for number in 1..=1 + random(2) {
        // Without lines or addresses there would be nothing to tell places apart.
        let positions = [(true, true), (true, false), (false, true)][random(3) as usize];
        let header = PartHeader {
            number: Some(number),
            positions: Positions { instr: positions.0, line: positions.1 },
            events: vec!["Ir".into(), "Dr".into(), "Dw".into()],
            ..PartHeader::default()
        };
        let mut part = Part::new(header);
        for _ in 0..random(60) {
            let mut position = || {
                let place = Place {
                    addr: if positions.0 { 0x1000 + random(300) } else { 0 },
                    line: if positions.1 { random(300) as u32 } else { 0 },
                };
                Position { place, file: files[random(4) as usize] }
            };
            let (at, target) = (position(), position());
            let costs = [random(5), random(3) * random(1 << 40), random(2)];
            let (function, other) = (functions[random(8) as usize], functions[random(8) as usize]);
            match random(4) {
                0 => {
                    let call = Call { callee: other, target: target.place, count: random(3) };
                    part.add_call(function, at, call, &costs).unwrap();
                }
                1 => {
                    let kind = match random(2) {
                        0 => JumpKind::Always { count: 1 + random(9) },
                        _ => JumpKind::Conditional { taken: random(3), executed: 3 },
                    };
                    part.add_jump(function, at, Jump { target, function: None, kind });
                }
                _ => part.add_row(function, at, &costs).unwrap(),
            }
        }
        profile.parts.push(part);
    }
    profile
}
