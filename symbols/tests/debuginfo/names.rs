//! Readable names, against those that the reference's demangler gave; `itanium-demangle` has more of C++.

use grind_symbols::{Object, Options, Svma};

use crate::hostile::Elf;

/// A program whose functions have these names, 16 bytes apart from 0x1000.
fn object(names: &[&str]) -> Object {
    let mut strings = vec![0];
    let mut symbols = vec![0; 24];
    for (i, name) in names.iter().enumerate() {
        symbols.extend_from_slice(&(strings.len() as u32).to_le_bytes());
        symbols.extend_from_slice(&[2, 0, 1, 0]);
        symbols.extend_from_slice(&(0x1000 + 16 * i as u64).to_le_bytes());
        symbols.extend_from_slice(&8u64.to_le_bytes());
        strings.extend_from_slice(name.as_bytes());
        strings.push(0);
    }
    let mut file = Elf::new();
    file.section(".symtab", &symbols);
    file.section(".strtab", &strings);
    Object::from_image(file.finish(), "names", &Options { debug_roots: Vec::new(), ..Options::default() })
}

fn shown(names: &[&str]) -> Vec<String> {
    let object = object(names);
    let name = |i| object.function_at(Svma(0x1000 + 16 * i as u64)).expect("every name has a symbol");
    (0..names.len()).map(|i| String::from_utf8_lossy(&name(i)).into_owned()).collect()
}

/// The file alternates mangled names and what the reference makes of them.
#[test]
fn as_the_reference_shows_them() {
    let golden: Vec<&str> = include_str!("golden/names.txt").lines().collect();
    assert!(golden.len() > 80 && golden.len().is_multiple_of(2));
    let (mangled, expected): (Vec<&str>, Vec<&str>) = golden.chunks(2).map(|pair| (pair[0], pair[1])).unzip();
    let wrong: Vec<String> = shown(&mangled)
        .iter()
        .zip(&expected)
        .zip(&mangled)
        .filter(|((ours, theirs), _)| ours != theirs)
        .map(|((ours, theirs), name)| format!("{name}\n  ours      {ours}\n  reference {theirs}"))
        .collect();
    assert!(wrong.is_empty(), "{} of {} differ:\n{}", wrong.len(), mangled.len(), wrong.join("\n"));
}

#[test]
fn what_is_not_mangled_stays() {
    let names = ["main", "_Zebra", "_ZN3fooE@@V1", "_Rust", "_R", "_GLOBAL__sub_I_main"];
    assert_eq!(shown(&names), names);
}

/// Stretches of code have the one place that their bytes have, and none if they have several.
#[test]
fn a_stretch_is_where_all_of_its_bytes_are() {
    let object = object(&["a", "b", "c", "d"]);
    let offset = |at: u64| object.svma_of_offset(at).map_or(0, |svma| svma.0);
    let (mut whole, mut split) = (0, 0);
    for length in 1..30 {
        let stretches: Vec<_> = (0..110).map(|start| start..start + length).collect();
        let addresses = object.svmas_of_stretches(&stretches).expect("all of it is code");
        let found = object.resolve_stretches(&addresses);
        for ((stretch, address), place) in stretches.iter().zip(addresses).zip(&found.places) {
            assert_eq!((address.0.0, address.1.0), (offset(stretch.start), offset(stretch.end - 1) + 1));
            let bytes: Vec<Svma> = stretch.clone().map(|at| Svma(offset(at))).collect();
            let one_by_one = object.resolve(&bytes);
            let mut names: Vec<_> =
                one_by_one.places.iter().map(|p| one_by_one.functions[p.function.index()].clone()).collect();
            names.dedup();
            let expected = if let [name] = &names[..] { Some(name) } else { None };
            assert_eq!(place.map(|f| &found.functions[f.index()]), expected, "{stretch:x?}");
            *if place.is_some() { &mut whole } else { &mut split } += 1;
        }
    }
    assert!(whole > 300 && split > 300, "{whole} {split}");
    assert!(object.svmas_of_stretches(&[0..4, u64::MAX - 4..u64::MAX]).is_none(), "not in the file");
    assert!(object.svmas_of_stretches(&[4..8, 0..4]).is_none(), "not in order");
}
