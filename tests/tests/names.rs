//! Names are those of what ran, whatever has become of the names of files since: replaced, deleted, never there, or there in
//! another file system. Where that cannot be had, there is no name and one warning, never a wrong name.
//!
//! All of it with the right to open files by their mappings, and (as root) without.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use grind_tests::build::compile;
use grind_tests::run::{Job, Profiled};
use grind_tests::tools;

fn build(dir: &Path, name: &str, source: &str, words: &[&str]) -> PathBuf {
    let (file, out) = (dir.join(format!("{name}.c")), dir.join(name));
    fs::write(&file, source).expect("a source file");
    let all = ["gcc", "-g", "-O1", "-w", "-o"].into_iter().map(str::to_owned);
    let all = all.chain([&out, &file].map(|p| p.display().to_string()));
    compile(&all.chain(words.iter().map(|w| (*w).to_owned())).collect::<Vec<_>>(), dir);
    out
}

/// The ways to run grind: as we are; and, if that is root, without the right to open files by their mappings.
fn ways(options: &[&str]) -> Vec<Vec<String>> {
    let grind = || tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned()));
    let drop = ["setpriv", "--inh-caps=-all", "--bounding-set=-all"];
    let mut ways = vec![grind().collect()];
    if fs::metadata("/proc/self").is_ok_and(|m| std::os::unix::fs::MetadataExt::uid(&m) == 0) && tools::have(&drop[..1])
    {
        ways.push(drop.iter().map(|w| (*w).to_owned()).chain(grind()).collect());
    }
    ways
}

fn run(way: &[String], words: &[&str], dir: &Path, trace_children: bool) -> Profiled {
    let job = Job { trace_children, ..Job::new(words.iter().copied(), dir) };
    let done = job.profiled(way);
    assert!(done.outcome.status.success(), "{}\n{}", done.outcome.show(), done.log);
    done
}

/// Costs of functions by their names, and the line with the largest cost.
fn costs(done: &Profiled) -> BTreeMap<String, (u64, u64)> {
    let mut all: BTreeMap<String, (u64, u64)> = BTreeMap::new();
    for (_, profile) in &done.raw {
        let (mut name, mut most) = (String::new(), BTreeMap::new());
        for line in String::from_utf8_lossy(profile).lines() {
            if let Some(f) = line.strip_prefix("fn=") {
                name = f.to_owned();
            } else if let Some((line, count)) = line.split_once(' ')
                && let (Ok(line), Ok(count)) = (line.parse::<u64>(), count.parse::<u64>())
            {
                let entry = all.entry(name.clone()).or_default();
                entry.0 += count;
                let most = most.entry(name.clone()).or_insert(0);
                if count > *most {
                    (*most, entry.1) = (count, line);
                }
            }
        }
    }
    all
}

const WORK: &str =
    "__attribute__((noinline)) int work(int n){ volatile int s=0; for(int i=0;i<n;i++) s+=i; return s;}\n";
const OTHER: &str =
    "__attribute__((noinline)) int other(int n){ volatile int s=1; for(int i=0;i<n;i++) s^=i; return s;}\n";

/// A program that calls both functions after it has done `first`.
fn program(first: &str, functions: [&str; 2]) -> String {
    format!(
        "#include <stdio.h>\n#include <stdlib.h>\n#include <unistd.h>\n{}{}\
         int main(int c,char**v){{ char b[999]; {first}; printf(\"%d\\n\",work(1000)+other(3000)); return 0; }}",
        functions[0], functions[1]
    )
}

#[test]
fn a_program_that_is_replaced_while_it_runs_keeps_its_names() {
    for way in ways(&[]) {
        let dir = tempfile::tempdir().unwrap();
        let first = r#"sprintf(b,"%s.new",v[0]); rename(b,v[0])"#;
        let path = build(dir.path(), "prog", &program(first, [WORK, OTHER]), &[]);
        let new = build(dir.path(), "other", &program(first, [OTHER, WORK]), &[]);
        fs::rename(new, dir.path().join("prog.new")).unwrap();
        let done = run(&way, &[path.to_str().unwrap()], dir.path(), false);
        let costs = costs(&done);
        assert_eq!((costs["work"], costs["other"]), ((6006, 4), (18_006, 5)), "{costs:?}");
        assert!(!done.log.contains("Warning"), "{}", done.log);
    }
}

