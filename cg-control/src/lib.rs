//! `callgrind_control` and `cg_control`, one program under two names: they look at running profiles and tell their runs what to do.
//! The first is Valgrind's by name and options, and shows runs of callgrind alone unless others are named; the second shows those of
//! both tools, and [`top`].
//!
//! A run is told something only if it was named on the command line; without names runs are looked at, never touched.
#![forbid(unsafe_code)]

mod json;
mod options;
mod show;
mod top;

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, bail};
use callgrind_control_protocol::{Client, Request, Status, Tool, folder, of_socket, runs_by_tool};
use cg_cli::{exit, options as cli};
use clap::CommandFactory;
use clap::error::ErrorKind;

use options::{Callgrind, Cg, OnOff, Options};

/// `callgrind_control`.
#[must_use]
pub fn callgrind_control() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    match cli::parse::<Callgrind>(Callgrind::command(), args) {
        Ok(Callgrind { options }) => exit::finish("callgrind_control", run(&options, Program::Callgrind)),
        Err(code) => code,
    }
}

/// `cg_control`.
#[must_use]
pub fn cg_control() -> ExitCode {
    let args: Vec<OsString> = std::env::args_os().collect();
    let Cg { options, top } = match cli::parse(Cg::command(), args) {
        Ok(options) => options,
        Err(code) => return code,
    };
    let result = match options.runs.split_first() {
        Some((first, rest)) if first == "top" => {
            if options.acts() || options.stat || options.back || options.events.is_some() {
                return wrong_usage("top looks at a run; what is to be done to it goes without top");
            }
            top::run(rest, &top, options.json)
        }
        _ if top.is_given() => {
            let usage =
                "--once, --count, --interval, --sort, --filter and --rows are for top, as in `cg_control top --once`";
            return wrong_usage(usage);
        }
        _ => run(&options, Program::Cg),
    };
    exit::finish("cg_control", result)
}

/// Tells what is wrong with a command line of `cg_control`.
fn wrong_usage(message: &str) -> ExitCode {
    // There is nobody else to tell.
    let _ = Cg::command().error(ErrorKind::ArgumentConflict, message).print();
    ExitCode::from(exit::USAGE)
}

/// By which name it was called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Callgrind,
    Cg,
}

impl Program {
    fn name(self) -> &'static str {
        match self {
            Self::Callgrind => "callgrind_control",
            Self::Cg => "cg_control",
        }
    }

    /// Whether it shows runs of a tool that were not named.
    fn shows(self, tool: Tool) -> bool {
        self == Self::Cg || tool == Tool::Callgrind
    }

    /// The runs that it shows.
    fn runs(self, base: &Path) -> anyhow::Result<Vec<u32>> {
        let runs = runs_by_tool(base).with_context(|| base.display().to_string())?;
        Ok(runs.into_iter().filter(|(_, tool)| self.shows(*tool)).map(|(pid, _)| pid).collect())
    }

    /// Those, for a message.
    fn known(self, base: &Path) -> anyhow::Result<String> {
        let pids: Vec<String> = self.runs(base)?.iter().map(u32::to_string).collect();
        Ok(if pids.is_empty() { "there are none".to_owned() } else { format!("there are {}", pids.join(" ")) })
    }

    fn none(self) -> &'static str {
        match self {
            Self::Callgrind => "`grind --tool=callgrind`",
            Self::Cg => "`grind`",
        }
    }
}

/// A run that was chosen.
struct Chosen {
    base: PathBuf,
    pid: u32,
    client: Client,
    status: Status,
}

fn run(options: &Options, program: Program) -> anyhow::Result<u8> {
    let base = folder();
    if options.acts() && options.runs.is_empty() {
        bail!("name the runs that are meant: {}", program.known(&base)?);
    }
    let chosen = choose(&base, &options.runs, options.acts(), program)?;
    if chosen.is_empty() && !options.json {
        bail!("there is no run to look at: what runs under {}, started by this user, would be shown", program.none());
    }
    let mut out = io::stdout().lock();
    let mut failed = false;
    let mut told = Vec::new();
    for run in chosen {
        let pid = run.pid;
        let mut report = json::Run::new(pid, &run.status);
        let done = match options.json {
            true => serve(options, run, |_, _| Ok(()), |request, lines| report.served(request, lines)),
            false => one(&mut out, options, run),
        };
        if let Err(error) = done {
            if exit::is_broken_pipe(&error) {
                return Err(error);
            }
            // The others were named too.
            failed = true;
            report.failed(&format!("{error:#}"));
            let _ = writeln!(io::stderr(), "{}: error: {error:#}", program.name());
        }
        told.push(report);
    }
    if options.json {
        out.write_all(json::runs(&told).as_bytes()).and_then(|()| out.flush()).context("standard output")?;
    }
    Ok(if failed { exit::FAILURE } else { exit::SUCCESS })
}

