//! Equal names, files and lines: what Cachegrind wrote must come out when Callgrind's counts per instruction are summed
//! up by our answers. All objects of the process take part, the C library and the loader too.

use std::{collections::BTreeMap, env, fs, path::Path, process::Command};

use grind_symbols::{Object, Options, Svma};

use crate::{
    callgrind::{Key, instructions, lines},
    have, run, tool,
};

/// Whether to compare; missing tools fail a run on CI.
fn ready(tools: &[&str]) -> bool {
    if tool("valgrind").is_none() {
        assert!(env::var_os("CI").is_none(), "valgrind is not installed");
        eprintln!("skipped: valgrind not installed");
        return false;
    }
    have(tools)
}

/// Compares the answers for the program `name` in `folder`: all counts must be equal.
fn compare(folder: &Path, name: &str) {
    compare_with(folder, name, &[], &Options::default(), &|_| true);
}

/// The same with more `flags` for the reference, and only for keys that are `steady`: the counts of the others depend on
/// the environment, which differs between two runs of the reference.
fn compare_with(folder: &Path, name: &str, flags: &[&str], options: &Options, steady: &dyn Fn(&Key) -> bool) {
    let program = folder.join(name);
    let (per_instruction, per_line) = (folder.join("callgrind.out"), folder.join("cachegrind.out"));
    let profile = |tool: &str, more: &[&str], out: &Path| {
        let mut args = vec![format!("--tool={tool}"), format!("--{tool}-out-file={}", out.display())];
        args.extend(more.iter().chain(flags).map(|s| s.to_string()));
        args.push(program.display().to_string());
        run(folder, "valgrind", &args);
    };
    let detailed = ["--dump-instr=yes", "--compress-strings=no", "--compress-pos=no", "--skip-plt=no"];
    profile("callgrind", &detailed, &per_instruction);
    profile("cachegrind", &["--vex-guest-chase=no", "--cache-sim=no"], &per_line);

    let mut ours: BTreeMap<Key, u64> = BTreeMap::new();
    for (object, counts) in instructions(&fs::read(&per_instruction).unwrap()) {
        let addresses: Vec<Svma> = counts.keys().map(|&a| Svma(a)).collect();
        let object = Object::open(Path::new(&object), options);
        let found = object.resolve(&addresses);
        for (place, count) in found.places.iter().zip(counts.values()) {
            let file = found.files[place.file.index()].to_vec();
            let function = found.functions[place.function.index()].to_vec();
            *ours.entry((file, function, place.line)).or_default() += count;
        }
    }
    ours.retain(|_, count| *count > 0);
    let theirs = lines(&fs::read(&per_line).unwrap());

    // Callgrind loses the last block, the one that ends the process; nothing else may differ.
    let last_block = |function: &[u8]| ["_exit", "_Exit", "finish"].iter().any(|n| function == n.as_bytes());
    let mut differences = Vec::new();
    for key in ours.keys().chain(theirs.keys().filter(|k| !ours.contains_key(*k))) {
        if ours.get(key) != theirs.get(key) && steady(key) && !last_block(&key.1) {
            let (file, function) = (String::from_utf8_lossy(&key.0), String::from_utf8_lossy(&key.1));
            differences.push(format!("{file} {function} {}: {:?} {:?}", key.2, ours.get(key), theirs.get(key)));
        }
    }
    assert!(theirs.len() > 5, "{name}: the reference wrote next to nothing");
    assert!(
        differences.is_empty(),
        "{name}: {} of {} keys differ (ours, reference):\n{}",
        differences.len(),
        theirs.len(),
        differences[..differences.len().min(20)].join("\n")
    );
}

const C: &str = r#"
#include <stdio.h>
#include "inc/part.h"
static int twice(int x) { return 2 * x; }
int main(int argc, char **argv) {
    int sum = 0;
    for (int i = 0; i < 10 * argc; i++)
        sum += part(i) + twice(i);
#include "inc/body.inc"
    printf("%d\n", sum);
    return 0;
}
"#;

fn write_c(folder: &Path) {
    fs::create_dir(folder.join("inc")).unwrap();
    fs::write(folder.join("main.c"), C).unwrap();
    fs::write(folder.join("inc/part.h"), "static inline int part(int x)\n{\n    return x ^ 3;\n}\n").unwrap();
    fs::write(folder.join("inc/body.inc"), "    sum -= argc;\n    sum *= 3;\n").unwrap();
}

