//! Which module of a crate uses which other, read from the sources: what the test of layers asserts about.
//!
//! A module is a file, and with the files of its folder a whole with its parts. A path in code leads from file to file:
//! `use crate::a::B`, `super::a::f()`, or `a::f()` where `a` is a module that the file declares. A whole and its parts may use each
//! other; parts of one whole, each with all that is below it, may only use each other in one direction. What stands under
//! `#[cfg(test)]`, in comments or in the arguments of macros does not count; a path that leads to a re-export leads to the file that
//! re-exports. It never runs anything and never needs the sources to compile.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use syn::visit::Visit;

/// The modules of a crate by their paths below `src` without `.rs` (`dispatch/signal`; the root is ``), and which
/// others each uses, with one path that shows it.
pub type Arrows = BTreeMap<String, BTreeMap<String, String>>;

/// Reads a crate from its root file on.
///
/// # Errors
/// When a file cannot be read or is not Rust, or a declared module has no file.
pub fn read(root: &Path) -> Result<Arrows> {
    let mut files = Vec::new();
    load(root, Vec::new(), root.parent().context("a root without a folder")?, &mut files)?;
    let modules: BTreeSet<Vec<String>> = files.iter().map(|file| file.module.clone()).collect();
    let mut arrows = Arrows::new();
    for file in &files {
        let mut uses = Uses { modules: &modules, here: &file.module, inner: Vec::new(), found: BTreeMap::new() };
        uses.visit_file(&file.text);
        arrows.insert(file.module.join("/"), uses.found);
    }
    Ok(arrows)
}

/// The crates that the engine is made of, from below, by their folders.
pub const ENGINE: [&str; 12] = [
    "types",
    "layout",
    "isa",
    "asm",
    "ptrace",
    "trace",
    "fragments",
    "codegen",
    "code-cache",
    "guest",
    "session",
    "engine",
];

/// How many lines a crate has, from its root file on, without what stands under `#[cfg(test)]`, its attributes and its documentation.
///
/// # Errors
/// As [`read`].
pub fn lines(root: &Path) -> Result<usize> {
    let mut files = Vec::new();
    load(root, Vec::new(), root.parent().context("a root without a folder")?, &mut files)?;
    Ok(files.iter().map(|file| file.lines - tests_in(&file.text)).sum())
}

/// Lines of a file's items that are for tests.
fn tests_in(file: &syn::File) -> usize {
    let spans = file.items.iter().filter(|item| is_for_tests(attributes(item))).map(syn::spanned::Spanned::span);
    spans.map(|span| span.end().line - span.start().line + 1).sum()
}

/// Groups of two and more parts of one whole that use each other, directly or through others, and the arrows that tie them: each
/// part with all that is below it.
pub fn circles(arrows: &Arrows) -> Vec<Circle> {
    let mut levels: BTreeMap<&str, Level<'_>> = BTreeMap::new();
    for (from, to, path) in arrows.iter().flat_map(|(from, uses)| uses.iter().map(move |(to, path)| (from, to, path))) {
        let Some((whole, a, b)) = apart(from, to) else { continue };
        let level = levels.entry(whole).or_default();
        level.entry(b).or_default();
        level.entry(a).or_default().entry(b).or_default().push(format!("{from} -> {to} ({path})"));
    }
    let mut circles = Vec::new();
    for (whole, level) in &levels {
        let reach: BTreeMap<&str, BTreeSet<&str>> = level.keys().map(|from| (*from, reached(level, from))).collect();
        let groups: BTreeSet<BTreeSet<&str>> = level
            .keys()
            .map(|from| reach[from].iter().filter(|to| reach[*to].contains(from)).copied().collect())
            .filter(|group: &BTreeSet<&str>| group.len() > 1)
            .collect();
        for group in groups {
            let within = group.iter().flat_map(|from| level[from].iter().filter(|(to, _)| group.contains(*to)));
            circles.push(Circle {
                whole: (*whole).to_owned(),
                parts: group.iter().map(|part| (*part).to_owned()).collect(),
                arrows: within.flat_map(|(_, arrows)| arrows.iter().cloned()).collect(),
            });
        }
    }
    circles
}

/// Parts of a whole that use each other.
#[derive(Debug)]
pub struct Circle {
    /// The module that they are parts of; the root is ``.
    pub whole: String,
    /// The parts.
    pub parts: Vec<String>,
    /// Which file uses which.
    pub arrows: Vec<String>,
}

/// For the parts of one whole: which parts each uses, and the arrows that say so.
type Level<'a> = BTreeMap<&'a str, BTreeMap<&'a str, Vec<String>>>;

/// The whole that two modules are parts of, or within parts of, and these parts; nothing for a whole and its own part.
fn apart<'a>(a: &'a str, b: &'a str) -> Option<(&'a str, &'a str, &'a str)> {
    let part = |path: &'a str, start: usize| path[start..].find('/').map_or(path, |end| &path[..start + end]);
    let mut start = 0;
    loop {
        if start > a.len() || start > b.len() || a.is_empty() || b.is_empty() {
            return None;
        }
        let (x, y) = (part(a, start), part(b, start));
        if x != y {
            return Some((&a[..start.saturating_sub(1)], x, y));
        }
        start = x.len() + 1;
    }
}

