//! What the reference gets wrong or does not have: recursion, several parts, odd files, JSON, manners.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn program() -> Command {
    Command::new(env!("CARGO_BIN_EXE_callgrind_annotate"))
}

fn run(folder: &Path, args: &[&str]) -> Output {
    program().args(args).current_dir(folder).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The rows of the function table.
fn table(output: &Output) -> Vec<String> {
    let text = text(output);
    let (_, rest) = text.split_once("file:function\n").expect("a function table");
    rest.lines().skip(1).filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// main calls f (even and odd call each other below it) and fact, which calls itself.
const RECURSION: &str = "\
creator: x\npid: 9\ncmd:  ./r\npart: 1\nevents: Ir\nsummary: 100\n\nob=/bin/r\nfl=r.c\n\
fn=main\n1 5\ncfn=even\ncalls=1 5\n2 45\ncfn=fact\ncalls=1 9\n3 50\n\n\
fn=even\n5 20\ncfn=odd\ncalls=4 7\n5 60\n\n\
fn=odd\n7 15\ncfn=even\ncalls=3 5\n7 55\ncfn=leaf\ncalls=3 11\n8 10\n\n\
fn=fact\n9 40\ncfn=fact\ncalls=9 9\n9 150\ncfn=leaf\ncalls=1 11\n9 10\n\n\
fn=leaf\n11 20\n\ntotals: 100\n";

#[test]
fn recursion_is_shown_as_cycles_and_never_above_the_total() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.out"), RECURSION).unwrap();
    let output = run(folder.path(), &["--inclusive=yes", "--tree=both", "--auto=no", "--threshold=100", "r.out"]);
    assert_eq!(
        table(&output),
        [
            "100 (100.0%)  *  r.c:main [/bin/r]",
            " 50 (50.00%)  >   r.c:fact (1x) [/bin/r]",
            " 45 (45.00%)  >   r.c:even <cycle 1> (1x) [/bin/r]",
            " 50 (50.00%)  < r.c:main (1x) [/bin/r]",
            "  .           < r.c:fact (9x) [/bin/r]",
            " 50 (50.00%)  *  r.c:fact [/bin/r]",
            " 10 (10.00%)  >   r.c:leaf (1x) [/bin/r]",
            "  .           >   r.c:fact (9x) [/bin/r]",
            " 45 (45.00%)  < r.c:main (1x) [/bin/r]",
            " 45 (45.00%)  *  ???:<cycle 1>",
            " 10 (10.00%)  >   r.c:leaf (3x) [/bin/r]",
            "  .           < r.c:even <cycle 1> (4x) [/bin/r]",
            " 25 (25.00%)  *  r.c:odd <cycle 1> [/bin/r]",
            " 10 (10.00%)  >   r.c:leaf (3x) [/bin/r]",
            "  .           >   r.c:even <cycle 1> (3x) [/bin/r]",
            " 45 (45.00%)  < r.c:main (1x) [/bin/r]",
            "  .           < r.c:odd <cycle 1> (3x) [/bin/r]",
            " 20 (20.00%)  *  r.c:even <cycle 1> [/bin/r]",
            "  .           >   r.c:odd <cycle 1> (4x) [/bin/r]",
            " 10 (10.00%)  < r.c:odd <cycle 1> (3x) [/bin/r]",
            " 10 (10.00%)  < r.c:fact (1x) [/bin/r]",
            " 20 (20.00%)  *  r.c:leaf [/bin/r]",
        ]
    );
    let output = run(folder.path(), &["--inclusive", "--cycles=no", "--auto=no", "r.out"]);
    assert_eq!(
        table(&output),
        [
            "200 (200.0%)  r.c:fact [/bin/r]",
            "100 (100.0%)  r.c:even [/bin/r]",
            "100 (100.0%)  r.c:main [/bin/r]",
            " 60 (60.00%)  r.c:odd [/bin/r]",
            " 20 (20.00%)  r.c:leaf [/bin/r]",
        ],
        "the reference's numbers"
    );
}

#[test]
fn parts_are_added_up_and_wrapped_sums_are_not_believed() {
    let folder = tempfile::tempdir().unwrap();
    let body = "fl=a.c\nfn=f\n1 10\ncfn=g\ncalls=1 2\n1 5\nfn=g\n2 5\n";
    let parts = format!(
        "creator: x\npid: 3\ncmd:  a\npart: 1\ndesc: Trigger: one\nevents: Ir\nsummary: 15\n{body}totals: 15\n\
         part: 2\ndesc: Trigger: two\nevents: Ir\nsummary: 18446744073709551606\n{body}totals: 15\n\
         part: 3\ndesc: Trigger: three\nevents: Ir\nsummary: 2\n{body}totals: 15\n"
    );
    fs::write(folder.path().join("p.out"), parts).unwrap();
    let output = run(folder.path(), &["--auto=no", "--inclusive=yes", "p.out"]);
    let report = text(&output);
    assert!(report.contains("\nPart 2: Trigger: two\n"), "{report}");
    assert!(report.contains("Profiled target:  a (PID 3, 3 parts)\n"), "{report}");
    assert!(report.contains("45 (100.0%)  PROGRAM TOTALS\n"), "{report}");
    assert_eq!(table(&output), ["45 (100.0%)  a.c:f", "15 (33.33%)  a.c:g"]);
    fs::write(folder.path().join("q.out"), "events: Ir\nfl=a\nfn=f\n1 1\nevents: Dr\nfl=a\nfn=f\n1 1\n").unwrap();
    let output = run(folder.path(), &["q.out"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("q.out: its parts count different events: `Ir` and `Dr`"));
}

#[test]
fn sources_have_calls_odd_lines_and_an_age() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("inc")).unwrap();
    write("inc/b.h", "one\ntwo\n");
    write("a.c", "int main()\n{\n  f();\n}\n");
    write(
        "c.out",
        "creator: x\nevents: Ir Dr\nfl=a.c\nfn=main\n0 1\n2 3 0\nfi=b.h\n2 7\nfe=a.c\ncfn=f\ncalls=2 9\n3 20 4\n\
                    fn=f\n9 20 4\nfl=gone.c\nfn=g\n1 2\n",
    );
    let args = ["--context=0", "--include=inc", "c.out", "a.c"];
    let report = text(&run(folder.path(), &args));
    let (_, sources) = report.split_once("-- User-annotated").unwrap();
    assert!(sources.contains("\n 3 ( 9.09%) 0           {\n-- line 2 ---"), "{sources}");
    assert!(sources.contains("\n .          .             f();\n20 (60.61%) 4 (100.0%)  => a.c:f (2x)\n"), "{sources}");
    assert!(sources.contains("\n20 (60.61%) 4 (100.0%)  <bogus line 9>\n"), "{sources}");
    assert!(sources.contains("@@ Information recorded about lines past the end of 'a.c'.\n"), "{sources}");
    assert!(sources.contains("\n 1 ( 3.03%) .           <counts for unidentified lines in a.c>\n"), "{sources}");
    assert!(sources.contains("-- Auto-annotated source: inc/ + b.h\n"), "{sources}");
    assert!(sources.contains("could not be found:\n"), "{sources}");
    assert!(sources.contains("\n  gone.c\n"), "{sources}");
    assert!(sources.ends_with("10 (30.30%) 0           events annotated\n\n"), "{sources}");
    assert!(!report.contains("is more recent"), "{report}");
    let old = std::time::SystemTime::UNIX_EPOCH + std::time::Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(folder.path().join("c.out")).unwrap().set_modified(old).unwrap();
    let report = text(&run(folder.path(), &args));
    assert!(report.contains("@ Source file 'a.c' is more recent than input file 'c.out'.\n"), "{report}");
    let missing = run(folder.path(), &["c.out", "none.c"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&missing.stderr).contains("none.c: no such source file"));
    assert_eq!(run(folder.path(), &["--include=nowhere", "c.out"]).status.code(), Some(1));
}

