//! Emitted code, as a reader sees it: guest instructions on the left edge of their translations. `BLESS=1` rewrites the
//! expected listings.

use std::fmt::Write as _;

use grind_fragments::batch::Batch;
use grind_fragments::code_reader::CodeWindows;
use grind_fragments::fragment_table::{FragmentTable, NO_COUNTER, StubKind};
use grind_fragments::testing::Untranslated;
use grind_layout::registers::StolenRegisters;
use grind_ptrace::Memory;
use grind_trace::follow::{CallKind, StackEffect};
use grind_trace::{CallTrace, FirstLevel, TraceSettings};
use grind_types::addr::{CacheAddr, GuestAddr};
use grind_types::frames::{CodeAt, FrameHook};
use grind_types::{Pid, Tid};
use iced_x86::{Decoder, DecoderOptions, Formatter, GasFormatter};

use super::miss_path::Told;
use super::{Emitter, Work, bridge};

const GUEST: GuestAddr = GuestAddr(0x40_0000);
const CACHE: CacheAddr = CacheAddr(0x5000_0000);
const TABLES: u64 = 0x7f00_0000;

fn text(bytes: &[u8], at: u64) -> Vec<(u64, usize, String)> {
    let mut f = GasFormatter::new();
    Decoder::with_ip(64, bytes, at, DecoderOptions::NONE)
        .iter()
        .map(|i| {
            let mut s = String::new();
            f.format(&i, &mut s);
            (i.ip(), i.len(), s)
        })
        .collect()
}

/// What a stub is for, with addresses as bare numbers.
fn shown(kind: StubKind) -> String {
    let mut parts = format!("{kind:x?}").replace("CacheAddr(0x", "GuestAddr(0x");
    while let Some((before, behind)) = parts.split_once("GuestAddr(0x") {
        parts = before.to_owned() + &behind.replacen(')', "", 1);
    }
    parts
}

/// The translation of `code`, whose first instruction is at `pc`.
fn listing(code: &[u8], pc: GuestAddr, cache: CacheAddr) -> String {
    listing_with(code, pc, cache, &[], |emitter| emitter)
}

