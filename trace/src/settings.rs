//! What emitted code shall record: settings of a run, and of the translations of a space. Nothing is recorded or read here. Invariant:
//! what follows from settings (registers that code takes, totals that a thread has) is decided here and nowhere else.

use std::time::Duration;

use grind_layout as layout;
use grind_layout::registers::StolenRegisters;

/// What emitted code shall simulate, and record the results of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceSettings {
    /// Instruction fetches that miss this cache.
    pub fetches: Option<FirstLevel>,
    /// Data accesses that miss this cache.
    pub accesses: Option<FirstLevel>,
    /// Every fetch and every data access, in place of those that miss: nothing of the caches is simulated by the engine then.
    pub every: Option<EveryAccess>,
    /// First-level TLBs beside both caches: what misses them is told, too ([`PAGE_MISSED`]). Without uses, contexts and calls.
    pub tlbs: Option<FirstTlbs>,
    /// Which line goes with each miss, and, if it was one of data, how it has been used: see [`LineReplaced`] and
    /// [`SiteKind::CodeLine`]. Only with both caches, whose lines have the same length, and of which that of data must be one
    /// that [`FirstLevel::keeps_uses`]; and with calls that are told.
    pub uses: bool,
    /// Which bytes of lines the thread reads and writes: records of [`BYTES_USED`] of those that it has not been known to use since the engine
    /// forgot that last. Beside a data cache that [`FirstLevel::keeps_bytes`], without uses, TLBs and calls.
    pub bytes: bool,
    /// Beside [`TraceSettings::bytes`]: which lines go from thread to thread, as they take turns: [`crate::LINE_MOVED`].
    pub moves: bool,
    /// Which line goes for each that is brought into the data cache, and when it was used last: [`LineBrought`]. Beside that
    /// cache, without uses and calls.
    pub ages: bool,
    /// Which ways of the code cache lines are brought into: records of [`CODE_BROUGHT`]. Without uses and calls.
    pub code_ways: bool,
    /// Branches that are mispredicted.
    pub branches: bool,
    /// Executed blocks and transfers of control.
    pub calls: Option<CallTrace>,
    /// System calls and their time; each of them stops then.
    pub system_calls: bool,
    /// Nothing is recorded for this: what is known of instructions says of which form they are.
    pub forms: bool,
    /// Which blocks of memory the allocators of `Session::watched` hand out and take back, in order with what is
    /// missed: records that begin with [`ALLOCATOR_CALLED`] to [`OBJECT_POOL_MOVED`]. Not where calls are told.
    pub objects: bool,
    /// How many callers tell these blocks apart. With more than one, each call that hands out a block stops, for its callers:
    /// [`ALLOCATOR_CALLER`].
    pub alloc_depth: u8,
    /// Births and ends of threads are told behind all that the threads of the process have recorded until then:
    /// [`Sink::thread_born`], [`Sink::thread_ended`].
    pub lives: bool,
}

impl TraceSettings {
    /// Whether anything is recorded at all.
    #[must_use]
    pub fn any(&self) -> bool {
        self.checks() || self.calls.is_some() || self.system_calls || self.objects
    }

    /// Whether there is anything to do before instructions.
    pub fn checks(&self) -> bool {
        self.fetches.is_some() || self.data() || self.branches
    }

    /// Which registers code takes for that.
    pub fn stolen_registers(&self) -> StolenRegisters {
        match (self.any(), self.checks()) {
            (false, _) => StolenRegisters::R11,
            (true, false) if self.followed() => StolenRegisters::Total,
            (true, false) => StolenRegisters::R10,
            _ if self.accesses.is_some() || self.fetches.is_some() => StolenRegisters::Clock,
            _ => StolenRegisters::R10AndR8,
        }
    }

    /// Whether emitted code follows calls.
    pub fn followed(&self) -> bool {
        self.calls.is_some_and(|c| c.followed)
    }

    /// Whether there are records of what caches or predictors miss.
    pub fn simulates(&self) -> bool {
        self.fetches.is_some() || self.data() || self.branches
    }

    /// Whether it matters what instructions do, beside that they are executed.
    #[must_use]
    pub fn counts_events(&self) -> bool {
        self.simulates() || self.forms || self.calls.is_some_and(|calls| calls.bus)
    }

