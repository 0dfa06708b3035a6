//! Dependencies within the crates point one way: no module uses one that uses it.

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
    let engine = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the workspace").join("engine/src");
    let encoder = [engine.join("asm.rs"), engine.join("emit/instructions.rs")];
    let (mut open, mut wrong) = (vec![engine], Vec::new());
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