/// The same of an emitter that is set up otherwise, where blocks, with these starts and ends from `pc` on, have been executed
/// so often.
fn listing_with(
    code: &[u8],
    pc: GuestAddr,
    cache: CacheAddr,
    executed: &[(u64, u64, u64)],
    with: impl Fn(Emitter<'_>) -> Emitter<'_>,
) -> String {
    listing_of(code, pc, cache, executed, &TraceSettings::default(), with)
}

/// The same where something is recorded.
fn listing_traced(code: &[u8], settings: &TraceSettings, with: impl Fn(Emitter<'_>) -> Emitter<'_>) -> String {
    listing_of(code, GUEST, CACHE, &[], settings, |e| with(e.with_derived_edges(false).traced(*settings, false)))
}

fn listing_of(
    code: &[u8],
    pc: GuestAddr,
    cache: CacheAddr,
    executed: &[(u64, u64, u64)],
    settings: &TraceSettings,
    with: impl Fn(Emitter<'_>) -> Emitter<'_>,
) -> String {
    let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
    let mut cache_of_code = CodeWindows::holding(GuestAddr(pc.0 & !0x3fff), &{
        let mut window = vec![0; (pc.0 & 0x3fff) as usize];
        window.extend_from_slice(code);
        window
    });
    let mut batch = Batch::default();
    let mut trans = FragmentTable::default();
    for &(begin, end, n) in executed {
        trans.hotness.note(pc.plus(begin), pc.plus(end), n);
    }
    batch.discover(
        pc,
        true,
        &mut cache_of_code.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX)),
        &Untranslated(GUEST..GUEST.plus(0x1000), settings.stolen_registers()),
    );
    let e = with(Emitter::new(&batch, &mut trans, cache, TABLES, &|_| 0, &mut Work::default())).emit();
    let mut out = String::new();
    for (at, _, line) in text(code, pc.0) {
        let _ = writeln!(out, "guest {:x}: {line}", at - pc.0);
    }
    let end = if e.literals.is_empty() { e.code.buf.len() } else { e.literal_pos };
    let mut at = 0;
    while at < end {
        if let Some((_, id)) = e.stubs.iter().find(|(pos, _)| *pos == at) {
            let _ = writeln!(out, "{at:4x}: stop: {}", shown(trans.stubs[*id as usize].kind));
            at += 5;
            continue;
        }
        if let Some(b) = trans.blocks.iter().find(|b| b.cache == cache.plus(at as u64)) {
            let _ = writeln!(out, "block {:x}, {} instructions, counter {}", b.pc.since(pc), b.n, b.counter);
        }
        let (_, len, line) = text(&e.code.buf[at..end.min(at + 16)], cache.0 + at as u64).swap_remove(0);
        // On a way out that has not been counted yet, or on a way in that has.
        let outside =
            trans.blocks.iter().all(|b| !(b.cache..b.cache.plus(b.len.into())).contains(&cache.plus(at as u64)));
        let there = trans.place(cache.plus(at as u64)).filter(|_| outside).map_or(String::new(), |p| {
            assert!(p.index == 0 && p.bumped);
            format!(" ({} block {})", if p.at_start { "at the start of" } else { "not in" }, p.block.0)
        });
        let _ = writeln!(out, "{at:4x}: {line}{there}");
        at += len;
    }
    for (counter, site, _) in trans.follow.exits {
        let _ = writeln!(
            out,
            "exit {site}: {}",
            if counter == NO_COUNTER { String::new() } else { format!("counter {counter}") }
        );
    }
    for (counter, exit, off) in trans.follow.deferred {
        let _ = writeln!(out, "exit {exit}: {} counter {counter}", if off { "less" } else { "and" });
    }
    for (i, v) in e.literals.iter().enumerate() {
        let _ = writeln!(out, "{:4x}: .quad {v:#x}", e.literal_pos + 8 * i);
    }
    out
}

fn check(name: &str, code: &[u8]) {
    check_text(name, &listing(code, GUEST, CACHE));
}

fn check_text(name: &str, got: &str) {
    let path = format!("{}/tests/emitted/{name}.txt", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, got).expect("the listing can be written");
        return;
    }
    let want = std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{path}: {e}; run with BLESS=1 to make it"));
    assert_eq!(got, want, "{name}: look at the difference; BLESS=1 takes the new listing");
}

#[test]
fn a_loop_bumps_where_flags_are_dead() {
    // xor eax,eax; 1: add ecx,eax; dec ecx; jnz 1b; ret
    check("loop", &[0x31, 0xc0, 0x01, 0xc1, 0xff, 0xc9, 0x75, 0xfa, 0xc3]);
}

#[test]
fn a_loop_that_stores_vectors_is_emitted_more_often() {
    let copies = |code: &[u8], of: &str| {
        let text = listing(code, GUEST, CACHE);
        text.lines().filter(|l| !l.starts_with("guest") && l.contains(of)).count()
    };
    // 1: add ecx,eax; dec ecx; jnz 1b; ret
    assert_eq!(copies(&[0x01, 0xc1, 0xff, 0xc9, 0x75, 0xfa, 0xc3], "add %eax,%ecx"), 4);
    // 1: movaps [rdi],xmm0; add rdi,16; dec ecx; jnz 1b; ret
    let stores = [0x0f, 0x29, 0x07, 0x48, 0x83, 0xc7, 0x10, 0xff, 0xc9, 0x75, 0xf5, 0xc3];
    assert_eq!(copies(&stores, "movaps %xmm0,(%rdi)"), 16);
    // The same, loading.
    let loads = [0x0f, 0x28, 0x07, 0x48, 0x83, 0xc7, 0x10, 0xff, 0xc9, 0x75, 0xf5, 0xc3];
    assert_eq!(copies(&loads, "movaps (%rdi),%xmm0"), 4);
}

