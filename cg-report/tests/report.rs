//! The program as it is called: what it writes, what it refuses, and what it leaves behind.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn run(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_cg_report")).args(arguments).current_dir(folder).output().unwrap()
}

/// The page that a command writes to standard output.
fn page(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&["-o", "-"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn path(name: &str) -> String {
    data(name).to_str().unwrap().to_owned()
}

/// The text of an element that holds data.
fn element<'a>(page: &'a str, id: &str) -> &'a str {
    let start = page.find(&format!("id=\"{id}\">")).unwrap() + id.len() + 6;
    &page[start..start + page[start..].find("</script>").unwrap()]
}

#[test]
fn the_report_stands_beside_the_profile_unless_it_is_named() {
    let folder = tempfile::tempdir().unwrap();
    fs::copy(data("exact.cg"), folder.path().join("p.cg")).unwrap();
    assert!(run(folder.path(), &["p.cg"]).status.success());
    assert!(folder.path().join("p.cg.html").exists());
    assert!(run(folder.path(), &["p.cg", "--output=other.html"]).status.success());
    let names: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names.len(), 3, "{names:?}");
    assert_eq!(fs::read(folder.path().join("other.html")).unwrap(), fs::read(folder.path().join("p.cg.html")).unwrap());
}

#[test]
fn the_same_profile_gives_the_same_bytes() {
    assert_eq!(page(&[&path("rust.cg.xz")]), page(&[&path("rust.cg.xz")]));
}

#[test]
fn no_name_command_or_source_becomes_markup() {
    let page = page(&[&path("hostile.cg")]);
    let head = element(&page, "head");
    assert!(head.contains("window.PWN"), "the names are there");
    assert!(!head.contains('<'));
    let data = [element(&page, "data"), element(&page, "rest")].concat();
    assert!(data.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+/=\n".contains(&byte)));
    // Between the beginning and the data only our own markup remains.
    let before = &page[page.find("<noscript>").unwrap()..page.find("<script type=\"application/json\"").unwrap()];
    let known = ["noscript", "h1", "p", "table", "tr", "th", "td"];
    for tag in before.split('<').skip(1) {
        let name = tag.trim_start_matches('/').split(['>', ' ']).next().unwrap();
        assert!(known.contains(&name), "<{tag}");
    }
    assert!(before.contains("&lt;script&gt;window.PWN=7"));
    assert!(before.contains("evil[U+202E]gnp.exe"));
    let title = &page[page.find("<title>").unwrap() + 7..page.find("</title>").unwrap()];
    assert!(!title.contains('<'), "{title}");
}

#[test]
fn the_policy_is_the_first_thing_and_names_the_script_by_its_hash() {
    let page = page(&[&path("exact.cg")]);
    let policy = page.find("Content-Security-Policy").unwrap();
    assert!(policy < page.find("<style>").unwrap() && policy < page.find("<title>").unwrap());
    let text = &page[policy..policy + page[policy..].find("\">\n").unwrap()];
    for part in
        ["default-src 'none'", "script-src 'sha256-", "style-src 'sha256-", "connect-src 'none'", "base-uri 'none'"]
    {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("unsafe"));
}

#[test]
fn only_regular_text_files_become_part_of_the_report() {
    let page = page(&[&path("hostile.cg")]);
    let head = element(&page, "head");
    assert!(!head.contains("\"src.2\""), "/dev/zero is no source file");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.c"), "int main;\n").unwrap();
    fs::write(folder.path().join("b.c"), b"\x7fELF\0\0").unwrap();
    let profile = "events: Ir\nfl=a.c\nfn=f\n1 5\nfl=b.c\nfn=g\n1 4\nfl=c.c\nfn=h\n1 3\n";
    fs::write(folder.path().join("p"), profile).unwrap();
    let states = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["p", "-o", "-"], arguments].concat());
        let page = String::from_utf8(output.stdout).unwrap();
        let head = element(&page, "head").to_owned();
        let states: Vec<String> =
            head.lines().filter_map(|line| Some(line.trim().strip_prefix("\"state\": ")?.to_owned())).collect();
        states.join(" ")
    };
    assert_eq!(states(&[]), "\"ok\" \"binary\" \"missing\"");
    assert_eq!(states(&["--source-limit=3"]), "\"large\" \"large\" \"missing\"");
    assert_eq!(states(&["--source=none"]), "");
    assert_eq!(states(&["--redact"]), "");
}

