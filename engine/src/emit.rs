//! A batch of found blocks to bytes. The guest's instructions are copied; around them stand one bump of a counter a block,
//! and what replaces transfers of control. Invariants: no guest flag, register or memory that the guest can see differs
//! from a native run at an instruction's boundary (but flags proved dead); nothing is pushed below rsp that the guest did
//! not push itself (red zone); a 32-bit field that may be patched later lies within one cache line.

use iced_x86::{Code, Encoder, Instruction, InstructionInfoFactory, OpAccess, OpKind, Register};

use crate::arena::{self, Scratch};
use crate::asm::{Asm, Gpr};
use crate::batch::{Batch, Found};
use crate::decode::{Class, Insn};
use crate::transtab::{Block, BlockId, Emulate, InsnShape, NO_REG, Point, Site, StubKind, TransTab};

/// Where one emitted branch leads, when it is not known yet.
#[derive(Clone, Copy, Debug)]
struct Fixup {
    /// Offset of the 32-bit field.
    pos: usize,
    /// Guest address that it leads to.
    target: u64,
}

/// A landing that was emitted: it becomes reachable through the indirect-branch table when the code is in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Landing {
    /// The guest address it is for.
    pub(crate) pc: u64,
    /// Offset of its first byte.
    pub(crate) pos: usize,
    /// Offset of the 64-bit number that is added to rcx.
    pub(crate) imm: usize,
    /// Index of the literal that holds the address of the next landing of the chain.
    pub(crate) literal: usize,
}

/// An emitted batch.
#[derive(Debug, Default)]
pub(crate) struct Emitted {
    pub(crate) code: Asm,
    /// 64-bit constants behind the code, and the 32-bit fields that lead to them.
    pub(crate) literals: Vec<u64>,
    literal_uses: Vec<(usize, usize)>,
    /// Offset of the first literal.
    pub(crate) literal_pos: usize,
    pub(crate) landings: Vec<Landing>,
    fixups: Vec<Fixup>,
    /// Stub numbers, by the offset of their `int3`.
    pub(crate) stubs: Vec<(usize, u32)>,
}

impl Emitted {
    fn new(base: u64) -> Self {
        Self { code: Asm { buf: Vec::with_capacity(8192), base }, ..Self::default() }
    }

    /// A 64-bit constant behind the code; `pos` is the 32-bit field that shall lead to it.
    fn literal(&mut self, value: u64, pos: usize) -> usize {
        self.literals.push(value);
        self.literal_uses.push((pos, self.literals.len() - 1));
        self.literals.len() - 1
    }

    fn place_literals(&mut self) {
        if self.literals.is_empty() {
            return;
        }
        while self.code.pos() % 8 != 0 {
            self.code.bytes(&[0xcc]);
        }
        self.literal_pos = self.code.pos();
        for &(pos, i) in &self.literal_uses {
            self.code.patch_rel32(pos, self.code.base + (self.literal_pos + 8 * i) as u64);
        }
        for i in 0..self.literals.len() {
            let v = self.literals[i];
            self.code.bytes(&v.to_le_bytes());
        }
    }

    /// Until another landing follows in its chain, a landing leads to a stop.
    fn place_misses(&mut self, trans: &mut TransTab) {
        for i in 0..self.landings.len() {
            let l = self.landings[i];
            let id = trans.add_stub(StubKind::IblMiss { key: l.pc });
            self.stubs.push((self.code.pos(), id));
            self.literals[l.literal] = self.code.here();
            self.code.stop(id);
        }
    }

    /// The check that an indirect branch to `pc` ends with: rcx is the target, rax and rcx are in scratch words.
    fn landing(&mut self, pc: u64) {
        let pos = self.code.pos();
        self.code.bytes(&[0x48, 0xb8]);
        let imm = self.code.pos();
        self.code.bytes(&[0; 8]);
        self.code.lea_sum(Gpr::RCX, Gpr::RAX);
        let ok = self.code.jrcxz();
        self.code.bytes(&[0xff, 0x25]);
        let field = self.code.pos();
        self.code.bytes(&[0; 4]);
        let literal = self.literal(0, field);
        self.code.patch_short(ok);
        self.code.reload(Gpr::RCX, Scratch::Rcx);
        self.code.reload(Gpr::RAX, Scratch::Rax);
        self.landings.push(Landing { pc, pos, imm, literal });
    }
}

