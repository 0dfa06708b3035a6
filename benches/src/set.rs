//! The fixed set of programs: how each is prepared, and the command that runs it.
//!
//! Sources lie in `programs/`; large inputs are generated, the same on every machine. Each is sized to about a second natively.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// One program of the set.
#[derive(Clone, Debug)]
pub(crate) struct Program {
    /// Its name in the table.
    pub(crate) name: &'static str,
    /// The command, as words.
    pub(crate) words: Vec<String>,
    /// Whether it counts towards the geometric mean of the single-threaded ones.
    pub(crate) in_mean: bool,
}

/// Where a program of `PATH` is.
pub(crate) fn find(program: &str) -> Option<PathBuf> {
    std::env::split_paths(&std::env::var_os("PATH")?).map(|d| d.join(program)).find(|p| p.is_file())
}

fn source(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("programs").join(name).display().to_string()
}

/// Compiles one C program of `programs/`.
///
/// # Errors
/// If the compiler is missing or refuses it.
pub(crate) fn compile(dir: &Path, name: &str, flags: &[&str]) -> Result<String> {
    let out = dir.join(name).display().to_string();
    let status = Command::new("gcc").args(["-g", "-o", &out, &source(&format!("{name}.c"))]).args(flags).status();
    ensure!(status.context("gcc")?.success(), "gcc refused {name}.c");
    Ok(out)
}

/// Builds what is asked for in `dir` and says what could not be found.
///
/// # Errors
/// If a compiler fails or `dir` cannot be written.
pub(crate) fn prepare(dir: &Path, wanted: impl Fn(&str) -> bool) -> Result<Vec<Program>> {
    let mut set = Vec::new();
    let mut add = |name: &'static str, in_mean: bool, words: Vec<String>| {
        if words[0].contains('/') || find(&words[0]).is_some() {
            set.push(Program { name, words, in_mean });
        } else {
            eprintln!("{name}: {} not found, left out", words[0]);
        }
    };
    if wanted("fib") {
        add("fib", true, vec![compile(dir, "fib", &["-O1"])?]);
    }
    if wanted("xz") {
        let text = dir.join("text");
        fs::write(&text, prose(1_500_000))?;
        add("xz", true, words(["xz", "-6", "-k", "-c", &text.display().to_string()]));
    }
    // The interpreter itself, not a wrapper in a user's folder.
    let python = ["/usr/bin/python3", "python3"].into_iter().find(|p| Path::new(p).exists()).unwrap_or("python3");
    if wanted("python-objects") {
        add("python-objects", true, words([python, "-B", &source("objects.py")]));
    }
    if wanted("python-json") {
        add("python-json", true, words([python, "-B", &source("encode.py")]));
    }
    if wanted("sqlite3") {
        add("sqlite3", true, words(["sqlite3", ":memory:", &format!(".read {}", source("queries.sql"))]));
    }
    if wanted("cc1") {
        let file = dir.join("large.c");
        fs::write(&file, c_code(90))?;
        let cc1 = Command::new("gcc").arg("-print-prog-name=cc1").output().context("gcc")?;
        let cc1 = String::from_utf8(cc1.stdout)?.trim().to_owned();
        add("cc1", true, words([cc1.as_str(), "-O2", "-quiet", "-o", "/dev/null", &file.display().to_string()]));
    }
    if wanted("perl") {
        add("perl", true, words(["perl", &source("hashes.pl")]));
    }
    if wanted("stencil") {
        add("stencil", true, vec![compile(dir, "stencil", &["-O3", "-mavx2", "-mfma"])?]);
    }
    if wanted("chase") {
        add("chase", true, vec![compile(dir, "chase", &["-O2"])?]);
    }
    if wanted("hydro") {
        add("hydro", false, vec![compile(dir, "hydro", &["-O2", "-lm"])?]);
    }
    if wanted("node") {
        add("node", false, words(["node", &source("mixed.js")]));
    }
    if wanted("two-threads") {
        add("two-threads", false, vec![compile(dir, "threads", &["-O2", "-pthread"])?]);
    }
    Ok(set)
}

fn words<const N: usize>(words: [&str; N]) -> Vec<String> {
    words.map(str::to_owned).to_vec()
}

/// Text that compresses like prose, `size` bytes of it.
fn prose(size: usize) -> String {
    let stems =
        ["instruct", "count", "profil", "pro", "mem", "ca", "exact", "re", "trans", "de", "time", "block", "of", "in"];
    let ends = ["ion ", "er ", "ing ", "s ", "ory ", "che ", "ly ", "late ", "bug ", "e ", ", ", ".\n"];
    let (mut text, mut state) = (String::new(), 1u64);
    while text.len() < size {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        let pick = (state >> 33) as usize;
        text.push_str(stems[pick % stems.len()]);
        text.push_str(ends[pick / 64 % ends.len()]);
        if pick.is_multiple_of(31) {
            let _ = write!(text, "{} ", pick % 10007);
        }
    }
    text
}

/// A C file of `functions` different functions: loops, switches, structures, calls.
fn c_code(functions: u32) -> String {
    let mut code = String::from("struct s { int a, b; struct s *next; double d[4]; };\n");
    for n in 0..functions {
        let _ = write!(
            code,
            "int f{n}(struct s *p, int x, unsigned y) {{\n  int t = x * {k};\n  for (int i = 0; i < (x & {m}); i++) {{\n    \
             switch ((y >> i) % {c}) {{\n    case 0: t += p->a * i; break;\n    case 1: t ^= p->b << {sh}; break;\n    \
             case 2: if (p->next) {{ p = p->next; t -= p->a; }} break;\n    case 3: p->d[i & 3] += t * {k}.5; break;\n    \
             default: t = t / (i + {c}) + (int)y;\n    }}\n  }}\n  {call}\n  return t + (int)p->d[{idx}];\n}}\n",
            k = n * 7 % 31 + 2,
            m = 1 << (n % 5 + 3),
            c = n % 4 + 5,
            sh = n % 9 + 1,
            idx = n % 4,
            call = if n > 2 { format!("t += f{}(p, t & 7, y >> 1);", n - 1 - n % 3) } else { String::new() },
        );
    }
    code
}
