//! What is simulated in a run, and how the log speaks of it.
//!
//! The models are in `cg-sim`; here is what the options make of them, the lines about them in log and profile, and the
//! summary of a run. Texts, widths and roundings are the reference's, since scripts read them.

mod impossible;

use std::fmt;

use cg_format::events::{self, Caches};
use cg_format::mem::INCLUDED;
use cg_format::show::commas;
use cg_sim::beyond::{Clash, Inclusion};
use cg_sim::distance::Sample;
use cg_sim::host;
use cg_sim::included;
use cg_sim::policy::Policy;
use cg_sim::prefetch::Prefetch;
use cg_sim::sharing;
use cg_sim::tlb::{self, Tlbs};
use cg_sim::usage::Usage;
use cg_sim::{Geometries, Geometry, Levels};
use grind_analysis::callgrind::settings::CacheUse;
use grind_analysis::counts::Events;
use grind_objects::distances;
use grind_objects::sharing::{Detail, Wanted};
use grind_trace::{EveryAccess, FirstLevel, FirstTlb, FirstTlbs, TraceSettings};

use crate::options::distances::Which;
use crate::options::{Options, Tool};
pub use impossible::Impossible;

/// Bytes of a line where no caches are simulated.
const LINE: u32 = 64;

/// The simulations of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Simulation {
    /// The simulated caches; `None`: none are.
    pub caches: Option<Geometries>,
    /// The levels beyond the first, if they are more than the last level of these.
    pub levels: Option<Levels>,
    /// The TLBs, if any are simulated.
    pub tlbs: Option<Tlbs>,
    /// Whether branch prediction is simulated.
    pub branches: bool,
    /// Every access is told, and simulated by whoever follows the calls.
    pub every: bool,
    /// Stack distances are found.
    pub distances: Option<distances::Wanted>,
    /// Lines that threads share are found.
    pub sharing: Option<Wanted>,
    /// The program itself keeps which bytes its threads use, for that.
    bytes: bool,
    /// What a last level that includes first ones would take out of them is counted.
    included: bool,
    /// Misses are told by data object.
    pub objects: bool,
    /// Calls of allocators are events.
    pub allocations: bool,
    /// How many callers tell blocks of the heap apart.
    alloc_depth: u8,
    /// How lines are used is measured.
    uses: bool,
    /// Whose words are used.
    tool: Tool,
    /// What is to be told in the log about how the caches were found.
    notes: Vec<String>,
    /// The same, for the user rather than as detail.
    remarks: Vec<String>,
}

impl Simulation {
    /// What `options` ask for.
    ///
    /// # Errors
    /// When it cannot be simulated.
    pub fn new(options: &Options) -> Result<Self, Impossible> {
        let avx = std::arch::is_x86_feature_detected!("avx");
        Self::with(options, &host::cpuid, avx)
    }

