//! Places in the source from debug information: [`grind_symbols`] behind the boundary of [`crate::symbolizer`].
//!
//! Objects are those of the run ([`crate::opened`]). While the program runs, a thread of its own reads the tables of what has been mapped ([`Ahead`]), so that they are there when it has ended; what
//! it did not get round to is read when it is asked for. Debug information that is missing or broken costs names, never
//! counts.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use grind_types::MappedFile;

use crate::opened::{OpenObject, Opened};
use crate::symbolizer::{Code, Place, Symbolizer, UNKNOWN};

mod ahead;

use ahead::Ahead;

/// Reads places from debug information.
#[derive(Debug)]
pub struct Sources {
    opened: Opened,
    ahead: Ahead,
}

impl Sources {
    /// Of what is `opened`.
    #[must_use]
    pub fn new(opened: Opened) -> Self {
        Self { ahead: Ahead::new(opened.clone()), opened }
    }

    /// The object with this code. `None`: there is none.
    fn object(&self, code: Code<'_>) -> Option<Arc<OpenObject>> {
        match code {
            Code::File(path, file) => Some(self.opened.file(path, file)),
            Code::Image(bytes) => Some(self.opened.image(bytes)),
            Code::Anonymous => None,
        }
    }
}

impl Symbolizer for Sources {
    fn places(&mut self, code: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
        let Some(object) = self.object(code) else { return tell(0..offsets.len(), Place::UNKNOWN) };
        let mut addresses = Vec::with_capacity(offsets.len());
        // Those that are in no code.
        let mut odd = Vec::new();
        for (index, offset) in offsets.iter().enumerate() {
            match object.svma_of_offset(*offset) {
                Some(address) => addresses.push(address),
                None => odd.push(index),
            }
        }
        let (places, resolution) = object.places(&addresses);
        let (mut places, mut from) = (&places[..], 0);
        for end in odd.iter().copied().chain([offsets.len()]) {
            let (before, behind) = places.split_at(end - from);
            for same in before.chunk_by(PartialEq::eq) {
                let place = same[0];
                let file = resolution.files.get(place.file.index()).map_or(UNKNOWN, |name| name);
                let function =
                    resolution.functions.get(resolution.innermost(place).index()).map_or(UNKNOWN, |name| name);
                tell(from..from + same.len(), Place { file, function, line: place.line });
                from += same.len();
            }
            places = behind;
            if end < offsets.len() {
                tell(end..end + 1, Place::UNKNOWN);
                from = end + 1;
            }
        }
    }

    fn stretches(&mut self, code: Code<'_>, stretches: &[Range<u64>], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
        let Some(object) = self.object(code) else { return tell(0..stretches.len(), Place::UNKNOWN) };
        // Then places differ within a function.
        if object.has_lines() {
            return;
        }
        let Some(addresses) = object.svmas_of_stretches(stretches) else { return };
        let resolution = object.resolve_stretches(&addresses);
        let mut from = 0;
        for same in resolution.places.chunk_by(PartialEq::eq) {
            let range = from..from + same.len();
            from = range.end;
            if let Some(function) = same[0] {
                let function = resolution.functions.get(function.index()).map_or(UNKNOWN, |name| name);
                tell(range, Place { function, ..Place::UNKNOWN });
            }
        }
    }

    fn expect(&mut self, path: &Path, file: &Arc<MappedFile>) {
        self.ahead.read(path, file);
    }

    fn warnings(&mut self) -> Vec<String> {
        self.opened.warnings()
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use grind_symbols::{Object, Options};

    use super::*;

    fn ask(sources: &mut Sources, code: Code<'_>, offsets: &[u64]) -> Vec<Option<(String, u32)>> {
        let mut answers = vec![None; offsets.len()];
        sources.places(code, offsets, &mut |range, place| {
            for index in range {
                assert!(answers[index].is_none(), "offset {index} was answered twice");
                answers[index] = Some((String::from_utf8_lossy(place.function).into_owned(), place.line));
            }
        });
        answers
    }

    #[test]
    fn every_offset_is_answered_whatever_the_object() {
        let mut sources = Sources::new(Opened::new(Options::default()));
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "no ELF file").unwrap();
        let me = std::env::current_exe().unwrap();
        let file = |path: &Path| Arc::new(MappedFile::at(path));
        let [absent, no_elf, own] = [file(Path::new("/nonexistent")), file(&text), file(&me)];
        let offsets = [0, 1, 0x1000, 0x10_0000, u64::MAX];
        for code in [
            Code::File(Path::new("/nonexistent"), &absent),
            Code::File(&text, &no_elf),
            Code::File(&me, &own),
            Code::Image(b"\x7fELF"),
            Code::Anonymous,
        ] {
            assert!(ask(&mut sources, code, &offsets).iter().all(Option::is_some), "{code:?}");
        }
        assert!(!sources.warnings().is_empty(), "the broken ones are told of");
        assert!(sources.warnings().is_empty(), "once");
    }

    #[test]
    fn a_file_that_took_anothers_name_is_read_anew() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let me = std::env::current_exe().unwrap();
        fs::copy(&me, &path).unwrap();
        let mut sources = Sources::new(Opened::new(Options::default()));
        let main = |sources: &mut Sources, file: &Arc<MappedFile>| {
            let object = Object::open(&me, &Options::default());
            let at = *object.boundaries().first().expect("functions");
            ask(sources, Code::File(&path, file), &[at]).remove(0).unwrap().0
        };
        let before = Arc::new(MappedFile::at(&path));
        let other = folder.path().join("y");
        fs::write(&other, "two").unwrap();
        fs::rename(&other, &path).unwrap();
        let after = Arc::new(MappedFile::at(&path));
        assert_eq!(main(&mut sources, &after), "???");
        assert_ne!(main(&mut sources, &before), "???", "what was mapped has its names all the same");
        fs::write(&path, "three").unwrap();
        assert_eq!(main(&mut sources, &after), "???");
    }

    #[test]
    fn a_file_that_is_written_to_has_no_names_that_were_not_read_before() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        let me = std::env::current_exe().unwrap();
        fs::copy(&me, &path).unwrap();
        let at = *Object::open(&me, &Options::default()).boundaries().first().expect("functions");
        let file = Arc::new(MappedFile::at(&path));
        let mut bytes = fs::read(&path).unwrap();
        bytes.push(0);
        fs::write(&path, bytes).unwrap();
        let mut sources = Sources::new(Opened::new(Options::default()));
        assert_eq!(ask(&mut sources, Code::File(&path, &file), &[at]), [Some(("???".to_owned(), 0))]);
        assert!(sources.warnings().iter().any(|w| w.contains("written to since")), "it is told of");
    }
}
