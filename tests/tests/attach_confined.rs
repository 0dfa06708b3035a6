//! Programs that are shut in are joined and left (`--pid`): with filters of their system calls, in other namespaces of mounts and
//! processes, with restartable sequences that are registered. What they have set up holds while they are followed, and afterwards.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use grind_tests::build::Source;
use grind_tests::profile::Profile;
use grind_tests::{run, tools};

struct Alone {
    child: Child,
    /// Itself, or what it has started in a namespace.
    pid: u32,
    dir: tempfile::TempDir,
}

/// What the program ends with where this machine lacks what is tested.
const LACKS: i32 = 77;

fn built(dir: &Path) -> PathBuf {
    let at = dir.join("confined");
    let source = Source::open("attach", "confined");
    let mut words = vec!["cc".to_owned(), "-o".into(), at.display().to_string()];
    words.extend(source.words("cc"));
    words.push(source.path.display().to_string());
    grind_tests::build::compile(&words, dir);
    at
}

impl Alone {
    /// Starts what `words` of the program make, up to its first byte; or says why that cannot be here.
    fn start(words: impl FnOnce(&Path) -> Vec<String>) -> Option<Self> {
        let dir = tempfile::tempdir().unwrap();
        let words = words(&built(dir.path()));
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).current_dir(dir.path()).stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().unwrap();
        let pid = child.id();
        let mut alone = Self { child, pid, dir };
        let mut byte = [0];
        if alone.child.stdout.as_mut().unwrap().read_exact(&mut byte).is_err() {
            let status = alone.child.wait().unwrap();
            eprintln!("skipped: {words:?} is not possible here: {status}");
            return None;
        }
        assert_eq!(&byte, b"r");
        Some(alone)
    }

    fn go_on(&mut self) {
        self.child.stdin.as_mut().unwrap().write_all(b"x").unwrap();
    }

    fn says(&mut self) -> u8 {
        let mut byte = [0];
        self.child.stdout.as_mut().unwrap().read_exact(&mut byte).unwrap();
        byte[0]
    }

    fn profiler(&self, options: &[&str]) -> Command {
        let mut words = tools::under_test().to_vec();
        words.extend(["-q".to_owned(), format!("--pid={}", self.pid)]);
        words.extend(options.iter().map(|&option| option.to_owned()));
        run::command(&words, self.dir.path())
    }

    /// It is joined, computes meanwhile, and is left; whether that was possible, and what grind said.
    fn visited(&mut self, options: &[&str]) -> Output {
        let profiler = self.profiler(options).stderr(Stdio::piped()).spawn().unwrap();
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(30) && !self.is_followed() {
            if fs::metadata(format!("/proc/{}/maps", profiler.id())).is_err() {
                break;
            }
            let ended = fs::read_to_string(format!("/proc/{}/status", profiler.id())).unwrap_or_default();
            if ended.contains("Z (zombie)") {
                break;
            }
            std::thread::sleep(Duration::from_millis(1));
        }
        self.go_on();
        assert_eq!(self.says(), b'w');
        profiler.wait_with_output().unwrap()
    }

    fn is_followed(&self) -> bool {
        fs::read_to_string(format!("/proc/{}/maps", self.pid)).unwrap_or_default().contains("memfd:grind")
    }

    fn ends_well(&mut self) {
        self.go_on();
        assert_eq!(self.says(), b'd', "{:?}", self.child.try_wait());
        assert!(!self.is_followed());
        self.go_on();
        let status = self.child.wait().unwrap();
        assert!(status.success(), "{status}");
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Both tools, each for a visit that lasts longer than the program computes.
const TOOLS: [[&str; 3]; 2] = [
    ["--tool=cachegrind", "--cachegrind-out-file=out", "--duration=700ms"],
    ["--tool=callgrind", "--callgrind-out-file=out", "--duration=700ms"],
];

fn names_work(profile: &[u8]) -> bool {
    // Where calls are told, a name may come with a call first.
    let names = ["fn=", "cfn="];
    let profile = String::from_utf8_lossy(profile);
    profile.lines().any(|line| names.iter().any(|name| line.starts_with(name)) && line.ends_with("work"))
}

/// The files of a process in /proc belong to whom it acts as.
fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

#[test]
fn a_program_that_filters_its_system_calls() {
    for options in TOOLS {
        let Some(mut alone) = Alone::start(|p| vec![p.display().to_string(), "filter".into()]) else { return };
        let output = alone.visited(&options);
        let text = String::from_utf8_lossy(&output.stderr);
        if is_root() {
            assert!(output.status.success(), "{text}");
            assert!(names_work(&fs::read(alone.dir.path().join("out")).unwrap()));
        } else {
            assert!(text.contains("only root may suspend"), "{text}");
        }
        alone.ends_well();
    }
}

#[test]
fn a_program_whose_library_has_registered_sequences() {
    for options in TOOLS {
        let Some(mut alone) = Alone::start(|p| vec![p.display().to_string()]) else { return };
        let output = alone.visited(&options);
        assert!(output.status.success(), "{output:?}");
        assert!(names_work(&fs::read(alone.dir.path().join("out")).unwrap()));
        alone.ends_well();
    }
}

#[test]
fn a_program_with_sequences_of_its_own_is_refused() {
    let Some(mut alone) = Alone::start(|p| vec![p.display().to_string(), "sequence".into()]) else { return };
    alone.go_on();
    std::thread::sleep(Duration::from_millis(50));
    let output = alone.profiler(&["--cachegrind-out-file=out", "--duration=100ms"]).output().unwrap();
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(1) && text.contains("restartable sequences (rseq)"), "{text}");
    assert_eq!(alone.says(), b'w');
    alone.go_on();
    assert!(alone.child.wait().unwrap().success());
}

/// The program lies in a folder that nobody outside can see, and has a small number inside.
#[test]
fn a_program_in_namespaces_of_its_own() {
    if !tools::have(&["unshare", "mount"]) {
        return;
    }
    for options in TOOLS {
        let inside = |program: &Path| {
            let hidden = program.with_file_name("hidden");
            fs::create_dir(&hidden).unwrap();
            let (program, hidden) = (program.display(), hidden.display());
            let script = format!(
                "mount -t tmpfs none {hidden} && cp {program} {hidden} && exec {hidden}/confined || exit {LACKS}"
            );
            ["unshare", "--user", "--map-root-user", "--mount", "--pid", "--fork", "sh", "-c", &script]
                .map(str::to_owned)
                .to_vec()
        };
        let Some(mut alone) = Alone::start(inside) else { return };
        let unshare = alone.child.id();
        let children = fs::read_to_string(format!("/proc/{unshare}/task/{unshare}/children")).unwrap();
        alone.pid = children.split_whitespace().next().unwrap().parse().unwrap();
        let status = fs::read_to_string(format!("/proc/{}/status", alone.pid)).unwrap();
        assert!(status.contains(&format!("NSpid:\t{}\t1\n", alone.pid)), "{status}");
        let output = alone.visited(&options);
        assert!(output.status.success(), "{output:?}");
        let out = fs::read(alone.dir.path().join("out")).unwrap();
        assert!(names_work(&out), "{}", String::from_utf8_lossy(&out));
        if options[0].ends_with("cachegrind") {
            Profile::parse(&out).unwrap();
        }
        alone.ends_well();
    }
}
