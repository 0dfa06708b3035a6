//! What manifests list is used: every dependency of the workspace by a crate, and every dependency of a crate by its sources.

use std::path::Path;

/// Listed for what they do without being named.
const UNNAMED: &[(&str, &str, &str)] = &[("symbols", "flate2", "chooses the back end of `object`")];

fn workspace() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace")
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The keys of a manifest's sections whose names end with `dependencies`.
fn listed(manifest: &str) -> Vec<String> {
    let mut inside = false;
    let mut all = Vec::new();
    for line in manifest.lines() {
        if let Some(section) = line.strip_prefix('[') {
            inside = section.trim_end_matches(']').ends_with("dependencies");
        } else if inside && !line.starts_with('#') {
            let key: String = line.chars().take_while(|c| c.is_alphanumeric() || "-_".contains(*c)).collect();
            if !key.is_empty() {
                all.push(key);
            }
        }
    }
    all
}

/// All sources below a folder, and those of other folders that they name as theirs (`#[path = "…"]`).
fn sources(folder: &Path, text: &mut String) {
    for entry in std::fs::read_dir(folder).expect("a folder of sources").map(|e| e.expect("an entry").path()) {
        if entry.is_dir() && entry.file_name().is_none_or(|n| n != "node_modules" && n != "target") {
            sources(&entry, text);
        } else if entry.extension().is_some_and(|e| e == "rs") {
            let source = read(&entry);
            let elsewhere = source.split("#[path = \"").skip(1).filter_map(|rest| rest.split('"').next());
            for path in elsewhere.map(|path| folder.join(path)).filter(|path| path.exists()) {
                text.push_str(&read(&path));
            }
            text.push_str(&source);
        }
    }
}

/// Whether a name occurs as a word of code.
fn named(text: &str, name: &str) -> bool {
    let part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| !text[..at].ends_with(part) && !text[at + name.len()..].starts_with(part))
}

/// The name of a crate in code: that of its library, if the manifest gives it one.
fn in_code(dependency: &str) -> String {
    let library = std::fs::read_to_string(workspace().join(dependency).join("Cargo.toml")).ok().and_then(|manifest| {
        let (_, library) = manifest.split_once("[lib]")?;
        let line = library.lines().take_while(|l| !l.starts_with('[')).find(|l| l.starts_with("name"))?;
        Some(line.split('"').nth(1)?.to_string())
    });
    library.unwrap_or_else(|| dependency.replace('-', "_"))
}

#[test]
fn every_dependency_that_is_listed_is_used() {
    let root = read(&workspace().join("Cargo.toml"));
    let mut wrong = Vec::new();
    let mut used = Vec::new();
    for entry in std::fs::read_dir(workspace()).expect("the workspace").map(|e| e.expect("an entry").path()) {
        let manifest = entry.join("Cargo.toml");
        if !manifest.exists() {
            continue;
        }
        let name = entry.file_name().expect("a name").to_string_lossy().into_owned();
        let mut text = String::new();
        sources(&entry, &mut text);
        for dependency in listed(&read(&manifest)) {
            let known = UNNAMED.iter().any(|(krate, of, _)| *krate == name && *of == dependency);
            if !known && !named(&text, &in_code(&dependency)) {
                wrong.push(format!("{name} lists {dependency}, which nothing there uses"));
            }
            used.push(dependency);
        }
    }
    wrong.extend(
        listed(&root)
            .into_iter()
            .filter(|d| !used.contains(d))
            .map(|d| format!("the workspace lists {d}, which no crate has")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn words_of_code_are_found_whole() {
    assert!(named("use nix::sys;", "nix"));
    assert!(!named("use std::os::unix::ffi;", "nix"));
    assert_eq!(listed("[dependencies]\na-b.workspace = true\n# c = 1\n[lints]\nd = 1\n"), ["a-b"]);
}

/// Whether a comment of documentation has an example that is compiled.
fn has_example(text: &str) -> bool {
    let mut inside = false;
    text.lines().any(|line| {
        let line = line.trim_start();
        let Some(said) = line.strip_prefix("///").or_else(|| line.strip_prefix("//!")) else {
            inside = false;
            return false;
        };
        let Some(kind) = said.trim().strip_prefix("```") else { return false };
        let compiled = ["rust", "no_run", "should_panic", "compile_fail"].iter().any(|k| kind.starts_with(k));
        inside = !inside;
        inside && (kind.is_empty() || compiled)
    })
}

#[test]
fn examples_in_documentation_are_tested() {
    assert!(has_example("/// ```\n/// f();\n/// ```") && has_example("//! x\n//! ```no_run\n//! f();\n//! ```"));
    assert!(!has_example("/// ```text\n/// f()\n/// ```"));
    // To look for what is not there takes seconds for each crate.
    for krate in std::fs::read_dir(workspace()).expect("the workspace").map(|e| e.expect("an entry").path()) {
        let (manifest, source) = (krate.join("Cargo.toml"), krate.join("src"));
        let tells = |at: &Path, what: &str| read(at).lines().any(|line| line == what);
        if !manifest.exists() || !source.join("lib.rs").exists() && !tells(&manifest, "[lib]") {
            continue;
        }
        let mut text = String::new();
        sources(&source, &mut text);
        let (has, wanted) = (has_example(&text), !tells(&manifest, "doctest = false"));
        assert_eq!(
            has,
            wanted,
            "{}: `doctest = false` belongs into it if, and only if, it has no examples",
            krate.display()
        );
    }
}
