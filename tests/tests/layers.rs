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
        let arrows = layers::read(&root).expect("sources that can be read");
        for circle in layers::circles(&arrows) {
            wrong += &format!(
                "{}: parts of `{}` use each other: {}\n",
                root.display(),
                circle.whole,
                circle.parts.join(", ")
            );
            for arrow in &circle.arrows {
                wrong += &format!("    {arrow}\n");
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}
