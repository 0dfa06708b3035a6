//! `callgrind_control`: looks at running profiles and tells their runs what to do.
//!
//! A run is told something only if it was named on the command line; without names runs are looked at, never touched.
#![forbid(unsafe_code)]

mod options;
mod show;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, bail};
use callgrind_control_protocol::{Client, Request, Status, folder, runs};
use cg_cli::{exit, options as cli};
use clap::CommandFactory;

use options::{OnOff, Options};

fn main() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let options: Options = match cli::parse(Options::command(), args) {
        Ok(options) => options,
        Err(code) => return code,
    };
    exit::finish("callgrind_control", run(&options))
}

/// A run that was chosen.
struct Chosen {
    pid: u32,
    client: Client,
    status: Status,
}

fn run(options: &Options) -> anyhow::Result<u8> {
    let base = folder();
    if options.acts() && options.runs.is_empty() {
        bail!("name the runs that are meant: {}", known(&base)?);
    }
    let chosen = choose(&base, options)?;
    if chosen.is_empty() {
        bail!(
            "there is no run to look at: what runs under `grind --tool=callgrind`, started by this user, would be shown"
        );
    }
    let mut out = io::stdout().lock();
    let mut failed = false;
    for run in chosen {
        if let Err(error) = one(&mut out, options, run) {
            if exit::is_broken_pipe(&error) {
                return Err(error);
            }
            // The others were named too.
            failed = true;
            let _ = writeln!(io::stderr(), "callgrind_control: error: {error:#}");
        }
    }
    Ok(if failed { exit::FAILURE } else { exit::SUCCESS })
}

/// The runs that are meant.
fn choose(base: &Path, options: &Options) -> anyhow::Result<Vec<Chosen>> {
    let open = |pid| -> anyhow::Result<Chosen> {
        let mut client = Client::connect(base, pid)?;
        let status = client.status()?;
        Ok(Chosen { pid, client, status })
    };
    // A run talks to one client at a time, so one that is being talked to is not called again.
    let mut chosen: Vec<Chosen> = Vec::new();
    if options.runs.is_empty() {
        for pid in runs(base).with_context(|| base.display().to_string())? {
            // One that ends just now is not there.
            chosen.extend(open(pid).ok());
        }
        return Ok(chosen);
    }
    for name in &options.runs {
        if let Ok(pid) = name.parse::<u32>() {
            if chosen.iter().all(|run| run.pid != pid) {
                chosen.push(open(pid)?);
            }
            continue;
        }
        let mut matches: Vec<u32> =
            chosen.iter().filter(|run| show::program(&run.status) == name).map(|run| run.pid).collect();
        for pid in runs(base).with_context(|| base.display().to_string())? {
            if chosen.iter().all(|run| run.pid != pid)
                && let Some(run) = open(pid).ok().filter(|run| show::program(&run.status) == name)
            {
                matches.push(pid);
                chosen.push(run);
            }
        }
        if matches.is_empty() {
            bail!("no run of a program called `{name}` can be controlled: {}", known(base)?);
        }
        if matches.len() > 1 && options.acts() {
            let pids: Vec<String> = matches.iter().map(u32::to_string).collect();
            bail!("`{name}` could mean several runs; name their processes: {}", pids.join(" "));
        }
    }
    Ok(chosen)
}

/// The runs there are, for a message.
fn known(base: &Path) -> anyhow::Result<String> {
    let pids = runs(base).with_context(|| base.display().to_string())?;
    let pids: Vec<String> = pids.iter().map(u32::to_string).collect();
    Ok(if pids.is_empty() { "there are none".to_owned() } else { format!("there are {}", pids.join(" ")) })
}

fn one(out: &mut dyn Write, options: &Options, run: Chosen) -> anyhow::Result<()> {
    let Chosen { pid, mut client, status } = run;
    show::heading(out, pid, &status, options.stat)?;
    if options.stat {
        show::figures(out, &status)?;
    }
    let wanted = options.events.as_deref().map(|list| show::events(&status, list)).transpose()?;
    if options.back {
        show::stacks(out, &status, wanted.as_deref())?;
    } else if let Some(wanted) = &wanted {
        show::totals(out, &status, wanted)?;
    }
    // The order matters if several are given: what was counted is saved before it is dropped, and counting goes on, or
    // ends, with what comes after.
    let mut requests = Vec::new();
    requests.extend(options.dump.clone().map(Request::Dump));
    requests.extend(options.zero.then_some(Request::Zero));
    requests.extend(options.instrumentation.map(|to| Request::Instrumentation(to == OnOff::On)));
    requests.extend(options.detach.then_some(Request::Detach));
    requests.extend(options.kill.then_some(Request::Kill));
    for request in requests {
        if options.verbose {
            writeln!(out, "  {}", request.line()).context("standard output")?;
        }
        for line in client.ask(&request)? {
            writeln!(out, "  {line}").context("standard output")?;
        }
        writeln!(out, "  {}: OK", request.line().split(' ').next().unwrap_or_default()).context("standard output")?;
    }
    out.flush().context("standard output")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manual_is_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Options::command(), include_str!("narrative.roff"));
    }
}
