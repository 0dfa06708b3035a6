//! What a process leaves: its profile, call graph and data objects are saved, and the log says where they are and what to do
//! with them. Nothing that fails here stops the program, and nothing that was gathered is dropped without a word.

use std::path::{Path, PathBuf};

use cg_cli::saved::{Saved, save_text};
use cg_cycles::Unknown;
use cg_format::cachegrind::Profile;
use cg_format::callgrind::Writer;
use cg_format::count::TooLarge;
use cg_format::mem::Mem;
use grind_analysis::callgrind::dumps::Written;
use grind_analysis::callgrind::objects_part::WrittenObjects;
use grind_analysis::callgrind::summary;
use grind_analysis::dump;
use grind_analysis::simulator::Found;
use grind_names::mapped;
use grind_objects::hints::{self, Hint};
use grind_session::broken;
use grind_session::{Notice, ProcessReport, Session as _};
use grind_types::Pid;

use super::Runner;
use crate::advice;
use crate::allocators::Watchers;
use crate::contexts::{self, Named};
use crate::invocation::Invocation;
use crate::log::{Voice, command_line};
use crate::options::Tool;
use crate::simulation::Simulation;
use crate::tree::Ended;

impl Runner<'_> {
    /// The process has ended: the last files, and a summary.
    pub(super) fn end_calls(&mut self, report: &ProcessReport<'_>) {
        let pid = report.pid;
        let objects = self.parts_of_objects(report);
        let Some(calls) = &mut self.calls else { return };
        let tree = calls.tree(pid);
        let (written, total) = calls.ended(pid);
        let last = written.last().map(|file| file.path.clone());
        let files = self.tell_written(pid, written);
        if self.tree.is_some() {
            self.end_in_tree(report, None);
        } else if let Some(path) = last {
            self.take_name(pid, path);
        }
        if let Some(tree) = tree.filter(|_| self.options.verbosity > 1) {
            self.log.say(pid, Voice::Detail, &tree);
        }
        if let Some((total, unknown)) = total.filter(|_| self.options.verbosity > 0) {
            let settings = &self.options.callgrind;
            let events = settings.events(self.simulation.events().caches, self.simulation.branches);
            self.user(pid, &summary::summary(events, &total));
            if let Some(cycles) = &self.cycles {
                let of = total.first().and_then(|all| u64::try_from(*all).ok()).unwrap_or(0);
                let estimated = cycles.summary(Unknown { executions: unknown, of });
                self.user(pid, "");
                self.user(pid, &estimated);
            }
            let start =
                "instrumentation was never started, or nothing was collected (--toggle-collect, --collect-atstart)";
            let instructions = total.first().copied().unwrap_or(0);
            self.advise(pid, || [advice::of_nothing(instructions, false, start), advice::of_building(&report.exe)]);
        }
        if self.processes.len() == 1 {
            self.tell_unmatched(pid);
            self.tell_no_frames(pid);
        }
        self.tell_what_next(pid, &files);
        self.tell_allocators(pid);
        objects.iter().for_each(|part| self.save_objects(pid, part));
    }

    /// Returns where the files are.
    pub(super) fn tell_written(&mut self, pid: Pid, written: Vec<Written>) -> Vec<PathBuf> {
        if let Some(tree) = &mut self.tree {
            written.iter().for_each(|part| tree.part(pid, &part.text, &part.total));
        }
        written.into_iter().filter_map(|file| self.tell_saved(pid, &file.path, file.saved)).collect()
    }

    /// Puts a process that has ended into the file of all: with `profile`, or with the parts that were told before.
    pub(super) fn end_in_tree(&mut self, report: &ProcessReport<'_>, profile: Option<&Profile>) {
        let Some(mut tree) = self.tree.take() else { return };
        let args = self.processes.get(&report.pid).map_or(&report.args, |p| &p.args);
        let ended = Ended { pid: report.pid, exit: report.exit, executable: &report.exe, args };
        let saved = match profile {
            Some(profile) => tree.ended(ended, profile, self.broken.as_deref(), &self.spare),
            None => tree.ended_calls(ended, &self.spare),
        };
        let _ = self.tell_saved(report.pid, tree.path(), saved);
        self.tree = Some(tree);
    }

    /// Returns where the file is, if anywhere.
    pub(super) fn tell_saved(&mut self, pid: Pid, path: &Path, saved: Saved) -> Option<PathBuf> {
        let head = |reason: &str| format!("error: can't open output data file '{}': {reason}", path.display());
        match saved {
            Saved::AsAsked => Some(path.to_owned()),
            Saved::Elsewhere(reason, instead) => {
                let text = format!("{}\n       ... so the profile is in '{}'.", head(&reason), instead.display());
                self.user(pid, &text);
                Some(instead)
            }
            Saved::Nowhere(reason) => {
                let text = format!("{}\n       ... so detailed results will be missing.", head(&reason));
                self.user(pid, &text);
                None
            }
        }
    }

    /// Ends the log of a process with its profile and what to do with it. Not in Valgrind's place: scripts compare its logs.
    pub(super) fn tell_what_next(&mut self, pid: Pid, files: &[PathBuf]) {
        // All processes have one file.
        if self.tree.is_some() && self.processes.len() > 1 {
            return;
        }
        let Some((first, others)) = files.split_first() else { return };
        if self.options.verbosity < 1
            || self.invocation != Invocation::Grind
            || !first.metadata().is_ok_and(|m| m.is_file())
        {
            return;
        }
        let (reader, name) = (self.options.tool.reader(), command_line(&[first.clone().into_os_string()]));
        let more = if others.is_empty() { String::new() } else { format!(" and {} more", others.len()) };
        self.user(pid, &format!("\nProfile: {name}{more}\nTo read it: {reader} {name}"));
    }

    /// The data objects and distances of a process that has ended.
    pub(super) fn objects(&mut self, report: &ProcessReport<'_>, found: &Found) -> Mem {
        let mut desc = self.simulation.descriptions();
        desc.extend(found.included.map(Simulation::included));
        desc.extend(self.broken.as_ref().map(|what| broken::description(what)));
        let command = self.processes.get(&report.pid).map(|p| dump::command(&p.args)).unwrap_or_default();
        let objects = self.options.objects.then_some(&found.objects);
        let (distances, sharing) = (found.distances.as_ref(), found.sharing.as_ref());
        grind_objects::report::mem(report, objects, distances, sharing, &mut *self.symbolizer, &command, &desc)
    }

    /// Bounds of distances are of what missed D1: tells how many accesses of a process hit it.
    pub(super) fn tell_hits(objects: &mut Mem, profile: &Profile) {
        let Some(head) = objects.head.reuse.as_mut().filter(|head| head.hits.is_some()) else { return };
        let total = |name: &str| {
            let at = profile.header.events.iter().position(|event| event == name);
            at.and_then(|at| profile.total().get(at).copied()).unwrap_or(0)
        };
        let accesses = total("Dr").saturating_add(total("Dw"));
        let hits = accesses.saturating_sub(total("D1mr")).saturating_sub(total("D1mw"));
        head.hits = Some(u64::try_from(hits).unwrap_or(0));
    }

    /// The data objects of the parts of a process's profile that have been written since the last time: each has its own.
    pub(super) fn parts_of_objects(&mut self, report: &ProcessReport<'_>) -> Vec<Mem> {
        let parts = self.calls.as_ref().map(|calls| calls.objects(report.pid)).unwrap_or_default();
        let mem = |part: WrittenObjects| {
            let mut mem = self.objects(report, &Found { objects: part.found, ..Found::default() });
            if part.number > 1 || !part.last {
                mem.head.part = Some(part.number);
                mem.head.last = part.last;
                mem.head.desc.push(String::from_utf8_lossy(&part.why).into_owned());
            }
            mem
        };
        parts.into_iter().map(mem).collect()
    }

    /// Where the data objects of a process go, of a part: as parts of the profile are named.
    fn objects_file(&mut self, pid: Pid, objects: &Mem) -> PathBuf {
        let known = self.processes.get(&pid).and_then(|p| p.mem.clone());
        let path = known.unwrap_or_else(|| self.options.mem_out_file().expand(pid.0, &mut self.sequence));
        if let Some(process) = self.processes.get_mut(&pid) {
            process.mem = Some(path.clone());
        }
        match objects.head.part {
            Some(number) if !objects.head.last => {
                let mut name = path.into_os_string();
                name.push(format!(".{number}"));
                name.into()
            }
            _ => path,
        }
    }

    /// Writes the data objects, beside them the same as a profile, and tells where they are.
    pub(super) fn save_objects(&mut self, pid: Pid, objects: &Mem) {
        let path = self.objects_file(pid, objects);
        let saved = save_text(&path, "mem.out", &self.spare, |out| objects.write(out));
        let saved = self.tell_saved(pid, &path, saved);
        // Something that is no file, as /dev/null or a pipe, has no place beside it.
        let Some(path) = saved.filter(|path| path.metadata().is_ok_and(|m| m.is_file())) else { return };
        let mut beside = path.clone().into_os_string();
        beside.push(".data");
        // Without objects it would be empty.
        if self.options.objects
            && let Err(error) = self.save_profile_of_objects(pid, objects, Path::new(&beside))
        {
            self.user(pid, &format!("error: no profile of data objects: {error}"));
        }
        if self.options.verbosity > 1 && objects.head.unknown_frees > 0 {
            let text = format!("{} calls took back blocks that were not handed out.", objects.head.unknown_frees);
            self.log.say(pid, Voice::Detail, &text);
        }
        let goes_on = objects.head.part.is_some() && !objects.head.last;
        if self.options.verbosity > 0 && self.invocation == Invocation::Grind && !goes_on {
            let name = command_line(&[path.into_os_string()]);
            let what = match objects.head.reuse {
                _ if self.options.objects => "Data objects",
                Some(_) => "Stack distances",
                None => "Shared lines",
            };
            self.user(pid, &format!("\n{what}: {name}\nTo read them: mem_annotate {name}"));
        }
    }

    /// The hints for compilers, if they are asked for. What they are of says so from then on.
    pub(super) fn hints(&self, report: &ProcessReport<'_>, found: &mut Found) -> Option<Vec<Hint>> {
        self.options.prefetch_hints.as_ref()?;
        let prefetch = self.options.levels.prefetch;
        let program = report.modules.iter().find(|m| m.path.as_ref() == Some(&report.exe));
        let names = self.options.names();
        let object = program.and_then(|m| Some(mapped::object(m.path.as_ref()?, m.file.as_ref()?, &names)));
        let address = |offset| object.as_ref().and_then(|object| object.svma_of_offset(offset)).map(|at| at.0);
        Some(hints::hints(report, &mut found.objects, prefetch, address))
    }

    /// Writes them.
    pub(super) fn save_hints(&mut self, pid: Pid, hints: &[Hint]) {
        let Some(template) = &self.options.prefetch_hints else { return };
        let path = template.expand(pid.0, &mut self.sequence);
        let saved = save_text(&path, "hints", &self.spare, |out| hints::write(hints, out));
        let _ = self.tell_saved(pid, &path, saved);
    }

    /// Writes the data objects as the run's tool has profiles.
    fn save_profile_of_objects(&mut self, pid: Pid, objects: &Mem, path: &Path) -> Result<(), TooLarge> {
        if self.options.tool == Tool::Cachegrind {
            let _ = self.save(pid, &objects.profile()?, path);
            return Ok(());
        }
        let mut profile = objects.calls()?;
        profile.header.creator = self.invocation.creator().into_bytes();
        let options = self.options.callgrind.write_options();
        let saved = save_text(path, "callgrind.out", &self.spare, |out| Writer::new(options).profile(out, &profile));
        let _ = self.tell_saved(pid, path, saved);
        Ok(())
    }

    /// What is wrong with the allocators that were looked for, if they were.
    pub(super) fn tell_allocators(&mut self, pid: Pid) {
        if self.options.verbosity > 0 && self.watchers.as_mut().is_some_and(Watchers::none) {
            let text = "warning: no allocator was found by its name, so blocks of the heap are not told apart\n\
                        (is the program stripped, and linked statically?)";
            self.user(pid, text);
        }
        if self.options.verbosity > 0 {
            for name in self.watchers.as_mut().map(Watchers::unmet).unwrap_or_default() {
                let name = name.to_string_lossy().into_owned();
                let text =
                    format!("--alloc-fn={name}: no function of what was mapped has this name (* stands for any text)");
                self.notice(pid, Notice::Warning(text));
            }
        }
    }

    /// What was asked for by the names of functions none of which has run.
    fn tell_unmatched(&mut self, pid: Pid) {
        if self.options.verbosity < 1 || self.options.tool != Tool::Callgrind {
            return;
        }
        for (option, pattern) in self.options.callgrind.unmatched() {
            let text = format!(
                "{option}={}: no function that has run has this name (names are those of the profile, with the types of \
                 arguments where it has them; * stands for any text)",
                pattern.to_string_lossy()
            );
            self.notice(pid, Notice::Warning(text));
        }
    }

    /// Warns who is about to read the first process's profile. Not in Valgrind's place: scripts compare its logs.
    pub(super) fn advise<const N: usize>(&mut self, pid: Pid, advice: impl FnOnce() -> [Option<String>; N]) {
        if self.invocation == Invocation::Grind && self.first == Some(pid) && self.options.verbosity > 0 {
            advice().into_iter().flatten().for_each(|text| self.notice(pid, Notice::Warning(text)));
        }
    }

    /// Writes a profile, or says why not. Returns where it is.
    pub(super) fn save(&mut self, pid: Pid, profile: &Profile, path: &Path) -> Option<PathBuf> {
        let saved = dump::save(profile, path, &self.spare);
        self.tell_saved(pid, path, saved)
    }

    /// Ends the summary with what belongs to each context. The first of `profiles` is the sum.
    pub(super) fn tell_contexts(&mut self, pid: Pid, named: &[Named], profiles: &[Profile], found: &Found) {
        let [all, each @ ..] = profiles else { return };
        if each.is_empty() {
            return;
        }
        let totals: Vec<Vec<i128>> = each.iter().chain([all]).map(|p| p.total().to_vec()).collect();
        let mut events = self.simulation.events();
        events.contexts = events.caches.any();
        let table = contexts::totals(named, &events.names(), &totals);
        self.user(pid, "");
        self.user(pid, &table);
        if events.contexts {
            self.user(pid, "");
            let d1 = contexts::reuse("D1", named, &found.reuse_d1);
            let mut ll = contexts::reuse("LL", named, &found.reuse_ll);
            if !found.reuse_l2.is_empty() {
                ll = format!("{}\n{ll}", contexts::reuse("L2", named, &found.reuse_l2));
            }
            let text = match (d1.as_str(), ll.as_str()) {
                ("", "") => "No context found lines of another one's in the caches.".to_owned(),
                _ => format!(
                    "Lines found in the caches after a change of context, by who had brought them in:\n{d1}\n{ll}"
                ),
            };
            self.user(pid, text.trim_end());
        }
    }
}
