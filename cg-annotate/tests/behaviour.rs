//! What the golden cases do not show: gate, JSON, Markdown, warnings, compressed and odd inputs, colour, pipes.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, SystemTime};

use grind_tests::json::{documented, printed as keys};

const OLD: &str = "cmd: x\nevents: Ir Dr\nfl=a.c\nfn=f\n1 50 1\n3 50 1\nsummary: 100 2\n";
const NEW: &str = "cmd: x\nevents: Ir Dr\nfl=a.c\nfn=f\n1 50 1\n3 52 1\nsummary: 102 2\n";

fn command(folder: &Path, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_cg_annotate"));
    command.args(args).current_dir(folder).env_remove("NO_COLOR");
    command
}

fn run(folder: &Path, args: &[&str]) -> Output {
    command(folder, args).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("old"), OLD).unwrap();
    fs::write(folder.path().join("new"), NEW).unwrap();
    folder
}

#[test]
fn the_gate_has_its_own_exit_status() {
    let folder = folder();
    let gate = |args: &[&str]| {
        let output = run(folder.path(), &[&["--diff"], args].concat());
        (output.status.code().unwrap(), text(&output.stderr))
    };
    assert_eq!(gate(&["--fail-above=Ir:2", "old", "new"]), (0, String::new()), "2% is not more than 2%");
    let failed = "cg_annotate: Ir grew by 2.00%, from 100 to 102: more than 1.9%\n".to_owned();
    assert_eq!(gate(&["--fail-above=Ir:1.9", "old", "new"]), (3, failed.clone()));
    assert_eq!(gate(&["--fail-above=Dr:0", "--fail-above=Ir:1.9", "--json", "old", "new"]), (3, failed));
    assert_eq!(gate(&["--fail-above=Ir:1.9", "new", "old"]).0, 0, "less is not more");
    assert_eq!(gate(&["--fail-above=Xx:1", "old", "new"]).0, 1);
    fs::write(folder.path().join("none"), "cmd: x\nevents: Ir Dr\nsummary: 0 0\n").unwrap();
    let (code, message) = gate(&["--fail-above=Ir:1000000", "none", "new"]);
    assert_eq!(
        (code, message.as_str()),
        (3, "cg_annotate: Ir grew from nothing, from 0 to 102: more than 1000000.0%\n")
    );
    assert_eq!(run(folder.path(), &["--fail-above=Ir:1", "old"]).status.code(), Some(2), "needs --diff");
}

#[test]
fn the_gate_knows_nothing_and_less_than_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let profile = |name: &str, total: i64| {
        let text = format!("cmd: x\nevents: Ir\nfl=a\nfn=f\n1 {total}\nsummary: {total}\n");
        fs::write(folder.path().join(name), text).unwrap();
    };
    let gate = |before: i64, after: i64, bound: &str| {
        profile("before", before);
        profile("after", after);
        let output = run(folder.path(), &["--diff", "--fail-above", bound, "before", "after"]);
        (output.status.code().unwrap(), text(&output.stderr))
    };
    let told = |line: &str| (3, format!("cg_annotate: {line}\n"));
    let fine = (0, String::new());
    assert_eq!(gate(0, 0, "Ir:0"), fine);
    assert_eq!(gate(0, -5, "Ir:0"), fine);
    assert_eq!(gate(0, 1, "Ir:99999"), told("Ir grew from nothing, from 0 to 1: more than 99999.0%"));
    // A bound below zero asks for a saving.
    assert_eq!(gate(100, 90, "Ir:-10"), fine);
    assert_eq!(gate(100, 91, "Ir:-10"), told("Ir grew by -9.00%, from 100 to 91: more than -10.0%"));
    // Differences are profiles, too: from -100 to -98 is more by 2 % of 100.
    assert_eq!(gate(-100, -98, "Ir:1"), told("Ir grew by 2.00%, from -100 to -98: more than 1.0%"));
    assert_eq!(gate(-100, -102, "Ir:0"), fine);
    // Doubles could not tell these apart.
    let large = 9_007_199_254_740_993;
    assert_eq!(gate(large - 1, large, "Ir:0").0, 3);
    assert_eq!(gate(large, large, "Ir:0"), fine);
}

