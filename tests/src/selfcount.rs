//! The third oracle: a random program rewritten so that it counts its own instructions, one by one, in memory. It runs
//! natively, so a hundred million instructions take a second, where single-stepping takes half an hour; single-stepping
//! small programs checks the rewriting.
//!
//! Before each instruction stands code that adds one and changes no flags, no register and no memory but the counter's. What
//! REP repeats is counted from rcx afterwards, as `step` does: each iteration, and the test that ends it by its count. It is
//! for what `random` generates only: text in which every instruction has a line of its own, and whose registers never
//! depend on where code is.

use std::fmt::Write as _;

/// Where the counter is in the 4096 bytes of state that a program writes behind its memory.
pub const COUNTER: usize = 4088;

const SAVED: [&str; 3] = ["state+4064(%rip)", "state+4072(%rip)", "state+4080(%rip)"];
const TOTAL: &str = "state+4088(%rip)";

/// The program of this source, counting itself. The count that it writes includes everything up to the system call that
/// writes it.
pub fn counting(source: &str) -> String {
    let mut out = String::with_capacity(source.len() * 8);
    let mut labels = 0;
    for line in source.lines() {
        let words = line.trim();
        if !line.starts_with(' ') || words.starts_with('.') {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        labels += 1;
        let (op, rest) = words.split_once(' ').unwrap_or((words, ""));
        match op {
            "rep" | "repe" | "repne" => repeated(&mut out, op, rest, labels),
            // Their targets are at most 127 bytes away.
            "loop" | "loope" | "loopne" | "jrcxz" => {
                count_one(&mut out);
                let _ = writeln!(out, "    {op} .Lyes{labels}\n    jmp .Lno{labels}");
                let _ = writeln!(out, ".Lyes{labels}: jmp {rest}\n.Lno{labels}:");
            }
            _ => {
                count_one(&mut out);
                let _ = writeln!(out, "    {words}");
            }
        }
    }
    out
}

/// How many instructions `source` executes behind the system call that writes its state.
pub fn after_writing(source: &str) -> u64 {
    let text = source.split_once("    syscall\n").map_or("", |(_, rest)| rest);
    let end = text.split_once("    syscall\n").map_or("", |(before, _)| before);
    end.lines().filter(|l| l.starts_with(' ')).count() as u64 + 1
}

fn count_one(out: &mut String) {
    let [rax, ..] = SAVED;
    let _ = writeln!(out, "    mov %rax, {rax}\n    mov {TOTAL}, %rax\n    lea 1(%rax), %rax");
    let _ = writeln!(out, "    mov %rax, {TOTAL}\n    mov {rax}, %rax");
}

fn repeated(out: &mut String, prefix: &str, operation: &str, label: u32) {
    let [rax, rdx, rcx] = SAVED;
    let _ = writeln!(out, "    mov %rcx, {rcx}\n    {prefix} {operation}");
    // The total grows by rcx before less rcx now; `not` changes no flags.
    let _ = writeln!(out, "    mov %rax, {rax}\n    mov %rdx, {rdx}\n    mov %rcx, %rax\n    not %rax");
    let _ = writeln!(out, "    mov {rcx}, %rdx\n    lea 1(%rax,%rdx), %rax\n    mov {TOTAL}, %rdx");
    let _ = writeln!(out, "    lea (%rax,%rdx), %rax\n    mov %rax, {TOTAL}\n    mov {rax}, %rax\n    mov {rdx}, %rdx");
    // And by one if the count has ended it: it is 0 now, and was before, or the comparison does not end it as well.
    let _ = writeln!(out, "    jrcxz .Lempty{label}\n    jmp .Lend{label}\n.Lempty{label}:");
    if operation.starts_with("cmps") || operation.starts_with("scas") {
        let ends = if prefix == "repe" { "jne" } else { "je" };
        let _ = writeln!(out, "    mov {rcx}, %rcx\n    jrcxz .Lone{label}\n    mov $0, %ecx\n    {ends} .Lend{label}");
        let _ = writeln!(out, ".Lone{label}:");
    }
    count_one(out);
    let _ = writeln!(out, ".Lend{label}:");
}
