//! The documents of the repository: links lead somewhere, files and tests that are named exist, pages keep their lengths, and
//! measured figures stand where they belong. Nothing here judges what a page says.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use grind_tests::layers;
use grind_tests::tools::workspace_root;

/// All Markdown files of the repository, by their paths below its root.
fn pages() -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut folders = vec![workspace_root().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
            if path.is_dir() {
                // What is built or installed, and what git keeps.
                if !name.starts_with('.') && !matches!(name, "target" | "node_modules") && !path.ends_with("docs/book")
                {
                    folders.push(path);
                }
            } else if name.ends_with(".md") {
                let page = path.strip_prefix(workspace_root()).expect("below the root").display().to_string();
                found.push((page, fs::read_to_string(&path).expect("a page in UTF-8")));
            }
        }
    }
    assert!(found.len() > 50, "{} pages", found.len());
    found.sort();
    found
}

/// The text outside of blocks of code, line by line, with the numbers of lines.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut inside = false;
    text.lines().enumerate().filter_map(move |(n, line)| {
        if line.trim_start().starts_with("```") {
            inside = !inside;
            return None;
        }
        (!inside).then_some((n + 1, line))
    })
}

/// What stands between `open` and `close`, each time, in a line.
fn between<'t>(line: &'t str, open: &'t str, close: &'t str) -> impl Iterator<Item = &'t str> {
    line.split(open).skip(1).filter_map(move |rest| Some(rest.split_once(close)?.0))
}

/// What stands in backquotes in a line.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

