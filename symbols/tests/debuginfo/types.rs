//! Which member has which byte, against what the compilers themselves say of each member (`offsetof`, `sizeof`), for C, C++ and Rust,
//! DWARF 2 to 5; and which pointer a call's result is kept in.

use std::collections::BTreeMap;
use std::process::Command;

use grind_symbols::{Layout, Object, Options, Svma};

use super::{have, run};

const C: &str = r#"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#define P(v, t, m) printf(#v " " #m " %zu %zu\n", offsetof(t, m), sizeof(((t *)0)->m))
struct point { int x; char tag; double y; };
typedef struct { short a; struct point at; struct point more[3]; struct { long in; char side; }; int last; } outer_t;
struct shapes { int kind; union { float radius; double wide; } u; union { int i; char c; }; char name[24]; };
struct bits { unsigned a : 3, b : 7; int plain; unsigned long far : 40; };
struct open { int n; struct point all[]; };
struct point single, many[10], grid[3][4];
static outer_t hidden[5];
const volatile struct shapes shapes;
struct bits bits;
double numbers[8];
struct open open = { 2, { { 1 }, { 2 } } };
struct point *global;
struct other { long z[4]; } *twice;
static struct point *wide(int n)
{
    static struct other kept[2];
    struct point *here = malloc(n * sizeof *here); printf("%p", (void *)here);
    { struct other *twice = malloc(32); printf("%p%p", (void *)twice, (void *)kept); }
    { int twice = n; printf("%d", twice); }
    { typedef struct point point_t; const point_t *volatile here = many; printf("%d", here->x); }
    return here;
}
int main(int c, char **v)
{
    if (c > 1) { global = wide(c); hidden[c].last = 1; return hidden[2].a; }
    P(single, struct point, x); P(single, struct point, tag); P(single, struct point, y);
    P(many, struct point, x); P(many, struct point, tag); P(many, struct point, y);
    P(grid, struct point, x); P(grid, struct point, tag); P(grid, struct point, y);
    P(hidden, outer_t, a); P(hidden, outer_t, at.x); P(hidden, outer_t, at.tag); P(hidden, outer_t, at.y);
    P(hidden, outer_t, more[0].x); P(hidden, outer_t, more[0].tag); P(hidden, outer_t, more[0].y);
    P(hidden, outer_t, in); P(hidden, outer_t, side); P(hidden, outer_t, last);
    P(shapes, struct shapes, kind); P(shapes, struct shapes, name);
    P(bits, struct bits, plain);
    return 0;
}
"#;

const CPP: &str = r#"
#include <cstdio>
#include <cstdlib>
// Bases are asked where they really are.
#define P(v, n, e) std::printf(#v " " n " %zu %zu\n", (size_t)((char *)&(e) - (char *)&v), sizeof(e))
struct Base { int id; char small; virtual ~Base() {} };
struct Empty {};
struct Other { long count; };
struct Shared { int many; };
class Derived : public Base, public Empty, public Other { public: char reuses; static int none; double own; };
struct Virtual : virtual Shared { long mine; };
int Derived::none = 3;
namespace space { Derived derived; }
using space::derived;
Virtual virtually;
struct Both { int a; float b; };
inline Both both;
template <typename T> struct Pair { T first; int second; };
Pair<double> pair;
int main() {
    P(derived, "Base::id", derived.id); P(derived, "Base::small", derived.small);
    P(derived, "Other::count", derived.count); P(derived, "reuses", derived.reuses); P(derived, "own", derived.own);
    P(virtually, "mine", virtually.mine);
    std::fprintf(stderr, "%p", (void *)&both);
    P(both, "a", both.a); P(both, "b", both.b);
    P(pair, "first", pair.first); P(pair, "second", pair.second);
    return 0;
}
"#;

const RUST: &str = r#"
use std::mem::offset_of;
pub struct Inner { pub b: u8, pub w: u64, pub h: u16 }
pub struct Outer { pub small: u16, pub inner: Inner, pub list: [Inner; 3], pub pair: (u32, f64) }
#[no_mangle] pub static mut outer: Outer =
    Outer { small: 1, inner: Inner { b: 1, w: 2, h: 3 }, list: [const { Inner { b: 1, w: 2, h: 3 } }; 3], pair: (1, 2.0) };