#[test]
fn a_redacted_report_has_no_folder_command_or_source() {
    let folder = tempfile::tempdir().unwrap();
    let secret = folder.path().join("secret");
    fs::create_dir(&secret).unwrap();
    fs::write(secret.join("a.c"), "int hidden_source;\n").unwrap();
    let profile = format!(
        "creator: x\ncmd: ./run --password=hunter2\ndesc: Timerange: classified\nevents: Ir\nob={0}/prog\nfl={0}/a.c\nfn=f\n1 5\n",
        secret.display()
    );
    fs::write(secret.join("p"), profile).unwrap();
    let output = run(folder.path(), &["secret/p", "--redact", "-o", "-"]);
    let page = String::from_utf8(output.stdout).unwrap();
    let head = element(&page, "head");
    for word in ["secret", "hunter2", "classified"] {
        assert!(!head.contains(word) && !page[..page.find("id=\"head\"").unwrap()].contains(word), "{word}");
    }
    assert!(!head.contains("\"src."));
    let open = run(folder.path(), &["secret/p", "-o", "-"]);
    assert!(String::from_utf8(open.stdout).unwrap().contains("hunter2"), "the test would find it");
}

/// Files that are no good, what is said of them, and that nothing is left behind.
#[test]
fn bad_input_is_named_and_leaves_no_report() {
    let folder = tempfile::tempdir().unwrap();
    let cases: [(&str, &[u8], &str); 7] = [
        ("empty", b"", "empty:1:"),
        ("text", b"this is no profile\n", "text:1:"),
        ("noevents", b"version: 1\n", "noevents:2:"),
        ("badline", b"events: Ir\nfl=a\nfn=f\n1 2\n?\n", "badline:5:"),
        ("huge", b"events: Ir\nfl=a\nfn=f\n1 99999999999999999999\n", "huge:4:"),
        ("sum", b"events: Ir\nfl=a\nfn=f\n1 9223372036854775807\n2 9223372036854775807\n", "sum"),
        (
            "mixed",
            b"part: 1\nevents: Ir\nfl=a\nfn=f\n1 2\npart: 2\nevents: Dr\nfl=a\nfn=f\n1 2\n",
            "different events: `Ir` and `Dr`",
        ),
    ];
    for (name, text, said) in cases {
        fs::write(folder.path().join(name), text).unwrap();
        let output = run(folder.path(), &[name, "-o", "out.html"]);
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{name}: {told}");
        assert!(told.contains(said) && told.starts_with("cg_report: error:"), "{name}: {told}");
        assert!(!folder.path().join("out.html").exists(), "{name}");
    }
    assert_eq!(run(folder.path(), &["nowhere"]).status.code(), Some(1));
    assert_eq!(run(folder.path(), &[]).status.code(), Some(2), "usage");
    assert_eq!(run(folder.path(), &["--max-size=x", "text"]).status.code(), Some(2), "usage");
    fs::write(folder.path().join("ir"), "events: Ir\nfl=a\nfn=f\n1 2\n").unwrap();
    fs::write(folder.path().join("dr"), "events: Dr\nfl=a\nfn=f\n1 2\n").unwrap();
    let output = run(folder.path(), &["ir", "dr"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("ir and dr count different events"));
}

/// Files that are strange but right.
#[test]
fn strange_profiles_become_reports() {
    let folder = tempfile::tempdir().unwrap();
    let long = "x".repeat(10_000);
    let deep: String = (0..100_000)
        .map(|i| format!("fn=f{i}\n1 1\ncfn=f{}\ncalls=1 1\n1 {}\n", i + 1, 100_000 - i))
        .chain(["fn=f100000\n1 1\n".to_owned()])
        .collect();
    let cases = [
        ("zero", "events: Ir\nfl=a\nfn=f\n1 0\n".to_owned()),
        ("near", format!("events: Ir\nfl=a\nfn=f\n1 {}\n", i64::MAX)),
        ("long", format!("events: Ir\nfl=a\nfn={long}\n1 5\n")),
        ("self", "events: Ir\nfl=a\nfn=f\n1 5\ncfn=f\ncalls=3 1\n1 4\n".to_owned()),
        ("freearc", "events: Ir\nfl=a\nfn=f\n1 5\ncfn=g\ncalls=3 1\n1 0\nfn=g\n2 0\n".to_owned()),
        ("deep", format!("events: Ir\nfl=a\n{deep}")),
        ("unnamed", "events: Ir\nfl=???\nfn=???\n0 5\n".to_owned()),
        ("nameless", "events: Ir\nfl=(3)\nfn=(7)\n1 5\n".to_owned()),
        ("twice", "part: 1\nevents: Ir\nfl=a\nfn=f\n1 5\npart: 1\nevents: Ir\nfl=a\nfn=f\n1 5\n".to_owned()),
    ];
    for (name, text) in cases {
        fs::write(folder.path().join(name), text).unwrap();
        let output = run(folder.path(), &[name]);
        assert!(output.status.success(), "{name}: {}", String::from_utf8_lossy(&output.stderr));
    }
    let page = fs::read_to_string(folder.path().join("near.html")).unwrap();
    assert!(element(&page, "head").contains("\"9223372036854775807\""), "totals have all their digits");
    let page = fs::read_to_string(folder.path().join("nameless.html")).unwrap();
    assert!(element(&page, "head").contains("the profile does not have (2 times)"));
    let page = fs::read_to_string(folder.path().join("zero.html")).unwrap();
    assert!(element(&page, "head").contains("Nothing was counted"));
}

#[test]
fn a_report_that_is_too_large_is_refused_with_advice() {
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&path("exact.cg"), "-o", "out.html", "--max-size=10K"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--max-size"));
    assert!(!folder.path().join("out.html").exists());
}

#[test]
fn files_are_added_up_by_what_functions_are_called() {
    let page = page(&[&path("exact.cg"), &path("exact.cg")]);
    let head = element(&page, "head");
    assert!(head.contains("\"2000\"") && head.contains("\"functions\": 7,"), "{}", &head[..400]);
}

#[test]
fn parts_are_kept_apart_unless_their_sum_is_wanted_or_there_is_a_base() {
    let folder = tempfile::tempdir().unwrap();
    let part = |number: u32, cost: u32| {
        format!("part: {number}\nthread: 1\ndesc: Trigger: Dump {number}\nevents: Ir\nfl=a\nfn=f\n1 {cost}\n\n")
    };
    fs::write(folder.path().join("two"), format!("pid: 42\n{}{}", part(1, 5), part(2, 70))).unwrap();
    fs::write(folder.path().join("one"), part(1, 3)).unwrap();
    let head = |arguments: &[&str]| {
        let output = run(folder.path(), &[arguments, &["-o", "-"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        element(&String::from_utf8(output.stdout).unwrap(), "head").to_owned()
    };
    let flat = |head: String| head.split_whitespace().collect::<Vec<_>>().join(" ");
    let parts = flat(head(&["two", "one"]));
    for (input, pid, number, total) in [(0, "\"pid\": 42, ", 1, 5), (0, "\"pid\": 42, ", 2, 70), (1, "", 1, 3)] {
        let wanted = format!(
            "{{ \"input\": {input}, {pid}\"number\": {number}, \"thread\": 1, \"desc\": [ \"Trigger: Dump {number}\" ], \
             \"totals\": [ \"{total}\" ] }}"
        );
        assert!(parts.contains(&wanted), "{wanted} in {parts}");
    }
    assert!(parts.contains("\"part.row.cost.0\"") && parts.contains("\"78\""), "and their sum is the report's total");
    assert!(!head(&["two", "--redact"]).contains("Trigger"));
    for alone in [&["one"][..], &["two", "one", "--parts=sum"], &["two", "--base=one"]] {
        let head = head(alone);
        assert!(!head.contains("\"part.row") && !head.contains("\"number\": 1"), "{alone:?}: {head}");
    }
}

#[test]
fn events_can_be_chosen_and_must_be_there() {
    let page = page(&[&path("exact.cg"), "--show=Dr"]);
    let head = element(&page, "head");
    assert!(head.contains("\"fn.self.1\"") && !head.contains("\"fn.self.0\""));
    let folder = tempfile::tempdir().unwrap();
    for arguments in [["--show=Xy", "-o-"], ["--sort=Xy", "-o-"]] {
        let output = run(folder.path(), &[&[path("exact.cg").as_str()], &arguments[..]].concat());
        assert_eq!(output.status.code(), Some(1));
        assert!(String::from_utf8_lossy(&output.stderr).contains("event `Xy` did not appear in input: it has Ir Dr"));
    }
}

/// What the head says of object files, and how many instructions there are.
fn code(folder: &Path, arguments: &[&str]) -> (String, usize) {
    let output = run(folder, &[&["loop.cg", "-o", "-"], arguments].concat());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let page = String::from_utf8(output.stdout).unwrap();
    let head = element(&page, "head");
    let objects = &head[head.find("\"objects\"").unwrap()..head.find("\"warnings\"").unwrap()];
    let state = objects.split("\"state\": \"").nth(1).map_or("", |rest| rest.split('"').next().unwrap());
    assert_eq!(head.contains("not those that ran"), state == "changed", "the reader is told");
    let count = head.find("\"ins.kind\": [").map_or(0, |at| {
        let list = &head[at + 13..at + head[at..].find(']').unwrap()];
        list.split(", ").nth(2).unwrap().parse().unwrap()
    });
    (state.to_owned(), count)
}

#[test]
fn machine_code_is_that_of_the_object_that_ran_or_none() {
    let folder = tempfile::tempdir().unwrap();
    let there = |name: &str| folder.path().join(name);
    fs::copy(data("loop.cg"), there("loop.cg")).unwrap();
    assert_eq!(code(folder.path(), &[]), ("missing".to_owned(), 0));
    let object = fs::read(data("loop.elf")).unwrap();
    fs::write(there("loop.elf"), &object).unwrap();
    // 14 instructions of one function, one of them never executed, and 2 of the other, which 0.1 % of the cost are enough for.
    assert_eq!(code(folder.path(), &[]), ("ok".to_owned(), 16));
    assert_eq!(code(folder.path(), &["--code=none"]), (String::new(), 0));
    assert_eq!(code(folder.path(), &["--redact"]), (String::new(), 0));
    fs::create_dir(there("image")).unwrap();
    fs::rename(there("loop.elf"), there("image/loop.elf")).unwrap();
    assert_eq!(code(folder.path(), &["--root=image"]), ("ok".to_owned(), 16));
    // Another program in its place: instructions begin elsewhere.
    let mut other = object.clone();
    let start = other.windows(5).position(|bytes| bytes == b"\xbb\x0a\x00\x00\x00").unwrap();
    other[start..start + 3].copy_from_slice(&[0x90, 0x90, 0xb8]);
    fs::write(there("loop.elf"), &other).unwrap();
    assert_eq!(code(folder.path(), &[]), ("changed".to_owned(), 2));
    fs::write(there("loop.elf"), b"\x7fELF and nothing more").unwrap();
    assert_eq!(code(folder.path(), &[]), ("missing".to_owned(), 0));
    for length in [16, 64, 200, 1000, object.len() - 700] {
        fs::write(there("loop.elf"), &object[..length]).unwrap();
        code(folder.path(), &[]);
    }
}

#[test]
fn a_comparison_fails_above_its_bound_and_still_writes_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let compare = |bound: &str| {
        let _ = fs::remove_file(folder.path().join("out.html"));
        let base = format!("--base={}", path("exact.cg"));
        let output = run(folder.path(), &[&path("exact-new.cg"), &base, bound, "-o", "out.html"]);
        let written = matches!(output.status.code(), Some(0 | 3));
        assert_eq!(folder.path().join("out.html").exists(), written, "{bound}");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(compare("--fail-above=Ir:15"), (Some(0), String::new()));
    let (status, told) = compare("--fail-above=Ir:14.9%");
    assert_eq!(status, Some(3));
    assert_eq!(told, "cg_report: Ir grew by 15.00%, from 1,000 to 1,150: more than 14.9%\n");
    assert_eq!(compare("--fail-above=Xy:1").0, Some(1));
    assert_eq!(compare("--fail-above=Ir").0, Some(2), "usage");
    assert_eq!(run(folder.path(), &[&path("exact.cg"), "--fail-above=Ir:1"]).status.code(), Some(2), "it needs a base");
}

#[test]
fn sides_with_different_events_are_compared_by_those_they_share() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    write("new", "events: Dr Ir\nfl=a\nfn=f\n1 7 100\n");
    write("base", "events: Ir Bc\nfl=a\nfn=f\n1 40 3\n");
    write("none", "events: Xy\nfl=a\nfn=f\n1 40\n");
    let output = run(folder.path(), &["new", "--base=base", "-o", "-"]);
    let page = String::from_utf8(output.stdout).unwrap();
    let head = element(&page, "head");
    assert!(head.contains("Only the new profile has Dr. Only the base has Bc."), "{head}");
    assert!(head.contains("\"100\"") && head.contains("\"40\"") && !head.contains("\"7\""), "{head}");
    // Both have the column of the new side's number.
    assert!(head.contains("\"fn.self.1\"") && head.contains("\"b.fn.self.1\"") && !head.contains("fn.self.0"));
    let output = run(folder.path(), &["new", "--base=none", "-o", "-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("new and none have no event in common"));
    let output = run(folder.path(), &["new", "--base=base", "--show=Dr", "-o", "-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("`Dr` is not in the base: it has Ir Bc"));
    let output = run(folder.path(), &["new", "none", "--base=base", "-o", "-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("so they are no runs of one thing: `Dr Ir` and `Xy`"));
}

/// The head of a report as one line.
fn flat(page: &str) -> String {
    element(page, "head").split_whitespace().collect::<Vec<_>>().join(" ")
}

#[test]
fn of_several_runs_the_one_in_the_middle_is_shown_with_all_totals() {
    let folder = tempfile::tempdir().unwrap();
    for cost in [100, 70, 80, 40, 45] {
        fs::write(folder.path().join(format!("r{cost}")), format!("events: Ir\nfl=a\nfn=f\n1 {cost}\n")).unwrap();
    }
    let report = |arguments: &[&str]| {
        let output = run(folder.path(), &[arguments, &["-o", "-"]].concat());
        (output.status.code(), String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (status, page, said) =
        report(&["r100", "r70", "r80", "--base=r40", "--base=r45", "--label=one", "--fail-above=Ir:99"]);
    let head = flat(&page);
    for wanted in [
        "\"totals\": [ \"80\" ]",
        "\"totals\": [ \"40\" ]",
        "\"shown\": 2, \"runs\": [ { \"name\": \"one\", \"totals\": [ \"100\" ] }, { \"name\": \"r70\", \"totals\": [ \"70\" ] }",
        "\"shown\": 0, \"runs\": [ { \"name\": \"r40\", \"totals\": [ \"40\" ] }",
        "\"run.incl.least.0\"",
        "\"b.run.self.most.0\"",
    ] {
        assert!(head.contains(wanted), "{wanted} in {head}");
    }
    // Bounds are of what is shown: from 40 to 80.
    assert_eq!((status, said.as_str()), (Some(3), "cg_report: Ir grew by 100.00%, from 40 to 80: more than 99%\n"));
    assert!(!flat(&report(&["r100", "--base=r40"]).1).contains("run.incl"), "one run is no runs");
}

#[test]
fn profiles_are_switched_between_and_have_labels_where_that_is_wanted() {
    let exact = path("exact.cg");
    let head = flat(&page(&[&exact, &path("exact-new.cg"), "--separate", "--label=before", "--label=after"]));
    assert!(
        head.contains("\"separate\": true")
            && head.contains("\"name\": \"before\"")
            && head.contains("\"name\": \"after\"")
    );
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&exact, "--label=a", "--label=b", "-o-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--label: there are 2 names of 1 profiles"));
    let output = run(folder.path(), &[&exact, "--separate", "-o-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--separate: there is one profile"));
    let base = format!("--base={exact}");
    assert_eq!(run(folder.path(), &[&exact, &exact, "--separate", &base]).status.code(), Some(2), "usage");
}

#[test]
fn formulas_are_events_of_the_report_and_of_bounds() {
    let exact = path("exact.cg");
    let head = flat(&page(&[&exact, "--event=Work=Ir + 3 Dr", "--event=More = 2 Work - Ir", "--sort=More"]));
    assert!(head.contains("{ \"name\": \"Work\", \"formula\": \"Ir + 3 Dr\" }"), "{head}");
    assert!(head.contains("\"primary\": 3,"), "it begins with the fourth of Ir, Dr, Work and More: {head}");
    let folder = tempfile::tempdir().unwrap();
    let output = run(folder.path(), &[&exact, "--event=Work=Ir + 3 Dx", "-o-"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let wanted = "cg_report: error: --event Work: there is no event Dx: it has Ir Dr\n  Ir + 3 Dx\n         ^\n";
    assert_eq!((output.status.code(), told.as_str()), (Some(1), wanted));
    let output = run(folder.path(), &[&exact, "--event=Ir=2 Dr", "-o-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--event Ir: there is an event of this name"));
    assert_eq!(run(folder.path(), &[&exact, "--event=Ir"]).status.code(), Some(2), "usage");
    // 1000 + 3 * 100 before; Ir and Dr of both grew by 15 %.
    let base = format!("--base={exact}");
    let arguments = [&path("exact-new.cg"), &base, "--event=Work=Ir + 3 Dr", "--fail-above=Work:14", "-o", "out.html"];
    let output = run(folder.path(), &arguments);
    assert_eq!(output.status.code(), Some(3), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("Work grew by"));
}

#[test]
fn ratios_stand_in_the_report_and_bound_changes_but_begin_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let exact = path("exact.cg");
    let head = flat(&page(&[&exact, "--event=Rate=1000 Dr / Ir", "--event=Work=Ir + 3 Dr", "--sort=Work"]));
    assert!(head.contains("{ \"name\": \"Rate\", \"formula\": \"1000 Dr / Ir\" }"), "{head}");
    assert!(head.contains("\"primary\": 2,"), "ratios are not among the events, so Work is the third: {head}");
    let output = run(folder.path(), &[&exact, "--event=Rate=Dr / Ir", "--sort=Rate", "-o-"]);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--sort: Rate is a ratio"));
    let output = run(folder.path(), &[&exact, "--event=Rate=Ir + Dr / Ir", "-o-"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        told.contains("nothing can be added to a ratio") && told.ends_with("\n  Ir + Dr / Ir\n      ^\n"),
        "{told}"
    );
    // 10 per 100 becomes 12 per 100.
    let profile = |dr: u32| format!("events: Ir Dr\nfl=a.c\nfn=main\n1 100 {dr}\n");
    fs::write(folder.path().join("old"), profile(10)).unwrap();
    fs::write(folder.path().join("new"), profile(12)).unwrap();
    let bound = |percent: &str| {
        let bound = format!("--fail-above=Rate:{percent}");
        run(folder.path(), &["new", "--base=old", "--event=Rate=Dr / Ir", &bound, "-o", "out.html"])
    };
    assert_eq!(bound("21").status.code(), Some(0));
    let output = bound("19");
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(3), "{told}");
    assert!(told.contains("Rate grew by 20.00%, from 0.1000 to 0.1200: more than 19%"), "{told}");
}

#[test]
fn formulas_of_the_profile_count_unless_they_cannot_be_computed() {
    let folder = tempfile::tempdir().unwrap();
    let text = "event: Work = Ir + 2 Dr : Work done\nevent: Odd = Ir + Xx\nevent: Dr : Reads\nevents: Ir Dr\nfl=a.c\nfn=main\n1 100 7\n";
    fs::write(folder.path().join("p"), text).unwrap();
    let output = run(folder.path(), &["p", "-o-"]);
    let head = flat(&String::from_utf8(output.stdout).unwrap());
    assert!(head.contains("\"formulas\": [ { \"name\": \"Work\", \"formula\": \"Ir + 2 Dr\" } ]"), "{head}");
    assert!(head.contains("none of the events that are shown: Odd."), "{head}");
}

#[test]
fn data_objects_of_the_run_are_part_of_the_report() {
    let folder = tempfile::tempdir().unwrap();
    let (profile, mem) = (path("shared.cachegrind.xz"), path("shared.mem.xz"));
    let plain = flat(&page(&[&profile]));
    assert!(!plain.contains("text.memory"), "nobody asked");
    let argument = format!("--mem={mem}");
    let head = flat(&page(&[&profile, &argument]));
    assert!(
        ["text.memory", "text.memory.names", "text.memory.streams"]
            .iter()
            .all(|name| head.contains(&format!("\"{name}\"")))
    );
    let refused = |file: &str| {
        let output = run(folder.path(), &[&profile, &format!("--mem={file}"), "-o-"]);
        assert_eq!(output.status.code(), Some(1));
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    assert!(refused("nowhere").contains("--mem: cannot open nowhere"));
    assert!(refused(&profile).contains("this is none of `grind --objects=yes`"));
    let cut =
        "{\"version\":1,\"command\":\"p\",\"pid\":1,\"desc\":[],\"events\":[\"D1mr\"],\"totals\":[7],\"objects\":1}\n";
    fs::write(folder.path().join("cut"), cut).unwrap();
    assert!(refused("cut").contains("incomplete"));
    assert!(!head.contains("\u{2248}") && !head.contains("\"near\""), "{head}");
    let near = flat(&page(&[&path("members.cachegrind.xz"), &format!("--mem={}", path("members.mem.xz"))]));
    assert!(near.contains("Misses are \u{2248}: I1 and D1 held"), "what an inclusive last level would have taken");
}

#[test]
fn contexts_are_one_function_and_stand_apart_on_demand() {
    let folder = tempfile::tempdir().unwrap();
    let text = "events: Ir\nfl=a.c\nfn=main\n1 10\ncfn=f'main\ncalls=1 5\n1 30\nfn=f'main\n5 10\ncfn=f'2'f'main\ncalls=2 5\n6 20\n\
                fn=f'2'f'main\n5 20\nfn=it's\n9 1\n";
    fs::write(folder.path().join("p"), text).unwrap();
    let table = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["p", "-o-"], arguments].concat());
        let page = String::from_utf8(output.stdout).unwrap();
        // A name that nothing has anything of may stand among them.
        let rows = page.split("<tr><td>").skip(1).filter(|row| !row.starts_with("0</td>"));
        rows.map(|row| row.split("</tr>").next().unwrap().replace("</td><td>", " ").replace("</td>", ""))
            .collect::<Vec<_>>()
    };
    let merged = ["40 10 main", "30 30 f", "1 1 it&#39;s"];
    assert_eq!(table(&[]), merged);
    assert_eq!(table(&["--contexts=merge"]), merged);
    assert_eq!(
        table(&["--contexts=apart"]),
        ["40 10 main", "30 10 f&#39;main", "20 20 f&#39;2&#39;f&#39;main", "1 1 it&#39;s"]
    );
    // What is told apart is there beside what is one, but where one of them is enough.
    let has = |arguments: &[&str]| {
        let page = run(folder.path(), &[&["p", "-o-"], arguments].concat()).stdout;
        String::from_utf8(page).unwrap().contains("\"c.fn.self.0\"")
    };
    let found = [&[][..], &["--contexts=merge"], &["--contexts=apart"], &["--mod-funcname=s/'.*//"]].map(has);
    assert_eq!(found, [true, false, false, false]);
}

#[test]
fn parts_of_a_tree_of_processes_say_whose_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let block = |id: u32, program: &str| {
        format!(
            "# process: {id} parent: 0 pid: {} status: exited 0\n# executable: /bin/{program}\n# command: {program} secret\n# cost: 7\n\
             part: 1\npositions: line\nevents: Ir\nfl=a.c\nfn=main\n1 7\ntotals: 7\n",
            800 + id
        )
    };
    let text =
        format!("# callgrind format\npid: 1\ncmd: sh\n# tree: 1\n# counts: Ir\n{}{}", block(2, "cat"), block(1, "sh"));
    fs::write(folder.path().join("tree"), text).unwrap();
    let head = |arguments: &[&str]| {
        let output = run(folder.path(), &[&["tree", "-o-"], arguments].concat());
        flat(&String::from_utf8(output.stdout).unwrap())
    };
    let told = head(&[]);
    for (pid, program) in [(802, "cat"), (801, "sh")] {
        let wanted =
            format!("\"pid\": {pid}, \"number\": 1, \"program\": \"{program}\", \"command\": \"{program} secret\"");
        assert!(told.contains(&wanted), "{told}");
    }
    let redacted = head(&["--redact"]);
    assert!(redacted.contains("\"program\": \"cat\"") && !redacted.contains("secret"), "{redacted}");
}

#[test]
fn chains_of_calls_are_columns_also_of_parts_and_what_is_in_none_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let part = |chains: &str| format!("events: Ir\nfl=a\nfn=main\n1 10\nfn=leaf\n2 30\n{chains}totals: 40\n");
    let all = "#chains: 2\n#fl=a\n#fn=main\n#fn=leaf\n#c=0 0 0 10\n#c=1 1 3 30\n";
    let some = "#chains: 2\n#fl=a\n#fn=main\n#fn=leaf\n#c=0 0 0 10\n#c=1 1 3 5\n";
    fs::write(folder.path().join("all"), part(all)).unwrap();
    fs::write(folder.path().join("two"), format!("part: 1\n{}part: 2\n{}", part(all), part(some))).unwrap();
    fs::write(folder.path().join("none"), part("")).unwrap();
    let head = |arguments: &[&str]| {
        let output = run(folder.path(), &[arguments, &["-o", "-"]].concat());
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        flat(&String::from_utf8(output.stdout).unwrap())
    };
    let whole = head(&["all"]);
    assert!(
        whole.contains("\"chain.depth\"") && !whole.contains("part.chain") && !whole.contains("\"chains\""),
        "{whole}"
    );
    let parts = head(&["two"]);
    assert!(parts.contains("\"part.chain.cost.0\""));
    assert!(parts.contains("25 Ir (31.25 %) are in no chain of calls"), "{parts}");
    assert!(!head(&["none"]).contains("chain.depth"));
    let both = head(&["all", "--base=all"]);
    assert!(both.contains("\"b.chain.cost.0\""));
}

/// A server that is ended with the test.
struct Served {
    child: Child,
    url: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn serve(arguments: &[&str]) -> Served {
    let mut child =
        Command::new(env!("CARGO_BIN_EXE_cg_report")).args(arguments).stdout(Stdio::piped()).spawn().unwrap();
    let mut url = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
    Served { child, url: url.trim().to_owned() }
}

/// Status line and headers, and the body, of an answer.
fn ask(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(request.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

#[test]
fn a_served_report_is_that_of_the_file_in_pieces_and_for_its_owner_only() {
    let server = serve(&["--serve", &path("exact.cg")]);
    let (address, root) = server.url.strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
    assert!(address.starts_with("127.0.0.1:"), "{}", server.url);
    let get = |path: &str, host: &str| {
        ask(address, &format!("GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"))
    };
    let (head, html) = get(&format!("/{root}"), address);
    assert!(head.starts_with("HTTP/1.1 200") && head.contains("no-store") && !head.contains("Allow-Origin"), "{head}");
    assert!(html.contains("connect-src 'self'") && !html.contains("'unsafe"), "{}", &html[..600]);
    let file = page(&[&path("exact.cg")]);
    assert_eq!(element(&html, "head"), element(&file, "head"));
    let data = [element(&file, "data"), element(&file, "rest")].concat();
    assert!(html.len() + data.len() - 100 < file.len() && html.contains("data-below=\"data/\"></script>"));
    assert_eq!(get(&format!("/{root}data/0-{}", data.len()), address).1, data);
    assert!(get(&format!("/{root}data/0-{}", data.len() + 1), address).0.starts_with("HTTP/1.1 404"));
    assert!(get(&format!("/{root}"), "evil.example").0.starts_with("HTTP/1.1 403"), "another name for this host");
    for path in ["/", "/0123456789abcdef0123456789abcdef/"] {
        assert!(get(path, address).0.starts_with("HTTP/1.1 403"), "{path}");
    }
    let post = format!("POST /{root} HTTP/1.1\r\nHost: {address}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    assert!(ask(address, &post).0.starts_with("HTTP/1.1 405"));
    let output = run(Path::new("/"), &["--serve=0.0.0.0:0", &path("exact.cg")]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("others could reach this address"));
    assert_eq!(run(Path::new("/"), &["--serve", "-o-", &path("exact.cg")]).status.code(), Some(2), "usage");
    let exact = path("exact.cg");
    for arguments in [&["--keep", &exact][..], &["--keep", "-o-", &exact]] {
        assert_eq!(run(Path::new("/"), arguments).status.code(), Some(2), "usage");
    }
}
