//! What a reviewer is shown of two profiles: functions before and after, bounds on them, changed sources, builds in two folders.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn run(folder: &Path, args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_annotate")).args(args).current_dir(folder).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// Two versions of a program in two folders: f costs 10 % more, g is new, h is gone, and same is as it was.
fn versions() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    write("base/src/a.c", "int f()\n{\n  slow();\n}\nint h() {}\n");
    write("head/src/a.c", "/* new */\nint f()\n{\n  slower();\n}\nint g() {}\n");
    write("base/src/b.c", "same\n");
    write("head/src/b.c", "same\n");
    write(
        "before",
        "cmd: x\nevents: Ir Dr\nfl=base/src/a.c\nfn=f\n1 400 1\n3 600 9\nfn=h\n5 50 0\nfl=base/src/b.c\nfn=same\n1 8950 0\n\
         summary: 10000 10\n",
    );
    write(
        "after",
        "cmd: x\nevents: Ir Dr\nfl=head/src/a.c\nfn=f\n2 400 1\n4 700 9\nfn=g\n6 2 0\nfl=head/src/b.c\nfn=same\n1 8950 0\n\
         summary: 10052 10\n",
    );
    folder
}

const DIFF: [&str; 3] = ["--diff", "before", "after"];

#[test]
fn functions_are_shown_before_and_after() {
    let folder = versions();
    let report = text(&run(folder.path(), &[&DIFF[..], &["--growth", "--match-paths"]].concat()).stdout);
    let (_, section) = report.split_once("-- Function growth\n").expect("the section");
    let (_, section) = section.split_once('\n').unwrap();
    let expected = "Ir before  after  change    growth  file:function\n\n\
                    \x20   1,000  1,100    +100   +10.00%  src/a.c:f\n\
                    \x20      50      0     -50  -100.00%  src/a.c:h\n\
                    \x20       0      2      +2       new  src/a.c:g\n\n\
                    Dr: no function changed\n\n";
    assert!(section.starts_with(expected), "{section}");
    let plain = text(&run(folder.path(), &DIFF).stdout);
    assert!(!plain.contains("Function growth"), "the reference's layout stays");
    let gate = text(&run(folder.path(), &[&DIFF[..], &["--fail-above=Ir:5"]].concat()).stdout);
    assert!(gate.contains("Function growth"));

    let markdown = text(&run(folder.path(), &[&DIFF[..], &["--github-summary", "--match-paths"]].concat()).stdout);
    let expected = "<details><summary>Ir: 3 functions changed</summary>\n\n\
                    | Ir before | After | Change | % | Function | File |\n\
                    | ---: | ---: | ---: | ---: | :--- | :--- |\n\
                    | 1,000 | 1,100 | +100 | +10.00% | f | src/a.c |\n\
                    | 50 | 0 | -50 | -100.00% | h | src/a.c |\n\
                    | 0 | 2 | +2 | new | g | src/a.c |\n";
    assert!(markdown.contains(expected), "{markdown}");
    let json = text(&run(folder.path(), &[&DIFF[..], &["--json", "--match-paths"]].concat()).stdout);
    let expected = "\"file\": \"src/a.c\",\n      \"function\": \"g\",\n      \"before\": [0, 0],\n      \"after\": [2, 0],\n      \
                    \"growth_percent\": [\n        null,\n        null\n      ]";
    assert!(json.contains(expected), "{json}");
}

#[test]
fn each_function_may_have_a_bound() {
    let folder = versions();
    let gate = |bound: &str, more: &[&str]| {
        let bound = format!("--fail-above-function={bound}");
        let output = run(folder.path(), &[&DIFF[..], &["--match-paths", &bound], more].concat());
        let told = text(&output.stderr);
        let told: Vec<String> = told.lines().skip(1).map(str::to_owned).collect();
        (output.status.code().unwrap(), told)
    };
    let grown = "cg_annotate: src/a.c:f: Ir grew by 10.00%, from 1,000 to 1,100: more than 9.9%".to_owned();
    assert_eq!(gate("Ir:9.9", &[]), (3, vec![grown.clone()]), "g is below the threshold");
    assert_eq!(gate("Ir:10", &[]), (0, vec![]));
    assert_eq!(gate("Dr:0", &[]), (0, vec![]));
    let new = "cg_annotate: src/a.c:g: Ir grew from nothing, from 0 to 2: more than 9.9%".to_owned();
    assert_eq!(gate("Ir:9.9", &["--threshold=0.01"]), (3, vec![grown.clone(), new]));
    assert_eq!(gate("Ir:9.9", &["--json"]), (3, vec![grown]));
    assert_eq!(gate("Xx:1", &[]).0, 1);
    let markdown =
        run(folder.path(), &[&DIFF[..], &["--match-paths", "--github-summary", "--fail-above-function=Ir:5"]].concat());
    let expected = "\n**1 function above 5.0% in Ir**\n\n| Ir before | After | Change | % | Function | File |\n\
                    | ---: | ---: | ---: | ---: | :--- | :--- |\n| 1,000 | 1,100 | +100 | +10.00% | f | src/a.c |\n";
    assert!(text(&markdown.stdout).contains(expected), "{}", text(&markdown.stdout));
    assert_eq!(run(folder.path(), &["--fail-above-function=Ir:5", "before"]).status.code(), Some(2), "needs --diff");
}

