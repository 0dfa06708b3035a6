//! The cachegrind tool's share: what is written when a process ends, and the parts before, if somebody asks for them.
//!
//! Invariants: the parts of a process, and what was set to zero, add up to what it has executed, line by line; a process of which no
//! part was written has the profile that it would have if nobody could ask.

use std::fmt::Display;
use std::path::{Path, PathBuf};
use std::time::Duration;

use callgrind_control_protocol::{Answer, Status, Thread, Tool};
use cg_cli::saved::Saved;
use cg_format::cachegrind::Profile;
use cg_format::count::TooLarge;
use grind_analysis::callgrind::parts::Trigger;
use grind_analysis::counts::{CountTable, Events};
use grind_analysis::dump::{self, Made};
use grind_analysis::simulator::Found;
use grind_names::symbolizer;
use grind_session::broken;
use grind_session::{ContextCounts, Counts, ProcessReport, Session as _};
use grind_types::{Pid, Query, fault};

use super::{Process, Runner};
use crate::advice;
use crate::contexts::{self, Named};
use crate::log::Voice;
use crate::simulation::{self, Simulation};

/// The profiles of a process: the sum first, then one for each context, whose names come with them.
struct Profiles {
    all: Result<Vec<Profile>, TooLarge>,
    named: Vec<Named>,
}

