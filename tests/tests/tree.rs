//! Profiles of trees of processes (`--tree=FILE`): every process is in the file once, however it ends, and the processes add up
//! to the profiles that they have by themselves.

use std::fs;
use std::io::BufReader;
use std::path::Path;
use std::process::{Command, Stdio};

use cg_format::cachegrind::{self, Profile, ReadOptions, SummaryRule};
use cg_format::callgrind;
use cg_format::tree::{Format, Process, Reader, Status};
use grind_tests::tools;

fn grind(folder: &Path, options: &[&str], script: &str) {
    let tool = tools::under_test();
    let mut command = Command::new(&tool[0]);
    command.args(&tool[1..]).arg("-q").args(options).args(["sh", "-c", script]);
    let output = command.current_dir(folder).stdin(Stdio::null()).output().expect("grind");
    // Some caches of the host cannot be simulated as they are, which is told.
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(errors.lines().all(|line| line == "Killed" || line.contains("LL")), "{script}: {errors}");
}

/// What the rows of a profile of calls add up to.
fn calls(text: &[u8]) -> Vec<i128> {
    let profile = callgrind::read_profile(text, "calls").expect("a profile of calls");
    profile.parts.iter().map(callgrind::Part::total).fold(Vec::new(), |sum, part| {
        part.iter().enumerate().map(|(i, n)| n + sum.get(i).copied().unwrap_or_default()).collect()
    })
}

fn lines(text: &[u8]) -> Profile {
    let options = ReadOptions { summary: SummaryRule::Ignored, ..ReadOptions::default() };
    cachegrind::read(text, "lines", &options).expect("a profile")
}

/// The processes of a file, by number; each block's rows are compared with its cost, and the whole with their sum.
fn processes(folder: &Path, name: &str) -> Vec<Process> {
    let text = fs::read(folder.join(name)).expect("a file");
    let mut reader = Reader::new(BufReader::new(&text[..])).expect("a tree");
    let mut processes = Vec::new();
    let mut sum = vec![0; reader.events().len()];
    while let Some(block) = reader.next_block().expect("a block") {
        let rows = match reader.format() {
            Format::Cachegrind => lines(&block.text).total().to_vec(),
            Format::Callgrind => calls(&block.text),
        };
        assert_eq!(rows, block.process.cost, "{:?}", block.process);
        sum.iter_mut().zip(&rows).for_each(|(sum, n)| *sum += n);
        processes.push(block.process);
    }
    match reader.format() {
        Format::Cachegrind => {
            let whole = cachegrind::read(&text[..], name, &ReadOptions::default()).expect("a profile with its summary");
            assert_eq!(whole.total(), sum);
        }
        Format::Callgrind => assert_eq!(calls(&text), sum),
    }
    processes.sort_by_key(|process| process.id);
    processes
}

fn of<'p>(processes: &'p [Process], command: &str) -> Vec<&'p Process> {
    processes.iter().filter(|process| process.command == command.as_bytes()).collect()
}

const TOOLS: [&[&str]; 3] = [&["--tool=cachegrind"], &["--tool=cachegrind", "--cache-sim=yes"], &["--tool=callgrind"]];

#[test]
fn the_tree_is_the_sum_of_its_processes() {
    let script = "/bin/true; ls / >out; cat out | wc -l >lines; nothing-such 2>/dev/null; sh -c 'cat out; exit 7' >copy; \
                  sh -c 'kill -9 $$'; :";
    for tool in [TOOLS[0], TOOLS[2]] {
        let folder = tempfile::tempdir().expect("a folder");
        let trace = ["--trace-children=yes"];
        grind(folder.path(), &[tool, &trace, &["--tree=tree"]].concat(), script);
        let names = ["--cachegrind-out-file=one.%p.%n", "--callgrind-out-file=one.%p.%n"];
        grind(
            folder.path(),
            &[tool, &trace, &names[usize::from(tool[0].contains("callgrind"))..][..1]].concat(),
            script,
        );
        let tree = processes(folder.path(), "tree");
        let mut single: Vec<(Vec<u8>, i128)> = Vec::new();
        for entry in fs::read_dir(folder.path()).expect("the folder") {
            let path = entry.expect("an entry").path();
            if !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("one.")) {
                continue;
            }
            let text = fs::read(path).expect("a profile");
            if tool[0].contains("callgrind") {
                let command =
                    text.split(|b| *b == b'\n').find_map(|line| line.strip_prefix(b"cmd:  ")).expect("a command");
                single.push((command.to_vec(), calls(&text)[0]));
            } else {
                let profile = lines(&text);
                single.push((profile.header.cmd.clone(), profile.total()[0]));
            }
        }
        // Of the one that a shell could not start there are costs of before, which single profiles have twice, and what
        // depends on the digits of a process id.
        let rough = |command: &[u8]| command.starts_with(b"sh -c /bin/true") || command == b"sh -c kill -9 $$";
        let mut together: Vec<_> = tree.iter().map(|p| (p.command.clone(), p.cost[0])).collect();
        assert_eq!(together.len(), single.len());
        together.retain(|(command, _)| !rough(command));
        single.retain(|(command, _)| !rough(command));
        together.sort();
        single.sort();
        assert_eq!(together.len(), 6, "{together:?}");
        assert_eq!(together, single);
        // Who started whom, and how they ended.
        let top = tree[0].clone();
        assert_eq!((top.id, top.parent, top.status), (1, 0, Status::Exited(0)));
        let inner = of(&tree, "sh -c cat out; exit 7")[0];
        assert_eq!((inner.parent, inner.status), (1, Status::Exited(7)));
        let cats: Vec<u64> = of(&tree, "cat out").iter().map(|cat| cat.parent).collect();
        assert_eq!(cats, [1, inner.id]);
        assert_eq!(of(&tree, "sh -c kill -9 $$")[0].status, Status::Killed(9));
        assert!(of(&tree, "ls /")[0].executable.ends_with(b"/ls"));
    }
}

