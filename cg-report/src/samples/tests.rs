//! Samples on whole profiles, from files to what the report's model says.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::*;
use crate::load::{self, Loaded, Side, Wishes};
use crate::options::{Code, Contexts};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A profile with samples beside it.
fn laid(profile: &Path, text: &[u8], event: Option<&str>, renaming: Renaming<'_>) -> anyhow::Result<Loaded> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("samples");
    std::fs::write(&file, text)?;
    let samples = read(file.as_os_str(), event)?;
    let root = data("");
    let wishes = Wishes {
        renaming,
        apart: false,
        event: None,
        samples: Some(&samples),
        root: Some(&root),
        code: Code::None,
        contexts: Contexts::Both,
    };
    let files = [OsString::from(profile)];
    load::sides(&[&files], wishes)
}

/// Self and inclusive samples of functions that have any, by name.
fn told(loaded: &Loaded) -> Vec<(String, i64, i64)> {
    told_of(loaded, &loaded.sides[0])
}

fn told_of(loaded: &Loaded, side: &Side) -> Vec<(String, i64, i64)> {
    let model = &side.model;
    let at = model.events.iter().position(|name| name == EVENT).unwrap();
    let values = loaded.names.functions().zip(model.own(at).zip(model.inclusive(at)));
    let mut told: Vec<_> = values
        .filter(|(_, (_, inclusive))| *inclusive > 0)
        .map(|(id, (own, inclusive))| {
            (String::from_utf8_lossy(loaded.names.function_name(id)).into_owned(), own, inclusive)
        })
        .collect();
    told.sort();
    told
}

fn sampled(loaded: &Loaded) -> &Sampled {
    loaded.sides[0].sampled.as_ref().unwrap()
}

#[test]
fn samples_of_names_belong_to_functions_and_go_to_their_callers() {
    let text = b"main 5\nmain;left;shared 12\nmain;right;shared 18\nkernel 7\nkernel;other 4\n";
    let loaded = laid(&data("exact.cg"), text, None, Renaming::default()).unwrap();
    // Of what `shared` cost, left brought a fifth.
    let names: Vec<_> =
        told(&loaded).into_iter().map(|(name, own, _)| (name, own)).filter(|(_, own)| *own > 0).collect();
    assert_eq!(names, [("main".to_owned(), 5), ("shared".to_owned(), 30)]);
    let inclusive: BTreeMap<String, i64> = told(&loaded).into_iter().map(|(name, _, all)| (name, all)).collect();
    assert_eq!((inclusive["main"], inclusive["shared"]), (35, 30));
    assert_eq!((inclusive["left"], inclusive["right"]), (6, 24));
    let of = sampled(&loaded);
    assert_eq!((of.kind, of.total, of.matched, of.placed, of.shared), ("folded stacks", 46, 35, 0, 0));
    let lost: Vec<_> = of.lost.iter().map(|(_, name, count)| (&name[..], *count)).collect();
    assert_eq!(lost, [(&b"kernel"[..], 7), (b"other", 4)]);
    assert_eq!(of.warnings().len(), 1);
    assert_eq!(loaded.sides[0].model.total.cost.value(2), 35, "the total is what functions have");
    assert_eq!(loaded.sides[0].model.total.cost.value(0), 1000, "and the counts are as they were");
}

#[test]
fn samples_with_places_belong_to_instructions() {
    let text = b"inline.elf+0x1000 5\n0ea021e9da3f76e88078607fa6c27ef4444e1629+0x1081 2\n/opt/inline.elf+0x1003 1\nother+0x1000 9\n";
    let loaded = laid(&data("inline.cg"), text, None, Renaming::default()).unwrap();
    assert_eq!(told(&loaded), [("(below main)".to_owned(), 2, 8), ("work".to_owned(), 6, 6)]);
    let of = sampled(&loaded);
    assert_eq!((of.matched, of.placed, of.lost.len()), (8, 8, 1));
    let detail = &loaded.sides[0].detail;
    let rows: Vec<_> = detail.rows.iter().map(|row| (row.at().place.addr, detail.row_cost(row, 1))).collect();
    let rows: Vec<_> = rows.into_iter().filter(|(_, samples)| *samples > 0).collect();
    assert_eq!(rows, [(0x0040_1081, 2), (0x0040_1000, 5), (0x0040_1003, 1)]);
}

#[test]
fn perf_tells_places_in_functions_and_lines() {
    let text = b"prog 1 1.5: 10 cycles:u: \n\t  7f03 work+0x3 (/x/inline.elf)\n\t  7f81 _start+0x5 (/x/inline.elf)\n\n\
        prog 1 1.6: 3 instructions:u: \n\t  7f03 work+0x3 (/x/inline.elf)\n";
    let loaded = laid(&data("inline.cg"), text, None, Renaming::default()).unwrap();
    let detail = &loaded.sides[0].detail;
    let placed = detail.rows.iter().find(|row| detail.row_cost(row, 1) == 10).unwrap();
    assert_eq!(placed.at().place.addr, 0x0040_1003);
    assert_eq!(sampled(&loaded).event, "cycles:u");
    let other = laid(&data("inline.cg"), text, Some("instructions:u"), Renaming::default()).unwrap();
    assert_eq!(told(&other)[1], ("work".to_owned(), 3, 3));
    let error = laid(&data("inline.cg"), text, Some("cycles"), Renaming::default()).unwrap_err();
    assert!(format!("{error:#}").contains("there is no event `cycles`, but: cycles:u instructions:u"), "{error:#}");
}