/// What `from` uses, directly or through others; itself only if it is among these.
fn reached<'a>(level: &Level<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&str> = level[from].keys().copied().collect();
    while let Some(next) = open.pop() {
        if seen.insert(next) {
            open.extend(level[next].keys().copied());
        }
    }
    // Borrowed as long as the level's names are.
    seen.into_iter().filter_map(|name| level.get_key_value(name).map(|(name, _)| *name)).collect()
}

struct File {
    module: Vec<String>,
    text: syn::File,
    /// How many lines it has.
    lines: usize,
}

/// Reads the file `path` of module `module`, and those of the modules that it declares, which are below `folder`.
fn load(path: &Path, module: Vec<String>, folder: &Path, into: &mut Vec<File>) -> Result<()> {
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
    let lines = text.lines().count();
    let text = syn::parse_file(&text).with_context(|| format!("{} is not Rust", path.display()))?;
    for item in &text.items {
        let syn::Item::Mod(declared) = item else { continue };
        if declared.content.is_some() || is_for_tests(&declared.attrs) {
            continue;
        }
        let child = declared.ident.to_string();
        let below = folder.join(&child);
        let found = [folder.join(format!("{child}.rs")), below.join("mod.rs")].into_iter().find(|p| p.exists());
        let Some(found) = found else { bail!("{}: module {child} has no file", path.display()) };
        load(&found, [module.clone(), vec![child]].concat(), &below, into)?;
    }
    into.push(File { module, text, lines });
    Ok(())
}

fn is_for_tests(attributes: &[syn::Attribute]) -> bool {
    attributes.iter().any(|a| {
        a.path().is_ident("test")
            || a.path().is_ident("cfg") && a.parse_args::<syn::Path>().is_ok_and(|condition| condition.is_ident("test"))
    })
}

/// The attributes of an item, of a kind that may stand under `#[cfg(test)]`.
fn attributes(item: &syn::Item) -> &[syn::Attribute] {
    match item {
        syn::Item::Mod(i) => &i.attrs,
        syn::Item::Fn(i) => &i.attrs,
        syn::Item::Impl(i) => &i.attrs,
        syn::Item::Use(i) => &i.attrs,
        syn::Item::Const(i) => &i.attrs,
        syn::Item::Struct(i) => &i.attrs,
        _ => &[],
    }
}

/// Collects the modules that a file's paths lead to.
struct Uses<'a> {
    modules: &'a BTreeSet<Vec<String>>,
    here: &'a [String],
    /// Modules within the file that the miss path is in.
    inner: Vec<String>,
    found: BTreeMap<String, String>,
}

impl Uses<'_> {
    /// Notes where a path leads: to the file of its longest beginning that is a module.
    fn note(&mut self, path: &[String]) {
        let mut absolute = [self.here, &self.inner].concat();
        let mut rest = path;
        match path.first().map(String::as_str) {
            Some("crate") => (absolute, rest) = (Vec::new(), &path[1..]),
            Some("self") => rest = &path[1..],
            Some("super") => {
                while rest.first().is_some_and(|s| s == "super") {
                    absolute.pop();
                    rest = &rest[1..];
                }
            }
            // Without a keyword only what the file itself declares is meant.
            Some(first) => {
                let child = [absolute.clone(), vec![first.to_owned()]].concat();
                if !self.modules.contains(&child) {
                    return;
                }
            }
            None => return,
        }
        for segment in rest {
            let longer = [absolute.clone(), vec![segment.clone()]].concat();
            if !self.modules.contains(&longer) {
                break;
            }
            absolute = longer;
        }
        // Modules within a file belong to the file.
        while !self.modules.contains(&absolute) {
            absolute.pop();
        }
        self.found.entry(absolute.join("/")).or_insert_with(|| path.join("::"));
    }

    fn tree(&mut self, tree: &syn::UseTree, before: &mut Vec<String>) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.tree(&path.tree, before);
                before.pop();
            }
            syn::UseTree::Name(name) => self.leaf(&name.ident, before),
            syn::UseTree::Rename(name) => self.leaf(&name.ident, before),
            syn::UseTree::Glob(_) => self.note(&before.clone()),
            syn::UseTree::Group(group) => group.items.iter().for_each(|item| self.tree(item, before)),
        }
    }

    fn leaf(&mut self, name: &syn::Ident, before: &[String]) {
        let mut path = before.to_vec();
        if name != "self" {
            path.push(name.to_string());
        }
        self.note(&path);
    }
}

impl<'ast> Visit<'ast> for Uses<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        if !is_for_tests(attributes(item)) {
            syn::visit::visit_item(self, item);
        }
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_for_tests(&function.attrs) {
            syn::visit::visit_impl_item_fn(self, function);
        }
    }

    fn visit_item_mod(&mut self, module: &'ast syn::ItemMod) {
        if module.content.is_some() {
            self.inner.push(module.ident.to_string());
            syn::visit::visit_item_mod(self, module);
            self.inner.pop();
        }
    }

    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        self.tree(&item.tree, &mut Vec::new());
    }

    fn visit_visibility(&mut self, _: &'ast syn::Visibility) {
        // `pub(in crate::dispatch)` says who may use this, not what it uses.
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let segments: Vec<String> = path.segments.iter().map(|s| s.ident.to_string()).collect();
        if segments.len() > 1 {
            self.note(&segments);
        }
        syn::visit::visit_path(self, path);
    }
}
