//! Laws of what is taken apart: self costs add up, and inclusive costs of what was there are as they were.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use super::*;
use crate::load::{self, Loaded, Side, Wishes};
use crate::options::{Code, Contexts};

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

fn loaded(lists: &[&[PathBuf]], code: Code, renaming: Renaming<'_>) -> Loaded {
    let root = data("");
    let wishes = Wishes {
        renaming,
        apart: false,
        event: None,
        samples: None,
        root: Some(&root),
        code,
        contexts: Contexts::Apart,
    };
    let lists: Vec<Vec<OsString>> =
        lists.iter().map(|list| list.iter().map(|file| file.clone().into_os_string()).collect()).collect();
    let lists: Vec<&[OsString]> = lists.iter().map(Vec::as_slice).collect();
    load::sides(&lists, wishes).unwrap()
}

/// Self and inclusive costs of the first event by name, of what has any.
fn told(loaded: &Loaded, side: &Side) -> BTreeMap<String, (i64, i64)> {
    let model = &side.model;
    let values = loaded.names.functions().zip(model.own(0).zip(model.inclusive(0)));
    let name = |id| String::from_utf8_lossy(loaded.names.function_name(id)).into_owned();
    values.filter(|(_, costs)| costs.1 != 0).map(|(id, costs)| (name(id), costs)).collect()
}

fn of(pairs: &[(&str, i64, i64)]) -> BTreeMap<String, (i64, i64)> {
    pairs.iter().map(|(name, own, all)| ((*name).to_owned(), (*own, *all))).collect()
}

#[test]
fn what_a_profile_names_is_taken_apart() {
    let loaded = loaded(&[&[data("apart.cg")]], Code::None, Renaming::default());
    let side = &loaded.sides[0];
    assert_eq!(told(&loaded, side), of(&[("main", 311, 610), ("work", 259, 259), ("leaf", 40, 40)]));
    let apart = side.apart.as_ref().unwrap();
    let wanted = [("main", 11, 610), ("mix", 500, 540), ("work", 59, 259), ("leaf", 40, 40)];
    assert_eq!(told(&loaded, apart), of(&wanted));
    let name = |id| String::from_utf8_lossy(loaded.names.function_name(id)).into_owned();
    let calls: Vec<_> = apart
        .model
        .calls
        .iter()
        .map(|call| format!("{} {} {}", name(call.caller), name(call.callee), call.count))
        .collect();
    assert_eq!(calls, ["main work 2", "main mix 0", "work mix 0", "mix leaf 4"]);
}

#[test]
fn several_files_and_both_sides_have_it_if_all_do() {
    let both = loaded(&[&[data("apart-new.cg")], &[data("apart.cg")]], Code::None, Renaming::default());
    let mix: Vec<_> = both.sides.iter().map(|side| told(&both, side.apart.as_ref().unwrap())["mix"].0).collect();
    assert_eq!(mix, [700, 500]);
    // A file that says nothing of it is as it is, in a sum, and cannot be compared with one that does.
    let folder = tempfile::tempdir().unwrap();
    let plain = folder.path().join("p");
    std::fs::write(&plain, "events: Ir\nob=apart\nfl=apart.c\nfn=work\n10 41\n").unwrap();
    let sum = loaded(&[&[plain.clone(), data("apart.cg")]], Code::None, Renaming::default());
    assert_eq!(told(&sum, sum.sides[0].apart.as_ref().unwrap())["work"], (100, 300));
    let unlike = loaded(&[&[plain], &[data("apart.cg")]], Code::None, Renaming::default());
    assert!(unlike.sides.iter().all(|side| side.apart.is_none()));
}

#[test]
fn debug_information_takes_apart_what_a_profile_does_not() {
    let loaded = loaded(&[&[data("inline.cg")]], Code::Hot, Renaming::default());
    let side = &loaded.sides[0];
    let (plain, apart) = (told(&loaded, side), told(&loaded, side.apart.as_ref().unwrap()));
    assert_eq!(plain.values().map(|costs| costs.0).sum::<i64>(), 1015);
    assert_eq!(apart.values().map(|costs| costs.0).sum::<i64>(), 1015, "{apart:?}");
    for (name, (_, inclusive)) in &plain {
        assert_eq!(apart[name].1, *inclusive, "{name}");
    }
    // `work` calls `step`, and that `twice`, which `work` calls by itself, too.
    assert!(apart["step"].1 > apart["step"].0 && apart["twice"].0 > 0, "{apart:?}");
    assert_eq!(apart["work"].1, apart["work"].0 + apart["step"].0 + apart["twice"].0, "{apart:?}");
}

#[test]
fn what_is_apart_already_stays_so() {
    // As --separate-inlined=yes has it: rows of an inlined function are its own.
    let once = loaded(&[&[data("inline.cg")]], Code::Hot, Renaming::default());
    let apart = &once.sides[0].apart.as_ref().unwrap().detail;
    // What was taken apart is taken apart once more: nothing changes.
    let mut names = once.names.clone();
    let root = data("");
    let again = by_code(&mut names, apart, Renaming::default(), Some(&root), 0, true).unwrap();
    let sums = |detail: &Detail| {
        let mut sums: BTreeMap<FunctionId, i64> = BTreeMap::new();
        detail.rows.iter().for_each(|row| *sums.entry(row.function).or_default() += detail.row_cost(row, 0));
        sums
    };
    assert_eq!(sums(&again.unwrap()), sums(apart));
    assert_eq!(names.functions().len(), once.names.functions().len());
}

#[test]
fn nothing_is_read_of_objects_where_code_is_not_wanted_or_not_theirs() {
    assert!(loaded(&[&[data("inline.cg")]], Code::None, Renaming::default()).sides[0].apart.is_none());
    let renaming = Renaming { redact: true, ..Renaming::default() };
    assert!(loaded(&[&[data("inline.cg")]], Code::Hot, renaming).sides[0].apart.is_none());
    // Another object than the one that ran: an instruction begins elsewhere.
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(data("inline.cg")).unwrap().replace("0x401000 5 1", "0x401001 5 1");
    std::fs::write(folder.path().join("p"), text).unwrap();
    assert!(loaded(&[&[folder.path().join("p")]], Code::Hot, Renaming::default()).sides[0].apart.is_none());
}