#[test]
fn the_last_of_repeated_options_counts_and_beginnings_of_several_are_refused() {
    let folder = folder();
    let head = |args: &[&str]| {
        let output = run(folder.path(), &[args, &["old"]].concat());
        assert!(output.status.success(), "{args:?}: {}", text(&output.stderr));
        text(&output.stdout)
    };
    assert!(head(&["--threshold=1", "--threshold=2"]).contains("Threshold:        2.0%\n"));
    assert!(head(&["--show=Ir", "--show=Dr"]).contains("Events shown:     Dr\n"));
    assert!(head(&["--auto=yes", "--auto=no"]).contains("Annotation:       off\n"));
    assert!(head(&["--json", "--json"]).starts_with('{'));
    assert!(run(folder.path(), &["--diff", "--diff", "old", "new"]).status.success());
    let output = run(folder.path(), &["--s=Ir", "old"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("ambiguous option: --s could be --show, --sort, --show-percs\n"), "{message}");
}

#[test]
fn markdown_shows_totals_and_bounds() {
    let folder = folder();
    let args = ["--diff", "--github-summary", "--show=Dr", "--fail-above=Ir:1.5", "old", "new"];
    let output = run(folder.path(), &args);
    assert_eq!(output.status.code(), Some(3));
    let expected = "| Event | Before | After | Change | % | Bound | |\n\
                    | :--- | ---: | ---: | ---: | ---: | ---: | :--- |\n\
                    | Dr | 2 | 2 | 0 | +0.00% | | |\n\
                    | Ir | 100 | 102 | +2 | +2.00% | 1.5% | **above** |\n";
    assert!(text(&output.stdout).starts_with(expected), "{}", text(&output.stdout));
    let args = ["--diff", "--github-summary", "--show=Dr", "--fail-above=Ir:5", "--fail-above=Ir:-1", "old", "new"];
    let output = run(folder.path(), &args);
    assert_eq!(output.status.code(), Some(3));
    let expected = "| Dr | 2 | 2 | 0 | +0.00% | | |\n| Ir | 100 | 102 | +2 | +2.00% | -1.0% | **above** |\n";
    assert!(text(&output.stdout).ends_with(expected), "nothing of Dr changed: {}", text(&output.stdout));
    let plain = text(&run(folder.path(), &["--github-summary", "old"]).stdout);
    assert!(plain.starts_with("| Event | Total |\n| :--- | ---: |\n| Ir | 100 |\n| Dr | 2 |\n"), "{plain}");
}

#[test]
fn json_has_the_numbers_of_the_report() {
    let folder = folder();
    fs::write(folder.path().join("a.c"), "one\ntwo\nthree\n").unwrap();
    let expected = r#"{
  "schema": "cg_annotate",
  "version": 1,
  "invocation": "PROGRAM --json --diff old new",
  "inputs": [
    {
      "file": "old",
      "desc": [],
      "command": "x"
    },
    {
      "file": "new",
      "desc": [],
      "command": "x"
    }
  ],
  "difference": true,
  "events": [
    "Ir",
    "Dr"
  ],
  "events_shown": [
    "Ir",
    "Dr"
  ],
  "events_sort": [
    "Ir",
    "Dr"
  ],
  "threshold_percent": 0.1,
  "total": [2, 0],
  "total_before": [100, 2],
  "total_after": [102, 2],
  "growth": [
    {
      "file": "a.c",
      "function": "f",
      "before": [100, 2],
      "after": [102, 2],
      "growth_percent": [
        2,
        0
      ]
    }
  ],
  "files": [
    {
      "name": "a.c",
      "counts": [2, 0],
      "functions": [
        {
          "name": "f",
          "counts": [2, 0]
        }
      ]
    }
  ],
  "functions": [
    {
      "name": "f",
      "counts": [2, 0],
      "files": [
        {
          "name": "a.c",
          "counts": [2, 0]
        }
      ]
    }
  ],
  "sources": [
    {
      "name": "a.c",
      "originals": [
        "a.c"
      ],
      "state": "annotated",
      "newer_than": [],
      "lines": [
        {
          "line": 1,
          "counts": [0, 0],
          "text": "one"
        },
        {
          "line": 3,
          "counts": [2, 0],
          "text": "three"
        }
      ]
    }
  ],
  "annotation": {
    "annotated_line_known": [2, 0],
    "annotated_line_unknown": [0, 0],
    "unannotated_not_identical": [0, 0],
    "unannotated_unreadable": [0, 0],
    "unannotated_below_threshold": [0, 0],
    "unannotated_unknown_file": [0, 0]
  }
}
"#;
    age(&folder.path().join("a.c"));
    let output = run(folder.path(), &["--json", "--diff", "old", "new"]);
    assert_eq!(text(&output.stdout), expected.replace("PROGRAM", env!("CARGO_BIN_EXE_cg_annotate")));
}

