//! Random programs with instructions of all kinds, and a stack at a fixed place.

use std::fmt::Write as _;
use std::path::Path;

use grind_tests::build::compile;
use grind_tests::random::{self, Features};

/// The instructions that put the stack there.
const BSS: &str = "    .bss\n    .balign 4096\n    .space 8192\nstack_top: .space 64\n    .text\n";
const SET_STACK: &str = "_start:\n    lea stack_top(%rip), %rsp\n";

/// A random program with everything that the processor has.
fn whole(seed: u64) -> String {
    BSS.to_owned() + &random::program(seed, 6, 25, Features::of_this_processor()).replace("_start:\n", SET_STACK)
}

/// A random program that does the same under the reference as natively: without what the reference does differently (bit
/// tests of a register go through memory there, a repeated LODS runs once, string compares exist only repeated, a fused
/// multiplication reads its operand element by element), and with defined flags after instructions that leave some undefined.
fn tame(seed: u64) -> String {
    let features = Features { avx512: false, ..Features::of_this_processor() };
    let mut text = String::from(BSS);
    for line in random::program(seed, 6, 25, features).lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let first = words.first().copied().unwrap_or("");
        let bit_test = ["bt", "bts", "btr", "btc"].iter().any(|b| first.trim_end_matches(['w', 'l', 'q']) == *b);
        let undefined = bit_test
            || ["shl", "shr", "sar", "rol", "ror", "rcl", "rcr", "shld", "shrd", "imul", "mul", "div", "bsf", "bsr"]
                .iter()
                .any(|o| first.trim_end_matches(['b', 'w', 'l', 'q']) == o.trim_end_matches(['b', 'w', 'l', 'q']))
            || ["popcnt", "lzcnt", "tzcnt", "bzhi", "bextr", "andn", "and", "or", "xor", "test"]
                .iter()
                .any(|o| first == *o || first.len() == o.len() + 1 && first.starts_with(o));
        let unlike = bit_test && !line.contains('(')
            || line.contains("lods")
            || line.contains("repne cmps")
            || first.starts_with("cmps")
            || first == "rorx" && line.contains("%rip")
            || first.starts_with("vf") && line.contains('(');
        if unlike {
            continue;
        }
        if line.starts_with(".section .entries") {
            // The reference knows the lines of one section.
            text.push_str(".text 1\n");
            continue;
        }
        if line == "_start:" {
            text.push_str(SET_STACK);
            continue;
        }
        let _ = writeln!(text, "{line}");
        if undefined && !words[1..].contains(&"(%rsp)") {
            text.push_str("    cmp %r12d, %r13d\n");
        }
    }
    text
}

/// Writes and builds the program with this seed; `for_reference`: one that the reference does likewise.
pub(crate) fn build(seed: u64, for_reference: bool, dir: &Path) -> std::path::PathBuf {
    let from = dir.join(format!("random{seed}.s"));
    let to = dir.join(format!("random{seed}"));
    let text = if for_reference { tame(seed) } else { whole(seed) };
    std::fs::write(&from, text).expect("a writable folder");
    let words = ["gcc", "-g", "-static", "-nostdlib", "-no-pie", "-o"].map(str::to_owned);
    let mut words = words.to_vec();
    words.extend([to.display().to_string(), from.display().to_string()]);
    compile(&words, dir);
    to
}
