//! The objects of a run: each is opened and read once, whoever asks for it and in whichever process it is mapped, since a build maps the
//! same few libraries thousands of times. What was found of its addresses last is kept, too: processes that run the same program
//! ask for the same. A file is told apart from one that has taken its name in the meantime. Must never read anything before it is
//! asked for, nor drop what others still use.

use std::collections::HashMap;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use grind_symbols::{Object, Options, Place, Resolution, Svma};
use grind_types::MappedFile;

use crate::mapped;

/// So many addresses at most are kept with what was found of them.
const MOST_KEPT: usize = 1 << 17;

/// An object that has been opened, and what was found of it last.
#[derive(Debug)]
pub struct OpenObject {
    object: Object,
    last: Mutex<Option<Arc<Found>>>,
    /// How many of its warnings have been passed on.
    told: AtomicUsize,
}

#[derive(Debug)]
struct Found {
    /// Sorted.
    addresses: Vec<Svma>,
    resolution: Arc<Resolution>,
}

impl Found {
    /// Places of these addresses, if all of them are known.
    fn places(&self, addresses: &[Svma]) -> Option<Vec<Place>> {
        if addresses == self.addresses {
            return Some(self.resolution.places.clone());
        }
        let mut from = 0;
        let place = |address: &Svma| {
            from += self.addresses[from..].binary_search(address).ok()?;
            Some(self.resolution.places[from])
        };
        addresses.iter().map(place).collect()
    }
}

impl OpenObject {
    fn new(object: Object) -> Arc<Self> {
        Arc::new(Self { object, last: Mutex::default(), told: AtomicUsize::new(0) })
    }

    /// Places of these addresses, which are sorted, in their order, and the names that they refer to: the places of the
    /// [`Resolution`] are of others. Slow: debug information is read.
    pub fn places(&self, addresses: &[Svma]) -> (Vec<Place>, Arc<Resolution>) {
        let last = lock(&self.last).clone();
        if let Some(found) = last
            && let Some(places) = found.places(addresses)
        {
            return (places, found.resolution.clone());
        }
        let resolution = Arc::new(self.object.resolve(addresses));
        if addresses.len() <= MOST_KEPT {
            let found = Found { addresses: addresses.to_vec(), resolution: resolution.clone() };
            *lock(&self.last) = Some(Arc::new(found));
        }
        (resolution.places.clone(), resolution)
    }

    /// The warnings that have not been passed on.
    fn news(&self) -> Vec<String> {
        let all = self.object.warnings();
        let told = self.told.swap(all.len(), Ordering::Relaxed);
        all.into_iter().skip(told).collect()
    }
}

impl Deref for OpenObject {
    type Target = Object;

    fn deref(&self) -> &Object {
        &self.object
    }
}

/// Tells objects apart.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Key {
    File(PathBuf, Arc<MappedFile>),
    Image(Vec<u8>),
}

/// The objects of a run. Clones are the same ones.
#[derive(Clone, Debug)]
pub struct Opened {
    options: Arc<Options>,
    known: Arc<Mutex<HashMap<Key, Arc<OpenObject>>>>,
}

impl Opened {
    /// None yet; names are looked for and shown as `options` say.
    #[must_use]
    pub fn new(options: Options) -> Self {
        Self { options: Arc::new(options), known: Arc::default() }
    }

    /// How names are looked for and shown.
    #[must_use]
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// The ELF file that is, or was, mapped under the name `path`.
    #[must_use]
    pub fn file(&self, path: &Path, file: &Arc<MappedFile>) -> Arc<OpenObject> {
        let open = || OpenObject::new(mapped::object(path, file, &self.options));
        lock(&self.known).entry(Key::File(path.to_owned(), file.clone())).or_insert_with(open).clone()
    }

    /// An image that no file has, such as the vDSO.
    #[must_use]
    pub fn image(&self, bytes: &[u8]) -> Arc<OpenObject> {
        let open = || OpenObject::new(Object::from_image(bytes.to_vec(), "vdso", &self.options));
        lock(&self.known).entry(Key::Image(bytes.to_vec())).or_insert_with(open).clone()
    }

    /// What has gone wrong in them since the last call, one line each, in order.
    #[must_use]
    pub fn warnings(&self) -> Vec<String> {
        let mut news: Vec<String> = lock(&self.known).values().flat_map(|object| object.news()).collect();
        news.sort();
        news
    }
}

/// What is behind the lock is whole whoever panics: entries are put in at once.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn own() -> (PathBuf, Arc<MappedFile>) {
        let path = std::env::current_exe().expect("a test has a file");
        let file = Arc::new(MappedFile::at(&path));
        (path, file)
    }

    #[test]
    fn an_object_is_opened_once_whoever_asks() {
        let (path, file) = own();
        let opened = Opened::new(Options::default());
        let first = opened.file(&path, &file);
        // Another process maps it: it is opened anew, and is the same file.
        let again = Arc::new(MappedFile::at(&path));
        assert!(Arc::ptr_eq(&first, &opened.clone().file(&path, &again)));
        assert!(!Arc::ptr_eq(&first, &opened.file(Path::new("/another/name"), &file)));
        let image = opened.image(b"no ELF");
        assert!(Arc::ptr_eq(&image, &opened.image(b"no ELF")) && !Arc::ptr_eq(&image, &opened.image(b"another")));
        assert_eq!(lock(&opened.known).len(), 4);
    }

    #[test]
    fn what_is_kept_of_addresses_is_what_an_object_says() {
        let (path, file) = own();
        let object = Opened::new(Options::default()).file(&path, &file);
        let boundaries = object.boundaries();
        let all: Vec<Svma> = boundaries.iter().filter_map(|at| object.svma_of_offset(*at)).take(400).collect();
        let mut asked: Vec<Vec<Svma>> = (0..40u64)
            .map(|seed| all.iter().copied().filter(|at| (at.0 >> 4 ^ seed).count_ones() % 3 > 0).collect())
            .collect();
        // The same, parts of it, none, and one that is in no function.
        asked.extend([all.clone(), all.clone(), all[10..300].to_vec(), Vec::new(), vec![Svma(1)], all.clone()]);
        asked.iter_mut().for_each(|addresses| addresses.sort());
        for addresses in asked {
            let (places, names) = object.places(&addresses);
            let expected = object.resolve(&addresses);
            let shown = |places: &[Place], names: &Resolution| -> Vec<_> {
                let shown = |place: &Place| {
                    (
                        names.functions[place.function.index()].clone(),
                        names.files[place.file.index()].clone(),
                        place.line,
                    )
                };
                places.iter().map(shown).collect()
            };
            assert_eq!(shown(&places, &names), shown(&expected.places, &expected));
        }
    }
}