#[test]
fn the_manual_names_the_keys_of_the_json() {
    const MANUAL: &str = include_str!("../src/narrative.roff");
    let folder = folder();
    fs::write(folder.path().join("a.c"), "one\n").unwrap();
    fs::write(folder.path().join("odd"), b"cmd: x\nevents: Ir\nfl=caf\xe9.c\nfn=f\n1 5\nsummary: 5\n").unwrap();
    for (version, body) in [("v1", "one\n"), ("v2", "two\n")] {
        fs::create_dir(folder.path().join(version)).unwrap();
        fs::write(folder.path().join(version).join("a.c"), body).unwrap();
        let profile = OLD.replace("fl=a.c", &format!("fl={version}/a.c"));
        fs::write(folder.path().join(format!("of-{version}")), profile).unwrap();
    }
    let all: &[&[&str]] = &[
        &["old"],
        &["--diff", "--fail-above=Ir:1", "--fail-above-function=Ir:1", "old", "new"],
        &["--diff", "--growth", "--threshold=0", "--match-paths", "of-v1", "of-v2"],
        &["odd"],
    ];
    let printed: BTreeSet<String> =
        all.iter().flat_map(|args| keys(&text(&run(folder.path(), &[&["--json"], *args].concat()).stdout))).collect();
    assert_eq!(printed.contains("name_hex"), documented(MANUAL).contains("_hex"));
    let without = |keys: BTreeSet<String>| keys.into_iter().filter(|key| !key.ends_with("_hex")).collect::<Vec<_>>();
    assert_eq!(without(printed), without(documented(MANUAL)));
}

fn age(path: &Path) {
    let old = SystemTime::UNIX_EPOCH + Duration::from_secs(1_577_836_800);
    File::options().write(true).open(path).unwrap().set_modified(old).unwrap();
}

#[test]
fn newer_sources_and_lines_past_the_end_are_warned_of() {
    let folder = folder();
    fs::write(folder.path().join("a.c"), "one\ntwo").unwrap();
    age(&folder.path().join("old"));
    let report = text(&run(folder.path(), &["--context=0", "--show-percs=no", "old"]).stdout);
    let bar = "@".repeat(79);
    let warning = format!("{bar}\n{}@@\n{bar}\n", "@@ WARNING ".repeat(7));
    let expected = format!(
        "-- Annotated source file: a.c\n{dashes}\n\
         {warning}@ Original source files are all newer than data file 'old':\n@ - a.c\n@ Annotations may not be correct.\n{bar}\n\n\
         Ir Dr \n\n\
         50  1  one\n-- line 1 ----------------------------------------\n\
         -- line 3 ----------------------------------------\n\
         \n50  1  <bogus line 3>\n\n\
         {warning}@@ Information recorded about lines past the end of 'a.c'.\n{bar}\n\n",
        dashes = "-".repeat(80)
    );
    assert!(report.contains(&expected), "{report}\nshould contain\n{expected}");
    age(&folder.path().join("a.c"));
    assert!(!text(&run(folder.path(), &["old"]).stdout).contains("newer"));
}

