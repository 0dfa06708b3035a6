//! The dynamically linked programs that are compared with the reference, function by function: those of `dynamic/`, and real
//! ones. And what is left out of such comparisons, the dynamic loader.

use std::time::Duration;

use tempfile::TempDir;

use crate::build::Source;
use crate::run::Job;
use crate::tools;

/// Code of the dynamic loader, by parts of its files' names: it loads one object more under the reference.
const LOADER: &[&str] =
    &["/elf/", "dl-", "rtld", "ldsodefs", "get-dynamic-info", "/csu/", "do-rel.h", "scratch_buffer"];

/// Whether a source file is one of the loader's.
pub fn in_loader(file: &str) -> bool {
    LOADER.iter().any(|part| file.contains(part))
}

/// A program that is ready to run, in a folder of its own.
#[derive(Debug)]
pub struct Program {
    /// Its name.
    pub name: &'static str,
    /// Whether the paths that it takes hang on addresses: python3 hashes objects by them, so that its counts are not reproducible
    /// even between two runs of the reference in other environments.
    pub by_address: bool,
    words: Vec<String>,
    dir: TempDir,
}

impl Program {
    /// The one of that name: `sqlite3`, `xz`, `python3`, or one of `dynamic/`, which is built.
    ///
    /// # Panics
    /// If it cannot be built.
    pub fn new(name: &'static str) -> Program {
        let dir = tempfile::tempdir().expect("a temporary folder");
        let script = |file: &str| tools::fixtures("dynamic").join(file).display().to_string();
        let words = match name {
            "sqlite3" => vec![name.to_owned(), ":memory:".to_owned(), format!(".read {}", script("script.sql"))],
            "xz" => {
                let text: String = (0..3000).map(|i| format!("{} some text {i}\n", i * 7919 % 1009)).collect();
                std::fs::write(dir.path().join("text"), text).expect("a writable folder");
                ["xz", "-6", "-k", "-c", "text"].map(str::to_owned).to_vec()
            }
            "python3" => vec!["/usr/bin/python3".to_owned(), "-B".to_owned(), script("script.py")],
            _ => vec![Source::open("dynamic", name).build(dir.path(), false).display().to_string()],
        };
        Program { name, by_address: name == "python3", words, dir }
    }

    /// Whether the program and the reference are here; in CI it is a failure if not.
    pub fn can_be_compared(&self) -> bool {
        tools::have(&["valgrind", &self.words[0]])
    }

    /// How it is run.
    pub fn job(&self) -> Job<'_> {
        Job { limit: Duration::from_secs(120), ..Job::new(self.words.clone(), self.dir.path()) }
    }
}

/// A test of each program, by this function of it.
#[macro_export]
macro_rules! test_dynamic_programs {
    ($check:ident) => {
        $crate::test_dynamic_programs! { $check: c_program cpp_program rust_program sqlite3 xz python3 }
    };
    ($check:ident: $($name:ident)*) => {
        $(#[test] fn $name() { $check(&$crate::dynamic::Program::new(stringify!($name))); })*
    };
}