/// The name that a heading is linked by, as GitHub and mdBook make it.
fn anchor(heading: &str) -> String {
    let kept = heading.trim().to_lowercase();
    let kept = kept.chars().filter(|c| c.is_alphanumeric() || *c == ' ' || *c == '-' || *c == '_');
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

fn anchors(text: &str) -> BTreeSet<String> {
    prose(text).filter(|(_, l)| l.starts_with('#')).map(|(_, l)| anchor(l.trim_start_matches('#'))).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut wrong = Vec::new();
    let mut links = 0;
    for (page, text) in pages() {
        let whole = workspace_root().join(&page);
        let folder = whole.parent().expect("a folder");
        for (n, line) in prose(&text) {
            for target in between(line, "](", ")") {
                if target.contains("://") || target.starts_with("mailto:") {
                    continue;
                }
                links += 1;
                let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
                let path = if file.is_empty() { whole.clone() } else { folder.join(file) };
                // A page of the book leads to other pages of it; what is outside has no place in the book that is built.
                if page.starts_with("docs/")
                    && !path.canonicalize().is_ok_and(|p| p.starts_with(workspace_root().join("docs")))
                {
                    wrong.push(format!("{page}:{n}: {target} is not in the book"));
                } else if !path.exists() {
                    wrong.push(format!("{page}:{n}: {target} does not exist"));
                } else if !fragment.is_empty() {
                    let there = fs::read_to_string(&path).unwrap_or_default();
                    if !anchors(&there).contains(fragment) {
                        wrong.push(format!("{page}:{n}: {file} has no heading #{fragment}"));
                    }
                }
            }
        }
    }
    assert!(links > 100, "{links} links");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Whether a word in backquotes names a file of the repository.
fn is_path(word: &str) -> bool {
    let kinds = [".rs", ".toml", ".md", ".tsv", ".txt", ".in", ".c", ".h", ".1", ".sh"];
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    word.chars().all(plain)
        && kinds.iter().any(|k| word.ends_with(k))
        && !word.starts_with("./")
        && !word.starts_with('/')
}

/// The files of the repository, by their paths.
fn files() -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut folders = vec![PathBuf::new()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(workspace_root().join(&folder)).expect("a folder") {
            let entry = entry.expect("an entry");
            let path = folder.join(entry.file_name());
            let name = path.display().to_string();
            if !entry.path().is_dir() {
                found.insert(name);
            } else if name != "target" && name != ".git" && !path.ends_with("node_modules") {
                folders.push(path);
            }
        }
    }
    found
}

#[test]
fn files_that_are_named_exist() {
    let files = files();
    let mut wrong = Vec::new();
    let mut named = 0;
    for (page, text) in pages() {
        let about_code = page == "ARCHITECTURE.md" || page == "CONTRIBUTING.md" || page.starts_with("docs/internals");
        let about_code = about_code || page.starts_with("docs/decisions") || page.starts_with("docs/reference");
        if !about_code {
            continue;
        }
        for (n, line) in text.lines().enumerate() {
            for word in quoted(line).filter(|w| is_path(w)) {
                if word.contains("NAME") {
                    continue;
                }
                named += 1;
                // A path may be told from a folder on that the page is about.
                let there = files.contains(word) || files.iter().any(|f| f.ends_with(&format!("/{word}")));
                if !there {
                    wrong.push(format!("{page}:{}: there is no file {word}", n + 1));
                }
            }
        }
    }
    assert!(named > 150, "{named} files are named");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// What a crate of the workspace uses of the workspace, by the names of folders.
fn uses(folder: &str) -> BTreeSet<String> {
    let text = fs::read_to_string(workspace_root().join(folder).join("Cargo.toml")).expect("a manifest");
    let dependencies = text.split_once("\n[dependencies]\n").map_or("", |(_, rest)| rest);
    let dependencies = dependencies.split("\n[").next().unwrap_or("");
    let names = dependencies.lines().filter_map(|l| l.split(['.', ' ', '=']).next());
    let folders = names.map(|n| if n == "grind" { n } else { n.strip_prefix("grind-").unwrap_or(n) });
    folders.filter(|f| workspace_root().join(f).join("Cargo.toml").is_file()).map(str::to_owned).collect()
}

#[test]
fn the_table_of_crates_is_what_the_manifests_say() {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, section) = text.split_once("\n## 2. Crates").expect("the crates");
    let (section, _) = section.split_once("\n## 3.").expect("their end");
    let mut rows: Vec<(Vec<&str>, BTreeSet<String>, bool)> = Vec::new();
    for line in section.lines().filter(|l| l.starts_with("| `") || l.starts_with("| | | ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        if let (true, Some((_, before, _))) = (cells[1].is_empty(), rows.last_mut()) {
            // The row before goes on.
            *before = &*before | &quoted(cells[3]).map(str::to_owned).collect();
            continue;
        }
        let crates: Vec<&str> = quoted(cells[1]).map(|c| c.trim_end_matches('/')).collect();
        let uses: BTreeSet<String> = quoted(cells[3]).map(str::to_owned).collect();
        rows.push((crates, uses, cells[3] == "the built programs"));
    }
    let manifest = fs::read_to_string(workspace_root().join("Cargo.toml")).expect("Cargo.toml");
    let (_, members) = manifest.split_once("members = [").expect("members");
    let (members, _) = members.split_once(']').expect("their end");
    let members: BTreeSet<&str> = members.split('"').skip(1).step_by(2).collect();
    let named: BTreeSet<&str> = rows.iter().flat_map(|(crates, ..)| crates.iter().copied()).collect();
    assert_eq!(named, members, "the table and the members of the workspace");
    for (n, (crates, listed, programs)) in rows.iter().enumerate() {
        if *programs {
            continue;
        }
        let below: BTreeSet<&str> = rows[n + 1..].iter().flat_map(|(crates, ..)| crates.iter().copied()).collect();
        for name in crates {
            assert_eq!(&uses(name), listed, "what {name} uses");
        }
        assert!(listed.iter().all(|l| below.contains(l.as_str())), "{crates:?} point up: {listed:?}");
    }
}

#[test]
fn crates_are_ready_to_be_published() {
    let root = workspace_root();
    let workspace = fs::read_to_string(root.join("Cargo.toml")).expect("Cargo.toml");
    let (_, shared) = workspace.split_once("[workspace.dependencies]").expect("dependencies");
    let (mut published, mut wrong) = (0, Vec::new());
    for file in files().iter().filter(|f| f.ends_with("/Cargo.toml") && f.matches('/').count() == 1) {
        let folder = file.trim_end_matches("/Cargo.toml");
        let manifest = fs::read_to_string(root.join(file)).expect("a manifest");
        let Some((package, _)) = manifest.split_once("\n[lints]") else { continue };
        if package.contains("publish = false") {
            continue;
        }
        published += 1;
        let mut want = |there: bool, what: &str| {
            if !there {
                wrong.push(format!("{folder}: {what}"));
            }
        };
        let list = |key: &str| {
            let line = package.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(" = ["));
            line.map_or(0, |l| l.split(',').count())
        };
        want((1..=5).contains(&list("keywords")), "one to five keywords");
        want((1..=5).contains(&list("categories")), "one to five categories");
        want(package.contains("license.workspace = true"), "a licence");
        want(package.contains("readme = \"README.md\""), "a README in its manifest");
        let readme = fs::read_to_string(root.join(folder).join("README.md")).unwrap_or_default();
        want(readme.starts_with("# ") && readme.lines().count() <= 60, "a short README.md");
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            let same = fs::read(root.join(folder).join(licence)).ok() == fs::read(root.join(licence)).ok();
            want(same, &format!("the text of {licence}"));
        }
        // A registry knows no paths.
        let workspace_keys = |l: &str| l.split_once(".workspace").map(|(n, _)| n.to_owned());
        let keys = ["version", "edition", "rust-version", "license"];
        for name in package.lines().filter_map(workspace_keys).filter(|n| !keys.contains(&n.as_str())) {
            let line = shared.lines().find(|l| l.starts_with(&format!("{name} = "))).expect("a dependency of all");
            let known = !line.contains("path = ") || line.contains("version = ") || name == "grind-tests";
            want(known, &format!("a version of {name}, which the root's manifest has by its path only"));
        }
    }
    assert!(published > 15, "{published} crates");
    assert!(wrong.is_empty(), "these crates lack what publishing wants:\n{}", wrong.join("\n"));
}

