//! Drives the model by single-stepping a static program natively, as an engine would with a stream of events.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use cg_calls::{
    CallersTable, Calls, Code, Config, Function, FunctionId, JumpKind, ObjectId, Place, Profile, Request, Section,
    Site, SiteId,
};
use grind_tests::step::{Visitor, walk};
use iced_x86::{Decoder, DecoderOptions, FlowControl, Instruction};
use nix::libc::user_regs_struct;
use nix::unistd::Pid;

/// What a static program consists of.
pub(crate) struct Program {
    /// Start, end and name.
    symbols: Vec<(u64, u64, String)>,
    /// Addresses outside every symbol, each a function of its own.
    strays: Vec<u64>,
    sites: Vec<Site>,
    site_ids: HashMap<u64, SiteId>,
    /// What the user asked for, by name.
    pub about: Box<dyn Fn(&str) -> Function>,
    /// File contents with their addresses.
    code: Vec<(u64, Vec<u8>)>,
    decoded: HashMap<u64, Instruction>,
    callers: CallersTable,
}

impl Program {
    /// Reads a program.
    pub(crate) fn open(path: &Path, about: Box<dyn Fn(&str) -> Function>) -> Result<Program> {
        let listed = Command::new("nm").args(["--defined-only", "-S"]).arg(path).output().context("nm")?;
        let listed = String::from_utf8(listed.stdout)?;
        let mut symbols = Vec::new();
        for line in listed.lines() {
            if let [start, size, "t" | "T", name] = line.split_whitespace().collect::<Vec<_>>()[..] {
                let start = u64::from_str_radix(start, 16)?;
                // The reference's name for the entry point.
                let name = if name == "_start" { "(below main)" } else { name };
                symbols.push((start, start + u64::from_str_radix(size, 16)?, name.to_owned()));
            }
        }
        symbols.sort();
        let code = segments(&std::fs::read(path)?);
        Ok(Program {
            symbols,
            strays: Vec::new(),
            sites: Vec::new(),
            site_ids: HashMap::new(),
            about,
            code,
            decoded: HashMap::new(),
            callers: CallersTable::default(),
        })
    }

    fn function_at(&mut self, addr: u64) -> FunctionId {
        let found = self.symbols.iter().position(|(start, end, _)| (*start..*end).contains(&addr));
        let index = found.unwrap_or_else(|| {
            let stray = self.strays.iter().position(|s| *s == addr).unwrap_or_else(|| {
                self.strays.push(addr);
                self.strays.len() - 1
            });
            self.symbols.len() + stray
        });
        FunctionId(index as u32)
    }

    /// The name of a function.
    pub(crate) fn name(&self, id: FunctionId) -> String {
        let index = id.0 as usize;
        match self.symbols.get(index) {
            Some((.., name)) => name.clone(),
            None => format!("{:#018x}", self.strays[index - self.symbols.len()]),
        }
    }

    fn decode(&mut self, addr: u64) -> Instruction {
        let code = &self.code;
        *self.decoded.entry(addr).or_insert_with(|| {
            let bytes = code.iter().find_map(|(start, bytes)| bytes.get(addr.checked_sub(*start)? as usize..));
            let mut decoder = Decoder::with_ip(64, bytes.unwrap_or_default(), addr, DecoderOptions::NONE);
            decoder.decode()
        })
    }

    /// The request that `xchg %rbx, %rbx` at `addr` makes, from unchanged data of the file.
    fn request(&mut self, addr: u64, rax: u64) -> Option<u64> {
        let insn = self.decode(addr);
        let is_request = insn.mnemonic() == iced_x86::Mnemonic::Xchg && insn.op_register(0) == iced_x86::Register::RBX;
        let bytes =
            |(start, bytes): &(u64, Vec<u8>)| bytes.get(rax.checked_sub(*start)? as usize..)?.first_chunk().copied();
        self.code.iter().find_map(bytes).filter(|_| is_request).map(u64::from_le_bytes)
    }

    fn site_id(&mut self, addr: u64, block: u64) -> SiteId {
        if let Some(id) = self.site_ids.get(&addr) {
            return *id;
        }
        let next = addr + self.decode(addr).len() as u64;
        let site = Site { addr, next, block, place: self.place(addr) };
        self.sites.push(site);
        let id = SiteId(self.sites.len() as u32 - 1);
        self.site_ids.insert(addr, id);
        id
    }
}

