//! Options that ask for what cannot be simulated, and what the user is told then: what is wrong, and which option to change.

use std::fmt;

use cg_sim::beyond::Clash;
use cg_sim::host::Unsupported;
use cg_sim::sharing;
use cg_sim::usage::LinesDiffer;
use grind_trace::FirstLevel;

use crate::options::Tool;

/// The options ask for caches that cannot be simulated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Impossible {
    /// The host has such caches.
    Host(Unsupported),
    /// A register may touch more than two lines.
    Lines {
        /// The tool that is asked to.
        tool: Tool,
        /// The smallest line, in bytes.
        line: u32,
        /// The largest register, in bytes.
        register: u32,
    },
    /// There are no misses by data object.
    Objects,
    /// There are no levels without caches; the option that asks for them.
    NoCaches(&'static str),
    /// There are no shapes of TLBs that nobody simulates; the option that gives one.
    NoTlbs(&'static str),
    /// Levels that make no sense together.
    Levels(Clash),
    /// A model that knows two levels only; the option that asks for it.
    TwoLevels(&'static str),
    /// There are no data objects whose misses could be streams.
    Streams,
    /// There are no streams that hints could be of.
    Hints,
    /// There is no sample of distances that nobody finds.
    Sample,
    /// Nothing is missed whose distance could have bounds.
    Bounds,
    /// What has every access told leaves nothing to bound; the option that does.
    BoundsOfEvery(&'static str),
    /// There are no lines that could be shared.
    Sharing,
    /// What has every access told does not tell in which order threads use lines; what does.
    Order(&'static str),
    /// Bytes of lines of so many are not told apart.
    SharedLines(u32),
    /// There are no data objects that allocators could hand out.
    Allocators,
    /// There are none whose callers could tell them apart.
    Depth,
    /// The use of lines cannot be added up over lines of different sizes.
    Uses(LinesDiffer),
    /// A first-level cache has more lines than a thread has room for.
    Large {
        /// The option that gives it.
        option: &'static str,
        /// Its lines.
        lines: u64,
    },
}

impl Impossible {
    /// Why it is not told in which order threads use lines of so many bytes, where it is not.
    pub(super) fn order(exact: bool, tlbs: bool, line: u32) -> Self {
        Self::Order(match () {
            () if exact => "--reuse-dist=exact has every access told",
            () if tlbs => "where TLBs are simulated there is no room for that",
            () if line != sharing::MOST => "lines of D1 must have 64 bytes",
            () => "this processor has no BMI2",
        })
    }
}

impl fmt::Display for Impossible {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Host(unsupported) => unsupported.fmt(f),
            Self::Lines { tool, line, register } => write!(
                f,
                "{}: cannot continue: the minimum line size ({line})\n  \
                 must be equal to or larger than the maximum register size ({register})\n  \
                 but it is not.  Exiting now.",
                if *tool == Tool::Callgrind { "Callgrind" } else { "Cachegrind" }
            ),
            Self::Objects => write!(f, "--objects=yes tells where misses of simulated caches are: add --cache-sim=yes"),
            Self::NoCaches(option) => write!(f, "{option} is of simulated caches: add --cache-sim=yes"),
            Self::NoTlbs(option) => write!(f, "{option} is of simulated TLBs: add --tlb-sim=yes"),
            Self::Levels(clash) => clash.fmt(f),
            Self::TwoLevels(option) => write!(
                f,
                "{option} is a model of I1, D1 and an LL that replaces the line used longest ago: leave out --L2, --inclusion, \
                 --prefetcher, --machine and the policy of --LL"
            ),
            Self::Hints => write!(f, "--prefetch-hints are of the streams of misses: add --streams=misses"),
            Self::Streams => write!(f, "--streams=misses tells how data objects are walked over: add --objects=yes"),
            Self::Sample => write!(f, "--reuse-sample is of stack distances: add --reuse-dist=exact"),
            Self::Bounds => write!(
                f,
                "--reuse-dist=bounds is of what misses simulated caches: add --cache-sim=yes (--reuse-dist=exact needs none)"
            ),
            Self::BoundsOfEvery(option) => write!(
                f,
                "--reuse-dist=bounds follows from misses of D1 alone, and {option} does not: leave one of them out, or use \
                 --reuse-dist=exact"
            ),
            Self::Sharing => write!(f, "--sharing is of lines of simulated caches: add --cache-sim=yes"),
            Self::Order(why) => write!(
                f,
                "--sharing=order is kept by the program itself, one line after the other, and {why}: use --sharing=lines"
            ),
            Self::SharedLines(line) => write!(
                f,
                "--sharing tells the bytes of lines of at most {} bytes apart, and D1 has lines of {line}; use --D1",
                sharing::MOST
            ),
            Self::Allocators => {
                write!(f, "--alloc-fn names what hands out data objects: add --objects=yes, or --collect-alloc=yes")
            }
            Self::Depth => write!(f, "--alloc-depth says which callers tell data objects apart: add --objects=yes"),
            Self::Uses(differ) => write!(f, "--cacheuse: {differ}; use --I1, --D1 and --LL"),
            Self::Large { option, lines } => write!(
                f,
                "{option}: a cache of {lines} lines cannot be simulated, only one of at most {} (give it larger lines, or make \
                 it smaller)",
                FirstLevel::MOST_LINES
            ),
        }
    }
}

impl std::error::Error for Impossible {}
