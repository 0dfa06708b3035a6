//! The guide's list of messages is complete: read from the sources of grind and its engine.
//!
//! A message is a text of at least three words in code that is not for tests, outside the arguments of macros that panic or write
//! the engine's log, of `expect` and of attributes, and outside the texts of `--help`. The list has a part of each in backquotes.

use std::fs;
use std::path::{Path, PathBuf};

use grind_tests::layers;
use grind_tests::tools::workspace_root;
use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Files whose texts are help and not messages, or explain themselves.
const HELP: [&str; 6] = [
    "grind/src/options/callgrind.rs",
    "grind/src/doctor.rs",
    "grind/src/invocation.rs",
    "grind/src/manual.rs",
    "grind/src/options/table.rs",
    "types/src/fault.rs",
];

/// Texts that are parts of profiles and of the summary, or say to developers what is not to happen.
const NO_MESSAGES: [&str; 20] = [
    "lru, plru, lru3plru4",
    "Spawned pid: ",
    "Timerange: Basic block",
    "Trigger: --dump-every-bb",
    "Cache use: {nodes",
    "found by \\ from",
    "No context found lines",
    "Lines found in the caches",
    "LL is {inclusion} of {of}",
    "Cache configuration used:",
    "-way, {} B lines",
    "{first} + {b",
    "miss rate",
    "(os error {code})",
    "{sum:>l1$}",
    "{all:>l1$.1}%",
    "{value:.digits$}",
    "mov dword ptr",
    "Max locked memory",
    "Max stack size",
];

fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") && path.file_stem().is_none_or(|n| n != "tests") {
            found.push(path);
        }
    }
}

/// The texts in a stream of code.
fn texts(code: TokenStream, found: &mut Vec<String>) {
    let mut tokens = code.into_iter().peekable();
    let (mut before, mut test) = (String::new(), false);
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(p) if p.as_char() == '#' => {
                tokens.next_if(|t| matches!(t, TokenTree::Punct(p) if p.as_char() == '!'));
                if let Some(attribute) = tokens.next() {
                    test |= attribute.to_string().replace(' ', "") == "[cfg(test)]";
                }
                continue;
            }
            TokenTree::Group(group) => {
                let silent = [
                    "expect",
                    "panic",
                    "unreachable",
                    "assert",
                    "assert_eq",
                    "assert_ne",
                    "debug_assert",
                    "dynasm",
                    "debug",
                    "trace",
                ];
                let body = group.delimiter() == Delimiter::Brace;
                if !(silent.contains(&before.as_str()) || test && body) {
                    texts(group.stream(), found);
                }
                test &= !body;
            }
            TokenTree::Punct(p) => {
                test &= p.as_char() != ';';
                // `assert!(`
                if p.as_char() == '!' {
                    continue;
                }
            }
            TokenTree::Ident(ident) => {
                before = ident.to_string();
                continue;
            }
            TokenTree::Literal(literal) => {
                if let Ok(syn::Lit::Str(text)) = syn::parse_str(&literal.to_string()) {
                    found.push(text.value());
                }
            }
        }
        before.clear();
    }
}

fn is_sentence(text: &str) -> bool {
    let words = text.split(|c: char| !c.is_ascii_alphabetic()).filter(|w| w.len() > 1);
    text.contains(' ') && words.count() >= 3
}

/// Modules that are only there for tests: files whose declaration stands behind `#[cfg(test)]`.
fn is_for_tests(path: &Path) -> bool {
    let name = path.file_stem().and_then(|n| n.to_str()).expect("a name");
    let folder = path.parent().expect("a folder");
    let parents = [folder.join("mod.rs"), folder.join("lib.rs"), folder.with_extension("rs")];
    parents
        .iter()
        .filter_map(|p| fs::read_to_string(p).ok())
        .any(|text| text.contains(&format!("#[cfg(test)]\nmod {name};")))
}

#[test]
fn every_message_is_explained_and_every_explained_message_exists() {
    let root = workspace_root();
    let page = fs::read_to_string(root.join("docs/guide/messages.md")).expect("the page");
    let cells = page.lines().filter_map(|l| l.strip_prefix("| `")).map(|l| l.split("` |").next().unwrap_or(l));
    let keys: Vec<&str> = cells.flat_map(|cell| cell.split("`, `")).collect();
    assert!(keys.len() > 100, "{} messages", keys.len());
    let mut files = Vec::new();
    layers::ENGINE
        .iter()
        .chain(&["grind", "analysis", "objects", "names", "symbols"])
        .for_each(|krate| sources(&root.join(krate).join("src"), &mut files));
    // What the models of caches say to who asks for one that cannot be, and what is wrong with a name of a file.
    let others = ["cg-sim/src/policy.rs", "cg-sim/src/beyond.rs", "cg-cli/src/expand.rs", "cg-cli/src/reason.rs"];
    files.extend(others.map(|file| root.join(file)));
    let (mut said, mut wrong) = (Vec::new(), String::new());
    for path in files.iter().filter(|p| !is_for_tests(p)) {
        let name = path.strip_prefix(root).expect("below the root").display().to_string();
        let code: TokenStream = fs::read_to_string(path).expect("a source").parse().expect("code");
        let mut found = Vec::new();
        texts(code, &mut found);
        for text in &found {
            let explained =
                keys.iter().any(|key| text.contains(key)) || NO_MESSAGES.iter().any(|key| text.contains(key));
            if is_sentence(text) && !explained && !HELP.contains(&name.as_str()) {
                wrong += &format!("{name}: {text:?} is not in docs/guide/messages.md\n");
            }
        }
        said.extend(found);
    }
    for key in keys.iter().chain(&NO_MESSAGES).filter(|key| !said.iter().any(|text| text.contains(**key))) {
        wrong += &format!("nothing says {key:?} any more\n");
    }
    assert!(wrong.is_empty(), "{wrong}");
}
