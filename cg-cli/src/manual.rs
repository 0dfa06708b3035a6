//! Manual pages and shell completions, made from the one definition of the options.
//!
//! What is made is checked in under `man/`; a test of each program compares. Text that explains rather than lists is
//! written by hand beside the program and becomes part of its page.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{ArgAction, Command};
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
    out.extend_from_slice(head(command).as_bytes());
    man.render_description_section(&mut out)?;
    man.render_options_section(&mut out)?;
    out.extend_from_slice(narrative.as_bytes());
    Ok(out)
}

/// The sections NAME and SYNOPSIS: what the program is in a few words, as `apropos` lists it, and how it is called. That all
/// options stand in the second, as the library has it, helps nobody.
fn head(command: &Command) -> String {
    let roff = |text: &str| text.replace('\\', "\\e").replace('-', "\\-");
    let name = roff(command.get_name());
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let words = about.split(':').next().unwrap_or_default().trim_end_matches('.');
    let mut letters = words.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_lowercase).collect();
    let mut text = format!(
        ".SH NAME\n{name} \\- {first}{}\n.SH SYNOPSIS\n.B {name}\n[\\fIoption\\fR ...]",
        roff(letters.as_str())
    );
    for argument in command.get_positionals() {
        let value = argument.get_value_names().and_then(|names| names.first()).map_or("argument", |name| name.as_str());
        let many = if matches!(argument.get_action(), ArgAction::Append) { " ..." } else { "" };
        let argument = match argument.is_required_set() {
            true => format!(" \\fI{}\\fR{many}", roff(value)),
            false => format!(" [\\fI{}\\fR{many}]", roff(value)),
        };
        text.push_str(&argument);
    }
    text.push('\n');
    text
}

/// The test that each program has: its definition is sound, and its page and completions are those under `man/` of the workspace.
/// With `BLESS=1` in the environment they are written instead.
///
/// # Panics
/// If anything of that is not so.
pub fn assert_up_to_date(command: &Command, narrative: &str) {
    command.clone().debug_assert();
    let man = Path::new(env!("CARGO_MANIFEST_DIR")).join("../man");
    let wrong = check(&man, command, narrative).expect("the folder of manuals can be written");
    assert!(wrong.is_empty(), "run the tests with BLESS=1 to write {wrong:?}");
}

/// Compares the page and the completions of a program with the files under `man`, the folder of that name; with
/// `BLESS=1` in the environment writes them instead. Gives the files that differ or are missing.
///
/// # Errors
/// A file cannot be written.
fn check(man: &Path, command: &Command, narrative: &str) -> io::Result<Vec<PathBuf>> {
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

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Arg;

    #[test]
    fn name_and_synopsis_are_short() {
        let command = Command::new("x_y")
            .about("Print it: a, b, and c")
            .arg(Arg::new("flag").long("flag").action(ArgAction::SetTrue))
            .arg(Arg::new("in").value_name("in-file").required(true))
            .arg(Arg::new("more").value_name("more").action(ArgAction::Append));
        let expected = ".SH NAME\nx_y \\- print it\n.SH SYNOPSIS\n.B x_y\n[\\fIoption\\fR ...] \\fIin\\-file\\fR [\\fImore\\fR ...]\n";
        assert_eq!(head(&command), expected);
    }
}
