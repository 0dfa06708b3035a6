//! Reads what other programs measured: folded stacks, `perf script`, pprof, places in objects with numbers.
//!
//! What a line means is decided by the line alone; one that means nothing is an error that names it. Numbers are taken as
//! they are: nothing is scaled and nothing left out.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::LazyLock;

use prost::Message;
use regex::bytes::Regex;

use crate::measured::{Frame, Measured, Spot, Stack};
use crate::pprof;

/// Why something is no measurement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadError {
    /// A line is none of its format: the line's number, what is missing, and the line.
    Line {
        /// From 1.
        number: usize,
        /// What it is not.
        wanted: &'static str,
        /// The line, or its beginning.
        text: String,
    },
    /// The period of a sample does not fit in 64 bits.
    Period {
        /// The line's number, from 1.
        number: usize,
    },
    /// It is no message of protocol buffers.
    NotPprof(prost::DecodeError),
    /// It says nothing about what was measured.
    NoTypes,
    /// It refers to something that it does not have.
    Missing {
        /// What.
        what: &'static str,
        /// Its number there.
        id: i128,
    },
    /// A sample has more values than there are types of them.
    Values {
        /// Of the sample.
        values: usize,
        /// Of the profile.
        types: usize,
    },
    /// A value is below 0.
    Negative,
}

impl fmt::Display for ReadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { number, wanted, text } => write!(f, "line {number}: {wanted}: {text}"),
            Self::Period { number } => write!(f, "line {number}: the period is too large"),
            Self::NotPprof(_) => f.write_str("not a profile of pprof's format"),
            Self::NoTypes => f.write_str("it has no value types, so it is no profile of pprof's format"),
            Self::Missing { what, id } => write!(f, "there is no {what} {id}"),
            Self::Values { values, types } => {
                write!(f, "a sample has {values} values, but there are {types} value types")
            }
            Self::Negative => f.write_str("it has values below 0: a difference is no profile"),
        }
    }
}

impl std::error::Error for ReadError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotPprof(cause) => Some(cause),
            _ => None,
        }
    }
}

fn wrong(number: usize, wanted: &'static str, line: &[u8]) -> ReadError {
    ReadError::Line { number, wanted, text: shown(line) }
}

fn missing(what: &'static str, id: impl Into<i128>) -> ReadError {
    ReadError::Missing { what, id: id.into() }
}

/// Reads folded stacks of `event`: `main;f;g 12`, lines that start with `#` and empty ones left out.
///
/// # Errors
/// A line is not like that.
pub fn folded(text: &[u8], event: &str) -> Result<Measured, ReadError> {
    let mut measured = Measured { events: vec![event.to_owned()], ..Measured::default() };
    for (number, line) in lines(text) {
        if line.is_empty() || line.starts_with(b"#") {
            continue;
        }
        let (frames, count) = fold(line).ok_or_else(|| wrong(number, "not like `main;f;g 12`", line))?;
        measured.stacks.push(Stack { frames, costs: vec![count] });
    }
    Ok(measured)
}

fn fold(line: &[u8]) -> Option<(Vec<Frame>, u64)> {
    let at = line.iter().rposition(|byte| *byte == b' ')?;
    let count = std::str::from_utf8(&line[at + 1..]).ok()?.parse().ok()?;
    let names = line[..at].trim_ascii_end();
    let frames = names.split(|byte| *byte == b';').rev().filter(|name| !name.is_empty());
    let frames: Vec<Frame> = frames.map(|name| Frame { name: name.to_vec(), ..Frame::default() }).collect();
    (!frames.is_empty()).then_some((frames, count))
}

