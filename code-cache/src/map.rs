//! What is known of the guest's memory: what is executable, the modules that it belongs to, and pages whose code may change
//! without a system call, which are protected against writes once they have been translated. What is known is void as soon
//! as mappings change; whoever changes them says so here.

use std::path::PathBuf;
use std::sync::Arc;

use grind_codegen as emit;
use grind_fragments::code_reader::VSYSCALL_PAGE;
use grind_layout as layout;
use grind_ptrace::Memory;
use grind_ptrace::maps::Region;
use grind_trace::objects::Allocator;
use grind_types::MappedFile;
use grind_types::Module;
use grind_types::addr::GuestAddr;
use grind_types::frames::FrameHook;
use nix::libc;

use super::{CallStop, CodeCache, ExecRange, Protected};

/// Up to where memory can be executed from `pc` on without a gap; `pc` itself, if it cannot.
pub(super) fn executable_until(ranges: &[ExecRange], pc: GuestAddr) -> GuestAddr {
    if pc.page() == VSYSCALL_PAGE {
        return VSYSCALL_PAGE.plus(0x1000);
    }
    let mut end = pc;
    // They are in order.
    let first = ranges.partition_point(|r| r.end <= pc);
    for r in &ranges[first..] {
        if r.start > end {
            break;
        }
        end = r.end;
    }
    end
}

impl CodeCache {
    /// Whether `pc` is in executable memory, as far as is known.
    pub fn executable(&self, pc: GuestAddr) -> bool {
        pc.page() == VSYSCALL_PAGE || self.range_of(pc).is_some()
    }

    /// Whether code at `pc` can be translated without asking anything of the guest.
    pub fn is_ordinary(&self, pc: GuestAddr) -> bool {
        self.executable(pc) && !self.self_modifying(pc) && self.has_chunk_for(pc)
    }

    /// Addresses of executable memory that no chunk is near.
    pub fn out_of_reach(&self) -> Vec<GuestAddr> {
        self.ranges.iter().map(|r| r.start).filter(|&pc| pc != VSYSCALL_PAGE && !self.has_chunk_for(pc)).collect()
    }

    /// Whether any of `start..end` is executable memory, as far as is known.
    pub fn executable_in(&self, start: GuestAddr, end: GuestAddr) -> bool {
        self.ranges.iter().any(|r| start < r.end && r.start < end)
    }

    /// Whether there is any code that may change without a system call.
    pub fn any_self_modifying(&self) -> bool {
        self.ranges.iter().any(|r| r.self_modifying) || !self.once_writable.is_empty()
    }

    /// Whether code at `pc` may change without a system call.
    pub fn self_modifying(&self, pc: GuestAddr) -> bool {
        self.range_of(pc).is_some_and(|r| r.self_modifying) || self.once_writable.contains(&pc.page())
    }

    /// Pages that the last translation took self-modifying code from and that are not protected yet, with the file and offset
    /// that they show if they are shared.
    pub fn fresh_pages(&mut self) -> Vec<(GuestAddr, Option<(u64, u64)>)> {
        let pages = std::mem::take(&mut self.fresh);
        pages
            .into_iter()
            .filter(|p| self.self_modifying(*p) && !self.protected.contains_key(p))
            .map(|p| {
                (p, self.range_of(p).and_then(|r| r.shared.map(|(file, offset)| (file, offset + p.since(r.start)))))
            })
            .collect()
    }

    /// Whether the last translation still is what the guest's memory says. What is not, is dead afterwards.
    pub fn still_true(&mut self, memory: &Memory) -> bool {
        let batch = std::mem::take(&mut self.batch);
        let mut fine = true;
        for b in &batch.blocks {
            for insn in batch.insns_of(b) {
                let mut now = [0; 16];
                let bytes = insn.bytes();
                if memory.read(insn.pc().0, &mut now[..bytes.len()]) != bytes.len() || now[..bytes.len()] != *bytes {
                    self.kill_range(insn.pc(), insn.next());
                    fine = false;
                }
            }
        }
        self.batch = batch;
        fine
    }

