//! `cargo run -p grind-bench --bin figures`: makes the plot and the table of the README anew from `benches/runs`.
#![forbid(unsafe_code)]

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the workspace")?;
    for (path, text) in grind_bench::figures::made(root)? {
        let whole = root.join(path);
        if fs::read_to_string(&whole).ok().as_ref() != Some(&text) {
            fs::write(&whole, text).with_context(|| path.to_owned())?;
            println!("{path} has been made anew");
        }
    }
    Ok(())
}