/// The first line of a sample: command, process or thread, processor, time, period, event; and the rest of it.
static SAMPLE: LazyLock<Regex> = LazyLock::new(|| {
    let comm_and_ids = r"^\s*(?P<comm>\S.*?)\s+(?:-?\d+/)?-?\d+\s+";
    let when = r"(?:\[\d+\]\s+)?(?:[-A-Za-z.]{4,5}\s+)?(?:\d+\.\d+:\s+)?";
    let what = r"(?:(?P<period>\d+)\s+)?(?P<event>[A-Za-z_][^\s]*?):(?P<rest>\s.*)?$";
    Regex::new(&[comm_and_ids, when, what].concat()).expect("the expression is sound")
});
static FRAME: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s*[0-9a-f]+ (?P<rest>.+)$").expect("the expression is sound"));
static OFFSET: LazyLock<Regex> = LazyLock::new(|| Regex::new(r"\+0x[0-9a-f]+$").expect("the expression is sound"));
static SOURCE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r"^\s+(?P<file>\S+):(?P<line>\d+)$").expect("the expression is sound"));

/// Reads the output of `perf script` in its usual form, with stacks or without. A sample costs its period, or 1 if periods
/// were not printed; each kind of event is an event of its own.
///
/// # Errors
/// A line is none of such output.
pub fn perf(text: &[u8]) -> Result<Measured, ReadError> {
    let mut measured = Measured::default();
    let mut current: Option<Stack> = None;
    for (number, line) in lines(text) {
        if let Some(command) = line.strip_prefix(b"# cmdline : ") {
            measured.command = command.to_vec();
        }
        if line.starts_with(b"#") {
            continue;
        }
        if line.trim_ascii().is_empty() {
            keep(&mut measured, &mut current);
            continue;
        }
        if line[0].is_ascii_whitespace()
            && let Some(stack) = &mut current
        {
            if let Some(found) = FRAME.captures(line) {
                stack.frames.push(frame(found.name("rest").map_or(&b""[..], |rest| rest.as_bytes())));
                continue;
            }
            if let (Some(found), Some(last)) = (SOURCE.captures(line), stack.frames.last_mut()) {
                last.file = found["file"].to_vec();
                last.line = std::str::from_utf8(&found["line"]).ok().and_then(|line| line.parse().ok()).unwrap_or(0);
                continue;
            }
        }
        let found = SAMPLE.captures(line).ok_or_else(|| wrong(number, "no sample of perf script", line))?;
        keep(&mut measured, &mut current);
        let text = |name| found.name(name).map(|text| String::from_utf8_lossy(text.as_bytes()).into_owned());
        let event = text("event").unwrap_or_default();
        let period = match text("period") {
            Some(period) => period.parse().map_err(|_| ReadError::Period { number })?,
            None => 1,
        };
        if measured.command.is_empty() {
            measured.command = found["comm"].to_vec();
        }
        let at = measured.events.iter().position(|known| *known == event).unwrap_or_else(|| {
            measured.events.push(event);
            measured.events.len() - 1
        });
        let mut costs = vec![0; at];
        costs.push(period);
        let mut stack = Stack { frames: Vec::new(), costs };
        // Without stacks the only place stands on the same line.
        if let Some(rest) = found.name("rest").and_then(|rest| FRAME.captures(rest.as_bytes())) {
            stack.frames.push(frame(rest.name("rest").map_or(&b""[..], |rest| rest.as_bytes())));
        }
        current = Some(stack);
    }
    keep(&mut measured, &mut current);
    Ok(measured)
}

/// A sample is complete. One without any frame still counts, as of nobody.
fn keep(measured: &mut Measured, current: &mut Option<Stack>) {
    if let Some(mut stack) = current.take() {
        if stack.frames.is_empty() {
            stack.frames.push(Frame { name: b"[unknown]".to_vec(), ..Frame::default() });
        }
        measured.stacks.push(stack);
    }
}