    fn with(options: &Options, cpuid: host::Cpuid<'_>, avx: bool) -> Result<Self, Impossible> {
        let mut simulation = Self { branches: options.branch_sim, tool: options.tool, ..Self::default() };
        if options.streams && !options.objects {
            return Err(Impossible::Streams);
        }
        if options.prefetch_hints.is_some() && !options.streams {
            return Err(Impossible::Hints);
        }
        simulation.find_distances(options, LINE, None)?;
        if !options.alloc_fns.is_empty() && !options.objects && !options.collect_alloc {
            return Err(Impossible::Allocators);
        }
        if let (Some(option), false) = (options.tlbs.option(), options.tlbs.simulated) {
            return Err(Impossible::NoTlbs(option));
        }
        if options.alloc_depth > 1 && !options.objects {
            return Err(Impossible::Depth);
        }
        (simulation.allocations, simulation.alloc_depth) = (options.collect_alloc, options.alloc_depth);
        if !options.cache_sim {
            return match options.levels.option() {
                _ if options.distances.which == Some(Which::Bounds) => Err(Impossible::Bounds),
                _ if options.objects => Err(Impossible::Objects),
                _ if options.sharing.is_some() => Err(Impossible::Sharing),
                _ if options.tlbs.simulated => Err(Impossible::NoCaches("--tlb-sim")),
                Some(option) => Err(Impossible::NoCaches(option)),
                None => Ok(simulation),
            };
        }
        simulation.objects = options.objects;
        let found = host::configure(options.levels.given(options.caches), cpuid).map_err(Impossible::Host)?;
        // Wider registers exist with `--cpu=host`; their accesses to three lines are simulated all the same.
        let register = if avx { 32 } else { 16 };
        let line = found.geometries.min_line();
        if line < register {
            return Err(Impossible::Lines { tool: options.tool, line, register });
        }
        let line = found.geometries.d1.line();
        let d1 = found.geometries.d1;
        simulation.find_distances(options, line, Some([d1.sets(), d1.assoc()]))?;
        let exact = options.distances.which == Some(Which::Exact);
        if options.sharing.is_some() && line > sharing::MOST {
            return Err(Impossible::SharedLines(line));
        }
        simulation.sharing = options.sharing.map(|detail| Wanted { line, detail });
        simulation.tlbs = options.tlbs.tlbs(options.levels.machine);
        let callgrind = (options.tool == Tool::Callgrind).then_some(&options.callgrind);
        let uses = callgrind.is_some_and(|c| c.cache_use != CacheUse::No);
        // With a last level that is written back, writes reach it that hit the first one.
        let d1 = level(found.geometries.d1, found.geometries.min_line());
        let of_lines = matches!(options.sharing, Some(Detail::Lines | Detail::Order)) && simulation.tlbs.is_none();
        simulation.bytes = of_lines && !exact && d1.keeps_bytes();
        if options.sharing == Some(Detail::Order) && !simulation.bytes {
            return Err(Impossible::order(exact, simulation.tlbs.is_some(), line));
        }
        let told = exact || simulation.sharing.is_some() && !simulation.bytes;
        // The program simulates TLBs by itself, if they are of shapes that it has room for.
        let levels = options.levels.levels(options.caches, found.geometries.ll);
        simulation.included = options.tool == Tool::Cachegrind && levels.inclusion == Inclusion::Inclusive;
        let alone = simulation.tlbs.is_some_and(|tlbs| simulated_alone(tlbs, &found.geometries).is_none());
        simulation.every = uses || callgrind.is_some_and(|c| c.simulate_wb) || told || alone;
        simulation.uses = uses;
        if simulation.every && simulation.bounds() {
            let option = if alone { "--tlb-sim, with TLBs of this shape," } else { "--sharing, as it is told here," };
            return Err(Impossible::BoundsOfEvery(option));
        }
        levels.check().map_err(Impossible::Levels)?;
        if levels.inclusion == Inclusion::Inclusive && levels.second.is_none() && !simulation.included {
            return Err(Impossible::Levels(Clash::NoSecond(levels.inclusion)));
        }
        let two_levels = callgrind.and_then(|c| {
            let models =
                [(c.simulate_wb, "--simulate-wb"), (c.simulate_hwpref, "--simulate-hwpref"), (uses, "--cacheuse")];
            models.into_iter().find_map(|(asked, option)| asked.then_some(option))
        });
        simulation.levels = (!levels.plain()).then_some(levels);
        if let (Some(_), Some(option)) = (simulation.levels, two_levels) {
            return Err(Impossible::TwoLevels(option));
        }
        if uses {
            Usage::new(&found.geometries).map_err(Impossible::Uses)?;
        }
        for (option, cache) in [("--I1", found.geometries.i1), ("--D1", found.geometries.d1)] {
            let lines = u64::from(cache.sets()) * u64::from(cache.assoc());
            if lines > FirstLevel::MOST_LINES {
                return Err(Impossible::Large { option, lines });
            }
        }
        simulation.notes = found.notes.iter().map(ToString::to_string).collect();
        simulation.remarks = found.replaced.iter().map(ToString::to_string).collect();
        simulation.caches = Some(found.geometries);
        Ok(simulation)
    }