#[test]
fn a_program_that_deletes_itself_keeps_its_names() {
    for way in ways(&[]) {
        let dir = tempfile::tempdir().unwrap();
        let path = build(dir.path(), "prog", &program("unlink(v[0])", [WORK, OTHER]), &[]);
        let costs = costs(&run(&way, &[path.to_str().unwrap()], dir.path(), false));
        assert_eq!((costs["work"], costs["other"]), ((6006, 4), (18_006, 5)), "{costs:?}");
    }
}

/// Loads a library, does something with its file, and runs it.
fn host(then: &str) -> String {
    format!(
        "#include <dlfcn.h>\n#include <stdio.h>\n#include <unistd.h>\n#include <fcntl.h>\n#include <string.h>\n\
         int main(int c,char**v){{ void*h=dlopen(v[1],RTLD_NOW); int(*f)(int)=dlsym(h,\"work\"); {then}; \
         printf(\"%d\\n\",f(1000)); dlclose(h); return 0; }}"
    )
}

#[test]
fn a_library_that_is_deleted_once_it_is_loaded_keeps_its_names() {
    for options in [&[][..], &["--tool=callgrind"], &["--tool=callgrind", "--toggle-collect=work"]] {
        for way in ways(options) {
            let dir = tempfile::tempdir().unwrap();
            let library = build(dir.path(), "plug.so", WORK, &["-shared", "-fPIC"]);
            let path = build(dir.path(), "host", &host("unlink(v[1])"), &[]);
            let done = run(&way, &[path.to_str().unwrap(), library.to_str().unwrap()], dir.path(), false);
            let text = String::from_utf8_lossy(&done.raw[0].1);
            match options {
                [] => assert_eq!(costs(&done)["work"], (6006, 1)),
                [_, _] => {
                    let total = text.lines().find_map(|l| l.strip_prefix("totals: ")).expect("totals");
                    assert_eq!(total, "6006", "{text}");
                }
                _ => assert!(text.contains(") work\n"), "{text}"),
            }
            if !options.is_empty() {
                assert!(text.contains(&format!(") {}\n", library.display())), "its name is that of the file: {text}");
            }
        }
    }
}

#[test]
fn a_library_that_is_written_to_has_old_names_or_none() {
    for way in ways(&[]) {
        let dir = tempfile::tempdir().unwrap();
        let library = build(dir.path(), "plug.so", WORK, &["-shared", "-fPIC"]);
        // The same code under another name and with other lines; the program ends by it, since more than names may be gone.
        let renamed =
            build(dir.path(), "new.so", &format!("\n\n{}", WORK.replace("work", "fake")), &["-shared", "-fPIC"]);
        let bytes = fs::read(&renamed).unwrap();
        assert_eq!(bytes.len(), fs::read(&library).unwrap().len(), "nothing else has moved");
        let then = "int r=f(1000); int in=open(v[2],O_RDONLY), out=open(v[1],O_WRONLY); static char b[1<<20]; \
                    int n=read(in,b,sizeof b); write(out,b,n); close(out); printf(\"%d\\n\",r); fflush(stdout); _exit(0)";
        let path = build(dir.path(), "host", &host(then), &[]);
        let words = [&path, &library, &renamed].map(|p| p.to_str().unwrap());
        let done = run(&way, &words, dir.path(), false);
        let costs = costs(&done);
        assert!(!costs.contains_key("fake"), "{costs:?}");
        let named = costs.get("work").or_else(|| costs.get("???")).expect("its costs are somewhere");
        assert!(named.0 >= 6006, "{costs:?}");
        assert_eq!(done.log.matches("plug.so has been written to since").count(), 1, "{}", done.log);
    }
}

const FROM_MEMORY: &str = r#"
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
int main(int c, char **v, char **e) {
    if (c > 1) { printf("%d\n", work(1000)); return 0; }
    struct stat s;
    int f = open("/proc/self/exe", O_RDONLY), m = memfd_create("prog", MFD_CLOEXEC);
    off_t o = 0;
    fstat(f, &s);
    while (o < s.st_size) if (sendfile(m, f, &o, s.st_size - o) <= 0) return 1;
    char *a[] = {"prog", "inner", 0};
    syscall(SYS_execveat, m, "", a, e, AT_EMPTY_PATH);
    return 2;
}
"#;