#[test]
fn nothing_of_a_total_that_no_double_holds_is_no_percent() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "cmd: x\nevents: Ir Dr\nfl=a.c\nfn=f\n1 100 0\nfl=b.c\nfn=g\n1 100 9007199254740993\n\
                   summary: 200 9007199254740993\n";
    fs::write(folder.path().join("p"), profile).unwrap();
    let report = text(&run(folder.path(), &["--no-annotate", "p"]).stdout);
    let row = "< 100 (50.0%, 100.0%)                     0   (0.0%, 100.0%)  a.c:f\n";
    assert!(report.contains(row), "{report}");
}

#[test]
fn a_file_without_known_lines_has_one_row_only() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.c"), "one\n").unwrap();
    age(&folder.path().join("a.c"));
    fs::write(folder.path().join("p"), "cmd: x\nevents: Ir\nfl=a.c\nfn=f\n0 5\nsummary: 5\n").unwrap();
    let report = text(&run(folder.path(), &["p"]).stdout);
    let dashes = "-".repeat(80);
    let expected =
        format!("{dashes}\nIr________ \n\n5 (100.0%)  <unknown (line 0)>\n\n{dashes}\n-- Annotation summary\n");
    assert!(report.contains(&expected), "{report}");
}

#[test]
fn files_joined_by_renaming_are_shown_only_if_they_are_the_same() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("v1")).unwrap();
    fs::create_dir(folder.path().join("v2")).unwrap();
    for version in ["v1", "v2"] {
        fs::write(folder.path().join(version).join("a.c"), "same\n").unwrap();
        age(&folder.path().join(version).join("a.c"));
    }
    let profile = "cmd: x\nevents: Ir\nfl=v1/a.c\nfn=f\n1 5\nfl=v2/a.c\nfn=f\n1 7\nsummary: 12\n";
    fs::write(folder.path().join("p"), profile).unwrap();
    let args = [r"--mod-filename=s/^v\d\///", "p"];
    let report = text(&run(folder.path(), &args).stdout);
    assert!(report.contains("12 (100.0%)  same\n"), "{report}");
    fs::write(folder.path().join("v2/a.c"), "other\n").unwrap();
    let report = text(&run(folder.path(), &args).stdout);
    let refusal = "-- Annotated source file: a.c\n".to_owned()
        + &"-".repeat(80)
        + "\nUnannotated because two or more of these original files are not identical:\n- v1/a.c\n- v2/a.c\n\n";
    assert!(report.contains(&refusal), "{report}");
    assert!(
        report.contains("12 (100.0%)  unannotated: files known & above threshold & two or more non-identical\n"),
        "{report}"
    );
    fs::remove_file(folder.path().join("v1/a.c")).unwrap();
    let report = text(&run(folder.path(), &args).stdout);
    let refusal = "Unannotated because one or more of these original files are unreadable:\n- v1/a.c\n- v2/a.c\n\n";
    assert!(report.contains(refusal), "{report}");
}

#[test]
fn devices_and_pipes_are_no_sources() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "cmd: x\nevents: Ir\nfl=/dev/zero\nfn=f\n1 5\nfl=.\nfn=f\n1 5\nsummary: 10\n";
    fs::write(folder.path().join("p"), profile).unwrap();
    let report = text(&run(folder.path(), &["p"]).stdout);
    assert!(report.contains("one or more of these original files are unreadable:\n- /dev/zero\n"), "{report}");
}

