//! `grind doctor`: can programs be profiled here, and how much will be known and be exact?
//!
//! It tries rather than guesses: the one thing that decides whether a program can be traced is to trace one. What the system says of
//! itself (rules for ptrace, seccomp filters, whoever traces grind) only explains a failure. Nothing is changed, and
//! nothing is left behind.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use cg_sim::host::{self, FALLBACK, Found};

use crate::built::{self, Built};

/// What the system says of itself.
#[derive(Clone, Debug, Default)]
struct Facts {
    avx2: bool,
    /// What a trial run said, if it failed.
    failure: Option<String>,
    /// The rule of Yama, where there is one.
    ptrace_scope: Option<u8>,
    /// Whether system calls are filtered (a container, usually).
    seccomp: bool,
    /// The process that traces this one; 0 if there is none.
    tracer: u32,
    caches: Option<[Found; 3]>,
    /// Of the C library, by its path.
    library: Option<Built>,
    /// Of the program that was named.
    program: Option<(String, Option<Built>)>,
}

/// Whether the program can be profiled, and the text.
#[must_use]
pub fn examine(program: Option<&Path>) -> (bool, String) {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let field = |name: &str| status.lines().find_map(|l| number(l.strip_prefix(name)?)).unwrap_or(0);
    let libraries = ["/lib/x86_64-linux-gnu/libc.so.6", "/lib64/libc.so.6", "/usr/lib/libc.so.6"];
    let facts = Facts {
        avx2: std::arch::is_x86_feature_detected!("avx2"),
        failure: trial().err(),
        ptrace_scope: fs::read_to_string("/proc/sys/kernel/yama/ptrace_scope").ok().and_then(|t| t.trim().parse().ok()),
        seccomp: field("Seccomp:") == 2,
        tracer: field("TracerPid:"),
        caches: host::detect(&host::cpuid).0,
        library: libraries.iter().find_map(|path| built::look(Path::new(path))),
        program: program.map(|path| (path.display().to_string(), built::look(path))),
    };
    let program_is_sound = facts.program.as_ref().is_none_or(|(_, built)| built.is_some());
    (facts.avx2 && facts.failure.is_none() && program_is_sound, report(&facts))
}

/// Profiles a program that is there for certain: grind, which tells its version.
fn trial() -> Result<(), String> {
    let own = std::env::current_exe().map_err(|e| e.to_string())?;
    let mut command = Command::new(&own);
    command.args(["-q", "--cachegrind-out-file=/dev/null", "--"]).arg(&own).arg("--version");
    let output = command.stdin(Stdio::null()).output().map_err(|e| e.to_string())?;
    match output.status.success() && output.stdout.starts_with(b"grind-") {
        true => Ok(()),
        false => {
            let said = String::from_utf8_lossy(&output.stderr);
            Err(said.lines().next().map_or_else(|| output.status.to_string(), str::to_owned))
        }
    }
}