/// test eax,eax; jnz 1f; xor ecx,ecx; ret; 1: xor edx,edx; ret
const BRANCH: [u8; 10] = [0x85, 0xc0, 0x75, 0x03, 0x31, 0xc9, 0xc3, 0x31, 0xd2, 0xc3];

/// Its translation after a thousand executions, of which so many went each way.
fn branch(on: u64, away: u64) -> String {
    listing_with(&BRANCH, GUEST, CACHE, &[(0, 4, 1000), (4, 7, on), (7, 10, away)], |emitter| emitter)
}

#[test]
fn a_branch_that_is_hardly_taken_is_counted_where_it_is() {
    check_text("hardly_taken", &branch(990, 10));
}

#[test]
fn what_a_branch_nearly_always_leads_to_stands_behind_it() {
    check_text("nearly_always_taken", &branch(10, 990));
}

#[test]
fn where_calls_are_followed_what_has_been_executed_is_deferred_on() {
    // cmp edi,1; ja 2f; 1: add eax,8; ret; 2: lea edi,[rdi-1]; jmp 1b: what is counted is where it returns, and the jump, which
    // leads to what takes on the first block
    let code = [0x83, 0xff, 0x01, 0x77, 0x04, 0x83, 0xc0, 0x08, 0xc3, 0x8d, 0x7f, 0xff, 0xeb, 0xf7];
    let calls = Some(CallTrace { followed: true, ..CallTrace::default() });
    let settings = TraceSettings { calls, ..TraceSettings::default() };
    let got = listing_traced(&code, &settings, |e| e.bounded(&|_, _| false, true));
    check_text("deferred", &got);
}

#[test]
fn reads_and_writes_are_deferred_too_and_a_way_in_takes_them_off_in_front_of_what_the_block_has_in_front() {
    // cmp edi,1; mov rdx,[rsi]; ja 2f; 1: mov [rsi],eax; ret; 2: lea edi,[rdi-1]; jmp 1b
    let code = [0x83, 0xff, 0x01, 0x48, 0x8b, 0x16, 0x77, 0x03, 0x89, 0x06, 0xc3, 0x8d, 0x7f, 0xff, 0xeb, 0xf8];
    let cache = Some(SMALL);
    let calls = Some(CallTrace { followed: true, ..CallTrace::default() });
    let settings = TraceSettings { fetches: cache, accesses: cache, calls, ..TraceSettings::default() };
    let got = listing_traced(&code, &settings, |e| e.bounded(&|_, _| false, true));
    check_text("deferred_simulated", &got);
}

#[test]
fn each_use_moves_the_clock_which_is_in_a_register() {
    // 1: mov rax,[rdi]; test eax,eax; jz 2f; mov [rsi],rax; 2: mov rcx,[rdx+64]; dec ebx; jnz 1b; ret
    let code = [
        0x48, 0x8b, 0x07, 0x85, 0xc0, 0x74, 0x03, 0x48, 0x89, 0x06, 0x48, 0x8b, 0x4a, 0x40, 0xff, 0xcb, 0x75, 0xee,
        0xc3,
    ];
    let cache = Some(SMALL);
    let settings = TraceSettings { fetches: cache, accesses: cache, ..TraceSettings::default() };
    let got = listing_traced(&code, &settings, |e| e);
    check_text("clock", &got);
}

