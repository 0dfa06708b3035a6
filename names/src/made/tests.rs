//! Names by moments, of processes that write files; programs that do are in `tests/tests/made.rs`.

use std::io::Write;
use std::process::{Command, Stdio};

use grind_types::Pid;

use super::*;

/// This very process, with a perf map of its own.
#[test]
fn a_name_is_that_of_the_moment() {
    let pid = Pid::own();
    let path = format!("/tmp/perf-{pid}.map");
    let registry = Registry::default();
    std::fs::write(&path, "1000 10 of_another_process\n").unwrap();
    let old = SystemTime::now() - Duration::from_secs(100);
    File::options().write(true).open(&path).unwrap().set_modified(old).unwrap();
    registry.began(pid);
    let before = registry.moment(pid, &[]);
    let mut file = File::create(&path).unwrap();
    let mut moments = vec![before];
    for name in ["first", "second"] {
        writeln!(file, "1000 10 {name}").unwrap();
        moments.push(registry.moment(pid, &[]));
        assert_eq!(registry.moment(pid, &[]), moments[moments.len() - 1], "nothing is new");
    }
    registry.forked(pid, Pid(1));
    std::fs::remove_file(&path).unwrap();
    registry.read_on(pid);
    registry.read_on(Pid(1));
    let name = |pid, moment| {
        String::from_utf8(registry.find(pid, GuestAddr(0x1004), moment).unwrap().function.to_vec()).unwrap()
    };
    assert_eq!([moments[0], moments[1], moments[2]].map(|m| name(pid, m)), ["first", "first", "second"]);
    assert_eq!(name(pid, u32::MAX), "second");
    assert_eq!(name(Pid(1), moments[1]), "first", "a copy knows what its parent knew");
    assert!(registry.find(pid, GuestAddr(0x1010), u32::MAX).is_none() && registry.has_names(pid));
    registry.forget(pid);
    assert!(!registry.has_names(pid) && registry.find(pid, GuestAddr(0x1004), 1).is_none());
}

#[test]
fn what_is_no_regular_file_is_not_read() {
    let began = SystemTime::UNIX_EPOCH;
    let pid = Pid::own();
    let root = File::open("/").unwrap();
    let path = format!("/tmp/perf-{}.map", pid.0 + 5_000_000);
    std::fs::create_dir(&path).unwrap();
    assert!(open_map(&root, pid.0 + 5_000_000, began).is_none());
    std::fs::remove_dir(&path).unwrap();
    nix::unistd::mkfifo(path.as_str(), Mode::S_IRUSR).unwrap();
    assert!(open_map(&root, pid.0 + 5_000_000, began).is_none());
    std::fs::remove_file(&path).unwrap();
}

/// Java's `-XX:+DumpPerfMapAtExit`, for example, writes all lines when no code will run any more.
#[test]
fn a_map_that_is_written_at_the_end_is_found_when_the_process_has_gone() {
    let script = "read go; echo \"7000 10 late\" > /tmp/perf-$$.map";
    let mut child = Command::new("sh").args(["-c", script]).stdin(Stdio::piped()).spawn().expect("a shell");
    let pid = Pid(i32::try_from(child.id()).expect("a process id"));
    let path = format!("/tmp/perf-{pid}.map");
    let _ = std::fs::remove_file(&path);
    let registry = Registry::default();
    registry.began(pid);
    let moment = registry.moment(pid, &[]);
    assert!(registry.find(pid, GuestAddr(0x7008), moment).is_none());
    child.stdin.take().expect("a pipe").write_all(b"go\n").expect("it reads");
    assert!(child.wait().expect("it ends").success());
    registry.read_on(pid);
    let found = registry.find(pid, GuestAddr(0x7008), moment);
    std::fs::remove_file(path).expect("the map");
    assert_eq!(found.map(|found| found.function.to_vec()), Some(b"late".to_vec()));
}
