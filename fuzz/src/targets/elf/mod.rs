//! ELF files: symbols, sections (compressed ones, too), line programs, and files that refer to each other.
//!
//! An input is such a file, or several: three lengths of 32 bits, then a program, its separate debug file and the file that
//! debug files share, which are put where a program's links lead.

mod change;

use std::fs;
use std::path::Path;

use grind_symbols::{Inlined, Name, NameId, Object, Options, Resolution, Svma};

use crate::{Target, limits};

pub(super) const TARGET: Target = Target {
    name: "elf",
    run,
    laws,
    words: &[],
    change: Some(change::change),
    largest: 1 << 17,
    overhead: limits::OVERHEAD,
    besides: expanded,
};

/// Lengths of the files before the files.
const HEAD: usize = 12;

/// The files of an input.
fn files(input: &[u8]) -> Vec<&[u8]> {
    if input.starts_with(b"\x7fELF") || input.len() < HEAD {
        return vec![input];
    }
    let (head, mut rest) = input.split_at(HEAD);
    let mut files = Vec::new();
    for length in head.chunks_exact(4) {
        let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
        let (file, behind) = rest.split_at(length.min(rest.len()));
        files.push(file);
        rest = behind;
    }
    files
}

/// The files as one input.
fn joined(files: &[Vec<u8>]) -> Vec<u8> {
    if let [file] = files {
        return file.clone();
    }
    let head = files.iter().flat_map(|file| (file.len() as u32).to_le_bytes());
    head.chain(files.iter().flatten().copied()).collect()
}

/// What compressed sections claim to hold. The reader bounds it by the length of the file, but generously: there are real
/// debug files thirteen times as large when they are unpacked. A decoder of Zstandard reserves what a block may need at most,
/// whatever it needs. An entry of a table of 5 or 7 bytes takes a hundred in the library, three times over while the table grows.
fn expanded(input: &[u8]) -> usize {
    const DECODER: usize = 5 << 19;
    let of = |file: &[u8]| {
        let decoder = if change::has_zstd(file) { DECODER } else { 0 };
        decoder + 40 * change::tables(file) + change::claimed(file).min(64 * file.len() + (64 << 10))
    };
    files(input).into_iter().map(of).sum()
}

/// Does something with the object that an input is.
fn with_object(input: &[u8], act: impl Fn(&Object)) {
    match files(input)[..] {
        [file] => {
            let options = Options { debug_roots: Vec::new(), inlined: Inlined::Named, ..Options::default() };
            act(&Object::from_image(file.to_vec(), "x", &options));
        }
        [program, debug, shared] => {
            let folder = tempfile::tempdir().expect("a folder");
            let path = |name: &str| folder.path().join(name);
            let write = |path: &Path, bytes| fs::write(path, bytes).expect("a file");
            write(&path("program"), program);
            write(&path("program.debug"), debug);
            write(&path("shared.debug"), shared);
            if let Some(id) = build_id(program) {
                fs::create_dir_all(path(&format!(".build-id/{}", &id[..2]))).expect("a folder");
                write(&path(&format!(".build-id/{}/{}.debug", &id[..2], &id[2..])), debug);
            }
            let debug_roots = vec![folder.path().to_owned()];
            let options = Options { debug_roots, inlined: Inlined::Named, ..Options::default() };
            act(&Object::open(&path("program"), &options));
        }
        _ => {}
    }
}