    /// Finds the stack distances that are asked for, of lines of so many bytes, or of what misses a D1 of so many sets and ways.
    fn find_distances(&mut self, options: &Options, line: u32, d1: Option<[u32; 2]>) -> Result<(), Impossible> {
        let wanted = options.distances;
        if wanted.which != Some(Which::Exact) && wanted.sample.is_some() {
            return Err(Impossible::Sample);
        }
        let sample = Sample::new(wanted.sample.map_or(0, u32::trailing_zeros));
        let bounds = d1.filter(|_| wanted.which == Some(Which::Bounds));
        self.distances = wanted.which.map(|_| distances::Wanted { line, sample, bounds });
        Ok(())
    }

    /// Whether distances are bounds, from what is missed.
    fn bounds(&self) -> bool {
        self.distances.is_some_and(|wanted| wanted.bounds.is_some())
    }

    /// The events that it counts.
    #[must_use]
    pub fn events(&self) -> Events {
        let tlbs = match self.tlbs {
            None => events::Tlbs::None,
            Some(Tlbs { second: None, .. }) => events::Tlbs::One,
            Some(_) => events::Tlbs::Two,
        };
        let allocations = self.allocations;
        Events { caches: self.counted(), branch: self.branches, tlbs, contexts: false, allocations }
    }

    fn counted(&self) -> Caches {
        match (self.caches, self.levels.and_then(|levels| levels.second)) {
            (None, _) => Caches::None,
            (Some(_), None) => Caches::Two,
            (Some(_), Some(_)) => Caches::Three,
        }
    }

    /// The caches, by name, and their policies.
    fn all(&self) -> Vec<(&'static str, Geometry, Policy)> {
        let Some(Geometries { i1, d1, ll }) = self.caches else { return Vec::new() };
        let second = self.levels.and_then(|levels| levels.second).map(|(shape, policy)| ("L2", shape, policy));
        let last = self.levels.map_or(Policy::Lru, |levels| levels.last.1);
        let first = [("I1", i1, Policy::Lru), ("D1", d1, Policy::Lru)];
        first.into_iter().chain(second).chain([("LL", ll, last)]).collect()
    }

    /// The TLBs, by name.
    fn buffers(&self) -> impl Iterator<Item = (&'static str, tlb::Shape)> {
        let all =
            self.tlbs.map(|Tlbs { data, code, second }| [("DTLB", Some(data)), ("ITLB", Some(code)), ("STLB", second)]);
        all.into_iter().flatten().filter_map(|(name, shape)| Some((name, shape?)))
    }

    /// What the engine has to record for it.
    #[must_use]
    pub fn trace(&self) -> TraceSettings {
        let every =
            |g: Geometries| EveryAccess { code_line: g.i1.line(), data_line: g.d1.line(), widest: g.min_line() };
        // What hits need not be told if the program itself keeps how lines are used.
        let kept = self.uses && self.caches.is_some_and(|g| level(g.d1, g.min_line()).keeps_uses());
        let missing = self.caches.filter(|_| !self.every || kept);
        let alone = self.distances.filter(|_| self.caches.is_none()).map(|wanted| EveryAccess {
            code_line: LINE,
            data_line: wanted.line,
            widest: wanted.line,
        });
        TraceSettings {
            tlbs: missing.zip(self.tlbs).and_then(|(caches, tlbs)| simulated_alone(tlbs, &caches)),
            fetches: missing.map(|g| level(g.i1, g.min_line())),
            accesses: missing.map(|g| level(g.d1, g.min_line())),
            every: self.caches.filter(|_| self.every && !kept).map(every).or(alone),
            uses: kept,
            branches: self.branches,
            calls: None,
            system_calls: false,
            forms: false,
            objects: self.objects || self.allocations,
            alloc_depth: self.alloc_depth,
            lives: self.sharing.is_some(),
            bytes: self.bytes,
            moves: self.sharing.is_some_and(|wanted| wanted.detail == Detail::Order),
            ages: missing.is_some() && (self.bounds() || self.included),
            code_ways: missing.is_some() && self.included,
        }
    }

