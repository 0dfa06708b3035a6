//! Callgrind profiles there and back, and what is said about those that are wrong.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use cg_format::callgrind::{JumpKind, Profile, Site, WriteOptions, Writer, read, read_profile};

/// Everything that a profile says, in an order of its own; the reference's `(id)` numbers are gone.
fn canonical(profile: &Profile) -> BTreeMap<String, (u64, u64, Vec<i64>)> {
    let names = &profile.names;
    let function = |id| {
        let at = names.get(id);
        let text =
            [names.object_name(at.object), b" ", names.file_name(at.file), b" ", names.function_name(id)].concat();
        String::from_utf8_lossy(&text).into_owned()
    };
    let mut all = BTreeMap::new();
    for (i, part) in profile.parts.iter().enumerate() {
        for body in part.bodies() {
            for entry in &body.entries {
                let at = entry.at;
                let file = String::from_utf8_lossy(names.file_name(at.file)).into_owned();
                let mut key = format!("{i} {} {file} {:x} {}", function(body.function), at.place.addr, at.place.line);
                let (one, two, costs) = match &entry.site {
                    Site::Row { costs } => (0, 0, body.costs(*costs).to_vec()),
                    Site::Call { call, costs } => {
                        let target = call.target;
                        write!(key, " calls {} {:x} {}", function(call.callee), target.addr, target.line).unwrap();
                        (call.count, 0, body.costs(*costs).to_vec())
                    }
                    Site::Jump(jump) => {
                        let target = jump.target.place;
                        let file = String::from_utf8_lossy(names.file_name(jump.target.file)).into_owned();
                        let to = jump.function.map(function).unwrap_or_default();
                        write!(key, " jumps {to} {file} {:x} {}", target.addr, target.line).unwrap();
                        match jump.kind {
                            JumpKind::Always { count } => (count, 0, Vec::new()),
                            JumpKind::Conditional { taken, executed } => (taken, executed, Vec::new()),
                        }
                    }
                };
                let sum = all.entry(key).or_insert_with(|| (0, 0, vec![0; costs.len()]));
                sum.0 += one;
                sum.1 += two;
                sum.2.iter_mut().zip(costs).for_each(|(sum, cost)| *sum += cost);
            }
        }
    }
    // What has neither count nor cost need not be written.
    all.retain(|_, (one, two, costs)| *one != 0 || *two != 0 || costs.iter().any(|cost| *cost != 0));
    all
}

fn written(profile: &Profile, compress: bool) -> Vec<u8> {
    let options = WriteOptions { compress_strings: compress, compress_positions: compress };
    let mut out = Vec::new();
    Writer::new(options).profile(&mut out, profile).unwrap();
    out
}

#[test]
fn real_profiles_survive_being_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/profiles");
    let mut count = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if !name.contains(".clout") {
            continue;
        }
        count += 1;
        let profile = read_profile(std::fs::File::open(&path).unwrap(), &name).unwrap();
        assert!(!profile.parts.is_empty());
        let before = canonical(&profile);
        assert!(before.keys().any(|key| key.contains(" calls ")), "{name}");
        for compress in [true, false] {
            let text = written(&profile, compress);
            let again = read_profile(&text[..], &name).unwrap();
            assert_eq!(again.header, profile.header, "{name}");
            assert_eq!(again.parts[0].header, profile.parts[0].header, "{name}");
            let after = canonical(&again);
            if before != after {
                let odd: Vec<_> = before.iter().filter(|(key, value)| after.get(*key) != Some(value)).take(3).collect();
                panic!("{name}, {compress}: {} and {} entries; {odd:?}", before.len(), after.len());
            }
            assert_eq!(written(&again, compress), text, "{name}: writing is not stable");
        }
    }
    assert!(count >= 8, "only {count} callgrind profiles among the golden files");
}

const HEAD: &str = "version: 1\ncreator: x\npositions: instr line\nevents: Ir Dr\n";

fn fault(text: &str) -> String {
    read_profile(text.as_bytes(), "f").err().map_or_else(|| "fine".to_owned(), |error| error.to_string())
}

