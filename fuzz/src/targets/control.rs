//! The protocol by which a run is looked at: its messages, and both ends of a talk with somebody who says anything.
//!
//! The first byte of an input says what the rest is: lines to parse, what a client says to a run, or what a run says to a
//! client. The ends are the real ones, over sockets in a folder of this process.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::{fs, process, thread};

use callgrind_control_protocol::{Activity, Answer, Client, Listener, Request, Status, Tool};

use super::text;
use crate::{Target, limits};

pub(super) const TARGET: Target = Target {
    name: "control",
    run,
    laws,
    words: &[
        "0",
        "1",
        "2",
        "status\n",
        "dump\n",
        "dump a b\\n\\\\c\n",
        "zero\n",
        "instrumentation on\n",
        "instrumentation off\n",
        "kill\n",
        "functions 0 5 Ir \n",
        " tool: cachegrind\n",
        " totals: 1 2\n",
        " snapshot: 1\n",
        " thread: 1 2 main\n",
        " function: 1 main\ta.c\n",
        " command: ./a b\n",
        " instrumentation: on\n",
        " events: Ir Dr\n",
        " events: Ir\n",
        " part: 1\n",
        " thread: 1\n",
        " total: 1 2\n",
        " frame: 1 2 3 main\n",
        " frame: 1 2 f\n",
        " executed-calls: 7\n",
        "ok\n",
        "error no\n",
        "grind-control 1 1\n",
        " ",
        "\n",
        "\r",
        "\\",
        "\\n",
        "\\r",
        ": ",
        ":",
        "\0",
        "é",
        "\u{2028}",
        "18446744073709551615",
        "18446744073709551616",
        "-1",
    ],
    change: Some(text::change),
    largest: 1 << 16,
    overhead: limits::OVERHEAD,
    // Lines are strings of their own, in a list that is there three times over when it grows.
    besides: |input| 3 * size_of::<String>() * input.iter().filter(|byte| **byte == b'\n').count(),
};

fn run(input: &[u8]) {
    let Some((kind, rest)) = input.split_first() else { return };
    match kind % 3 {
        0 => {
            let text = String::from_utf8_lossy(rest);
            let _ = text.lines().map(Request::parse).filter(Result::is_ok).count();
            let _ = Status::parse(&lines(&text));
            let _ = Activity::parse(&lines(&text));
        }
        1 => to_a_run(rest),
        _ => to_a_client(rest),
    }
}

fn lines(text: &str) -> Vec<String> {
    text.lines().map(|line| line.strip_prefix(' ').unwrap_or(line).to_owned()).collect()
}

/// What was understood is understood again when it is said.
fn laws(input: &[u8]) {
    let Some((0, rest)) = input.split_first().map(|(kind, rest)| (kind % 3, rest)) else { return };
    let text = String::from_utf8_lossy(rest);
    for request in text.lines().filter_map(|line| Request::parse(line).ok()) {
        let line = request.line();
        assert!(!line.contains(['\n', '\r']), "{line:?}");
        assert_eq!(Request::parse(&line), Ok(request));
    }
    if let Ok(status) = Status::parse(&lines(&text)) {
        let Answer::Done(said) = Answer::from(&status) else { panic!("a status is refused") };
        assert_eq!(Status::parse(&said).as_ref(), Ok(&status));
    }
    if let Ok(activity) = Activity::parse(&lines(&text)) {
        assert_eq!(Activity::parse(&activity.lines()).as_ref(), Ok(&activity));
    }
    let answer = Answer::Done(text.split('\n').map(str::to_owned).collect());
    let said = answer.text();
    assert_eq!(said.lines().count(), text.split('\n').count() + 1, "a line of the answer is not one line");
}

