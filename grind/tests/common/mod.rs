//! A folder to run grind in, shared by the end-to-end tests.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A function of C programs that computes for so many seconds.
pub(crate) const COMPUTE: &str = "#include <time.h>
static volatile unsigned long kept;
__attribute__((noinline)) static void compute(double seconds) {
    struct timespec start, now;
    clock_gettime(CLOCK_MONOTONIC, &start);
    do {
        for (int i = 0; i < 100000; i++) kept = kept * 31 + 1;
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - start.tv_sec + (now.tv_nsec - start.tv_nsec) * 1e-9 < seconds);
}
";

/// A folder to run in, which is the home folder too.
pub(crate) struct Place {
    pub(crate) folder: tempfile::TempDir,
}

/// What a command answered.
pub(crate) struct Answer {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Answer {
    fn from(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).unwrap(),
            err: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

impl Place {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn put(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, bytes).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path
    }

    pub(crate) fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).env("HOME", self.path("home"));
        for name in ["GRIND_OPTS", "VALGRIND_OPTS"] {
            command.env_remove(name);
        }
        command
    }

    pub(crate) fn grind(&self, args: &[&str]) -> Answer {
        self.command(Path::new(env!("CARGO_BIN_EXE_grind"))).args(args).output().unwrap().into()
    }

    pub(crate) fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(self.folder.path())
            .unwrap()
            .map(|e| e.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// Compiles a C program, or explains why it cannot. Where everything must be tested (CI is set), it has to be.
    pub(crate) fn compile(&self, name: &str, source: &str, options: &[&str]) -> Option<PathBuf> {
        let (file, program) = (self.put(&format!("{name}.c"), source.as_bytes(), 0o600), self.path(name));
        let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("../include");
        let Ok(output) =
            Command::new("gcc").arg("-I").arg(include).args(options).arg("-o").arg(&program).arg(&file).output()
        else {
            assert!(std::env::var_os("CI").is_none(), "gcc is needed in CI");
            eprintln!("skipped: gcc is not installed");
            return None;
        };
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Some(program)
    }

    /// The only file whose name starts with `prefix`.
    pub(crate) fn only(&self, prefix: &str) -> String {
        let names: Vec<String> = self.names().into_iter().filter(|n| n.starts_with(prefix)).collect();
        assert_eq!(names.len(), 1, "{names:?}");
        fs::read_to_string(self.path(&names[0])).unwrap()
    }

    /// Runs the command natively.
    pub(crate) fn natively(&self, args: &[&str]) -> Answer {
        self.command(Path::new(args[0])).args(&args[1..]).output().unwrap().into()
    }
}

/// The total of a profile: its `summary:` line, which must be the sum of its rows.
pub(crate) fn total(profile: &str) -> u64 {
    let rows = profile.lines().filter(|l| l.starts_with(|c: char| c.is_ascii_digit()));
    let sum: u64 = rows.map(|l| l.split(' ').nth(1).unwrap().parse::<u64>().unwrap()).sum();
    let summary = profile.lines().last().unwrap().strip_prefix("summary: ").unwrap();
    assert_eq!(summary, sum.to_string());
    sum
}

/// Log lines without the marks and process IDs in front.
pub(crate) fn unmarked(log: &str) -> Vec<&str> {
    log.lines().map(|l| l.get(2..).and_then(|l| l.split_once([' '])).map_or(l, |(_, text)| text)).collect()
}
