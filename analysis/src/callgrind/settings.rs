//! What the options of the callgrind tool ask for.
//!
//! Options that name functions are kept in the order in which they were given and applied to a function when it is first met:
//! later ones win. Patterns have `*` and `?` and must fit the whole name, as it is shown in the profile (without
//! recursion and callers).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cg_calls::{Config, Function};
use cg_format::callgrind::{EventSet, SystemTime, WriteOptions};
use cg_format::events::Caches;
use grind_names::frames::Language;
use grind_session::AtStart;
use grind_trace::ToldFirst;

use cg_cli::expand::Template;
use cg_cli::glob::Pattern;

/// What one option wants of the functions that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// `--fn-skip=`
    Skip,
    /// `--pop-on-jump=`
    PopOnJump,
    /// `--toggle-collect=`
    ToggleCollect,
    /// `--dump-before=`
    DumpBefore,
    /// `--dump-after=`
    DumpAfter,
    /// `--zero-before=`
    ZeroBefore,
    /// `--separate-callersN=`
    Callers(u16),
    /// `--separate-recsN=`
    Recursions(u16),
    /// `--fn-groupN=`
    Group(u32),
}

impl Change {
    /// The option that asks for it.
    #[must_use]
    pub fn option(self) -> String {
        match self {
            Change::Skip => "--fn-skip".into(),
            Change::PopOnJump => "--pop-on-jump".into(),
            Change::ToggleCollect => "--toggle-collect".into(),
            Change::DumpBefore => "--dump-before".into(),
            Change::DumpAfter => "--dump-after".into(),
            Change::ZeroBefore => "--zero-before".into(),
            Change::Callers(n) => format!("--separate-callers{n}"),
            Change::Recursions(n) => format!("--separate-recs{n}"),
            Change::Group(n) => format!("--fn-group{n}"),
        }
    }
}

/// What is wanted of the functions that fit a pattern.
#[derive(Clone, Debug)]
struct Rule {
    /// The pattern as it was given.
    text: OsString,
    pattern: Pattern,
    change: Change,
    /// Whether a function was met that fits; shared by all copies of the settings.
    matched: Arc<AtomicBool>,
}

/// What is told of how well cache lines are used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CacheUse {
    /// Nothing.
    #[default]
    No,
    /// What the lines cost that an instruction or a call has loaded.
    Yes,
    /// The same for instructions only.
    SelfOnly,
}

/// Whether threads have profiles of their own, and by which numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Threads {
    /// What all of them do is added up.
    #[default]
    Together,
    /// Each has its own; its number is the lowest that was free when it began, from 1.
    Apart,
    /// Each has its own; its number is the kernel's. One that has done nothing since the last part is left out.
    ByKernel,
}

/// What the profile of a forked process begins with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ForkCosts {
    /// What its parent had collected.
    Inherited,
    /// Nothing; and parts of the parent tell which processes have been created.
    Zero,
}

