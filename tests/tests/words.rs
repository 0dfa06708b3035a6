//! One vocabulary: the words of `docs/internals/index.md` are those of the code, and the names that they took the place of do
//! not come back. Names are looked at in parts, `ibl_target` as `ibl` and `target`; comments and strings are not.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use grind_tests::layers;
use proc_macro2::{TokenStream, TokenTree};

/// Words that are no longer used, the parts of the product in which they are not, and those that are used instead.
const GONE: &[(&str, &[&str], &str)] = &[
    ("arena", &["engine", "analysis", "grind", "symbols"], "layout"),
    ("attend", &["engine"], "poll"),
    ("carry", &["engine"], "deferral"),
    ("catch_up", &["engine"], "pull_stack"),
    ("cells", &["engine", "cg-calls"], "counters"),
    ("express", &["cg-calls"], "fast_path"),
    ("feed", &["engine"], "trace_channel"),
    ("hand_back", &["engine"], "push_stack"),
    ("harvest", &["engine"], "collect_counters"),
    ("heat", &["engine"], "hotness"),
    ("hub", &["engine", "analysis", "grind", "symbols"], "dispatcher"),
    ("landing", &["engine"], "ibl_target"),
    ("landings", &["engine"], "ibl_targets"),
    ("lanes", &["cg-calls"], "site_counters"),
    ("recreate", &["engine"], "recover"),
    ("renew", &["engine"], "flush"),
    ("renewal", &["engine"], "flush"),
    ("route", &["engine", "cg-calls", "analysis", "grind", "symbols"], "call_edge"),
    ("scratch", &["engine"], "slot_word"),
    ("standing", &["engine", "cg-calls", "analysis", "grind", "symbols"], "call_context"),
    ("teller", &["engine"], "call_recorder"),
    ("transtab", &["engine"], "fragment_table"),
    ("walk", &["engine"], "miss_path"),
    ("wish", &["engine", "analysis", "grind", "symbols"], "control_request"),
];

/// Words that the glossary names and that must be found, lest a word went without its successor.
const THERE: &[(&str, &str)] = &[
    ("engine", "dispatcher"),
    ("engine", "code_cache"),
    ("engine", "fragment_table"),
    ("engine", "ibl_targets"),
    ("engine", "slot_word"),
    ("engine", "miss_path"),
    ("engine", "trace_channel"),
    ("cg-calls", "call_edge"),
    ("cg-calls", "site_counters"),
    ("analysis", "dump_service"),
    ("analysis", "symbolizer"),
];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn sources(folder: &Path, all: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, all);
        } else if path.extension().is_some_and(|e| e == "rs") {
            all.push(path);
        }
    }
}

fn names(tokens: TokenStream, all: &mut BTreeSet<String>) {
    for token in tokens {
        match token {
            TokenTree::Group(group) => names(group.stream(), all),
            TokenTree::Ident(name) => drop(all.insert(name.to_string())),
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
    }
}

/// A name in small letters with its parts set apart: `IblTarget`, `IBL_TARGET` and `ibl_target` are `_ibl_target_`.
fn parts(name: &str) -> String {
    let mut parts = String::from("_");
    let mut before = '_';
    for c in name.chars() {
        if c.is_uppercase() && (before.is_lowercase() || before.is_ascii_digit()) {
            parts.push('_');
        }
        parts.extend(c.to_lowercase());
        before = c;
    }
    parts + "_"
}

/// The crates that a part of the product is made of.
fn crates_of(part: &str) -> Vec<&str> {
    match part {
        "engine" => layers::ENGINE.to_vec(),
        "analysis" => vec!["analysis", "objects", "names"],
        krate => vec![krate],
    }
}

/// The names in the sources of a part of the product, by file.
fn names_below(part: &str) -> Vec<(PathBuf, BTreeSet<String>)> {
    let mut files = Vec::new();
    crates_of(part).iter().for_each(|krate| sources(&workspace().join(krate).join("src"), &mut files));
    files
        .into_iter()
        .map(|path| {
            let text = std::fs::read_to_string(&path).expect("a source");
            let mut all = BTreeSet::new();
            names(text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display())), &mut all);
            all.extend(path.file_stem().map(|stem| stem.to_string_lossy().into_owned()));
            (path, all)
        })
        .collect()
}

#[test]
fn names_are_set_apart() {
    assert_eq!(parts("IblTarget"), "_ibl_target_");
    assert_eq!(parts("IBL_TARGET"), "_ibl_target_");
    assert_eq!(parts("r8_free"), "_r8_free_");
}

#[test]
fn words_that_were_replaced_do_not_come_back() {
    let mut wrong = Vec::new();
    for folder in ["engine", "cg-calls", "analysis", "grind", "symbols"] {
        for (path, names) in names_below(folder) {
            for name in names {
                for (word, _, instead) in GONE.iter().filter(|(_, folders, _)| folders.contains(&folder)) {
                    if parts(&name).contains(&format!("_{word}_")) {
                        wrong.push(format!("{}: {name}: say {instead} for {word}", path.display()));
                    }
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_of_the_glossary_are_used() {
    for folder in ["engine", "cg-calls", "analysis", "grind", "symbols"] {
        let found: Vec<String> =
            names_below(folder).into_iter().flat_map(|(_, names)| names).map(|n| parts(&n)).collect();
        for (_, word) in THERE.iter().filter(|(f, _)| *f == folder) {
            assert!(found.iter().any(|name| name.contains(&format!("_{word}_"))), "{folder}: nothing is called {word}");
        }
    }
}