#[test]
fn files_below_the_current_folder_lose_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let here = fs::canonicalize(folder.path()).unwrap();
    let profile = format!(
        "creator: x\nevents: Ir\nfl={0}/a.c\nfn=f\n1 5\ncfi={0}/b.c\ncfn=g\ncalls=1 1\n1 3\nfl={0}/b.c\nfn=g\n1 3\n",
        here.display()
    );
    fs::write(here.join("p.out"), profile).unwrap();
    let output = run(&here, &["--inclusive=yes", "--auto=no", "p.out"]);
    assert_eq!(table(&output), ["8 (100.0%)  a.c:f", "3 (37.50%)  b.c:g"]);
}

#[test]
fn unknown_functions_of_two_objects_stay_apart() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "creator: x\nevents: Ir\nob=/a\nfl=???\nfn=0x1000\n0 5\nfl=s.c\nfn=s\n1 2\nob=/b\nfl=???\nfn=0x1000\n0 4\n\
                   fl=s.c\nfn=s\n1 1\n";
    fs::write(folder.path().join("p.out"), profile).unwrap();
    let rows = |args: &[&str]| table(&run(folder.path(), &[args, &["--auto=no", "--show-percs=no", "p.out"]].concat()));
    assert_eq!(rows(&[]), [" 5  ???:0x1000 [/a]", " 4  ???:0x1000 [/b]", " 3  s.c:s [/b]"]);
    assert_eq!(rows(&["--cycles=no"]), [" 9  ???:0x1000 [/b]", " 3  s.c:s [/b]"]);
}

