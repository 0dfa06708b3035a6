//! Places in the source from debug information: [`grind_symbols`] behind the boundary of [`crate::symbolizer`].
//!
//! An object is kept, since a shell script may write dozens of profiles of the same programs. While the program runs, a
//! thread of its own reads the tables of what has been mapped ([`Ahead`]), so that they are there when it has ended; what
//! it did not get round to is read when it is asked for. Debug information that is missing or broken costs names, never
//! counts.

use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use grind_symbols::{self as symbols, Object, Options, Resolution, Svma};
use grind_types::MappedFile;

use crate::mapped;
use crate::symbolizer::{Code, Place, Symbolizer, UNKNOWN};

mod ahead;

use ahead::Ahead;

/// An object that has been opened.
#[derive(Debug)]
struct Known {
    object: Arc<Object>,
    /// How many of its warnings have been passed on.
    told: usize,
    /// What was found last, by address: processes that run the same program ask for the same.
    last: Option<(Vec<Svma>, Resolution)>,
}

/// So many addresses at most are kept with what was found of them.
const MOST_KEPT: usize = 1 << 17;

impl Known {
    /// Places of these addresses, and the names that they refer to.
    fn resolve(&mut self, addresses: &[Svma]) -> (Vec<symbols::Place>, &Resolution) {
        let known = self.last.as_ref().and_then(|(all, found)| {
            let mut from = 0;
            let place = |address: &Svma| {
                from += all[from..].binary_search(address).ok()?;
                Some(found.places[from])
            };
            addresses.iter().map(place).collect::<Option<Vec<_>>>()
        });
        let places = known.unwrap_or_else(|| {
            let found = self.object.resolve(addresses);
            let places = found.places.clone();
            let all = if addresses.len() <= MOST_KEPT { addresses.to_vec() } else { Vec::new() };
            self.last = Some((all, found));
            places
        });
        (places, &self.last.as_ref().expect("something has been found").1)
    }
}

/// Tells objects apart: a file from one that has taken its name in the meantime.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    File(PathBuf, Arc<MappedFile>),
    Image(Vec<u8>),
}

/// Reads places from debug information.
#[derive(Debug)]
pub struct Sources {
    options: Options,
    known: HashMap<Key, Known>,
    ahead: Ahead,
}

impl Sources {
    /// With names as `options` say.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options, known: HashMap::new(), ahead: Ahead::default() }
    }
}

impl Sources {
    /// What is known of the object with this code. `None`: there is none.
    fn known(&mut self, code: Code<'_>) -> Option<&mut Known> {
        let begun;
        let (key, open): (Key, &dyn Fn() -> Arc<Object>) = match code {
            Code::File(path, file) => {
                let key = Key::File(path.to_owned(), file.clone());
                begun = self.ahead.begun(&key);
                (key, &|| begun.clone().unwrap_or_else(|| Arc::new(mapped::object(path, file, &self.options))))
            }
            Code::Image(bytes) => {
                (Key::Image(bytes.to_vec()), &|| Arc::new(Object::from_image(bytes.to_vec(), "vdso", &self.options)))
            }
            Code::Anonymous => return None,
        };
        Some(self.known.entry(key).or_insert_with(|| Known { object: open(), told: 0, last: None }))
    }
}

impl Symbolizer for Sources {
    fn places(&mut self, code: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
        let Some(known) = self.known(code) else { return tell(0..offsets.len(), Place::UNKNOWN) };
        let mut addresses = Vec::with_capacity(offsets.len());
        // Those that are in no code.
        let mut odd = Vec::new();
        for (index, offset) in offsets.iter().enumerate() {
            match known.object.svma_of_offset(*offset) {
                Some(address) => addresses.push(address),
                None => odd.push(index),
            }
        }
        let (places, resolution) = known.resolve(&addresses);
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
        let Some(known) = self.known(code) else { return tell(0..stretches.len(), Place::UNKNOWN) };
        // Then places differ within a function.
        if known.object.has_lines() {
            return;
        }
        let Some(addresses) = known.object.svmas_of_stretches(stretches) else { return };
        let resolution = known.object.resolve_stretches(&addresses);
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
        if !self.known.contains_key(&Key::File(path.to_owned(), file.clone())) {
            self.ahead.read(path, file, &self.options);
        }
    }

    fn warnings(&mut self) -> Vec<String> {
        let mut news = Vec::new();
        for known in self.known.values_mut() {
            let all = known.object.warnings();
            news.extend(all.iter().skip(known.told).cloned());
            known.told = all.len();
        }
        // The order of the map is not that of anything.
        news.sort();
        news
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

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
        let mut sources = Sources::new(Options::default());
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
        let mut sources = Sources::new(Options::default());
        let main = |sources: &mut Sources, file: &Arc<MappedFile>| {
            let object = Object::open(&me, &sources.options);
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
        let mut sources = Sources::new(Options::default());
        assert_eq!(ask(&mut sources, Code::File(&path, &file), &[at]), [Some(("???".to_owned(), 0))]);
        assert!(sources.warnings().iter().any(|w| w.contains("written to since")), "it is told of");
    }
}
