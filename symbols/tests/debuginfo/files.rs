//! Where names are looked for: layouts of debug files that the reference does not read, or that need a folder of our
//! own, and the files that must not be taken.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use grind_symbols::{Object, Options, Svma};

use crate::{have, run};

const SOURCE: &str = "
static int __attribute__((noinline)) hidden(int x)
{
    return x + 1;
}
int main(int argc, char **argv)
{
    return hidden(argc) - 2;
}
";

/// A program in `folder` and the address of its function `hidden`.
fn program(folder: &Path, flags: &[&str]) -> (PathBuf, Svma) {
    fs::write(folder.join("main.c"), SOURCE).unwrap();
    run(folder, "gcc", &[&["-g", "-O1", "main.c", "-o", "main"], flags].concat());
    let names = Command::new("nm").arg(folder.join("main")).output().unwrap();
    let names = String::from_utf8(names.stdout).unwrap();
    let hidden = names.lines().find(|l| l.ends_with(" hidden")).unwrap();
    (folder.join("main"), Svma(u64::from_str_radix(hidden.split(' ').next().unwrap(), 16).unwrap()))
}

fn options(root: &Path) -> Options {
    Options { debug_roots: vec![root.to_path_buf()], ..Options::default() }
}

/// Function and `file:line` of `at`.
fn place(object: &Object, at: Svma) -> (String, String) {
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let function = object.function_at(at).map_or("???".to_owned(), |n| text(&n));
    let line = object.line_at(at).map_or("???".to_owned(), |(file, line)| format!("{}:{line}", text(&file)));
    (function, line)
}

fn split_off(folder: &Path) {
    run(folder, "objcopy", &["--only-keep-debug", "main", "main.debug"]);
    run(folder, "strip", &["main"]);
}

