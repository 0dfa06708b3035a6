//! Files of data objects: what is written is read, and whatever else is read is an error.

use super::sharing::{Moved, Order, SharedUse, SourceLine, Which};
use super::streams::{Access, Ahead, Level, Part, Walk};
use super::*;

fn object(kind: Kind, name: &str, line: u64, counts: [u64; 2]) -> Object {
    Object {
        kind,
        name: name.into(),
        file: "t.c".into(),
        line,
        function: String::new(),
        bytes: 8,
        blocks: 1,
        peak_bytes: 0,
        callers: Vec::new(),
        fields: Vec::new(),
        members: None,
        counts: counts.into(),
    }
}

fn mem() -> Mem {
    let objects = vec![
        object(Kind::Variable, "\u{fffd}\"x\"", 0, [5, 1]),
        object(Kind::Heap, "heap@t.c:9", 9, [1, 0]),
        object(Kind::Heap, "heap@t.c:7", 7, [2, 2]),
        object(Kind::Heap, "heap@t.c:9", 9, [3, 1]),
    ];
    let streams = Some(StreamsHead { count: 0, line: 64, others: 3 });
    let reuse = Some(ReuseHead { count: 0, line: 64, sample: 8, accesses: 0, hits: None });
    let events = vec!["D1mr".into(), "D1mw".into()];
    let sharing = Some(SharingHead { line: 64, threads: 3, order: Some(Order::default()), ..SharingHead::default() });
    let head = Head { version: VERSION, events, streams, reuse, sharing, ..Head::default() };
    let part = Part { start: -8, misses: 9, walk: None, levels: vec![Level { step: 64, count: 9 }] };
    let walk = Some(Walk { step: -8, last: -16, most: -70 });
    let stream = |object, line, part| Stream {
        access: Access::Write,
        object,
        instruction: 0,
        file: String::new(),
        line,
        function: "f".into(),
        size: 8,
        executions: 0,
        misses: 9 - line,
        last_level: 1,
        phase: 16,
        bytes: 0,
        parts: vec![part],
        irregular: 0,
        distances: vec![],
        prefetch: (line > 0).then_some(Ahead { delta: -64, keep: true }),
    };
    let streams = vec![stream(3, 0, part.clone()), stream(0, 6, Part { misses: 3, walk, ..part })];
    let row = |line, first, bins: &[u64]| Reuse {
        function: "f".into(),
        file: "t.c".into(),
        line,
        first,
        bins: bins.into(),
        ..Reuse::default()
    };
    let reuse = vec![row(9, 0, &[1, 20]), row(7, 3, &[400]), row(9, 1, &[5, 0, 6])];
    let place = |line| SourceLine { file: "t.c".into(), line, function: "f".into() };
    let used = |thread, object, offset, writes, line| SharedUse {
        thread,
        object: Some(object),
        offset,
        read: Vec::new(),
        written: vec![(8, 16)],
        reads: 0,
        writes,
        places: vec![place(line)],
        moves: vec![Moved { from: 2, reads: writes, writes: 1 }, Moved { from: 1, reads: 0, writes }],
        upgrades: 1,
    };
    let shared = |object, n: i64| Shared {
        which: Which::True,
        lines: 1,
        uses: vec![used(1, object, 64 * n, 7, 5), used(3, object, 64 * n, 2, 10 - n as u64)],
    };
    let sharing = vec![shared(3, 2), shared(0, 0), shared(1, 1)];
    let mut mem = Mem { head, objects, streams, reuse, sharing, missed_by: Vec::new() };
    mem.finish();
    mem
}

fn text(mem: &Mem) -> Vec<u8> {
    let mut out = Vec::new();
    mem.write(&mut out).expect("memory");
    out
}