/// A folder for one of the ends. It is needed until this process ends, so the next one removes it.
fn folder(end: &str) -> PathBuf {
    const PREFIX: &str = "grind-fuzz-";
    let all = std::env::temp_dir();
    for entry in fs::read_dir(&all).into_iter().flatten().flatten() {
        let name = entry.file_name();
        let pid = name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next());
        if pid.is_some_and(|pid| pid.parse::<u32>().is_ok() && !Path::new("/proc").join(pid).exists()) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
    let folder = all.join(format!("{PREFIX}{}-{end}", process::id()));
    fs::create_dir_all(&folder).expect("a folder for sockets");
    folder
}

/// A run that listens: it does what it is asked in no time.
fn to_a_run(said: &[u8]) {
    const PID: u32 = 4711;
    static RUN: OnceLock<PathBuf> = OnceLock::new();
    let socket = RUN.get_or_init(|| {
        let base = folder("run");
        let socket = base.join(format!("grind-callgrind-{PID}/control"));
        let (wake, woken) = mpsc::channel();
        let queue = Listener::bind(&base, Tool::Callgrind, PID)
            .expect("a socket")
            .start(move || wake.send(()).unwrap_or(()))
            .expect("a thread");
        thread::spawn(move || {
            while woken.recv().is_ok() {
                while let Some(asked) = queue.next() {
                    let answer = match &asked.request {
                        Request::Status => Answer::from(&Status::default()),
                        Request::Dump(hint) => Answer::Done(vec![hint.clone()]),
                        Request::Kill => Answer::Refused("no".to_owned()),
                        Request::Functions(_) => Answer::Done(Activity::default().lines()),
                        Request::Zero | Request::Instrumentation(_) | Request::Collection(_) | Request::Detach => {
                            Answer::Done(Vec::new())
                        }
                    };
                    asked.answer(answer);
                }
            }
        });
        socket
    });
    let client = UnixStream::connect(socket).expect("the run listens");
    let mut input = BufReader::new(&client);
    let mut greeting = String::new();
    input.read_line(&mut greeting).expect("a greeting");
    assert_eq!(greeting, format!("grind-control 1 {PID}\n"));
    // Answers are read while requests are written, or both ends would wait for room.
    thread::scope(|scope| {
        scope.spawn(|| {
            // The run hangs up on what is no line.
            let _ = (&client).write_all(said);
            let _ = client.shutdown(Shutdown::Write);
        });
        let mut line = Vec::new();
        while matches!(input.by_ref().take(1 << 17).read_until(b'\n', &mut line), Ok(1..)) {
            assert!(line[0] == b' ' || line == b"ok\n" || line.starts_with(b"error "), "{line:?}");
            line.clear();
        }
    });
}

/// A client whose run says `said` and hangs up.
fn to_a_client(said: &[u8]) {
    const PID: u32 = 4712;
    static RUN: OnceLock<(PathBuf, Mutex<Sender<Vec<u8>>>)> = OnceLock::new();
    let (base, run) = RUN.get_or_init(|| {
        let base = folder("client");
        let own = base.join(format!("grind-callgrind-{PID}"));
        fs::DirBuilder::new().mode(0o700).create(&own).expect("a folder of the run's own");
        let socket = UnixListener::bind(own.join("control")).expect("a socket");
        let (sender, texts): (Sender<Vec<u8>>, Receiver<_>) = mpsc::channel();
        thread::spawn(move || {
            for (client, text) in socket.incoming().zip(texts) {
                let Ok(mut client) = client else { continue };
                let _ = client.write_all(format!("grind-control 1 {PID}\n").as_bytes());
                let _ = client.write_all(&text);
                let _ = client.shutdown(Shutdown::Write);
                // What it asks must not go nowhere: it would be told so before it has read.
                let _ = client.read_to_end(&mut Vec::new());
            }
        });
        (base, Mutex::new(sender))
    });
    run.lock().unwrap_or_else(PoisonError::into_inner).send(said.to_vec()).expect("the run is there");
    let mut client = match Client::connect(base, PID) {
        Ok(client) => client,
        Err(error) => panic!("{error}"),
    };
    // Until it is told nonsense, or nothing.
    while client.ask(&Request::Zero).is_ok() {}
}
