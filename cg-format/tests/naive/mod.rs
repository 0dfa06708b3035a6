//! The naive twin of the reader, and profiles at random: slow, plain, and written from the format alone.

use std::collections::BTreeMap;

use cg_format::cachegrind::{Profile, ReadError};

/// Counts by file, function and line.
pub(crate) type Table = BTreeMap<(Vec<u8>, Vec<u8>, u64), Vec<i128>>;

/// Reads a profile line by line; the error is the number of the line at fault.
pub(crate) fn read(text: &[u8]) -> Result<Table, u64> {
    let mut lines: Vec<&[u8]> = text.split(|byte| *byte == b'\n').collect();
    if lines.last() == Some(&&b""[..]) {
        lines.pop();
    }
    let lines: Vec<&[u8]> = lines.iter().map(|line| without_returns(line)).collect();
    let end = lines.len() as u64 + 1;
    let mut numbered = (1..).zip(lines);
    let keyed = |line: &[u8], key: &str| {
        let rest = line.strip_prefix(key.as_bytes())?;
        (rest.is_empty() || blank(&rest[0])).then(|| rest.to_vec())
    };
    loop {
        let (number, line) = numbered.next().ok_or(end)?;
        if keyed(line, "desc:").is_none() {
            keyed(line, "cmd:").ok_or(number)?;
            break;
        }
    }
    let (number, line) = numbered.next().ok_or(end)?;
    let events = words(&keyed(line, "events:").ok_or(number)?);
    let unique: std::collections::BTreeSet<_> = events.iter().collect();
    if events.is_empty() || unique.len() < events.len() || events.iter().any(|name| std::str::from_utf8(name).is_err())
    {
        return Err(number);
    }
    let width = events.len();
    let mut table = Table::new();
    let (mut file, mut function): (Option<Vec<u8>>, Vec<u8>) = (None, Vec::new());
    let mut total = vec![0_i128; width];
    let mut summary = None;
    for (number, line) in numbered {
        if let Some(name) = line.strip_prefix(b"fl=") {
            file = Some(name.to_vec());
            function = b"<unspecified>".to_vec();
        } else if let Some(name) = line.strip_prefix(b"fn=") {
            file.as_ref().ok_or(number)?;
            function = name.to_vec();
        } else if let Some(rest) = keyed(line, "summary:") {
            summary = Some((number, counts(&words(&rest), width).ok_or(number)?));
        } else if line.first().is_some_and(u8::is_ascii_digit) {
            let words = words(line);
            let key =
                (words[0].iter().all(u8::is_ascii_digit)).then(|| std::str::from_utf8(&words[0]).unwrap().parse());
            let key = key.and_then(Result::ok).ok_or(number)?;
            let counts = counts(&words[1..], width).ok_or(number)?;
            let row =
                table.entry((file.clone().ok_or(number)?, function.clone(), key)).or_insert_with(|| vec![0; width]);
            for i in 0..width {
                row[i] += counts[i];
                total[i] += counts[i];
                if row[i].abs() > cg_format::count::LIMIT || total[i].abs() >= i128::MAX / 2 {
                    return Err(number);
                }
            }
        } else if !line.is_empty() && line[0] != b'#' {
            return Err(number);
        }
    }
    if total.iter().any(|total| total.abs() > cg_format::count::LIMIT) {
        return Err(end);
    }
    match summary {
        None => Err(end),
        Some((number, summary)) if summary != total => Err(number),
        Some(_) => Ok(table),
    }
}

fn without_returns(mut line: &[u8]) -> &[u8] {
    while let Some(rest) = line.strip_suffix(b"\r") {
        line = rest;
    }
    line
}

fn blank(byte: &u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\r' | 0x0b | 0x0c)
}

fn words(text: &[u8]) -> Vec<Vec<u8>> {
    text.split(blank).filter(|word| !word.is_empty()).map(<[u8]>::to_vec).collect()
}

fn counts(words: &[Vec<u8>], width: usize) -> Option<Vec<i128>> {
    let mut counts = Vec::new();
    for word in words {
        let text = std::str::from_utf8(word).ok()?;
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        counts.push(text.parse::<i128>().ok().filter(|count| count.abs() <= cg_format::count::LIMIT)?);
    }
    if counts.len() > width {
        return None;
    }
    counts.resize(width, 0);
    Some(counts)
}

/// What a profile holds.
pub(crate) fn table(profile: &Profile) -> Table {
    let mut table = Table::new();
    for file in profile.files() {
        for function in file.functions() {
            for (row, line) in function.rows().lines().enumerate() {
                let key = (file.name().to_vec(), function.name().to_vec(), line);
                let old = table.insert(key, function.rows().counts(row));
                assert!(old.is_none(), "a line has two rows");
            }
        }
    }
    table
}

