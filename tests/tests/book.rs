//! The book's commands are run, and what the book says they print is compared with what they print.
//!
//! A block of kind `console` has commands (behind `$ `, and lines that a backslash continues) and their output. All blocks of a
//! chapter run in order, in one folder with the programs of `docs/examples`, which the book calls `/home/you/book`. `BLESS=1`
//! writes the outputs anew. Numbers are not compared, since compilers and C libraries differ; nor are lines about code of
//! others (paths that begin with `./`, or lie in `/usr`). The README's first commands are run in the same way, with programs that are
//! built in place of `cargo run`; of their output it shows some lines, whose numbers `BLESS=1` writes anew.

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
    let packages = ["grind", "cg-annotate", "cg-diff", "cg-merge", "callgrind-annotate", "cg-control", "mem-annotate"];
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

/// The block behind a marker of the README.
fn marked<'t>(readme: &'t str, marker: &str) -> &'t str {
    let (_, after) = readme.split_once(&format!("<!-- {marker} -->\n```")).expect("a marker and its block");
    let (_, block) = after.split_once('\n').expect("its first line");
    block.split_once("```").expect("its end").0
}

#[test]
fn commands_of_the_readme_print_what_it_shows() {
    if tools::is_replaced() || !tools::have(&["gcc", "bash"]) {
        return;
    }
    let programs = tools::build(&["grind", "cg-annotate", "cg-report"]).expect("the programs of the README");
    let path = tools::workspace_root().join("README.md");
    let readme = fs::read_to_string(&path).expect("README.md");
    let dir = tempfile::tempdir().expect("a temporary folder");
    let folder = dir.path().canonicalize().expect("a path");
    std::os::unix::fs::symlink(tools::workspace_root().join("docs"), folder.join("docs")).expect("a link");
    fs::copy(tools::workspace_root().join("LICENSE-APACHE"), folder.join("LICENSE-APACHE")).expect("a copy");
    // Nobody is there to look at the page.
    let as_built =
        |commands: &str| commands.replace("cargo run --release --bin ", "").replace(" -- ", " ").replace(" --open", "");

    let printed = run(&as_built(marked(&readme, "first command")), &folder, &programs);
    let shown = marked(&readme, "first output");
    let (mut new, mut rest) = (String::new(), printed.lines());
    for line in shown.lines() {
        let found = match line {
            "…" => Some(line),
            line if of_others(line) => Some(rest.clone().find(|l| mask(l) == mask(line)).unwrap_or(line)),
            line => rest.find(|l| mask(l) == mask(line)),
        };
        new += found.unwrap_or_else(|| panic!("the first command does not print {line:?}, but\n{printed}"));
        new.push('\n');
    }
    if std::env::var_os("BLESS").is_some() {
        fs::write(&path, readme.replace(shown, &new)).expect("a writable README");
    }

    run(&as_built(marked(&readme, "report command")), &folder, &programs);
    let page = fs::read_to_string(folder.join("callgrind.out.words.html")).expect("a page");
    assert!(page.contains("<html") && page.contains("read_word"), "{}", &page[..page.len().min(1000)]);
}

#[test]
fn blocks_are_commands_and_outputs() {
    let found = blocks("a\n```console\n$ one \\\n  more\nx\n$ two\n```\nb\n");
    assert_eq!(found.len(), 1);
    let expected = [("one \\\n  more\n".to_owned(), "x\n".to_owned()), ("two\n".to_owned(), String::new())];
    assert_eq!(found[0].commands, expected);
}
