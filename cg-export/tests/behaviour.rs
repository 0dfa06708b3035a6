//! What readers of other programs do not show: odd profiles, the command line, exit codes, and that what is exported and
//! imported again is the same.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::common::{ByName, Naive, export, exported, import, profiles};

/// A profile with all that is odd: contexts, levels, names with apostrophes, quotes, semicolons and no UTF-8, inlined
/// code, a cycle, two functions of one name, costs of 0 and large ones.
const ODD: &[u8] =
    b"# callgrind format\nversion: 1\ncreator: test\npid: 7\ncmd: ./odd \"a\\b\"\npart: 1\nthread: 1\n\n\
    positions: line\nevents: Ir Dr\nsummary: 9000000000000 10\n\n\
    ob=/bin/odd\nfl=a.c\nfn=main\n1 5 1\nfi=inl.h\n9 7\nfe=a.c\ncfn=f'main\ncalls=2 4\n2 9000000000000 9\n\
    fn=f'main\n4 8999999999000 0\ncfn=f'2'f\ncalls=1 4\n5 900 4\n\
    fn=f'2'f\n4 900 4\n\
    fn=it's \"odd\";<for<'a>>\n6 50 2\n\
    fl=b.c\nfn=\xff\xfe\n3 33 3\nfn=twin\n1 5\nob=/lib/x.so\nfl=c.c\nfn=twin\n1 0 0\n\
    totals: 9000000000000 10\n";