/// Compares the reader with its twin on one input.
pub(crate) fn compare(text: &[u8]) {
    let fast: Result<Profile, ReadError> = cg_format::cachegrind::read(text, "x", &Default::default());
    match (fast, read(text)) {
        (Ok(profile), Ok(expected)) => {
            assert_eq!(table(&profile), expected, "{}", String::from_utf8_lossy(text));
            for (i, total) in profile.total().iter().enumerate() {
                assert_eq!(*total, expected.values().map(|counts| counts[i]).sum::<i128>());
            }
        }
        (Err(error), Err(line)) => assert_eq!(error.line, Some(line), "{error}\n{}", String::from_utf8_lossy(text)),
        (fast, slow) => panic!("{fast:?}\nagainst {slow:?}\n{}", String::from_utf8_lossy(text)),
    }
}

/// Xorshift, so that a failure can be repeated by its seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 >> 11
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len() as u64) as usize]
    }
}

const NAMES: &[&[u8]] =
    &[b"a", b"b", b"c.c", b"(below main)", b"???", b"", b"zz top", b"\xff\xfe", b"<unspecified>", b"m"];
const NUMBERS: &[&str] = &[
    "0",
    "1",
    "7",
    "00012",
    "99999999",
    "100000000",
    "123456789012345",
    "999999999999999",
    "1000000000000000",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551616",
    "1000000000000000000000000000000000000",
];
const ODD: &[&str] = &["1000000000000000000000000000000000001", "x", "1x", "--1", "-", "+", "1_0", "0x1", "1.5", "٣"];
const BLANKS: &[&str] = &[" ", " ", " ", " ", " ", "  ", "\t", " \t "];

/// A profile at random, right more often than not.
pub(crate) fn profile(random: &mut Random) -> Vec<u8> {
    let width = 1 + random.below(4);
    let strange = random.below(3) == 0;
    let end = if random.below(6) == 0 { "\r\n" } else { "\n" };
    let mut text = Vec::new();
    let line = |text: &mut Vec<u8>, parts: &[&[u8]]| {
        parts.iter().for_each(|part| text.extend_from_slice(part));
        text.extend_from_slice(end.as_bytes());
    };
    for _ in 0..random.below(3) {
        line(&mut text, &[b"desc: I1 cache: 1 B"]);
    }
    line(&mut text, &[b"cmd: ", *random.pick(NAMES)]);
    let events: Vec<&str> = ["Ir", "Dr", "Dw", "Bc"][..width as usize].to_vec();
    line(&mut text, &[b"events: ", events.join(" ").as_bytes()]);
    let mut total = vec![0_i128; width as usize];
    if random.below(20) > 0 {
        line(&mut text, &[b"fl=", *random.pick(NAMES)]);
    }
    let mut number = 0;
    for _ in 0..random.below(30) {
        match random.below(12) {
            0 => line(&mut text, &[b"fl=", *random.pick(NAMES)]),
            1 | 2 => {
                line(&mut text, &[b"fn=", *random.pick(NAMES)]);
                number = 0;
            }
            3 if strange => {
                let odd: &[&[u8]] =
                    &[b"", b"# x", b"bogus", b"fi=a", b"summary: 0", b" 1 2", b"-1 2", b"calls=1 2", b"\0"];
                line(&mut text, &[*random.pick(odd)]);
            }
            _ => {
                number = if random.below(8) == 0 { random.below(20) } else { number + random.below(3) };
                let mut row = number.to_string();
                if strange && random.below(30) == 0 {
                    row = (*random.pick(&["18446744073709551615", "18446744073709551616", "007", "1a", "123456789"]))
                        .to_owned();
                }
                let many = if random.below(10) == 0 { random.below(width + 2) } else { width };
                for column in 0..many as usize {
                    let mut word =
                        if strange { (*random.pick(NUMBERS)).to_owned() } else { random.below(1000).to_string() };
                    if strange && random.below(60) == 0 {
                        word = (*random.pick(ODD)).to_owned();
                    }
                    if random.below(8) == 0 {
                        word.insert(0, *random.pick(&['-', '+', '-']));
                    }
                    if let (Ok(count), Some(total)) = (word.parse::<i128>(), total.get_mut(column)) {
                        *total = total.saturating_add(count);
                    }
                    row += if strange { *random.pick(BLANKS) } else { " " };
                    row += &word;
                }
                if strange && random.below(10) == 0 {
                    row += *random.pick(&[" ", "  ", "\t"]);
                }
                line(&mut text, &[row.as_bytes()]);
            }
        }
    }
    if random.below(15) > 0 {
        let words: Vec<String> = total.iter().map(i128::to_string).collect();
        line(&mut text, &[b"summary: ", words.join(" ").as_bytes()]);
    }
    if random.below(10) == 0 {
        text.truncate(random.below(text.len() as u64 + 1) as usize);
    }
    if random.below(10) == 0 && !text.is_empty() {
        let at = random.below(text.len() as u64) as usize;
        text[at] = random.next() as u8;
    }
    text
}