#[test]
fn a_changed_source_is_shown_with_the_counts_of_both_sides() {
    let folder = versions();
    let report = text(&run(folder.path(), &[&DIFF[..], &["--growth", "--match-paths", "--show=Ir"]].concat()).stdout);
    let (_, source) = report.split_once("-- Annotated source file: src/a.c\n").expect("the source");
    let (_, source) = source.split_once('\n').unwrap();
    let expected = "- base/src/a.c\n+ head/src/a.c\n\n\
                    Ir before  after  change  \n\n\
                    \x20       .      .       .  + /* new */\n\
                    \x20     400    400       0    int f()\n\
                    \x20       .      .       .    {\n\
                    \x20     600      .    -600  -   slow();\n\
                    \x20       .    700    +700  +   slower();\n\
                    \x20       .      .       .    }\n\
                    \x20      50      .     -50  - int h() {}\n\
                    \x20       .      2      +2  + int g() {}\n\n";
    assert!(source.starts_with(expected), "{source}");
    assert!(
        report.contains("52 (100.0%)    annotated: files known & above threshold & readable, line numbers known\n"),
        "{report}"
    );
    let plain = text(&run(folder.path(), &[&DIFF[..], &["--match-paths"]].concat()).stdout);
    assert!(
        plain.contains("two or more of these original files are not identical:\n- base/src/a.c\n- head/src/a.c\n"),
        "{plain}"
    );
    let json = text(&run(folder.path(), &[&DIFF[..], &["--growth", "--match-paths", "--json"]].concat()).stdout);
    let expected = "\"line_before\": 3,\n          \"line_after\": null,\n          \"before\": [600, 9],\n          \"after\": null,\n          \
                    \"text\": \"  slow();\"";
    assert!(json.contains(expected), "{json}");
}

#[test]
fn builds_in_two_folders_are_noticed() {
    let folder = versions();
    let output = run(folder.path(), &DIFF);
    let substitution = r"s/^(?:base\/|head\/)//";
    assert_eq!(
        text(&output.stderr),
        format!(
            "cg_annotate: 2 source files differ only by a folder, 'base/' and 'head/': --match-paths compares them, and so does \
             --mod-filename='{substitution}'\n"
        )
    );
    let body = |args: &[&str]| {
        let report = text(&run(folder.path(), &[&DIFF[..], args].concat()).stdout);
        report.split_once("-- Summary").unwrap().1.to_owned()
    };
    let by_hand = format!("--mod-filename={substitution}");
    assert_eq!(body(&["--match-paths"]), body(&[&by_hand]), "what is told does what is asked for");
    assert!(body(&[]).contains("base/src/b.c") && !body(&["--match-paths"]).contains("src/b.c:same"));
    let output = run(folder.path(), &["--diff", "--match-paths", "before", "before"]);
    assert!(text(&output.stderr).contains("do not differ by a folder alone; none is renamed"));
    assert_eq!(run(folder.path(), &["--match-paths", "before"]).status.code(), Some(2), "needs --diff");
}

#[test]
fn sources_are_read_where_they_are_now() {
    let folder = versions();
    fs::rename(folder.path().join("base"), folder.path().join("moved")).unwrap();
    let report = |args: &[&str]| text(&run(folder.path(), &[args, &["before"]].concat()).stdout);
    assert!(report(&[]).contains("unreadable:\n- base/src/a.c\n"));
    let mapped = report(&["--map-source=base=moved"]);
    assert!(mapped.contains("-- Annotated source file: base/src/a.c\n") && mapped.contains("  slow();\n"), "{mapped}");
    assert_eq!(run(folder.path(), &["--map-source=base", "before"]).status.code(), Some(2));
}
