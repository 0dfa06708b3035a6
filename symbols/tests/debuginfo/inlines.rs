//! Inlined functions, address by address, against llvm-symbolizer: C, C++ and Rust, DWARF 4 and 5, split into files and
//! packages, optimized at link time, and broken.

use std::fmt::Write as _;
use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use grind_symbols::{Inlined, Object, Options, Svma};

use super::{have, run};

const C: &str = r#"
static inline __attribute__((always_inline)) int innermost(int x) { return x * x + 3; }
static inline __attribute__((always_inline)) int twice(int x) {
    int sum = innermost(x);
    for (int i = 0; i < x; i++) sum += innermost(sum + i);
    return sum;
}
__attribute__((noinline)) int apart(int x) { return twice(x) - innermost(x + 1); }
int main(int argc, char **argv) {
    (void)argv;
    int result = twice(argc);
    result += apart(result);
    return result & 1;
}
"#;

const CPP: &str = r#"
#include <algorithm>
#include <string>
#include <vector>
namespace {
template <typename T> struct Scale { T by; T operator()(T x) const { return x * by; } };
struct Sum { long all = 0; void add(long x) { all += x; } long get() const { return all; } };
}
__attribute__((noinline)) long work(std::vector<long> &v) {
    std::transform(v.begin(), v.end(), v.begin(), Scale<long>{3});
    std::sort(v.begin(), v.end(), [](long a, long b) { return a % 7 < b % 7; });
    Sum sum;
    for (long x : v) sum.add(x);
    return sum.get();
}
int main(int argc, char **argv) {
    std::vector<long> v;
    for (int i = 0; i < 100; i++) v.push_back(i * argc);
    std::string s = argv[0];
    return (work(v) + s.size()) & 1;
}
"#;

const RUST: &str = r#"
#[inline(always)]
fn step(x: u64) -> u64 { x.rotate_left(7).wrapping_mul(31) }
#[inline(never)]
fn work(v: &mut Vec<u64>) -> u64 {
    v.iter_mut().for_each(|x| *x = step(*x));
    v.sort_unstable_by_key(|x| x % 17);
    v.iter().filter(|x| **x % 2 == 0).map(|x| step(*x)).fold(0, u64::wrapping_add)
}
fn main() {
    let mut v: Vec<u64> = (0..100).collect();
    println!("{}", work(&mut v));
}
"#;

/// The inlined functions at each address, the innermost first, as llvm-symbolizer says them; `???` if it knows nothing.
fn symbolized(program: &Path, addresses: &[u64]) -> Vec<Vec<String>> {
    let mut child = Command::new("llvm-symbolizer")
        .args(["--inlines", "--functions=linkage", "--no-demangle", "--obj"])
        .arg(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("llvm-symbolizer can be started");
    let mut input = String::new();
    for address in addresses {
        writeln!(input, "{address:#x}").expect("text");
    }
    let mut stdin = child.stdin.take().expect("a pipe");
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()));
    let output = child.wait_with_output().expect("llvm-symbolizer ends");
    writer.join().expect("no panic").expect("the addresses are read");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let frames = text.split("\n\n").filter(|answer| !answer.trim().is_empty()).map(|answer| {
        let mut names: Vec<String> = answer.lines().step_by(2).map(str::to_owned).collect();
        names.pop();
        names
    });
    frames.collect()
}

/// Compares all of the program's code that is in `.text` with what is said of `twin`, the same code; says at how many addresses
/// something is inlined, and how deep at most.
fn compare(program: &Path, twin: &Path) -> (usize, usize) {
    let object = Object::open(program, &Options { demangle: false, inlined: Inlined::Named, ..Options::default() });
    let listing = Command::new("objdump").args(["-h", "-j", ".text"]).arg(program).output().expect("objdump runs");
    let listing = String::from_utf8_lossy(&listing.stdout).into_owned();
    let words: Vec<&str> =
        listing.lines().find(|l| l.contains(" .text")).expect("a section").split_whitespace().collect();
    let number = |word: &str| u64::from_str_radix(word, 16).expect("a number");
    let (size, start) = (number(words[2]), number(words[3]));
    let addresses: Vec<u64> = (start..start + size).step_by((size as usize / 60_000).max(1)).collect();
    let wanted = symbolized(twin, &addresses);
    assert_eq!(wanted.len(), addresses.len());
    let svmas: Vec<Svma> = addresses.iter().map(|a| Svma(*a)).collect();
    let resolution = object.resolve(&svmas);
    assert_eq!(object.warnings(), [""; 0]);
    let (mut inlined, mut deepest) = (0, 0);
    for (i, wanted) in wanted.iter().enumerate() {
        let found: Vec<String> =
            resolution.inlined(resolution.places[i]).map(|n| String::from_utf8_lossy(n).into_owned()).collect();
        assert_eq!(&found, wanted, "{}: {:#x}", program.display(), addresses[i]);
        inlined += usize::from(!found.is_empty());
        deepest = deepest.max(found.len());
    }
    (inlined, deepest)
}

