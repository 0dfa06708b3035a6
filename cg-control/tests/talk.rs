//! The program against runs that are played by the tests: the library's own end of the talk, and worse ones.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Command, Output};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use callgrind_control_protocol::{Answer, Frame, Listener, Request, Status, Thread, Tool};

fn control(base: &Path, args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_callgrind_control"));
    command.args(args).env("XDG_RUNTIME_DIR", base).output().unwrap()
}

fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn complaint(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// A run that remembers what it was told.
struct Run {
    told: Arc<Mutex<Vec<Request>>>,
    stop: Arc<Mutex<bool>>,
    thread: Option<thread::JoinHandle<()>>,
}

impl Run {
    fn start(base: &Path, pid: u32, command: &str) -> Self {
        let (told, stop) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(false)));
        let listener = Listener::bind(base, Tool::Callgrind, pid).unwrap();
        let (own_told, own_stop) = (Arc::clone(&told), Arc::clone(&stop));
        let mut status = Status {
            command: command.to_owned(),
            instrumentation: true,
            tool: Tool::Callgrind,
            totals: Vec::new(),
            events: vec!["Ir".into(), "Dr".into()],
            part: 1,
            figures: vec![("executed-calls".into(), 1234)],
            threads: vec![Thread {
                id: 1,
                total: vec![60_123, 7],
                frames: vec![
                    Frame { function: "main".into(), calls: 1, cost: vec![60_000, 7] },
                    Frame { function: "std::sort<int*>(int*, int*)".into(), calls: 3, cost: vec![12, 0] },
                ],
            }],
        };
        let thread = thread::spawn(move || {
            let runner = thread::current();
            let queue = listener.start(move || runner.unpark()).unwrap();
            while !*own_stop.lock().unwrap() {
                thread::park_timeout(Duration::from_millis(20));
                while let Some(asked) = queue.next() {
                    let answer = match &asked.request {
                        Request::Status => Answer::from(&status),
                        Request::Dump(hint) if hint == "disk full" => Answer::Refused("cannot write: disk full".into()),
                        Request::Dump(_) => {
                            status.part += 1;
                            Answer::Done(vec![format!("callgrind.out.{pid}.{}", status.part - 1)])
                        }
                        Request::Instrumentation(on) => {
                            status.instrumentation = *on;
                            Answer::Done(Vec::new())
                        }
                        Request::Functions(_) => Answer::Refused("it has none".into()),
                        Request::Zero | Request::Kill | Request::Detach | Request::Collection(_) => {
                            Answer::Done(Vec::new())
                        }
                    };
                    if asked.request != Request::Status {
                        own_told.lock().unwrap().push(asked.request.clone());
                    }
                    asked.answer(answer);
                }
            }
        });
        Self { told, stop, thread: Some(thread) }
    }

    fn told(&self) -> Vec<Request> {
        std::mem::take(&mut self.told.lock().unwrap())
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        *self.stop.lock().unwrap() = true;
        let _ = self.thread.take().unwrap().join();
    }
}

#[test]
fn runs_are_looked_at_without_being_touched() {
    let base = tempfile::tempdir().unwrap();
    assert!(complaint(&control(base.path(), &[])).contains("there is no run to look at"));
    let one = Run::start(base.path(), 4711, "./bin/prog 3");
    let two = Run::start(base.path(), 4712, "/usr/bin/other -x");
    assert_eq!(text(&control(base.path(), &[])), "PID 4711: ./bin/prog 3\nPID 4712: /usr/bin/other -x\n");
    assert_eq!(text(&control(base.path(), &["-v", "prog"])), "PID 4711: ./bin/prog 3\n");
    assert_eq!(
        text(&control(base.path(), &["-s", "4711"])),
        "PID 4711: ./bin/prog 3\n  instrumentation: on\n  part:            1\n  threads:         1\n  events:          Ir Dr\n  \
         executed-calls:  1,234\n"
    );
    assert_eq!(
        text(&control(base.path(), &["-e", "-b", "4711"])),
        "PID 4711: ./bin/prog 3\n  thread 1\n      Ir  Dr\n      12   0  [ 0] std::sort<int*>(int*, int*) (3x)\n  60,000   7  \
         [ 1] main (1x)\n"
    );
    assert_eq!(
        text(&control(base.path(), &["-b", "4711"])).lines().nth(2),
        Some("  [ 0] std::sort<int*>(int*, int*) (3x)")
    );
    assert_eq!(text(&control(base.path(), &["-e=Dr", "4711"])), "PID 4711: ./bin/prog 3\n  Dr\n   7  thread 1\n");
    assert!(complaint(&control(base.path(), &["-e=Zz", "4711"])).contains("event `Zz` is not counted"));
    assert_eq!((one.told(), two.told()), (vec![], vec![]));
}