#[no_mangle] pub static mut maybe: Option<Inner> = None;
fn main() {
    println!("outer small {} 2", offset_of!(Outer, small));
    println!("outer inner.b {} 1", offset_of!(Outer, inner.b));
    println!("outer inner.w {} 8", offset_of!(Outer, inner.w));
    println!("outer inner.h {} 2", offset_of!(Outer, inner.h));
    println!("outer list[].w {} 8", offset_of!(Outer, list) + offset_of!(Inner, w));
    println!("outer pair.__1 {} 8", offset_of!(Outer, pair.1));
    let places = (std::ptr::addr_of!(maybe) as usize, std::ptr::addr_of!(outer) as usize);
    println!("maybe - {} 0", std::hint::black_box(places).0);
}
"#;

fn options() -> Options {
    Options { debug_roots: Vec::new(), ..Options::default() }
}

/// What the program says of its variables: by variable and member, offset and size.
fn said(program: &std::path::Path) -> BTreeMap<(String, String), (u64, u64)> {
    let out = Command::new(program).output().expect("it runs").stdout;
    let text = String::from_utf8(out).expect("text");
    let lines = text.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let number = |text: &str| text.parse().expect("a number");
    let row = |w: Vec<&str>| ((w[0].to_owned(), w[1].replace("[0]", "[]")), (number(w[2]), number(w[3])));
    lines.map(row).collect()
}

fn layout(object: &Object, symbol: &str) -> Option<Layout> {
    let [found] = object.symbols_named([symbol]);
    let (at, size) = found.unwrap_or_else(|| panic!("no {symbol}"));
    object.layout_of_variable(at, size)
}

/// Holds the members of a layout, byte by byte, to those of the program that have their names: no other byte has these names.
fn compare(layout: &Layout, variable: &str, said: &BTreeMap<(String, String), (u64, u64)>, what: &str) {
    let mut checked = 0;
    for ((_, member), (offset, size)) in said.iter().filter(|((v, _), _)| v == variable) {
        let found = layout.members.iter().find(|m| *m.name == *member.as_bytes());
        let found = found.unwrap_or_else(|| panic!("{what}: {variable} has no {member}: {layout:?}"));
        assert_eq!((found.offset, found.size), (*offset, *size), "{what}: {member} of {variable}");
        let name = |byte| layout.at(byte).map(|n| &layout.members[n].name);
        assert!((*offset..offset + size).all(|byte| name(byte) == Some(&found.name)), "{what}: {member}");
        if !member.contains('[') {
            let others = (0..layout.size).filter(|byte| !(*offset..offset + size).contains(byte));
            assert!(others.into_iter().all(|byte| name(byte) != Some(&found.name)), "{what}: {member}");
        }
        checked += 1;
    }
    assert!(checked > 0, "{what}: {variable}");
}

const FLAGS: [&[&str]; 4] = [&["-gdwarf-5"], &["-gdwarf-4", "-no-pie"], &["-gdwarf-2"], &["-gdwarf-5", "-O2"]];

#[test]
fn members_of_c_are_where_the_compiler_has_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.c"), C).unwrap();
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| have(&[compiler])) {
        for flags in FLAGS {
            run(folder.path(), compiler, &[&["main.c", "-o", "main"], flags].concat());
            let program = folder.path().join("main");
            let (said, object) = (said(&program), Object::open(&program, &options()));
            let what = format!("{compiler} {flags:?}");
            for (variable, name, size) in
                [("single", "point", 16), ("many", "point", 16), ("grid", "point", 16), ("hidden", "outer_t", 96)]
            {
                let layout = layout(&object, variable).unwrap_or_else(|| panic!("{what}: {variable}"));
                assert_eq!((&*layout.name, layout.size, layout.open), (name.as_bytes(), size, false), "{what}");
                compare(&layout, variable, &said, &what);
            }
            let shapes = layout(&object, "shapes").expect("a layout");
            compare(&shapes, "shapes", &said, &what);
            let name = |layout: &Layout, byte| {
                layout.at(byte).map(|n| String::from_utf8_lossy(&layout.members[n].name).into_owned())
            };
            let names: Vec<_> = [8, 12, 16, 17, 19, 20].iter().map(|byte| name(&shapes, *byte)).collect();
            let [radius, wide, i, more, last, name_] = &names[..] else { panic!("six") };
            assert_eq!(radius.as_deref(), Some("u.radius|wide"), "{what}");
            assert_eq!(wide.as_deref(), Some("u.wide"), "{what}");
            assert_eq!(i.as_deref(), Some("i|c"), "{what}");
            assert_eq!((more.as_deref(), last.as_deref()), (Some("i"), Some("i")), "{what}");
            assert_eq!(name_.as_deref(), Some("name"), "{what}");
            let bits = layout(&object, "bits").expect("a layout");
            compare(&bits, "bits", &said, &what);
            let names: Vec<_> = (0..16).map(|byte| name(&bits, byte).unwrap_or_default()).collect();
            let far = ["far"; 5];
            let expected = ["a|b", "b", "", "", "plain", "plain", "plain", "plain"].into_iter().chain(far);
            assert_eq!(names, expected.chain(["", "", ""]).collect::<Vec<_>>(), "{what}");
            assert_eq!(layout(&object, "numbers"), None, "{what}: no structure");
            assert_eq!(layout(&object, "open"), None, "{what}: the symbol is longer than its type");
        }
    }
}