#[test]
fn what_is_inlined_is_part_of_what_it_is_inlined_into() {
    let text =
        b"prog 1 1.5: 10 cycles:u: \n\t  1 twice (inlined)\n\t  1 step (inlined)\n\t  1 work (/x/inline.elf)\n\n";
    let loaded = laid(&data("inline.cg"), text, None, Renaming::default()).unwrap();
    assert_eq!(told(&loaded), [("(below main)".to_owned(), 0, 10), ("work".to_owned(), 10, 10)]);
}

#[test]
fn samples_of_several_functions_are_shared_by_cost() {
    let folder = tempfile::tempdir().unwrap();
    let profile = folder.path().join("p");
    let text = "events: Ir\nob=x\nfl=a.c\nfn=f\n1 30\nfl=b.c\nfn=f\n1 10\nfn=g'2\n2 5\nfn=g\n2 5\n";
    std::fs::write(&profile, text).unwrap();
    let loaded = laid(&profile, b"f(int) 8\ng 4\n", None, Renaming::default()).unwrap();
    let own =
        |side| -> Vec<_> { told_of(&loaded, side).into_iter().map(|(name, own, _)| format!("{name} {own}")).collect() };
    // What is told apart by its level alone is one function at first.
    assert_eq!(own(&loaded.sides[0]), ["f 2", "f 6", "g 4"]);
    assert_eq!((sampled(&loaded).matched, sampled(&loaded).shared), (12, 8));
    let apart = loaded.sides[0].contexts.as_ref().unwrap();
    assert_eq!(own(apart), ["f 2", "f 6", "g 2", "g'2 2"]);
    assert_eq!(apart.sampled.as_ref().map(|sampled| (sampled.matched, sampled.shared)), Some((12, 12)));
}

#[test]
fn chains_of_calls_have_shares_and_add_up() {
    let folder = tempfile::tempdir().unwrap();
    let text = b"main 10\n";
    let plain = load::sides(
        &[&[data("chains.cg.xz").into()]],
        Wishes {
            renaming: Renaming::default(),
            apart: false,
            event: None,
            samples: None,
            root: None,
            code: Code::None,
            contexts: Contexts::Both,
        },
    )
    .unwrap();
    // The most expensive functions, which many chains have.
    let model = &plain.sides[0].model;
    let mut costs: Vec<_> = plain.names.functions().zip(model.own(0)).collect();
    costs.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
    let mut folded = text.to_vec();
    for (id, _) in costs.iter().take(5) {
        folded.extend([plain.names.function_name(*id), b" 1000\n"].concat());
    }
    let loaded = laid(&data("chains.cg.xz"), &folded, None, Renaming::default()).unwrap();
    let side = &loaded.sides[0];
    let at = side.model.events.len() - 1;
    let matched = sampled(&loaded).matched;
    assert!(matched >= 5000, "{matched}");
    let chains = side.chains.as_ref().unwrap();
    assert_eq!(chains.total()[at], i128::from(matched), "with what is in no chain");
    assert_eq!(chains.total()[0], i128::from(side.model.total.cost.value(0)));
    drop(folder);
}

#[test]
fn names_that_options_change_are_changed_in_samples_too() {
    let function = cg_cli::substitute::Substitution::parse("s/shared/common/").unwrap();
    let renaming = Renaming { function: Some(&function), redact: true, ..Renaming::default() };
    let loaded = laid(&data("exact.cg"), b"shared 3\n/x/kernel 2\n", None, renaming).unwrap();
    assert!(told(&loaded).contains(&("common".to_owned(), 3, 3)));
    assert_eq!(sampled(&loaded).name, "samples", "folders are left out");
}

#[test]
fn samples_of_something_else_are_an_error() {
    let of = |text: &[u8]| format!("{:#}", laid(&data("exact.cg"), text, None, Renaming::default()).unwrap_err());
    assert!(of(b"nobody 4\nno 2\n").contains("no sample is of a function of the profile; most are of nobody"));
    assert!(of(b"main;f\n").contains("not a profile of pprof's format"), "{}", of(b"main;f\n"));
    assert!(of(b"").contains("--samples"), "{}", of(b""));
    let own = tempfile::tempdir().unwrap();
    let profile = own.path().join("p");
    std::fs::write(&profile, "events: Smp\nfn=f\n1 3\n").unwrap();
    let error = laid(&profile, b"f 4\n", None, Renaming::default()).unwrap_err();
    assert!(format!("{error:#}").contains("an event Smp of its own"));
}