#[test]
fn only_the_run_that_was_named_is_told_anything() {
    let base = tempfile::tempdir().unwrap();
    let one = Run::start(base.path(), 11, "prog");
    let two = Run::start(base.path(), 12, "prog");
    for action in ["-d", "-z", "-k", "--instr=off", "--collection=off", "--dump=x"] {
        let output = control(base.path(), &[action]);
        assert!(complaint(&output).contains("name the runs that are meant: there are 11 12"), "{action}");
        assert!(complaint(&control(base.path(), &[action, "prog"])).contains("several runs"), "{action}");
        assert!(complaint(&control(base.path(), &[action, "13"])).contains("PID 13: no run"), "{action}");
        assert!(complaint(&control(base.path(), &[action, "11", "13"])).contains("PID 13: no run"), "{action}");
        assert!(complaint(&control(base.path(), &[action, "nobody"])).contains("`nobody`"), "{action}");
    }
    assert_eq!((one.told(), two.told()), (vec![], vec![]), "nothing was done for a wrong command line");
    assert_eq!(text(&control(base.path(), &["-d", "12"])), "PID 12: prog\n  callgrind.out.12.1\n  dump: OK\n");
    text(&control(base.path(), &["--dump=a\\b c", "-z", "-i", "off", "--collection=on", "12", "12"]));
    assert_eq!(text(&control(base.path(), &["12"])), "PID 12: prog (instrumentation off)\n");
    // PyTorch looks for exactly this line among those of `--stat`.
    let figures = text(&control(base.path(), &["--stat", "12"]));
    assert!(figures.starts_with("PID 12: prog\n  instrumentation: off\n"), "{figures}");
    text(&control(base.path(), &["-k", "12"]));
    assert_eq!(text(&control(base.path(), &["--detach", "12"])).lines().last(), Some("  detach: OK"));
    assert_eq!(one.told(), []);
    let expected = [
        Request::Dump(String::new()),
        Request::Dump("a\\b c".into()),
        Request::Zero,
        Request::Instrumentation(false),
        Request::Collection(true),
        Request::Kill,
        Request::Detach,
    ];
    assert_eq!(two.told(), expected);
    assert_eq!(
        complaint(&control(base.path(), &["--dump=disk full", "11"])),
        "callgrind_control: error: PID 11: cannot write: disk full\n"
    );
}

#[test]
fn somebody_else_behind_a_number_is_asked_nothing() {
    let base = tempfile::tempdir().unwrap();
    let folder = base.path().join("grind-callgrind-77");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    let socket = UnixListener::bind(folder.join("control")).unwrap();
    let heard = thread::spawn(move || {
        let mut heard = Vec::new();
        for greeting in ["grind-control 1 78\n", "grind-control 2 77\n", "hello\n", ""] {
            let (mut client, _) = socket.accept().unwrap();
            client.write_all(greeting.as_bytes()).unwrap();
            client.shutdown(std::net::Shutdown::Write).unwrap();
            heard.extend(BufReader::new(client).lines().map_while(Result::ok));
        }
        heard
    });
    for cause in ["somebody else answers", "somebody else answers", "somebody else answers", "it hung up"] {
        assert!(complaint(&control(base.path(), &["-k", "77"])).contains(cause));
    }
    assert!(heard.join().unwrap().is_empty());
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o711)).unwrap();
    assert!(complaint(&control(base.path(), &["-k", "77"])).contains("others may enter it"));
}

#[test]
fn a_run_that_ended_leaves_nothing_behind_and_its_number_can_come_again() {
    let base = tempfile::tempdir().unwrap();
    drop(Run::start(base.path(), 5, "prog"));
    assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    // One that was killed could not clear up.
    let folder = base.path().join("grind-callgrind-5");
    std::fs::create_dir(&folder).unwrap();
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    drop(UnixListener::bind(folder.join("control")).unwrap());
    assert!(complaint(&control(base.path(), &[])).contains("there is no run to look at"));
    assert!(complaint(&control(base.path(), &["-z", "5"])).contains("PID 5: no run"));
    let again = Run::start(base.path(), 5, "prog");
    text(&control(base.path(), &["-z", "5"]));
    assert_eq!(again.told(), [Request::Zero]);
}

#[test]
fn a_run_ends_although_its_folder_was_removed() {
    let base = tempfile::tempdir().unwrap();
    let run = Run::start(base.path(), 8, "prog");
    assert_eq!(text(&control(base.path(), &["8"])), "PID 8: prog\n");
    std::fs::remove_dir_all(base.path().join("grind-callgrind-8")).unwrap();
    drop(run);
}

#[test]
fn a_client_that_misbehaves_does_not_keep_others_out() {
    let base = tempfile::tempdir().unwrap();
    let run = Run::start(base.path(), 6, "prog");
    let socket = base.path().join("grind-callgrind-6/control");
    for words in [&b"nonsense\n"[..], b"zero", b"\xff\xfe\n", &[b'x'; 100_000], b"\n\n\n"] {
        let mut client = std::os::unix::net::UnixStream::connect(&socket).unwrap();
        let _ = client.write_all(words);
    }
    assert_eq!(text(&control(base.path(), &["6"])), "PID 6: prog\n");
    assert_eq!(run.told(), []);
}

#[test]
fn whoever_has_asked_has_an_answer_when_the_run_has_ended() {
    let base = tempfile::tempdir().unwrap();
    for round in 0..100 {
        let (wake, woken) = std::sync::mpsc::channel();
        let queue = Listener::bind(base.path(), Tool::Callgrind, 9)
            .unwrap()
            .start(move || wake.send(()).unwrap_or(()))
            .unwrap();
        let mut client = UnixStream::connect(base.path().join("grind-callgrind-9/control")).unwrap();
        client.write_all(format!("{}\n", Request::Kill.line()).as_bytes()).unwrap();
        woken.recv().unwrap();
        // The last thing that the run does is to answer, or it ends without.
        if round % 2 == 0 {
            queue.next().unwrap().answer(Answer::Done(Vec::new()));
        }
        drop(queue);
        client.set_nonblocking(true).unwrap();
        let mut said = String::new();
        let _ = client.read_to_string(&mut said);
        let last = said.lines().last().unwrap_or_default();
        assert!(if round % 2 == 0 { last == "ok" } else { last.starts_with("error ") }, "round {round}: {said:?}");
    }
}