    /// Whether the page of `address` is, or has been, protected.
    pub fn once_protected(&self, address: GuestAddr) -> bool {
        self.once_writable.contains(&address.page())
    }

    /// Whether any page of `start..end` is, or has been, protected.
    pub fn once_protected_in(&self, start: GuestAddr, end: GuestAddr) -> bool {
        self.once_writable.range(start.page()..end.max(start)).next().is_some()
    }

    /// Takes note that a page has been protected.
    pub fn protect(&mut self, page: GuestAddr, how: Protected) {
        if self.once_writable.insert(page) {
            // Windows that were read before may not be kept any longer.
            self.code.clear();
        }
        self.protected.insert(page, how);
    }

    /// How the page of `address` has been protected against writes, if it has.
    pub fn protection(&self, address: GuestAddr) -> Option<Protected> {
        self.protected.get(&address.page()).copied()
    }

    /// Whether any page is protected at present.
    pub fn protects(&self) -> bool {
        !self.protected.is_empty()
    }

    /// The page may be written to again.
    pub fn unprotect(&mut self, page: GuestAddr) {
        self.protected.remove(&page);
    }

    /// Protected pages in `start..end`.
    pub fn protected_in(&self, start: GuestAddr, end: GuestAddr) -> Vec<(GuestAddr, Protected)> {
        self.protected.range(start.page()..end.max(start)).map(|(&p, &how)| (p, how)).collect()
    }

    /// The mappings of these pages have changed: what was known about them is void.
    pub fn unprotect_range(&mut self, start: GuestAddr, end: GuestAddr) {
        self.protected.retain(|&p, _| p < start.page() || p >= end);
        self.once_writable.retain(|&p| p < start.page() || p >= end);
    }

    /// Whether the program has made the code at `pc`.
    pub fn is_made(&self, pc: GuestAddr) -> bool {
        self.range_of(pc).is_some_and(|r| self.modules[r.module as usize].is_made())
    }

    /// Whether it has made any that can be executed now.
    pub fn has_made(&self) -> bool {
        self.ranges.iter().any(|r| self.modules[r.module as usize].is_made())
    }

    /// The module of `pc`.
    pub fn module_at(&self, pc: GuestAddr) -> Option<u32> {
        Some(self.range_of(pc)?.module)
    }

    /// The file that a module is of, if any, and where in memory its beginning is.
    pub fn place_of(&self, module: u32) -> Option<(Arc<MappedFile>, u64)> {
        let m = self.modules.get(module as usize)?;
        Some((m.file.clone()?, m.start.0.wrapping_sub(m.offset)))
    }

    pub(super) fn range_of(&self, pc: GuestAddr) -> Option<&ExecRange> {
        self.ranges.iter().find(|r| r.contains(pc))
    }

    /// Takes over the guest's memory map. `image` reads the vDSO, `file` opens what is behind a mapping.
    pub fn learn_map(
        &mut self,
        regions: &[Region],
        image: impl Fn(u64, u64) -> Option<Vec<u8>>,
        mut file: impl FnMut(&Region) -> Option<Arc<MappedFile>>,
    ) {
        self.ranges.clear();
        self.code.clear();
        self.trace.map_changed = true;
        self.maps_learnt += 1;
        for r in regions.iter().filter(|r| r.exec) {
            let path = r.path();
            let vdso = r.name == b"[vdso]";
            if r.name == b"[heap]" {
                // Nobody needs to know of heaps that hold no code.
                self.stop_before(libc::SYS_brk, CallStop::Served, true);
            }
            // All anonymous memory is one module: there may be any number of such mappings, one after the other.
            let anonymous = path.is_none() && !vdso;
            let (start, end, offset) = if anonymous { (0, u64::MAX, 0) } else { (r.start, r.end, r.offset) };
            let known = self.modules.iter().position(|m| {
                m.start.0 == start
                    && m.end.0 == end
                    && m.offset == offset
                    && m.path == path
                    && m.file.as_ref().is_none_or(|file| file.is_behind(r.device, r.inode))
            });
            let module = known.unwrap_or_else(|| {
                let image = vdso.then(|| image(r.start, r.end)).flatten().map(Arc::from);
                let file = file(r);
                self.modules.push(Module { path, file, image, start: GuestAddr(start), end: GuestAddr(end), offset });
                self.modules.len() - 1
            });
            self.ranges.push(ExecRange {
                start: GuestAddr(r.start),
                end: GuestAddr(r.end),
                module: module as u32,
                self_modifying: r.write || r.shared,
                shared: r.shared.then_some((r.inode, r.offset)),
            });
        }
        let told = self.trace.settings.calls.is_some() || self.trace.settings.every.is_some();
        if !self.pairs && !self.pairs_due && !told && self.is_large() && emit::extracts_fast() {
            self.pair();
        }
    }