    /// The `desc:` lines of the profile, without that word.
    #[must_use]
    pub fn descriptions(&self) -> Vec<Vec<u8>> {
        let line = |name: &str, what: String| match self.tool {
            Tool::Cachegrind => format!("{name:<18}{what}"),
            Tool::Callgrind => format!("{name} {what}"),
        };
        let policy = |policy| if policy == Policy::Lru { String::new() } else { format!(", {policy}") };
        let caches = self.all().into_iter();
        let mut lines: Vec<String> = caches
            .map(|(name, cache, replaces)| line(&format!("{name} cache:"), format!("{cache}{}", policy(replaces))))
            .collect();
        if let Some(Levels { inclusion, prefetch, second, .. }) = self.levels {
            if inclusion != Inclusion::None {
                let of = match (self.included, second) {
                    (true, None) => "I1 and D1",
                    (true, Some(_)) => "L2, I1 and D1",
                    (false, _) => "L2",
                };
                lines.push(line("Inclusion:", format!("LL is {inclusion} of {of}")));
            }
            if prefetch != Prefetch::None {
                lines.push(line("Prefetcher:", prefetch.to_string()));
            }
        }
        lines.extend(self.buffers().map(|(name, shape)| line(&format!("{name}:"), shape.to_string())));
        lines.into_iter().map(String::into_bytes).collect()
    }

    /// The `desc:` line, without that word, of what a last level would have taken out of first ones.
    #[must_use]
    pub fn included(counts: included::Counts) -> Vec<u8> {
        let included::Counts { left, held } = counts;
        let exact = if held == 0 { "so all counts are exact" } else { "which kept them: counts are near, not exact" };
        let [held, left] = [held, left].map(|n| commas(n.into()));
        format!("{INCLUDED:<18}I1 and D1 held {held} of {left} lines that LL gave up, {exact}").into_bytes()
    }

    /// Lines of detail for the start of the log.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Lines for the user at the start of the log.
    #[must_use]
    pub fn remarks(&self) -> &[String] {
        &self.remarks
    }

    /// The simulated caches, for a verbose log.
    #[must_use]
    pub fn configuration(&self) -> Option<String> {
        self.caches?;
        let mut lines = String::from("Cache configuration used:");
        for (name, cache, policy) in self.all() {
            let size = commas(i128::from(cache.size()));
            lines.push_str(&format!("\n  {name}: {size} B, {}-way, {} B lines", cache.assoc(), cache.line()));
            if policy != Policy::Lru {
                lines.push_str(&format!(", {policy}"));
            }
        }
        for (name, shape) in self.buffers() {
            lines.push_str(&format!("\n  {name}: {shape}"));
        }
        Some(lines)
    }
}

/// A first-level cache as the program simulates it.
fn level(g: Geometry, widest: u32) -> FirstLevel {
    FirstLevel { line: g.line(), sets: g.sets(), ways: g.assoc(), widest }
}

/// The first-level TLBs as the program simulates them, if it can; if not, it tells every access.
fn simulated_alone(tlbs: Tlbs, caches: &Geometries) -> Option<FirstTlbs> {
    let first = |shape: tlb::Shape| FirstTlb { sets: shape.sets(), ways: shape.ways() };
    let tlbs = FirstTlbs { data: first(tlbs.data), code: first(tlbs.code) };
    let [data, code] = [caches.d1, caches.i1].map(|cache| level(cache, caches.min_line()));
    tlbs.fits(&data, &code).then_some(tlbs)
}

