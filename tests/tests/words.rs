//! One vocabulary: the words of `docs/internals/index.md` are those of the code, and the names that they took the place of do
//! not come back. Names are looked at in parts, `ibl_target` as `ibl` and `target`; comments and strings are not. What is called an id
//! of a process or of a thread, or an address of the program or of its translations, is one by its type, too.

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

/// The crates that know of processes, besides those of the engine. (Libraries that know no more of them than a number are not
/// among them: of names of files, of the protocol with a run, of models of caches.)
const KNOW_PROCESSES: [&str; 4] = ["grind", "analysis", "objects", "names"];

/// What addresses of the program or of the code cache are called.
const ADDRESSES: [&str; 9] = ["pc", "next", "target", "go", "site", "root", "called", "cache", "guest"];

/// The folders in which each of them says of which kind it is. (Encoders have them as plain words, and so have call graphs and frames of
/// stacks, where there is no other kind.)
const KNOW_ADDRESSES: [&str; 7] =
    ["guest/src", "code-cache/src", "engine/src", "fragments/src", "isa/src", "codegen/src", "names/src/made"];

/// Whether this is what an id of a process or of a thread is called.
fn names_an_id(name: &str) -> bool {
    let name = name.trim_start_matches('_');
    ["pid", "tid", "pids", "tids"].iter().any(|id| name == *id || name.ends_with(&format!("_{id}")))
}

fn names_an_address(name: &str) -> bool {
    ADDRESSES.contains(&name.trim_start_matches('_'))
}

/// The fields, parameters and variables with such names that are declared to be of one of these types, or to hold some.
fn declared(tokens: TokenStream, is_meant: fn(&str) -> bool, types: &[&str], found: &mut Vec<String>) {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let is = |token: Option<&TokenTree>, c: char| matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == c);
    for (at, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) => declared(group.stream(), is_meant, types, found),
            TokenTree::Ident(name) if is_meant(&name.to_string()) => {
                // (Two of them are a path's.)
                if !is(tokens.get(at + 1), ':') || is(tokens.get(at + 2), ':') {
                    continue;
                }
                let ends = |token: &TokenTree| matches!(token, TokenTree::Punct(p) if [',', ';', '=', '|'].contains(&p.as_char()));
                let mut parts = BTreeSet::new();
                names(tokens[at + 2..].iter().take_while(|token| !ends(token)).cloned().collect(), &mut parts);
                if types.iter().any(|of| parts.contains(*of)) {
                    found.push(name.to_string());
                }
            }
            _ => {}
        }
    }
}

const IDS: [&str; 3] = ["i32", "u32", "pid_t"];

#[test]
fn plain_ids_are_found() {
    let found = |text: &str| {
        let mut found = Vec::new();
        declared(text.parse().expect("tokens"), names_an_id, &IDS, &mut found);
        found
    };
    assert_eq!(found("fn f(pid: i32, _tid: &i32) {} struct S { child_pid: Option<i32>, tids: Vec<i32> }").len(), 4);
    assert_eq!(found("let tid: u32 = 0; fn g() { let pid: libc::pid_t; }").len(), 2);
    let none = "fn f(pid: Pid, n: i32, rapid: i32) -> i32 { pid::of(n); S { pid: n } } struct S { tid: Tid, n: i32 }";
    assert!(found(none).is_empty(), "{:?}", found(none));
}

/// Where the sources below these folders declare plain numbers by such names, but for exceptions, all of which must be needed.
fn plain(below: &[String], is_meant: fn(&str) -> bool, types: &[&str], exceptions: &[(&str, &str)]) -> Vec<String> {
    let (mut wrong, mut needed) = (Vec::new(), BTreeSet::new());
    for part in below {
        let mut files = Vec::new();
        match workspace().join(part) {
            file if file.is_file() => files.push(file),
            folder => sources(&folder, &mut files),
        }
        assert!(!files.is_empty(), "{part} has no sources");
        for path in files {
            let text = std::fs::read_to_string(&path).expect("a source");
            let mut found = Vec::new();
            let tokens = text.parse().unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            declared(tokens, is_meant, types, &mut found);
            let file = path.strip_prefix(workspace()).expect("a file of the workspace").display().to_string();
            for name in found {
                match exceptions.iter().find(|(f, n)| (*f, *n) == (file.as_str(), name.as_str())) {
                    Some(exception) => drop(needed.insert(*exception)),
                    None => wrong.push(format!("{file}: {name}")),
                }
            }
        }
    }
    assert_eq!(needed.len(), exceptions.len(), "some are exceptions no longer");
    wrong
}

/// A process and its first thread have one number, so that who takes one for the other may be right for years.
#[test]
fn ids_have_types() {
    let crates = layers::ENGINE.iter().chain(&KNOW_PROCESSES).map(|krate| format!("{krate}/src")).collect::<Vec<_>>();
    let wrong = plain(&crates, names_an_id, &IDS, &[]);
    assert!(wrong.is_empty(), "say Pid or Tid:\n{}", wrong.join("\n"));
}

/// The program and its translations lie in one memory, and an address of the one is never one of the other.
#[test]
fn addresses_have_types() {
    let wrong = plain(&KNOW_ADDRESSES.map(str::to_owned), names_an_address, &["u64"], &[]);
    assert!(wrong.is_empty(), "say GuestAddr or CacheAddr:\n{}", wrong.join("\n"));
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