/// `symbol+0x12 (object)`; either may hold blanks and brackets of its own.
fn frame(text: &[u8]) -> Frame {
    let found = |what: &[u8]| text.windows(what.len()).rposition(|window| window == what);
    let at = found(b" (/").max(found(b" ([")).or_else(|| found(b" ("));
    let (symbol, object) = match at {
        Some(at) if text.ends_with(b")") => (&text[..at], &text[at + 2..text.len() - 1]),
        _ => (text, &b""[..]),
    };
    let inlined = object == b"inlined";
    // With -F +dsoff offsets are those of the object's file, else those of the function.
    let (object, in_file) = split_offset(object);
    let (symbol, in_function) = split_offset(symbol.trim_ascii());
    let spot = in_file.map(Spot::InFile).or(in_function.map(Spot::InFunction)).filter(|_| !inlined);
    let object = if inlined { Vec::new() } else { object.to_vec() };
    Frame { name: symbol.to_vec(), object, spot, inlined, ..Frame::default() }
}

/// `NAME+0x12` as its name and number; a number that does not fit is left out.
fn split_offset(text: &[u8]) -> (&[u8], Option<u64>) {
    let Some(found) = OFFSET.find(text) else { return (text, None) };
    let digits = std::str::from_utf8(&text[found.start() + 3..]).unwrap_or_default();
    (&text[..found.start()], u64::from_str_radix(digits, 16).ok())
}

/// Reads lines of an object, a place in its file, and how often that was met: `/usr/lib/libc.so.6+0x1a2b3 12`. An object may be called
/// by its build id. Lines that start with `#` and empty ones are left out.
///
/// # Errors
/// A line is not like that.
pub fn offsets(text: &[u8], event: &str) -> Result<Measured, ReadError> {
    let mut measured = Measured { events: vec![event.to_owned()], ..Measured::default() };
    for (number, line) in lines(text) {
        if line.trim_ascii().is_empty() || line.starts_with(b"#") {
            continue;
        }
        let (object, spot, count) = place(line).ok_or_else(|| wrong(number, "not like `lib.so+0x1a2b 12`", line))?;
        // As callgrind calls code without a symbol.
        let name = format!("0x{spot:016x}").into_bytes();
        let frame = Frame { name, object: object.to_vec(), spot: Some(Spot::InFile(spot)), ..Frame::default() };
        measured.stacks.push(Stack { frames: vec![frame], costs: vec![count] });
    }
    Ok(measured)
}

/// `lib.so+0x1a2b 12`, which is no stack of functions.
fn place(line: &[u8]) -> Option<(&[u8], u64, u64)> {
    let line = line.trim_ascii();
    let at = line.iter().rposition(u8::is_ascii_whitespace)?;
    let count = std::str::from_utf8(&line[at + 1..]).ok()?.parse().ok()?;
    let (object, spot) = split_offset(line[..at].trim_ascii_end());
    spot.filter(|_| !object.is_empty() && !object.contains(&b';')).map(|spot| (object, spot, count))
}