/// The lines at the end of the log: how often each event happened. `total` has one count for each of `events`.
#[must_use]
pub fn summary(events: Events, total: &[i128]) -> String {
    let names = events.names();
    let of = |name: &str| names.iter().position(|n| *n == name).and_then(|at| total.get(at)).copied().unwrap_or(0);
    let [ir, dr, dw, bc, bcm, bi, bim] = ["Ir", "Dr", "Dw", "Bc", "Bcm", "Bi", "Bim"].map(of);
    let [i1mr, d1mr, d1mw] = ["I1mr", "D1mr", "D1mw"].map(of);
    let [i2mr, d2mr, d2mw] = ["I2mr", "D2mr", "D2mw"].map(of);
    let [ilmr, dlmr, dlmw] = ["ILmr", "DLmr", "DLmw"].map(of);
    let three = events.caches == Caches::Three;

    let width = |n: i128| commas(n).len();
    let (l1, l2, l3) = (width(ir), width(dr.max(bc)), width(dw.max(bi)));
    let mut out = String::new();
    let mut say = |line: fmt::Arguments<'_>| {
        if !out.is_empty() {
            out.push('\n');
        }
        let _ = fmt::Write::write_fmt(&mut out, line);
    };
    let plain = |n: i128| format!("{:>l1$}", commas(n));
    // A total and its two parts, called `first` and `second`.
    let parts = |a: i128, b: i128, first: &str, second: &str| {
        let (sum, a, b) = (commas(a + b), commas(a), commas(b));
        format!("{sum:>l1$}  ({a:>l2$} {first} + {b:>l3$} {second})")
    };
    // The same in percent; nothing of nothing is 0%.
    let percent = |part: i128, whole: i128| part as f64 * 100.0 / whole.max(1) as f64;
    let rates = |[all, first, second]: [(i128, i128); 3], end: &str| {
        let [t, a, b] = [all, first, second].map(|(part, whole)| percent(part, whole));
        format!("{t:l1$.1}% ({a:l2$.1}%     + {b:l3$.1}%{end})")
    };

    say(format_args!("I refs:        {}", plain(ir)));
    if events.caches.any() {
        let read_write = |a, b| parts(a, b, "rd  ", "wr");
        let data = |r, w| rates([(r + w, dr + dw), (r, dr), (w, dw)], "  ");
        say(format_args!("I1  misses:    {}", plain(i1mr)));
        if three {
            say(format_args!("L2i misses:    {}", plain(i2mr)));
        }
        say(format_args!("LLi misses:    {}", plain(ilmr)));
        say(format_args!("I1  miss rate: {:l1$.2}%", percent(i1mr, ir)));
        if three {
            say(format_args!("L2i miss rate: {:l1$.2}%", percent(i2mr, ir)));
        }
        say(format_args!("LLi miss rate: {:l1$.2}%", percent(ilmr, ir)));
        say(format_args!(""));
        say(format_args!("D refs:        {}", read_write(dr, dw)));
        say(format_args!("D1  misses:    {}", read_write(d1mr, d1mw)));
        if three {
            say(format_args!("L2d misses:    {}", read_write(d2mr, d2mw)));
        }
        say(format_args!("LLd misses:    {}", read_write(dlmr, dlmw)));
        say(format_args!("D1  miss rate: {}", data(d1mr, d1mw)));
        if three {
            say(format_args!("L2d miss rate: {}", data(d2mr, d2mw)));
        }
        say(format_args!("LLd miss rate: {}", data(dlmr, dlmw)));
        say(format_args!(""));
        let mut refs = (i1mr + d1mr, d1mw);
        if three {
            say(format_args!("L2 refs:       {}", read_write(refs.0, refs.1)));
            say(format_args!("L2 misses:     {}", read_write(i2mr + d2mr, d2mw)));
            say(format_args!(""));
            refs = (i2mr + d2mr, d2mw);
        }
        say(format_args!("LL refs:       {}", read_write(refs.0, refs.1)));
        say(format_args!("LL misses:     {}", read_write(ilmr + dlmr, dlmw)));
        let last = [(ilmr + dlmr + dlmw, ir + dr + dw), (ilmr + dlmr, ir + dr), (dlmw, dw)];
        say(format_args!("LL miss rate:  {}", rates(last, "  ")));
    }
    if events.tlbs != events::Tlbs::None {
        say(format_args!(""));
        for (level, names) in [("1", ["DT1mr", "DT1mw", "IT1mr"]), ("2", ["DT2mr", "DT2mw", "IT2mr"])] {
            if !events.names().contains(&names[0]) {
                continue;
            }
            let [r, w, i] = names.map(of);
            say(format_args!("T{level}i misses:    {}", plain(i)));
            say(format_args!("T{level}d misses:    {}", parts(r, w, "rd  ", "wr")));
            say(format_args!("T{level}i miss rate: {:l1$.2}%", percent(i, ir)));
            say(format_args!("T{level}d miss rate: {}", rates([(r + w, dr + dw), (r, dr), (w, dw)], "  ")));
        }
    }
    if events.branch {
        // The reference shows one branch of a kind of which there was none.
        let (bc, bi) = (bc.max(1), bi.max(1));
        say(format_args!(""));
        say(format_args!("Branches:      {}", parts(bc, bi, "cond", "ind")));
        say(format_args!("Mispredicts:   {}", parts(bcm, bim, "cond", "ind")));
        let wrong = [(bcm + bim, bc + bi), (bcm, bc), (bim, bi)];
        say(format_args!("Mispred rate:  {}", rates(wrong, "   ")));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{Request, parse, sources};

    #[test]
    fn whether_counts_are_near_is_read_from_what_is_written() {
        let said = |held| Simulation::included(included::Counts { left: 7, held });
        let near = |held| cg_format::mem::near(str::from_utf8(&said(held)).expect("text")).is_some();
        assert_eq!([near(0), near(1)], [false, true]);
    }

    fn options(words: &[&str]) -> Options {
        let mut words: Vec<std::ffi::OsString> = words.iter().map(Into::into).collect();
        words.push("prog".into());
        match parse(&words, sources::environment, || (vec![], vec![])) {
            Ok(Request::Run(options, ..)) => *options,
            other => panic!("{other:?}"),
        }
    }

    fn unknown_processor(_: u32, _: u32) -> [u32; 4] {
        [0; 4]
    }

    const ALL: Events =
        Events { caches: Caches::Two, branch: true, tlbs: events::Tlbs::None, contexts: false, allocations: false };

    #[test]
    fn the_summary_is_the_references() {
        // Printed by Valgrind for /bin/true; only the names of the references have changed since.
        let total =
            [127_771, 1_280, 1_072, 29_403, 2_032, 1_017, 10_266, 660, 311, 25_345, 3_162, 279, 150].map(i128::from);
        let expected = "I refs:        127,771\n\
            I1  misses:      1,280\n\
            LLi misses:      1,072\n\
            I1  miss rate:    1.00%\n\
            LLi miss rate:    0.84%\n\
            \n\
            D refs:         39,669  (29,403 rd   + 10,266 wr)\n\
            D1  misses:      2,692  ( 2,032 rd   +    660 wr)\n\
            LLd misses:      1,328  ( 1,017 rd   +    311 wr)\n\
            D1  miss rate:     6.8% (   6.9%     +    6.4%  )\n\
            LLd miss rate:     3.3% (   3.5%     +    3.0%  )\n\
            \n\
            LL refs:         3,972  ( 3,312 rd   +    660 wr)\n\
            LL misses:       2,400  ( 2,089 rd   +    311 wr)\n\
            LL miss rate:      1.4% (   1.3%     +    3.0%  )\n\
            \n\
            Branches:       25,624  (25,345 cond +    279 ind)\n\
            Mispredicts:     3,312  ( 3,162 cond +    150 ind)\n\
            Mispred rate:     12.9% (  12.5%     +   53.8%   )";
        assert_eq!(summary(ALL, &total), expected);
        let branches = [&total[..1], &total[9..]].concat();
        assert_eq!(
            summary(Events { caches: Caches::None, branch: true, ..Events::default() }, &branches),
            "I refs:        127,771\n\
             \n\
             Branches:       25,624  (25,345 cond + 279 ind)\n\
             Mispredicts:     3,312  ( 3,162 cond + 150 ind)\n\
             Mispred rate:     12.9% (  12.5%     + 53.8%   )"
        );
        let caches = summary(Events { caches: Caches::Two, branch: false, ..Events::default() }, &total[..9]);
        assert_eq!(caches, expected.split("\n\nBranches").next().unwrap());
        assert_eq!(summary(Events::default(), &[1_234_567]), "I refs:        1,234,567");
    }

    #[test]
    fn a_second_level_stands_between_the_others() {
        let events = Events { caches: Caches::Three, branch: false, ..Events::default() };
        // In the order of the profile.
        let total = [1000, 50, 20, 10, 400, 40, 20, 8, 100, 10, 5, 2].map(i128::from);
        let expected = "I refs:        1,000\n\
            I1  misses:       50\n\
            L2i misses:       20\n\
            LLi misses:       10\n\
            I1  miss rate:  5.00%\n\
            L2i miss rate:  2.00%\n\
            LLi miss rate:  1.00%\n\
            \n\
            D refs:          500  (400 rd   + 100 wr)\n\
            D1  misses:       50  ( 40 rd   +  10 wr)\n\
            L2d misses:       25  ( 20 rd   +   5 wr)\n\
            LLd misses:       10  (  8 rd   +   2 wr)\n\
            D1  miss rate:  10.0% (10.0%     + 10.0%  )\n\
            L2d miss rate:   5.0% (5.0%     + 5.0%  )\n\
            LLd miss rate:   2.0% (2.0%     + 2.0%  )\n\
            \n\
            L2 refs:         100  ( 90 rd   +  10 wr)\n\
            L2 misses:        45  ( 40 rd   +   5 wr)\n\
            \n\
            LL refs:          45  ( 40 rd   +   5 wr)\n\
            LL misses:        20  ( 18 rd   +   2 wr)\n\
            LL miss rate:    1.3% (1.3%     + 2.0%  )";
        assert_eq!(summary(events, &total), expected);
    }

    #[test]
    fn levels_are_described_and_checked() {
        let with = |words: &[&str]| {
            Simulation::with(&options(&[&["--cache-sim=yes"], words].concat()), &unknown_processor, true)
        };
        let s = with(&["--L2=4096,4,64", "--LL=8192,4,64,nru", "--prefetcher=stride"]).unwrap();
        assert_eq!(s.events().caches, Caches::Three);
        let text: Vec<String> = s.descriptions().into_iter().map(|d| String::from_utf8(d).unwrap()).collect();
        assert_eq!(
            text[2..],
            [
                "L2 cache:         4096 B, 64 B, 4-way associative",
                "LL cache:         8192 B, 64 B, 4-way associative, nru",
                "Prefetcher:       stride"
            ]
        );
        assert!(s.configuration().unwrap().ends_with("\n  LL: 8,192 B, 4-way, 64 B lines, nru"));
        // What is as ever is no more than that.
        assert_eq!(with(&["--LL=8192,4,64,lru", "--inclusion=none"]).unwrap().levels, None);
        let two = with(&["--LL=8192,4,64,fifo"]).unwrap();
        assert_eq!((two.events().caches, two.levels.is_some()), (Caches::Two, true));
        for (words, refused) in [
            (&["--inclusion=exclusive"][..], true),
            (&["--inclusion=inclusive"], false),
            (&["--inclusion=inclusive", "--tool=callgrind"], true),
        ] {
            assert_eq!(matches!(with(words), Err(Impossible::Levels(Clash::NoSecond(_)))), refused, "{words:?}");
        }
        let none = Simulation::with(&options(&["--prefetcher=stream"]), &unknown_processor, true);
        assert_eq!(none, Err(Impossible::NoCaches("--prefetcher")));
        let callgrind = |word| with(&["--tool=callgrind", "--L2=4096,4,64", word]);
        assert_eq!(callgrind("--simulate-wb=yes"), Err(Impossible::TwoLevels("--simulate-wb")));
        assert_eq!(callgrind("--simulate-hwpref=yes"), Err(Impossible::TwoLevels("--simulate-hwpref")));
    }

    #[test]
    fn tlbs_are_described_and_summed_up() {
        let with = |words: &[&str]| Simulation::with(&options(words), &unknown_processor, true);
        assert_eq!(with(&["--cache-sim=yes", "--ITLB=4,2"]), Err(Impossible::NoTlbs("--ITLB")));
        assert_eq!(with(&["--tlb-sim=yes"]), Err(Impossible::NoCaches("--tlb-sim")));
        let s = with(&["--cache-sim=yes", "--tlb-sim=yes", "--STLB=8,8", "--DTLB=4,1"]).unwrap();
        assert_eq!(s.events().tlbs, events::Tlbs::Two);
        let text: Vec<String> = s.descriptions().into_iter().map(|d| String::from_utf8(d).unwrap()).collect();
        assert_eq!(
            text[3..],
            [
                "DTLB:             4 pages of 4096 B, direct-mapped",
                "ITLB:             128 pages of 4096 B, 8-way associative",
                "STLB:             8 pages of 4096 B, fully associative"
            ]
        );
        assert!(s.configuration().unwrap().ends_with("\n  STLB: 8 pages of 4096 B, fully associative"));
        let one = with(&["--cache-sim=yes", "--tlb-sim=yes"]).unwrap();
        assert_eq!(one.events().tlbs, events::Tlbs::One);

        let events = Events { caches: Caches::Two, tlbs: events::Tlbs::Two, ..Events::default() };
        // Ir, I1mr, ILmr, Dr, D1mr, DLmr, Dw, D1mw, DLmw; DT1mr, DT1mw, IT1mr, and so on.
        let total = [1000, 0, 0, 400, 0, 0, 100, 0, 0, 40, 10, 5, 4, 1, 2].map(i128::from);
        let tlbs = "\n\nT1i misses:        5\n\
            T1d misses:       50  ( 40 rd   +  10 wr)\n\
            T1i miss rate:  0.50%\n\
            T1d miss rate:  10.0% (10.0%     + 10.0%  )\n\
            T2i misses:        2\n\
            T2d misses:        5  (  4 rd   +   1 wr)\n\
            T2i miss rate:  0.20%\n\
            T2d miss rate:   1.0% (1.0%     + 1.0%  )";
        let said = summary(events, &total);
        assert!(said.ends_with(tlbs), "{said}");
        let one = summary(Events { tlbs: events::Tlbs::One, ..events }, &total[..12]);
        assert_eq!(one, said.split("\nT2i").next().unwrap());
    }

    #[test]
    fn nothing_is_summed_up_without_a_division_by_zero() {
        let nothing = summary(ALL, &[0; 13]);
        assert!(nothing.starts_with("I refs:        0\nI1  misses:    0\n"), "{nothing}");
        assert!(nothing.contains("\nI1  miss rate: 0.00%\n"), "{nothing}");
        assert!(nothing.contains("\nD1  miss rate: 0.0% (0.0%     + 0.0%  )\n"), "{nothing}");
        assert!(nothing.ends_with(
            "Branches:      2  (1 cond + 1 ind)\nMispredicts:   0  (0 cond + 0 ind)\n\
             Mispred rate:  0.0% (0.0%     + 0.0%   )"
        ));
        let total = [&[9; 9][..], &[84, 3, 0, 0]].concat();
        assert!(summary(ALL, &total).contains("Branches:      85  (84 cond + 1 ind)"));
    }

    #[test]
    fn options_make_caches() {
        let none = Simulation::new(&options(&["--D1=1024,2,64"])).unwrap();
        assert_eq!((none.caches, none.branches, none.events()), (None, false, Events::default()));
        assert_eq!((none.descriptions(), none.configuration()), (vec![], None));

        let o = options(&["--cache-sim=yes", "--branch-sim=yes", "--I1=1024,1,64", "--LL=1048576,16,32"]);
        let s = Simulation::with(&o, &unknown_processor, true).unwrap();
        assert_eq!((s.branches, s.events()), (true, ALL));
        let descriptions: Vec<String> = s.descriptions().into_iter().map(|d| String::from_utf8(d).unwrap()).collect();
        assert_eq!(
            descriptions,
            [
                "I1 cache:         1024 B, 64 B, direct-mapped",
                "D1 cache:         65536 B, 64 B, 2-way associative",
                "LL cache:         1048576 B, 32 B, 16-way associative"
            ]
        );
        assert_eq!(
            s.configuration().unwrap(),
            "Cache configuration used:\n  I1: 1,024 B, 1-way, 64 B lines\n  D1: 65,536 B, 2-way, 64 B lines\n  \
             LL: 1,048,576 B, 16-way, 32 B lines"
        );
        assert_eq!(
            s.notes(),
            ["Warning: Cannot auto-detect cache config, using defaults.\n         Run with -v to see."]
        );
    }

    #[test]
    fn lines_must_hold_a_register() {
        let o = options(&["--cache-sim=yes", "--D1=1024,2,16"]);
        let error = Simulation::with(&o, &unknown_processor, true).unwrap_err();
        assert_eq!(
            error.to_string(),
            "Cachegrind: cannot continue: the minimum line size (16)\n  \
             must be equal to or larger than the maximum register size (32)\n  but it is not.  Exiting now."
        );
        assert!(Simulation::with(&o, &unknown_processor, false).is_ok());
        assert!(Simulation::with(&options(&["--D1=1024,2,16"]), &unknown_processor, true).is_ok());
    }
}