#[test]
fn what_names_a_register_that_is_taken_finds_there_what_is_the_programs() {
    // mov r10,r11; add r11,[r10+8]; mov [r10+r11*8],al; lea r11,[rip+0x10]; jmp [r10+r11*8]
    let code = [
        0x4d, 0x89, 0xda, 0x4d, 0x03, 0x5a, 0x08, 0x43, 0x88, 0x04, 0xda, 0x4c, 0x8d, 0x1d, 0x10, 0, 0, 0, 0x43, 0xff,
        0x24, 0xda,
    ];
    check("taken", &code);
    let settings = TraceSettings { accesses: Some(SMALL), ..TraceSettings::default() };
    let got = listing_traced(&code, &settings, |e| e);
    check_text("taken_both", &got);
    // mov r9,[r8+8]; mulx r8,r9,[r10+r11*8]; jmp [r9+r11*8]
    let code = [0x4d, 0x8b, 0x48, 0x08, 0xc4, 0x02, 0xb3, 0xf6, 0x04, 0xda, 0x43, 0xff, 0x24, 0xd9];
    check_text("taken_all", &listing_traced(&code, &settings, |e| e));
}

#[test]
fn frames_of_an_interpreter_are_recorded_in_front_of_what_says_which_runs() {
    const fn plain(offset: i8) -> CodeAt {
        CodeAt { offset, tags: 0 }
    }
    // mov [r12+0x48],r10; adc rax,rbx; ret
    let code = [0x4d, 0x89, 0x54, 0x24, 0x48, 0x48, 0x11, 0xd8, 0xc3];
    let told = TraceSettings { calls: Some(CallTrace::default()), ..TraceSettings::default() };
    let entered = listing_traced(&code, &told, |e| {
        let e = e.bounded(&|_, _| false, true);
        e.hooking(&|pc| (pc == GUEST).then_some(FrameHook::Entered { frame: 6, code: plain(0), holder: Some((7, 72)) }))
    });
    check_text("frame_entered", &entered);
    // What it stores is in a register that is taken, and flags are needed.
    let switched = listing_traced(&code, &told, |e| {
        let e = e.bounded(&|_, _| false, true);
        e.hooking(&|pc| {
            (pc == GUEST).then_some(FrameHook::Switched { frame: 10, code: plain(32), holder: Some((12, 72)) })
        })
    });
    check_text("frame_switched", &switched);
    // The word in the frame says something else in its lowest bit.
    const TAGGED: CodeAt = CodeAt { offset: 0, tags: 1 };
    let tagged = listing_traced(&code, &told, |e| {
        let e = e.bounded(&|_, _| false, true);
        e.hooking(&|pc| {
            (pc == GUEST).then_some(FrameHook::Switched { frame: 10, code: TAGGED, holder: Some((12, 72)) })
        })
    });
    check_text("frame_tagged", &tagged);
    let gone = listing_traced(&code, &told, |e| {
        let e = e.bounded(&|_, _| false, true);
        e.hooking(&|pc| (pc == GUEST).then_some(FrameHook::Gone { code: 7 }))
    });
    check_text("frame_gone", &gone);
}

#[test]
fn live_flags_are_kept_by_lea() {
    // jz +1; nop; adc [rbx], al; ret: carry and zero are live at the start
    check("live_flags", &[0x74, 0x01, 0x90, 0x10, 0x03, 0x0f, 0x94, 0xc0, 0xc3]);
}

#[test]
fn a_call_pushes_the_original_address_and_returns_to_a_ibl_target() {
    // call 1f; xor eax,eax; ret; 1: ret
    check("call", &[0xe8, 0x03, 0x00, 0x00, 0x00, 0x31, 0xc0, 0xc3, 0xc3]);
}

#[test]
fn indirect_transfers_look_up_their_target() {
    // call [rax+8]; jmp rcx
    check("indirect", &[0xff, 0x50, 0x08, 0xff, 0xe1]);
}

#[test]
fn calls_and_returns_are_pairs() {
    // call 1f; call [rax+8]; ret; 1: ret
    let code = [0xe8, 0x04, 0x00, 0x00, 0x00, 0xff, 0x50, 0x08, 0xc3, 0xc3];
    check_text("pairs", &listing_with(&code, GUEST, CACHE, &[], |e| e.in_pairs(true)));
}