/// Reads a profile of pprof's format, uncompressed, of all value types.
///
/// # Errors
/// It is damaged, or none.
pub fn pprof(bytes: &[u8]) -> Result<Measured, ReadError> {
    let profile = pprof::Profile::decode(bytes).map_err(ReadError::NotPprof)?;
    let string = |index: i64| -> Result<&str, ReadError> {
        let found = usize::try_from(index).ok().and_then(|index| profile.string_table.get(index));
        found.map(String::as_str).ok_or_else(|| missing("string", index))
    };
    let mut events: Vec<String> = Vec::new();
    for kind in &profile.sample_type {
        let name = string(kind.r#type)?;
        // Types may only differ in their units.
        let taken = events.iter().any(|known| known == name);
        events.push(if taken { format!("{name}_{}", string(kind.unit)?) } else { name.to_owned() });
    }
    if events.is_empty() {
        return Err(ReadError::NoTypes);
    }
    let functions: HashMap<u64, &pprof::Function> = profile.function.iter().map(|f| (f.id, f)).collect();
    let mappings: HashMap<u64, &pprof::Mapping> = profile.mapping.iter().map(|m| (m.id, m)).collect();
    let mut places: HashMap<u64, Vec<Frame>> = HashMap::new();
    let mut builds = BTreeMap::new();
    for location in &profile.location {
        let mapping = mappings.get(&location.mapping_id);
        let object = match mapping {
            Some(mapping) => string(mapping.filename)?.as_bytes().to_vec(),
            None => Vec::new(),
        };
        let build = mapping.map_or(Ok(""), |mapping| string(mapping.build_id))?;
        if !build.is_empty() {
            builds.insert(object.clone(), build.to_owned());
        }
        // Where nothing is said of memory, addresses are no places of a file.
        let spot = mapping.filter(|mapping| (mapping.memory_start..mapping.memory_limit).contains(&location.address));
        let spot = spot.and_then(|mapping| (location.address - mapping.memory_start).checked_add(mapping.file_offset));
        let spot = spot.map(Spot::InFile);
        let mut frames = Vec::new();
        for line in &location.line {
            let function = functions.get(&line.function_id).ok_or_else(|| missing("function", line.function_id))?;
            frames.push(Frame {
                name: string(function.name)?.as_bytes().to_vec(),
                file: string(function.filename)?.as_bytes().to_vec(),
                object: object.clone(),
                line: u32::try_from(line.line).unwrap_or(0),
                spot,
                inlined: true,
            });
        }
        // The last one is the function that the others are inlined into.
        if let Some(outermost) = frames.last_mut() {
            outermost.inlined = false;
        }
        if frames.is_empty() {
            // As callgrind calls code without a symbol.
            let name = format!("0x{:016x}", location.address).into_bytes();
            frames.push(Frame { name, object, spot, ..Frame::default() });
        }
        places.insert(location.id, frames);
    }
    let mut stacks = Vec::new();
    for sample in &profile.sample {
        let mut frames = Vec::new();
        for id in &sample.location_id {
            frames.extend_from_slice(places.get(id).ok_or_else(|| missing("location", *id))?);
        }
        if frames.is_empty() {
            frames.push(Frame { name: b"[unknown]".to_vec(), ..Frame::default() });
        }
        if sample.value.len() > events.len() {
            return Err(ReadError::Values { values: sample.value.len(), types: events.len() });
        }
        let costs = sample.value.iter().map(|value| u64::try_from(*value));
        let costs = costs.collect::<Result<_, _>>().map_err(|_| ReadError::Negative)?;
        stacks.push(Stack { frames, costs });
    }
    let mut command = Vec::new();
    for comment in &profile.comment {
        if let Some(text) = string(*comment)?.strip_prefix("command: ") {
            command = text.as_bytes().to_vec();
        }
    }
    Ok(Measured { command, events, stacks, builds })
}

/// What a text seems to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The output of `perf script`.
    Perf,
    /// Folded stacks.
    Folded,
    /// A profile of pprof's format, or something else.
    Pprof,
    /// Places in objects with numbers.
    Offsets,
}

