//! What a site did before: the cache that keeps the hot path free of hashing.
//!
//! A site remembers a few targets, with the context that it was in and the arc that came of it. Forgetting one costs time only:
//! everything here can be found again in the tables.

use crate::code::{Code, Place, Site, SiteId};
use crate::contexts::PathId;
use crate::table::NONE;

/// One thing that a site did: called `target` in the context `path`, `node`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Way {
    pub(crate) target: u64,
    pub(crate) path: PathId,
    pub(crate) node: u32,
    pub(crate) to_path: PathId,
    /// The function whose activity is counted.
    pub(crate) to_function: u32,
    pub(crate) first_node: u32,
    pub(crate) recursions: u32,
    /// The node that the callee had the last time, and the arc to it.
    pub(crate) to_node: u32,
    /// (If it is skipped: the row of what is skipped.)
    pub(crate) arc: u32,
    /// Nothing but the level of recursion is left to find out: not skipped, deepens, no hooks.
    pub(crate) plain: bool,
    pub(crate) skip: bool,
    /// Whether it raises the level of recursion.
    pub(crate) deepens: bool,
    pub(crate) hooks: bool,
}

impl Way {
    /// Whether it is what a call of `target` in this context does.
    #[inline]
    pub(crate) fn fits(&self, target: u64, path: PathId, node: u32) -> bool {
        self.target == target && self.node == node && self.path == path
    }

    const UNKNOWN: Way = Way {
        target: 0,
        path: PathId::EMPTY,
        node: NONE,
        to_path: PathId::EMPTY,
        to_function: 0,
        first_node: 0,
        recursions: 0,
        to_node: 0,
        arc: NONE,
        plain: false,
        skip: false,
        deepens: true,
        hooks: false,
    };
}

/// Ways that a site remembers.
const WAYS: usize = 4;

/// The ways of all sites.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ways {
    ways: Vec<[Way; WAYS]>,
}

impl Ways {
    /// Where a way of `site` is for which `fits` holds, if it is remembered.
    #[inline]
    pub(crate) fn find(&self, site: SiteId, fits: impl Fn(&Way) -> bool) -> Option<(usize, usize)> {
        let ways = self.ways.get(site.0 as usize)?;
        ways.iter().position(fits).map(|i| (site.0 as usize, i))
    }

    #[inline]
    pub(crate) fn at(&mut self, at: (usize, usize)) -> &mut Way {
        &mut self.ways[at.0][at.1]
    }

    /// Remembers a way in place of the oldest one.
    pub(crate) fn remember(&mut self, site: SiteId, way: Way) -> (usize, usize) {
        let site = site.0 as usize;
        if site >= self.ways.len() {
            self.ways.resize(site + 1, [Way::UNKNOWN; WAYS]);
        }
        self.ways[site].copy_within(..WAYS - 1, 1);
        self.ways[site][0] = way;
        (site, 0)
    }
}

/// Jumps that turned out to be no calls, by site and target: nothing hangs on another one, but for frames that it may leave.
#[derive(Clone, Debug)]
pub(crate) struct Quiet {
    known: Vec<(u32, u64)>,
}

const QUIET: usize = 4096;

impl Quiet {
    pub(crate) fn new() -> Quiet {
        Quiet { known: vec![(NONE, 0); QUIET] }
    }

    #[inline]
    fn index(site: SiteId, target: u64) -> usize {
        ((u64::from(site.0) << 40 ^ target).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % QUIET
    }

    #[inline]
    pub(crate) fn knows(&self, site: SiteId, target: u64) -> bool {
        self.known[Self::index(site, target)] == (site.0, target)
    }

    pub(crate) fn remember(&mut self, site: SiteId, target: u64) {
        self.known[Self::index(site, target)] = (site.0, target);
    }
}

/// What there is at addresses that were asked for lately.
#[derive(Clone, Debug)]
pub(crate) struct Places {
    entries: Vec<Option<(u64, Place)>>,
}

const PLACES: usize = 4096;

impl Places {
    pub(crate) fn new() -> Places {
        Places { entries: vec![None; PLACES] }
    }

    #[inline]
    pub(crate) fn get(&mut self, code: &mut impl Code, addr: u64) -> Place {
        let index = (addr.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 52) as usize % PLACES;
        match &self.entries[index] {
            Some((known, place)) if *known == addr => *place,
            _ => {
                let place = code.place(addr);
                self.entries[index] = Some((addr, place));
                place
            }
        }
    }
}

/// Sites that were asked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sites {
    known: Vec<Option<Site>>,
}

impl Sites {
    #[inline]
    pub(crate) fn get(&mut self, code: &mut impl Code, id: SiteId) -> Site {
        match self.known.get(id.0 as usize) {
            Some(Some(site)) => *site,
            _ => self.learn(code, id),
        }
    }

    #[cold]
    fn learn(&mut self, code: &mut impl Code, id: SiteId) -> Site {
        let site = code.site(id);
        let index = id.0 as usize;
        if index >= self.known.len() {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some(site);
        site
    }
}