#[test]
fn a_program_that_only_exists_in_memory_has_names() {
    for way in ways(&[]) {
        let dir = tempfile::tempdir().unwrap();
        let path = build(dir.path(), "prog", &format!("{WORK}{FROM_MEMORY}"), &[]);
        let done = run(&way, &[path.to_str().unwrap()], dir.path(), true);
        assert_eq!(costs(&done)["work"], (6006, 1), "{}", done.log);
    }
}

#[test]
fn a_library_that_only_exists_in_memory_has_names() {
    for way in ways(&[]) {
        let dir = tempfile::tempdir().unwrap();
        let library = build(dir.path(), "plug.so", WORK, &["-shared", "-fPIC"]);
        let source = r#"
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int c, char **v) {
    static char b[1 << 20];
    char name[99];
    int m = memfd_create("plug", 0), n = read(open(v[1], O_RDONLY), b, sizeof b);
    write(m, b, n);
    sprintf(name, "/proc/self/fd/%d", m);
    int (*f)(int) = dlsym(dlopen(name, RTLD_NOW), "work");
    printf("%d\n", f(1000));
    return 0;
}"#;
        let path = build(dir.path(), "host", source, &[]);
        let done = run(&way, &[path.to_str().unwrap(), library.to_str().unwrap()], dir.path(), false);
        assert_eq!(costs(&done)["work"], (6006, 1), "{}", done.log);
    }
}