/// Finds out what `bytes` are by their first line with content.
pub fn kind(bytes: &[u8]) -> Kind {
    let Some((_, first)) = lines(bytes).find(|(_, line)| !line.trim_ascii().is_empty() && !line.starts_with(b"#"))
    else {
        return Kind::Pprof;
    };
    if first.iter().any(|byte| *byte < b' ' && *byte != b'\t') {
        Kind::Pprof
    } else if place(first).is_some() {
        Kind::Offsets
    } else if SAMPLE.is_match(first) && fold(first).is_none() {
        Kind::Perf
    } else if fold(first).is_some() {
        Kind::Folded
    } else {
        Kind::Pprof
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (1..).zip(text.split(|byte| *byte == b'\n').map(|line| line.strip_suffix(b"\r").unwrap_or(line)))
}

fn shown(line: &[u8]) -> String {
    let text = String::from_utf8_lossy(line);
    let start: String = text.chars().take(80).collect();
    if start.len() < text.len() { format!("{start}...") } else { start }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(stack: &Stack) -> String {
        let names: Vec<_> =
            stack.frames.iter().map(|frame| String::from_utf8_lossy(&frame.name).into_owned()).collect();
        format!("{} {:?}", names.join("<"), stack.costs)
    }

    #[test]
    fn stacks_of_perf_are_read() {
        let text = b"# cmdline : /usr/bin/perf record ./prog\n\
            prog x  4711/4712 [003]  123.456789:     250000 cycles:u: \n\
            \t    55d0c0de operator()(int, char) const+0x10 (/opt/my (dir)/prog)\n\
            \t  src.c:12\n\
            \t    55d0c0df main+0x1f (inlined)\n\
            \tffffffff81000000 [unknown] ([kernel.kallsyms])\n\
            \n\
            prog  4711 123.5:    instructions:   55d0 leaf+0x3 (/opt/prog)\n\
            prog  4711 123.6:    7 cycles:u: \n";
        let measured = perf(text).unwrap();
        assert_eq!(measured.events, ["cycles:u", "instructions"]);
        assert_eq!(measured.command, b"/usr/bin/perf record ./prog");
        let stacks: Vec<_> = measured.stacks.iter().map(names).collect();
        assert_eq!(stacks, ["operator()(int, char) const<main<[unknown] [250000]", "leaf [0, 1]", "[unknown] [7]"]);
        let first = &measured.stacks[0].frames;
        assert_eq!((first[0].line, &first[0].file[..]), (12, &b"src.c"[..]));
        assert_eq!(first[2].object, b"[kernel.kallsyms]");
        assert_eq!(measured.stacks[1].frames[0].object, b"/opt/prog");
        let error = perf(b"nonsense\n").unwrap_err().to_string();
        assert_eq!(error, "line 1: no sample of perf script: nonsense");
    }

    #[test]
    fn folded_stacks_are_read() {
        let measured = folded(b"main;f a;g 12\n\n# x\nmain 3\r\n", "Ir").unwrap();
        let stacks: Vec<_> = measured.stacks.iter().map(names).collect();
        assert_eq!(stacks, ["g<f a<main [12]", "main [3]"]);
        assert_eq!(folded(b"a 1\nmain;f\n", "Ir").unwrap_err().to_string(), "line 2: not like `main;f;g 12`: main;f");
        assert!(folded(b"f -3", "Ir").is_err());
    }

    #[test]
    fn places_in_objects_are_read() {
        let measured = offsets(b"# of perf\n/lib/x y.so+0x1f 12\n\nb0b0+0x0\t3\r\n", "Smp").unwrap();
        let places: Vec<_> =
            measured.stacks.iter().map(|stack| (&stack.frames[0].object[..], stack.frames[0].spot)).collect();
        assert_eq!(places, [(&b"/lib/x y.so"[..], Some(Spot::InFile(0x1f))), (b"b0b0", Some(Spot::InFile(0)))]);
        assert_eq!(measured.stacks.iter().map(|stack| stack.costs[0]).sum::<u64>(), 15);
        let error = offsets(b"a+0x1 1\na+1 1\n", "Smp").unwrap_err().to_string();
        assert_eq!(error, "line 2: not like `lib.so+0x1a2b 12`: a+1 1");
        assert!(offsets(b"a+0x11111111111111111 1\n", "Smp").is_err(), "an offset has 64 bits");
    }

    #[test]
    fn frames_say_where_in_an_object_they_are() {
        let at = |text: &str| frame(text.as_bytes());
        assert_eq!(at("main+0x1f (/opt/prog)").spot, Some(Spot::InFunction(0x1f)));
        let both = at("main+0x1f (/opt/prog+0x101f)");
        assert_eq!((both.spot, &both.object[..]), (Some(Spot::InFile(0x101f)), &b"/opt/prog"[..]));
        let inlined = at("mix (inlined)");
        assert_eq!((inlined.inlined, inlined.spot, inlined.object.is_empty()), (true, None, true));
        assert_eq!(at("main").spot, None);
    }

    #[test]
    fn kinds_are_told_apart() {
        assert_eq!(kind(b"# c\nmain;f 3\n"), Kind::Folded);
        assert_eq!(kind(b"prog 1 [000] 1.5: 10 cycles: \n\t1 f (/x)\n"), Kind::Perf);
        assert_eq!(kind(b"\x0a\x04\x08\x01\x10\x02"), Kind::Pprof);
        assert_eq!(kind(b""), Kind::Pprof);
        assert_eq!(kind(b"# c\n/lib/x.so+0x1f 3\n"), Kind::Offsets);
        assert_eq!(kind(b"main;f+0x1f 3\n"), Kind::Folded);
    }

    #[test]
    fn damaged_profiles_of_pprof_are_errors() {
        let whole = pprof::Profile {
            sample_type: vec![pprof::ValueType { r#type: 1, unit: 0 }],
            sample: vec![pprof::Sample { location_id: vec![1], value: vec![3], label: vec![] }],
            location: vec![pprof::Location {
                id: 1,
                line: vec![pprof::Line { function_id: 1, line: 2 }],
                ..Default::default()
            }],
            function: vec![pprof::Function { id: 1, name: 2, ..Default::default() }],
            string_table: ["", "cpu", "f"].map(str::to_owned).to_vec(),
            ..Default::default()
        };
        let read = |profile: &pprof::Profile| pprof(&profile.encode_to_vec()).map_err(|error| error.to_string());
        let good = read(&whole).unwrap();
        assert_eq!((good.events.join(" "), names(&good.stacks[0])), ("cpu".to_owned(), "f [3]".to_owned()));
        let broken = |change: fn(&mut pprof::Profile)| {
            let mut profile = whole.clone();
            change(&mut profile);
            read(&profile).unwrap_err()
        };
        assert_eq!(broken(|p| p.function[0].name = 9), "there is no string 9");
        assert_eq!(broken(|p| p.function[0].name = -1), "there is no string -1");
        assert_eq!(broken(|p| p.location.clear()), "there is no location 1");
        assert_eq!(broken(|p| p.function.clear()), "there is no function 1");
        assert_eq!(broken(|p| p.sample[0].value = vec![1, 2]), "a sample has 2 values, but there are 1 value types");
        assert!(broken(|p| p.sample[0].value = vec![-1]).contains("below 0"));
        assert!(broken(|p| p.sample_type.clear()).contains("no value types"));
        let bytes = whole.encode_to_vec();
        (0..bytes.len()).for_each(|cut| _ = pprof(&bytes[..cut]));
    }

    /// Whatever comes in, the answer is a profile or an error.
    #[test]
    fn nothing_that_is_read_is_a_panic() {
        let mut state: u64 = 3;
        let mut random = |below: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % below
        };
        let text = b"prog  1/2 [003]  1.5:   250 cycles:u: \n\t 55d0 f(int)+0x10 (/a (b)/c)\n\t ff [unknown] ([k])\n\n\
            main;f a;g 12\n;; 1\nx+0x1f 3\n";
        let packed = pprof::Profile {
            sample_type: vec![pprof::ValueType { r#type: 1, unit: 2 }; 2],
            sample: vec![pprof::Sample { location_id: vec![1, 2], value: vec![3, 4], label: vec![] }],
            mapping: vec![pprof::Mapping { id: 1, filename: 3, ..Default::default() }],
            location: vec![pprof::Location { id: 1, mapping_id: 1, ..Default::default() }],
            string_table: ["", "cpu", "f", "x"].map(str::to_owned).to_vec(),
            ..Default::default()
        };
        for start in [&text[..], &packed.encode_to_vec()] {
            for _ in 0..3000 {
                let mut bytes = start.to_vec();
                for _ in 0..1 + random(6) {
                    let (at, other) = (random(bytes.len()), random(bytes.len()));
                    match random(4) {
                        0 => bytes[at] = random(256) as u8,
                        1 => _ = bytes.remove(at),
                        2 => bytes.insert(at, b" ();:[]/\n\t+0x"[random(13)]),
                        _ => bytes.swap(at, other),
                    }
                }
                kind(&bytes);
                for measured in
                    [folded(&bytes, "x"), perf(&bytes), pprof(&bytes), offsets(&bytes, "x")].into_iter().flatten()
                {
                    let _ = measured.profile("x", random(3));
                }
            }
        }
    }
}