#[test]
fn a_call_that_has_been_translated_goes_on_with_its_first_translation() {
    // nop; call 1f; ret; 1: ret
    let code = [0x90, 0xe8, 0x01, 0x00, 0x00, 0x00, 0xc3, 0xc3];
    let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
    let mut cache_of_code = CodeWindows::holding(GUEST, &code);
    let mut trans = FragmentTable::default();
    // What is found later begins within what is there.
    let [first, second] = [(GUEST, CACHE), (GUEST.plus(1), CACHE.plus(0x1000))].map(|(pc, cache)| {
        let mut batch = Batch::default();
        let mut reader = cache_of_code.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX));
        batch.discover(pc, true, &mut reader, &Untranslated(GUEST..GUEST.plus(0x1000), StolenRegisters::default()));
        Emitter::new(&batch, &mut trans, cache, TABLES, &|_| 0, &mut Work::default()).in_pairs(true).emit()
    });
    let calls = |lines: &[(u64, usize, String)]| lines.iter().filter(|(_, _, l)| l.starts_with("call ")).count();
    let (first, second) = (text(&first.code.buf, CACHE.0), text(&second.code.buf, CACHE.0 + 0x1000));
    assert_eq!((calls(&first), calls(&second)), (1, 0), "{second:#?}");
    let push = first.iter().find(|(_, _, l)| l == "push $0x400006").expect("the return address");
    assert!(second.iter().any(|(_, _, l)| *l == format!("jmp 0x{:016X}", push.0)), "{first:#?} {second:#?}");
}

#[test]
fn a_call_of_a_block_that_is_far_away_and_was_never_called_stops() {
    // call 1f; ret; 1: ret
    let code = [0xe8, 0x01, 0x00, 0x00, 0x00, 0xc3, 0xc3];
    let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
    let mut cache_of_code = CodeWindows::holding(GUEST, &code);
    let mut trans = FragmentTable::default();
    let [_, caller] = [(GUEST.plus(6), CACHE.plus(4 << 30), false), (GUEST, CACHE, true)].map(|(pc, cache, pairs)| {
        let mut batch = Batch::default();
        let mut reader = cache_of_code.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX));
        batch.discover(pc, true, &mut reader, &Untranslated(GUEST..GUEST.plus(0x1000), StolenRegisters::default()));
        Emitter::new(&batch, &mut trans, cache, TABLES, &|_| 0, &mut Work::default()).in_pairs(pairs).emit()
    });
    let lines = text(&caller.code.buf, CACHE.0);
    let call = lines.iter().find(|(_, _, l)| l.starts_with("call ")).expect("the call");
    // What takes back what has been pushed, and a stop for the callee.
    let to = u64::from_str_radix(call.2.trim_start_matches("call 0x"), 16).expect("an address");
    assert!(lines.iter().any(|(at, _, l)| *at == to && l == "lea 8(%rsp),%rsp"), "{lines:#?}");
    let stub = trans.stubs.iter().find(|s| s.addr == CacheAddr(to + 5)).expect("a stub behind it");
    assert!(matches!(stub.kind, StubKind::Exit { target, .. } if target == GUEST.plus(6)), "{stub:?}");
}