/// All settings of the callgrind tool beside those that it shares with cachegrind.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The profile, if it is not `callgrind.out.%p`.
    pub out_file: Option<Template>,
    /// Costs are told by source line.
    pub dump_line: bool,
    /// Costs are told by instruction.
    pub dump_instr: bool,
    /// Names are written once.
    pub compress_strings: bool,
    /// Positions are written relative to the last one.
    pub compress_pos: bool,
    /// All parts go to one file.
    pub combine_dumps: bool,
    /// A dump is made after so many blocks; 0: never.
    pub dump_every_bb: u64,
    /// Whether instrumentation is on from the start.
    pub instr_at_start: AtStart,
    /// Costs are collected from the start.
    pub collect_at_start: bool,
    /// Jumps are counted.
    pub collect_jumps: bool,
    /// Locked instructions are counted.
    pub collect_bus: bool,
    /// Count calls of allocators and their bytes.
    pub collect_alloc: bool,
    /// Cycles are estimated.
    pub estimate_cycles: bool,
    /// System calls are counted, and their time in this unit.
    pub collect_systime: Option<SystemTime>,
    /// Whether each thread has its own profile, as asked for: see [`Settings::threads`].
    pub separate_threads: Threads,
    /// What forked processes begin with, if that was asked for: see [`Settings::fork_costs`].
    pub forks: Option<ForkCosts>,
    /// Callers that tell contexts apart.
    pub separate_callers: u16,
    /// Whole chains of calls are told apart, beside contexts.
    pub whole_chains: bool,
    /// The most of them.
    pub chain_limit: usize,
    /// Levels of recursion that are told apart.
    pub separate_recs: u16,
    /// Stubs of the procedure linkage table are skipped.
    pub skip_plt: bool,
    /// Direct recursion is no level of recursion.
    pub skip_direct_rec: bool,
    /// Caches write back.
    pub simulate_wb: bool,
    /// A prefetcher is simulated.
    pub simulate_hwpref: bool,
    /// The use of cache lines is measured.
    pub cache_use: CacheUse,
    /// Accesses are told only where they miss, with how lines were used or which one goes.
    pub uses_kept: bool,
    /// Whether the processes of a run share a file, so that no cost may be in the profiles of two.
    pub tree: bool,
    /// Every block and every call is told, though emitted code could follow them by itself: it is asked for, every access is
    /// told, or the run has more totals than emitted code can keep.
    pub tell_calls: bool,
    /// For how long they are before emitted code follows them; `None`: for as long as pays ([`Settings::told_first`]).
    pub told_for: Option<Duration>,
    /// The interpreter whose frames are functions, too.
    pub frames: Option<Language>,
    /// Objects whose functions are skipped, by path.
    pub obj_skip: Vec<Vec<u8>>,
    rules: Vec<Rule>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            out_file: None,
            dump_line: true,
            dump_instr: false,
            compress_strings: true,
            compress_pos: true,
            combine_dumps: false,
            dump_every_bb: 0,
            instr_at_start: AtStart::Counting,
            collect_at_start: true,
            collect_jumps: false,
            collect_bus: false,
            collect_alloc: false,
            estimate_cycles: false,
            collect_systime: None,
            separate_threads: Threads::Together,
            forks: None,
            separate_callers: 0,
            whole_chains: false,
            chain_limit: 1_000_000,
            separate_recs: 2,
            skip_plt: true,
            skip_direct_rec: false,
            simulate_wb: false,
            simulate_hwpref: false,
            cache_use: CacheUse::No,
            uses_kept: false,
            tree: false,
            tell_calls: false,
            told_for: None,
            frames: None,
            obj_skip: Vec::new(),
            rules: Vec::new(),
        }
    }
}

impl Settings {
    /// Applies `change` to functions whose names fit `pattern`.
    pub fn add_rule(&mut self, pattern: &OsStr, change: Change) {
        if change == Change::ToggleCollect {
            self.collect_at_start = false;
        }
        self.rules.push(Rule {
            text: pattern.to_owned(),
            pattern: Pattern::new(pattern),
            change,
            matched: Arc::default(),
        });
    }

    /// The options that name functions of which none has been met, and those names.
    pub fn unmatched(&self) -> impl Iterator<Item = (String, &OsStr)> {
        let missed = self.rules.iter().filter(|rule| !rule.matched.load(Ordering::Relaxed));
        missed.map(|rule| (rule.change.option(), rule.text.as_os_str()))
    }

    /// Leaves out what cannot be had together. Returns what is to be told about that.
    pub fn settle(&mut self) -> Vec<String> {
        let mut told = Vec::new();
        if self.cache_use != CacheUse::No {
            self.dump_instr = true;
            for (on, what) in [(&mut self.simulate_hwpref, "prefetcher"), (&mut self.simulate_wb, "write-back")] {
                if std::mem::take(on) {
                    told.push(format!("warning: {what} simulation is switched off, because of --cacheuse=yes"));
                }
            }
            // What a line was of use for is known when it goes, which chain it belonged to is not.
            if std::mem::take(&mut self.whole_chains) {
                told.push("warning: no chains of calls are recorded, because of --cacheuse=yes".to_owned());
            }
        }
        told
    }

    /// Whether threads are kept apart. Where instrumentation is inherited, which only CodSpeed's fork of Valgrind knows, threads
    /// have the kernel's numbers, as there.
    #[must_use]
    pub fn threads(&self) -> Threads {
        match self.separate_threads {
            Threads::Apart if self.instr_at_start == AtStart::Inherited => Threads::ByKernel,
            asked => asked,
        }
    }

