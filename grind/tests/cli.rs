//! The program itself, from the outside: messages, exit codes, and what it leaves behind when it runs nothing.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Stdio;

use crate::common::{Answer, Place};

const MORE: &str = "Use --help for more information or consult the user manual.\n";

#[test]
fn help_and_version_go_to_standard_output() {
    let place = Place::new();
    for (args, start) in [
        (&["--help"][..], "usage: grind [options] program"),
        (&["-h"], "usage: grind [options] program"),
        (&["--help-debug"], "usage: grind [options] program"),
        (&["--help-dyn-options"], "No option can be changed"),
        (&["--version"], concat!("grind-", env!("CARGO_PKG_VERSION"), "\n")),
        (&["--bogus", "--version"], concat!("grind-", env!("CARGO_PKG_VERSION"), "\n")),
    ] {
        let answer = place.grind(args);
        assert_eq!((answer.code, answer.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(answer.out.starts_with(start), "{args:?}: {}", answer.out);
    }
}

#[test]
fn wrong_usage_ends_with_1() {
    let place = Place::new();
    let nothing = "grind: no program specified\ngrind: Use --help for more information.\n\
                   grind: For example: grind ./program input, or grind --tool=callgrind ./program input for the call graph.\n";
    for (args, message) in [
        (&[][..], nothing.to_owned()),
        (&["--"], nothing.to_owned()),
        (&["-q"], nothing.to_owned()),
        (&["--bogus-thing", "true"], format!("grind: Unknown option: --bogus-thing\ngrind: {MORE}")),
        (
            &["--log-fil=x", "true"],
            format!("grind: Unknown option: --log-fil=x\ngrind: Did you mean '--log-file=x'?\ngrind: {MORE}"),
        ),
        (
            &["--branch-sim", "true"],
            format!(
                "grind: Bad option: --branch-sim\n\
                 grind: Missing boolean value, did you mean '--branch-sim=yes'?\ngrind: {MORE}"
            ),
        ),
        (
            &["--D1=32768,8,48", "true"],
            format!(
                "grind: Cache set count is not a power of two.\ngrind: Bad option: --D1=32768,8,48\n\
                 grind: Bad argument '32768,8,48'\ngrind: {MORE}"
            ),
        ),
        (
            &["--cachegrind-out-file=", "true"],
            format!("grind: Bad option: --cachegrind-out-file=\ngrind: No filename given\ngrind: {MORE}"),
        ),
        (
            &["--tool=memcheck", "true"],
            format!(
                "grind: failed to start tool 'memcheck': this version has cachegrind, callgrind only\ngrind: {MORE}"
            ),
        ),
        (
            &["--log-file=absent/log", "true"],
            "grind: cannot write the log file 'absent/log': folder 'absent': No such file or directory; name another place with \
             --log-file=FILE\n"
                .to_owned(),
        ),
        (
            &["--cachegrind-out-file=absent/out.%p", "true"],
            "grind: cannot write the profile 'absent/out.%p': folder 'absent/': No such file or directory; name another place with \
             --cachegrind-out-file=FILE\n"
                .to_owned(),
        ),
    ] {
        let answer = place.grind(args);
        assert_eq!(answer.err, message, "{args:?}");
        assert_eq!((answer.code, answer.out.as_str()), (Some(1), ""), "{args:?}");
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn programs_that_cannot_be_run_end_with_126_or_127() {
    let place = Place::new();
    place.put("noexec", b"#!/bin/sh\n", 0o644);
    place.put("orphan", b"#!/nonexistent/interp\n", 0o755);
    place.put("binary", b"\0\x01", 0o755);
    place.put("old", &[b"\x7fELF\x01\x01\x01".as_slice(), &[0; 57]].concat(), 0o755);
    let mut setid = b"\x7fELF\x02\x01\x01".to_vec();
    setid.resize(64, 0);
    (setid[16], setid[18]) = (2, 62);
    place.put("setid", &setid, 0o4755);
    for (program, code, message) in [
        ("/nonexistent", 127, "No such file or directory"),
        ("no-such-command", 127, "command not found"),
        ("", 127, "command not found"),
        ("./", 126, "is a directory"),
        ("./noexec", 126, "Permission denied (make it executable with chmod +x)"),
        ("./orphan", 126, "bad interpreter: /nonexistent/interp: No such file or directory"),
        ("./binary", 126, "cannot execute binary file: neither an ELF program nor a script"),
        ("./old", 126, "is a program for another processor (ELF machine 0); grind runs x86-64 programs only"),
        (
            "./setid",
            126,
            "is set-uid or set-gid, and such a program cannot be traced (profile a copy without these bits)",
        ),
    ] {
        let answer = place.grind(&["--cachegrind-out-file=out", program]);
        assert_eq!(answer.err, format!("grind: {program}: {message}\n"));
        assert_eq!((answer.code, answer.out.as_str()), (Some(code), ""), "{program}");
        assert!(!place.path("out").exists(), "no file is left behind");
    }
}

#[test]
fn an_old_profile_survives_a_run_that_did_not_happen() {
    let place = Place::new();
    place.put("out", b"old", 0o600);
    place.grind(&["--cachegrind-out-file=out", "/nonexistent"]);
    assert_eq!(fs::read(place.path("out")).unwrap(), b"old");
}

#[test]
fn options_come_from_files_and_the_environment() {
    let place = Place::new();
    place.put(".grindrc", b"# none of these exist\n--from-here\n", 0o600);
    let answer = place.grind(&["true"]);
    assert!(answer.err.starts_with("grind: Unknown option: --from-here\n"), "{}", answer.err);
    let answer = place.grind(&["--command-line-only=yes", "/nonexistent"]);
    assert_eq!(answer.err, "grind: /nonexistent: No such file or directory\n");

    place.put("home/.grindrc", b"--from-home", 0o600);
    let answer = place.grind(&["true"]);
    assert!(answer.err.starts_with("grind: Unknown option: --from-home\n"), "{}", answer.err);
    fs::remove_file(place.path("home/.grindrc")).unwrap();
    let grind = Path::new(env!("CARGO_BIN_EXE_grind"));
    let answer: Answer =
        place.command(grind).env("GRIND_OPTS", "-q\n--from-variable").arg("true").output().unwrap().into();
    assert!(answer.err.starts_with("grind: Unknown option: --from-variable\n"), "{}", answer.err);

    place.put(".grindrc", b"--from-here\n", 0o666);
    let answer = place.grind(&["/nonexistent"]);
    assert_eq!(
        answer.err,
        "grind: ./.grindrc was not read: everyone may write to it; run `chmod o-w` on it\n\
         grind: /nonexistent: No such file or directory\n"
    );
}

#[test]
fn under_the_name_valgrind_it_takes_valgrinds_place() {
    let place = Place::new();
    let valgrind = place.path("valgrind");
    symlink(env!("CARGO_BIN_EXE_grind"), &valgrind).unwrap();
    let run = |args: &[&str]| -> Answer { place.command(&valgrind).args(args).output().unwrap().into() };

    let answer = run(&["--version"]);
    assert_eq!(answer.out, "valgrind-3.28.0\n");
    assert!(run(&["-v", "--version"]).out.starts_with("valgrind-3.28.0-grind-"));
    assert!(run(&["--help"]).out.starts_with("usage: valgrind "));
    let answer = run(&[]);
    assert_eq!(answer.err, "valgrind: no program specified\nvalgrind: Use --help for more information.\n");
    assert_eq!(run(&["/nonexistent"]).err, "valgrind: /nonexistent: No such file or directory\n");

    place.put(".valgrindrc", b"--from-valgrindrc", 0o600);
    place.put(".grindrc", b"--from-grindrc", 0o600);
    assert!(run(&["true"]).err.starts_with("valgrind: Unknown option: --from-valgrindrc\n"));
    assert!(place.grind(&["true"]).err.starts_with("grind: Unknown option: --from-grindrc\n"));
    let answer: Answer =
        place.command(&valgrind).env("VALGRIND_OPTS", "--from-opts").arg("true").output().unwrap().into();
    assert!(answer.err.starts_with("valgrind: Unknown option: --from-opts\n"), "{}", answer.err);
}

/// Only the next one behind us on PATH is asked, and it gets the command as it is.
#[test]
fn what_only_valgrind_can_do_is_left_to_the_next_valgrind() {
    let place = Place::new();
    fs::create_dir(place.path("ours")).unwrap();
    let valgrind = place.path("ours/valgrind");
    symlink(env!("CARGO_BIN_EXE_grind"), &valgrind).unwrap();
    place.put("next/valgrind", b"#!/bin/sh\necho \"next: $*\"\nexit 7\n", 0o755);
    let run = |folders: &str, args: &[&str]| -> Answer {
        // Nothing else, lest there be a valgrind.
        let path: Vec<String> = folders.split(':').map(|folder| place.path(folder).display().to_string()).collect();
        place.command(&valgrind).env("PATH", path.join(":")).args(args).output().unwrap().into()
    };
    for args in [&["--tool=memcheck", "-q", "true", "a b"][..], &["--tool=dhat", "true"], &["--leak-check=yes", "true"]]
    {
        let answer = run("ours:next", args);
        assert_eq!((answer.code, answer.out), (Some(7), format!("next: {}\n", args.join(" "))), "{}", answer.err);
        assert_eq!(run("next", args).code, Some(7), "called by its path");
    }
    let refused = "valgrind: failed to start tool 'massif': this version has cachegrind, callgrind only\n";
    let tool = ["--tool=massif", "true"];
    assert!(run("ours", &tool).err.starts_with(refused));
    // A script that calls us by our path, and which we find: that is no other valgrind.
    let script = format!("#!/bin/sh\nexec {} \"$@\"\n", valgrind.display());
    place.put("wrapper/valgrind", script.as_bytes(), 0o755);
    assert!(run("wrapper", &tool).err.starts_with(refused));
    assert_eq!(run("wrapper:ours:next", &tool).code, Some(7));
    // Another copy of grind hands on, too, and comes to an end.
    fs::create_dir(place.path("copy")).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_grind"), place.path("copy/valgrind")).unwrap();
    assert_eq!(run("ours:copy:ours:next", &tool).code, Some(7));
    assert!(run("copy:ours:copy:ours", &tool).err.starts_with(refused));
    assert!(run("copy", &tool).err.starts_with(refused), "from outside PATH");
    // What is wrong with our own options is said by us; and by the name of grind nobody means Valgrind.
    assert!(run("ours:next", &["--bogus", "true"]).err.starts_with("valgrind: Unknown option: --bogus\n"));
    assert!(place.grind(&tool).err.starts_with("grind: failed to start tool"));
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let place = Place::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let output = command.arg("--help").stdout(writer).stderr(Stdio::piped()).output().unwrap();
    assert_eq!((output.status.code(), output.stderr.as_slice()), (Some(0), &[][..]));
}

#[test]
fn a_full_device_is_an_error() {
    let place = Place::new();
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let mut command = place.command(Path::new(env!("CARGO_BIN_EXE_grind")));
    let output = command.arg("--help").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.starts_with("grind: cannot write to standard output: No space left on device"), "{message}");
}

/// The reference's answers to the same words: always the same exit code, and the same text where `text` says so.
#[test]
fn valgrind_answers_alike() {
    let Ok(found) = std::process::Command::new("valgrind").arg("--version").output() else {
        assert!(std::env::var_os("CI").is_none(), "valgrind is needed in CI");
        eprintln!("skipped: valgrind is not installed");
        return;
    };
    assert!(found.status.success());
    let place = Place::new();
    let ours = place.path("valgrind");
    symlink(env!("CARGO_BIN_EXE_grind"), &ours).unwrap();
    place.put("noexec", b"#!/bin/sh\n", 0o644);
    place.put("orphan", b"#!/nonexistent/interp\n", 0o755);
    for (text, words) in [
        (true, &[][..]),
        (true, &["--"]),
        (true, &["--bogus-thing=1", "true"]),
        (true, &["-z", "true"]),
        (true, &["--log-fd=x", "true"]),
        (true, &["--num-callers=0", "true"]),
        (true, &["--num-callers=12x", "true"]),
        (true, &["--fair-sched=maybe", "true"]),
        (false, &["--track-fds=foo", "true"]),
        (true, &["--sim-hints=foo", "true"]),
        (true, &["--sim-hints=none,lax-ioctls", "true"]),
        (true, &["--kernel-variant=foo", "true"]),
        (true, &["--branch-sim=maybe", "true"]),
        (true, &["--vex-guest-max-insns=500", "true"]),
        (true, &["--D1=32768,8,48", "true"]),
        (true, &["--I1=32768,8,8", "true"]),
        (true, &["--LL=64,1,64", "true"]),
        (true, &["--L2=32768,-8,-64", "true"]),
        (true, &["--D1=99999999999,8,64", "true"]),
        (true, &["--D1=32768,8", "true"]),
        (true, &["--D1=32768,8,64x", "true"]),
        (true, &["/nonexistent"]),
        (true, &["no-such-command"]),
        (true, &[""]),
        (false, &["./orphan"]),
        (false, &["./"]),
        (false, &["./noexec"]),
        (false, &["--branch-sim", "true"]),
        (false, &["--log-file", "true"]),
        (false, &["--log-file=", "true"]),
        (false, &["--log-file=~/x", "true"]),
        (false, &["--log-file=%x", "true"]),
        (false, &["--log-file=%q{GRIND_TEST_UNSET}", "true"]),
        (false, &["--log-file=absent/x", "true"]),
        (false, &["--smc-check=foo", "true"]),
        (false, &["--px-default=foo", "true"]),
        (false, &["--tool=nonexistent", "true"]),
    ] {
        let answer = |program: &Path| -> Answer {
            place.command(program).arg("--tool=cachegrind").args(words).output().unwrap().into()
        };
        let (reference, ours) = (answer(Path::new("valgrind")), answer(&ours));
        assert_eq!(ours.code, reference.code, "{words:?}: {} against {}", ours.err, reference.err);
        if text {
            assert_eq!(ours.err, reference.err, "{words:?}");
        }
    }
}