#[test]
fn what_is_written_is_read() {
    let mem = mem();
    assert_eq!(mem.head.totals, [11, 4]);
    let of = |o: &Object| (o.name.clone(), o.bytes, o.blocks, o.counts.clone());
    let (seven, nine) = (of(&mem.objects[0]), of(&mem.objects[1]));
    assert_eq!(seven, ("heap@t.c:7".into(), 8, 1, vec![2, 2]));
    assert_eq!(nine, ("heap@t.c:9".into(), 16, 2, vec![4, 1]), "rows that nothing tells apart are one");
    let streams: Vec<(usize, u64)> = mem.streams.iter().map(|s| (s.object, s.misses)).collect();
    assert_eq!(streams, [(1, 9), (2, 3)], "at the rows of their objects");
    let rows: Vec<(u64, u64, &[u64])> = mem.reuse.iter().map(|r| (r.line, r.first, &*r.bins)).collect();
    assert_eq!(rows, [(7, 3, &[400][..]), (9, 1, &[6, 20, 6])], "in order, and one for a line");
    assert_eq!(mem.head.reuse.as_ref().map(|head| (head.count, head.accesses)), Some((2, 436)));
    // The second and the fourth object are one.
    let rows: Vec<_> = mem.sharing.iter().map(|row| (row.uses[0].object, row.lines, row.uses[1].offset)).collect();
    assert_eq!(rows, [(Some(1), 2, 64), (Some(2), 1, 0)], "at the rows of their objects, and what is alike is one");
    let lines: Vec<u64> = mem.sharing[0].uses[1].places.iter().map(|place| place.line).collect();
    assert_eq!((lines, mem.sharing[0].writes()), (vec![8, 9], 18));
    // Moves from the same thread are one, and those of all rows are told ahead.
    let moves: Vec<_> = mem.sharing[0].uses[1].moves.iter().map(|of| (of.from, of.reads, of.writes)).collect();
    assert_eq!(moves, [(1, 0, 4), (2, 4, 2)]);
    let order = mem.head.sharing.as_ref().and_then(|head| head.order.clone());
    assert_eq!(order.map(|order| order.moves), Some([27, 33, 6]));
    assert_eq!(mem.head.sharing.as_ref().map(|head| (head.count, head.reads, head.writes)), Some((2, 0, 27)));
    assert_eq!(Mem::read(&mut text(&mem).as_slice()).expect("a file of ours"), mem);
}

#[test]
fn a_file_that_is_not_whole_is_none() {
    let whole = text(&mem());
    let ends: Vec<usize> = (0..whole.len()).filter(|n| whole[*n] == b'\n').map(|n| n + 1).collect();
    for end in &ends[..ends.len() - 1] {
        let error = Mem::read(&mut &whole[..*end]).expect_err("cut off");
        assert!(
            matches!(
                error,
                Error::Incomplete { .. } | Error::Streams { .. } | Error::Distances { .. } | Error::Sharing { .. }
            ),
            "{error}"
        );
    }
    // What is left of a line is none; what is read is all of it.
    for end in 0..whole.len() - 1 {
        Mem::read(&mut &whole[..end]).expect_err("cut off");
    }
}