fn report(facts: &Facts) -> String {
    let mut text = String::new();
    let mut line = |good: &str, what: &str, found: &str| {
        let _ = writeln!(text, "{good:<5} {what:<12} {found}");
    };
    match facts.avx2 {
        true => line("ok", "processor", "x86-64 with AVX2"),
        false => line("FAILS", "processor", "it has no AVX2, which grind needs: use another machine"),
    }
    match &facts.failure {
        None => line("ok", "tracing", "a program was run and profiled"),
        Some(said) => {
            line("FAILS", "tracing", said);
            if let Some(scope @ 3..) = facts.ptrace_scope {
                let found = format!(
                    "kernel.yama.ptrace_scope is {scope}: nobody may trace, until sysctl and a restart allow it"
                );
                line("", "", &found);
            }
            if facts.seccomp {
                let found = "system calls are filtered, as in a container: start it with --cap-add=SYS_PTRACE, or with a seccomp \
                             profile that permits ptrace, process_vm_readv and personality";
                line("", "", found);
            }
            if facts.tracer != 0 {
                line("", "", &format!("process {} traces grind already (strace, a debugger): end it", facts.tracer));
            }
        }
    }
    match facts.caches {
        Some(caches) => {
            let shape = |c: &Found| format!("{},{},{}", c.size, c.assoc, c.line);
            let [i1, d1, ll] = [&caches[0], &caches[1], &caches[2]].map(shape);
            line(
                "ok",
                "caches",
                &format!("as here: --I1={i1} --D1={d1} --LL={ll} (give these elsewhere for the same misses)"),
            );
        }
        None => {
            let [size, assoc, bytes] = [FALLBACK[0].size, FALLBACK[0].assoc, FALLBACK[0].line];
            let found = format!(
                "not known here; {size},{assoc},{bytes} and a small last level are simulated: give --I1, --D1, --LL"
            );
            line("note", "caches", &found);
        }
    }
    match facts.library {
        Some(Built { lines: true, .. }) => line("ok", "C library", "with names and lines"),
        Some(_) => line(
            "note",
            "C library",
            "without lines: its functions have names only (on Debian: apt-get install libc6-dbg)",
        ),
        None => line("note", "C library", "not found where it usually is"),
    }
    if let Some((name, built)) = &facts.program {
        match built {
            None => line(
                "FAILS",
                "program",
                &format!("{name} is no ELF file that can be read (a script? name its interpreter)"),
            ),
            Some(built) => {
                let missing = match (built.names, built.lines) {
                    (true, true) => None,
                    (true, false) => Some("no lines: build with -g"),
                    (false, _) => Some("no names: it is stripped; build with -g and without -s"),
                };
                match missing {
                    None => line("ok", "program", &format!("{name} has names and lines")),
                    Some(missing) => line("note", "program", &format!("{name} has {missing}")),
                }
                match built.optimized {
                    Some(true) => line("ok", "", "it is optimized"),
                    Some(false) => line("note", "", "it is not optimized: what is hot may not be so with -O2"),
                    None => line("note", "", "whether it is optimized is not written in it (only gcc does so)"),
                }
            }
        }
    }
    text.push_str(
        "\nExact, and the same in every run: instructions and calls of a program that does the same in every run.\n\
         Exact for a model:               misses and mispredictions, for the caches above and a simple predictor.\n\
         Not known:                       time, waiting, and what the kernel does.\n",
    );
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sound() -> Facts {
        let caches = Some(FALLBACK);
        let whole = Built { names: true, lines: true, optimized: Some(true) };
        let program = Some(("./p".to_owned(), Some(whole)));
        Facts { avx2: true, caches, library: Some(whole), program, ..Facts::default() }
    }

    #[test]
    fn a_sound_system_has_nothing_but_good_news() {
        let text = report(&sound());
        assert!(!text.contains("FAILS") && !text.contains("note"), "{text}");
        assert!(text.contains("--I1=65536,2,64") && text.contains("./p has names and lines"), "{text}");
    }

    #[test]
    fn each_defect_says_what_to_do() {
        let failed = |more: Facts| report(&Facts { failure: Some("cannot trace".into()), ..more });
        let cases: [(String, &[&str]); 7] = [
            (report(&Facts { avx2: false, ..sound() }), &["FAILS processor", "another machine"]),
            (
                failed(Facts { ptrace_scope: Some(3), ..sound() }),
                &["FAILS tracing", "cannot trace", "ptrace_scope is 3"],
            ),
            (failed(Facts { seccomp: true, ..sound() }), &["--cap-add=SYS_PTRACE"]),
            (failed(Facts { tracer: 17, ..sound() }), &["process 17 traces grind"]),
            (report(&Facts { caches: None, ..sound() }), &["note  caches", "--D1"]),
            (report(&Facts { library: Some(Built::default()), ..sound() }), &["note  C library", "libc6-dbg"]),
            (
                report(&Facts { program: Some(("./p".into(), Some(Built::default()))), ..sound() }),
                &["stripped", "only gcc"],
            ),
        ];
        for (text, wanted) in cases {
            assert!(wanted.iter().all(|w| text.contains(w)), "{wanted:?} in\n{text}");
        }
        // What explains a failure is not told where there is none.
        let text = report(&Facts { ptrace_scope: Some(3), seccomp: true, tracer: 17, ..sound() });
        assert!(!text.contains("ptrace_scope") && !text.contains("SYS_PTRACE") && !text.contains("17"), "{text}");
    }
}
