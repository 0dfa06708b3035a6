//! `--live`: a run is shown on a terminal while it goes on, through a pseudo-terminal: `script` of util-linux makes one.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

use crate::common::{COMPUTE, Place};

/// Says something on both ways, computes for so many tenths of a second, and says something again.
const PROGRAM: &str = r#"
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
static void interrupted(int signal) { (void)signal; if (write(1, "interrupted\n", 12) == 12) _exit(7); }
int main(int argc, char **argv) {
    signal(SIGINT, interrupted);
    printf("first %d%d%d %d\n", isatty(0), isatty(1), isatty(2), getchar());
    fflush(stdout);
    fprintf(stderr, "second\n");
    for (int i = 0; i < atoi(argv[1]); i++) {
        compute(0.1);
        if (i % 10 == 9) { printf("round %d\n", i / 10); fflush(stdout); }
    }
    printf("last\n");
    (void)argc;
    return 3;
}
"#;

/// What goes to the alternate screen, and from it.
const BEGINS: &str = "\x1b[?1049h";
const ENDS: &str = "\x1b[?1049l";

/// grind on a terminal.
struct Shown {
    child: Child,
    comes: Receiver<Vec<u8>>,
    text: String,
}

impl Shown {
    /// The program, built, in a place of its own.
    fn program(line: &str) -> Option<(Place, Self)> {
        let place = Place::new();
        place.compile("prog", &[COMPUTE, PROGRAM].concat(), &["-g", "-O1"])?;
        let shown = Self::start(&place, &format!("--live {line}"))?;
        Some((place, shown))
    }

    fn start(place: &Place, line: &str) -> Option<Self> {
        if std::process::Command::new("script").arg("--version").output().is_err() {
            assert!(std::env::var_os("CI").is_none(), "script is needed in CI");
            eprintln!("skipped: script is not installed");
            return None;
        }
        let line = format!("stty rows 24 cols 90; exec {} {line}", env!("CARGO_BIN_EXE_grind"));
        let mut command = place.command(Path::new("script"));
        command.args(["-qec", &line, "/dev/null"]).env("TERM", "xterm").env("XDG_RUNTIME_DIR", place.folder.path());
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut out = child.stdout.take().unwrap();
        let (sender, comes) = channel();
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(n @ 1..) = out.read(&mut bytes) {
                if sender.send(bytes[..n].to_vec()).is_err() {
                    return;
                }
            }
        });
        Some(Self { child, comes, text: String::new() })
    }

    /// Waits until this is there.
    fn until(&mut self, what: &str) {
        let start = Instant::now();
        while !self.text.contains(what) && !screen(&self.text).iter().any(|row| row.contains(what)) {
            assert!(start.elapsed() < Duration::from_secs(60), "{what:?}: {:?}", self.text.get(..2000));
            if let Ok(bytes) = self.comes.recv_timeout(Duration::from_millis(100)) {
                self.text += &String::from_utf8_lossy(&bytes);
            }
        }
    }

    fn press(&mut self, keys: &[u8]) {
        self.child.stdin.as_mut().unwrap().write_all(keys).unwrap();
    }

    /// How it ends, and all that was on the terminal: before the view, on it, and behind it.
    fn ends(&mut self) -> (Option<i32>, [String; 3]) {
        while let Ok(bytes) = self.comes.recv_timeout(Duration::from_secs(60)) {
            self.text += &String::from_utf8_lossy(&bytes);
        }
        let code = self.child.wait().unwrap().code();
        let (before, rest) = self.text.split_once(BEGINS).unwrap_or_else(|| panic!("{:?}", self.text));
        let (view, behind) = rest.split_once(ENDS).unwrap_or_else(|| panic!("{:?}", self.text));
        assert!(!behind.contains(BEGINS), "{:?}", self.text);
        (code, [before, view, behind].map(str::to_owned))
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What the terminal shows, by row: only what has changed is written to it, which may be half a word.
fn screen(text: &str) -> Vec<String> {
    const ROWS: usize = 24;
    let mut rows = vec![Vec::<char>::new(); ROWS];
    let (mut row, mut column) = (0, 0);
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        match c {
            '\u{1b}' if rest.clone().next() == Some('[') => {
                let sequence: Vec<char> =
                    rest.by_ref().skip(1).by_ref().take_while(|c| !c.is_ascii_alphabetic()).collect();
                // Of those that are written here, only a move of the cursor has two numbers.
                let numbers: Vec<usize> =
                    sequence.split(|c| *c == ';').filter_map(|n| n.iter().collect::<String>().parse().ok()).collect();
                if let [to_row, to_column] = numbers[..] {
                    (row, column) = (to_row.saturating_sub(1).min(ROWS - 1), to_column.saturating_sub(1));
                }
            }
            '\r' => column = 0,
            '\n' => row = (row + 1).min(ROWS - 1),
            c => {
                let cells = &mut rows[row];
                cells.resize(cells.len().max(column + 1), ' ');
                cells[column] = c;
                column += 1;
            }
        }
    }
    rows.into_iter().map(String::from_iter).collect()
}