/// One test per way to write debug info, so that they run in parallel.
macro_rules! c_programs {
    ($($name:ident: $($flag:literal)+;)+) => {$(
        #[test]
        fn $name() {
            if !ready(&["gcc"]) {
                return;
            }
            let folder = tempfile::tempdir().unwrap();
            write_c(folder.path());
            run(folder.path(), "gcc", &["main.c", "-o", "main", $($flag),+]);
            compare(folder.path(), "main");
        }
    )+};
}

c_programs! {
    dwarf_2: "-gdwarf-2" "-gstrict-dwarf" "-O1";
    dwarf_3: "-gdwarf-3";
    dwarf_4: "-gdwarf-4" "-O2";
    dwarf_5: "-gdwarf-5" "-O2";
    dwarf_64_bit: "-gdwarf-4" "-gdwarf64" "-O1";
    type_units: "-gdwarf-5" "-fdebug-types-section" "-O1";
    compressed: "-g" "-gz" "-O1";
    split: "-gdwarf-4" "-gsplit-dwarf" "-O2";
    relative_names: "-g" "-fdebug-prefix-map==." "-ffunction-sections" "-O1";
    link_time_optimised: "-g" "-O2" "-flto";
    no_lines: "-O1";
    static_program: "-g" "-O1" "-static";
    fixed_address: "-g" "-no-pie";
}