#[test]
fn members_of_classes_are_where_the_compiler_has_them() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.cc"), CPP).unwrap();
    for compiler in ["g++", "clang++"].into_iter().filter(|compiler| have(&[compiler])) {
        for flags in FLAGS {
            run(folder.path(), compiler, &[&["-std=c++17", "main.cc", "-o", "main"], flags].concat());
            let program = folder.path().join("main");
            let (said, object) = (said(&program), Object::open(&program, &options()));
            let what = format!("{compiler} {flags:?}");
            for (variable, symbol) in
                [("derived", "_ZN5space7derivedE"), ("virtually", "virtually"), ("both", "both"), ("pair", "pair")]
            {
                let layout = layout(&object, symbol).unwrap_or_else(|| panic!("{what}: {variable}"));
                compare(&layout, variable, &said, &what);
            }
            let shared = layout(&object, "virtually").expect("a layout");
            assert!(shared.at(16).is_none() && shared.size == 24, "{what}: where a shared base is, the object says");
        }
    }
}

#[test]
fn members_of_rust_are_where_the_compiler_has_them() {
    if !have(&["rustc"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.rs"), RUST).unwrap();
    for flags in [&["-g"][..], &["-g", "-O"]] {
        run(folder.path(), "rustc", &[&["main.rs", "-A", "warnings", "-o", "main"], flags].concat());
        let program = folder.path().join("main");
        let (said, object) = (said(&program), Object::open(&program, &options()));
        let outer = layout(&object, "outer").expect("a layout");
        compare(&outer, "outer", &said, "rustc");
        let maybe = layout(&object, "maybe").expect("a layout");
        let names: Vec<_> = maybe.members.iter().map(|m| String::from_utf8_lossy(&m.name).into_owned()).collect();
        assert!(names.iter().all(|name| name.contains("Some")), "{names:?}");
    }
}

/// The line of `text` in the C program.
fn line_of(text: &str) -> u32 {
    C.lines().position(|line| line.contains(text)).expect("a line") as u32 + 1
}

#[test]
fn pointers_are_those_of_the_function_that_calls() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("main.c"), C).unwrap();
    for compiler in ["gcc", "clang"].into_iter().filter(|compiler| have(&[compiler])) {
        for flags in FLAGS {
            run(folder.path(), compiler, &[&["main.c", "-o", "main"], flags].concat());
            let object = Object::open(&folder.path().join("main"), &options());
            let all: Vec<Svma> = object
                .boundaries()
                .into_iter()
                .filter_map(|offset| object.svma_of_offset(offset))
                .filter_map(|at| object.function_range(at))
                .flat_map(|(start, end)| (start.0..end.0).map(Svma))
                .collect();
            let places = object.resolve(&all).places;
            let at = |line: u32| {
                let at = places.iter().position(|place| place.line == line).unwrap_or_else(|| panic!("line {line}"));
                all[at]
            };
            let what = format!("{compiler} {flags:?}");
            let here = at(line_of("struct point *here"));
            let found = object.pointee(here, b"here").unwrap_or_else(|| panic!("{what}"));
            assert_eq!((&*found.layout.name, found.layout.size), (&b"point"[..], 16), "{what}");
            assert!(found.names.iter().any(|name| **name == *b"point"), "{what}");
            // Two variables of one function, one of which is no pointer.
            assert_eq!(object.pointee(here, b"twice"), None, "{what}");
            let inside = (b"global", b"twice_");
            assert_eq!(object.pointee(here, inside.1), None, "{what}");
            assert_eq!(object.pointee(Svma(0x10), b"here"), None, "{what}");
            let main = at(line_of("P(single"));
            assert_eq!(object.pointee(main, b"here"), None, "{what}: another function has it");
            assert_eq!(object.pointee(main, b"c"), None, "{what}: no pointer");
            let global = object.pointee(main, b"global").unwrap_or_else(|| panic!("{what}"));
            assert_eq!(&*global.layout.name, b"point", "{what}");
            assert_eq!(&*object.pointee(main, b"twice").expect("a global one").layout.name, b"other", "{what}");
        }
    }
}