#[test]
fn wrong_input_is_named_by_line() {
    let body = |text: &str| fault(&format!("{HEAD}fl=a.c\nfn=f\n{text}"));
    assert!(fault("").starts_with("f:1: missing an `events:` line: it is empty"));
    assert_eq!(fault("version: 2\n"), "f:1: version 2 of the format is not known here, only version 1");
    assert_eq!(fault("positions: here\n"), "f:1: unknown kind of position: here");
    assert_eq!(fault("events: Ir Ir\n"), "f:1: event `Ir` is listed twice or is not UTF-8");
    let many: String = (0..257).map(|i| format!(" e{i}")).collect();
    assert_eq!(fault(&format!("events:{many}\n")), "f:1: more than 256 events: this is no profile");
    assert_eq!(fault("1 2\n"), "f:1: missing an `events:` line");
    assert_eq!(fault("summary: 1\n"), "f:1: missing an `events:` line");
    assert_eq!(fault(&format!("{HEAD}0x1 1 1\n")), "f:5: costs before the first `fn=` line");
    assert_eq!(fault(&format!("{HEAD}nonsense\n")), "f:5: malformed line: nonsense");
    assert_eq!(fault(&format!("{HEAD}fl=a.c\nzz=1\n")), "f:6: malformed line: zz=1");
    assert_eq!(body("0x1 1 1 2 3\n"), "f:7: more costs than events");
    assert_eq!(body("0x1 1 x\n"), "f:7: malformed number in line: 0x1 1 x");
    assert_eq!(body("0x1\n"), "f:7: malformed number in line: 0x1");
    assert_eq!(body("0xg 1 1\n"), "f:7: malformed number in line: 0xg 1 1");
    assert_eq!(body("0x1 4294967296 1\n"), "f:7: a position is out of range");
    assert_eq!(body("0x1 1 1\n-2 1 1\n"), "f:8: a position is out of range");
    assert_eq!(body("0x11111111111111111 1 1\n"), "f:7: a position is out of range");
    assert_eq!(body("0x1 1 99999999999999999999\n"), "f:7: a cost or a sum of costs is larger than 64 bits hold");
    assert_eq!(body("calls=1 0x1 1\n* * 3\n"), "f:7: `calls=` without a `cfn=` line before it");
    assert_eq!(body("cfn=g\ncalls=1 0x1 1\n"), "f:9: a call or jump without the line of its costs after it");
    assert_eq!(body("cfn=g\ncalls=1 0x1 1\nfn=h\n"), "f:9: a call or jump without the line of its costs after it");
    assert_eq!(body("jump=x 0x1 1\n* *\n"), "f:7: malformed number in line: x 0x1 1");
    assert_eq!(body("jcnd=1 \n* *\n"), "f:7: malformed number in line: 1");
    assert_eq!(body("0x1 1 1"), "fine");
    assert_eq!(body("0x1 1 \r\n\r\n+4 * 18446744073709551615 0x10\n"), "fine");
}

#[test]
fn no_cut_or_damage_makes_the_reader_panic() {
    let text = format!(
        "{HEAD}summary: 7 8\nob=(1) p\nfl=(1) a.c\nfn=(1) f\n0x10 3 5 1\n+4 +1 2\nfi=(2) b.h\ncob=(2) l\ncfi=(1)\ncfn=(2) g\n\
         calls=2 0x100 9\n* * 40 4\njfi=(1)\njcnd=1/2 -4 -1\n* *\njump=3 +8 *\n+1 *\nfe=(1)\n\ntotals: 7 1\npart: 2\nevents: Ir\n"
    );
    let _ = read_profile(text.as_bytes(), "whole").unwrap();
    for at in 0..text.len() {
        let _ = read_profile(&text.as_bytes()[..at], "cut");
        for byte in [b'\n', b' ', b'0', b'9', b'-', b'(', b'=', b':', b'x', 0, 0xff] {
            let mut damaged = text.clone().into_bytes();
            damaged[at] = byte;
            let _ = read_profile(&damaged[..], "damaged");
        }
    }
}

#[test]
fn a_callee_without_its_call_leaves_nothing_behind() {
    // The reference names callees whose calls cost nothing and writes no call for them.
    let text = "events: Ir\nob=o\nfl=a.c\nfn=f\n1 1\ncob=lib\ncfi=lib.c\ncfn=free\ncfn=g\ncalls=1 9\n1 5\n";
    let profile = read_profile(text.as_bytes(), "f").unwrap();
    let Site::Call { call, .. } = profile.parts[0].bodies()[0].entries[1].site else { panic!("no call") };
    let callee = profile.names.get(call.callee);
    assert_eq!(profile.names.file_name(callee.file), b"a.c");
    assert_eq!(profile.names.object_name(callee.object), b"o");
    assert_eq!(profile.names.function_name(call.callee), b"g");
}

/// Whatever the numbers, and in whatever order they come.
#[test]
fn names_may_have_any_numbers() {
    let mut numbers: Vec<u64> = (1..200).chain([1 << 20, 1 << 40, u64::MAX, 300, 450, 1000, 900, 700, 0]).collect();
    for _ in 0..2 {
        numbers.reverse();
        let mut text = "events: Ir\nfl=a.c\n".to_owned();
        for round in ["old", "new"] {
            for number in &numbers {
                text.push_str(&format!("fn=({number}) {round}{number}\n1 1\n"));
            }
        }
        for number in &numbers {
            text.push_str(&format!("fn=({number})\n1 5\n"));
        }
        let profile = read_profile(text.as_bytes(), "f").unwrap();
        for body in profile.parts[0].bodies() {
            let name = String::from_utf8_lossy(profile.names.function_name(body.function)).into_owned();
            assert_eq!(body.entries.len(), if name.starts_with("new") { 2 } else { 1 }, "{name}");
        }
    }
}