#[test]
fn words_of_which_half_is_written_are_seen() {
    let text = "\u{1b}[2J\u{1b}[3;55H_dl_start\u{1b}[1;1Hx\u{1b}[3;55Hcompu\u{1b}[3;61He (prog.c)";
    assert!(screen(text).iter().any(|row| row.contains("compute (prog.c)")), "{:?}", screen(text));
}

/// Whether these are there one behind the other.
fn in_order(text: &str, wanted: &[&str]) -> bool {
    let mut rest = text;
    wanted.iter().all(|wanted| match rest.split_once(wanted) {
        Some((_, behind)) => {
            rest = behind;
            true
        }
        None => false,
    })
}

#[test]
fn a_run_is_shown_and_what_is_written_comes_behind() {
    let place = Place::new();
    let Some(_) = place.compile("prog", &[COMPUTE, PROGRAM].concat(), &["-g", "-O1"]) else { return };
    for options in ["", "--tool=callgrind --cache-sim=yes", "--cache-sim=yes"] {
        let Some(mut shown) = Shown::start(&place, &format!("--live {options} ./prog 20")) else { return };
        shown.until("compute");
        let (code, [before, view, behind]) = shown.ends();
        assert_eq!(code, Some(3), "{options}: {:?}", shown.text);
        assert!(view.contains("Ir/s") && view.contains("./prog 20"), "{options}: {view:?}");
        if options.contains("cache-sim") {
            assert!(view.contains("D1mr/s"), "{options}: {view:?}");
        }
        for text in ["first", "second", "round", "last", "==", "instructions, "] {
            assert!(!before.contains(text) && !view.contains(text), "{options}: {text}: {:?}", shown.text);
        }
        // Input comes from nowhere; both others are terminals still.
        let wanted = ["first 011 -1\r\n", "second\r\n", "round 0\r\n", "round 1\r\n", "last\r\n"];
        assert!(in_order(&behind, &wanted), "{options}: {behind:?}");
        assert!(in_order(&behind, &["==", "Profile: "]), "{options}: {behind:?}");
    }
}

#[test]
fn a_view_is_left_while_the_program_goes_on() {
    let Some((_place, mut shown)) = Shown::program("-q ./prog 60") else { return };
    shown.until("compute");
    shown.press(b"q");
    shown.until("first");
    assert!(!shown.text.contains("last"), "{:?}", shown.text);
    let (code, [_, view, behind]) = shown.ends();
    assert_eq!(code, Some(3), "{behind:?}");
    assert!(!view.contains("first") && in_order(&behind, &["first 011 -1", "second", "round 0", "round 5", "last"]));
}

#[test]
fn the_keys_that_interrupt_are_the_programs() {
    let Some((_place, mut shown)) = Shown::program("-q ./prog 1000") else { return };
    shown.until("compute");
    shown.press(b"\x03");
    let (code, [_, _, behind]) = shown.ends();
    assert_eq!(code, Some(7), "{behind:?}");
    assert_eq!(behind.matches("interrupted").count(), 1, "{behind:?}");
}

#[test]
fn output_that_goes_elsewhere_goes_there() {
    let Some((place, mut shown)) = Shown::program("-q ./prog 20 >out") else { return };
    shown.until("compute");
    let written = std::fs::read_to_string(place.path("out")).unwrap();
    assert!(written.starts_with("first 001 -1\n"), "{written}");
    let (code, [_, _, behind]) = shown.ends();
    assert_eq!(code, Some(3));
    assert!(behind.contains("second") && !behind.contains("round"), "{behind:?}");
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let place = Place::new();
    let Some(_) = place.compile("prog", &[COMPUTE, PROGRAM].concat(), &["-g", "-O1"]) else { return };
    let answer = place.grind(&["--live", "./prog", "1"]);
    assert_eq!(answer.code, Some(1), "{}", answer.err);
    assert!(answer.err.contains("standard error is none") && answer.out.is_empty(), "{}", answer.err);
    let Some(mut shown) = Shown::start(&place, "--live --tool=callgrind --tell-calls=yes ./prog 1") else { return };
    shown.until("--live needs counters of instructions");
    assert_eq!(shown.child.wait().unwrap().code(), Some(1));
    assert!(!shown.text.contains(BEGINS), "{:?}", shown.text);
}

/// The processes whose working folder this is.
fn processes_in(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let inside = all.filter(|process| std::fs::read_link(process.join("cwd")).is_ok_and(|cwd| cwd == folder));
    inside.map(|process| std::fs::read_to_string(process.join("cmdline")).unwrap_or_default()).collect()
}

#[test]
fn a_terminal_that_goes_takes_the_run_with_it() {
    let Some((place, mut shown)) = Shown::program("-q ./prog 10000") else { return };
    shown.until("compute");
    shown.child.kill().unwrap();
    shown.child.wait().unwrap();
    let start = Instant::now();
    while !processes_in(place.folder.path()).is_empty() {
        assert!(start.elapsed() < Duration::from_secs(30), "{:?}", processes_in(place.folder.path()));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(place.names().iter().any(|name| name.starts_with("cachegrind.out.")), "{:?}", place.names());
}