#[test]
fn build_id_folder() {
    if !have(&["gcc", "nm", "objcopy", "strip", "readelf"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (main, at) = program(folder, &["-Wl,--build-id=0x1234567890abcdef"]);
    let full = place(&Object::open(&main, &options(folder)), at);
    assert_eq!(full.0, "hidden");
    assert!(full.1.ends_with("/main.c:4"), "{}", full.1);
    split_off(folder);
    assert_eq!(place(&Object::open(&main, &options(folder)), at), ("???".into(), "???".into()));
    fs::create_dir_all(folder.join(".build-id/12")).unwrap();
    let found = folder.join(".build-id/12/34567890abcdef.debug");
    fs::rename(folder.join("main.debug"), &found).unwrap();
    assert_eq!(place(&Object::open(&main, &options(folder)), at), full);

    // The debug file of another build is refused, with a warning.
    program(folder, &["-Wl,--build-id=0xfedcba"]);
    fs::copy(&main, &found).unwrap();
    program(folder, &["-Wl,--build-id=0x1234567890abcdef"]);
    run(folder, "strip", &["main"]);
    let object = Object::open(&main, &options(folder));
    assert_eq!(place(&object, at), ("???".into(), "???".into()));
    assert!(object.warnings().iter().any(|w| w.contains("another build id")), "{:?}", object.warnings());
}

#[test]
fn debug_link() {
    if !have(&["gcc", "nm", "objcopy", "strip"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().canonicalize().unwrap();
    let (main, at) = program(&folder, &["-Wl,--build-id=none"]);
    let root = folder.join("root");
    let full = place(&Object::open(&main, &options(&root)), at);
    split_off(&folder);
    run(&folder, "objcopy", &["--add-gnu-debuglink=main.debug", "main"]);
    let below_root = root.join(folder.strip_prefix("/").unwrap());
    fs::create_dir_all(&below_root).unwrap();
    fs::create_dir(folder.join(".debug")).unwrap();
    let mut at_present = folder.join("main.debug");
    for place_of_file in [folder.join(".debug/main.debug"), below_root.join("main.debug"), folder.join("main.debug")] {
        fs::rename(&at_present, &place_of_file).unwrap();
        at_present = place_of_file;
        assert_eq!(place(&Object::open(&main, &options(&root)), at), full, "{}", at_present.display());
    }
    // A changed file has another checksum.
    let mut bytes = fs::read(&at_present).unwrap();
    bytes.push(0);
    fs::write(&at_present, bytes).unwrap();
    let object = Object::open(&main, &options(&root));
    assert_eq!(place(&object, at), ("???".into(), "???".into()));
    assert!(object.warnings().iter().any(|w| w.contains("does not belong")), "{:?}", object.warnings());
}

#[test]
fn mini_debug_info() {
    if !have(&["gcc", "nm", "objcopy", "strip", "xz"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (main, at) = program(folder, &[]);
    run(folder, "objcopy", &["-S", "--strip-debug", "--keep-symbol=hidden", "main", "mini"]);
    run(folder, "xz", &["mini"]);
    run(folder, "strip", &["main"]);
    assert_eq!(place(&Object::open(&main, &options(folder)), at).0, "???");
    run(folder, "objcopy", &["--add-section", ".gnu_debugdata=mini.xz", "main"]);
    assert_eq!(place(&Object::open(&main, &options(folder)), at), ("hidden".into(), "???".into()));
}

/// The compilation directory of a unit may be a string in the file that several debug files share.
#[test]
fn shared_debug_file() {
    if !have(&["gcc", "nm", "dwz"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (main, at) = program(folder, &["-gdwarf-4"]);
    let full = place(&Object::open(&main, &options(folder)), at);
    fs::copy(&main, folder.join("other")).unwrap();
    run(folder, "dwz", &["-m", "shared.dwz", "main", "other"]);
    assert_eq!(place(&Object::open(&main, &options(folder)), at), full);
}

#[test]
fn zstd_and_old_style_compression() {
    if !have(&["gcc", "nm", "objcopy"]) {
        return;
    }
    for kind in ["zlib", "zlib-gnu", "zlib-gabi", "zstd"] {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path();
        let (main, at) = program(folder, &[]);
        let full = place(&Object::open(&main, &options(folder)), at);
        let flag = format!("--compress-debug-sections={kind}");
        let done = Command::new("objcopy").arg(&flag).arg(&main).arg(folder.join("packed")).output().unwrap();
        if !done.status.success() {
            eprintln!("skipped: objcopy does not know {kind}");
            continue;
        }
        assert_eq!(place(&Object::open(&folder.join("packed"), &options(folder)), at), full, "{kind}");
    }
}

/// The reference cannot read these two; the answers must be those for the plain form.
#[test]
fn split_and_64_bit_dwarf() {
    if !have(&["gcc", "nm"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (main, at) = program(folder, &["-gdwarf-5"]);
    let full = place(&Object::open(&main, &options(folder)), at);
    for flags in [&["-gdwarf-5", "-gsplit-dwarf"][..], &["-gdwarf-5", "-gdwarf64"], &["-gdwarf-4", "-gdwarf64"]] {
        let (main, at) = program(folder, flags);
        assert_eq!(place(&Object::open(&main, &options(folder)), at), full, "{flags:?}");
    }
}

#[test]
fn offsets_become_addresses() {
    if !have(&["gcc", "nm", "readelf"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (main, at) = program(folder, &["-no-pie", "-Wl,-Ttext-segment=0x10000000"]);
    let object = Object::open(&main, &options(folder));
    // The linker keeps addresses and offsets equal modulo the page size, and here the first segment has offset 0.
    assert!(at.0 > 0x1000_0000);
    assert_eq!(object.svma_of_offset(at.0 - 0x1000_0000), Some(at));
    assert_eq!(object.svma_of_offset(1 << 40), None);
    let (start, end) = object.function_range(at).unwrap();
    assert!(start == at && end > at);
}

#[test]
fn asked_one_by_one_or_all_at_once() {
    if !have(&["gcc", "nm"]) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let (main, at) = program(folder, &["-static"]);
    let object = Object::open(&main, &options(folder));
    let addresses: Vec<Svma> = (at.0 - 2000..at.0 + 3000).rev().map(Svma).collect();
    let all = object.resolve(&addresses);
    for (address, place) in addresses.iter().zip(&all.places) {
        let function = object.function_at(*address);
        assert_eq!(&*all.functions[place.function.index()], function.as_deref().unwrap_or(b"???"));
        let (file, line) = object.line_at(*address).unwrap_or((b"???"[..].into(), 0));
        assert_eq!((&all.files[place.file.index()], place.line), (&file, line));
    }
}

#[test]
fn what_is_no_program_has_no_names() {
    let options = options(Path::new("/nonexistent"));
    for path in ["/nonexistent", "/", "/dev/zero", "/etc/passwd"] {
        let object = Object::open(Path::new(path), &options);
        assert_eq!(object.function_at(Svma(0x1000)), None);
        assert_eq!(object.line_at(Svma(0x1000)), None);
        assert_eq!(object.svma_of_offset(0), None);
        assert_eq!(object.warnings().len(), 1, "{path}");
    }
}
