//! Reports of runs that go on: the parts that a run writes while it is looked at add up to the profile that it writes in one piece, who
//! writes them whatever; nobody else gets in; and the report outlives the run.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use callgrind_control_protocol::{Client, Request, runs};
use grind_tests::{run, tools};

/// Works for each line that it reads, and in calls that go on from line to line.
const PROGRAM: &str = r#"
#include <unistd.h>
static volatile unsigned sink;
__attribute__((noinline)) void leaf(unsigned n) { while (n--) sink += n; }
__attribute__((noinline)) void even(unsigned n) { for (unsigned i = 0; i < 50; i++) leaf(n); }
__attribute__((noinline)) void odd(unsigned n) { leaf(n * 3); }
__attribute__((noinline)) int step(unsigned at)
{
    char byte;
    if (read(0, &byte, 1) != 1) return 0;
    if (at % 2) odd(1000); else even(500);
    return 1;
}
__attribute__((noinline)) unsigned all(void) { unsigned at = 0; while (step(at)) at++; return at; }
int main(void) { return all() == 6 ? 0 : 1; }
"#;

/// As many bytes the program reads.
const STEPS: usize = 6;

fn build(dir: &Path) {
    let (file, path) = (dir.join("prog.c"), dir.join("prog"));
    std::fs::write(&file, PROGRAM).unwrap();
    let words = ["-O1", "-g", "-static", "-fno-optimize-sibling-calls", "-o"];
    assert!(Command::new("gcc").args(words).arg(&path).arg(&file).status().unwrap().success());
}

/// The program under grind, which waits for its input.
fn start(dir: &Path, options: &[&str]) -> (Child, ChildStdin) {
    let mut words = tools::under_test().to_vec();
    words.extend(["-q", "--tool=callgrind"].map(String::from));
    words.extend(options.iter().map(|&option| option.to_owned()));
    words.push(dir.join("prog").display().to_string());
    let mut command = run::command(&words, dir);
    let mut child = command.env("XDG_RUNTIME_DIR", dir).stdin(Stdio::piped()).spawn().unwrap();
    let input = child.stdin.take().unwrap();
    (child, input)
}

fn report(dir: &Path) -> Command {
    let bin = tools::build(&["cg-report"]).expect("built").join("cg_report");
    let mut command = Command::new(bin);
    command.current_dir(dir).env("XDG_RUNTIME_DIR", dir).stdin(Stdio::null());
    command
}

/// A server that is ended with the test.
struct Served {
    child: Child,
    address: String,
    token: String,
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Served {
    fn start(dir: &Path, pid: u32) -> Self {
        let mut child = report(dir).args(["--live", &pid.to_string()]).stdout(Stdio::piped()).spawn().unwrap();
        let mut url = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url).unwrap();
        let (address, token) = url.trim().strip_prefix("http://").and_then(|rest| rest.split_once('/')).unwrap();
        Self { address: address.to_owned(), token: token.trim_matches('/').to_owned(), child }
    }

    /// Status, and body, of an answer to a request that says these headers, too.
    fn ask(&self, method: &str, path: &str, headers: &str) -> (u16, String) {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(stream, "{method} {path} HTTP/1.1\r\n{headers}Content-Length: 0\r\nConnection: close\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.split(' ').nth(1).unwrap().parse().unwrap(), body.to_owned())
    }

    fn get(&self, path: &str) -> String {
        let (status, body) =
            self.ask("GET", &format!("/{}/{path}", self.token), &format!("Host: {}\r\n", self.address));
        assert_eq!(status, 200, "{path}");
        body
    }

    fn tell(&self, what: &str) -> String {
        let headers = format!("Host: {}\r\nX-Report-Token: {}\r\n", self.address, self.token);
        let (status, body) = self.ask("POST", &format!("/{}/{what}", self.token), &headers);
        assert_eq!(status, 200, "{what}");
        body
    }
}

/// What JSON says of a key that it has but once.
fn value<'a>(json: &'a str, key: &str) -> &'a str {
    let at = json.find(&format!("\"{key}\":")).unwrap_or_else(|| panic!("{key} in {json}"));
    json[at + key.len() + 3..].split([',', '\n', '}']).next().unwrap().trim()
}

/// Rows of the page's table: inclusive, self, function.
fn table(page: &str) -> Vec<&str> {
    page.lines().filter(|line| line.starts_with("<tr><td>")).collect()
}

/// Waits until something is so.
fn until(what: &str, mut so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !so() {
        assert!(start.elapsed() < Duration::from_secs(60), "{what}");
        std::thread::sleep(Duration::from_millis(50));
    }
}

fn the_run(dir: &Path) -> u32 {
    let mut pids = Vec::new();
    until("the run listens", || {
        pids = runs(dir).unwrap();
        pids.len() == 1 && Client::connect(dir, pids[0]).and_then(|mut client| client.status()).is_ok()
    });
    pids[0]
}