    /// What the profile of a forked process begins with; where instrumentation is inherited, with nothing, as in that fork.
    #[must_use]
    pub fn fork_costs(&self) -> ForkCosts {
        let usual = if self.instr_at_start == AtStart::Inherited { ForkCosts::Zero } else { ForkCosts::Inherited };
        self.forks.unwrap_or(usual)
    }

    /// How the function `name` of `object` is to be treated; `linkage`: it is a stub of the procedure linkage table.
    #[must_use]
    pub fn function(&self, name: &[u8], object: &[u8], linkage: bool) -> Function {
        let mut function = Function {
            skip: linkage && self.skip_plt || self.obj_skip.iter().any(|path| path == object),
            // The dynamic linker's resolver jumps to what it has found.
            pop_on_jump: name.starts_with(b"_dl_runtime_resolve"),
            separate_callers: self.separate_callers,
            separate_recs: self.separate_recs,
            ..Function::PLAIN
        };
        for rule in self.rules.iter().filter(|rule| rule.pattern.matches(OsStr::from_bytes(name))) {
            rule.matched.store(true, Ordering::Relaxed);
            match rule.change {
                Change::Skip => function.skip = true,
                Change::PopOnJump => function.pop_on_jump = true,
                Change::ToggleCollect => function.toggle_collect = true,
                Change::DumpBefore => function.dump_before = true,
                Change::DumpAfter => function.dump_after = true,
                Change::ZeroBefore => function.zero_before = true,
                Change::Callers(n) => function.separate_callers = n,
                Change::Recursions(n) => function.separate_recs = n,
                Change::Group(n) => function.group = n,
            }
        }
        function
    }

    /// The most callers that any function may want.
    #[must_use]
    pub fn most_callers(&self) -> u16 {
        let of_rule = |rule: &Rule| if let Change::Callers(n) = rule.change { n } else { 0 };
        self.rules.iter().map(of_rule).max().unwrap_or(0).max(self.separate_callers)
    }

    /// Whether self costs must be counted by context, and not only by instruction. Recursion alone asks for it only where
    /// a function is recursive, which cannot be known before.
    #[must_use]
    pub fn needs_contexts(&self) -> bool {
        self.separate_recs > 1 || self.needs_contexts_without_recursion()
    }

    /// Whether emitted code can follow calls by itself: nothing may hang on when functions run but whether costs are collected,
    /// and what they ask for; and it has no totals of estimated cycles. [`Settings::tell_calls`] has in it already what the other
    /// settings of the run say.
    #[must_use]
    pub fn followed(&self) -> bool {
        let told = self.tell_calls || self.frames.is_some() || self.dump_every_bb > 0 || self.estimate_cycles;
        !told && self.cache_use == CacheUse::No
    }

    /// Whether what a call of a function comes to may depend on who calls.
    #[must_use]
    pub fn by_caller(&self) -> bool {
        self.most_callers() > 0 || self.rules.iter().any(|rule| matches!(rule.change, Change::Group(_)))
    }

    /// How long calls are told before emitted code follows them.
    #[must_use]
    pub fn told_first(&self) -> ToldFirst {
        self.told_for.map_or_else(|| ToldFirst::while_it_pays(self.by_caller()), ToldFirst::span)
    }

    /// The same, if no function were recursive.
    #[must_use]
    pub fn needs_contexts_without_recursion(&self) -> bool {
        // Groups and skipped functions move self costs to other functions; the others depend on when it was.
        self.most_callers() > 0
            || !self.collect_at_start
            || !self.obj_skip.is_empty()
            || self.rules.iter().any(|rule| rule.change != Change::PopOnJump)
    }

    /// Whether functions ask for dumps, or for zeros.
    #[must_use]
    pub fn hooks(&self) -> bool {
        let hook = |rule: &Rule| matches!(rule.change, Change::DumpBefore | Change::DumpAfter | Change::ZeroBefore);
        self.rules.iter().any(hook)
    }

    /// What the model is to do, for so many costs.
    #[must_use]
    pub fn config(&self, costs: usize) -> Config {
        Config {
            costs,
            contexts: self.needs_contexts(),
            most_callers: self.most_callers(),
            skip_direct_recursion: self.skip_direct_rec,
            collect_jumps: self.collect_jumps,
            collect_at_start: self.collect_at_start,
            ..Config::arcs_only(costs)
        }
    }

