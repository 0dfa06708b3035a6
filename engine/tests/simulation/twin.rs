//! Single-steps a program natively, resolves what every instruction accesses from its registers, and simulates that.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use cg_sim::Levels;
use grind_isa::events::resolve::{Done, Jump, State, resolve};
use grind_tests::costs::{Costs, base_name};
use grind_tests::simulation::{EVENTS, Geometry};
use grind_tests::step::{self, Visitor};
use grind_types::addr::GuestAddr;
use nix::libc::{self, user_regs_struct};
use nix::unistd::Pid;

use crate::model::{Caches, Misses, Pages, Predictors};

/// All that is counted, of which [`EVENTS`] are a part.
pub(crate) const ALL: [&str; 22] = [
    "Ir", "I1mr", "I2mr", "ILmr", "Dr", "D1mr", "D2mr", "DLmr", "Dw", "D1mw", "D2mw", "DLmw", "Bc", "Bcm", "Bi", "Bim",
    "DT1mr", "DT1mw", "IT1mr", "DT2mr", "DT2mw", "IT2mr",
];

/// Whether an event is there with a second level of caches, or with so many levels of TLBs.
fn counted(event: &str, three: bool, tlbs: usize) -> bool {
    EVENTS.contains(&event)
        || three && event[1..].starts_with("2m")
        || tlbs > 0 && event[1..].starts_with("T1")
        || tlbs > 1 && event[1..].starts_with("T2")
}

/// Simulates `program` with each geometry in one go.
pub(crate) fn simulate(program: &Path, dir: &Path, geometries: &[Geometry]) -> Result<Vec<Costs>> {
    let caches = geometries.iter().map(|g| (Caches::new(g), false, 0));
    simulate_with(program, dir, caches.collect())
}

/// The same, with these levels beyond the first, each with an event of its own.
#[allow(dead_code, reason = "each test uses its part")]
pub(crate) fn simulate_levels(program: &Path, dir: &Path, cases: &[(Geometry, Levels)]) -> Result<Vec<Costs>> {
    let caches = cases.iter().map(|(g, levels)| (Caches::new(g).with_levels(levels), levels.second.is_some(), 0));
    simulate_with(program, dir, caches.collect())
}

/// Entries and ways of TLBs of data, of code, and of the second level, if there is one.
pub(crate) type Tlbs = ((u64, u64), (u64, u64), Option<(u64, u64)>);

/// The same with TLBs.
#[allow(dead_code, reason = "each test uses its part")]
pub(crate) fn simulate_tlbs(program: &Path, dir: &Path, cases: &[(Geometry, Tlbs)]) -> Result<Vec<Costs>> {
    let caches = cases.iter().map(|(g, (data, code, second))| {
        let pages = Pages::new(*data, *code, *second);
        (Caches::new(g).with_pages(pages), false, 1 + usize::from(second.is_some()))
    });
    simulate_with(program, dir, caches.collect())
}

fn simulate_with(program: &Path, dir: &Path, caches: Vec<(Caches, bool, usize)>) -> Result<Vec<Costs>> {
    let mut twin = Twin {
        state: State { xcr0: 7, ..State::default() },
        code: BTreeMap::new(),
        text: text_of(program)?,
        now: None,
        runs: caches
            .into_iter()
            .map(|(caches, three, tlbs)| {
                let (predictors, costs) = (Predictors::default(), BTreeMap::new());
                Run { caches, three, tlbs, predictors, costs }
            })
            .collect(),
    };
    step::walk(program, dir, &mut twin)?;
    let addresses: Vec<u64> = twin.runs[0].costs.keys().copied().collect();
    let lines = lines_of(program, &addresses)?;
    Ok(twin.runs.iter().map(|r| r.by_line(&lines)).collect())
}

/// The simulation with one geometry.
struct Run {
    caches: Caches,
    /// Whether there is a second level.
    three: bool,
    /// How many levels of TLBs there are.
    tlbs: usize,
    predictors: Predictors,
    /// By address of the instruction, in the order of [`ALL`].
    costs: BTreeMap<u64, [u64; ALL.len()]>,
}