#[test]
fn thresholds_and_columns_are_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "events: Ir Dr\nfl=a.c\nfn=f\n1 60 1\nfn=g\n2 30 9\nfn=h\n3 10\nfn=z\n3 0\n";
    fs::write(folder.path().join("p.out"), profile).unwrap();
    let rows = |args: &[&str]| table(&run(folder.path(), &[args, &["--auto=no", "p.out"]].concat()));
    assert_eq!(rows(&["--threshold=60"]).len(), 1);
    assert_eq!(rows(&["--threshold=61"]).len(), 2);
    assert_eq!(rows(&["--threshold=0"]).len(), 0);
    assert_eq!(rows(&["--threshold=100"]).len(), 4, "100 means all");
    assert_eq!(rows(&["--sort=Dr"])[0], "30 (30.00%) 9 (90.00%)  a.c:g");
    assert_eq!(
        rows(&["--sort=Ir:50,Dr:50", "--show=Dr,Ir"]),
        ["1 (10.00%) 60 (60.00%)  a.c:f", "9 (90.00%) 30 (30.00%)  a.c:g"]
    );
    assert_eq!(rows(&["--show-percs=no", "--threshold=99.5"]), ["60  1  a.c:f", "30  9  a.c:g", "10  .  a.c:h"]);
    for (args, cause) in
        [(["--sort=Ir:x"], "threshold `x`"), (["--sort=Zz"], "did not appear"), (["--show=Zz"], "did not appear")]
    {
        let output = run(folder.path(), &[&args[..], &["p.out"]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains(cause), "{args:?}");
    }
    assert_eq!(run(folder.path(), &["--threshold=101", "p.out"]).status.code(), Some(2));
}

#[test]
fn the_first_profile_here_is_taken_if_none_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let none = run(folder.path(), &[]);
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no profile is named"));
    for (name, function) in [("cachegrind.out.1", "c"), ("callgrind.out.9", "b"), ("callgrind.out.10", "a")] {
        fs::write(folder.path().join(name), format!("cmd: x\nevents: Ir\nfl=a.c\nfn={function}\n1 5\nsummary: 5\n"))
            .unwrap();
    }
    let output = run(folder.path(), &["--auto=no"]);
    assert!(text(&output).starts_with("Reading data from 'callgrind.out.10'...\n"));
    assert_eq!(table(&output), ["5 (100.0%)  a.c:a"]);
}

#[test]
fn the_report_does_not_depend_on_anything_but_the_profile() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");
    let args = ["--tree=both", "--inclusive=yes", "profiles/wordfreq.clout"];
    let first = run(Path::new(golden), &args);
    for _ in 0..3 {
        assert_eq!(run(Path::new(golden), &args).stdout, first.stdout);
    }
}

#[test]
fn inclusive_costs_of_real_profiles_stay_below_the_total() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden");
    let mut count = 0;
    for entry in fs::read_dir(Path::new(golden).join("profiles")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        // The totals of a run with --cacheuse do not say all of its events.
        if !name.contains(".clout") || name.contains("matmul-use") {
            continue;
        }
        count += 1;
        let file = format!("profiles/{name}");
        let output = run(Path::new(golden), &["--inclusive=yes", "--tree=both", "--threshold=100", "--auto=no", &file]);
        for line in table(&output) {
            for part in line.split('(').skip(1) {
                if let Some((number, _)) = part.split_once("%)") {
                    let percent: f64 = number.trim().parse().unwrap();
                    assert!(percent <= 100.0, "{name}: {line}");
                }
            }
        }
    }
    assert!(count >= 7, "only {count} profiles");
}