#[test]
fn behind_a_system_call_the_line_is_checked_again() {
    let checked = |code: &[u8]| {
        let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
        let mut cache_of_code = CodeWindows::holding(GUEST, code);
        let mut batch = Batch::default();
        let mut reader = cache_of_code.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX));
        batch.discover(GUEST, true, &mut reader, &Untranslated(GUEST..GUEST.plus(0x1000), StolenRegisters::Clock));
        let fetches = Some(FirstLevel { line: 64, sets: 64, ways: 8, widest: 64 });
        let settings = TraceSettings { fetches, ..TraceSettings::default() };
        let mut trans = FragmentTable::default();
        Emitter::new(&batch, &mut trans, CACHE, TABLES, &|_| 0, &mut Work::default()).traced(settings, true).emit();
        // What has no check in front is entered elsewhere.
        let behind = trans.blocks.iter().find(|b| b.pc == GUEST.plus(2)).expect("the block behind the first one");
        behind.entry == behind.cache
    };
    // syscall; xor eax,eax; ret: a thread may begin behind it, whose code cache is empty
    assert!(checked(&[0x0f, 0x05, 0x31, 0xc0, 0xc3]));
    // jz to the next instruction; xor eax,eax; ret
    assert!(!checked(&[0x74, 0x00, 0x31, 0xc0, 0xc3]));
}

#[test]
fn a_system_call_is_looked_up_and_runs_in_place() {
    // mov eax,39; syscall; ret
    check("syscall", &[0xb8, 0x27, 0, 0, 0, 0x0f, 0x05, 0xc3]);
}

#[test]
fn repeated_instructions_have_counters_of_their_own() {
    // rep movsb; repne scasb; addr32 rep stosb; ret
    check("rep", &[0xf3, 0xa4, 0xf2, 0xae, 0x67, 0xf3, 0xaa, 0xc3]);
}

#[test]
fn operands_relative_to_rip_and_gs() {
    // mov eax,[rip+0x100]; mov eax,gs:[rdi+8]; xsave [rsp+0x40]; ret
    check("operands", &[0x8b, 0x05, 0, 1, 0, 0, 0x65, 0x8b, 0x47, 0x08, 0x0f, 0xae, 0x64, 0x24, 0x40, 0xc3]);
}

#[test]
fn stops_for_what_grind_deferrals_out() {
    // cpuid; xgetbv; ud2
    check("stops", &[0x0f, 0xa2, 0x0f, 0x01, 0xd0, 0x0f, 0x0b]);
}

#[test]
fn a_far_operand_goes_through_a_register() {
    // mov eax,[rip+0x100]; push [rip+0x100]; ret
    let got = listing(&[0x8b, 0x05, 0, 1, 0, 0, 0xff, 0x35, 0, 1, 0, 0, 0xc3], GuestAddr(0x7fff_f7fc_0000), CACHE);
    assert!(got.contains("movabs $0x7FFFF7FC0106,"), "{got}");
    assert!(got.contains("movabs $0x7FFFF7FC010C,"), "{got}");
}

/// A bridge, and where its ways out lead.
fn check_bridge(name: &str, b: &bridge::Bridge) {
    let mut c = grind_asm::Asm { buf: Vec::new(), base: CACHE.0 };
    let built = bridge::emit(&mut c, b);
    let mut out = String::new();
    for (at, len, line) in text(&c.buf, CACHE.0) {
        let (from, to) = ((at - CACHE.0) as usize, (at - CACHE.0) as usize + len);
        if built.returns.is_some_and(|(pos, _)| pos == from) {
            out.push_str("returns:\n");
        }
        let field = |f: usize| (from..to).contains(&f);
        let way = match () {
            () if field(built.onward) => " (to the target)",
            () if built.else_.iter().any(|&f| field(f)) => " (to what comes next)",
            () if built.returns.is_some_and(|(_, f)| f.is_some_and(field)) => " (to where it returns to)",
            () => "",
        };
        let line = if way.is_empty() { line } else { line.split(' ').next().unwrap_or_default().to_owned() };
        let _ = writeln!(out, "{from:4x}: {line}{way}");
    }
    check_text(name, &out);
}

const CALL: bridge::Bridge = bridge::Bridge {
    indirect: None,
    always: StackEffect::Push { kind: CallKind::Call, levels: 2, returns_to: 0x40_1005 },
    live: 0,
    function: 3,
    level: 0,
    recursive: false,
    counters: [7, 8, 9, 10, 0, 0],
    totals: &[0],
    jumps: None,
    call_edge: 5,
    dead: 0,
    live_after: 0,
    dead_after: 0,
    through: false,
    told: false,
    off: false,
    unmatched_return: CACHE.0 + 40,
    stolen_registers: grind_layout::registers::StolenRegisters::Total,
};