impl Code for Program {
    fn place(&mut self, addr: u64) -> Place {
        let is_entry = self.symbols.iter().any(|(start, ..)| *start == addr);
        Place { function: self.function_at(addr), object: ObjectId(0), section: Section::Text, is_entry }
    }
    fn site(&mut self, id: SiteId) -> Site {
        self.sites[id.0 as usize]
    }
    fn site_before(&mut self, next: u64) -> SiteId {
        let known = self.sites.iter().position(|s| s.next == next);
        known.map_or_else(|| self.site_id(next - 1, next - 1), |i| SiteId(i as u32))
    }
    fn function(&mut self, id: FunctionId) -> Function {
        (self.about)(&self.name(id))
    }
    fn callers(&mut self) -> &mut CallersTable {
        &mut self.callers
    }
}

/// The loaded parts of a 64-bit ELF file.
fn segments(file: &[u8]) -> Vec<(u64, Vec<u8>)> {
    let word =
        |at: usize, n: usize| file[at..at + n].iter().rev().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
    let (offset, size, count) = (word(32, 8) as usize, word(54, 2) as usize, word(56, 2) as usize);
    (0..count)
        .map(|i| offset + i * size)
        .filter(|at| word(*at, 4) == 1)
        .map(|at| {
            let (from, addr, len) = (word(at + 8, 8) as usize, word(at + 16, 8), word(at + 32, 8) as usize);
            (addr, file[from..from + len].to_vec())
        })
        .collect()
}

/// A profile by names, as the reference writes it: instructions by function and address, and calls by caller, site, callee
/// and target, with their counts and inclusive instructions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Named {
    pub ir: BTreeMap<(String, u64), u64>,
    pub arcs: BTreeMap<(String, u64, String, u64), (u64, u64)>,
    /// Taken jumps by function, site and target.
    pub jumps: BTreeMap<(String, u64, u64), u64>,
}

/// Steps through a program and returns the parts that its model dumped, the last one at its end. What the last block cost is
/// left out if `lose_last_block`, since the reference loses it.
///
/// With `instrumented` false, nothing is told until the program asks for it.
pub(crate) fn profile(
    program: &mut Program,
    path: &Path,
    config: Config,
    instrumented: bool,
    lose_last_block: bool,
) -> Result<Vec<Named>> {
    let mut driver = Driver {
        program,
        calls: Calls::new(config.clone(), &[0]),
        contexts: config.contexts,
        now: [0],
        instrumented,
        last: None,
        block: 0,
        pending: Vec::new(),
        parts: Vec::new(),
        plain: BTreeMap::new(),
    };
    walk(path, path.parent().context("a folder")?, &mut driver)?;
    if !lose_last_block {
        driver.flush();
    }
    driver.calls.end(&driver.now);
    driver.requests();
    let last = driver.calls.take(&driver.now);
    driver.part(&last);
    Ok(driver.parts)
}

/// The client request that switches instrumentation on.
const START: u64 = 0x4354_0004;

struct Driver<'a> {
    program: &'a mut Program,
    calls: Calls,
    contexts: bool,
    now: [u64; 1],
    instrumented: bool,
    /// Registers after the last instruction.
    last: Option<user_regs_struct>,
    /// Where the running block began.
    block: u64,
    /// Instructions of the running block, which count when it is left.
    pending: Vec<(u64, u64)>,
    parts: Vec<Named>,
    plain: BTreeMap<u64, u64>,
}

impl Visitor for Driver<'_> {
    fn before(&mut self, _: Pid, regs: &user_regs_struct) -> Result<()> {
        // The kernel has built a frame for a signal handler.
        if let Some(last) = self.last.filter(|last| self.instrumented && last.rip != regs.rip) {
            self.flush();
            let same = (last.rsp.saturating_sub(8192)..last.rsp).contains(&regs.rsp);
            let other: Range<u64> = regs.rsp.saturating_sub(8192)..regs.rsp + 8192;
            let stack = (!same).then_some(other);
            self.calls.signal_enter(self.program, regs.rip, last.rsp, stack, &self.now);
            self.requests();
            self.block = regs.rip;
        }
        Ok(())
    }

    fn executed(&mut self, before: &user_regs_struct, after: Option<&user_regs_struct>, times: u64) -> Result<()> {
        self.last = after.copied();
        if !self.instrumented {
            self.instrumented = self.program.request(before.rip, before.rax) == Some(START);
            self.block = 0;
            return Ok(());
        }
        if self.block == 0 {
            self.calls.begin(self.program, before.rip);
            self.block = before.rip;
        }
        self.pending.push((before.rip, times));
        if let Some(after) = after {
            self.transfer(before, after);
        }
        self.requests();
        Ok(())
    }
}

