//! Dependencies point one way, within the crates and among them: no module uses one that uses it, and no crate uses one that stands
//! above it in the table of `ARCHITECTURE.md`. No crate is larger than what one can get to know.

use std::path::{Path, PathBuf};

use grind_tests::layers;

fn roots() -> Vec<PathBuf> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let mut roots: Vec<PathBuf> = std::fs::read_dir(workspace)
        .expect("the workspace")
        .map(|entry| entry.expect("an entry").path().join("src"))
        .flat_map(|src| [src.join("lib.rs"), src.join("main.rs")])
        .filter(|root| root.exists())
        .collect();
    roots.sort();
    roots
}

#[test]
fn no_module_uses_one_that_uses_it() {
    let mut wrong = String::new();
    for root in roots() {
        let folder = root.ancestors().nth(2).and_then(Path::file_name).and_then(|n| n.to_str()).expect("a crate");
        let arrows = layers::read(&root).expect("sources that can be read");
        for circle in layers::circles(&arrows) {
            wrong += &format!("{folder}: parts of `{}` use each other: {}\n", circle.whole, circle.parts.join(", "));
            for arrow in &circle.arrows {
                wrong += &format!("    {arrow}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Who reads `c.bytes(&[0x48, 0x8d, …])` has to decode it; the encoder's methods and `dynasm!` say what they emit.
#[test]
fn only_the_encoder_writes_instructions_as_bytes() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let encoder = ["asm/src/lib.rs", "asm/src/instructions.rs"].map(|file| workspace.join(file));
    assert!(encoder.iter().all(|file| file.exists()), "the encoder is elsewhere");
    let mut open: Vec<PathBuf> = layers::ENGINE.iter().map(|krate| workspace.join(krate).join("src")).collect();
    let mut wrong = Vec::new();
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(&folder).expect("a folder of sources") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
            } else if !encoder.contains(&path) {
                let text = std::fs::read_to_string(&path).expect("a source");
                let lines = text.lines().enumerate().filter(|(_, line)| line.contains("bytes(&["));
                wrong.extend(lines.map(|(n, line)| format!("{}:{}: {}", path.display(), n + 1, line.trim())));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The crates in the order of the table, from above, as far as it says what they use.
fn layers() -> Vec<Vec<String>> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let text = std::fs::read_to_string(workspace.join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    let (_, section) = text.split_once("\n## 2. Crates").expect("the crates");
    let (section, _) = section.split_once("\n## 3.").expect("their end");
    let rows = section.lines().filter(|line| line.starts_with("| `"));
    let cell = |row: &str| row.split('|').nth(1).unwrap_or("").to_owned();
    rows.map(|row| cell(row).split('`').skip(1).step_by(2).map(|c| c.trim_end_matches('/').to_owned()).collect())
        .collect()
}

/// The crates of the workspace that a manifest lists, for tests and for building too, by the names of their folders.
fn listed(manifest: &str, all: &[String]) -> Vec<String> {
    let sections =
        manifest.split("\n[").filter(|s| s.split(']').next().is_some_and(|name| name.ends_with("dependencies")));
    let keys = sections.flat_map(|s| s.lines().skip(1)).filter_map(|line| line.split(['.', ' ', '=']).next());
    let folders = keys.map(|key| if key == "grind" { key } else { key.strip_prefix("grind-").unwrap_or(key) });
    folders.filter(|folder| all.iter().any(|name| name == folder)).map(str::to_owned).collect()
}

/// The manifests are compared with the table by `documents`; here tests, too, may only use what stands below.
#[test]
fn no_crate_uses_one_above_it() {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace");
    let layers = layers();
    let all = layers.concat();
    assert!(all.len() > 30, "{} crates in the table", all.len());
    let place = |name: &str| layers.iter().position(|row| row.iter().any(|c| c == name)).expect("a row");
    let (mut arrows, mut wrong) = (0, Vec::new());
    for name in &all {
        let manifest = std::fs::read_to_string(workspace.join(name).join("Cargo.toml")).expect("a manifest");
        // Whole programs are run by `tests` and `benches`, which stand below because everybody's tests use them.
        let outside = ["tests", "benches"].contains(&name.as_str());
        for used in listed(&manifest, &all).into_iter().filter(|_| !outside) {
            arrows += 1;
            if place(&used) <= place(name) {
                wrong.push(format!("{name} uses {used}, which is not below it"));
            }
        }
    }
    assert!(arrows > 100, "{arrows} arrows");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn no_crate_is_too_large_to_know() {
    const MOST: usize = 10_000;
    let sizes: Vec<(String, usize)> = roots()
        .iter()
        .map(|root| (root.display().to_string(), layers::lines(root).expect("sources that can be read")))
        .collect();
    let wrong: Vec<String> = sizes.iter().filter(|(_, n)| *n > MOST).map(|(r, n)| format!("{r}: {n} lines")).collect();
    assert!(wrong.is_empty(), "more than {MOST} lines without tests:\n{}", wrong.join("\n"));
    // (That of the engine is the largest: lines are found at all.)
    assert!(sizes.iter().any(|(_, n)| *n > MOST / 2), "{sizes:?}");
}

/// What is counted, beside a crate whose lines are known.
#[test]
fn lines_of_tests_are_not_counted() {
    let folder = tempfile::tempdir().expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).expect("written");
    write("lib.rs", "//! A crate.\n\nmod a;\n#[cfg(test)]\nmod tests;\n");
    write("a.rs", "pub fn a() -> u8 {\n    1\n}\n\n/// Tests.\n#[cfg(test)]\nmod within {\n    use super::*;\n}\n");
    write("tests.rs", "fn long() {\n\n\n\n\n}\n");
    assert_eq!(layers::lines(&folder.path().join("lib.rs")).expect("read"), (5 - 2) + (9 - 5));
}