impl Runner<'_> {
    /// The events of a process's profile.
    fn events_of(&self, report: &ProcessReport<'_>) -> Events {
        let mut events = self.simulation.events();
        // All processes of a file have the same events.
        events.contexts = events.caches.any() && !report.contexts.is_empty() && self.tree.is_none();
        events
    }

    /// What a process has executed so far, with names.
    fn profiles_of_lines(&mut self, report: &ProcessReport<'_>, found: &Found) -> Profiles {
        // Taken out, so that the log can be written to meanwhile.
        let cycles = self.cycles.take();
        let events = self.events_of(report);
        let table = |instructions, context: Option<u64>| {
            let mut counts = CountTable::new(events, instructions).with_cycles(cycles.as_ref());
            for found in found.findings.iter().filter(|f| context.is_none_or(|c| f.context == c)) {
                counts.add(found.module, found.addr, &found.counts);
            }
            counts
        };
        // Contexts by number, names last, in the order in which they were made known.
        let mut contexts: Vec<&ContextCounts> = report.contexts.iter().collect();
        contexts.sort_by_key(|c| c.context);
        let mut tables = vec![table(report.counts, None)];
        tables.extend(contexts.iter().map(|c| table(&c.counts, Some(c.context))));
        let named: Vec<Named> = contexts.iter().map(|c| Named::new(c.context, c.name.as_deref())).collect();
        let mut desc = self.simulation.descriptions();
        desc.extend(found.included.map(Simulation::included));
        let all = broken::caught(|| {
            fault::point("names");
            let made = Made::of(&self.made, report.pid);
            dump::profiles_with(report, &tables, &desc, &mut *self.symbolizer, &made)
        });
        let mut all = all.unwrap_or_else(|_| {
            // It was the names that failed, most likely.
            self.broke("for an unknown reason", true);
            dump::profiles(report, &tables, &desc, &mut symbolizer::Nothing)
        });
        drop(tables);
        self.cycles = cycles;
        for profile in all.iter_mut().flatten() {
            if let Some(process) = self.processes.get(&report.pid) {
                profile.header.cmd = dump::command(&process.args);
            }
            profile.header.desc.extend(self.broken.as_ref().map(|what| broken::description(what)));
        }
        Profiles { all, named }
    }

    /// The name of the profile of a process. It is made up once.
    fn lines_file(&mut self, pid: Pid) -> PathBuf {
        if let Some(tree) = &self.tree {
            return tree.path().to_owned();
        }
        if let Some(path) = self.processes.get(&pid).and_then(|p| p.path.clone()) {
            return path;
        }
        let path = self.options.out_file.expand(pid.0, &mut self.sequence);
        if let Some(process) = self.processes.get_mut(&pid) {
            process.path = Some(path.clone());
        }
        path
    }

    /// The process has ended: its profile, or the last part of it, and a summary.
    pub(super) fn end_lines(&mut self, report: &ProcessReport<'_>) {
        let pid = report.pid;
        let mut found = self.findings.take(pid);
        let hints = self.hints(report, &mut found);
        let Profiles { all, named } = self.profiles_of_lines(report, &found);
        let asked = self.options.objects || found.distances.is_some() || found.sharing.is_some();
        let mut objects = asked.then(|| self.objects(report, &found));
        if let (Some(objects), Ok(profiles)) = (&mut objects, &all) {
            Self::tell_hits(objects, &profiles[0]);
        }
        if self.options.verbosity > 1 {
            for warning in self.symbolizer.warnings() {
                self.log.say(pid, Voice::Detail, &warning);
            }
        }
        let parts = self.processes.get(&pid).map(|p| p.parts.clone()).unwrap_or_default();
        let mut no_profile = |error: &dyn Display| {
            let text = format!("error: no profile: {error}\n       ... so detailed results will be missing.");
            self.user(pid, &text);
        };
        let mut profiles = match all {
            Ok(profiles) => profiles,
            Err(error) => return no_profile(&error),
        };
        let mut last = match parts.rest(&profiles[0]) {
            Ok(last) => last,
            Err(error) => return no_profile(&error),
        };
        if parts.any() {
            last.to_mut().header.desc.extend(part_description(parts.number(), &Trigger::End));
        }
        let path = self.lines_file(pid);
        let file = if self.tree.is_some() {
            self.end_in_tree(report, Some(&last));
            Some(path.clone())
        } else {
            self.save(pid, &last, &path)
        };
        let total = parts.sum(last.total());
        // Something that is no file, as /dev/null or a pipe, has no place beside it.
        if self.options.separate_contexts && self.tree.is_none() && path.metadata().is_ok_and(|m| m.is_file()) {
            for ((profile, name), path) in profiles[1..].iter_mut().zip(&named).zip(contexts::paths(&path, &named)) {
                profile.header.desc.push(name.description());
                let _ = self.save(pid, profile, &path);
            }
        }
        if self.options.verbosity > 0 {
            let summary = simulation::summary(self.simulation.events(), &total);
            self.user(pid, &summary);
            if let Some(counts) = found.included.filter(|counts| counts.held > 0) {
                let text = String::from_utf8_lossy(&Simulation::included(counts)).into_owned();
                self.user(pid, &format!("\n{text}"));
            }
            if let Some(cycles) = self.cycles.take() {
                self.user(pid, "");
                self.user(pid, &cycles.summary(cycles.unknown(report.counts)));
                self.cycles = Some(cycles);
            }
            self.tell_contexts(pid, &named, &profiles, &found);
            let (start, begins_on) = ("CACHEGRIND_START_INSTRUMENTATION was not used", self.options.instr_at_start);
            let profile = &profiles[0];
            let instructions = profile.total().first().copied().unwrap_or(0);
            self.advise(pid, || {
                let empty = advice::of_nothing(instructions, begins_on, start);
                [empty, advice::of_names(profile), advice::of_building(&report.exe)]
            });
        }
        self.tell_what_next(pid, file.as_slice());
        self.tell_allocators(pid);
        if let Some(objects) = objects {
            self.save_objects(pid, &objects);
            if let Some(hints) = hints {
                self.save_hints(pid, &hints);
            }
        }
        if self.tree.is_none() {
            self.take_name(pid, path);
        }
    }

    /// Something is asked about a process, which stands still.
    pub(super) fn asked_of_lines(&mut self, report: &ProcessReport<'_>, ask: &Query) -> Answer {
        let found = self.findings.take(report.pid);
        match ask {
            Query::Look => Answer::from(&self.status_of_lines(report, &found)),
            Query::Dump(words) => self.dump_lines(report, &found, words.clone().unwrap_or_default()),
            Query::Zero => self.zero_lines(report, &found),
            Query::ToggleCollect | Query::Collect(_) | Query::Peek | Query::SkipObject(_) | Query::Describe(_) => {
                Answer::Done(Vec::new())
            }
        }
    }

    /// Why a process has no parts, if so.
    fn no_parts(&mut self, report: &ProcessReport<'_>) -> Option<String> {
        if self.tree.is_some() {
            return Some("all processes have one file (--tree), which has no parts".into());
        }
        if !report.contexts.is_empty() {
            return Some("the program has contexts of statistics, whose profiles are of the whole run".into());
        }
        let path = self.lines_file(report.pid);
        let special = path.metadata().is_ok_and(|m| !m.is_file());
        special.then(|| format!("the profile goes to '{}', which is no file and has no parts", path.display()))
    }

    /// The whole profile of a process that goes on.
    fn whole(&mut self, report: &ProcessReport<'_>, found: &Found) -> Result<Profile, Answer> {
        if let Some(cause) = self.no_parts(report) {
            return Err(Answer::Refused(cause));
        }
        let profiles = self.profiles_of_lines(report, found).all;
        profiles.map(|mut all| all.swap_remove(0)).map_err(|error| Answer::Refused(error.to_string()))
    }

    fn dump_lines(&mut self, report: &ProcessReport<'_>, found: &Found, words: Vec<u8>) -> Answer {
        let pid = report.pid;
        let whole = match self.whole(report, found) {
            Ok(whole) => whole,
            Err(answer) => return answer,
        };
        let Some(process) = self.processes.get(&pid) else { return Answer::Done(Vec::new()) };
        let mut part = match process.parts.rest(&whole) {
            Ok(part) => part.into_owned(),
            Err(error) => return Answer::Refused(error.to_string()),
        };
        let number = process.parts.number();
        let trigger = if words.is_empty() { Trigger::Request(None) } else { Trigger::Command(words) };
        part.header.desc.extend(part_description(number, &trigger));
        let mut path = self.lines_file(pid).into_os_string();
        path.push(format!(".{number}"));
        let path = PathBuf::from(path);
        let saved = dump::save(&part, &path, &self.spare);
        // What is nowhere is told by the next part.
        if let (false, Some(process)) = (matches!(saved, Saved::Nowhere(_)), self.processes.get_mut(&pid)) {
            process.parts.taken(whole, &part);
        }
        let answer = match &saved {
            Saved::Nowhere(reason) => Answer::Refused(format!("{}: {reason}", path.display())),
            Saved::AsAsked => done(&path),
            Saved::Elsewhere(_, instead) => done(instead),
        };
        let _ = self.tell_saved(pid, &path, saved);
        answer
    }

    fn zero_lines(&mut self, report: &ProcessReport<'_>, found: &Found) -> Answer {
        match self.whole(report, found) {
            Err(answer) => answer,
            Ok(whole) => {
                if let Some(process) = self.processes.get_mut(&report.pid) {
                    process.parts.zeroed(whole);
                }
                Answer::Done(Vec::new())
            }
        }
    }

    fn status_of_lines(&self, report: &ProcessReport<'_>, found: &Found) -> Status {
        let none = Counts::default();
        let process = self.processes.get(&report.pid);
        // Contexts are not told apart here.
        let events = Events { contexts: false, ..self.events_of(report) };
        let mut table = CountTable::new(events, report.counts);
        found.findings.iter().for_each(|f| table.add(f.module, f.addr, &f.counts));
        let totals = process.map_or_else(|| CountTable::new(events, &none).total(), |p| rest(p, &table.total()));
        let words = process.map(|p| p.args.iter().map(|a| a.to_string_lossy()).collect::<Vec<_>>());
        let thread = |t: &grind_session::ThreadTally| Thread {
            id: u64::from(t.tid.0.unsigned_abs()),
            total: vec![t.instructions],
            frames: Vec::new(),
        };
        let ran = process.map_or(Duration::ZERO, |p| p.began.elapsed());
        Status {
            command: words.unwrap_or_default().join(" "),
            tool: Tool::Cachegrind,
            instrumentation: report.counting,
            events: events.names().into_iter().map(str::to_owned).collect(),
            part: process.map_or(1, |p| p.parts.number()),
            totals: totals.into_iter().map(|n| u64::try_from(n).unwrap_or(0)).collect(),
            figures: vec![("milliseconds".to_owned(), u64::try_from(ran.as_millis()).unwrap_or(u64::MAX))],
            threads: report.threads.iter().map(thread).collect(),
        }
    }
}

/// What of these totals no part has told.
fn rest(process: &Process, totals: &[i128]) -> Vec<i128> {
    process.parts.rest_of_totals(totals)
}

fn done(path: &Path) -> Answer {
    Answer::Done(vec![path.display().to_string()])
}

/// What stands in a part, and not in a profile of the whole.
fn part_description(number: u64, trigger: &Trigger) -> [Vec<u8>; 2] {
    [format!("Part: {number}").into_bytes(), trigger.description()]
}
