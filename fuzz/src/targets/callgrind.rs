//! Profiles of callgrind's format: read as they come, kept whole, written and read again.

use std::collections::BTreeMap;

use cg_format::callgrind::{
    Call, Chains, FunctionId, Jump, PartHeader, Position, Profile, Sink, Site, WriteOptions, Writer, read, read_profile,
};
use cg_format::count::TooLarge;

use super::text;
use crate::{Target, limits};

pub(super) const TARGET: Target = Target {
    name: "callgrind",
    run,
    laws,
    words: &[
        "# callgrind format\n",
        "version: 1\n",
        "creator: x\n",
        "pid: 1\n",
        "cmd: a b\n",
        "part: 1\n",
        "thread: 1\n",
        "desc: a\n",
        "desc: Trigger: a\n",
        "positions: instr line\n",
        "positions: line\n",
        "positions: bb line\n",
        "event: Ir : Instructions\n",
        "events: Ir\n",
        "events: Ir Dr\n",
        "summary: 1\n",
        "totals: 1\n",
        "fl=",
        "fn=",
        "fi=",
        "fe=",
        "ob=",
        "cfn=",
        "cfi=",
        "cfl=",
        "cob=",
        "calls=",
        "rcalls=",
        "jump=",
        "jcnd=",
        "jfi=",
        "jfn=",
        "frfn=",
        "(1)",
        "(2) b",
        "(1048575) c",
        "(1048576) d",
        "(18446744073709551615) e",
        "f'2",
        "???",
        "\n",
        "\r\n",
        " ",
        "\t",
        "* *",
        "+1",
        "-1",
        "0x10",
        "1 1\n",
        "+0 5\n",
        "fl=(1) a.c\nfn=(1) f\n",
        "#chains: 1\n#fn=(1)\n#c=0 0 1 1\n",
        "#c=1 0 1 1\n",
        "calls=1 1\n1 1\n",
        "/",
        "é",
        "18446744073709551615",
        "18446744073709551616",
        "9223372036854775808",
        "-9223372036854775808",
        "\0",
    ],
    change: Some(text::change),
    largest: 1 << 16,
    overhead: limits::OVERHEAD,
    besides: |_| 0,
};

/// Counts what it is given and keeps nothing: the way of those for whom a profile is too large. Chains may add up to too much, which
/// whoever adds them up must know.
#[derive(Default)]
struct Counter {
    parts: usize,
    entries: usize,
    chains: Option<Chains>,
}

impl Sink for Counter {
    fn part(&mut self, header: &PartHeader) {
        self.parts += 1;
        self.chains = self.chains.is_some().then(|| Chains::new(header.events.len()));
    }

    fn chain(&mut self, depth: usize, function: FunctionId, calls: u64, costs: &[i64]) -> Result<(), TooLarge> {
        self.chains.as_mut().map_or(Ok(()), |chains| chains.add_at(depth, function, calls, costs))
    }

    fn row(&mut self, _: FunctionId, _: Position, _: &[i64]) -> Result<(), TooLarge> {
        self.entries += 1;
        Ok(())
    }

    fn call(&mut self, _: FunctionId, _: Position, _: &Call, _: &[i64]) -> Result<(), TooLarge> {
        self.entries += 1;
        Ok(())
    }

    fn jump(&mut self, _: FunctionId, _: Position, _: &Jump) {
        self.entries += 1;
    }
}

/// Keeping all of it, as the laws do, takes a number of 64 bits for each event of each row, however short that is written:
/// nothing but tests does it.
fn run(input: &[u8]) {
    let _ = read(input, "x", &mut Counter::default());
}