/// The runs that are meant. One that is to be told something (`acts`) must be the only one of its name.
fn choose(base: &Path, names: &[String], acts: bool, program: Program) -> anyhow::Result<Vec<Chosen>> {
    let open = |base: &Path, pid| -> anyhow::Result<Chosen> {
        let mut client = Client::connect(base, pid)?;
        let status = client.status()?;
        Ok(Chosen { base: base.to_owned(), pid, client, status })
    };
    // A run talks to one client at a time, so one that is being talked to is not called again.
    let mut chosen: Vec<Chosen> = Vec::new();
    if names.is_empty() {
        for pid in program.runs(base)? {
            // One that ends just now is not there.
            chosen.extend(open(base, pid).ok());
        }
        return Ok(chosen);
    }
    for name in names {
        let socket = if name.contains('/') { of_socket(Path::new(name)) } else { None };
        let number = name.parse::<u32>().ok().map(|pid| (base.to_owned(), pid));
        if let Some((base, pid)) = socket.or(number) {
            if chosen.iter().all(|run| (run.pid, &run.base) != (pid, &base)) {
                chosen.push(open(&base, pid)?);
            }
            continue;
        }
        if name.contains('/') {
            bail!("`{name}` is no socket of a run: those are called grind-TOOL-PID/control");
        }
        let mut matches: Vec<u32> =
            chosen.iter().filter(|run| show::program(&run.status) == name).map(|run| run.pid).collect();
        for (pid, _) in runs_by_tool(base).with_context(|| base.display().to_string())? {
            if chosen.iter().all(|run| run.pid != pid)
                && let Some(run) = open(base, pid).ok().filter(|run| show::program(&run.status) == name)
            {
                matches.push(pid);
                chosen.push(run);
            }
        }
        if matches.is_empty() {
            bail!("no run of a program called `{name}` can be controlled: {}", program.known(base)?);
        }
        if matches.len() > 1 && acts {
            let pids: Vec<String> = matches.iter().map(u32::to_string).collect();
            bail!("`{name}` could mean several runs; name their processes: {}", pids.join(" "));
        }
    }
    Ok(chosen)
}

fn one(out: &mut dyn Write, options: &Options, run: Chosen) -> anyhow::Result<()> {
    let (pid, status) = (run.pid, &run.status);
    show::heading(out, pid, status, options.stat)?;
    if options.stat {
        show::figures(out, status)?;
    }
    let wanted = options.events.as_deref().map(|list| show::events(status, list)).transpose()?;
    if options.back {
        if status.tool == Tool::Cachegrind {
            bail!("PID {pid}: cachegrind follows no calls; grind --tool=callgrind does");
        }
        show::stacks(out, status, wanted.as_deref())?;
    } else if let Some(wanted) = &wanted {
        show::totals(out, status, wanted)?;
    }
    // Both write there, one after the other.
    let out = std::cell::RefCell::new(out);
    serve(
        options,
        run,
        |request, verbose| match verbose {
            true => writeln!(out.borrow_mut(), "  {}", request.line()).context("standard output"),
            false => Ok(()),
        },
        |request, lines| {
            let mut out = out.borrow_mut();
            for line in lines {
                writeln!(out, "  {line}").context("standard output")?;
            }
            let word = request.line();
            writeln!(out, "  {}: OK", word.split(' ').next().unwrap_or_default()).context("standard output")
        },
    )?;
    let mut out = out.borrow_mut();
    out.flush().context("standard output")
}

/// Has a run do what is wanted. Each request is told before, and with the answer behind.
fn serve(
    options: &Options,
    run: Chosen,
    before: impl Fn(&Request, bool) -> anyhow::Result<()>,
    mut behind: impl FnMut(&Request, &[String]) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut client = run.client;
    // The order matters if several are given: what was counted is saved before it is dropped, and counting goes on, or
    // ends, with what comes after.
    let mut requests = Vec::new();
    requests.extend(options.dump.clone().map(Request::Dump));
    requests.extend(options.zero.then_some(Request::Zero));
    requests.extend(options.instrumentation.map(|to| Request::Instrumentation(to == OnOff::On)));
    requests.extend(options.collection.map(|to| Request::Collection(to == OnOff::On)));
    requests.extend(options.detach.then_some(Request::Detach));
    requests.extend(options.kill.then_some(Request::Kill));
    for request in requests {
        before(&request, options.verbose)?;
        let lines = client.ask(&request)?;
        behind(&request, &lines)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_sound_and_their_manuals_are_up_to_date() {
        cg_cli::manual::assert_up_to_date(&Callgrind::command(), include_str!("callgrind_control.roff"));
        cg_cli::manual::assert_up_to_date(&Cg::command(), include_str!("cg_control.roff"));
    }
}
