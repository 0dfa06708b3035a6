//! The manual page and the completions in the repository are those that the table of options makes.
//!
//! `BLESS=1 cargo test -p grind manual::` writes them anew.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use grind::manual::{Shell, page};
use grind::options::callgrind;
use grind::options::table::{OPTIONS, Opt};

fn options() -> impl Iterator<Item = &'static Opt> {
    OPTIONS.iter().chain(callgrind::OPTIONS)
}

fn man() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../man")
}

fn compare(path: &Path, made: &str) {
    if std::env::var_os("BLESS").is_some() {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, made).unwrap();
    }
    let kept = fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e} (make it with BLESS=1)", path.display()));
    assert!(kept == made, "{} is out of date: run the test with BLESS=1", path.display());
}

#[test]
fn the_manual_page_is_up_to_date() {
    let narrative = fs::read_to_string(man().join("grind.1.in")).unwrap();
    let made = page(&narrative);
    compare(&man().join("grind.1"), &made);
    for name in options().flat_map(|o| o.names) {
        assert!(made.contains(&format!("\\fB{}\\fR", name.replace('-', "\\-"))), "{name} is not in the manual");
    }
    assert!(!made.lines().any(|l| l.starts_with('@')), "a placeholder was left over");
}

#[test]
fn the_completions_are_up_to_date() {
    for (shell, name) in Shell::ALL {
        compare(&man().join("completions").join(name), &shell.completion());
    }
}

#[test]
fn the_manual_page_is_well_formed() {
    // groff is not everywhere; where it is, it must have nothing to complain about.
    let Ok(output) =
        Command::new("groff").args(["-man", "-Tutf8", "-ww", "-Wbreak", "-z"]).arg(man().join("grind.1")).output()
    else {
        eprintln!("skipped: groff is not installed");
        return;
    };
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

/// What bash offers after `line`.
fn bash(line: &str) -> Vec<String> {
    let script = format!(
        "source {}; COMP_LINE='{line}'; COMP_POINT=${{#COMP_LINE}}; \
         COMP_WORDS=(${{COMP_LINE//=/ = }}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); compopt() {{ :; }}; _grind; \
         printf '%s\\n' \"${{COMPREPLY[@]}}\"",
        man().join("completions/grind.bash").display()
    );
    let output = Command::new("bash").args(["--norc", "-c", &script]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    String::from_utf8(output.stdout).unwrap().lines().filter(|l| !l.is_empty()).map(str::to_owned).collect()
}

#[test]
fn bash_completes_options() {
    assert_eq!(bash("grind --trace-children=y"), ["yes"]);
    assert_eq!(bash("grind --cacheg"), ["--cachegrind-out-file="]);
    assert_eq!(bash("grind --callg"), ["--callgrind-out-file="]);
    assert_eq!(bash("grind --tool="), ["cachegrind", "callgrind"]);
    assert_eq!(bash("grind -q --cpu="), ["baseline", "host", "haswell"]);
    assert_eq!(bash("grind ls --trace-ch"), Vec::<String>::new());
    assert!(bash("grind -q tru").contains(&"true".to_owned()));
}

#[test]
fn documents_only_name_options_that_exist() {
    /// Of other programs.
    const OTHERS: &[&str] = &[
        "--release",
        "--bin",
        "--path",
        "--workspace",
        "--name",
        "--cachegrind",
        "--PID",
        "--callgrind",
        "--by-context",
        "--back",
        "--dump",
        "--tree",
        "--inclusive",
        "--sort",
        "--show",
        "--threshold",
        "--diff",
        "--fail-above",
        "--open",
    ];
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for document in ["README.md", "man/grind.1.in"] {
        let text = fs::read_to_string(root.join(document)).unwrap().replace("\\-", "-");
        let text = ["\\fB", "\\fI", "\\fR"].iter().fold(text, |text, font| text.replace(font, ""));
        let mut seen = 0;
        for (at, _) in text.match_indices("--") {
            if text[..at].ends_with(|c: char| c == '-' || c.is_ascii_alphanumeric()) || text[at..].starts_with("---") {
                continue;
            }
            let name: String = text[at..].chars().take_while(|c| *c == '-' || c.is_ascii_alphanumeric()).collect();
            let name = name.trim_end_matches('-');
            // A mark in the log, the end of options, or a comment of Markdown.
            if name.is_empty() || OTHERS.contains(&name) {
                continue;
            }
            let known =
                options().any(|o| o.names.contains(&name)) || callgrind::numbered(&format!("{name}1")).is_some();
            assert!(known, "{document} names {name}");
            seen += 1;
        }
        assert!(seen > 5, "{document}: only {seen} options were found");
    }
}
