//! `--format=pprof`: a gzipped `profile.proto`.
//!
//! Value types are the events, then `calls` and, for each event, `inclusive_EVENT`. Stacks have values of events alone.
//! Where the profile has a call graph and stacks do not hold it already, each arc is a sample of two frames, callee and
//! caller, with values of `calls` and `inclusive_EVENT` alone. So every value type by itself is exact; `inclusive_EVENT`
//! must not be summed up over levels of the graph. Estimated stacks are marked by a comment and by a label on each.

use std::collections::HashMap;
use std::io::{self, Write};

use cg_exchange::pprof::{Function, Label, Line, Location, Mapping, Profile, Sample, ValueType};
use flate2::{Compression, GzBuilder};
use prost::Message;

use crate::load::{Input, lossy};
use crate::stacks::{Kind, Stacks};

/// Strings, each once.
struct Strings {
    table: Vec<String>,
    finder: HashMap<String, i64>,
}

impl Strings {
    fn of(&mut self, text: &str) -> i64 {
        if let Some(found) = self.finder.get(text) {
            return *found;
        }
        let number = i64::try_from(self.table.len()).unwrap_or(0);
        self.table.push(text.to_owned());
        self.finder.insert(text.to_owned(), number);
        number
    }

    fn bytes(&mut self, text: &[u8]) -> i64 {
        self.of(&lossy(text))
    }
}

/// Gives an id, from 1, to each key.
struct Ids<K>(HashMap<K, u64>);

impl<K: std::hash::Hash + Eq> Ids<K> {
    /// The id, and whether it is new.
    fn of(&mut self, key: K) -> (u64, bool) {
        let next = self.0.len() as u64 + 1;
        let id = *self.0.entry(key).or_insert(next);
        (id, id == next)
    }
}

struct Builder<'a> {
    stacks: &'a Stacks,
    profile: Profile,
    strings: Strings,
    mappings: Ids<Vec<u8>>,
    functions: Ids<(usize, Vec<u8>)>,
    locations: Ids<(usize, Vec<u8>, u32)>,
}

impl Builder<'_> {
    /// The location of a line of a function; the line may be of another file than the function.
    fn location(&mut self, frame: usize, file: &[u8], line: u32) -> u64 {
        let (id, new) = self.locations.of((frame, file.to_vec(), line));
        if new {
            let function = self.function(frame, file);
            let mapping = self.mapping(&self.stacks.frames[frame].object.clone());
            let line = Line { function_id: function, line: i64::from(line) };
            self.profile.location.push(Location { id, mapping_id: mapping, address: 0, line: vec![line] });
        }
        id
    }

    fn function(&mut self, frame: usize, file: &[u8]) -> u64 {
        let (id, new) = self.functions.of((frame, file.to_vec()));
        if new {
            let name = self.strings.bytes(&self.stacks.frames[frame].name);
            let filename = self.strings.bytes(file);
            self.profile.function.push(Function { id, name, system_name: name, filename, start_line: 0 });
        }
        id
    }

    /// The mapping of an object. Addresses are not known; each object gets a range of its own, since readers want one.
    fn mapping(&mut self, object: &[u8]) -> u64 {
        if object.is_empty() {
            return 0;
        }
        let (id, new) = self.mappings.of(object.to_vec());
        if new {
            let filename = self.strings.bytes(object);
            self.profile.mapping.push(Mapping {
                id,
                memory_start: id << 32,
                memory_limit: (id + 1) << 32,
                filename,
                has_functions: true,
                has_filenames: true,
                has_line_numbers: true,
                has_inline_frames: true,
                ..Mapping::default()
            });
        }
        id
    }
}

/// Writes a profile.
///
/// # Errors
/// `out` cannot be written.
pub(crate) fn write(out: &mut dyn Write, input: &Input, stacks: &Stacks) -> io::Result<()> {
    let profile = build(input, stacks);
    // Without a time, so that the same input gives the same bytes.
    let mut packed = GzBuilder::new().mtime(0).write(out, Compression::default());
    packed.write_all(&profile.encode_to_vec())?;
    packed.finish()?.flush()
}

fn build(input: &Input, stacks: &Stacks) -> Profile {
    let strings = Strings { table: vec![String::new()], finder: HashMap::from([(String::new(), 0)]) };
    let mut builder = Builder {
        stacks,
        profile: Profile::default(),
        strings,
        mappings: Ids(HashMap::new()),
        functions: Ids(HashMap::new()),
        locations: Ids(HashMap::new()),
    };
    let width = input.events.len();
    let with_arcs = stacks.kind != Kind::Contexts && !input.arcs.is_empty();
    let unit = builder.strings.of("count");
    let mut types: Vec<String> = input.events.clone();
    if with_arcs {
        types.push("calls".to_owned());
        types.extend(input.events.iter().map(|event| format!("inclusive_{event}")));
    }
    for name in &types {
        let r#type = builder.strings.of(name);
        builder.profile.sample_type.push(ValueType { r#type, unit });
    }
    let label = (stacks.kind == Kind::Estimated).then(|| Label {
        key: builder.strings.of("stack"),
        str: builder.strings.of("estimated"),
        num: 0,
    });
    for stack in &stacks.stacks {
        let mut location_id = Vec::with_capacity(stack.frames.len());
        for (depth, frame) in stack.frames.iter().enumerate() {
            let place = stack.place.filter(|_| depth == 0);
            let own = &stacks.frames[*frame].file;
            let (file, line) = place.map_or((&own[..], 0), |(file, line)| (input.names.file_name(file), line));
            location_id.push(builder.location(*frame, file, line));
        }
        let mut value = stack.costs.clone();
        value.resize(types.len(), 0);
        builder.profile.sample.push(Sample { location_id, value, label: label.into_iter().collect() });
    }
    if with_arcs {
        for arc in &input.arcs {
            let location_id = [arc.callee, arc.caller]
                .map(|function| {
                    let frame = stacks.frame_of[function.index()];
                    builder.location(frame, &stacks.frames[frame].file, 0)
                })
                .to_vec();
            let mut value = vec![0; width];
            value.push(i64::try_from(arc.count).unwrap_or(i64::MAX));
            value.extend(&arc.costs);
            builder.profile.sample.push(Sample { location_id, value, label: Vec::new() });
        }
    }
    let comments = [format!("command: {}", input.command()), format!("stacks: {}", stacks.kind.describe())];
    builder.profile.comment = comments.iter().map(|comment| builder.strings.of(comment)).collect();
    builder.profile.default_sample_type = input.events.first().map_or(0, |event| builder.strings.of(event));
    builder.profile.string_table = builder.strings.table;
    builder.profile
}
