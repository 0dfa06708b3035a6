//! The line that shows on a terminal how far a program is, through a pseudo-terminal: `script` of util-linux makes one.

use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use crate::common::{COMPUTE, Place};

/// Begins a line, computes, goes on with it, writes to a file, computes and ends the line.
const SLOW: &str = r#"
#include <stdio.h>
int main(void) {
    setvbuf(stdout, 0, _IONBF, 0);
    printf("begun");
    compute(1.4);
    printf("half a line");
    FILE *other = fopen("other", "w");
    for (int i = 0; i < 1000; i++) fprintf(other, "%d\n", i), fflush(other);
    compute(0.2);
    puts(", and the rest");
    compute(0.1);
    return 0;
}
"#;

/// What a terminal shows of these bytes.
fn screen(bytes: &str) -> Vec<String> {
    const COLUMNS: usize = 80;
    let (mut lines, mut row, mut column) = (vec![Vec::<char>::new()], 0, 0);
    let mut rest = bytes.chars();
    while let Some(c) = rest.next() {
        match c {
            '\r' => column = 0,
            '\n' => row += 1,
            '\x1b' => {
                assert_eq!((rest.next(), rest.next()), (Some('['), Some('K')), "{bytes:?}");
                lines[row].truncate(column);
            }
            c => {
                if column == COLUMNS {
                    (row, column) = (row + 1, 0);
                }
                lines.resize(lines.len().max(row + 1), Vec::new());
                let length = lines[row].len().max(column + 1);
                lines[row].resize(length, ' ');
                lines[row][column] = c;
                column += 1;
            }
        }
        lines.resize(lines.len().max(row + 1), Vec::new());
    }
    lines.into_iter().map(|line| line.into_iter().collect::<String>().trim_end().to_owned()).collect()
}

#[test]
fn the_line_of_progress_comes_and_goes_without_a_trace() {
    let place = Place::new();
    let Some(_) = place.compile("slow", &[COMPUTE, SLOW].concat(), &["-g", "-O1"]) else { return };
    if std::process::Command::new("script").arg("--version").output().is_err() {
        assert!(std::env::var_os("CI").is_none(), "script is needed in CI");
        return eprintln!("skipped: script is not installed");
    }
    symlink(env!("CARGO_BIN_EXE_grind"), place.path("valgrind")).unwrap();
    let grind = env!("CARGO_BIN_EXE_grind");
    // What is called, with which words, and whether there is a line.
    let cases = [
        (grind, "", true),
        (grind, "--tool=callgrind", true),
        (grind, "--cache-sim=yes --log-file=log", true),
        (grind, "-q", false),
        (grind, "--tool=callgrind --tell-calls=yes", false),
        (grind, "2>log2", false),
        ("./valgrind", "", false),
    ];
    let runs: Vec<_> = cases
        .iter()
        .enumerate()
        .map(|(n, (program, words, _))| {
            let (words, end) = if words.starts_with('2') { ("", *words) } else { (*words, "") };
            let line = format!("{program} --cachegrind-out-file=p{n} --callgrind-out-file=p{n} {words} ./slow {end}");
            let line = if words.contains("callgrind") {
                line.replace(&format!("--cachegrind-out-file=p{n}"), "")
            } else {
                line.replace(&format!("--callgrind-out-file=p{n}"), "")
            };
            let mut command = place.command(Path::new("script"));
            command.args(["-qec", &line, "/dev/null"]).stdin(Stdio::null()).stdout(Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    for (run, (program, words, shown)) in runs.into_iter().zip(cases) {
        let output = run.wait_with_output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(0), "{text}");
        assert_eq!(text.contains(" instructions, "), shown, "{program} {words}: {text:?}");
        assert_eq!(text.contains('\x1b'), shown, "{program} {words}: {text:?}");
        let shows = screen(&text).into_iter().skip_while(|line| !line.starts_with("begun"));
        let mine: Vec<String> = shows.filter(|line| !line.starts_with("==")).collect();
        // The program goes on where the line was. If the machine is busy, the line comes once more.
        let again: Vec<String> = ["begun", "half a line", ", and the rest", ""].map(str::to_owned).into();
        let wanted: &[&str] = match shown {
            true => &["begun", "half a line, and the rest", ""],
            false => &["begunhalf a line, and the rest", ""],
        };
        assert!(mine == wanted || shown && mine == again, "{program} {words}: {text:?}");
    }
}
