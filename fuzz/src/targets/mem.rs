//! Files of data objects and streams: read, written, read again; and parts unfolded as far as they may go.

use cg_format::mem::Mem;
use cg_format::mem::streams::Grid;

use super::text;
use crate::{Target, limits};

pub(super) const TARGET: Target = Target {
    name: "mem",
    run,
    laws,
    words: &[
        "{\"version\":1,\"command\":\"\",\"pid\":1,\"desc\":[],\"events\":[\"D1mr\",\"D1mw\"],\"totals\":[0,0],\"objects\":0}\n",
        "{\"kind\":\"heap\",\"name\":\"a\",\"counts\":[1,0]}\n",
        "{\"stream\":\"read\",\"object\":0,\"instruction\":0,\"size\":8,\"misses\":1,\"last_level\":0,\"phase\":0}\n",
        "\"streams\":{\"count\":1,\"line\":64,\"others\":0}",
        "\"parts\":[{\"start\":0,\"misses\":1}]",
        "\"walk\":{\"step\":8,\"last\":64,\"most\":119}",
        "\"levels\":[{\"step\":0,\"count\":3}]",
        "\"distances\":[0,1]",
        "\"irregular\":1",
        "\"executions\":9",
        "\"bytes\":9",
        "\"kind\":\"stack\"",
        "\"write\"",
        "\"modify\"",
        "D1mr",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "null",
        "1e9",
        "-1",
        "0",
        "\\ud800",
        "é",
        "18446744073709551615",
        "9223372036854775807",
        "-9223372036854775808",
        "\n",
    ],
    change: Some(text::change),
    largest: 1 << 16,
    overhead: limits::OVERHEAD,
    // Lists of empty strings take eight bytes for each byte, and three times that while a list grows.
    besides: |input| 16 * input.len(),
};

fn run(input: &[u8]) {
    let _ = Mem::read(&mut &input[..]);
}

/// What is right is the same when it was written; no part goes on for ever without giving addresses, and none is a panic.
fn laws(input: &[u8]) {
    let mem = match Mem::read(&mut &input[..]) {
        Ok(mem) => mem,
        Err(error) => return assert!(!error.to_string().is_empty()),
    };
    let mut text = Vec::new();
    mem.write(&mut text).expect("memory");
    let again = Mem::read(&mut text.as_slice()).unwrap_or_else(|error| panic!("{error}: {}", text.escape_ascii()));
    assert_eq!(mem, again);
    mem.profile().expect("counts of 64 bits");
    let line = mem.head.streams.as_ref().map_or(64, |head| head.line);
    for stream in &mem.streams {
        for part in &stream.parts {
            let grid = Grid { line, size: stream.size };
            let first = part.addresses(0, grid).take(1000).next();
            assert_eq!(first, Some(part.start.cast_unsigned()));
            assert!(part.addresses(u64::MAX, grid).take(1000).count() > 0);
        }
    }
}