#[test]
fn tests_that_hold_invariants_exist() {
    let text = fs::read_to_string(workspace_root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, section) = text.split_once("\n## 9. Invariants").expect("the invariants");
    let (section, _) = section.split_once("\n## 10.").expect("their end");
    let numbered: Vec<&str> = section.split('\n').filter(|l| l.starts_with(|c: char| c.is_ascii_digit())).collect();
    assert!(numbered.len() >= 15, "{} invariants", numbered.len());
    // Each has at least one test, which stands in backquotes behind it, until the next number.
    let mut invariants = Vec::new();
    for line in section.lines().filter(|l| !l.is_empty()) {
        if line.starts_with(|c: char| c.is_ascii_digit()) {
            invariants.push(String::new());
        } else if !line.starts_with("   ") {
            if invariants.len() == numbered.len() {
                break;
            }
            continue;
        }
        if let Some(last) = invariants.last_mut() {
            last.push_str(line);
            last.push(' ');
        }
    }
    let files = files();
    for (n, invariant) in invariants.iter().enumerate() {
        let (mut file, mut tests) = (None, 0);
        for word in quoted(invariant) {
            if let Some(program) = word.strip_prefix("semantics ") {
                let there =
                    ["c", "s", "cc", "rs"].iter().any(|e| files.contains(&format!("tests/semantics/{program}.{e}")));
                assert!(there, "invariant {}: there is no program {program}", n + 1);
                tests += 1;
            } else if word.contains('/') {
                assert!(workspace_root().join(word).exists(), "invariant {}: there is no {word}", n + 1);
                file = Some(word);
                tests += 1;
            } else if let Some(file) = file {
                let source = fs::read_to_string(workspace_root().join(file)).expect("a file of tests");
                assert!(
                    source.contains(&format!("fn {word}(")) || source.contains(&format!(" {word} ")),
                    "invariant {}: {file} has no test {word}",
                    n + 1
                );
            }
        }
        assert!(tests > 0, "invariant {} has no test: {invariant}", n + 1);
    }
}