#[test]
fn separate_debug_file() {
    if !ready(&["gcc", "objcopy", "strip"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write_c(folder);
    run(folder, "gcc", &["-g", "-O1", "main.c", "-o", "main"]);
    fs::create_dir(folder.join(".debug")).unwrap();
    run(folder, "objcopy", &["--only-keep-debug", "main", ".debug/main.debug"]);
    run(folder, "strip", &["main"]);
    run(folder, "objcopy", &["--add-gnu-debuglink=.debug/main.debug", "main"]);
    compare(folder, "main");
}

const CXX: &str = r#"
#include <algorithm>
#include <functional>
#include <iostream>
#include <map>
#include <stdexcept>
#include <string>
#include <vector>
template <class T, int N> struct Box {
    T a[N];
    __attribute__((noinline)) T sum() const { T s{}; for (auto &x : a) s += x; return s; }
    explicit operator bool() const;
};
template <class T, int N> __attribute__((noinline)) Box<T, N>::operator bool() const { return sum() != T(); }
namespace { __attribute__((noinline)) int hidden(int x) { return x * 3; } }
struct Base { virtual ~Base() {} virtual int f() = 0; };
struct Other { virtual ~Other() {} virtual int g() { return 1; } };
struct Both : Base, Other { int f() override { return 5; } int g() override { return 6; } };
static __attribute__((noinline)) long many(unsigned long a, const char *b, std::string const &s, int (*f)(int), double (&d)[4])
{ return a + b[0] + s.size() + f(2) + d[0]; }
template <class... A> __attribute__((noinline)) int count(A &&...a) { return sizeof...(a); }
template <unsigned long N, bool B, char C> __attribute__((noinline)) unsigned long consts() { return N + B + C; }
int main() {
    Box<int, 4> s{{1, 2, 3, 4}};
    std::map<std::string, std::vector<int>> m;
    m["x"].push_back(s.sum());
    double d[4] = {1};
    auto l = [&](auto q) __attribute__((noinline)) { return q + s.sum(); };
    std::function<int(int)> f = l;
    Both both;
    Other *other = &both;
    try {
        if (s) throw std::runtime_error("x");
    } catch (std::exception &e) {
        std::cout << e.what() << l(3) << f(4) << hidden(3) << many(1, "a", "b", hidden, d) << other->g() << count(1, d, s)
                  << count() << consts<7, true, 'c'>() << "\n";
    }
    std::sort(m["x"].begin(), m["x"].end());
}
"#;

#[test]
fn cxx_names() {
    if !ready(&["g++"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("main.cc"), CXX).unwrap();
    run(folder, "g++", &["-g", "-O1", "main.cc", "-o", "main"]);
    compare(folder, "main");
    compare_with(folder, "main", &["--demangle=no"], &Options { demangle: false, ..Options::default() }, &|_| true);
    compare_with(
        folder,
        "main",
        &["--show-below-main=yes"],
        &Options { show_below_main: true, ..Options::default() },
        &|_| true,
    );
}

const RUST: &str = r#"
use std::collections::BTreeMap;
trait Shape { fn area(&self) -> u64; }
struct Square(u64);
struct Boxed<X>(X);
impl Shape for Square { #[inline(never)] fn area(&self) -> u64 { self.0 * 3 } }
impl<X: Into<u64> + Copy> Shape for Boxed<X> { #[inline(never)] fn area(&self) -> u64 { self.0.into() + 1 } }
mod inner {
    #[inline(never)]
    pub fn sum<const N: usize>(x: [u8; N]) -> usize { x.iter().map(|b| *b as usize).sum::<usize>() + N }
}
fn main() {
    let shapes: Vec<Box<dyn Shape>> = vec![Box::new(Square(3)), Box::new(Boxed(7u32)), Box::new(Boxed(8u8))];
    let map: BTreeMap<String, u64> = shapes.iter().enumerate().map(|(i, x)| (format!("k{i}"), x.area())).collect();
    println!("{map:?} {}", inner::sum([1, 2, 3]));
}
"#;

#[test]
fn rust_names() {
    if !ready(&["rustc"]) {
        return;
    }
    for mangling in ["default", "legacy", "v0"] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        fs::write(folder.join("main.rs"), RUST).unwrap();
        let version = format!("-Csymbol-mangling-version={mangling}");
        let flags: &[&str] = match mangling {
            "default" => &["-g"],
            "legacy" => &["-g", &version, "-Zunstable-options"],
            _ => &["-g", &version, "-O"],
        };
        let built = Command::new("rustc").args(flags).arg("main.rs").current_dir(folder).output().unwrap();
        if !built.status.success() && mangling == "legacy" {
            eprintln!("skipped: only an unstable compiler makes legacy names");
            continue;
        }
        assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
        // The start-up code of the standard library reads the memory map as text.
        let unsteady: &[&[u8]] = &[b"memchr", b"mem", b"str", b"getdelim", b"scanf", b"_IO_", b"alloc", b"??"];
        compare_with(folder, "main", &[], &Options::default(), &|key| {
            !unsteady.iter().any(|part| key.1.windows(part.len()).any(|w| w == *part))
        });
    }
}

/// Symbols without type or size, nested, overlapping and aliased ones; rows that overlap, are too long or have absurd
/// line numbers.
#[test]
fn odd_assembly() {
    if !ready(&["gcc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    fs::write(folder.join("odd.s"), ODD).unwrap();
    run(folder, "gcc", &["-nostdlib", "-static", "-no-pie", "odd.s", "-o", "odd"]);
    compare(folder, "odd");
}

const ODD: &str = r#"
.file 1 "one.c"
.file 2 "/abs/two.c"
.file 3 "../up/./three.c"
.macro symbol name, size, binding=local
.\binding \name
.type \name,@function
.size \name,\size
.endm
.text
symbol _start, 26, globl
_start:
 .loc 1 10
 call untyped
 .loc 1 11 0 is_stmt 0
 call sizeless
 .loc 2 11
 call outer
 .loc 3 12
 call first
 jmp finish
untyped:
 .loc 1 0
 nop
 .loc 1 2000000
 nop
 .loc 1 1048575
 ret
 .type sizeless,@function
sizeless:
 .loc 1 20
 ret
symbol outer, 8
symbol nested, 2
symbol twin, 3
symbol a_twin, 3, globl
symbol longer_twin, 3, weak
symbol half_a_twin, 1
outer:
 .loc 2 30
 nop
 .loc 2 31
nested:
 nop
 nop
 nop
twin:
a_twin:
longer_twin:
half_a_twin:
 nop
 nop
 nop
 ret
symbol first, 6
symbol second, 5013
first:
 .loc 1 40
 nop
 nop
 nop
second:
 nop
 .loc 1 41
 nop
 .fill 4999,1,0x90
 .loc 1 42
 nop
 .loc 2 42
 nop
 nop
 ret
symbol finish, 9
finish:
 .loc 1 50
 mov $60,%eax
 xor %edi,%edi
 syscall
.data
.quad 1
"#;