/// The build identifier of a program, where it is easily found.
fn build_id(file: &[u8]) -> Option<String> {
    let note = b"\x03\0\0\0GNU\0";
    let at = file.windows(note.len()).position(|window| window == note)?;
    let length = u32::from_le_bytes(file.get(at.checked_sub(4)?..at)?.try_into().ok()?) as usize;
    let id = file.get(at + note.len()..at + note.len() + length)?;
    (2..=64).contains(&length).then(|| id.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Addresses to ask for: where functions and sections begin and end, and some that a file may claim.
fn addresses(object: &Object) -> Vec<Svma> {
    let offsets = object.boundaries().into_iter().take(64);
    let mut all: Vec<Svma> = offsets.filter_map(|offset| object.svma_of_offset(offset)).collect();
    all.extend((0..0x4000).step_by(0x155).filter_map(|offset| object.svma_of_offset(offset)));
    all.extend([0, 1, 0x1000, 0x1130, 0x40_1000, 0x40_1126, 1 << 63, u64::MAX - 1, u64::MAX].map(Svma));
    all
}

/// What a profile asks: all addresses at once.
fn run(input: &[u8]) {
    with_object(input, |object| {
        object.prepare();
        let asked = addresses(object);
        let found = object.resolve(&asked);
        assert_eq!(found.places.len(), asked.len());
        let data = object.data();
        let variables = (0..8).filter_map(|n| data.get(n)).map(|(variable, _)| variable);
        let layouts = variables.filter_map(|v| object.layout_of_variable(v.start, v.end.0.wrapping_sub(v.start.0)));
        let pointees = asked.iter().take(8).filter_map(|at| object.pointee(*at, b"v")).map(|found| found.layout);
        for layout in layouts.chain(pointees) {
            let found = (0..layout.size.min(256)).filter_map(|byte| layout.at(byte));
            assert!(found.into_iter().all(|member| member < layout.members.len()));
        }
        let _ = (object.has_lines(), object.warnings());
    });
}

/// What is inlined at each place, the innermost function first: its name, its file, and the line of its call.
fn inlined(found: &Resolution) -> Vec<Vec<(Name, Name, u32)>> {
    let chain = |innermost: u32| {
        let mut chain = Vec::new();
        let mut at = innermost;
        while let Some(before) = at.checked_sub(1) {
            let frame = &found.inlining[before as usize];
            assert!(frame.outer < at, "a frame is inlined into one that was made before it");
            let name = found.functions[frame.function.index()].clone();
            chain.push((name, found.files[frame.file.index()].clone(), frame.call_line));
            at = frame.outer;
        }
        chain
    };
    found.places.iter().map(|place| chain(place.inlined)).collect()
}

/// However it is asked, an object answers the same; names have no ends of lines, ranges hold what they were asked for, and what is
/// inlined leads to the function that has the code.
fn laws(input: &[u8]) {
    with_object(input, |object| {
        let mut asked = addresses(object);
        let found = object.resolve(&asked);
        let shown = |at: NameId, names: &[grind_symbols::Name]| names[at.index()].clone();
        for name in found.functions.iter().chain(&found.files) {
            assert!(!name.iter().any(|byte| matches!(byte, b'\n' | b'\r' | 0)));
        }
        // Where names are left out for want of room, asking for one at a time says more.
        let all_names = !object.warnings().iter().any(|warning| warning.contains("names are too long"));
        for (at, place) in asked.iter().zip(&found.places).filter(|_| all_names) {
            let function = object.function_at(*at);
            assert_eq!(function.is_some(), place.function != NameId::UNKNOWN);
            if let (Some(name), Some((start, end))) = (function, object.function_range(*at)) {
                assert_eq!(name, shown(place.function, &found.functions));
                assert!(start <= *at && *at < end);
            }
            let _ = object.section_at(*at);
        }
        let before: Vec<_> = asked
            .iter()
            .zip(&found.places)
            .map(|(at, place)| {
                (*at, shown(place.function, &found.functions), shown(place.file, &found.files), place.line)
            })
            .collect();
        let inlined_before = inlined(&found);
        if !all_names {
            return;
        }
        asked.reverse();
        let found = object.resolve(&asked);
        assert!(
            inlined(&found).iter().eq(inlined_before.iter().rev()),
            "inlined functions depend on the order of asking"
        );
        for ((at, place), (same, function, file, line)) in asked.iter().zip(&found.places).zip(before.iter().rev()) {
            assert_eq!(at, same);
            assert_eq!(&shown(place.function, &found.functions), function);
            assert_eq!((&shown(place.file, &found.files), place.line), (file, *line));
        }
        let stretches: Vec<_> = (0..0x3000_u64).step_by(0x40).map(|start| start..start + 0x20).collect();
        if let Some(known) = object.svmas_of_stretches(&stretches) {
            assert_eq!(object.resolve_stretches(&known).places.len(), stretches.len());
        }
    });
}
