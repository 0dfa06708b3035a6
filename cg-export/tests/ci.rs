//! The recipes for CI, by running their scripts: on a repository with a change that costs something.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use grind_tests::tools;

/// Instructions of `dear` per round go from about 10 to about 30.
const PROGRAM: &str = "\
#include <stdlib.h>
__attribute__((noinline)) static long dear(long n) { long s = 0; for (long i = 0; i < n * TIMES; i++) s += i ^ n; return s; }
__attribute__((noinline)) static long middle(long n) { return dear(n) + 1; }
int main(int argc, char **argv) { long s = 0; for (long i = 0; i < 1000; i++) s += middle(i % 10 + atol(argv[1])); return s == 7; }
";

struct Repository {
    folder: tempfile::TempDir,
    path: String,
}

/// A repository of two commits, and a folder with all programs.
fn repository() -> Option<Repository> {
    if !tools::have(&["git", "gcc", "awk", "bash"]) {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    let source = folder.path().join("source");
    fs::create_dir_all(&bin).unwrap();
    fs::create_dir_all(&source).unwrap();
    symlink(&tools::under_test()[0], bin.join("grind")).unwrap();
    let export = Path::new(env!("CARGO_BIN_EXE_cg_export"));
    symlink(export, bin.join("cg_export")).unwrap();
    symlink(annotate(), bin.join("cg_annotate")).unwrap();
    symlink(tools::workspace_root().join("ci/compare"), bin.join("grind-compare")).unwrap();
    let git = |args: &[&str]| {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=test", "-c", "user.email=test@localhost"]).args(args).current_dir(&source);
        let done = git.output().unwrap();
        assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
    };
    git(&["init", "-q"]);
    for times in ["1", "3"] {
        fs::write(source.join("prog.c"), PROGRAM.replace("TIMES", times)).unwrap();
        git(&["add", "."]);
        git(&["commit", "-qm", "Change the work"]);
    }
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap());
    Some(Repository { folder, path })
}

/// `cg_annotate` of the same build.
fn annotate() -> PathBuf {
    tools::build(&["cg-annotate"]).unwrap().join("cg_annotate")
}

impl Repository {
    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path().join("source")).env("PATH", &self.path);
        command
    }

    fn compare(&self, args: &[&str]) -> Output {
        self.command("grind-compare").args(args).output().unwrap()
    }
}

fn told(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}

const BUILD: &str = "--build=gcc -g -O1 -o prog prog.c";

#[test]
fn a_change_is_told_and_judged() {
    let Some(repository) = repository() else { return };
    let output = repository.compare(&["--run=./prog '7'", BUILD, "--fail-above=Ir:5", "--output=out dir"]);
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    let folder = repository.folder.path().join("source/out dir");
    let report = fs::read_to_string(folder.join("report.md")).unwrap();
    assert!(report.contains("**above**") && report.contains("% | dear |"), "{report}");
    let path = report.lines().find(|line| line.contains("main > middle > dear`")).unwrap_or_else(|| panic!("{report}"));
    let numbers: Vec<i64> = path.split('|').filter_map(|cell| cell.trim().parse().ok()).collect();
    assert_eq!(numbers[1] - numbers[0], numbers[2], "{path}");
    // Each round of the loop is executed three times as often.
    assert!(numbers[2] > 0 && numbers[1] > 2 * numbers[0], "{path}");
    // By themselves, as one of them is by line and one with callers.
    let sum = |name: &str| {
        let text = fs::read_to_string(folder.join(name)).unwrap();
        text.lines().map(|line| line.rsplit(' ').next().unwrap().parse::<i64>().unwrap()).sum::<i64>()
    };
    let total = report.lines().find(|line| line.starts_with("| Ir |")).unwrap();
    let totals: Vec<i64> =
        total.split('|').filter_map(|cell| cell.trim().replace([',', '+'], "").parse().ok()).collect();
    let folded = [sum("base.folded"), sum("head.folded")];
    // A path of a file more in the environment may cost some instructions.
    (0..2).for_each(|i| assert!((totals[i] - folded[i]).abs() < 2000, "{total} {folded:?}"));
    assert!(folder.join("head.speedscope.json").exists());

    let trees = repository.command("git").args(["worktree", "list"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&trees.stdout).lines().count(), 1, "nothing is left behind");
}

