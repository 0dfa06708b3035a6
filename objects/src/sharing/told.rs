//! Lines that the threads of a process share, as records tell of them: of every access, or only of those that use bytes
//! in a way in which their thread is not known to have used them ([`BYTES_USED`]), beside those of repeated and special
//! instructions, which tell of all that they have done.
//!
//! Nothing is simulated here. Invariant: a thread's records are gone through with its own number, and only while others live.

use cg_sim::sharing::Move;
use grind_trace::every::Touched;
use grind_trace::every::repeated::runs;
use grind_trace::{
    BYTES_WORDS, Done, LINE_READ, LINE_UNPLACED, LINE_UPGRADED, LINE_WRITTEN, MOVED_WORDS, Site, SiteKind, Special,
    Target, operands,
};
use grind_types::Tid;

use super::{Found, Sharing, Use};
use crate::{Images, Objects};

/// What records are of.
#[derive(Clone, Copy, Debug)]
pub struct Sites<'a> {
    /// By number.
    pub all: &'a [Site],
    /// The special ones.
    pub specials: &'a [Special],
    /// What is mapped.
    pub images: &'a Images,
}

/// The objects of a process, where uses are told by object.
pub type Lying<'a> = Option<&'a mut Objects>;

/// See the module's description.
#[derive(Clone, Debug, Default)]
pub struct Shared {
    lines: Option<Box<Sharing>>,
    /// The number of the thread whose records are gone through, if others live.
    running: Option<u32>,
    /// Bytes of the widest access.
    most: u16,
}

impl Shared {
    /// Nothing has been shared so far; nothing is looked for without `lines`. `most`: of wider accesses only so many bytes count.
    #[must_use]
    pub fn new(lines: Option<Sharing>, most: u16) -> Self {
        Self { lines: lines.map(Box::new), running: None, most }
    }

    /// Records of this thread are next.
    pub fn runs(&mut self, tid: Tid) {
        self.running = self.lines.as_ref().and_then(|lines| lines.sharer(tid));
    }

    /// Keeps only what a child has that thread `tid` has created.
    pub fn forked(&mut self, tid: Tid, child: Tid) {
        self.lines.iter_mut().for_each(|lines| lines.forked(tid, child));
    }

    /// Nothing has been found so far.
    pub fn forget(&mut self) {
        self.lines.iter_mut().for_each(|lines| lines.forget());
    }

    /// A thread begins.
    pub fn thread_born(&mut self, tid: Tid) {
        self.lines.iter_mut().for_each(|lines| lines.born(tid));
    }

    /// A thread has ended.
    pub fn thread_ended(&mut self, tid: Tid) {
        self.lines.iter_mut().for_each(|lines| lines.ended(tid));
    }

    /// Files are mapped elsewhere from now on.
    pub fn mapped(&mut self) {
        self.lines.iter_mut().for_each(|lines| lines.look_again());
    }

    /// Lines begin anew where blocks have come or gone.
    pub fn close(&mut self, objects: Lying<'_>) {
        if let (Some(lines), Some(objects)) = (&mut self.lines, objects) {
            objects.changes().for_each(|place| lines.close(place));
        }
    }

    /// What has been shared.
    pub fn found(&mut self, sites: &[Site]) -> Option<Found> {
        let at = |n: u32| sites.get(n as usize).map(|site| crate::Site { module: site.module, addr: site.addr.0 });
        let nowhere = crate::Site { module: u32::MAX, addr: 0 };
        Some(self.lines.take()?.found(|n| at(n).unwrap_or(nowhere)))
    }

    /// The thread makes an access.
    #[inline]
    pub fn touch(&mut self, objects: Lying<'_>, sites: Sites<'_>, touched: Touched) {
        let Touched { site, done, addr, size } = touched;
        self.used(objects, sites, Use { site, done, addr, size, times: 1 });
    }

    #[inline]
    fn used(&mut self, objects: Lying<'_>, sites: Sites<'_>, used: Use) {
        if let (Some(lines), Some(number)) = (&mut self.lines, self.running) {
            let at = || {
                let site = &sites.all[used.site as usize];
                crate::Site { module: site.module, addr: site.addr.0 }
            };
            let objects: Option<(&mut Objects, &Images)> = objects.map(|objects| (objects, sites.images));
            lines.touch(number, used, at, objects);
        }
    }

    /// A record of bytes that are used. The words behind it.
    pub fn bytes_used<'w>(&mut self, objects: Lying<'_>, sites: Sites<'_>, record: &'w [u32]) -> Option<&'w [u32]> {
        let (record, rest) = record.split_at_checked(BYTES_WORDS)?;
        let (site, addr) = (record[1], operands::joined(record[2], record[3]));
        let (done, size) = match sites.all.get(site as usize)?.kind {
            SiteKind::Read(size) => (Done::Read, size),
            SiteKind::Write(size) => (Done::Write, size),
            SiteKind::Modify(size) => (Done::Modify, size),
            _ => return None,
        };
        self.touch(objects, sites, Touched { site, done, addr, size: size.min(self.most) });
        Some(rest)
    }

    /// A record of a line that has come to the thread. The words behind it.
    pub fn line_moved<'w>(&mut self, objects: Lying<'_>, sites: Sites<'_>, record: &'w [u32]) -> Option<&'w [u32]> {
        let (record, rest) = record.split_at_checked(MOVED_WORDS)?;
        let (site, addr) = (record[1], operands::joined(record[2], record[3]));
        let site = sites.all.get(site as usize)?;
        if let (Some(lines), Some(number)) = (&mut self.lines, self.running) {
            // Who has ended has no line any more.
            let from = lines.living(Tid(record[5].cast_signed()));
            let how = match record[4] {
                LINE_READ => from.map(Move::Read).map(Some),
                LINE_WRITTEN => from.map(Move::Written).map(Some),
                LINE_UPGRADED => Some(Some(Move::Upgraded)),
                LINE_UNPLACED => Some(None),
                _ => return None,
            };
            let at = || crate::Site { module: site.module, addr: site.addr.0 };
            let objects: Option<(&mut Objects, &Images)> = objects.map(|objects| (objects, sites.images));
            if let Some(how) = how {
                lines.moved(number, addr, how, at, objects);
            }
        }
        Some(rest)
    }

    /// What an instruction has done that tells of all its accesses by itself, if it is one of those.
    pub fn done(&mut self, mut objects: Lying<'_>, sites: Sites<'_>, number: u32, record: &[u32]) {
        if self.running.is_none() {
            return;
        }
        let kind = sites.all[number as usize].kind;
        match kind {
            SiteKind::Special { index, .. } => {
                let made = sites.specials.get(index as usize).map(|special| special.touches(record));
                for made in made.unwrap_or_default() {
                    let behind = match made.done {
                        Done::Read => 1,
                        Done::Write => 2,
                        Done::Modify => 3,
                    };
                    let size = u16::try_from(made.size).unwrap_or(u16::MAX).min(self.most);
                    let used = Use { site: number + behind, done: made.done, addr: made.address, size, times: 1 };
                    self.used(objects.as_deref_mut(), sites, used);
                }
            }
            SiteKind::Repeated { target, size, .. } => runs(kind, record, |at_target, addr, times| {
                let done = if at_target && target == Target::Write { Done::Write } else { Done::Read };
                let site = number + 1 + u32::from(at_target);
                let used = Use { site, done, addr, size: size.into(), times };
                self.used(objects.as_deref_mut(), sites, used);
            }),
            _ => {}
        }
    }
}
