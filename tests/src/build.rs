//! Builds the small programs of this crate, each from one source file whose first lines may say how:
//!
//! ```text
//! cc: -O2 -mavx2        (extra words for the compiler)
//! oracle: steps | valgrind   (where the counts come from; both by default)
//! ignore: f g           (functions whose counts depend on timing)
//! cpu: avx512f          (what the processor must have, by the names of /proc/cpuinfo)
//! ```
//!
//! The words stand in a comment, `# ` or `// ` first.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::tools;

/// One source file.
#[derive(Clone, Debug)]
pub struct Source {
    /// Where it is.
    pub path: PathBuf,
    text: String,
}

impl Source {
    /// Opens `folder/name.s`, `.c`, `.cc` or `.rs` of this crate.
    ///
    /// # Panics
    /// If there is no such file.
    pub fn open(folder: &str, name: &str) -> Source {
        let dir = tools::fixtures(folder);
        let path = ["s", "c", "cc", "rs"]
            .iter()
            .map(|ext| dir.join(format!("{name}.{ext}")))
            .find(|p| p.is_file())
            .unwrap_or_else(|| panic!("no source of {name} in {}", dir.display()));
        let text = fs::read_to_string(&path).expect("a readable source");
        Source { path, text }
    }

    /// The words after `key:` in the first lines.
    pub fn words(&self, key: &str) -> Vec<String> {
        let lines = self.text.lines().take(12);
        let comments = lines.filter_map(|l| l.strip_prefix("# ").or_else(|| l.strip_prefix("// ")));
        let values = comments.filter_map(|c| c.strip_prefix(key)?.strip_prefix(": "));
        values.flat_map(str::split_whitespace).map(str::to_owned).collect()
    }

    /// Whether this processor can run it; says so if not.
    pub fn runs_here(&self) -> bool {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let has = |feature: &String| info.split_whitespace().any(|word| word == feature);
        let missing: Vec<_> = self.words("cpu").into_iter().filter(|f| !has(f)).collect();
        if !missing.is_empty() {
            eprintln!("skipped: this processor lacks {missing:?}");
        }
        missing.is_empty()
    }

    /// Builds it in `dir`; freestanding means static and without libc. Returns the executable.
    ///
    /// # Panics
    /// If the compiler refuses it.
    pub fn build(&self, dir: &Path, freestanding: bool) -> PathBuf {
        let out = dir.join(self.path.file_stem().expect("a file name"));
        let ext = self.path.extension().and_then(|e| e.to_str()).expect("an extension");
        let mut words: Vec<String> = match ext {
            "rs" => vec!["rustc".into(), "--edition=2021".into(), "-g".into()],
            "cc" => vec!["g++".into(), "-g".into(), "-std=c++17".into()],
            _ => vec!["gcc".into(), "-g".into()],
        };
        if freestanding {
            let bare = "-static -no-pie -nostdlib -ffreestanding -fno-stack-protector -fno-pic -fcf-protection=none \
                        -Wl,--build-id=none -Wl,-z,noexecstack -Wall -Werror";
            words.extend(bare.split_whitespace().map(str::to_owned));
        }
        words.extend(["-o".into(), out.display().to_string(), self.path.display().to_string()]);
        words.extend(self.words("cc"));
        compile(&words, self.path.parent().expect("a folder"));
        out
    }
}

/// Runs a compiler.
///
/// # Panics
/// If it fails.
pub fn compile(words: &[String], dir: &Path) {
    let output = Command::new(&words[0]).args(&words[1..]).current_dir(dir).output();
    let output = output.unwrap_or_else(|e| panic!("{}: {e}", words[0]));
    assert!(output.status.success(), "{words:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
}