#[test]
fn a_call_that_is_followed_pushes_a_frame_and_its_return_closes_it() {
    check_bridge("bridge_call", &CALL);
}

#[test]
fn calls_on_the_last_level_of_recursion_are_not_counted_as_going_on() {
    check_bridge("bridge_last_level", &bridge::Bridge { level: 1, ..CALL });
    check_bridge("bridge_recursive", &bridge::Bridge { level: 1, recursive: true, ..CALL });
}

#[test]
fn a_frame_has_all_totals_that_there_are() {
    check_bridge(
        "bridge_totals",
        &bridge::Bridge {
            totals: &[0, 1, 2],
            stolen_registers: grind_layout::registers::StolenRegisters::Clock,
            ..CALL
        },
    );
}

#[test]
fn where_each_call_is_told_a_frame_that_comes_or_goes_is_recorded_with_the_totals() {
    let told = bridge::Bridge { told: true, ..CALL };
    check_bridge("bridge_told", &told);
    let simulated = grind_layout::registers::StolenRegisters::Clock;
    let through = bridge::Bridge { told: true, through: true, totals: &[0, 1, 2], stolen_registers: simulated, ..CALL };
    check_bridge("bridge_told_through", &through);
}

#[test]
fn a_call_while_nothing_is_collected_has_its_frame_told() {
    let off = bridge::Bridge {
        totals: &[0, 1, 2],
        stolen_registers: grind_layout::registers::StolenRegisters::Clock,
        off: true,
        ..CALL
    };
    check_bridge("bridge_off", &off);
}

#[test]
fn a_jump_that_pushes_nothing_is_counted_where_jumps_are() {
    check_bridge("bridge_counted_jump", &bridge::Bridge { always: StackEffect::Nothing, jumps: Some(11), ..CALL });
}

#[test]
fn frames_are_told_by_a_routine_that_changes_nothing() {
    check_routine("stack_miss_path", super::stack::emit_stack_miss_path);
}

fn check_routine(name: &str, emit: impl Fn(&mut grind_asm::Asm)) {
    let mut c = grind_asm::Asm { buf: Vec::new(), base: CACHE.0 };
    emit(&mut c);
    let mut out = String::new();
    for (at, _, line) in text(&c.buf, CACHE.0) {
        let _ = writeln!(out, "{:4x}: {line}", at - CACHE.0);
    }
    check_text(name, &out);
}

/// A cache so small that its miss path can be read.
const SMALL: grind_trace::FirstLevel = grind_trace::FirstLevel { line: 64, sets: 16, ways: 3, widest: 64 };

#[test]
fn accesses_are_on_miss_path_by_their_lines_and_one_by_one_where_there_are_contexts() {
    check_routine("access_miss_path", |c| {
        super::miss_path::emit_access_miss_path(c, SMALL, false, Told::NOTHING, false)
    });
    check_routine("second_miss_path", |c| super::miss_path::emit_second_miss_path(c, SMALL, Told::NOTHING, false));
}

#[test]
fn a_second_line_finds_its_way_by_groups_of_four() {
    let cache = grind_trace::FirstLevel { ways: 12, ..SMALL };
    check_routine("second_miss_path_by_groups", |c| {
        super::miss_path::emit_second_miss_path(c, cache, Told::NOTHING, false)
    });
}