impl Run {
    fn by_line(&self, lines: &BTreeMap<u64, (String, u64)>) -> Costs {
        let counted = |event: &str| counted(event, self.three, self.tlbs);
        let events = ALL.into_iter().filter(|e| counted(e)).map(str::to_owned).collect();
        let mut costs = Costs { events, ..Costs::default() };
        for (address, counts) in &self.costs {
            let counts: Vec<u64> = ALL.into_iter().zip(*counts).filter(|(e, _)| counted(e)).map(|(_, n)| n).collect();
            costs.add(lines[address].clone(), &counts);
        }
        costs
    }
}

struct Twin {
    state: State,
    code: BTreeMap<u64, [u8; 32]>,
    /// The executable's code, and its address.
    text: Vec<(u64, Vec<u8>)>,
    now: Option<[u8; 32]>,
    runs: Vec<Run>,
}

impl Visitor for Twin {
    fn before(&mut self, pid: Pid, r: &user_regs_struct) -> Result<()> {
        let s = &mut self.state;
        s.general = [
            r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi, r.r8, r.r9, r.r10, r.r11, r.r12, r.r13, r.r14,
            r.r15,
        ];
        s.fs_base = r.fs_base;
        s.gs_base = r.gs_base;
        if !self.code.contains_key(&r.rip) {
            let (at, bytes) = self
                .text
                .iter()
                .find(|(at, bytes)| (*at..*at + bytes.len() as u64).contains(&r.rip))
                .with_context(|| format!("no code at {:#x}", r.rip))?;
            let mut here = [0x90; 32];
            let rest = &bytes[(r.rip - at) as usize..];
            let n = rest.len().min(32);
            here[..n].copy_from_slice(&rest[..n]);
            self.code.insert(r.rip, here);
        }
        let bytes = self.code[&r.rip];
        // Vector registers only where they can matter: VEX (c4, c5) and EVEX (62) after segment and address prefixes.
        let first = bytes.iter().find(|b| !matches!(b, 0x26 | 0x2e | 0x36 | 0x3e | 0x64..=0x67));
        if matches!(first, Some(0xc4 | 0xc5 | 0x62)) {
            vectors(pid, s)?;
        }
        self.now = Some(bytes);
        Ok(())
    }

    fn executed(&mut self, before: &user_regs_struct, after: Option<&user_regs_struct>, executions: u64) -> Result<()> {
        let bytes = self.now.take().context("a step without its beginning")?;
        let pc = before.rip;
        let what = resolve(&bytes, GuestAddr(pc), &self.state, true);
        ensure!(executions == 1 || what.touches.len() < 3, "a repeated instruction accesses one or two places");
        for run in &mut self.runs {
            let c = run.costs.entry(pc).or_default();
            for n in 0..executions {
                let m = run.caches.fetch(pc, what.len as u64);
                add(&mut c[0..4], m);
                add_pages(c, 18, m);
                if n > 0 {
                    // The test that ends a repeated instruction.
                    break;
                }
                for t in &what.touches {
                    let m = run.caches.data(pc, t.address, t.size);
                    match t.done {
                        Done::Read | Done::Modify => {
                            add(&mut c[4..8], m);
                            add_pages(c, 16, m);
                        }
                        Done::Write => {
                            add(&mut c[8..12], m);
                            add_pages(c, 17, m);
                        }
                    }
                }
            }
            let Some(after) = after else { continue };
            match what.jump {
                Some(Jump::Conditional) => {
                    let taken = after.rip != pc + what.len as u64;
                    c[12] += 1;
                    c[13] += u64::from(run.predictors.conditional(pc, taken));
                }
                Some(Jump::Indirect) => {
                    c[14] += 1;
                    c[15] += u64::from(run.predictors.indirect(pc, after.rip));
                }
                None => {}
            }
        }
        Ok(())
    }
}

fn add(counts: &mut [u64], m: Misses) {
    counts[0] += 1;
    counts[1] += m.l1;
    counts[2] += m.l2;
    counts[3] += m.ll;
}

fn add_pages(counts: &mut [u64], first: usize, m: Misses) {
    counts[first] += m.pages[0];
    counts[first + 3] += m.pages[1];
}