fn written(folder: &Path, name: &str, text: &[u8]) -> PathBuf {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn odd_profiles_are_exported_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let odd = written(folder.path(), "odd", ODD);
    let expected = "f;f'2 900\nit's \"odd\":<for<'a>> 50\nmain 12\nmain;f 8999999999000\ntwin 5\n\u{fffd}\u{fffd} 33\n";
    let folded_bytes = exported(&["--format=folded", "--event=Ir"], &[&odd]);
    assert_eq!(String::from_utf8_lossy(&folded_bytes), expected);
    assert!(folded_bytes.windows(2).any(|pair| pair == b"\xff\xfe"), "folded stacks are bytes");
    for format in ["speedscope", "firefox", "chrome", "json"] {
        let json: serde_json::Value = serde_json::from_slice(&exported(&["--format", format], &[&odd])).unwrap();
        assert!(json.is_object(), "{format}");
    }
    let firefox: serde_json::Value = serde_json::from_slice(&exported(&["--format=firefox"], &[&odd])).unwrap();
    let weights = firefox["threads"][0]["samples"]["weight"].as_array().unwrap();
    assert_eq!(weights.iter().map(|weight| weight.as_i64().unwrap()).sum::<i64>(), 9_000_000_000_000);
    assert!(weights.len() > 4000, "no weight is above 31 bits");
    let dot = text(&exported(&["--format=dot", "--threshold=0"], &[&odd]));
    assert!(dot.contains(r#"function="it's \"odd\";<for<'a>>""#), "{dot}");
    assert!(dot.contains(r#"./odd \"a\\b\"\n"#), "{dot}");
}

#[test]
fn pprof_and_folded_stacks_come_back_as_they_went() {
    let folder = tempfile::tempdir().unwrap();
    for (name, path) in profiles() {
        let naive = Naive::read(path);
        for stacks in [&[][..], &["--stacks=flat"], &["--stacks=estimated"]] {
            let folded = exported(&[&["--format=folded"][..], stacks].concat(), &[path]);
            for format in ["folded", "pprof"] {
                let file = folder.path().join("x");
                fs::write(&file, exported(&[&["--format", format][..], stacks].concat(), &[path])).unwrap();
                let output = import(&["--events=Ir", "--separate-callers=all"], &file);
                assert!(output.status.success(), "{}", text(&output.stderr));
                let back = written(folder.path(), "back", &output.stdout);
                let kept = if naive.own["Ir"].keys().any(|name| name.contains('\'')) || stacks.len() == 1 {
                    &[][..]
                } else {
                    &["--stacks=flat"][..]
                };
                let again = exported(&[&["--format=folded", "--event=Ir"][..], kept].concat(), &[&back]);
                let plain = |bytes: &[u8]| text(bytes).replace("[estimated stacks];", "");
                let plain = |bytes: &[u8]| {
                    let plain = plain(bytes);
                    let mut lines: Vec<&str> = plain.lines().collect();
                    lines.sort_unstable();
                    lines.join("\n")
                };
                assert_eq!(plain(&again), plain(&folded), "{name} {stacks:?} {format}");
            }
        }
    }
}

/// Costs of functions are exact in every event, whatever the graph is like.
#[test]
fn estimates_share_out_the_whole_cost_of_every_function() {
    let mut state: u64 = 11;
    let mut random = |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let folder = tempfile::tempdir().unwrap();
    for round in 0..60 {
        let functions = 1 + random(14);
        let mut profile = String::from("positions: line\nevents: Ir\n");
        let mut own = ByName::new();
        for function in 0..functions {
            let bits = 3 + random(40);
            let cost = random(4) * random(1 << bits);
            profile += &format!("fn=f{function}\n1 {cost}\n");
            if cost > 0 {
                own.insert(format!("f{function}"), i128::from(cost));
            }
            for _ in 0..random(4) {
                profile += &format!("cfn=f{}\ncalls=1 1\n1 {}\n", random(functions), random(1 << 20));
            }
        }
        let file = written(folder.path(), "random", profile.as_bytes());
        let folded = text(&exported(&["--format=folded", "--stacks=estimated"], &[&file]));
        let mut found = ByName::new();
        for line in folded.lines() {
            let (stack, cost) = line.rsplit_once(' ').unwrap();
            assert!(stack.starts_with("[estimated stacks];"), "{line}");
            *found.entry(stack.rsplit(';').next().unwrap().to_owned()).or_default() += cost.parse::<i128>().unwrap();
        }
        assert_eq!(found, own, "round {round}: {profile}");
    }
}

/// What is known for sure must not be changed by estimating: a tree of calls has one way to each function.
#[test]
fn estimates_of_trees_are_the_stacks() {
    let folder = tempfile::tempdir().unwrap();
    let tree = b"positions: line\nevents: Ir\nfn=main\n1 10\ncfn=f\ncalls=1 1\n2 70\ncfn=g\ncalls=1 1\n3 5\n\
        fn=f\n1 40\ncfn=h\ncalls=3 1\n2 30\nfn=g\n1 5\nfn=h\n1 30\n";
    let file = written(folder.path(), "tree", tree);
    let folded = text(&exported(&["--format=folded", "--stacks=estimated"], &[&file]));
    let root = "[estimated stacks];main";
    assert_eq!(folded, format!("{root} 10\n{root};f 40\n{root};f;h 30\n{root};g 5\n"));
}

#[test]
fn a_cycle_is_entered_from_outside() {
    let folder = tempfile::tempdir().unwrap();
    let cycle = b"positions: line\nevents: Ir\nfn=main\n1 10\ncfn=even\ncalls=1 1\n2 100\n\
        fn=odd\n1 60\ncfn=even\ncalls=4 1\n1 70\nfn=even\n1 40\ncfn=odd\ncalls=5 1\n2 90\n";
    let file = written(folder.path(), "cycle", cycle);
    let folded = text(&exported(&["--format=folded", "--stacks=estimated"], &[&file]));
    let root = "[estimated stacks];main";
    assert_eq!(folded, format!("{root} 10\n{root};even 40\n{root};even;odd 60\n"));
    let dot = text(&exported(&["--format=dot"], &[&file]));
    assert_eq!(dot.matches("in a cycle").count(), 2);
    assert_eq!(dot.matches("style=dashed").count(), 2, "{dot}");
}

#[test]
fn differences_are_told_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let difference = written(folder.path(), "d", b"cmd: x\nevents: Ir\nfl=a\nfn=f\n1 -5\nfn=g\n1 7\nsummary: 2\n");
    for format in ["speedscope", "folded", "firefox", "chrome"] {
        let output = export(&["--format", format], &[&difference]);
        assert_eq!(output.status.code(), Some(1), "{format}");
        assert!(text(&output.stderr).contains("it has counts below 0"), "{format}: {}", text(&output.stderr));
    }
    let json = text(&exported(&["--format=json"], &[&difference]));
    assert!(json.contains("-5") && !exported(&["--format=pprof"], &[&difference]).is_empty());
    assert!(text(&exported(&["--format=dot"], &[&difference])).contains("self=\"-5\""));
}

#[test]
fn an_option_without_a_meaning_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = written(folder.path(), "x", ODD);
    let refused = [
        (&["--format=json", "--stacks=flat"][..], "--stacks means nothing with --format=json"),
        (&["--format=pprof", "--event=Ir"], "--event means nothing with --format=pprof"),
        (&["--format=folded", "--threshold=1"], "--threshold means nothing with --format=folded"),
        (&["--format=dot", "--run=1"], "--run means nothing with --format=dot"),
        (&["--format=dot", "--rank=s/a/b/"], "--rank means nothing with --format=dot"),
        (&["--format=parquet"], "--format=parquet wants -o FOLDER"),
        (&["--format=nonsense"], "invalid value 'nonsense'"),
        (&["--format=dot", "--threshold=101"], "a percentage is a number from 0 to 100"),
        (&[], "required"),
    ];
    for (args, message) in refused {
        let output = export(args, &[&file]);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(text(&output.stderr).contains(message), "{args:?}: {}", text(&output.stderr));
    }
    let two = export(&["--format=json"], &[&file, &file]);
    assert_eq!(two.status.code(), Some(2));
    let output = export(&["--format=folded", "--event=Dw"], &[&file]);
    assert_eq!(output.status.code(), Some(1));
    assert!(text(&output.stderr).contains("there is no event `Dw` (--event), but: Ir Dr"));
}

#[test]
fn what_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let empty = written(folder.path(), "empty", b"");
    let bad = written(folder.path(), "bad", b"events: Ir\nfn=f\n1 x\n");
    for format in ["pprof", "json", "parquet"] {
        let out = folder.path().join("out");
        for file in [&empty, &bad, &folder.path().join("missing")] {
            let output = export(&["--format", format, "-o", out.to_str().unwrap()], &[file]);
            assert_eq!(output.status.code(), Some(1), "{format} {}", file.display());
            let told = text(&output.stderr);
            assert!(told.starts_with("cg_export: error: ") && told.contains(file.to_str().unwrap()), "{told}");
            let left = fs::read_dir(folder.path()).unwrap().filter(|entry| {
                let name = entry.as_ref().unwrap().file_name();
                !["empty", "bad", "out"].contains(&name.to_str().unwrap())
            });
            assert_eq!(left.count(), 0, "nothing is left behind");
        }
    }
    assert_eq!(walk(&folder.path().join("out")), Vec::<PathBuf>::new(), "no half of a data set");
    for (name, bytes) in
        [("e", &b""[..]), ("n", b"nonsense"), ("g", &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0]), ("b", &[10, 200, 1])]
    {
        let file = written(folder.path(), name, bytes);
        let output = import(&[], &file);
        assert_eq!(output.status.code(), Some(1), "{name}: {}", text(&output.stderr));
        assert!(text(&output.stderr).contains(file.to_str().unwrap()), "{}", text(&output.stderr));
    }
}

