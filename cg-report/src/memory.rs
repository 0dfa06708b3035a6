//! The data objects of a run (`mem.out`) in the report: what was missed at each and at its members, in which steps, how far apart accesses
//! of a line are (exactly, or between bounds), and which lines threads share.
//!
//! The page gets the file as it is, as a column of text, which it unpacks when it is looked at, and beside it what is worked out for
//! `mem_annotate`, too: what streams call an object, and streams in words. Names are hostile: what stands in lines of its own has no
//! control characters.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io::{self, BufReader};
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::anyhow;
use cg_cli::substitute::Substitution;
use cg_cli::{input, source_text};
use cg_format::mem::reuse::of_all_objects;
use cg_format::mem::{INCLUDED, Kind, Mem, Object, notation};

use crate::names::last;
use crate::pack::Pack;
use crate::sources;

/// Reads a file of data objects, in which source files are renamed as in profiles; what it says of folders and of the run is left out if
/// that is wanted.
///
/// # Errors
/// It cannot be read, or is none.
pub(crate) fn read(file: &OsStr, renamed: Option<&Substitution>, redact: bool) -> anyhow::Result<Mem> {
    let name = input::name(file);
    let opened = input::open_profile(file, &Arc::default());
    let opened = opened.map_err(|why| anyhow!("--mem: cannot open {name}: {why}"))?;
    let mut mem = Mem::read(&mut BufReader::new(opened)).map_err(|why| {
        let hint = why.hint(&name, "; this is the profile of the objects, which is a profile to make a report of");
        anyhow!("--mem: {name}: {why}{hint}")
    })?;
    if let Some(renamed) = renamed {
        for file in files(&mut mem) {
            *file = String::from_utf8_lossy(&renamed.apply(file.as_bytes())?).into_owned();
        }
    }
    // (The page has distances by function and line.)
    mem.reuse = of_all_objects(mem.reuse);
    mem.head.reuse.iter_mut().for_each(|head| head.count = mem.reuse.len());
    if redact {
        forget_places(&mut mem);
    }
    Ok(mem)
}

/// Names of source files, wherever they stand.
fn files(mem: &mut Mem) -> impl Iterator<Item = &mut String> {
    let Mem { objects, streams, reuse, sharing, missed_by, .. } = mem;
    let places = sharing.iter_mut().flat_map(|row| &mut row.uses).flat_map(|used| &mut used.places);
    let objects = objects.iter_mut().flat_map(|object| {
        let callers = object.callers.iter_mut().map(|caller| &mut caller.file);
        std::iter::once(&mut object.file).chain(callers)
    });
    let missed_by = missed_by.iter_mut().flat_map(|by| [&mut by.file, &mut by.module]);
    let streams = streams.iter_mut().map(|stream| &mut stream.file);
    let rows = reuse.iter_mut().map(|row| &mut row.file);
    objects.chain(streams).chain(rows).chain(missed_by).chain(places.map(|place| &mut place.file))
}

/// Leaves out folders of files, the command line and descriptions of the run.
fn forget_places(mem: &mut Mem) {
    let short = |file: &mut String| *file = String::from_utf8_lossy(last(file.as_bytes())).into_owned();
    mem.head.command.clear();
    // (How exact counts are says nothing of places.)
    mem.head.desc.retain(|line| line.starts_with(INCLUDED));
    mem.objects.iter_mut().filter(|object| object.kind != Kind::Stack).for_each(|object| short(&mut object.name));
    files(mem).for_each(short);
}

/// Packs it; sources, which say what variables are called, are looked for in `folders`, too, if they are wanted at all.
pub(crate) fn pack(pack: &mut Pack, mem: &Mem, folders: Option<&[PathBuf]>) -> io::Result<()> {
    let mut file = Vec::new();
    mem.write(&mut file)?;
    pack.text("text.memory", file)?;
    let names = variables(mem, folders);
    let line = mem.head.streams.as_ref().map_or(0, |streams| streams.line);
    let streams = mem.streams.iter().zip(notation::alone(&mem.streams)).map(|(stream, alone)| {
        let name = names.get(stream.object).map_or("", String::as_str);
        let used = notation::used(stream, line, alone).map_or_else(String::new, |used| used.to_string());
        let hint = notation::hint(stream, line).unwrap_or_default();
        let parts = stream.parts.iter().map(|part| notation::part(stream, part, name, alone));
        [used, hint].into_iter().chain(parts).map(|part| clean(&part)).collect::<Vec<_>>().join("\t")
    });
    let streams: Vec<String> = streams.collect();
    pack.text("text.memory.streams", streams.join("\n").into_bytes())?;
    let callers = |object: &Object| object.callers.iter().map(|c| format!(" ← {}", c.function)).collect::<String>();
    let names = names.iter().zip(&mem.objects).map(|(name, object)| clean(&format!("{name}{}", callers(object))));
    let names: Vec<String> = names.collect();
    pack.text("text.memory.names", names.join("\n").into_bytes())
}

