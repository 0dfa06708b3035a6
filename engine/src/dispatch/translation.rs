//! Code for a thread that has got to where none is translated: the memory map is learnt, the address space gets a code cache of its
//! own where one cannot be shared any more, room is made, and the fragment is there.
//!
//! Invariants: what has been mapped since processes parted is learnt, and translated, by one of them alone; a page of code that may
//! change is protected before its translation runs, and holds then what was translated.

use std::cell::RefCell;
use std::rc::Rc;

use grind_code_cache::CodeCache;
use grind_fragments::fragment_table::FragmentId;
use grind_guest::image::{self, Remote};
use grind_ptrace::maps;
use grind_ptrace::{self as tracee, Stopped};
use grind_session::Notice;
use grind_trace::follow::CallContextId;
use grind_types::Module;
use grind_types::addr::GuestAddr;
use grind_types::subject;
use grind_types::{EngineError, Pid, Tid};

use super::Dispatcher;
use super::announce::announce;

impl Dispatcher<'_> {
    /// The translation of `pc`, made now if need be. The thread may be asked to make system calls; `None` for it if it
    /// died over that; `None` for the block if no code is there.
    pub(super) fn translation(
        &mut self,
        t: Stopped,
        pc: GuestAddr,
        call_context: CallContextId,
    ) -> (Option<Stopped>, Option<FragmentId>) {
        let Some((code_cache, _)) = self.code_cache_and_state(t.tid()) else { return (Some(t), None) };
        if let Some(id) = code_cache.borrow().trans.lookup(pc, call_context) {
            return (Some(t), Some(id));
        }
        let Some(pid) = self.threads.get(&t.tid()).map(|th| th.pid) else { return (Some(t), None) };
        let (mut t, mut code_cache) = (t, code_cache);
        if !code_cache.borrow().executable(pc) {
            // What has been mapped since processes parted is in one of them alone: others must neither be taken to have it nor run
            // translations of it.
            match self.own_code_cache(t) {
                Some(thread) => t = thread,
                None => return (None, None),
            }
            let Some((own, _)) = self.code_cache_and_state(t.tid()) else { return (Some(t), None) };
            code_cache = own;
            self.learn_map(t.tid(), &code_cache);
            if !code_cache.borrow().executable(pc) {
                return (Some(t), None);
            }
        }
        let self_modifying = code_cache.borrow().self_modifying(pc);
        if !code_cache.borrow().has_chunk_for(pc) || self_modifying && code_cache.borrow().users > 1 {
            // Neither can be done for another process that shares the translations.
            match self.own_code_cache(t) {
                Some(thread) => t = thread,
                None => return (None, None),
            }
            let Some((own, _)) = self.code_cache_and_state(t.tid()) else { return (Some(t), None) };
            code_cache = own;
            match self.chunk_near(t, pid, &code_cache, pc) {
                Some(thread) => t = thread,
                None => return (None, None),
            }
        }
        self.note_made(t.tid(), &code_cache, pc);
        let Some(p) = self.processes.get(&pid) else { return (Some(t), None) };
        let id = code_cache.borrow_mut().translate(pc, call_context, &p.memory);
        log::trace!(target: subject::DISPATCH, "thread {} gets a translation of {pc:#x}: {id:?}", t.tid());
        if code_cache.borrow().is_full() {
            self.full = Some(pid);
        }
        if id.is_none() && p.memory.array::<1>(pc.0).is_some() {
            // Code is there: it must never run as it is.
            let source = std::io::Error::other("the code cache, or its counters, are used up");
            return (self.give_up(Some(t), EngineError::NoMemory { what: "code cache", source }), None);
        }
        if id.is_some() && code_cache.borrow().self_modifying(pc) {
            let Some(t) = self.protect_code(t, &code_cache) else { return (None, None) };
            // Another thread may have written between the reading and the protecting; from now on it cannot.
            let Some(p) = self.processes.get(&pid) else { return (Some(t), None) };
            if p.threads.len() > 1 && !code_cache.borrow_mut().still_true(&p.memory) {
                return self.translation(t, pc, call_context);
            }
            return (Some(t), id);
        }
        (Some(t), id)
    }

    /// Makes sure that there is a chunk for code at `pc`. `None`: the thread died, or cannot go on.
    pub(super) fn chunk_near(
        &mut self,
        t: Stopped,
        pid: Pid,
        code_cache: &Rc<RefCell<CodeCache>>,
        pc: GuestAddr,
    ) -> Option<Stopped> {
        if code_cache.borrow().has_chunk_for(pc) {
            return Some(t);
        }
        self.make_room_for_chunk(pid);
        let Some(p) = self.processes.get(&pid) else { return Some(t) };
        let gadget = code_cache.borrow().gadget;
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        let r = image::add_chunk(&mut remote, &mut code_cache.borrow_mut(), pc);
        let thread = remote.thread.take();
        match r {
            Ok(()) => thread,
            Err(e) => self.give_up(thread, e),
        }
    }

    /// Takes over the memory map of the process of `tid`, which has not ended: the first thread may have, and shows none then.
    pub(super) fn learn_map(&mut self, tid: Tid, code_cache: &Rc<RefCell<CodeCache>>) {
        let Some(pid) = self.threads.get(&tid).map(|th| th.pid) else { return };
        let Some(p) = self.processes.get(&pid) else { return };
        let files = &mut self.files;
        let Ok(regions) = maps::read(tid) else { return };
        let chunks: Vec<u64> = code_cache.borrow().chunks.iter().map(|c| c.guest.0).collect();
        let regions: Vec<_> = regions.into_iter().filter(|r| !chunks.contains(&r.start)).collect();
        if let Some(trace_channel) = &self.trace_channel {
            // What has been translated is of what was there before.
            announce(trace_channel, &mut code_cache.borrow_mut());
        }
        let known = code_cache.borrow().modules.len();
        let image = |start, end| {
            let mut image = vec![0; (end - start) as usize];
            (p.memory.read(start, &mut image) == image.len()).then_some(image)
        };
        code_cache.borrow_mut().learn_map(&regions, image, |r| files.of(tid, &p.memory, r));
        let new = code_cache.borrow().modules[known..].to_vec();
        for module in &new {
            self.session.mapped(module);
        }
        self.files
            .complain(new.iter().filter_map(Module::mapped), |text| self.session.notice(pid, Notice::Warning(text)));
        if self.settings.trace.objects {
            let new = code_cache.borrow().unwatched_modules().to_vec();
            for module in new {
                let list = self.session.watched(&module);
                code_cache.borrow_mut().add_watched(list);
            }
        }
        if self.settings.trace.frames() {
            let new = code_cache.borrow().unhooked_modules().to_vec();
            for module in new {
                let list = self.session.frame_hooks(pid, &module);
                code_cache.borrow_mut().add_hooks(list);
            }
        }
        if self.settings.trace.calls.is_some() {
            let new = code_cache.borrow().unbounded_modules().to_vec();
            for module in new {
                let list = self.session.boundaries(&module);
                code_cache.borrow_mut().add_boundaries(list);
            }
        }
    }

    /// Makes sure that no other address space uses this process's translations.
    pub(super) fn own_code_cache(&mut self, t: Stopped) -> Option<Stopped> {
        let tid = t.tid();
        let Some((code_cache, _)) = self.code_cache_and_state(tid) else { return Some(t) };
        if code_cache.borrow().users == 1 {
            return Some(t);
        }
        let Some(p) = self.process_of(tid) else { return Some(t) };
        let mm = p.mm.clone();
        let gadget = code_cache.borrow().gadget;
        let mut remote = Remote { thread: Some(t), gadget, memory: &p.memory };
        let own = image::diverge(&mut remote, &code_cache.borrow());
        let thread = remote.thread.take();
        match own {
            Ok(own) => {
                code_cache.borrow_mut().users -= 1;
                let own = Rc::new(RefCell::new(own));
                let moved: Vec<Pid> =
                    self.processes.values().filter(|p| Rc::ptr_eq(&p.mm, &mm)).map(|p| p.pid).collect();
                self.trace_copied(&code_cache, &own, &moved);
                for pid in moved {
                    if let Some(p) = self.processes.get_mut(&pid) {
                        p.code_cache = own.clone();
                        p.threads.iter().for_each(|&tid| tracee::settle(tid, &own.borrow().home));
                    }
                }
                thread
            }
            Err(e) => self.give_up(thread, e),
        }
    }
}
