//! Calls and returns as calls and returns of the processor's own, so that it predicts by its stack of return addresses where a
//! return leads. A call pushes the guest's return address, as ever, and then calls the callee's translation, which first
//! takes back what that has pushed. Right behind it stands the IBL target for its return. A return looks its IBL target up by the
//! guest's return address, which it leaves where it is, pushes that and returns to it, past both.
//!
//! Invariants: whoever gets to an IBL target has been led there by the table, never by what a call has pushed, so nothing depends
//! on calls and returns being in pairs; what is written to the guest's stack beside what the guest writes are the 8
//! bytes below its own return address, at the call and at the return, which belong to nobody then. If they cannot be written
//! it goes on as if they had been (`recover::own_push`). A guest address has one IBL target for returns that follows a call:
//! another translation of the same call goes on with the first one's.

use dynasmrt::{DynasmApi, dynasm};
use grind_asm::Asm;
use grind_fragments::fragment_table::{CallSite, Fragment, FragmentId, StateMapEntry, Way};
use grind_isa::decode::{Class, Insn};
use grind_layout::registers::Gpr;
use grind_layout::{self as layout, SlotWord};
use grind_types::addr::{CacheAddr, GuestAddr};

use std::arch::x86_64::__cpuid;
use std::sync::LazyLock;

use super::{Emitter, Fixup};

/// Bytes below the stack pointer that a call's return address takes.
const PUSHED: i32 = 8;

/// Whether the processor has PEXT, which this needs, as an instruction like others: before Zen 3, AMD's take hundreds of cycles.
pub fn extracts_fast() -> bool {
    static CAN: LazyLock<bool> = LazyLock::new(|| {
        let name = __cpuid(0);
        let amd = [AMD, HYGON].contains(&[name.ebx, name.edx, name.ecx]);
        let version = __cpuid(1).eax;
        let family = (version >> 8 & 0xf) + (version >> 20 & 0xff);
        std::is_x86_feature_detected!("bmi2") && !(amd && family < 0x19)
    });
    *CAN
}

/// `AuthenticAMD` and `HygonGenuine`, as CPUID says them.
const AMD: [u32; 3] = [0x6874_7541, 0x6974_6e65, 0x444d_4163];
const HYGON: [u32; 3] = [0x6f67_7948, 0x6e65_476e, 0x656e_6975];

/// Code for calls and returns that are pairs.
pub trait PairCode {
    /// Takes back what a call has pushed: the way in of whoever calls.
    fn called(&mut self);
}

impl PairCode for Asm {
    fn called(&mut self) {
        self.lea_disp(Gpr::RSP, Gpr::RSP, PUSHED);
    }
}

/// What a call of `b` leads to, where it has not been emitted with one.
pub fn emit_called(base: CacheAddr, b: &Fragment) -> Asm {
    let mut c = Asm { buf: Vec::with_capacity(16), base: base.0 };
    c.called();
    let field = c.jmp();
    c.patch_rel32(field, b.entry.0);
    c
}

impl Emitter<'_> {
    /// Calls and returns are pairs from now on, unless they are told or followed.
    #[inline(always)]
    pub fn in_pairs(mut self, yes: bool) -> Self {
        self.pairs = yes && !self.call_recorder.active();
        self
    }

    /// Where calls of the batch lead.
    pub(super) fn called_within(&self) -> Vec<GuestAddr> {
        let last = self.batch.blocks.iter().filter_map(|b| self.batch.insns_of(b).last());
        last.filter(|last| self.pairs && last.class == Class::Call).map(|last| last.target()).collect()
    }

    /// A call whose target is known.
    pub(super) fn call_direct(&mut self, insn: &Insn) {
        if !self.goes_on_with_call(insn) {
            self.begin_call(insn);
            self.out.code.align_field(1);
            self.state_map_entry(StateMapEntry::Called { in_rcx: false });
            let pos = self.out.code.call();
            self.out.fixups.push(Fixup { pos, target: insn.target(), to: None });
        }
    }

    /// A call through the table: rcx, which has been saved, has the number of the entry.
    pub(super) fn call_entry(&mut self, insn: &Insn) {
        if !self.goes_on_with_call(insn) {
            self.begin_call(insn);
            self.state_map_entry(StateMapEntry::Called { in_rcx: true });
            let table = (self.tables + Way::Call.table()) as i32;
            dynasm!(self.out.code; call QWORD [rcx * 8 + table]);
        }
    }

    /// Goes on with the translation of the same call that is there already, in the same state.
    fn goes_on_with_call(&mut self, insn: &Insn) -> bool {
        let Some(&there) = self.trans.call_sites.get(&insn.next()) else { return false };
        let rel = there.at.since(CacheAddr(self.out.code.here() + 5)) as i64;
        let alive = there.block.0 < self.trans.next_block().0 && !self.trans.block(there.block).dead;
        if !alive || i32::try_from(rel).is_err() {
            return false;
        }
        let pos = self.out.code.jmp();
        self.out.code.patch_rel32(pos, there.at.0);
        true
    }

    fn begin_call(&mut self, insn: &Insn) {
        let site = CallSite { at: CacheAddr(self.out.code.here()), block: self.current };
        self.trans.call_sites.insert(insn.next(), site);
        self.push_return(insn.next());
        self.returns_to = Some(insn.next());
    }

    /// Behind a block that ends with a call: where that returns to.
    pub(super) fn land_behind_call(&mut self, next_in_order: Option<GuestAddr>) {
        let Some(pc) = self.returns_to.take() else { return };
        self.out.ibl_target(pc, Way::Paired);
        self.go(pc, next_in_order, None);
    }

    /// A return: rcx has been saved, the return address is on the stack.
    pub(super) fn return_as_pair(&mut self) {
        let c = &mut self.out.code;
        let bits = (self.tables + layout::PAIR_BITS) as i32;
        dynasm!(c; mov ecx, [rsp]; pext ecx, ecx, [bits]);
        self.work.state_map.push((c.pos(), StateMapEntry::spilled(Gpr::RCX, SlotWord::Rcx)));
        let table = (self.tables + Way::Paired.table()) as i32;
        dynasm!(c; push QWORD [rcx * 8 + table]; ret PUSHED as i16);
    }

    /// Where a block of the table is called; it may have to be emitted. `None`: the block is too far away for that.
    pub(super) fn called_entry(&mut self, id: FragmentId) -> Option<CacheAddr> {
        let b = *self.trans.block(id);
        if b.called != CacheAddr(0) {
            return Some(b.called);
        }
        let base = CacheAddr(self.out.code.here());
        i32::try_from(b.entry.since(base) as i64).ok()?;
        let code = emit_called(base, &b);
        self.out.code.bytes(&code.buf);
        self.trans.set_called(id, base);
        Some(base)
    }
}