/// A file that is no module is never compiled, and its tests pass for ever.
#[test]
fn every_file_of_tests_is_a_module() {
    let mut lost = Vec::new();
    for path in files().into_iter().filter(|path| path.ends_with(".rs")) {
        let Some((krate, below)) = path.split_once("/tests/") else { continue };
        let main = workspace_root().join(krate).join("tests/main.rs");
        let Ok(main) = fs::read_to_string(main) else { continue };
        let module = below.strip_suffix(".rs").unwrap_or(below);
        if !module.contains('/') && module != "main" && !main.contains(&format!("\nmod {module};\n")) {
            lost.push(path);
        }
    }
    assert!(lost.is_empty(), "no module of main.rs beside them: {lost:?}");
}

#[test]
fn pages_keep_their_lengths() {
    for (page, most, width) in [("ARCHITECTURE.md", 250, 130), ("README.md", 150, 140), ("benches/README.md", 60, 140)]
    {
        let text = fs::read_to_string(workspace_root().join(page)).expect("a page");
        let lines = text.lines().count();
        assert!(lines <= most, "{page} has {lines} lines; {most} is the most");
        for (n, line) in text.lines().enumerate() {
            let length = line.chars().count();
            assert!(length <= width, "{page}:{}: {length} characters; {width} is the most", n + 1);
        }
    }
}

/// Whether a line states a time or a ratio that a machine has produced.
fn has_figure(line: &str) -> bool {
    let words: Vec<&str> = line.split(|c: char| c.is_whitespace() || c == '(' || c == ')').collect();
    let number = |w: &str| !w.is_empty() && w.chars().all(|c| c.is_ascii_digit() || c == '.' || c == ',');
    words.windows(2).any(|pair| {
        let unit = pair[1].trim_end_matches([',', '.', ';', ':']);
        number(pair[0]) && ["ns", "us", "ms", "s", "%", "seconds", "milliseconds", "times"].contains(&unit)
    }) || words.iter().any(|w| w.strip_suffix('%').is_some_and(number))
}