#[test]
fn json_says_what_the_text_says() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.out"), RECURSION).unwrap();
    fs::write(folder.path().join("r.c"), "a\nb\nc\n").unwrap();
    let report = text(&run(folder.path(), &["--json", "--inclusive=yes", "r.out"]));
    for part in [
        "\"schema\": \"callgrind_annotate\"",
        "\"total\": [100]",
        "\"name\": \"???:<cycle 1>\",\n      \"file\": null,\n      \"function\": null,\n      \"object\": null,\n      \"cycle\": 1,\n      \
         \"self\": [35],\n      \"inclusive\": [45]",
        "\"calls\": 9,\n          \"inclusive\": null",
        "\"line\": 2,\n          \"self\": [0],\n          \"text\": \"b\",\n          \"calls\": [",
    ] {
        assert!(report.contains(part), "{part} is not in\n{report}");
    }
}

#[test]
fn inputs_come_from_pipes_and_wrong_ones_are_named_by_line() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = program().args(["--auto=no", "-"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(RECURSION.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(text(&output).starts_with(&format!("{:->80}\nProfile data file '<stdin>' (creator: x)\n", "")));
    fs::write(folder.path().join("bad.out"), "creator: x\nevents: Ir\nfl=a.c\nfn=f\n1 5\nhello\n").unwrap();
    let output = run(folder.path(), &["bad.out"]);
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "callgrind_annotate: error: bad.out:6: malformed line: hello\n"
    );
    let version = run(folder.path(), &["--version"]);
    assert!(text(&version).starts_with("callgrind_annotate-"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/golden/profiles/collatz-ctx.clout");
    let mut child = program()
        .args(["--threshold=100", "--tree=both", golden])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success());
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Programs that read the table, such as PyTorch's, take a line for a function if it is a number and `file:function`, and
/// stop at any other.
#[test]
fn every_row_of_the_table_is_a_number_and_file_and_function() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("r.out"), RECURSION).unwrap();
    let row = regex::Regex::new(r"^\s*([0-9,]+)\s+(.+:.+)$").unwrap();
    for (inclusive, count) in [("yes", 6), ("no", 5)] {
        let inclusive = format!("--inclusive={inclusive}");
        let rows = table(&run(folder.path(), &[&inclusive, "--threshold=100", "--show-percs=no", "r.out"]));
        assert_eq!(rows.iter().take_while(|line| row.is_match(line)).count(), count, "{rows:?}");
    }
}

#[test]
fn a_root_without_cost_of_its_own_is_shown_for_what_it_calls() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "events: Ticks\nfl=a.pl\nfn=main\ncfn=f\ncalls=3 2\n1 30\n\nfn=f\n2 30\n";
    fs::write(folder.path().join("p.out"), profile).unwrap();
    let rows = |args: &[&str]| table(&run(folder.path(), &[args, &["--auto=no", "p.out"]].concat()));
    assert_eq!(rows(&["--inclusive=yes"]), ["30 (100.0%)  a.pl:f", "30 (100.0%)  a.pl:main"]);
    assert_eq!(
        rows(&["--inclusive=yes", "--tree=calling"]),
        ["30 (100.0%)  *  a.pl:f", "30 (100.0%)  *  a.pl:main", "30 (100.0%)  >   a.pl:f (3x)"]
    );
    assert_eq!(rows(&[]), ["30 (100.0%)  a.pl:f"]);
}