#[test]
fn every_address_has_the_inlined_functions_that_llvm_symbolizer_says() {
    if !have(&["gcc", "g++", "clang", "clang++", "rustc", "objdump", "llvm-symbolizer", "llvm-dwp", "dwp"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let at = folder.path();
    for (name, text) in [("a.c", C), ("b.cpp", CPP), ("r.rs", RUST)] {
        std::fs::write(at.join(name), text).unwrap();
    }
    let builds: [(&str, &str, &[&str]); 13] = [
        ("gcc", "a.c", &["-O2", "-g"]),
        ("gcc", "a.c", &["-O2", "-g", "-gdwarf-4"]),
        ("gcc", "a.c", &["-O2", "-g", "-gz"]),
        ("gcc", "a.c", &["-O2", "-g", "-flto"]),
        ("gcc", "a.c", &["-O2", "-g", "-gsplit-dwarf", "-gdwarf-5"]),
        ("gcc", "a.c", &["-O2", "-g", "-gsplit-dwarf", "-gdwarf-4"]),
        ("clang", "a.c", &["-O2", "-g", "-gdwarf-5"]),
        ("clang", "a.c", &["-O2", "-g", "-gdwarf-4"]),
        ("g++", "b.cpp", &["-O2", "-g"]),
        ("clang++", "b.cpp", &["-O2", "-g", "-gdwarf-5"]),
        ("clang++", "b.cpp", &["-O2", "-g", "-gsplit-dwarf"]),
        ("rustc", "r.rs", &["-O", "-g"]),
        ("rustc", "r.rs", &["-O", "-g", "-C", "lto=fat"]),
    ];
    for (n, (compiler, source, options)) in builds.into_iter().enumerate() {
        let program = format!("p{n}");
        run(at, compiler, &[options, &["-o", &program, source]].concat());
        let split = options.contains(&"-gsplit-dwarf");
        // llvm-symbolizer 14 misreads lists of ranges in .dwo files: it is asked about the same code in one file.
        let twin = if split { format!("{program}.whole") } else { program.clone() };
        if split {
            let whole: Vec<&str> = options.iter().copied().filter(|o| *o != "-gsplit-dwarf").collect();
            run(at, compiler, &[&whole[..], &["-o", &twin, source]].concat());
        }
        let (inlined, deepest) = compare(&at.join(&program), &at.join(&twin));
        assert!(inlined > 40 && deepest >= 2, "{compiler} {options:?}: {inlined} addresses, {deepest} deep");
        if split {
            // The package instead of the file, which is gone; then neither.
            let dwo = std::fs::read_dir(at).unwrap().flatten().map(|e| e.path());
            let dwo: Vec<_> = dwo.filter(|p| p.extension().is_some_and(|e| e == "dwo")).collect();
            assert_eq!(dwo.len(), 1);
            // Each compiler's own: llvm-dwp 14 never ends on gcc's files, and dwp 2.40 dies of DWARF 5.
            let packager = match compiler {
                "gcc" => (!options.contains(&"-gdwarf-5")).then_some("dwp"),
                _ => Some("llvm-dwp"),
            };
            if let Some(packager) = packager {
                run(at, packager, &["-e", &program, "-o", &format!("{program}.dwp")]);
            }
            std::fs::remove_file(&dwo[0]).unwrap();
            if packager.is_some() {
                assert_eq!(compare(&at.join(&program), &at.join(&twin)), (inlined, deepest));
                std::fs::remove_file(at.join(format!("{program}.dwp"))).unwrap();
            }
            let named = Options { inlined: Inlined::Named, ..Options::default() };
            let object = Object::open(&at.join(&program), &named);
            let code: Vec<Svma> = (0x1000..0x3000).map(Svma).collect();
            assert!(object.resolve(&code).places.iter().all(|place| place.inlined == 0));
            assert!(object.warnings().iter().any(|w| w.contains("not found")), "{:?}", object.warnings());
        }
    }
}

/// Programs that somebody has built with debug information, by their paths with colons between them; at most 60,000 addresses of
/// each.
#[test]
#[ignore = "compares programs of yours with llvm-symbolizer, minutes each; smaller ones are compared in CI: INLINED_PROGRAMS=/a:/b cargo test -p grind-symbols --test debuginfo -- --ignored --nocapture inlined"]
fn programs_that_are_named_have_the_inlined_functions_that_llvm_symbolizer_says() {
    let programs = std::env::var("INLINED_PROGRAMS").expect("paths of programs in INLINED_PROGRAMS");
    for program in programs.split(':').map(Path::new) {
        let began = std::time::Instant::now();
        let (inlined, deepest) = compare(program, program);
        println!("{}: {inlined} addresses are inlined, {deepest} deep; {:.1?}", program.display(), began.elapsed());
        assert!(inlined > 0, "{}: nothing is inlined, or there is no debug information", program.display());
    }
}