#[test]
fn the_same_commit_twice_is_no_change() {
    let Some(repository) = repository() else { return };
    let output = repository.compare(&["--run=./prog 7", BUILD, "--fail-above=Ir:0", "--base=HEAD"]);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));
    let report = fs::read_to_string(repository.folder.path().join("source/profile/report.md")).unwrap();
    assert!(report.contains("\n0 paths changed."), "{report}");
}

#[test]
fn failures_say_what_failed() {
    let Some(repository) = repository() else { return };
    let failed = |args: &[&str], code, message: &str| {
        let output = repository.compare(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", told(&output));
        assert!(told(&output).contains(message), "{args:?}: {}", told(&output));
    };
    failed(&[], 2, "--run is missing");
    failed(&["--run=x", "--nonsense"], 2, "unknown option --nonsense");
    failed(&["--run=./prog", "--base=nowhere"], 1, "there is no commit nowhere");
    failed(&["--run=./prog", "--build=echo broken; exit 4"], 1, "--build failed at base");
    failed(&["--run=false"], 1, "--run failed at base");
}

/// The text of the `run:` of a step of the action, or of GitLab's script.
fn script(file: &str, after: &str) -> String {
    let text = fs::read_to_string(tools::workspace_root().join(file)).unwrap();
    let text = &text[text.find(after).unwrap_or_else(|| panic!("{file}: no `{after}`"))..];
    let start = text.find("|\n").unwrap() + 2;
    let lines: Vec<&str> = text[start..].lines().collect();
    let indent = lines[0].len() - lines[0].trim_start().len();
    let inside = lines.iter().take_while(|line| line.is_empty() || line.len() - line.trim_start().len() >= indent);
    inside.map(|line| format!("{}\n", line.get(indent..).unwrap_or_default())).collect()
}

#[test]
fn the_steps_of_the_action_work() {
    let Some(repository) = repository() else { return };
    let temp = repository.folder.path().join("temp");
    fs::create_dir(&temp).unwrap();
    let step = |name: &str, variables: &[(&str, &str)]| {
        let mut shell = repository.command("bash");
        shell.args(["--noprofile", "--norc", "-eo", "pipefail", "-c"]);
        shell.arg(script(".github/actions/profile/action.yml", &format!("- name: {name}\n")));
        shell.env("RUNNER_TEMP", &temp).env("GITHUB_STEP_SUMMARY", temp.join("summary"));
        shell.env("GITHUB_OUTPUT", temp.join("output")).env("GITHUB_PATH", temp.join("path"));
        shell.env("GITHUB_ACTION_PATH", tools::workspace_root().join(".github/actions/profile"));
        shell.envs(variables.iter().copied()).output().unwrap()
    };
    assert!(step("Install grind", &[]).status.success(), "it is in PATH already");
    let build = BUILD.strip_prefix("--build=").unwrap();
    let variables = [
        ("RUN", "./prog 7"),
        ("BUILD", build),
        ("BASE", ""),
        ("HEAD", "HEAD"),
        ("FAIL_ABOVE", "Ir:1000 Ir:5"),
        ("CALLERS", "20"),
        ("OPTIONS", "--cache-sim=no"),
        ("BASE_REF", ""),
    ];
    let compared = step("Compare", &variables);
    assert!(compared.status.success(), "{}", told(&compared));
    assert_eq!(fs::read_to_string(temp.join("output")).unwrap(), "status=3\n");
    assert!(fs::read_to_string(temp.join("summary")).unwrap().contains("% | dear |"));
    assert_eq!(step("Judge", &[("STATUS", "3")]).status.code(), Some(3));
    assert_eq!(step("Judge", &[("STATUS", "0")]).status.code(), Some(0));
}

#[test]
fn the_script_of_gitlab_works() {
    let Some(repository) = repository() else { return };
    let revision = |name: &str| {
        let output = repository.command("git").args(["rev-parse", name]).output().unwrap();
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    };
    let mut shell = repository.command("sh");
    shell.arg("-ec").arg(script("ci/gitlab.yml", "  script:\n"));
    shell.env("PROFILE_RUN", "./prog 7").env("PROFILE_BUILD", BUILD.strip_prefix("--build=").unwrap());
    shell.env("PROFILE_CALLERS", "20").env("PROFILE_FAIL_ABOVE", "Ir:5").env_remove("PROFILE_TOKEN");
    shell.env("CI_MERGE_REQUEST_DIFF_BASE_SHA", revision("HEAD^")).env("CI_COMMIT_SHA", revision("HEAD"));
    let output = shell.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", told(&output));
    assert!(told(&output).contains("% | dear |"));
}