#[test]
fn figures_are_data_and_not_prose() {
    assert!(
        has_figure("a stop costs 4 us") && has_figure("(12 %)") && has_figure("1.5 times native") && has_figure("12%")
    );
    assert!(!has_figure("a table of 65,536 entries") && !has_figure("one per mille"));
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        if !["ARCHITECTURE.md", "README.md", "CONTRIBUTING.md"].contains(&page.as_str())
            && !page.starts_with("docs/internals")
        {
            continue;
        }
        // What is made from data stands between its markers.
        let made = text.split_once("<!-- speed -->").and_then(|(_, t)| t.split_once("<!-- end of speed -->"));
        let made = made.map_or("", |(table, _)| table);
        for (n, line) in prose(&text) {
            if has_figure(line) && !made.contains(line) {
                wrong.push(format!("{page}:{n}: a measured figure? {line}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_page_of_the_book_is_in_its_summary() {
    let docs = workspace_root().join("docs");
    let summary = fs::read_to_string(docs.join("SUMMARY.md")).expect("the summary");
    let listed: BTreeSet<String> = summary.lines().flat_map(|l| between(l, "](", ")")).map(str::to_owned).collect();
    let there: BTreeSet<String> = pages()
        .into_iter()
        .filter_map(|(page, _)| Some(page.strip_prefix("docs/")?.to_owned()).filter(|p| p != "SUMMARY.md"))
        .collect();
    assert_eq!(listed, there);
}

#[test]
fn decisions_have_their_parts() {
    let folder = workspace_root().join("docs/decisions");
    let index = fs::read_to_string(folder.join("index.md")).expect("the list of decisions");
    let experiments = fs::read_to_string(workspace_root().join("benches/experiments.toml")).expect("experiments");
    for entry in fs::read_dir(&folder).expect("decisions") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().and_then(|n| n.to_str()).expect("a name");
        if name == "index.md" {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a page");
        for part in ["\n## Context\n", "\n## Decision\n", "\n## Consequences\n", "\n## Status\n"] {
            assert!(text.contains(part), "{name} has no {}", part.trim());
        }
        assert!(text.starts_with(&format!("# {}. ", &name[..4])), "{name} does not begin with its number");
        assert!(index.contains(name), "{name} is not in the list");
        if let Some((_, list)) = text.split_once("\nExperiments (in `benches/experiments.toml`): ") {
            assert!(quoted(list).next().is_some(), "{name}: no experiment is named");
            for id in quoted(list) {
                assert!(experiments.contains(&format!("id = \"{id}\"\n")), "{name}: there is no experiment {id}");
            }
        }
    }
}

#[test]
fn modules_have_a_home_in_the_list() {
    let page = fs::read_to_string(workspace_root().join("docs/internals/homes.md")).expect("the page");
    let (_, tables) = page.split_once("\n## The engine's modules\n").expect("the modules");
    let rows = tables.lines().filter_map(|l| l.strip_prefix("| `"));
    let cells: Vec<String> = rows.map(|l| format!("`{}", l.split('|').next().unwrap_or(""))).collect();
    let named: BTreeSet<String> = cells.iter().flat_map(|c| quoted(c)).map(|m| m.replace("::", "/")).collect();
    let files = files();
    let module_of = |krate: &str, below: &str| {
        let below = below.strip_suffix(".rs").unwrap_or(below);
        let below = below.strip_suffix("/mod").unwrap_or(below);
        let krate = krate.replace('-', "_");
        if below == "lib" { krate } else { format!("{krate}/{below}") }
    };
    let sources: BTreeMap<String, (&str, &str)> = files
        .iter()
        .filter_map(|file| file.split_once("/src/"))
        .filter(|(krate, below)| layers::ENGINE.contains(krate) && below.ends_with(".rs"))
        .map(|(krate, below)| (module_of(krate, below), (krate, below)))
        .collect();
    for module in &named {
        assert!(sources.contains_key(module), "the engine has no module {module}");
    }
    // All that lie directly in a crate or in the dispatcher are named; a crate itself is where it has a module only.
    for (module, (krate, below)) in &sources {
        let top = !below.contains('/') || below.strip_prefix("dispatch/").is_some_and(|m| !m.contains('/'));
        let tests = below.ends_with("tests.rs") || ["lib.rs", "dispatch/mod.rs"].contains(below);
        assert!(!top || tests || named.contains(module), "{module} of {krate} is not in the list");
    }
}

#[test]
fn nothing_speaks_of_one_machine() {
    for (page, text) in pages() {
        // The book's own folder is an example.
        let text = text.replace("/home/you/book", "");
        for place in ["home", "work", "root"].map(|folder| format!("/{folder}/")) {
            assert!(!text.contains(&place), "{page} names a place of one machine: {place}");
        }
        assert!(Path::new(&page).is_relative());
    }
}

/// What programs leave behind where they run (logs, profiles, inputs that were found) is no part of the project.
#[test]
fn only_what_is_known_lies_in_the_root() {
    let listed = std::process::Command::new("git").arg("ls-files").current_dir(workspace_root()).output();
    let Ok(listed) = listed.map(|output| String::from_utf8(output.stdout).expect("names in UTF-8")) else { return };
    let files = [
        ".gitignore",
        "ARCHITECTURE.md",
        "CHANGELOG.md",
        "CONTRIBUTING.md",
        "Cargo.lock",
        "Cargo.toml",
        "LICENSE-APACHE",
        "LICENSE-MIT",
        "Makefile",
        "README.md",
        "rustfmt.toml",
    ];
    let folders = [".cargo", ".ci", ".github", "ci", "debian", "docs", "include", "man"];
    let is_known = |path: &str| match path.split_once('/') {
        None => files.contains(&path),
        Some((folder, _)) => folders.contains(&folder) || workspace_root().join(folder).join("Cargo.toml").exists(),
    };
    let strays: Vec<&str> = listed.lines().filter(|path| !is_known(path)).collect();
    assert!(strays.is_empty(), "what is this for? {strays:?}");
}