#[test]
fn compressed_profiles_and_standard_input_are_read() {
    let folder = folder();
    let body = |output: &Output| {
        assert!(output.status.success(), "{}", text(&output.stderr));
        text(&output.stdout).split_once("-- Summary").unwrap().1.to_owned()
    };
    let plain = body(&run(folder.path(), &["old"]));
    for (tool, ending) in [("gzip", "gz"), ("xz", "xz"), ("zstd", "zst")] {
        let Ok(packed) = Command::new(tool).args(["-c", "old"]).current_dir(folder.path()).output() else {
            assert!(std::env::var_os("CI").is_none(), "{tool} is missing");
            eprintln!("skipped {tool}: it is not installed");
            continue;
        };
        let name = format!("packed.{ending}");
        fs::write(folder.path().join(&name), &packed.stdout).unwrap();
        assert_eq!(body(&run(folder.path(), &[&name])), plain, "{tool}");
        for cut in [9, packed.stdout.len() / 2] {
            fs::write(folder.path().join("cut"), &packed.stdout[..packed.stdout.len() - cut]).unwrap();
            let cut = run(folder.path(), &["cut"]);
            assert_eq!(cut.status.code(), Some(1), "{tool}");
            let message = format!("cg_annotate: error: cut: cannot read: {tool}: the file is cut short\n");
            assert_eq!(text(&cut.stderr), message);
        }
        fs::write(folder.path().join("more"), [&packed.stdout[..], b"cmd: x\n"].concat()).unwrap();
        let more = run(folder.path(), &["more"]);
        assert_eq!(more.status.code(), Some(1), "{tool}");
        assert!(text(&more.stderr).contains(&format!(" more: cannot read: {tool}: ")), "{}", text(&more.stderr));
    }
    let mut child = command(folder.path(), &["-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(OLD.as_bytes()).unwrap();
    assert_eq!(body(&child.wait_with_output().unwrap()), plain);
    let twice = run(folder.path(), &["-", "-"]);
    assert_eq!(text(&twice.stderr), "cg_annotate: error: standard input (`-`) can be read only once\n");
}

#[test]
fn names_may_be_any_bytes() {
    let folder = tempfile::tempdir().unwrap();
    let name = OsStr::from_bytes(b"caf\xe9.c");
    fs::write(folder.path().join(name), b"int \xe9;\n").unwrap();
    age(&folder.path().join(name));
    fs::write(folder.path().join("p"), b"cmd: x\nevents: Ir\nfl=caf\xe9.c\nfn=\xfff\n1 5\nsummary: 5\n").unwrap();
    let report = run(folder.path(), &["p"]).stdout;
    let has = |wanted: &[u8]| report.windows(wanted.len()).any(|window| window == wanted);
    assert!(has(b"caf\xe9.c:\xfff\n"));
    assert!(has(b"5 (100.0%)  int \xe9;\n"));
    let json = text(&run(folder.path(), &["--json", "p"]).stdout);
    assert!(json.contains("\"name_hex\": \"636166e92e63\""), "{json}");
}

#[test]
fn colour_needs_a_terminal_or_an_order() {
    let folder = folder();
    let escapes = |args: &[&str], no_color: Option<&str>| {
        let mut command = command(folder.path(), args);
        no_color.map(|value| command.env("NO_COLOR", value));
        command.output().unwrap().stdout.contains(&0x1b)
    };
    assert!(!escapes(&["old"], None));
    assert!(escapes(&["--color=always", "old"], Some("1")));
    assert!(!escapes(&["--color=never", "old"], None));
    let plain = text(&run(folder.path(), &["old"]).stdout);
    let mut colored = text(&run(folder.path(), &["--color=always", "old"]).stdout);
    for escape in ["\x1b[0m", "\x1b[1m", "\x1b[2m", "\x1b[33m", "\x1b[36m"] {
        colored = colored.replace(escape, "");
    }
    assert_eq!(colored.replace(" --color=always", ""), plain);
}

#[test]
fn a_closed_pipe_ends_quietly_and_a_full_disk_does_not() {
    let folder = folder();
    let many: String = (0..20_000).map(|i| format!("fn=function{i}\n1 5 0\n")).collect();
    let profile = format!("cmd: x\nevents: Ir Dr\nfl=a.c\n{many}summary: 100000 0\n");
    fs::write(folder.path().join("large"), profile).unwrap();
    let mut child = command(folder.path(), &["--threshold=0", "large"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = [0; 10];
    child.stdout.take().unwrap().read_exact(&mut first).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = command(folder.path(), &["old"]).stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("No space left on device"), "{}", text(&output.stderr));
}

#[test]
fn expressions_that_are_wrong_are_shown_with_their_fault() {
    let folder = folder();
    let output = run(folder.path(), &["--mod-filename=s/a(b/c/", "old"]);
    assert_eq!(output.status.code(), Some(2));
    let message = text(&output.stderr);
    assert!(message.contains("missing ), unterminated group at character 4\n  s/a(b/c/\n     ^"), "{message}");
}

#[test]
fn help_and_version_need_no_file() {
    let version = Command::new(env!("CARGO_BIN_EXE_cg_annotate")).arg("--version").output().unwrap();
    assert_eq!(text(&version.stdout), format!("cg_annotate-{}\n", env!("CARGO_PKG_VERSION")));
    assert!(Command::new(env!("CARGO_BIN_EXE_cg_annotate")).arg("-h").output().unwrap().status.success());
}

fn context(name: &str, rows: &str, summary: &str) -> String {
    format!("desc: Context:          {name}\ncmd: x\nevents: Ir Dr\n{rows}summary: {summary}\n")
}

#[test]
fn contexts_are_columns() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write(
        "out",
        "cmd: x\nevents: Ir Dr\nfl=a.c\nfn=f\n1 7000 3\nfn=g\n1 2000 0\nfl=b.c\nfn=g\n1 1000 0\nsummary: 10000 3\n",
    );
    write("out.ctx-10", &context("10", "fl=a.c\nfn=f\n1 1000 1\n", "1000 1"));
    write("out.ctx-9", &context("9", "fl=a.c\nfn=f\n1 2000 0\n3 1000 0\n", "3000 0"));
    write("out.ctx-conv", &context("conv 1", "fl=a.c\nfn=f\n1 3000 2\nfn=g\n1 2000 0\n", "5000 2"));
    write("out.ctx-x", &context("x", "fl=b.c\nfn=g\n1 999 0\nfn=small\n1 1 0\n", "1000 0"));
    let table = "\
9______________  10_____________  conv 1_________  x______________  (all)__________  function

3,000 (30.0%)  1,000 (10.0%)  5,000 (50.0%)  1,000 (10.0%)  10,000 (100.0%)  PROGRAM TOTALS
3,000 (30.0%)  1,000 (10.0%)  3,000 (30.0%)              .    7,000 (70.0%)  f
            .              .  2,000 (20.0%)              .    2,000 (20.0%)  g (a.c)
            .              .              .     999 (10.0%)      999 (10.0%)  g (b.c)
";
    let normal = |text: &str| text.replace('_', " ").split_whitespace().collect::<Vec<_>>().join(" ");
    let output = run(folder.path(), &["--by-context", "out"]);
    assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()));
    let printed = text(&output.stdout);
    assert!(normal(&printed).contains(&normal(table)), "{printed}");
    // Columns are aligned.
    let lines: Vec<&str> =
        printed.lines().skip_while(|l| !l.ends_with("  function")).filter(|l| !l.is_empty()).collect();
    let at = |line: &str, word: &str| line.find(word);
    assert_eq!(at(lines[0], "function"), at(lines[1], "PROGRAM"));
    assert_eq!(at(lines[0], "function"), at(lines[4], "g (b.c)"));
    // The same from the parts, each only once.
    let parts = ["--by-context", "out.ctx-10", "out.ctx-9", "out.ctx-conv", "out.ctx-x", "out"];
    let again = text(&run(folder.path(), &parts).stdout);
    let body = |text: &str| text.split_once("-- Function x context").unwrap().1.to_owned();
    assert_eq!(body(&again), body(&printed));
    // Other events, no percentages, everything above no threshold.
    let args = ["--by-context", "--show=Dr,Ir", "--threshold=0", "--show-percs=no", "out.ctx-10", "out.ctx-x"];
    let counts = text(&run(folder.path(), &args).stdout);
    let table = "Function x context: Dr RULE 10 x (all) function 1 . 1 PROGRAM TOTALS 1 . 1 f";
    let ruled = normal(&counts).replace(&"-".repeat(80), "RULE");
    assert!(ruled.contains(table), "{counts}");
    assert!(
        ruled.ends_with("10 x (all) function 1,000 1,000 2,000 PROGRAM TOTALS 1,000 . 1,000 f . 999 999 g . 1 1 small")
    );
}

