//! The C headers and the crate say the same; both are understood by Valgrind and do nothing natively.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use grind_client_requests::Request;

fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../include")
}

/// Whether `program` can be run. Where everything must be tested (CI is set), it has to be.
fn have(program: &str) -> bool {
    let found = Command::new(program).arg("--version").output().is_ok_and(|o| o.status.success());
    assert!(found || std::env::var_os("CI").is_none(), "{program} is needed in CI");
    if !found {
        eprintln!("skipped: {program} is not installed");
    }
    found
}

fn run(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|e| panic!("{command:?}: {e}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

/// Compiles `source` with all warnings as errors, in the dialect that `compiler` is for.
fn compile(folder: &Path, compiler: &str, options: &[&str], source: &str) -> PathBuf {
    let name = if compiler.ends_with("++") { "test.cpp" } else { "test.c" };
    let (file, program) = (folder.join(name), folder.join("test"));
    fs::write(&file, source).unwrap();
    run(Command::new(compiler).args(["-Wall", "-Wextra", "-Werror", "-g", "-I"]).arg(include()).args(options).args([
        file.as_os_str(),
        "-o".as_ref(),
        program.as_os_str(),
    ]));
    program
}

const COMPILERS: [(&str, &[&[&str]]); 4] = [
    ("gcc", &[&["-std=gnu89"], &["-std=c11", "-O2", "-pedantic"], &["-O3", "-fPIC", "-flto"]]),
    ("g++", &[&["-std=c++98", "-pedantic", "-Wno-long-long"], &["-std=c++17", "-O2"]]),
    ("clang", &[&["-O0"], &["-std=c11", "-O2", "-pedantic"]]),
    ("clang++", &[&["-std=c++17", "-O2"]]),
];

/// Clang is tested where it is installed; gcc is what the headers are mainly for.
fn compilers() -> impl Iterator<Item = (&'static str, &'static [&'static str])> {
    COMPILERS
        .into_iter()
        .filter(|(compiler, _)| match compiler.starts_with("clang") {
            true => Command::new(compiler).arg("--version").output().is_ok(),
            false => have(compiler),
        })
        .flat_map(|(compiler, all)| all.iter().map(move |options| (compiler, *options)))
}

#[test]
fn numbers_are_the_same() {
    if !have("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut source =
        String::from("#include <stdio.h>\n#include <cachegrind.h>\n#include <callgrind.h>\nint main(void) {\n");
    for request in Request::ALL {
        let name = request.c_name();
        writeln!(source, "    printf(\"{name} %#lx\\n\", (unsigned long){name});").unwrap();
    }
    source.push_str("    return 0;\n}\n");
    let program = compile(folder.path(), "gcc", &[], &source);
    let printed = String::from_utf8(run(&mut Command::new(program)).stdout).unwrap();
    let expected: String = Request::ALL.iter().map(|r| format!("{} {:#x}\n", r.c_name(), r.code())).collect();
    assert_eq!(printed, expected);

    // And the headers have none that the crate lacks.
    for header in ["valgrind.h", "cachegrind.h", "callgrind.h"] {
        let text = fs::read_to_string(include().join(header)).unwrap();
        for name in
            text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').filter(|w| w.starts_with("VG_USERREQ__"))
        {
            assert!(Request::ALL.iter().any(|r| r.c_name() == name), "{header}: {name}");
        }
    }
}

#[test]
fn numbers_are_ascending_and_readable() {
    assert!(Request::ALL.is_sorted_by_key(|r| r.code()));
    for request in Request::ALL {
        assert_eq!(Request::from_code(request.code()), Some(*request));
    }
    assert_eq!(Request::CachegrindStartInstrumentation.code(), u64::from(u32::from_be_bytes(*b"CG\0\0")));
    assert_eq!(Request::CallgrindDumpStats.code(), u64::from(u32::from_be_bytes(*b"CT\0\0")));
    // Those that only CodSpeed's fork of Valgrind has, by its numbers.
    assert_eq!(Request::CallgrindAddObjSkip.code(), u64::from(u32::from_be_bytes(*b"CT\0\x06")));
    assert_eq!(Request::CallgrindAddDesc.code(), u64::from(u32::from_be_bytes(*b"CT\0\x07")));
}

/// Uses every macro, as programs do.
const EVERYTHING: &str = r#"
#include <stdio.h>
#include <valgrind.h>
#include <cachegrind.h>
#include <callgrind.h>
static char block[64];
int main(void)
{
    char tool[32] = "-";
    unsigned long answer;
    unsigned stack;
    printf("running %u\n", RUNNING_ON_VALGRIND);
    VALGRIND_DISCARD_TRANSLATIONS(block, sizeof(block));
    answer = VALGRIND_PRINTF("one %d %s %5.1f\n", 1, "two", 3.0);
    printf("printed %lu\n", answer);
    VALGRIND_PRINTF_BACKTRACE("back %c\n", 'x');
    VALGRIND_DO_CLIENT_REQUEST(answer, 42, 0x12345678, 1, 2, 3, 4, 5);
    printf("unknown %lu\n", answer);
    printf("errors %u\n", VALGRIND_COUNT_ERRORS);
    if (VALGRIND_GET_TOOLNAME(tool, sizeof(tool)) > sizeof(tool)) printf("too long\n");
    if (VALGRIND_REPLACES_MALLOC) printf("replaces malloc\n");
    VALGRIND_DISABLE_ERROR_REPORTING;
    VALGRIND_ENABLE_ERROR_REPORTING;
    VALGRIND_MALLOCLIKE_BLOCK(block, 64, 0, 1);
    VALGRIND_RESIZEINPLACE_BLOCK(block, 64, 32, 0);
    VALGRIND_FREELIKE_BLOCK(block, 0);
    VALGRIND_CREATE_MEMPOOL(block, 0, 0);
    VALGRIND_CREATE_MEMPOOL_EXT(block, 0, 0, VALGRIND_MEMPOOL_AUTO_FREE | VALGRIND_MEMPOOL_METAPOOL);
    VALGRIND_MEMPOOL_ALLOC(block, block + 1, 2);
    VALGRIND_MEMPOOL_CHANGE(block, block + 1, block + 2, 2);
    VALGRIND_MEMPOOL_TRIM(block, block, 2);
    VALGRIND_MOVE_MEMPOOL(block, block);
    if (VALGRIND_MEMPOOL_EXISTS(block)) printf("pool\n");
    VALGRIND_MEMPOOL_FREE(block, block + 1);
    VALGRIND_DESTROY_MEMPOOL(block);
    stack = VALGRIND_STACK_REGISTER(block, block + 63);
    VALGRIND_STACK_CHANGE(stack, block, block + 31);
    VALGRIND_STACK_DEREGISTER(stack);
    CACHEGRIND_STOP_INSTRUMENTATION;
    CACHEGRIND_START_INSTRUMENTATION;
    CALLGRIND_ZERO_STATS;
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_TOGGLE_COLLECT;
    CALLGRIND_DUMP_STATS;
    CALLGRIND_ADD_OBJ_SKIP("/nowhere");
    CALLGRIND_ADD_DESC("described");
    CALLGRIND_DUMP_STATS_AT("here");
    CALLGRIND_STOP_INSTRUMENTATION;
    CALLGRIND_START_INSTRUMENTATION;
    CG_PUSH_CONTEXT(7);
    CG_PUSH_CONTEXT_NAMED("named");
    CG_PUSH_CONTEXT_NAMED(tool);
    if (CG_CONTEXT_NAMED("named")) printf("named\n");
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    CG_POP_CONTEXT();
    if (VG_IS_TOOL_USERREQ('G', 'R', VG_USERREQ__GR_POP_CONTEXT) && !VG_IS_TOOL_USERREQ('C', 'G', VG_USERREQ__GR_POP_CONTEXT))
        printf("own\n");
    if (VG_IS_TOOL_USERREQ('C', 'T', VG_USERREQ__ZERO_STATS)) printf("done\n");
    return 0;
}
"#;

#[test]
fn natively_nothing_happens() {
    for (compiler, options) in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), compiler, options, EVERYTHING);
        let output = run(&mut Command::new(program));
        let printed = String::from_utf8(output.stdout).unwrap();
        assert_eq!(printed, "running 0\nprinted 0\nunknown 42\nerrors 0\nown\ndone\n", "{compiler} {options:?}");
        assert!(output.stderr.is_empty());
    }
}

#[test]
fn without_requests_the_same_code_compiles() {
    if !have("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let options = ["-DNVALGRIND", "-Wno-unused-variable", "-Wno-unused-but-set-variable", "-Wno-unused-value"];
    let program = compile(folder.path(), "gcc", &options, EVERYTHING);
    let bytes = fs::read(&program).unwrap();
    let preamble = [0x48, 0xc1, 0xc7, 0x03, 0x48, 0xc1, 0xc7, 0x0d];
    assert!(!bytes.windows(preamble.len()).any(|w| w == preamble), "no request is compiled in");
    let printed = String::from_utf8(run(&mut Command::new(program)).stdout).unwrap();
    assert_eq!(printed, "running 0\nprinted 0\nunknown 42\nerrors 0\nown\ndone\n");
}

/// What `program` prints under Valgrind, on standard output and to the log without process IDs.
fn under_valgrind(folder: &Path, program: &Path) -> (String, Vec<String>) {
    let log = folder.join("log");
    let output = run(Command::new("valgrind")
        .args(["--tool=cachegrind", "-q", "--cachegrind-out-file=/dev/null"])
        .arg(format!("--log-file={}", log.display()))
        .arg(program));
    let text = fs::read_to_string(&log).unwrap();
    let lines = text.lines().filter_map(|l| Some(l.strip_prefix("**")?.split_once("** ")?.1.to_owned())).collect();
    (String::from_utf8(output.stdout).unwrap(), lines)
}

#[test]
fn valgrind_understands_the_headers() {
    if !have("valgrind") {
        return;
    }
    for (compiler, options) in compilers() {
        let folder = tempfile::tempdir().unwrap();
        let program = compile(folder.path(), compiler, options, EVERYTHING);
        let (printed, log) = under_valgrind(folder.path(), &program);
        assert_eq!(printed, "running 1\nprinted 16\nunknown 42\nerrors 0\nown\ndone\n", "{compiler} {options:?}");
        assert_eq!(log, ["one 1 two   3.0", "back x"]);
    }
}

/// An example program, which cargo has built beside this test.
fn example(name: &str) -> PathBuf {
    let test = std::env::current_exe().unwrap();
    let program = test.parent().and_then(Path::parent).unwrap().join("examples").join(name);
    assert!(program.exists(), "{} is not built", program.display());
    program
}

#[test]
fn the_crate_is_silent_natively() {
    let printed = String::from_utf8(run(&mut Command::new(example("talk"))).stdout).unwrap();
    assert_eq!(printed, "running 0\ntool -\nprinted 0\ndone\n");
}

#[test]
fn valgrind_understands_the_crate() {
    if !have("valgrind") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (printed, log) = under_valgrind(folder.path(), &example("talk"));
    // Older versions do not tell the tool's name.
    let printed = printed.replace("tool cachegrind", "tool -");
    assert_eq!(printed, "running 1\ntool -\nprinted 7\ndone\n");
    assert_eq!(log, ["100 %s"]);
}

/// The annotated pipelines do natively what they say, and under Valgrind the same without a word about it.
#[test]
fn annotated_pipelines_run_anywhere() {
    if !have("gcc") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/pipeline.c");
    let text = fs::read_to_string(source).unwrap();
    for program in [compile(folder.path(), "gcc", &["-std=c11", "-O1", "-pedantic"], &text), example("pipeline")] {
        let native = String::from_utf8(run(&mut Command::new(&program)).stdout).unwrap();
        assert!(native.lines().count() > 0 && native.lines().all(|l| l.parse::<f64>().is_ok()), "{native}");
        if have("valgrind") {
            let (printed, log) = under_valgrind(folder.path(), &program);
            assert_eq!((printed, log), (native, vec![]));
        }
    }
}
