//! A small package is run, tested and compared by `cargo grind`, as a user would: with the programs of grind beside it.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

/// Runs `cargo-grind` on the package; its output.
fn grind(package: &Path, words: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cargo-grind"))
        .arg("grind")
        .args(words.split(' '))
        .current_dir(package)
        .env_remove("CARGO_TARGET_DIR")
        .output()
        .expect("cargo-grind")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// The instructions of the functions whose names contain `function`, in a profile.
fn instructions(profile: &Path, function: &str) -> i64 {
    let text = fs::read_to_string(profile).unwrap_or_else(|e| panic!("{}: {e}", profile.display()));
    let mut inside = false;
    let mut sum = 0;
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("fn=") {
            inside = name.contains(function);
        } else if inside && line.starts_with(|c: char| c.is_ascii_digit()) {
            sum += line.split(' ').nth(1).and_then(|n| n.parse::<i64>().ok()).expect("a count");
        }
    }
    sum
}

fn shell(folder: &Path, script: &str) {
    let output = Command::new("sh").args(["-euc", script]).current_dir(folder).output().expect("sh");
    assert!(output.status.success(), "{script}: {}", text(&output.stderr));
}

fn main_of(rounds: u32) -> String {
    format!(
        "#[inline(never)]\npub fn turns(mut n: u64) -> u64 {{\n    for i in 0..{rounds} {{\n        n = std::hint::black_box(n ^ i);\n    \
         }}\n    n\n}}\nfn main() {{\n    let words: Vec<String> = std::env::args().skip(1).collect();\n    println!(\"{{}} \
         {{words:?}}\", turns(1) > 0);\n    std::process::exit(i32::from(words.iter().any(|w| w == \"fail\")) * 7);\n}}\n\
         #[test]\nfn it_turns() {{\n    assert!(turns(2) < 1 << 40);\n}}\n"
    )
}

#[test]
fn a_package_is_run_tested_and_compared() {
    // The programs that are called lie beside this one.
    grind_tests::tools::build(&["grind", "cg-annotate", "cg-diff", "callgrind-annotate"]).expect("programs of grind");

    let dir = tempfile::tempdir().expect("a temporary folder");
    let package = dir.path().join("a package");
    fs::create_dir_all(package.join("src")).expect("a folder");
    fs::create_dir_all(package.join("examples")).expect("a folder");
    // `strip` would take names away.
    let manifest =
        "[package]\nname = \"turner\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[profile.release]\nstrip = true\n";
    fs::write(package.join("Cargo.toml"), manifest).expect("a manifest");
    fs::write(package.join("src/main.rs"), main_of(1000)).expect("a source");
    fs::write(package.join("examples/small.rs"), "fn main() { println!(\"small\"); }\n").expect("a source");
    fs::write(package.join(".gitignore"), "/target\n").expect("a file");
    let commit = "git add -A && git -c user.name=n -c user.email=n@n commit -qm";
    shell(&package, &format!("git init -q && {commit} first && git tag first"));
    let profiles = package.join("target/grind");

    // Its words, its output, names and lines in spite of `strip`, and a table behind it.
    let ran = grind(&package, "run -- one --two");
    let said = text(&ran.stdout);
    assert!(ran.status.success(), "{said}{}", text(&ran.stderr));
    assert!(said.starts_with("true [\"one\", \"--two\"]\n") && said.contains("PROGRAM TOTALS"), "{said}");
    let counted = instructions(&profiles.join("cachegrind.out.turner"), "turner::turns");
    assert!((2000..20_000).contains(&counted), "1000 rounds in {counted} instructions: optimized, and counted");
    let profile = fs::read_to_string(profiles.join("cachegrind.out.turner")).expect("a profile");
    assert!(profile.contains("src/main.rs\n"), "with files");

    // The status is the program's, and its profile is there.
    let failed = grind(&package, "run -- fail");
    assert_eq!(failed.status.code(), Some(7), "{}", text(&failed.stderr));
    assert!(text(&failed.stdout).contains("PROGRAM TOTALS"));

    // A test, with the call graph; an example.
    let tested = grind(&package, "--tool=callgrind test turns");
    let said = text(&tested.stdout);
    assert!(tested.status.success() && said.contains("1 passed"), "{said}{}", text(&tested.stderr));
    assert!(profiles.join("callgrind.out.turner").is_file() && said.contains("PROGRAM TOTALS"), "{said}");
    let small = grind(&package, "--show=nothing example small");
    assert_eq!(text(&small.stdout), "small\n", "{}", text(&small.stderr));
    assert!(profiles.join("cachegrind.out.small").is_file());

    // The files as they are against a commit; then two commits.
    fs::write(package.join("src/main.rs"), main_of(3000)).expect("a source");
    for commits in ["first", "first..second"] {
        let compared = grind(&package, &format!("compare {commits} run"));
        let said = text(&compared.stderr);
        assert!(compared.status.success(), "{said}{}", text(&compared.stdout));
        let difference = instructions(&profiles.join("difference.cachegrind.out.turner"), "turner::turns");
        assert_eq!(difference, 2 * counted / 1000 * 1000, "{said}");
        assert!(text(&compared.stdout).contains("turner::turns"));
        let trees = Command::new("git").args(["worktree", "list"]).current_dir(&package).output().expect("git");
        assert_eq!(text(&trees.stdout).lines().count(), 1, "no work tree is left");
        shell(&package, &format!("{commit} second || true; git tag -f second"));
    }

    // What is wrong is said.
    for (words, wanted) in [
        ("compare nowhere run", "git knows no commit \"nowhere\""),
        ("compare first", "cargo grind compare main run"),
        ("compare first walk", "run, test, bench or example"),
        ("--tool=callgrind compare first run", "cg_report NEW --base OLD"),
        ("run --bin none", "no bin target"),
    ] {
        let wrong = grind(&package, words);
        let said = text(&wrong.stderr);
        assert!(!wrong.status.success() && said.contains(wanted), "{words}: {said}");
    }
}