#[test]
fn where_tlbs_are_simulated_lines_are_shown_as_long_as_their_pages_are_there() {
    let tlb = |sets, ways| grind_trace::FirstTlb { sets, ways };
    let cache = FirstLevel { line: 64, ..SMALL };
    let tlbs = Some(grind_trace::FirstTlbs { data: tlb(16, 4), code: tlb(4, 2) });
    let settings = TraceSettings { fetches: Some(cache), accesses: Some(cache), tlbs, ..TraceSettings::default() };
    let [access, fetch, stack, second, bytes] = super::miss_path::all(&settings, false);
    assert!(stack.is_none() && second.is_none() && bytes.is_none());
    check_routine("access_miss_path_with_pages", access.expect("one"));
    check_routine("fetch_miss_path_with_pages", fetch.expect("one"));
}

#[test]
fn bytes_become_known_before_they_are_told() {
    check_routine("bytes_path", |c| super::miss_path::emit_bytes_path(c, false));
    check_routine("bytes_path_with_owners", |c| super::miss_path::emit_bytes_path(c, true));
    let told = Told { bytes: true, ..Told::NOTHING };
    check_routine("second_miss_path_with_bytes", |c| super::miss_path::emit_second_miss_path(c, SMALL, told, false));
}

#[test]
fn what_goes_is_told_before_what_comes_takes_its_way() {
    let told = Told { ages: true, ..Told::NOTHING };
    check_routine("access_miss_path_with_ages", |c| {
        super::miss_path::emit_access_miss_path(c, SMALL, false, told, false);
    });
    let settings = TraceSettings { accesses: Some(SMALL), ages: true, ..TraceSettings::default() };
    assert!(super::miss_path::all(&settings, false)[3].is_none(), "it would not tell it");
}

#[test]
fn a_fetch_is_on_miss_path_by_what_is_on_its_stack() {
    check_routine("fetch_miss_path", |c| super::miss_path::emit_fetch_miss_path(c, SMALL, false, false, false));
    check_routine("fetch_miss_path_with_ways", |c| {
        super::miss_path::emit_fetch_miss_path(c, SMALL, false, true, false);
    });
}

#[test]
fn entries_of_very_long_lines_take_all_of_an_address() {
    check_routine("long_entry", |c| {
        for bits in [18, 19] {
            c.entry(grind_layout::registers::Gpr::RCX, grind_layout::registers::Gpr(0), bits);
        }
    });
}

#[test]
fn a_bridge_uses_registers_that_its_target_does_not_need_and_keeps_flags_that_it_needs() {
    // rax and rdi are dead at the target, carry is live; so it is where the call, far away, returns to.
    let always = StackEffect::Push { kind: CallKind::Call, levels: 1, returns_to: 0x7fff_f7e0_1234 };
    let flags = bridge::Bridge { always, live: 1, live_after: 1, dead: 1 | 1 << 7, ..CALL };
    check_bridge("bridge_flags", &flags);
    // Where r8 is free, they are kept there.
    let simulated = bridge::Bridge {
        totals: &[0, 1, 2],
        stolen_registers: grind_layout::registers::StolenRegisters::Clock,
        ..flags
    };
    check_bridge("bridge_flags_simulated", &simulated);
}

#[test]
fn a_jump_out_of_a_stub_is_a_call_whose_return_leaves_the_stub_too() {
    let always = StackEffect::Push { kind: CallKind::Through, levels: 2, returns_to: 0x40_1005 };
    check_bridge(
        "bridge_through",
        &bridge::Bridge { always, indirect: Some(GuestAddr(0x40_2000)), level: 1, through: true, ..CALL },
    );
}

#[test]
fn a_jump_that_is_a_call_shares_the_frame_below() {
    let always = StackEffect::Push { kind: CallKind::Jump, levels: 2, returns_to: 0 };
    check_bridge("bridge_jump", &bridge::Bridge { always, ..CALL });
}

#[test]
fn a_jump_that_is_none_makes_sure_that_no_frame_is_left() {
    check_bridge(
        "bridge_nothing",
        &bridge::Bridge { always: StackEffect::Nothing, indirect: Some(GuestAddr(0x40_1080)), ..CALL },
    );
}