#[test]
fn contexts_that_are_none_are_refused() {
    let folder = folder();
    let wrong = |args: &[&str]| {
        let output = run(folder.path(), args);
        (output.status.code().unwrap(), text(&output.stderr))
    };
    let (code, message) = wrong(&["--by-context", "old"]);
    assert_eq!(code, 1);
    assert!(message.contains("old: no context is named in it"), "{message}");
    fs::write(folder.path().join("one"), context("1", "fl=a.c\nfn=f\n1 1 1\n", "1 1")).unwrap();
    fs::write(folder.path().join("two"), "desc: Context: 2\ncmd: x\nevents: Ir\nsummary: 0\n").unwrap();
    let (code, message) = wrong(&["--by-context", "one", "two"]);
    assert_eq!(code, 1);
    assert!(message.contains("two: events in data files don't match: `Ir` here, `Ir Dr` in one"), "{message}");
    assert_eq!(wrong(&["--by-context", "--show=Xx", "one"]).0, 1);
    assert_eq!(wrong(&["--by-context", "--diff", "one", "two"]).0, 2);
}

/// Each message says what is wrong, and what to do.
#[test]
fn what_beginners_do_is_answered() {
    let folder = folder();
    let complaint = |args: &[&str]| {
        let output = run(folder.path(), args);
        assert!(!output.status.success(), "{args:?}");
        text(&output.stderr)
    };
    assert!(
        complaint(&[]).contains("no profile is named, and there is no cachegrind.out* here: `grind PROGRAM` makes one")
    );
    assert_eq!(complaint(&["none"]), "cg_annotate: error: none: No such file or directory\n");
    let write = |name: &str, profile: &str, age: u64| {
        let path = folder.path().join(name);
        fs::write(&path, profile).unwrap();
        let time = std::time::SystemTime::now() - std::time::Duration::from_secs(age);
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
    };
    write("callgrind.out.5", "# callgrind format\nversion: 1\nevents: Ir\n", 1);
    assert!(complaint(&[]).contains("; callgrind_annotate reads 'callgrind.out.5'\n"));
    assert_eq!(
        complaint(&["callgrind.out.5"]),
        "cg_annotate: error: callgrind.out.5:1: missing a `command:` line: this is a profile with a call graph, which \
         callgrind_annotate reads\n"
    );
    write("callgrind.out.6", "version: 1\ncreator: x\nevents: Ir\n", 1);
    assert!(complaint(&["callgrind.out.6"]).contains("a profile with a call graph"));
    write("empty", "", 1);
    assert!(
        complaint(&["empty"])
            .contains("empty:1: missing a `command:` line: it is empty, as a profile is whose program")
    );
    write("cachegrind.out.9", OLD, 30);
    write("cachegrind.out.10", OLD, 20);
    write("cachegrind.out.10.ctx-a", OLD, 10);
    assert_eq!(
        complaint(&["none"]),
        "cg_annotate: error: none: No such file or directory (the newest profile here is 'cachegrind.out.10', or \
         'callgrind.out.6')\n"
    );
    let output = run(folder.path(), &[]);
    assert_eq!(
        text(&output.stderr),
        "cg_annotate: no profile is named: this is 'cachegrind.out.10', the newest here\n"
    );
    assert!(text(&output.stdout).contains("PROGRAM TOTALS"));
    for option in ["--show=Foo", "--sort=Foo"] {
        assert!(
            complaint(&[option, "old"]).contains("event `Foo` did not appear in `events:` line, which has Ir, Dr\n")
        );
    }
    let output = run(folder.path(), &["--diff"]);
    assert!(text(&output.stderr).contains("--diff: requires exactly two"), "{}", text(&output.stderr));
}
