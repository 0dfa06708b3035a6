//! Manual pages and shell completions, made from the one definition of the options.
//!
//! What is made is checked in under `man/`; a test of each program compares. Text that explains rather than lists is
//! written by hand beside the program and becomes part of its page.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::Command;
use clap_complete::Shell;
use clap_mangen::Man;

/// The manual page of a program: its options, then `narrative`, sections in roff written by hand.
///
/// # Errors
/// None in practice: writing to memory does not fail.
pub fn page(command: &Command, narrative: &str) -> io::Result<Vec<u8>> {
    let version = command.get_version().unwrap_or_default();
    let man = Man::new(command.clone()).section("1").source(format!("grind {version}")).manual("grind");
    let mut out = Vec::new();
    man.render_title(&mut out)?;
    man.render_name_section(&mut out)?;
    man.render_synopsis_section(&mut out)?;
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    out.extend_from_slice(narrative.as_bytes());
    Ok(out)
}

/// Compares the page and the completions of a program with the files under `man`, the folder of that name; with
/// `BLESS=1` in the environment writes them instead. Gives the files that differ or are missing.
///
/// # Errors
/// A file cannot be written.
pub fn check(man: &Path, command: &Command, narrative: &str) -> io::Result<Vec<PathBuf>> {
    let name = command.get_name().to_owned();
    let mut files = vec![(man.join(format!("{name}.1")), page(command, narrative)?)];
    for (shell, file) in
        [(Shell::Bash, format!("{name}.bash")), (Shell::Zsh, format!("_{name}")), (Shell::Fish, format!("{name}.fish"))]
    {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut command.clone(), &name, &mut text);
        files.push((man.join("completions").join(file), text));
    }
    let bless = std::env::var_os("BLESS").is_some_and(|value| value == "1");
    let mut wrong = Vec::new();
    for (path, text) in files {
        if bless {
            fs::create_dir_all(path.parent().unwrap_or(man))?;
            fs::write(&path, &text)?;
        } else if fs::read(&path).ok().as_deref() != Some(&text[..]) {
            wrong.push(path);
        }
    }
    Ok(wrong)
}