/// What is right survives being written, in either spelling, and writing it again comes to an end.
fn laws(input: &[u8]) {
    let mut counter = Counter { chains: Some(Chains::default()), ..Counter::default() };
    let (streamed, kept) = (read(input, "x", &mut counter), read_profile(input, "x"));
    let profile = match (streamed, kept) {
        (Ok(outcome), Ok(profile)) => {
            assert_eq!(outcome.header, profile.header);
            assert_eq!(outcome.parts.len(), profile.parts.len());
            profile
        }
        (Err(one), Err(other)) => {
            assert_eq!(one.to_string(), other.to_string());
            assert!(one.to_string().starts_with("x:"), "{one}");
            return;
        }
        (one, other) => panic!("{:?} and {:?}", one.err(), other.err()),
    };
    let entries: usize = profile.parts.iter().flat_map(|part| part.bodies()).map(|body| body.entries.len()).sum();
    assert_eq!((counter.parts, counter.entries), (profile.parts.len(), entries));
    let before = sums(&profile);
    for (compress_strings, compress_positions) in [(true, true), (false, false)] {
        let options = WriteOptions { compress_strings, compress_positions };
        // Rows of one place that come to lie side by side may add up to more than 63 bits; then nothing is written.
        let Some(text) = written(&profile, options) else { return };
        let again = reread(&text);
        assert_eq!(sums(&again), before);
        // What has no costs is left out, and rows that come to lie side by side are added up, perhaps to nothing: each time
        // there may be less, until nothing changes.
        let Some(mut text) = written(&again, options) else { return };
        loop {
            let Some(next) = written(&reread(&text), options) else { return };
            if next == text {
                break;
            }
            assert!(next.len() < text.len(), "not stable:\n{}\n--\n{}", shown(&text), shown(&next));
            text = next;
        }
    }
}

fn reread(text: &[u8]) -> Profile {
    read_profile(text, "y").unwrap_or_else(|error| panic!("what was written is wrong: {error}\n{}", shown(text)))
}

fn shown(text: &[u8]) -> String {
    String::from_utf8_lossy(text).into_owned()
}

/// A function by its part and its names; what it called, if it is a call.
type Key = (usize, [Vec<u8>; 3], Option<[Vec<u8>; 3]>);

/// Costs by function and by call, and the calls' counts.
fn sums(profile: &Profile) -> BTreeMap<Key, Vec<i128>> {
    let names = &profile.names;
    let named = |id| {
        let function = names.get(id);
        [names.object_name(function.object), names.file_name(function.file), names.function_name(id)]
            .map(<[u8]>::to_vec)
    };
    let mut sums: BTreeMap<Key, Vec<i128>> = BTreeMap::new();
    for (number, part) in profile.parts.iter().enumerate() {
        let chains = part.chains();
        let mut paths: Vec<Vec<u8>> = Vec::new();
        for (n, chain) in (0..).zip(chains.all()) {
            let mut path = chain.parent.map(|parent| paths[parent as usize].clone()).unwrap_or_default();
            path.extend(format!("{:?}", named(chain.function)).into_bytes());
            let counts = chains.costs(n).iter().map(|cost| i128::from(*cost)).chain([i128::from(chain.calls)]);
            sums.insert((number, [b"a chain".to_vec(), path.clone(), Vec::new()], None), counts.collect());
            paths.push(path);
        }
        for body in part.bodies() {
            for entry in &body.entries {
                let (callee, count, costs) = match entry.site {
                    Site::Row { costs } => (None, 0, costs),
                    Site::Call { call, costs } => (Some(named(call.callee)), call.count, costs),
                    Site::Jump(_) => continue,
                };
                let costs = body.costs(costs);
                if count == 0 && costs.iter().all(|cost| *cost == 0) {
                    continue;
                }
                let sum =
                    sums.entry((number, named(body.function), callee)).or_insert_with(|| vec![0; costs.len() + 1]);
                let counts = costs.iter().map(|cost| i128::from(*cost)).chain([i128::from(count)]);
                sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
            }
        }
    }
    sums.retain(|_, sum| sum.iter().any(|count| *count != 0));
    sums
}

fn written(profile: &Profile, options: WriteOptions) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    Writer::new(options).profile(&mut out, profile).ok()?;
    Some(out)
}