fn parts_add_up(options: &[&str]) {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir);
    // In one piece.
    let (mut child, mut input) = start(dir, &[options, &["--callgrind-out-file=whole"]].concat());
    input.write_all(&[b'x'; STEPS]).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    assert!(report(dir).args(["whole", "-o", "whole.html"]).status().unwrap().success());
    let whole = std::fs::read_to_string(dir.join("whole.html")).unwrap();
    assert!(table(&whole).len() > 20);
    // The same again, looked at.
    let (mut child, mut input) = start(dir, &[options, &["--callgrind-out-file=live.%p"]].concat());
    let pid = the_run(dir);
    let server = Served::start(dir, pid);
    assert_eq!(value(&server.get("live"), "version"), "1");
    for (at, _) in (0..STEPS - 1).enumerate() {
        input.write_all(b"x").unwrap();
        if at == 2 {
            // Somebody else has the run write a part, which the report takes in at the next look.
            let mut client = Client::connect(dir, pid).unwrap();
            client.ask(&Request::Dump(String::new())).unwrap();
            until("the part is there", || value(&server.get("live"), "version") == "4");
        } else {
            let told = server.tell("dump");
            assert_eq!(value(&told, "version"), (at + 2).to_string(), "{told}");
        }
    }
    let told = server.get("live");
    assert_eq!((value(&told, "ended"), value(&told, "fault")), ("false", "\"\""), "{told}");
    assert_eq!(value(&server.get("head/6"), "schema"), value(&server.get("head/5"), "schema"));
    let asked = |path: &str| {
        server.ask("GET", &format!("/{}/{path}", server.token), &format!("Host: {}\r\n", server.address)).0
    };
    assert_eq!((asked("head/1"), asked("data/6/0-1"), asked("data/1/0-1")), (404, 200, 404), "old versions are gone");
    input.write_all(b"x").unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    until("the run has ended", || value(&server.get("live"), "ended") == "true");
    let page = server.get("");
    assert!(page.contains("data-live=\"7\""), "the last part is in the report");
    assert_eq!(table(&page), table(&whole));
    // It stays, and nothing can be told to nobody.
    assert_eq!(value(&server.tell("dump"), "ended"), "true");
}

#[test]
fn parts_that_are_asked_for_add_up_to_the_profile_in_one_piece() {
    parts_add_up(&[]);
}

#[test]
fn parts_of_one_file_add_up_likewise() {
    parts_add_up(&["--combine-dumps=yes"]);
}

#[test]
fn only_its_owner_looks_at_a_run_and_tells_it_anything() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir);
    let (mut child, input) = start(dir, &["--callgrind-out-file=live.%p"]);
    let pid = the_run(dir);
    let server = Served::start(dir, pid);
    let own = format!("Host: {}\r\n", server.address);
    let token = format!("X-Report-Token: {}\r\n", server.token);
    let path = |what: &str| format!("/{}/{what}", server.token);
    let status = |method: &str, path: &str, headers: &str| server.ask(method, path, headers).0;
    assert_eq!(status("GET", &path("live"), "Host: evil.example\r\n"), 403, "another name for this host");
    assert_eq!(status("GET", "/live", &own), 403, "no token");
    for headers in [own.clone(), format!("Host: evil.example\r\n{token}"), format!("{own}X-Report-Token: x\r\n")] {
        for what in ["dump", "zero", "kill", "instrumentation/off"] {
            assert_eq!(status("POST", &path(what), &headers), 403, "{what} {headers}");
        }
    }
    assert_eq!(status("POST", &path("nothing"), &format!("{own}{token}")), 404);
    let told = server.get("live");
    assert_eq!((value(&told, "version"), value(&told, "instrumentation")), ("1", "true"), "nobody was heard: {told}");
    // A second page, and a second program, look at the same run.
    let second = Served::start(dir, pid);
    until("both have its part", || value(&server.get("live"), "version") == "2");
    assert_eq!(value(&second.tell("instrumentation/off"), "fault"), "\"\"");
    until("both see it", || value(&server.get("live"), "instrumentation") == "false");
    // Whoever ends the program gets its profile.
    server.tell("kill");
    until("both see the end", || {
        value(&server.get("live"), "ended") == "true" && value(&second.get("live"), "ended") == "true"
    });
    drop(input);
    assert!(!child.wait().unwrap().success());
    assert!(dir.join(format!("live.{pid}")).exists());
    let none = report(dir).args(["--live", &pid.to_string()]).output().unwrap();
    assert_eq!(none.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&none.stderr).contains("no run of this number can be controlled"));
}

/// Files that are named here are written by the run, not by the report.
#[test]
fn a_report_of_a_run_leaves_nothing_of_its_own() {
    if !tools::have(&["gcc"]) {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    build(dir);
    let (mut child, mut input) = start(dir, &["--callgrind-out-file=live"]);
    drop(Served::start(dir, the_run(dir)));
    input.write_all(&[b'x'; STEPS]).unwrap();
    drop(input);
    assert!(child.wait().unwrap().success());
    let entries = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let mut names: Vec<PathBuf> =
        entries.filter(|path| path.is_file()).map(|path| path.file_name().unwrap().into()).collect();
    names.sort();
    assert_eq!(names, ["live", "live.1", "prog", "prog.c"].map(PathBuf::from));
}
