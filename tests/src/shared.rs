//! What several tests of one executable need is made once: programs, and what they do natively.
//!
//! Who is first makes it, whatever the order of the tests, and the others wait. It must never be what is tested: every run
//! under grind is a test's own. All files lie in one folder, which is removed when the process ends, however it does.

use std::collections::BTreeMap;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

/// A folder for as long as this process exists.
///
/// # Panics
/// If it cannot be made.
pub fn folder() -> &'static Path {
    static FOLDER: OnceLock<(PathBuf, Child)> = OnceLock::new();
    let (folder, _) = FOLDER.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a temporary folder").keep();
        // Nothing is dropped at the end of a test executable, and it may be killed: another process sees its pipe closed.
        let mut command = Command::new("sh");
        command.args(["-c", "read end; rm -rf \"$0\""]).arg(&folder).process_group(0);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        (folder, command.spawn().expect("a shell"))
    });
    folder
}

/// Things by name, each made by the first who wants it.
#[derive(Debug, Default)]
pub struct Shared<T>(Mutex<BTreeMap<String, Slot<T>>>);

/// One of the things, if it was made, and has not failed to.
type Slot<T> = Arc<Mutex<Option<T>>>;

impl<T> Shared<T> {
    /// Nothing yet.
    pub const fn new() -> Self {
        Shared(Mutex::new(BTreeMap::new()))
    }

    /// Makes `name` in a folder of its own if it is not there, and uses it while nobody else does.
    ///
    /// # Panics
    /// If either panics, or there is no folder.
    pub fn with<R>(&self, name: &str, make: impl FnOnce(&Path) -> T, using: impl FnOnce(&mut T) -> R) -> R {
        let slot = Arc::clone(unpoisoned(&self.0).entry(name.to_owned()).or_default());
        // A test that failed while it used it has not changed it.
        let mut slot = unpoisoned(&slot);
        let thing = match &mut *slot {
            Some(thing) => thing,
            empty => {
                let dir = folder().join(name);
                // What is left if making it failed before.
                let _ = std::fs::remove_dir_all(&dir);
                std::fs::create_dir(&dir).expect("a new folder");
                empty.insert(make(&dir))
            }
        };
        using(thing)
    }
}

fn unpoisoned<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_failed_is_made_again_and_then_kept() {
        let shared = Shared::new();
        let failed = std::panic::catch_unwind(|| shared.with("a", |_| panic!("not made"), |n: &mut u8| *n));
        assert!(failed.is_err());
        assert_eq!(shared.with("a", |dir| u8::from(dir.is_dir()), |n| *n), 1);
        assert_eq!(shared.with("a", |_| 2, |n| *n), 1);
        assert_eq!(shared.with("b", |_| 3, |n| *n), 3);
    }
}