#[test]
fn a_number_without_a_name_costs_the_name_alone() {
    let folder = tempfile::tempdir().unwrap();
    let profile = "version: 1\nevents: Ticks\ncmd: ./a b\n\nfl=(1) a.py\nfn=(1) main\n1 10\ncfl=(7)\ncfn=(7)\ncalls=1 0\n\
                   2 5\nfl=(2) b.py\nfn=(2) g\n3 7\n";
    fs::write(folder.path().join("p.out"), profile).unwrap();
    let output = run(folder.path(), &["--inclusive=yes", "--auto=no", "--show-percs=no", "p.out"]);
    assert!(text(&output).contains("\nProfiled target:  ./a b\n"), "{}", text(&output));
    assert_eq!(table(&output), ["   15  a.py:main", "    7  b.py:g", "    5  ???:(7)"]);
    assert_eq!(
        String::from_utf8_lossy(&output.stderr),
        "callgrind_annotate: warning: p.out: a number stands for a name that the profile does not have (2 times): it is \
         shown as (NUMBER) or ???\n"
    );
}

#[test]
fn a_source_that_was_asked_for_says_if_nothing_is_known_of_it() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("p.out"), "events: Ir\nfl=a.c\nfn=f\n1 5\n").unwrap();
    fs::write(folder.path().join("other.c"), "int x;\n").unwrap();
    let report = text(&run(folder.path(), &["--auto=no", "p.out", "other.c"]));
    let rule = "-".repeat(80);
    let end = format!(
        "{rule}\n-- User-annotated source: other.c\n{rule}\n  No information has been collected for other.c\n\n"
    );
    assert!(report.ends_with(&end), "{report}");
}

/// Of a total or a sum below 0 there is no part to reach; the rows are the reference's.
#[test]
fn negative_counts_are_sorted_and_cut() {
    let folder = tempfile::tempdir().unwrap();
    let rows = |counts: &[&str], args: &[&str]| -> Vec<String> {
        let mut profile = "events: Ir Dr\nfl=a.c\n".to_owned();
        for (i, counts) in counts.iter().enumerate() {
            profile += &format!("fn=f{i}\n1 {counts}\n");
        }
        fs::write(folder.path().join("p.out"), profile).unwrap();
        let rows = table(&run(folder.path(), &[args, &["--auto=no", "--show-percs=no", "p.out"]].concat()));
        rows.iter().map(|row| row.rsplit(':').next().unwrap().to_owned()).collect()
    };
    assert_eq!(rows(&["-60", "30", "-10"], &["--threshold=10"]), ["f1"]);
    assert_eq!(rows(&["-60", "30", "-10"], &["--threshold=100"]), ["f1", "f2", "f0"]);
    assert_eq!(rows(&["-60", "-30", "-10"], &["--threshold=50"]), ["f2", "f1", "f0"]);
    assert_eq!(rows(&["-60", "60", "-10", "10"], &["--threshold=50"]), ["f1"]);
    assert_eq!(rows(&["8", "-136", "7"], &["--sort=Ir:80"]), ["f0"]);
    assert!(rows(&["-60", "30", "-10"], &["--threshold=0"]).is_empty());
    // Of the second event nothing need be covered, but no less than nothing.
    let two = ["-48 -228", "-198 -4", "5 -20", "171 -21", "365 -3"];
    assert_eq!(rows(&two, &[]), ["f4", "f3", "f2", "f0", "f1"]);
    assert_eq!(rows(&["37 -102", "425 12", "92 124"], &["--threshold=50"]), ["f1"]);
}

#[test]
fn a_missing_and_an_empty_profile_are_answered() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("callgrind.out.7"), "").unwrap();
    let complaint = |args: &[&str]| String::from_utf8(run(folder.path(), args).stderr).unwrap();
    assert_eq!(
        complaint(&["none"]),
        "callgrind_annotate: error: File none not opened: No such file or directory (the newest profile here is \
         'callgrind.out.7')\n"
    );
    assert!(complaint(&["callgrind.out.7"]).contains("callgrind.out.7:1: missing an `events:` line: it is empty"));
}

#[test]
fn sources_are_read_where_they_are_now() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("here")).unwrap();
    fs::write(folder.path().join("here/a.c"), "int x;\n").unwrap();
    fs::write(folder.path().join("p.out"), "events: Ir\nfl=/build/a.c\nfn=f\n1 5\n").unwrap();
    assert!(text(&run(folder.path(), &["p.out"])).contains("could not be found:\n"));
    let report = text(&run(folder.path(), &["--map-source=/build=here", "p.out"]));
    assert!(report.contains("-- Auto-annotated source: /build/a.c\n") && report.contains("  int x;\n"), "{report}");
}