    /// Whether so much of files is executable that the processor cannot remember where returns have led.
    fn is_large(&self) -> bool {
        let files = self.ranges.iter().filter(|r| self.modules[r.module as usize].path.is_some());
        files.map(|r| r.end.since(r.start)).sum::<u64>() >= self.pairs_from
    }

    /// The vsyscall page is in no map on some kernels; it gets a module when code of it runs.
    pub(super) fn module_for_vsyscall(&mut self) {
        if self.range_of(VSYSCALL_PAGE).is_none() {
            self.modules.push(Module {
                path: None::<PathBuf>,
                file: None,
                image: None,
                start: VSYSCALL_PAGE,
                end: VSYSCALL_PAGE.plus(4096),
                offset: 0,
            });
            if self.hooks.modules() + 1 == self.modules.len() {
                self.hooks.add_module(Vec::new());
            }
            if self.boundaries.len() + 1 == self.modules.len() {
                self.boundaries.push(Arc::new([]));
            }
            let module = (self.modules.len() - 1) as u32;
            self.ranges.push(ExecRange {
                start: VSYSCALL_PAGE,
                end: VSYSCALL_PAGE.plus(4096),
                module,
                self_modifying: false,
                shared: None,
            });
        }
    }

    /// Modules whose boundaries are not known yet.
    pub fn unbounded_modules(&self) -> &[Module] {
        &self.modules[self.boundaries.len()..]
    }

    /// Takes note of the boundaries of the first module that has none yet.
    pub fn add_boundaries(&mut self, mut list: Vec<u64>) {
        let known = list.len();
        list.extend(self.hooks.places(self.boundaries.len()));
        if list.len() > known {
            list.sort_unstable();
            list.dedup();
        }
        self.boundaries.push(list.into());
    }

    /// Modules whose allocators are not known yet.
    pub fn unwatched_modules(&self) -> &[Module] {
        &self.modules[self.watched.modules().min(self.modules.len())..]
    }

    /// Takes note of the allocators of the first module of which they are not known.
    pub fn add_watched(&mut self, list: Vec<(u64, Allocator)>) {
        self.watched.add_module(list);
    }

    /// The allocator that begins at `pc`.
    pub fn allocator_at(&self, pc: GuestAddr) -> Option<Allocator> {
        self.watched.allocator(self.range_of(pc)?.module, pc.0)
    }

    /// The module of the code at `pc`, or [`u32::MAX`].
    pub fn module_number(&self, pc: GuestAddr) -> u32 {
        self.range_of(pc).map_or(u32::MAX, |r| r.module)
    }

    /// Modules whose hooks of interpreters are not known yet.
    pub fn unhooked_modules(&self) -> &[Module] {
        &self.modules[self.hooks.modules().min(self.modules.len())..]
    }

    /// Takes note of the hooks of the first module of which they are not known. Blocks begin there, so its boundaries must not be
    /// known yet either: they are added to those ([`CodeCache::add_boundaries`]).
    pub fn add_hooks(&mut self, list: Vec<(u64, FrameHook)>) {
        self.hooks.add_module(list);
    }

