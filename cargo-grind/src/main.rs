//! `cargo grind`: builds a package with line tables, profiles what cargo would run, and shows the result.
//!
//! Cargo itself decides what is built and run, with which arguments, where, in which environment: this program only names itself as
//! the *runner* of executables, a thing that cargo has for emulators. So whatever `cargo run`, `test` and `bench` understand is
//! understood here. As a runner it is called by cargo for each executable, becomes grind, and must print nothing of its own.
#![forbid(unsafe_code)]

mod build;
mod compare;
mod options;
mod runner;
mod show;

use std::ffi::OsString;
use std::process::ExitCode;

use anyhow::{Result, bail};
use cg_cli::{exit, options as cli};
use clap::CommandFactory;
use options::{Options, Verb};

fn main() -> ExitCode {
    let mut args: Vec<OsString> = std::env::args_os().collect();
    if args.get(1).is_some_and(|word| word == runner::WORD) {
        return exit::finish("cargo grind", runner::run(&args[2..]));
    }
    // Cargo calls it as `cargo-grind grind …`.
    if args.get(1).is_some_and(|word| word == "grind") {
        args.remove(1);
    }
    match cli::parse(Options::command(), args) {
        Ok(options) => exit::finish("cargo grind", run(&options)),
        Err(code) => code,
    }
}

fn run(options: &Options) -> Result<u8> {
    if options.verb == Verb::Compare {
        return compare::run(options);
    }
    let here = std::env::current_dir()?;
    let out = build::target_folder(&here)?.join("grind");
    let ran = build::profile(options, options.verb, &options.words, &here, &out, None)?;
    if ran.profiles.is_empty() && ran.status == 0 {
        bail!("cargo ran no program, so that there is no profile");
    }
    for profile in &ran.profiles {
        show::profile(options, profile)?;
    }
    // A program that failed has a profile, too; its status is the answer all the same.
    Ok(ran.status)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