/// What a parent did before it created a process is in no other process of the tree: the child's cost does not depend on it.
#[test]
fn forked_processes_count_from_the_fork_on() {
    for tool in TOOLS {
        let folder = tempfile::tempdir().expect("a folder");
        let mut children = Vec::new();
        let mut parents = Vec::new();
        for n in [2000, 4000] {
            let script = format!("i=0; while [ $i -lt {n} ]; do i=$((i+1)); done; (exit 3); :");
            grind(folder.path(), &[tool, &["--tree=tree"]].concat(), &script);
            let tree = processes(folder.path(), "tree");
            assert_eq!(tree.len(), 2);
            assert_eq!((tree[1].parent, tree[1].status), (1, Status::Exited(3)));
            parents.push(tree[0].cost.clone());
            children.push(tree[1].cost.clone());
        }
        assert_eq!(children[0][0], children[1][0], "{tool:?}");
        assert!(
            parents[0][0] > 10 * children[0][0] && parents[1][0] > parents[0][0] + 2000,
            "{parents:?} {children:?}"
        );
        // Misses are few and may differ with what is in the caches.
        assert!(children.iter().flatten().zip(parents.iter().flatten()).all(|(child, parent)| child <= parent));
    }
}

/// Processes that become what is not followed are there, without a cost.
#[test]
fn processes_that_leave_are_told_of() {
    for tool in TOOLS {
        let folder = tempfile::tempdir().expect("a folder");
        let skip = ["--trace-children=yes", "--trace-children-skip=*/true", "--tree=tree"];
        grind(folder.path(), &[tool, &skip].concat(), "/bin/true one; ls / >out; :");
        let tree = processes(folder.path(), "tree");
        let left = of(&tree, "/bin/true one");
        assert_eq!((left.len(), left[0].status, left[0].parent), (1, Status::Left, 1));
        assert!(left[0].cost.iter().all(|cost| *cost == 0));
        assert_eq!(of(&tree, "ls /")[0].status, Status::Exited(0));
        // All leave.
        grind(folder.path(), &[tool, &["--tree=tree"]].concat(), "exec /bin/true two");
        let tree = processes(folder.path(), "tree");
        assert_eq!((tree.len(), tree[0].status, &tree[0].command[..]), (1, Status::Left, &b"/bin/true two"[..]));
    }
}

/// Dumps in the middle belong to their process, also those of an image that has been replaced.
#[test]
fn parts_of_a_process_are_in_its_block() {
    let folder = tempfile::tempdir().expect("a folder");
    let options =
        ["--tool=callgrind", "--trace-children=yes", "--dump-every-bb=5000", "--separate-threads=yes", "--tree=tree"];
    grind(folder.path(), &options, "ls / >out; exec ls / >out");
    let tree = processes(folder.path(), "tree");
    assert_eq!(tree.len(), 2);
    let text = String::from_utf8(fs::read(folder.path().join("tree")).expect("a file")).expect("text");
    assert!(text.matches("\ntotals: ").count() > 4);
    // The shell's parts are in what it became.
    assert!(tree[0].cost[0] > tree[1].cost[0] + 50_000, "{tree:?}");
}

#[test]
fn processes_at_the_same_time_leave_one_whole_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = "seq 60 | xargs -P 6 -n 1 sh -c '[ $0 = 33 ] && kill -9 $$; :' 2>/dev/null";
    grind(folder.path(), &["--trace-children=yes", "--tree=tree"], &format!("{script}; :"));
    let tree = processes(folder.path(), "tree");
    let shells = tree.iter().filter(|process| process.command.starts_with(b"sh -c [ $0")).count();
    // xargs stops at a killed one, but those that run go on.
    assert!((33..=60).contains(&shells), "{shells}");
    assert_eq!(tree.iter().filter(|process| process.status == Status::Killed(9)).count(), 1);
    let names = fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(names, 1);
}