#[test]
fn a_program_in_another_file_system_is_not_the_one_of_that_name_here() {
    let probe = std::process::Command::new("unshare").args(["-m", "true"]).status();
    if !probe.is_ok_and(|s| s.success()) {
        eprintln!("skipped: no mount namespaces here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let [a, b] = ["a", "b"].map(|name| dir.path().join(name));
    fs::create_dir(&a).unwrap();
    fs::create_dir(&b).unwrap();
    build(&a, "p", &program("", [WORK, OTHER]), &[]);
    build(&b, "p", &program("", [&WORK.replace("work", "inside"), OTHER]).replace("work", "inside"), &[]);
    let script = "mount --bind \"$2\" \"$1\" && exec \"$1/p\"";
    let words = ["unshare", "-m", "sh", "-c", script, "sh", a.to_str().unwrap(), b.to_str().unwrap()];
    // Without rights there are no namespaces either.
    let done = run(&ways(&[])[0], &words, dir.path(), true);
    let costs = costs(&done);
    assert_eq!(costs.get("inside"), Some(&(6006, 4)), "{costs:?}\n{}", done.log);
    assert!(!costs.contains_key("work"), "{costs:?}");
}

#[test]
fn what_no_name_leads_to_has_no_names_and_one_warning() {
    let Some(way) = ways(&[]).into_iter().nth(1) else {
        eprintln!("skipped: only root can give up the right to open files by their mappings");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let library = build(dir.path(), "plug.so", WORK, &["-shared", "-fPIC"]);
    let other = build(dir.path(), "other.so", &WORK.replace("work", "fake"), &["-shared", "-fPIC"]);
    // It is mapped by hand and replaced before any of its code runs.
    let source = r#"
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>
int main(int c, char **v) {
    int fd = open(v[1], O_RDONLY);
    long at = 0;
    sscanf(v[3], "%ld", &at);
    rename(v[2], v[1]);
    char *p = mmap(0, 1 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
    close(fd);
    int (*f)(int) = (void *)(p + at);
    int r = f(1000) + f(1000);
    printf("%d\n", r);
    return 0;
}"#;
    let path = build(dir.path(), "host", source, &[]);
    let symbols = std::process::Command::new("nm").arg(&library).output().expect("nm");
    let symbols = String::from_utf8_lossy(&symbols.stdout).into_owned();
    let at = symbols.lines().find_map(|l| l.strip_suffix(" T work")).expect("the function");
    let at = u64::from_str_radix(at, 16).unwrap().to_string();
    let words = [path.to_str().unwrap(), library.to_str().unwrap(), other.to_str().unwrap(), &at];
    let done = run(&way, &words, dir.path(), false);
    let costs = costs(&done);
    assert!(!costs.contains_key("work") && !costs.contains_key("fake"), "{costs:?}");
    assert!(costs["???"].0 >= 2 * 6006, "{costs:?}");
    assert_eq!(done.log.matches("plug.so is not the file any more that was mapped").count(), 1, "{}", done.log);
}

/// A request that prints the stack: directly, in a callback of the C library, in a handler, in a library that is gone, and
/// in a program without lines.
const STACKS: &str = r#"
#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <valgrind.h>
static int once;
__attribute__((noinline)) static int inner(int n) { VALGRIND_PRINTF_BACKTRACE("inner %d\n", n); return n + 1; }
__attribute__((noinline)) int outer(int n) { return inner(n * 2) + 1; }
static int compare(const void *a, const void *b) {
    if (!once++) VALGRIND_PRINTF_BACKTRACE("sorting\n");
    return 0;
}
static void handler(int s) { VALGRIND_PRINTF_BACKTRACE("handler\n"); once += s; }
__attribute__((noinline)) static int deep(int n) { return n ? deep(n - 1) + n : outer(0); }
int main(int c, char **v) {
    int numbers[4] = {0};
    qsort(numbers, 4, sizeof *numbers, compare);
    signal(SIGUSR1, handler);
    raise(SIGUSR1);
    outer(3);
    deep(20);
    int (*work)(int (*)(int)) = dlsym(dlopen(v[1], RTLD_NOW), "work");
    unlink(v[1]);
    return work(outer) & 0;
}"#;

/// The frames of all printed stacks, without their addresses.
fn frames(log: &str) -> Vec<String> {
    let text = log.lines().filter_map(|l| Some(l.split_once("== ")?.1.trim_start()));
    let frames = text.filter(|l| l.starts_with("at 0x") || l.starts_with("by 0x"));
    frames.map(|l| format!("{} {}", &l[..2], l.split_once(": ").expect("a name").1)).collect()
}

#[test]
fn printed_stacks_have_the_names_of_what_runs() {
    let include = format!("-I{}", tools::workspace_root().join("include").display());
    let stacks = |profiler: &[String], words: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        let path = build(dir.path(), "stacks", STACKS, &[&[include.as_str()], words].concat());
        let library = "int work(int (*f)(int)) { return f(5) + 1; }";
        let library = build(dir.path(), "plug.so", library, &["-shared", "-fPIC"]);
        let done = run(profiler, &[path.to_str().unwrap(), library.to_str().unwrap()], dir.path(), false);
        let folder = format!("{}/", dir.path().display());
        frames(&done.log).into_iter().map(|f| f.replace(&folder, "")).collect::<Vec<_>>()
    };
    let shown = stacks(&ways(&[])[0], &[]);
    let at =
        |text: &str| shown.iter().position(|f| f.starts_with(text)).unwrap_or_else(|| panic!("{text}: {shown:#?}"));
    // Recursion fills what is shown.
    assert_eq!(shown.iter().filter(|f| f.starts_with("by deep (stacks.c:")).count(), 9, "{shown:#?}");
    assert!(shown[at("by work (plug.so.c:1)") + 1].starts_with("by main (stacks.c:"), "{shown:#?}");
    assert!(shown[at("by handler (stacks.c:") + 1].starts_with("by "), "{shown:#?}");
    assert_eq!(stacks(&ways(&["--tool=callgrind"])[0], &[]), shown);
    if tools::have(&["valgrind"]) {
        // The reference takes what a signal has interrupted for a call, and shows the line before.
        let alike = |all: Vec<String>| -> Vec<String> {
            let line = |f: String| if f.contains("pthread_kill") { f.split(':').next().unwrap().to_owned() } else { f };
            all.into_iter().map(line).collect()
        };
        for words in [&[][..], &["-s"], &["-fno-omit-frame-pointer"]] {
            let expected = stacks(&tools::valgrind(), words);
            assert_eq!(alike(stacks(&ways(&[])[0], words)), alike(expected), "{words:?}");
        }
    }
}