    /// The events of the profile; those of caches and branches are settings that cachegrind has too.
    #[must_use]
    pub fn events(&self, caches: Caches, branch_sim: bool) -> EventSet {
        EventSet {
            caches,
            write_back: self.simulate_wb,
            branch_sim,
            cache_use: self.cache_use != CacheUse::No,
            bus: self.collect_bus,
            allocations: self.collect_alloc,
            system_calls: self.collect_systime,
            cycles: self.estimate_cycles,
        }
    }

    /// How the file is written.
    #[must_use]
    pub fn write_options(&self) -> WriteOptions {
        WriteOptions { compress_strings: self.compress_strings, compress_positions: self.compress_pos }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_rules_win_and_must_fit_the_whole_name() {
        let mut settings = Settings::default();
        settings.add_rule("std::*".as_ref(), Change::Callers(3));
        settings.add_rule("std::sort*".as_ref(), Change::Callers(1));
        settings.add_rule("fib".as_ref(), Change::Recursions(9));
        settings.add_rule("mem???".as_ref(), Change::Skip);
        let callers = |name: &str| settings.function(name.as_bytes(), b"", false).separate_callers;
        assert_eq!((callers("std::map"), callers("std::sort<int>"), callers("my::std::x")), (3, 1, 0));
        assert_eq!(settings.most_callers(), 3);
        assert_eq!(settings.function(b"fib", b"", false).separate_recs, 9);
        assert_eq!(settings.function(b"fib2", b"", false).separate_recs, 2);
        assert!(settings.function(b"memcpy", b"", false).skip && !settings.function(b"memmove", b"", false).skip);
        assert_eq!(settings.unmatched().count(), 0);
    }

    #[test]
    fn what_no_function_fits_is_known_to_all_copies() {
        let mut settings = Settings::default();
        settings.add_rule("main".as_ref(), Change::ToggleCollect);
        settings.add_rule("mian".as_ref(), Change::DumpBefore);
        settings.add_rule("f(int)".as_ref(), Change::Callers(3));
        let _ = settings.clone().function(b"main", b"", false);
        let missed: Vec<_> =
            settings.unmatched().map(|(option, text)| format!("{option}={}", text.display())).collect();
        assert_eq!(missed, ["--dump-before=mian", "--separate-callers3=f(int)"]);
    }

    #[test]
    fn stubs_and_the_resolver_are_known_without_being_asked_for() {
        let mut settings = Settings::default();
        assert!(settings.function(b"puts", b"", true).skip && !settings.function(b"puts", b"", false).skip);
        assert!(settings.function(b"_dl_runtime_resolve_xsavec", b"", false).pop_on_jump);
        settings.skip_plt = false;
        assert!(!settings.function(b"puts", b"", true).skip);
    }

    #[test]
    fn where_instrumentation_is_inherited_forks_and_threads_are_as_in_the_fork() {
        let of = |settings: &Settings| (settings.threads(), settings.fork_costs());
        let apart = Settings { separate_threads: Threads::Apart, ..Settings::default() };
        assert_eq!(of(&Settings::default()), (Threads::Together, ForkCosts::Inherited));
        assert_eq!(of(&apart), (Threads::Apart, ForkCosts::Inherited));
        let inherited = Settings { instr_at_start: AtStart::Inherited, ..apart };
        assert_eq!(of(&inherited), (Threads::ByKernel, ForkCosts::Zero));
        let asked = Settings { separate_threads: Threads::Together, forks: Some(ForkCosts::Inherited), ..inherited };
        assert_eq!(of(&asked), (Threads::Together, ForkCosts::Inherited));
        let zero =
            Settings { separate_threads: Threads::ByKernel, forks: Some(ForkCosts::Zero), ..Settings::default() };
        assert_eq!(of(&zero), (Threads::ByKernel, ForkCosts::Zero));
    }

    #[test]
    fn contexts_are_kept_only_where_they_are_needed() {
        let mut settings = Settings { separate_recs: 1, ..Settings::default() };
        assert!(!settings.needs_contexts() && Settings::default().needs_contexts());
        settings.add_rule("r".as_ref(), Change::PopOnJump);
        assert!(!settings.config(1).contexts);
        settings.add_rule("f".as_ref(), Change::ToggleCollect);
        assert!(settings.config(1).contexts && !settings.config(1).collect_at_start);
    }
}