/// The set of registers that the kernel calls so.
const NT_X86_XSTATE: i32 = 0x202;

/// Where CPUID says that a component of the extended state is, in the standard form.
fn component(n: u32) -> (usize, usize) {
    let leaf = std::arch::x86_64::__cpuid_count(0xd, n);
    (leaf.ebx as usize, leaf.eax as usize)
}

/// Reads vector and mask registers.
fn vectors(pid: Pid, state: &mut State) -> Result<()> {
    let mut area = [0u8; 8192];
    let mut io = libc::iovec { iov_base: area.as_mut_ptr().cast(), iov_len: area.len() };
    // SAFETY: the kernel writes at most `iov_len` bytes to `area`, which outlives the call.
    let done = unsafe { libc::ptrace(libc::PTRACE_GETREGSET, pid.as_raw(), NT_X86_XSTATE, &raw mut io) };
    ensure!(done == 0, "reading the extended state: {}", std::io::Error::last_os_error());
    let len = io.iov_len;
    let part = |at: usize, size: usize| area[..len].get(at..at + size).unwrap_or(&[]);
    state.vectors = vec![[0; 64]; 32];
    for n in 0..16 {
        let v = &mut state.vectors[n];
        v[..16].copy_from_slice(part(160 + 16 * n, 16));
        for (c, from, size) in [(2, 16, 16), (6, 32, 32)] {
            let (at, all) = component(c);
            let bytes = if all == 0 { &[][..] } else { part(at + size * n, size) };
            v[from..from + bytes.len()].copy_from_slice(bytes);
        }
        let (at, all) = component(7);
        let bytes = if all == 0 { &[][..] } else { part(at + 64 * n, 64) };
        state.vectors[16 + n][..bytes.len()].copy_from_slice(bytes);
    }
    let (at, all) = component(5);
    for n in 0..8 {
        let bytes = if all == 0 { &[][..] } else { part(at + 8 * n, 8) };
        state.masks[n] = bytes.try_into().map_or(0, u64::from_le_bytes);
    }
    Ok(())
}

/// The executable segments of a static program, by their addresses.
fn text_of(program: &Path) -> Result<Vec<(u64, Vec<u8>)>> {
    let file = std::fs::read(program)?;
    let word = |at: usize, n: usize| {
        let bytes = file.get(at..at + n).context("a cut executable")?;
        let mut all = [0; 8];
        all[..n].copy_from_slice(bytes);
        anyhow::Ok(u64::from_le_bytes(all))
    };
    let (table, count) = (word(32, 8)? as usize, word(56, 2)? as usize);
    let mut found = Vec::new();
    for n in 0..count {
        let at = table + 56 * n;
        // A loaded, executable segment.
        if word(at, 4)? == 1 && word(at + 4, 4)? & 1 != 0 {
            let (offset, address, size) = (word(at + 8, 8)?, word(at + 16, 8)?, word(at + 32, 8)?);
            let bytes = file.get(offset as usize..(offset + size) as usize).context("a cut executable")?;
            found.push((address, bytes.to_vec()));
        }
    }
    Ok(found)
}

/// File and line of each address.
pub(crate) fn lines_of(program: &Path, addresses: &[u64]) -> Result<BTreeMap<u64, (String, u64)>> {
    let mut lines = BTreeMap::new();
    for some in addresses.chunks(1000) {
        let mut command = Command::new("addr2line");
        command.arg("-e").arg(program).args(some.iter().map(|a| format!("{a:#x}")));
        let output = command.output().context("addr2line")?;
        ensure!(output.status.success(), "addr2line failed");
        let text = String::from_utf8(output.stdout)?;
        ensure!(text.lines().count() == some.len(), "addr2line answers for each address");
        for (address, line) in some.iter().zip(text.lines()) {
            let line = line.split_once(" (discriminator").map_or(line, |l| l.0);
            let (file, number) = line.rsplit_once(':').context("file:line")?;
            let file = if file == "??" { "???".to_owned() } else { base_name(file) };
            lines.insert(*address, (file, number.parse().unwrap_or(0)));
        }
    }
    Ok(lines)
}