    /// The hook at `pc`, and its module.
    pub fn hook_at(&self, pc: GuestAddr) -> Option<(FrameHook, &Module)> {
        let module = self.range_of(pc)?.module;
        Some((self.hooks.at(module, pc.0)?, self.modules.get(module as usize)?))
    }

    /// Whether emitted code knows the code object of an interpreter at `address`.
    pub fn knows_code(&self, address: GuestAddr) -> bool {
        self.tables.load_u64(layout::frame_code_entry(address.0) as usize) == address.0
    }

    /// From now on it does, or not any more.
    pub fn know_code(&self, address: GuestAddr, known: bool) {
        self.tables.store_u64(layout::frame_code_entry(address.0) as usize, if known { address.0 } else { 0 });
    }

    /// A call of an allocator will return to `pc`: what is translated of that from now on records when it does, and emitted code
    /// knows of the place, if there is room for it.
    pub fn watch_return(&mut self, pc: GuestAddr) {
        if self.watched.add_return(pc.0) {
            self.kill_range(pc, GuestAddr(pc.0.saturating_add(1)));
        }
        // Where callers tell blocks apart, each call stops.
        if self.trace.recorded.alloc_depth > 1 {
            return;
        }
        let entry = |probe| (layout::ALLOCATOR_RETURNS + (pc.0 % layout::ALLOCATOR_ENTRIES + probe) * 8) as usize;
        for at in (0..layout::ALLOCATOR_PROBES).map(entry) {
            match self.tables.load_u64(at) {
                0 => return self.tables.store_u64(at, pc.0),
                known if known == pc.0 => return,
                _ => {}
            }
        }
    }

    /// Calls of allocators stop from here on: there are several threads, or what is recorded does not say whose calls they are.
    pub fn stop_allocators(&self) {
        self.tables.store_u64(layout::ALLOCATORS_STOP as usize, 1);
    }

    /// What is executable at present.
    pub fn mapped_modules(&self) -> Vec<Module> {
        let piece = |r: &ExecRange| {
            let m = self.modules[r.module as usize].clone();
            // Anonymous memory is one module, whatever of it is mapped.
            let offset = m.offset.wrapping_add(r.start.since(m.start));
            Module { start: r.start, end: r.end, offset, ..m }
        };
        self.ranges.iter().map(piece).collect()
    }

    /// Whether translations hang on the memory of `start..end`, and not only on code there.
    pub fn relies_on(&self, start: GuestAddr, end: GuestAddr) -> bool {
        self.fixed.borrow().used_in(start, end)
    }

    /// Mappings that no translation hangs on are about to change: forgets code that was read there, but not translated.
    /// `opened`: it can be written to from now on.
    pub fn drop_unused(&mut self, start: GuestAddr, end: GuestAddr, opened: bool) {
        self.code.clear();
        self.fixed.get_mut().forget(start, end);
        if opened {
            self.fixed.get_mut().open(start, end);
        }
    }

    /// Forgets what is known about executable mappings: the next translation asks again.
    pub fn forget_map(&mut self) {
        self.code.clear();
        self.ranges.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn executable_memory_ends_at_the_first_gap() {
        let range = |start, end| ExecRange {
            start: GuestAddr(start),
            end: GuestAddr(end),
            module: 0,
            self_modifying: false,
            shared: None,
        };
        let ranges = [range(0x1000, 0x3000), range(0x3000, 0x4000), range(0x6000, 0x7000)];
        let until = |pc| executable_until(&ranges, GuestAddr(pc)).0;
        assert_eq!([0x1000, 0x2fff, 0x3000, 0x6abc].map(until), [0x4000, 0x4000, 0x4000, 0x7000]);
        // Nothing is there.
        assert_eq!([0xfff, 0x4000, 0x5fff, 0x7000].map(until), [0xfff, 0x4000, 0x5fff, 0x7000]);
        assert_eq!(until(VSYSCALL_PAGE.0 + 0x400), VSYSCALL_PAGE.0 + 0x1000);
    }
}