fn walk(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let paths = entries.map(|entry| entry.unwrap().path());
    paths.flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn compressed_profiles_and_standard_input_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let plain = written(folder.path(), "x", ODD);
    let expected = exported(&["--format=json"], &[&plain]);
    for packer in ["gzip", "xz", "zstd"] {
        if !grind_tests::tools::have(&[packer]) {
            continue;
        }
        let packed = Command::new(packer).arg("-c").arg(&plain).output().unwrap().stdout;
        let file = written(folder.path(), packer, &packed);
        assert_eq!(exported(&["--format=json"], &[&file]), expected, "{packer}");
        let mut child = Command::new(env!("CARGO_BIN_EXE_cg_export"));
        child.args(["--format=json", "-"]).stdin(fs::File::open(&file).unwrap());
        assert_eq!(child.output().unwrap().stdout, expected, "{packer} through a pipe");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let folder = tempfile::tempdir().unwrap();
    let mut large = String::from("events: Ir\n");
    (0..60_000).for_each(|number| large += &format!("fn=function{number}\n1 3\n"));
    let file = written(folder.path(), "large", large.as_bytes());
    for format in ["folded", "json", "speedscope", "firefox", "dot", "pprof"] {
        let mut child = Command::new(env!("CARGO_BIN_EXE_cg_export"));
        child.arg("--format").arg(format).arg(&file).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = child.spawn().unwrap();
        let mut start = [0; 10];
        child.stdout.take().unwrap().read_exact(&mut start).unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!((output.status.code(), text(&output.stderr)), (Some(0), String::new()), "{format}");
    }
}

#[test]
fn samples_of_perf_become_a_profile() {
    let folder = tempfile::tempdir().unwrap();
    let samples = b"prog  4711 [003]  1.5:     250 cycles:u: \n\
        \t    55d0 leaf+0x10 (/opt/prog)\n\t    55e0 main+0x1f (/opt/prog)\n\n\
        prog  4711 [003]  1.6:     50 cycles:u: \n\t    55d0 leaf+0x12 (/opt/prog)\n\t    66e0 start (/lib/c.so)\n\n\
        prog  4711 [003]  1.7:     7 cycles:u: \n\t    55e0 main+0x1f (/opt/prog)\n\n";
    let file = written(folder.path(), "perf", samples);
    let output = import(&[], &file);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let profile = written(folder.path(), "profile", &output.stdout);
    let json: serde_json::Value = serde_json::from_slice(&exported(&["--format=json"], &[&profile])).unwrap();
    let costs = |name: &str| {
        let functions = json["functions"].as_array().unwrap();
        let found = functions.iter().find(|function| function["name"] == name).unwrap();
        (found["self"][0].as_i64().unwrap(), found["inclusive"][0].as_i64().unwrap(), found["object"].as_str().unwrap())
    };
    assert_eq!(json["totals"][0], 307);
    assert_eq!(costs("leaf"), (300, 300, "/opt/prog"));
    assert_eq!(costs("main"), (7, 257, "/opt/prog"));
    assert_eq!(costs("start"), (0, 50, "/lib/c.so"));
}