    /// The totals that a thread has whose calls are followed, by their index in [`crate::follow::Totals`].
    #[must_use]
    pub fn totals(&self) -> &'static [usize] {
        match (self.data(), self.branches, self.bus_total().is_some()) {
            (false, false, false) => &[0],
            (false, false, true) => &[0, 3],
            (true, false, false) => &[0, 1, 2],
            (true, false, true) => &[0, 1, 2, 3],
            (false, true, false) => &[0, 3, 4],
            (false, true, true) => &[0, 1, 3, 4],
            (true, true, _) => &[0, 1, 2, 3, 4],
        }
    }

    /// Which of these is that of instructions that lock the bus.
    pub fn bus_total(&self) -> Option<usize> {
        self.calls.filter(|calls| calls.bus && calls.followed)?;
        crate::follow::bus_total(self.data(), self.branches)
    }

    /// Whether calls that are followed are told one by one.
    #[must_use]
    pub fn tells_each(&self) -> bool {
        self.calls.is_some_and(|calls| calls.followed && calls.each)
    }

    /// Whether frames of interpreters are told.
    #[must_use]
    pub fn frames(&self) -> bool {
        self.calls.is_some_and(|calls| !calls.followed && calls.frames)
    }

    /// Whether emitted code keeps how the lines of the data cache are used.
    #[must_use]
    pub fn keeps_uses(&self) -> bool {
        self.accesses.is_some() && self.uses
    }

    /// Whether emitted code keeps which bytes of lines the thread uses.
    #[must_use]
    pub fn keeps_bytes(&self) -> bool {
        self.accesses.is_some() && self.bytes
    }

    /// Whether emitted code keeps which thread has which line.
    #[must_use]
    pub fn keeps_owners(&self) -> bool {
        self.keeps_bytes() && self.moves
    }

    /// Whether emitted code tells when lines that go were used last.
    #[must_use]
    pub fn tells_ages(&self) -> bool {
        self.accesses.is_some() && self.ages
    }

    /// Whether data accesses are followed.
    pub fn data(&self) -> bool {
        self.accesses.is_some() || self.every.is_some()
    }
}

/// A first-level TLB, which every thread has of its own, and which replaces the page used longest ago of a set. Nothing is in it at first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTlb {
    /// Sets: a power of two.
    pub sets: u32,
    /// Pages in a set.
    pub ways: u32,
}

/// Those of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstTlbs {
    /// That of data.
    pub data: FirstTlb,
    /// That of code.
    pub code: FirstTlb,
}

impl FirstTlbs {
    /// Whether emitted code can simulate them beside these caches of data and code: there is room for so many pages and lines, a page
    /// has at most 64 lines, and the processor has BMI1.
    #[must_use]
    pub fn fits(&self, data: &FirstLevel, code: &FirstLevel) -> bool {
        let few = |of: FirstTlb| u64::from(of.sets) * u64::from(of.ways) <= layout::MOST_PAGES;
        few(self.data)
            && few(self.code)
            && [data.line, code.line].into_iter().all(|line| (64..=layout::PAGE as u32).contains(&line))
            && u64::from(code.sets) * u64::from(code.ways) <= layout::MOST_OWNED
            && std::arch::is_x86_feature_detected!("bmi1")
    }

    /// Whether in one set of pages of data it matters which of two pages next to each other is used last.
    #[must_use]
    pub fn orders_neighbours(&self) -> bool {
        self.data.sets == 1
    }
}

/// How fetches and accesses are put together to records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EveryAccess {
    /// Bytes of a line of the code cache: a power of two, at least 16.
    pub code_line: u32,
    /// Bytes of a line of the data cache: a power of two, at least 16. Only accesses within such a length are put together.
    pub data_line: u32,
    /// As [`FirstLevel::widest`].
    pub widest: u32,
}

/// Which transfers of control are recorded: all calls, returns and indirect jumps; of the others those that get to, or over,
/// a boundary of `Session::boundaries`. Nothing is counted then: every executed block is told, with or before the
/// transfer of control that ends it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTrace {
    /// Emitted code follows calls by itself as far as it can (see [`crate::follow`]), and tells nothing.
    pub followed: bool,
    /// Every direct jump, and every conditional one that is taken, is counted too: as a [`SiteKind::Jump`], if it gets to no
    /// boundary.
    pub jumps: bool,
    /// Functions may ask for something when they are entered or left (see [`Sink::requests_wait`]).
    pub hooks: bool,
    /// What a call of a function comes to may depend on who calls: callers tell contexts apart, or a context is that of a group.
    pub by_caller: bool,
    /// Calls that are followed are told for so long before.
    pub told_first: ToldFirst,
    /// Each call that is followed is told, and each return, with the totals of that moment (see [`crate::follow::CALL_TOLD`]).
    pub each: bool,
    /// Instructions that lock the bus have a total of their own where calls are followed: see [`crate::follow::bus_total`].
    pub bus: bool,
    /// Frames of interpreters are told, at the hooks of `Session::frame_hooks`. Only with calls that are told.
    pub frames: bool,
}

