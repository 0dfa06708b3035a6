//! Code that changes without a system call: on pages that are executable and also writable or shared, and on those that have
//! been protected once (`CodeCache::learn_map` in `code_cache::map` says which).
//! Once such a page's code has been translated, the guest may not write to it any more, through none of its mappings; the
//! write that faults gives the page back and makes its translations dead. What a page held is not compared
//! with what it holds: a write is taken for a change. (Only code that was read beside running threads is looked at once more.)
//!
//! A system call that is to write into a protected page fails with EFAULT; it is made once more with the pages open
//! (`syscall`). The same goes for the page that a signal's frame is built on.
//!
//! Not seen: writes by another process through a shared file.

use std::cell::RefCell;
use std::rc::Rc;

use grind_code_cache::{CodeCache, Protected};
use grind_fragments::fragment_table::FragmentId;
use grind_guest::image::Remote;
use grind_guest::recover;
use grind_ptrace::kinds::address_of;
use grind_ptrace::maps;
use grind_ptrace::{How, Regs, Stopped};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::subject;
use nix::libc;

use super::Dispatcher;

impl Dispatcher<'_> {
    /// Whether a fault is a write to a page that has been protected.
    pub(super) fn write_to_code(&self, t: &Stopped, info: &libc::siginfo_t) -> bool {
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return false };
        code_cache.borrow().protection(GuestAddr(address_of(info))).is_some()
    }

    /// Whether a fault was caused by a protection that has been taken back meanwhile, for another thread's write: by now the
    /// page is writable.
    pub(super) fn stale_protection(&self, t: &Stopped, info: &libc::siginfo_t) -> bool {
        let address = address_of(info);
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return false };
        code_cache.borrow().once_protected(GuestAddr(address))
            && maps::read(t.tid())
                .unwrap_or_default()
                .iter()
                .any(|r| address >= r.start && address < r.end && r.read && r.write)
    }

    fn mprotect(&self, t: Stopped, code_cache: &Rc<RefCell<CodeCache>>, pages: &[(GuestAddr, i32)]) -> Option<Stopped> {
        let Some(p) = self.process_of(t.tid()) else { return Some(t) };
        let gadget = code_cache.borrow().gadget;
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        for &(page, prot) in pages {
            remote.raw(libc::SYS_mprotect, [page.0, 4096, prot as u64, 0, 0, 0]);
        }
        remote.thread
    }

    /// Makes the page that was written to writable again, forgets its translations, and runs the write again.
    pub(super) fn allow_write(&mut self, t: Stopped, info: &libc::siginfo_t, regs: Regs) {
        log::debug!(target: subject::SMC, "thread {} writes to code at {:#x}", t.tid(), address_of(info));
        let Some(t) = self.open_page(t, info) else { return };
        let tid = t.tid();
        self.expect_discards(tid);
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return };
        let place = code_cache.borrow().trans.place(CacheAddr(regs.rip));
        if !place.is_some_and(|p| code_cache.borrow().trans.block(p.block).dead) {
            t.go_on(How::Continue, 0);
            return;
        }
        // The block that writes is one that has just been forgotten: its rest must not run from the old copy. If it were
        // translated anew before the write, its page would be protected again: the write runs in its original place.
        let (Some(th), Some(p)) = (self.threads.get(&tid), self.process_of(tid)) else { return };
        let (slot, pool) = (th.slot, p.pool.clone());
        let mut regs = regs;
        let b = recover::at_fault(&code_cache.borrow(), &mut regs, |o| pool.borrow().slot_word_at(slot, u16::from(o)));
        let Some(mut b) = b else { return };
        let pc = code_cache.borrow().trans.pc_of(b.block, b.executed);
        b.executed += 1;
        self.correct(tid, &b, &regs);
        self.in_place(t, regs, pc, b.block, Some(b.executed));
    }

    /// As [`Dispatcher::allow_write`], for an instruction that is being run in its original place.
    pub(super) fn write_in_place(
        &mut self,
        t: Stopped,
        info: &libc::siginfo_t,
        regs: Regs,
        block: FragmentId,
        executed: u16,
    ) {
        if let Some(t) = self.open_page(t, info) {
            let pc = regs.rip;
            self.in_place(t, regs, GuestAddr(pc), block, Some(executed));
        }
    }

    /// Opens what the kernel is about to build a signal's frame on: the stack below rsp.
    pub(super) fn open_frame(&mut self, t: Stopped) -> Option<Stopped> {
        /// More than a frame with the largest vector state (AMX) takes.
        const FRAME: u64 = 16 << 10;
        let protects = self.code_cache_and_state(t.tid()).is_some_and(|(s, _)| s.borrow().protects());
        if !protects {
            return Some(t);
        }
        let rsp = t.regs().ok()?.rsp;
        let info = t.siginfo();
        let t = self.open_range(t, GuestAddr(rsp.saturating_sub(FRAME)), GuestAddr(rsp))?;
        if let Ok(info) = info {
            // It may have made system calls since.
            let _ = t.set_siginfo(&info);
        }
        Some(t)
    }

    fn open_page(&mut self, t: Stopped, info: &libc::siginfo_t) -> Option<Stopped> {
        let page = address_of(info) & !0xfff;
        self.open_range(t, GuestAddr(page), GuestAddr(page + 1))
    }

    /// Gives all protected pages in `start..end` back to the guest; their translations are dead.
    pub(super) fn open_range(&mut self, t: Stopped, start: GuestAddr, end: GuestAddr) -> Option<Stopped> {
        let t = self.own_code_cache(t)?;
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return Some(t) };
        let pages = code_cache.borrow().protected_in(start, end);
        if !pages.is_empty() {
            self.tell_code(t.tid(), &code_cache);
        }
        for (page, how) in &pages {
            code_cache.borrow_mut().kill_range(how.code, how.code.plus(4096));
            code_cache.borrow_mut().unprotect(*page);
        }
        let pages: Vec<_> = pages.iter().map(|(page, how)| (*page, how.prot)).collect();
        self.mprotect(t, &code_cache, &pages)
    }

    /// Takes the right to write away from pages whose code has just been translated, in all their mappings.
    pub(super) fn protect_code(&mut self, t: Stopped, code_cache: &Rc<RefCell<CodeCache>>) -> Option<Stopped> {
        let fresh = code_cache.borrow_mut().fresh_pages();
        if fresh.is_empty() {
            return Some(t);
        }
        let mut calls = Vec::new();
        let regions = maps::read(t.tid()).unwrap_or_default();
        for (code, file) in fresh {
            for r in regions.iter().filter(|r| r.write) {
                let page = match file {
                    _ if (r.start..r.end).contains(&code.0) => code,
                    Some((inode, offset))
                        if r.shared
                            && r.inode == inode
                            && offset >= r.offset
                            && offset - r.offset < r.end - r.start =>
                    {
                        GuestAddr(r.start + (offset - r.offset))
                    }
                    _ => continue,
                };
                let read = if r.read { libc::PROT_READ } else { 0 };
                let exec = if r.exec { libc::PROT_EXEC } else { 0 };
                code_cache.borrow_mut().protect(page, Protected { code, prot: read | libc::PROT_WRITE | exec });
                calls.push((page, read | exec));
            }
        }
        self.mprotect(t, code_cache, &calls)
    }
}