/// What each object is called in its streams.
fn variables<'a>(mem: &'a Mem, folders: Option<&[PathBuf]>) -> Vec<String> {
    let mut texts: BTreeMap<&'a str, Option<Vec<u8>>> = BTreeMap::new();
    let mut name = |object: &'a Object| {
        let line = match folders {
            Some(folders) if object.kind == Kind::Heap && object.line > 0 => {
                let read = || sources::read(object.file.as_bytes(), folders);
                let text = texts.entry(&object.file).or_insert_with(read);
                let mut lines = source_text::lines(text.as_deref().unwrap_or_default());
                lines.find(|(n, _)| *n == object.line).map(|(_, line)| line)
            }
            _ => None,
        };
        notation::variable(object, line)
    };
    mem.objects.iter().map(&mut name).collect()
}

/// Without what separates lines and what stands in one.
fn clean(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use cg_format::mem::missed_by::MissedBy;
    use cg_format::mem::sharing::{Shared, SharedUse, SourceLine, Which};
    use cg_format::mem::{Caller, Head};

    #[test]
    fn what_is_redacted_has_no_folders_and_no_command() {
        let object = |kind, name: &str| Object {
            kind,
            name: name.into(),
            file: "/home/x/a.c".into(),
            line: 3,
            function: "f".into(),
            bytes: 8,
            blocks: 1,
            peak_bytes: 8,
            callers: vec![Caller { file: "/home/x/a.c".into(), ..Caller::default() }],
            fields: Vec::new(),
            members: None,
            counts: vec![1],
        };
        let place = SourceLine { file: "/home/x/a.c".into(), line: 3, function: "f".into() };
        let used = SharedUse { places: vec![place], ..SharedUse::default() };
        let by = MissedBy {
            object: 0,
            function: "f".into(),
            file: "/home/x/a.c".into(),
            module: "/home/x/prog".into(),
            counts: vec![1],
        };
        let mut mem = Mem {
            missed_by: vec![by],
            head: Head {
                command: "/home/x/prog secret".into(),
                desc: vec!["in /home/x".into(), format!("{INCLUDED} none of 3")],
                ..Head::default()
            },
            objects: vec![object(Kind::Heap, "heap@a.c:3"), object(Kind::Section, "/home/x/lib.so")],
            sharing: vec![Shared { which: Which::False, lines: 1, uses: vec![used] }],
            ..Mem::default()
        };
        forget_places(&mut mem);
        let mut text = Vec::new();
        mem.write(&mut text).unwrap();
        let text = String::from_utf8(text).unwrap();
        assert!(!text.contains("home") && !text.contains("secret") && text.contains("lib.so"), "{text}");
        assert!(text.contains("none of 3"), "how exact counts are: {text}");
    }

    #[test]
    fn variables_are_called_what_the_source_says() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a.c"), "int n;\nint *rows = malloc(n);\n").unwrap();
        let object = |file: &str, kind| Object {
            kind,
            name: "heap@a.c:2".into(),
            file: file.into(),
            line: 2,
            function: String::new(),
            bytes: 0,
            blocks: 0,
            peak_bytes: 0,
            callers: Vec::new(),
            fields: Vec::new(),
            members: None,
            counts: vec![],
        };
        let objects = vec![object("a.c", Kind::Heap), object("b.c", Kind::Heap), object("a.c", Kind::Stack)];
        let mem = Mem { objects, ..Mem::default() };
        let folders = [folder.path().to_owned()];
        assert_eq!(variables(&mem, Some(&folders)), ["rows", "heap@a.c:2", "[stack]"]);
        assert_eq!(variables(&mem, None), ["heap@a.c:2", "heap@a.c:2", "[stack]"], "sources are not wanted");
        assert_eq!(clean("a\tb\nc\u{85}"), "a b c ");
    }
}