#[test]
fn an_empty_name_survives_being_written() {
    let text = "events: Ir\nfl=\nfn=\n1 2\ncfi=\ncfn=\ncalls=1 1\n1 5\nfn=f\ncfn=\ncalls=2 1\n1 7\n";
    let profile = read_profile(text.as_bytes(), "f").unwrap();
    for compress in [true, false] {
        let again = read_profile(&written(&profile, compress)[..], "again").unwrap();
        assert_eq!(canonical(&again), canonical(&profile));
    }
}

/// Each part takes memory, so there is one only if something is said of it.
#[test]
fn a_list_of_events_takes_the_place_of_one_of_which_nothing_was_said() {
    let counts = |text: &str| read_profile(text.as_bytes(), "f").unwrap().parts.len();
    assert_eq!(counts("events: Ir\nevents: Dr\n# nothing\n\nevents: Dw\n"), 1);
    assert_eq!(counts("events: Ir\ntotals: 0\nevents: Ir\n"), 2);
    assert_eq!(counts("part: 1\nevents: Ir\npart: 2\nevents: Ir\n"), 2);
    assert_eq!(counts("desc: Trigger: x\nevents: Ir\nevents: Ir\n"), 2);
    let profile = read_profile(&b"events: Ir\nevents: Dr Dw\nfl=a\nfn=f\n1 1 2\n"[..], "f").unwrap();
    assert_eq!(profile.parts[0].header.events, ["Dr", "Dw"]);
    assert_eq!(profile.parts[0].total(), [1, 2]);
}

#[test]
fn parts_and_their_sums_are_kept_apart() {
    let text = "creator: x\npid: 7\ncmd:  a b\npart: 1\ndesc: I1 cache: \ndesc: Trigger: one\nevents: Ir\nsummary: 3\n\
                fl=a.c\nfn=f\n1 3\ntotals: 3\npart: 2\nthread: 4\ndesc: Trigger: two\nevents: Ir Dr\nfl=a.c\nfn=f\n2 1 1\n";
    let mut profile = Profile::default();
    let outcome = cg_format::callgrind::read(text.as_bytes(), "f", &mut profile).unwrap();
    assert_eq!(outcome.header.desc, [b"I1 cache: "]);
    assert_eq!(outcome.header.cmd, b" a b");
    assert_eq!((outcome.parts[0].summary.clone(), outcome.parts[1].summary.clone()), (Some(vec![3]), None));
    assert_eq!(outcome.parts[1].header.thread, Some(4));
    assert_eq!(outcome.parts[1].header.desc, [b"Trigger: two"]);
    assert_eq!(profile.parts[1].total(), [1, 1]);
}

/// What a number without a name costs is the name.
#[test]
fn numbers_without_a_name_are_read() {
    let text = "creator: x\nevents: Ir\nob=(4)\nfl=(1) a.py\nfn=(1) main\n1 10\ncob=(8)\ncfl=(7)\ncfn=(7)\ncalls=1 0\n2 5\n\
                cfn=(6)\ncalls=1 0\n2 5\nfn=(6) late\n3 2\nfi=(9)\n4 1\n";
    let profile = read_profile(text.as_bytes(), "f").unwrap();
    let names = &profile.names;
    let functions: Vec<String> = names
        .functions()
        .map(|id| {
            let of = names.get(id);
            [names.object_name(of.object), names.file_name(of.file), names.function_name(id)]
                .map(|name| String::from_utf8_lossy(name).into_owned())
                .join(" ")
        })
        .collect();
    assert_eq!(functions, ["??? a.py main", "??? ??? (7)", "??? a.py (6)", "??? a.py late"]);
    assert_eq!(profile.parts[0].total(), [13]);
    let mut nothing = Profile::default();
    assert_eq!(read(text.as_bytes(), "f", &mut nothing).unwrap().unnamed, 6);
}

/// Programs write them there.
#[test]
fn lines_about_the_run_may_stand_behind_the_events() {
    let text = "events: Ir\npid: 7\ncmd: ./a b\ncreator: x\nfl=a\nfn=f\n1 1\n\nevents: Ir\ncmd: ./c\nfl=a\nfn=f\n1 1\n";
    let header = read_profile(text.as_bytes(), "f").unwrap().header;
    assert_eq!((&header.cmd[..], header.pid, &header.creator[..]), (&b"./a b"[..], Some(7), &b"x"[..]));
}