impl Driver<'_> {
    /// Counts what has been executed.
    fn flush(&mut self) {
        for (addr, times) in self.pending.drain(..) {
            self.now[0] += times;
            *self.plain.entry(addr).or_default() += times;
            if self.contexts {
                self.calls.cost(u32::try_from(addr).expect("a small program"), 0, times);
            }
        }
    }

    fn transfer(&mut self, before: &user_regs_struct, after: &user_regs_struct) {
        let insn = self.program.decode(before.rip);
        let (target, sp) = (after.rip, after.rsp);
        let taken = target != insn.next_ip();
        let kind = match insn.flow_control() {
            _ if target == before.rip && before.rsp == after.rsp && insn.flow_control() == FlowControl::Next => return,
            FlowControl::ConditionalBranch if taken => JumpKind::Conditional,
            FlowControl::UnconditionalBranch | FlowControl::IndirectBranch => JumpKind::Always,
            FlowControl::Call | FlowControl::IndirectCall | FlowControl::Return if !is_syscall(&insn) => {
                JumpKind::Always
            }
            _ => JumpKind::FallThrough,
        };
        let is_sigreturn = is_syscall(&insn) && before.rax == 15;
        let leaves = is_syscall(&insn) || insn.flow_control() == FlowControl::ConditionalBranch;
        let place = self.program.place(target);
        if kind == JumpKind::FallThrough && !place.is_entry && !leaves {
            return;
        }
        let site = self.program.site_id(before.rip, self.block);
        self.flush();
        match insn.flow_control() {
            _ if is_sigreturn => {
                self.calls.signal_leave(&self.now);
            }
            FlowControl::Call | FlowControl::IndirectCall if !is_syscall(&insn) => {
                self.calls.call(self.program, site, target, sp, &self.now);
            }
            FlowControl::Return => {
                self.calls.ret(self.program, site, target, sp, &self.now);
            }
            _ => {
                self.calls.jump(self.program, site, target, sp, kind, &self.now);
            }
        }
        self.block = target;
    }

    fn requests(&mut self) {
        while let Some(request) = self.calls.take_request() {
            match request {
                Request::Zero(_) => {
                    self.calls.zero(&self.now);
                    self.plain.clear();
                }
                Request::DumpBefore(_) | Request::DumpAfter(_) => {
                    let part = self.calls.take(&self.now);
                    self.part(&part);
                }
            }
        }
    }

    fn part(&mut self, profile: &Profile) {
        let named = named(self.program, profile, self.contexts, &mut self.plain);
        self.parts.push(named);
    }
}

fn is_syscall(insn: &Instruction) -> bool {
    insn.mnemonic() == iced_x86::Mnemonic::Syscall
}

/// Names for everything. Without contexts, self costs come from the counts by address.
fn named(program: &Program, profile: &Profile, contexts: bool, plain: &mut BTreeMap<u64, u64>) -> Named {
    let names: Vec<String> = profile
        .nodes
        .iter()
        .map(|node| {
            let mut name = program.name(node.functions[0]);
            if node.recursion > 1 {
                name += &format!("'{}", node.recursion);
            }
            for caller in &node.functions[1..] {
                name += &format!("'{}", program.name(*caller));
            }
            name
        })
        .collect();
    let name = |index: cg_calls::NodeIndex| names[index.0 as usize].clone();
    let mut named = Named::default();
    for counter in &profile.counters {
        *named.ir.entry((name(counter.node), u64::from(counter.counter))).or_default() += counter.costs[0];
    }
    if !contexts {
        for (addr, n) in std::mem::take(plain) {
            let function = program.symbols.iter().find(|(start, end, _)| (*start..*end).contains(&addr));
            let function = function.map_or_else(|| format!("{addr:#018x}"), |s| s.2.clone());
            named.ir.insert((function, addr), n);
        }
    }
    for skipped in &profile.skipped {
        let addr = program.sites[skipped.site.0 as usize].addr;
        *named.ir.entry((name(skipped.node), addr)).or_default() += skipped.costs[0];
    }
    for arc in profile.arcs.iter().filter(|arc| arc.costs[0] != 0) {
        let site = program.sites[arc.site.0 as usize].addr;
        let entry = named.arcs.entry((name(arc.from), site, name(arc.to), arc.target)).or_default();
        entry.0 += arc.calls;
        entry.1 += arc.costs[0];
    }
    for jump in &profile.jumps {
        let site = program.sites[jump.site.0 as usize].addr;
        *named.jumps.entry((name(jump.from), site, jump.target)).or_default() += jump.count;
    }
    named
}
