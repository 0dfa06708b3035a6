//! Whether the table of translations can say how large the largest block is: as many instructions as a block may have, of the
//! kinds whose translations are longest.

use grind_ptrace::Memory;
use grind_types::addr::CacheAddr;
use grind_types::{Pid, Tid};

use grind_fragments::batch::Batch;
use grind_fragments::code_reader::CodeWindows;
use grind_fragments::fragment_table::{FragmentTable, NO_REG};
use grind_fragments::testing::Untranslated;
use grind_isa::decode::MAX_INSNS;
use grind_trace::{CallTrace, FirstLevel, TraceSettings};
use grind_types::addr::GuestAddr;

use super::{Emitter, Work};

const GUEST: GuestAddr = GuestAddr(0x40_0000);

/// Everything that can be simulated.
fn traced() -> TraceSettings {
    let level = FirstLevel { line: 64, sets: 64, ways: 8, widest: 64 };
    TraceSettings { fetches: Some(level), accesses: Some(level), branches: true, ..TraceSettings::default() }
}

/// The same, with calls told, and uses of lines kept.
fn used() -> TraceSettings {
    TraceSettings { uses: true, calls: Some(CallTrace { jumps: true, ..CallTrace::default() }), ..traced() }
}

#[test]
fn offsets_into_the_largest_blocks_are_whole() {
    // The instructions that are repeated, their number, and whether they leave the flags alone.
    let kinds: [(&str, &[u8], usize, bool); 10] = [
        ("rep movsb; mov rax, [rsi+8]", &[0xf3, 0xa4, 0x48, 0x8b, 0x46, 0x08], 2, true),
        ("rep movsb", &[0xf3, 0xa4], 1, true),
        ("addr32 rep movsq", &[0x67, 0xf3, 0x48, 0xa5], 1, true),
        ("repne cmpsq", &[0xf2, 0x48, 0xa7], 1, false),
        ("repe scasb", &[0xf3, 0xae], 1, false),
        ("vpgatherdd zmm1{k1}, [rax+zmm2*4]", &[0x62, 0xf2, 0x7d, 0x49, 0x90, 0x0c, 0x90], 1, true),
        ("vgatherdps ymm1, [rax+ymm2*4], ymm3", &[0xc4, 0xe2, 0x65, 0x92, 0x0c, 0x90], 1, true),
        ("vpmaskmovd [rax], ymm1, ymm2", &[0xc4, 0xe2, 0x75, 0x8e, 0x10], 1, true),
        ("vpscatterdd [rax+zmm2*4]{k1}, zmm1", &[0x62, 0xf2, 0x7d, 0x49, 0xa0, 0x0c, 0x90], 1, true),
        ("lock cmpxchg16b [rsi]", &[0xf0, 0x48, 0x0f, 0xc7, 0x0e], 1, false),
    ];
    let memory = Memory::open(Tid::main_of(Pid::own())).expect("/proc is there");
    let mut longest = 0;
    for (name, bytes, n, keeps_flags) in kinds {
        for settings in [TraceSettings::default(), traced(), used()] {
            // lahf; xor eax, eax: flags are not dead before, so that the counter is bumped here.
            let repeats = (MAX_INSNS - 2) / n;
            let mut code: Vec<u8> = bytes.repeat(repeats);
            code.extend([0x9f, 0x31, 0xc0, 0xc3]);
            let mut window = CodeWindows::holding(GUEST, &code);
            let mut batch = Batch::default();
            batch.discover(
                GUEST,
                false,
                &mut window.reader(&memory, &|_, _| false, &|_| GuestAddr(u64::MAX)),
                &Untranslated(GUEST..GUEST, settings.stolen_registers()),
            );
            let mut trans = FragmentTable::default();
            let e = Emitter::new(&batch, &mut trans, CacheAddr(0x5000_0000), 0x7fe7_0000, &|_| 0, &mut Work::default())
                .traced(settings, false)
                .emit();
            let b = trans.blocks[0];
            assert!(usize::from(b.n) > MAX_INSNS - 3, "{name}: {} instructions", b.n);
            assert!(e.code.buf.len() >= b.len as usize, "{name}");
            let sizes: Vec<u64> =
                trans.shapes[b.shapes as usize..][..usize::from(b.n)].iter().map(|s| u64::from(s.cache)).collect();
            let all: u64 = sizes.iter().sum();
            longest = longest.max(all);
            let end = if settings.any() { "traced" } else { "counted" };
            assert!(all <= u64::from(b.len), "{name}, {end}: {all} of {} bytes", b.len);
            if keeps_flags {
                let xor = sizes[..=repeats * n].iter().sum::<u64>();
                let bump = u64::from(b.bump_end);
                // A block that is told is told at its end.
                let last = if settings.calls.is_some() { all } else { all - 1 };
                assert!((xor..=last).contains(&bump), "{name}, {end}: bumped at {bump}, not behind {xor}");
            }
            if b.held != [NO_REG; 2] {
                // Up to the last check.
                assert!(u64::from(b.held_to) > all / 2, "{name}, {end}: held to {} of {all}", b.held_to);
            }
        }
    }
    assert!(longest > 1 << 16, "{longest}: no kind is so long that 16 bits would not do");
}
