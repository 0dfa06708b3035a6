//! `cg_report`: makes one HTML file of profiles.
//!
//! The program reads profiles, sources and object files, and writes the report in one step: nothing half-written stays. Or it
//! serves the report to a browser on the same machine.
//! All that a profile says is hostile until it is text.
#![forbid(unsafe_code)]

mod allocator;
mod apart;
mod chains;
mod code;
mod contexts;
mod elf;
mod formula;
mod head;
mod html;
mod inline;
mod listing;
mod live;
mod load;
mod memory;
mod names;
mod options;
mod pack;
mod pair;
mod parts;
mod renaming;
mod report;
mod runs;
mod samples;
mod serve;
mod side;
mod sources;
mod stretches;
mod stubs;
mod verdict;

use std::ffi::{OsStr, OsString};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use anyhow::{Context, bail};
use cg_cli::{exit, options as cli};
use clap::CommandFactory;

use html::Data;
use live::Live;
use load::Wishes;
use options::{Options, Parts};
use renaming::Renaming;
use serve::{Server, Still};

/// What others may do with the report, before the umask: what they may do with profiles.
const MODE: u32 = 0o600;

fn main() -> ExitCode {
    allocator::settle();
    let options: Options = match cli::parse(Options::command(), std::env::args_os()) {
        Ok(options) => options,
        Err(code) => return code,
    };
    exit::finish("cg_report", run(&options))
}

fn run(options: &Options) -> anyhow::Result<u8> {
    for folder in &options.include {
        let meta = std::fs::metadata(folder).with_context(|| format!("--include {}", folder.display()))?;
        if !meta.is_dir() {
            bail!("--include {}: this is no folder", folder.display());
        }
    }
    let renaming = Renaming {
        file: options.mod_filename.as_ref(),
        function: options.mod_funcname.as_ref(),
        redact: options.redact,
    };
    let samples =
        options.samples.as_ref().map(|file| samples::read(file, options.samples_event.as_deref())).transpose()?;
    let wishes = Wishes {
        renaming,
        // What was sampled in which part is not known.
        apart: options.parts == Parts::Keep && samples.is_none(),
        event: options.sort.as_deref(),
        samples: samples.as_ref(),
        root: options.root.as_deref(),
        code: options.code,
        contexts: options.contexts,
    };
    let patience = (!options.keep).then_some(serve::PATIENCE);
    if let Some(pid) = options.live {
        let server = Server::start(options.serve.unwrap_or(serve::ANYWHERE))?;
        let make = |files: &[OsString]| report::page(options, &mut load::sides(&[files], wishes)?);
        let mut live = Live::start(&callgrind_control_protocol::folder(), pid, Box::new(make))?;
        announce(&server, options.open)?;
        server.run(&mut live, patience)?;
        return Ok(exit::SUCCESS);
    }
    if options.separate && options.files.len() < 2 {
        bail!("--separate: there is one profile, so that there is nothing to switch to");
    }
    let server = options.serve.map(Server::start).transpose()?;
    let output = if server.is_none() { output(options)? } else { OsString::new() };
    let both: &[&[OsString]] = &[&options.files, &options.base];
    let lists = if options.base.is_empty() { &both[..1] } else { both };
    let mut loaded = load::sides(lists, wishes)?;
    let verdicts = verdict::verdicts(&loaded.sides, &options.fail_above, &options.event)?;
    let page = report::page(options, &mut loaded)?;
    if let Some(server) = server {
        // All that is asked for is in the page.
        drop(loaded);
        announce(&server, options.open)?;
        server.run(&mut Still::new(page)?, patience)?;
        return Ok(exit::SUCCESS);
    }
    let size = page.size() as u64;
    if size > options.max_size {
        bail!(
            "the report would have {} MB, more than --max-size allows; --source none, --parts sum, --show or a larger --max-size \
             help",
            size >> 20
        );
    }
    if output == "-" {
        let mut out = BufWriter::new(io::stdout().lock());
        page.write(&Data::Inside, &mut out).and_then(|()| out.flush()).context("standard output")?;
    } else {
        cg_format::atomic::write_file(Path::new(&output), MODE, |out| page.write(&Data::Inside, out))?;
        if options.open {
            let path = std::path::absolute(Path::new(&output)).context("the current folder")?;
            open(path.as_os_str())?;
        }
    }
    // The process ends: giving millions of small pieces back one by one would take longer than the report.
    std::mem::forget(loaded);
    for verdict in &verdicts {
        let _ = writeln!(io::stderr(), "cg_report: {verdict}");
    }
    Ok(if verdicts.is_empty() { exit::SUCCESS } else { exit::GATE })
}

/// Tells where the report is served, and opens it if that is wanted.
fn announce(server: &Server, opens: bool) -> anyhow::Result<()> {
    writeln!(io::stdout(), "{}", server.url()).context("standard output")?;
    if opens { open(OsStr::new(server.url())) } else { Ok(()) }
}

/// Where the report goes.
fn output(options: &Options) -> anyhow::Result<OsString> {
    let output = match (&options.output, &options.files[0]) {
        (Some(output), _) => output.clone(),
        (None, first) if first == "-" => bail!("name the report with --output: the profile has no name"),
        (None, first) => [first, OsStr::new(".html")].into_iter().collect(),
    };
    if options.open && output == "-" {
        bail!("--open needs a report in a file, not on standard output");
    }
    Ok(output)
}

/// Shows the report, a path or an address, in a browser, which goes on by itself.
fn open(report: &OsStr) -> anyhow::Result<()> {
    let named = std::env::var_os("BROWSER").filter(|browser| !browser.is_empty());
    let browser = named.unwrap_or_else(|| "xdg-open".into());
    let quiet = Command::new(&browser)
        .env_remove(allocator::BOUND)
        .arg(report)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    quiet.map(|_| ()).with_context(|| {
        format!(
            "the report is {}, but it cannot be opened: {} cannot be started; name a browser in $BROWSER",
            report.to_string_lossy(),
            browser.to_string_lossy()
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