/// How long calls are told before emitted code follows them. What a call comes to is asked for once where it is followed, and code
/// is translated for each context: whoever runs for less would wait for that longer than telling takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ToldFirst {
    /// At most for so long.
    pub most: Duration,
    /// Until so many words have been told for each site that tells: what there is to be asked grows with the code, and what telling
    /// has taken with what has been executed. `u64::MAX`: for all of that time.
    pub words_a_site: u64,
}

impl ToldFirst {
    /// Words that are told for each site before emitted code follows calls: telling them takes as long as half of what is to be asked
    /// about their calls then.
    const WORDS_A_SITE: u64 = 250;

    /// For as long as that takes less than to follow them would. There is more to be asked where callers tell contexts apart.
    #[must_use]
    pub fn while_it_pays(by_caller: bool) -> Self {
        let words_a_site = if by_caller { 4 * Self::WORDS_A_SITE } else { Self::WORDS_A_SITE };
        Self { most: Duration::from_secs(1), words_a_site }
    }

    /// For so long, however much is told.
    #[must_use]
    pub fn span(most: Duration) -> Self {
        Self { most, words_a_site: u64::MAX }
    }

    /// Whether they are followed from the beginning.
    #[must_use]
    pub fn is_never(self) -> bool {
        self.most.is_zero()
    }

    /// Whether that has been long enough.
    #[must_use]
    pub fn is_over(self, elapsed: Duration, words: u64, sites: u64) -> bool {
        elapsed >= self.most || words > sites.saturating_mul(self.words_a_site)
    }
}

/// A first-level cache, which every thread has of its own. It replaces the least recently used line of a set, allocates on
/// writes, and an access to two lines uses one after the other. At first it holds line 0 in every way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FirstLevel {
    /// Bytes of a line: a power of two, at least 16.
    pub line: u32,
    /// Sets: a power of two.
    pub sets: u32,
    /// Lines in a set.
    pub ways: u32,
    /// Bytes of the largest access that is simulated whole, at most `line`: of a larger one only so many bytes count.
    pub widest: u32,
}

impl FirstLevel {
    /// The most lines that a cache can have.
    pub const MOST_LINES: u64 = layout::MAX_CACHE;

    /// Groups of ways of which emitted code keeps which was used longest ago ([`layout::DATA_GROUPS`]), if it does.
    pub fn groups(&self) -> u64 {
        let lines = u64::from(self.sets) * u64::from(self.ways);
        if matches!(self.ways, 8 | 12 | 16) && lines <= layout::MOST_GROUPED { lines / layout::GROUP } else { 0 }
    }

    /// Whether emitted code can keep which bytes of its lines a thread uses: those of [`layout::BYTES_LINE`] bytes, on a processor
    /// that has BMI2.
    pub fn keeps_bytes(&self) -> bool {
        self.line == layout::BYTES_LINE && std::arch::is_x86_feature_detected!("bmi2")
    }

    /// Whether emitted code can keep how the lines of such a cache are used: those of 32 or 64 bytes, on a processor that has
    /// BMI2.
    #[must_use]
    pub fn keeps_uses(&self) -> bool {
        matches!(self.line, 32 | 64)
            && u64::from(self.sets) * u64::from(self.ways) <= layout::MOST_USED
            && std::arch::is_x86_feature_detected!("bmi2")
            && std::arch::is_x86_feature_detected!("popcnt")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_told_until_that_has_cost_enough_or_for_long_enough() {
        let (never, span, pays) =
            (ToldFirst::default(), ToldFirst::span(Duration::from_millis(40)), ToldFirst::while_it_pays(false));
        let [soon, late] = [1, 2000].map(Duration::from_millis);
        assert!(never.is_never() && !span.is_never() && !pays.is_never());
        for told in [span, pays] {
            assert!(!told.is_over(soon, 0, 0), "nothing has been executed yet");
            assert!(told.is_over(late, 0, 0));
        }
        let few = 100 * pays.words_a_site;
        assert!(!span.is_over(soon, 1 << 40, 1) && !pays.is_over(soon, few, 100) && pays.is_over(soon, few + 1, 100));
        assert!(!ToldFirst::while_it_pays(true).is_over(soon, few + 1, 100));
    }
}
