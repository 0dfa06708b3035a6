//! The book's commands are run, and what the book says they print is compared with what they print.
//!
//! A block of kind `console` has commands (behind `$ `, and lines that a backslash continues) and their output. All blocks of a
//! chapter run in order, in one folder with the programs of `docs/examples`, which the book calls `/home/you/book`. `BLESS=1`
//! writes the outputs anew. Numbers are not compared, since compilers and C libraries differ; nor are lines about code of
//! others (paths that begin with `./`, or lie in `/usr`). What stands in the README as output stands in the book, too.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use grind_tests::tools;

/// How the book calls the folder.
const FOLDER: &str = "/home/you/book";

/// A block, and where in the chapter its text is.
struct Block {
    begin: usize,
    end: usize,
    commands: Vec<(String, String)>,
}

fn blocks(chapter: &str) -> Vec<Block> {
    let (fence, close) = ("```console\n", "```\n");
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(n) = chapter[at..].find(fence) {
        let begin = at + n + fence.len();
        let end = begin + chapter[begin..].find(close).expect("a block that ends");
        let mut commands: Vec<(String, String)> = Vec::new();
        let mut continues = false;
        for line in chapter[begin..end].split_inclusive('\n') {
            if let Some(command) = line.strip_prefix("$ ") {
                commands.push((command.to_owned(), String::new()));
            } else {
                let (command, output) = commands.last_mut().expect("a block begins with a command");
                if continues { command } else { output }.push_str(line);
            }
            continues = line.ends_with("\\\n") && (continues || line.starts_with("$ "));
        }
        found.push(Block { begin, end, commands });
        at = end;
    }
    found
}

/// What a command prints, both streams as one, with the folder and process IDs as in the book.
fn run(command: &str, folder: &Path, programs: &Path) -> String {
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap_or_default());
    let output = Command::new("bash")
        .args(["-c", &format!("exec 2>&1\n{command}")])
        .current_dir(folder)
        .env("PATH", path)
        .env("LC_ALL", "C.UTF-8")
        .env("INCLUDE", tools::workspace_root().join("include"))
        .stdin(Stdio::null())
        .output()
        .expect("bash");
    let text = String::from_utf8_lossy(&output.stdout).replace(&folder.display().to_string(), FOLDER);
    assert!(output.status.success(), "{command}\nends with {}:\n{text}", output.status);
    let mut lines = String::new();
    for line in text.lines() {
        // `==PID==` and `--PID--` of the log.
        let marked = |mark: &str| {
            let (pid, rest) = line.strip_prefix(mark)?.split_once(mark)?;
            pid.parse::<u32>().is_ok().then(|| format!("{mark}12345{mark}{rest}"))
        };
        let marked = marked("==").or_else(|| marked("--"));
        lines.push_str(marked.as_deref().unwrap_or(line).trim_end());
        lines.push('\n');
    }
    lines
}

/// A line without what differs from machine to machine.
fn mask(line: &str) -> String {
    let mut masked = String::new();
    for c in line.chars() {
        match c {
            // Columns are as wide as numbers are.
            '0'..='9' | ',' | '.' | '%' | '_' | ' ' | '-' | '(' | ')' => {}
            c => masked.push(c),
        }
    }
    masked
}

/// Whether a line speaks of code that is not the book's, or of the machine.
fn of_others(line: &str) -> bool {
    line.starts_with("--12345--") || line.contains("./") || line.contains("/usr/") || line.contains("???")
}

fn chapters() -> Vec<PathBuf> {
    let folder = tools::workspace_root().join("docs/guide");
    let mut found: Vec<_> = fs::read_dir(&folder).expect("docs/guide").map(|e| e.expect("an entry").path()).collect();
    found.retain(|p| p.extension().is_some_and(|e| e == "md"));
    found.sort();
    found
}

/// Where the built programs are.
fn programs() -> PathBuf {
    let packages = ["grind", "cg-annotate", "cg-diff", "cg-merge", "callgrind-annotate", "callgrind-control"];
    tools::build(&packages).expect("the programs of the book")
}

#[test]
fn commands_print_what_the_book_says() {
    if tools::is_replaced() || !tools::have(&["gcc", "bash"]) {
        return;
    }
    let bless = std::env::var_os("BLESS").is_some();
    let programs = programs();
    let mut wrong = Vec::new();
    let mut commands = 0;
    for path in chapters() {
        let chapter = fs::read_to_string(&path).expect("a chapter");
        let dir = tempfile::tempdir().expect("a temporary folder");
        let folder = dir.path().canonicalize().expect("a path");
        for entry in fs::read_dir(tools::workspace_root().join("docs/examples")).expect("docs/examples") {
            let from = entry.expect("an entry").path();
            fs::copy(&from, folder.join(from.file_name().expect("a name"))).expect("a copy");
        }
        fs::copy(tools::workspace_root().join("LICENSE-APACHE"), folder.join("text.txt")).expect("a copy");
        let mut new = String::new();
        let mut at = 0;
        for block in blocks(&chapter) {
            new.push_str(&chapter[at..block.begin]);
            for (command, said) in &block.commands {
                commands += 1;
                let printed = run(command, &folder, &programs);
                new.push_str(&format!("$ {command}{printed}"));
                let there: Vec<String> = printed.lines().map(mask).collect();
                for line in said.lines().filter(|l| !of_others(l) && !there.contains(&mask(l))) {
                    wrong.push(format!("{}: {command}does not print {line:?}, but\n{printed}", path.display()));
                }
            }
            at = block.end;
        }
        new.push_str(&chapter[at..]);
        if bless {
            fs::write(&path, new).expect("a writable chapter");
        }
    }
    assert!(commands > 20, "the book has {commands} commands");
    assert!(bless || wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn what_the_readme_prints_stands_in_the_book() {
    let readme = fs::read_to_string(tools::workspace_root().join("README.md")).expect("README.md");
    let book: String = chapters().iter().map(|p| fs::read_to_string(p).expect("a chapter")).collect();
    let (_, after) = readme.split_once("<!-- first output -->\n```text\n").expect("the first output");
    let (output, _) = after.split_once("```").expect("its end");
    for line in output.lines().filter(|l| !l.is_empty() && !l.starts_with('…')) {
        assert!(book.contains(line), "the book has no line {line:?}");
    }
}

#[test]
fn blocks_are_commands_and_outputs() {
    let found = blocks("a\n```console\n$ one \\\n  more\nx\n$ two\n```\nb\n");
    assert_eq!(found.len(), 1);
    let expected = [("one \\\n  more\n".to_owned(), "x\n".to_owned()), ("two\n".to_owned(), String::new())];
    assert_eq!(found[0].commands, expected);
}