/// A landing by itself, for a block that has been emitted without one.
pub(crate) fn emit_landing(base: u64, pc: u64, body: u64, trans: &mut TransTab) -> Emitted {
    let mut e = Emitted::new(base);
    e.landing(pc);
    let field = e.code.jmp();
    e.code.patch_rel32(field, body);
    e.place_misses(trans);
    e.place_literals();
    for &(pos, id) in &e.stubs {
        trans.stubs[id as usize].addr = base + pos as u64;
    }
    e
}

/// How a block's counter is bumped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Bump {
    /// `inc` before instruction `i`: flags are dead there.
    Inc(usize),
    /// Through a register that is dead at the start.
    Through(Gpr),
    /// Within the translation of the last instruction, where rax (or, at system calls, rcx) is free.
    InLast,
    /// By saving rax.
    Spill,
}

/// Turns batches into code.
pub(crate) struct Emitter<'a> {
    batch: &'a Batch,
    trans: &'a mut TransTab,
    /// Address of the system-call and indirect-branch tables (below 2 GiB).
    tables: u64,
    module_of: &'a dyn Fn(u64) -> u32,
    out: Emitted,
    info: InstructionInfoFactory,
    encoder: Encoder,
    /// Points of the block at hand, by offset.
    points: Vec<(usize, Point)>,
    /// For the block at hand: its bump, its cell, where the bump was done (offset).
    bump: Bump,
    cell: u32,
    bump_end: usize,
    current: BlockId,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(
        batch: &'a Batch,
        trans: &'a mut TransTab,
        base: u64,
        tables: u64,
        module_of: &'a dyn Fn(u64) -> u32,
    ) -> Self {
        Self {
            batch,
            trans,
            tables,
            module_of,
            out: Emitted::new(base),
            info: InstructionInfoFactory::new(),
            encoder: Encoder::new(64),
            points: Vec::new(),
            bump: Bump::Spill,
            cell: 0,
            bump_end: 0,
            current: BlockId(0),
        }
    }

    /// Emits all blocks and adds them, their stubs and their points to the table.
    pub(crate) fn emit(mut self) -> Emitted {
        let order = self.order();
        for (k, &i) in order.iter().enumerate() {
            let b = self.batch.blocks[i];
            // Only a block without a landing can be run into.
            let next = order.get(k + 1).map(|&j| self.batch.blocks[j]).filter(|n| !n.return_site).map(|n| n.pc);
            self.block(&b, next);
        }
        self.resolve();
        self.out.place_misses(self.trans);
        self.out.place_literals();
        for &(pos, id) in &self.out.stubs {
            self.trans.stubs[id as usize].addr = self.out.code.base + pos as u64;
        }
        self.out
    }

    /// Blocks that run into one another stand together.
    fn order(&self) -> Vec<usize> {
        let n = self.batch.blocks.len();
        let mut seen = vec![false; n];
        let mut order = Vec::with_capacity(n);
        for start in 0..n {
            let mut at = Some(start);
            while let Some(i) = at.filter(|&i| !seen[i]) {
                seen[i] = true;
                order.push(i);
                let b = &self.batch.blocks[i];
                let last = &self.batch.insns[b.first + b.n - 1];
                at = if last.class.goes_on() {
                    self.batch.find(last.next())
                } else if last.class == Class::Jmp {
                    self.batch.find(last.target())
                } else {
                    None
                };
            }
        }
        order
    }

    fn block(&mut self, b: &Found, next_in_order: Option<u64>) {
        let insns = self.batch.insns_of(b);
        if b.return_site {
            self.out.landing(b.pc);
        }
        let start = self.out.code.pos();
        self.cell = self.trans.new_cell();
        self.bump = self.choose_bump(insns);
        self.current = self.trans.next_block();
        self.points.clear();
        let shapes = self.trans.shapes.len() as u32;
        for (i, insn) in insns.iter().enumerate() {
            let from = self.out.code.pos();
            match self.bump {
                Bump::Inc(at) if at == i => {
                    self.out.code.inc_gs(arena::cell_offset(self.cell));
                    self.bump_end = self.out.code.pos();
                }
                Bump::Through(r) if i == 0 => self.bump_through(r),
                Bump::Spill if i == 0 => {
                    self.out.code.spill(Scratch::Rax, Gpr::RAX);
                    self.bump_through(Gpr::RAX);
                    self.out.code.reload(Gpr::RAX, Scratch::Rax);
                }
                _ => {}
            }
            let elsewhere = self.insn(insn, i, next_in_order);
            let cache = self.out.code.pos() - from;
            debug_assert!(cache < 256);
            self.trans.shapes.push(InsnShape {
                guest: insn.len() as u8 | if elsewhere { InsnShape::COUNTED_ELSEWHERE } else { 0 },
                cache: cache as u8,
            });
        }
        let last = &insns[insns.len() - 1];
        let guest_len = last.next().wrapping_sub(b.pc) as u16;
        // The way on to the next instruction, unless that follows right here.
        if last.class.goes_on() && !matches!(last.class, Class::Call | Class::CallIndirect | Class::CallNoRedirect | Class::Loop) {
            self.go(last.next(), next_in_order);
        }
        let base = self.out.code.base;
        self.trans.add_block(Block {
            pc: b.pc,
            cache: base + start as u64,
            len: (self.out.code.pos() - start) as u32,
            cell: self.cell,
            shapes,
            n: insns.len() as u16,
            bump_end: (self.bump_end - start) as u16,
            module: (self.module_of)(b.pc),
            guest_len,
            live_in: insns[0].live,
            dead: false,
        });
        for &(pos, point) in &self.points {
            self.trans.add_point(base + pos as u64, point);
        }
    }

    fn bump_through(&mut self, r: Gpr) {
        let offset = arena::cell_offset(self.cell);
        self.out.code.load_gs(r, offset);
        self.out.code.lea_disp(r, r, 1);
        self.out.code.store_gs(offset, r);
        self.bump_end = self.out.code.pos();
    }

    fn choose_bump(&mut self, insns: &[Insn]) -> Bump {
        if let Some(i) = insns.iter().position(|x| x.live == 0) {
            return Bump::Inc(i);
        }
        match insns[insns.len() - 1].class {
            Class::Ret | Class::JmpIndirect | Class::CallIndirect | Class::CallNoRedirect | Class::Syscall => Bump::InLast,
            _ => self.dead_register(insns).map_or(Bump::Spill, Bump::Through),
        }
    }

    /// A register that is written before it is read, seen from the first instruction.
    fn dead_register(&mut self, insns: &[Insn]) -> Option<Gpr> {
        let mut read = 1u16 << Gpr::RSP.0;
        for insn in insns {
            if !matches!(insn.class, Class::Plain | Class::Jcc | Class::Jmp | Class::Call) {
                return None;
            }
            let used = self.info.info(&insn.ins).used_registers();
            let mut written = 0u16;
            for u in used {
                let reg = u.register();
                if !reg.is_gpr() {
                    continue;
                }
                let bit = 1u16 << reg.full_register().number();
                match u.access() {
                    OpAccess::Write if reg.size() >= 4 => written |= bit,
                    OpAccess::None | OpAccess::NoMemAccess => {}
                    _ => read |= bit,
                }
            }
            let dead = written & !read;
            if dead != 0 {
                return Some(Gpr(dead.trailing_zeros() as u8));
            }
        }
        None
    }

    fn point(&mut self, point: Point) {
        self.points.push((self.out.code.pos(), point));
    }

    /// Goes to guest address `target`: by nothing, a jump, or a stub behind the hot code.
    fn go(&mut self, target: u64, next_in_order: Option<u64>) {
        if next_in_order == Some(target) {
            return;
        }
        let pos = self.out.code.jmp();
        self.out.fixups.push(Fixup { pos, target });
    }

    /// Emits one instruction; true if its executions are counted elsewhere than by the block.
    fn insn(&mut self, insn: &Insn, index: usize, next_in_order: Option<u64>) -> bool {
        match insn.class {
            Class::Plain => self.plain(insn),
            Class::GsMemory => self.through_scratch(insn),
            Class::Jcc => {
                // iced numbers the conditions as the hardware does, after "none".
                let condition = insn.ins.condition_code() as u8 - 1;
                let pos = self.out.code.jcc(condition);
                self.out.fixups.push(Fixup { pos, target: insn.target() });
            }
            Class::Loop => self.short_branch(insn),
            Class::Jmp => self.go(insn.target(), next_in_order),
            Class::Call => {
                self.push_return(insn.next());
                let pos = self.out.code.jmp();
                self.out.fixups.push(Fixup { pos, target: insn.target() });
            }
            Class::CallIndirect | Class::CallNoRedirect => {
                self.indirect_target(insn);
                self.point(Point::Spilled([(Gpr::RCX.0, Scratch::Rcx as u8), (NO_REG, 0), (NO_REG, 0)]));
                self.push_return(insn.next());
                self.look_up();
            }
            Class::JmpIndirect => {
                self.indirect_target(insn);
                self.look_up();
            }
            Class::Ret => {
                self.out.code.spill(Scratch::Rcx, Gpr::RCX);
                self.out.code.bytes(&[0x59]); // pop rcx
                if insn.ins.op_count() == 1 {
                    self.out.code.lea_disp(Gpr::RSP, Gpr::RSP, i32::from(insn.ins.immediate16()));
                }
                self.look_up();
            }
            Class::Syscall => self.syscall(insn),
            Class::RepMove => self.rep_move(insn, index),
            Class::RepCompare => {
                self.rep_compare(insn, index);
                return true;
            }
            Class::XsaveMasked => self.xsave(insn),
            Class::Cpuid => self.stop(insn, Emulate::Cpuid),
            Class::Xgetbv => self.stop(insn, Emulate::Xgetbv),
            Class::ClientRequest => self.stop(insn, Emulate::ClientRequest),
            Class::ClientGetNr => self.stop(insn, Emulate::ClientGetNr),
            Class::Int3 => self.stop(insn, Emulate::Int3),
            Class::InPlace => self.stop(insn, Emulate::InPlace),
        }
        false
    }

    fn plain(&mut self, insn: &Insn) {
        if !insn.ins.is_ip_rel_memory_operand() {
            self.out.code.bytes(insn.bytes());
            return;
        }
        let target = insn.ins.ip_rel_memory_address();
        let len = insn.len();
        let rel = target.wrapping_sub(self.out.code.here() + len as u64) as i64;
        let narrow = insn.ins.memory_base() == Register::EIP;
        if narrow || i32::try_from(rel).is_err() {
            self.through_scratch(insn);
            return;
        }
        let at = self.out.code.pos() + usize::from(insn.displacement_at);
        self.out.code.bytes(insn.bytes());
        self.out.code.buf[at..at + 4].copy_from_slice(&(rel as i32).to_le_bytes());
    }

    /// A register that the instruction does not touch, other than `not`.
    fn free_register(&mut self, ins: &Instruction, not: &[Register]) -> Register {
        const CANDIDATES: [Register; 8] = [
            Register::RAX,
            Register::RDX,
            Register::RSI,
            Register::RDI,
            Register::R8,
            Register::R9,
            Register::R10,
            Register::RBX,
        ];
        let used = self.info.info(ins).used_registers();
        CANDIDATES
            .into_iter()
            .find(|c| !not.contains(c) && used.iter().all(|u| u.register().full_register() != *c))
            .expect("no instruction uses eight general registers")
    }

    /// Loads the address of the memory operand into `reg` (its segment's base included, if that is gs).
    fn address_into(&mut self, ins: &Instruction, reg: Register) {
        let gpr = Gpr(reg.number() as u8);
        if ins.is_ip_rel_memory_operand() {
            self.out.code.mov_imm(gpr, ins.ip_rel_memory_address());
        } else {
            let mut ea = *ins;
            ea.set_segment_prefix(Register::None);
            let mut lea = Instruction::new();
            lea.set_code(Code::Lea_r64_m);
            lea.set_op0_kind(OpKind::Register);
            lea.set_op0_register(reg);
            lea.set_op1_kind(OpKind::Memory);
            lea.set_memory_base(ea.memory_base());
            lea.set_memory_index(ea.memory_index());
            lea.set_memory_index_scale(ea.memory_index_scale());
            lea.set_memory_displacement64(ea.memory_displacement64());
            lea.set_memory_displ_size(ea.memory_displ_size());
            self.encode(&lea);
        }
    }

    fn encode(&mut self, ins: &Instruction) {
        let here = self.out.code.here();
        self.encoder.encode(ins, here).expect("a decoded instruction with a plainer operand can be encoded");
        let bytes = self.encoder.take_buffer();
        self.out.code.bytes(&bytes);
        self.encoder.set_buffer(bytes_cleared(bytes));
    }

    /// An instruction whose memory operand cannot be expressed here as it is: too far from RIP, or through gs.
    fn through_scratch(&mut self, insn: &Insn) {
        let ins = insn.ins;
        let gs = ins.segment_prefix() == Register::GS;
        let r1 = self.free_register(&ins, &[]);
        let g1 = Gpr(r1.number() as u8);
        self.out.code.spill(Scratch::T1, g1);
        self.address_into(&ins, r1);
        let mut spilled = [(g1.0, Scratch::T1 as u8), (NO_REG, 0), (NO_REG, 0)];
        let mut second = None;
        if gs {
            let r2 = self.free_register(&ins, &[r1]);
            let g2 = Gpr(r2.number() as u8);
            self.out.code.spill(Scratch::T2, g2);
            self.out.code.reload(g2, Scratch::GuestGs);
            self.out.code.lea_sum(g1, g2);
            spilled[1] = (g2.0, Scratch::T2 as u8);
            second = Some(g2);
        }
        let mut plain = ins;
        if gs {
            plain.set_segment_prefix(Register::None);
        }
        plain.set_memory_base(r1);
        plain.set_memory_index(Register::None);
        plain.set_memory_index_scale(1);
        plain.set_memory_displacement64(0);
        plain.set_memory_displ_size(0);
        self.point(Point::Spilled(spilled));
        self.encode(&plain);
        if let Some(g2) = second {
            self.out.code.reload(g2, Scratch::T2);
        }
        self.out.code.reload(g1, Scratch::T1);
    }

    fn short_branch(&mut self, insn: &Insn) {
        // Only an 8-bit distance exists: over a jump that leads on.
        self.out.code.bytes(insn.bytes());
        let taken = self.out.code.pos() - 1;
        let over = self.out.code.jmp();
        self.out.fixups.push(Fixup { pos: over, target: insn.next() });
        self.out.code.patch_short(taken);
        let pos = self.out.code.jmp();
        self.out.fixups.push(Fixup { pos, target: insn.target() });
    }

    fn push_return(&mut self, pc: u64) {
        if i32::try_from(pc).is_ok() {
            self.out.code.bytes(&[0x68]);
            self.out.code.bytes(&(pc as u32).to_le_bytes());
        } else {
            self.out.code.bytes(&[0xff, 0x35]);
            let pos = self.out.code.pos();
            self.out.code.bytes(&[0; 4]);
            self.out.literal(pc, pos);
        }
    }

    /// Saves rcx and loads the target of an indirect transfer into it.
    fn indirect_target(&mut self, insn: &Insn) {
        self.out.code.spill(Scratch::Rcx, Gpr::RCX);
        let ins = &insn.ins;
        if insn.class == Class::CallNoRedirect {
            self.out.code.mov_reg(Gpr::RCX, Gpr::RAX);
        } else if ins.op0_kind() == OpKind::Register {
            self.out.code.mov_reg(Gpr::RCX, Gpr(ins.op0_register().number() as u8));
        } else {
            if ins.segment_prefix() == Register::GS {
                let mut ea = *ins;
                ea.set_segment_prefix(Register::None);
                self.address_into(&ea, Register::RCX);
                self.out.code.spill(Scratch::T1, Gpr::RDX);
                self.out.code.reload(Gpr::RDX, Scratch::GuestGs);
                self.out.code.lea_sum(Gpr::RCX, Gpr::RDX);
                self.out.code.reload(Gpr::RDX, Scratch::T1);
            } else {
                let rel = ins.ip_rel_memory_address().wrapping_sub(self.out.code.here()) as i64;
                let near = !ins.is_ip_rel_memory_operand() || rel.abs() < 0x7fff_ff00;
                if near && ins.memory_base() != Register::EIP {
                    let mut load = *ins;
                    load.set_code(Code::Mov_r64_rm64);
                    load.set_op0_kind(OpKind::Register);
                    load.set_op0_register(Register::RCX);
                    load.set_op1_kind(OpKind::Memory);
                    self.encode(&load);
                    return;
                }
                self.address_into(ins, Register::RCX);
            }
            self.point(Point::Spilled([(Gpr::RCX.0, Scratch::Rcx as u8), (NO_REG, 0), (NO_REG, 0)]));
            self.out.code.load_through(Gpr::RCX);
        }
    }

    /// Goes where rcx says, through the table. rcx has been saved.
    fn look_up(&mut self) {
        self.out.code.spill(Scratch::Rax, Gpr::RAX);
        if self.bump == Bump::InLast {
            self.bump_through(Gpr::RAX);
        }
        self.out.code.bytes(&[0x0f, 0xb7, 0xc1]); // movzx eax, cx
        self.out.code.bytes(&[0xff, 0x24, 0xc5]); // jmp [rax*8 + table]
        let table = (self.tables + arena::IBL_TABLE) as u32;
        self.out.code.bytes(&table.to_le_bytes());
    }

    fn syscall(&mut self, insn: &Insn) {
        // rcx and r11 are the kernel's to overwrite, so rcx is free from here on.
        if self.bump == Bump::InLast {
            self.bump_through(Gpr::RCX);
            self.point(Point::Before);
        }
        self.out.code.bytes(&[0x0f, 0xb7, 0xc8]); // movzx ecx, ax
        self.point(Point::Before);
        self.out.code.bytes(&[0x0f, 0xb6, 0x89]); // movzx ecx, byte [rcx + table]
        let table = (self.tables + arena::SYSCALL_TABLE) as u32;
        self.out.code.bytes(&table.to_le_bytes());
        self.point(Point::Before);
        let runs = self.out.code.jrcxz();
        self.point(Point::Before);
        let pos = self.out.code.pos();
        let id = self.trans.add_stub(StubKind::Syscall { next: insn.next(), go: self.out.code.here() + 5 });
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
        self.out.code.patch_short(runs);
        self.point(Point::Before);
        self.out.code.bytes(&[0x0f, 0x05]);
        self.point(Point::After);
        self.out.code.mov_address(Gpr::RCX, insn.next());
    }

    fn stop(&mut self, insn: &Insn, what: Emulate) {
        self.point(Point::Before);
        let pos = self.out.code.pos();
        let id =
            self.trans.add_stub(StubKind::Emulate { what, pc: insn.pc(), next: insn.next(), block: self.current });
        self.out.stubs.push((pos, id));
        self.out.code.stop(id);
    }

    /// Adds rcx (ecx) to a cell, leaving all registers as they are.
    fn add_count(&mut self, cell: u32, address32: bool) {
        let offset = arena::cell_offset(cell);
        let c = &mut self.out.code;
        c.spill(Scratch::Rax, Gpr::RAX);
        if address32 {
            c.spill(Scratch::T1, Gpr::RDX);
            c.mov_reg32(Gpr::RDX, Gpr::RCX);
            c.load_gs(Gpr::RAX, offset);
            c.lea_sum(Gpr::RAX, Gpr::RDX);
            c.store_gs(offset, Gpr::RAX);
            c.reload(Gpr::RDX, Scratch::T1);
        } else {
            c.load_gs(Gpr::RAX, offset);
            c.lea_sum(Gpr::RAX, Gpr::RCX);
            c.store_gs(offset, Gpr::RAX);
        }
        c.reload(Gpr::RAX, Scratch::Rax);
    }

    fn new_site(&mut self, index: usize) -> u32 {
        let cell = self.trans.new_cell();
        self.trans.sites.push(Site { cell, block: self.current, index: index as u16 });
        cell
    }

    fn copy(&mut self, insn: &Insn) {
        self.out.code.bytes(insn.bytes());
    }

    fn rep_move(&mut self, insn: &Insn, index: usize) {
        let address32 = uses_ecx(&insn.ins);
        let cell = self.new_site(index);
        self.add_count(cell, address32);
        self.point(Point::Rep { cell, address32 });
        self.copy(insn);
    }

    fn rep_compare(&mut self, insn: &Insn, index: usize) {
        let address32 = uses_ecx(&insn.ins);
        let cell = self.new_site(index);
        let offset = arena::cell_offset(cell);
        let jrcxz = |c: &mut Asm| {
            if address32 {
                c.bytes(&[0x67]);
            }
            c.jrcxz()
        };
        self.add_count(cell, address32);
        let none = jrcxz(&mut self.out.code);
        self.point(Point::Rep { cell, address32 });
        self.copy(insn);
        // The cell has rcx from before; take off what is left now. One more if the count ran out while the condition to go
        // on held: then the test for rcx ended it.
        let go_on_if_equal = insn.ins.has_repe_prefix();
        let c = &mut self.out.code;
        c.spill(Scratch::Rax, Gpr::RAX);
        c.spill(Scratch::T1, Gpr::RDX);
        if address32 {
            c.mov_reg32(Gpr::RAX, Gpr::RCX);
        } else {
            c.mov_reg(Gpr::RAX, Gpr::RCX);
        }
        c.bytes(&[0x48, 0xf7, 0xd0]); // not rax
        c.lea_disp(Gpr::RAX, Gpr::RAX, 1);
        c.load_gs(Gpr::RDX, offset);
        c.lea_sum(Gpr::RDX, Gpr::RAX);
        c.bytes(&[0x0f, if go_on_if_equal { 0x94 } else { 0x95 }, 0xc0]); // sete / setne al
        c.bytes(&[0x0f, 0xb6, 0xc0]); // movzx eax, al
        let out = jrcxz(c);
        c.mov_imm(Gpr::RAX, 0);
        c.patch_short(out);
        c.lea_sum(Gpr::RDX, Gpr::RAX);
        c.store_gs(offset, Gpr::RDX);
        c.reload(Gpr::RDX, Scratch::T1);
        c.reload(Gpr::RAX, Scratch::Rax);
        let done = c.jmp_short();
        c.patch_short(none);
        c.spill(Scratch::Rax, Gpr::RAX);
        c.load_gs(Gpr::RAX, offset);
        c.lea_disp(Gpr::RAX, Gpr::RAX, 1);
        c.store_gs(offset, Gpr::RAX);
        c.reload(Gpr::RAX, Scratch::Rax);
        c.patch_short(done);
    }

    /// Only the components that the guest knows of (x87, SSE, AVX): its area has no room for more.
    fn xsave(&mut self, insn: &Insn) {
        let ins = insn.ins;
        let base = self.free_register(&ins, &[Register::RAX, Register::RDX]);
        let gb = Gpr(base.number() as u8);
        self.out.code.spill(Scratch::T2, gb);
        self.address_into(&ins, base);
        let c = &mut self.out.code;
        c.spill(Scratch::Rax, Gpr::RAX);
        c.spill(Scratch::T1, Gpr::RDX);
        c.mov_imm(Gpr::RDX, 7);
        c.bytes(&[0xc4, 0xe2, 0x7a, 0xf5, 0xc2]); // pext eax, eax, edx
        c.mov_imm(Gpr::RDX, 0);
        let mut plain = ins;
        plain.set_memory_base(base);
        plain.set_memory_index(Register::None);
        plain.set_memory_index_scale(1);
        plain.set_memory_displacement64(0);
        plain.set_memory_displ_size(0);
        self.point(Point::Spilled([
            (Gpr::RAX.0, Scratch::Rax as u8),
            (Gpr::RDX.0, Scratch::T1 as u8),
            (gb.0, Scratch::T2 as u8),
        ]));
        self.encode(&plain);
        let c = &mut self.out.code;
        c.reload(Gpr::RDX, Scratch::T1);
        c.reload(Gpr::RAX, Scratch::Rax);
        c.reload(gb, Scratch::T2);
    }

    /// Gives every branch its way: to a block of this batch, to one that was there, or to a stub.
    fn resolve(&mut self) {
        let fixups = std::mem::take(&mut self.out.fixups);
        for f in fixups {
            if let Some(id) = self.trans.lookup(f.target) {
                let body = self.trans.block(id).cache;
                let rel = body.wrapping_sub(self.out.code.base + f.pos as u64 + 4) as i64;
                if i32::try_from(rel).is_ok() {
                    self.out.code.patch_rel32(f.pos, body);
                    continue;
                }
            }
            let site = self.out.code.base + f.pos as u64;
            let id = self.trans.add_stub(StubKind::Exit { target: f.target, site });
            let pos = self.out.code.pos();
            self.out.stubs.push((pos, id));
            let here = self.out.code.here();
            self.out.code.patch_rel32(f.pos, here);
            self.out.code.stop(id);
        }
    }
}

fn bytes_cleared(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.clear();
    bytes
}

/// Whether a string instruction counts in ecx (32-bit addresses).
fn uses_ecx(ins: &Instruction) -> bool {
    (0..ins.op_count()).any(|n| matches!(ins.op_kind(n), OpKind::MemoryESDI | OpKind::MemorySegEDI | OpKind::MemorySegESI | OpKind::MemoryESEDI))
}
