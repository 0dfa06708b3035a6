//! Estimated cycles of whole programs: counts of instructions stay what they are, and what a loop is estimated to cost is what the
//! tables say of its instructions, times its executions.

use std::path::Path;

use grind_tests::build::compile;
use grind_tests::run::Job;
use grind_tests::tools;

/// What line `line` of the source costs, by event.
fn costs(program: &Path, options: &[&str], dir: &Path, line: u32) -> Vec<(String, u64)> {
    let way: Vec<String> = tools::under_test().iter().cloned().chain(options.iter().map(|o| (*o).to_owned())).collect();
    let path = program.display().to_string();
    let done = Job::new([path.as_str()], dir).profiled(&way);
    assert!(done.outcome.status.success(), "{}\n{}", done.outcome.show(), done.log);
    let text = String::from_utf8_lossy(&done.raw[0].1).into_owned();
    let events: Vec<&str> = text.lines().find_map(|l| l.strip_prefix("events: ")).expect("events").split(' ').collect();
    let mut sums = vec![0; events.len()];
    let mut here = false;
    for row in text.lines() {
        if let Some(name) = row.strip_prefix("fn=") {
            here = name == "loops";
        } else if let Some(counts) = row.strip_prefix(&format!("{line} ")).filter(|_| here) {
            let counts = counts.split(' ').map(|n| n.parse::<u64>().expect("a count"));
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
    }
    events.into_iter().map(str::to_owned).zip(sums).collect()
}

#[test]
fn loops_cost_what_the_tables_say() {
    let dir = tempfile::tempdir().expect("a folder");
    let source = dir.path().join("loops.S");
    // Lines 6 to 8: the loop, a million times. A multiplication, an addition that loads, a fused pair at the end.
    let text = "\t.globl main\n\t.type loops, @function\nloops:\n\tmov $1000000, %ecx\n\tlea 8(%rsp), %rsi\n1:\timul %rdx, %rax\n\
                \tadd (%rsi), %rdi\n\tdec %ecx\n\tjnz 1b\n\txor %eax, %eax\n\tret\n\t.size loops, .-loops\nmain:\n\tcall loops\n\tret\n\
                \t.section .note.GNU-stack,\"\",@progbits\n";
    std::fs::write(&source, text).expect("a source file");
    let program = dir.path().join("loops");
    let words =
        ["gcc".to_owned(), "-g".into(), "-o".into(), program.display().to_string(), source.display().to_string()];
    compile(&words, dir.path());
    let n = 1_000_000;
    let of = |options: &[&str], line| costs(&program, options, dir.path(), line);
    let named = |all: [(&str, u64); 4]| all.map(|(name, count)| (name.to_owned(), count)).to_vec();
    let cycles = ["--cycle-estimation=yes"];
    // Of Skylake: imul 1 on one port, latency 3; add with load 0.5, latency 6; dec 0.25, jnz 0.5. The front end: 5 of 6 operations in a
    // cycle; the bound is a cycle, that of the multiplication's port.
    assert_eq!(of(&cycles, 6), named([("Ir", n), ("Ct", 100 * n), ("Cl", 300 * n), ("Cb", 100 * n)]));
    assert_eq!(of(&cycles, 7), named([("Ir", n), ("Ct", 50 * n), ("Cl", 600 * n), ("Cb", 0)]));
    assert_eq!(of(&cycles, 8), named([("Ir", n), ("Ct", 25 * n), ("Cl", 100 * n), ("Cb", 0)]));
    // The bare counts are the same, and so they are with caches.
    assert_eq!(of(&[], 6), [("Ir".to_owned(), n)]);
    let all = of(
        &["--cycle-estimation=yes", "--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=8388608,16,64"],
        7,
    );
    assert_eq!(all.len(), 12);
    assert_eq!((&all[9].0[..], all[9].1, all[10].1), ("Ct", 50 * n, 600 * n));
    // Another processor.
    let zen = of(&["--cycle-estimation=yes", "--cycle-model=zen4"], 7);
    assert_eq!((&zen[2].0[..], zen[2].1 >= 500 * n), ("Cl", true));
}