#[test]
fn nothing_that_is_read_is_a_panic() {
    let whole = text(&mem());
    let mut state = 7u64;
    let mut random = move |n: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % n
    };
    for _ in 0..5000 {
        let mut bytes = whole.clone();
        for _ in 0..=random(4) {
            let at = random(bytes.len());
            match random(3) {
                0 => bytes[at] = random(256) as u8,
                1 => bytes.truncate(at + 1),
                _ => bytes.insert(at, b"0129\"{}[],:-\n"[random(13)]),
            }
        }
        if let Ok(mem) = Mem::read(&mut bytes.as_slice()) {
            mem.profile().expect("counts that have been read");
        }
    }
    for (from, to, problem) in [
        (r#""others":3"#, r#""others":4"#, "incomplete: all streams have 16 misses, but the file's total is 15"),
        (r#""object":1"#, r#""object":9"#, "line 5: there is no such object"),
        (r#""size":8"#, r#""size":0"#, "line 5: an access has no size"),
        (r#""step":-8"#, r#""step":0"#, "line 6: these are no steps"),
        (r#""last":-16"#, r#""last":-1600"#, "line 6: these are no steps"),
        (r#""count":9}"#, r#""count":0}"#, "line 5: these are no steps"),
        (r#""misses":3"#, r#""misses":2"#, "line 6: its parts do not have its misses"),
        (r#""line":64"#, r#""line":0"#, "a line has no bytes"),
        (r#""objects":3"#, r#""objects":4"#, "line 5: missing field"),
        (r#""count":2"#, r#""count":1"#, "all streams have 12 misses"),
        (r#""accesses":436"#, r#""accesses":437"#, "all distances are of 436 accesses, but the file's total is 437"),
        (r#""sample":8"#, r#""sample":7"#, "there is no sample of them"),
        (r#""bins":[400]"#, r#""bins":[18446744073709551615]"#, "counts are too large"),
        (r#""writes":27"#, r#""writes":28"#, "all shared lines have 27 accesses, but the file's total is 28"),
        (r#""thread":3"#, r#""thread":4"#, "line 9: there is no such thread"),
        (r#""written":[[8,16]]"#, r#""written":[[8,65]]"#, "line 9: these are no bytes of a line"),
        (r#""line":64,"threads""#, r#""line":128,"threads""#, "bytes of such a line are not told apart"),
    ] {
        let changed = String::from_utf8(whole.clone()).expect("text").replacen(from, to, 1);
        let error = Mem::read(&mut changed.as_bytes()).expect_err("changed").to_string();
        assert!(error.contains(problem), "{from} as {to}: {error}");
    }
    for (bytes, problem) in [
        (&b""[..], "line 1: the file is empty"),
        (b"events: Ir\n", "line 1: expected value at line 1 column 1"),
        (
            br#"{"version":9,"command":"","pid":1,"desc":[],"events":["a"],"totals":[0],"objects":0}"#,
            "version 9 is not known",
        ),
        (
            br#"{"version":1,"command":"","pid":1,"desc":[],"events":["a"],"totals":[],"objects":0}"#,
            "a total for each event",
        ),
    ] {
        let error = Mem::read(&mut &bytes[..]).expect_err("none of ours").to_string();
        assert!(error.contains(problem), "{error}");
    }
}

#[test]
fn as_a_profile_objects_are_functions() {
    let profile = mem().profile().expect("small counts");
    let mut out = Vec::new();
    crate::cachegrind::write(&mut out, &profile).expect("memory");
    let text = String::from_utf8(out).expect("text");
    assert!(text.contains("fl=t.c\nfn=heap@t.c:7\n7 2 2\nfn=heap@t.c:9\n9 4 1\nfn=\u{fffd}\"x\"\n0 5 1\n"), "{text}");
}

/// Members of rows that become one are added up if they are of the same structure, and left out if not; those that are in no order, or more
/// than the object's, are refused.
#[test]
fn members_are_those_of_one_structure() {
    let member = |name: &str, offset, n| Member { name: name.into(), offset, bytes: 8, counts: vec![n, 0] };
    let with = |of: &str, missed: &[Member], n| {
        let members = Some(Members { name: of.into(), bytes: 16, missed: missed.to_vec() });
        Object { members, ..object(Kind::Heap, "heap@t.c:9", 9, [n, 0]) }
    };
    let one = |objects: Vec<Object>| {
        let head = Head { version: VERSION, events: vec!["D1mr".into(), "D1mw".into()], ..Head::default() };
        let mut mem = Mem { head, objects, ..Mem::default() };
        mem.finish();
        let mut text = Vec::new();
        mem.write(&mut text).expect("it is written");
        Mem::read(&mut text.as_slice())
    };
    let first = || with("node", &[member("a", 0, 2), member("c", 8, 1)], 3);
    let read = one(vec![first(), with("node", &[member("b", 0, 4), member("c", 8, 5)], 9)]).expect("a file");
    let sums = [member("a", 0, 2), member("b", 0, 4), member("c", 8, 6)];
    assert_eq!(read.objects[0].members.as_ref().map(|m| &m.missed[..]), Some(&sums[..]));
    for other in [with("other", &[member("a", 0, 4)], 4), object(Kind::Heap, "heap@t.c:9", 9, [1, 0])] {
        assert_eq!(one(vec![first(), other]).expect("a file").objects[0].members, None);
    }
    // Of what was not missed nothing is known, and nothing is wrong.
    let untouched = object(Kind::Heap, "heap@t.c:9", 9, [0, 0]);
    for both in [vec![first(), untouched.clone()], vec![untouched, first()]] {
        assert_eq!(one(both).expect("a file").objects[0].members, first().members);
    }
    for wrong in [[member("c", 8, 1), member("a", 0, 1)], [member("a", 0, 1), member("a", 0, 1)]] {
        assert!(one(vec![with("node", &wrong, 9)]).is_err());
    }
    assert!(one(vec![with("node", &[member("a", 0, 2)], 1)]).is_err(), "more than the object");
}
