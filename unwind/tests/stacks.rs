//! Stacks of real programs, against what the C library's `backtrace` says of them; and of broken ones, which must end.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use grind_tests::build::compile;
use grind_unwind::{End, Kind, Mapping, Memory, Method, Registers, Stack, Unwinder, register};

/// A program that waits, what it has told of itself, and what is needed to read its stack.
struct Waiting {
    child: Child,
    memory: File,
    mappings: Vec<Mapping>,
    registers: Registers,
    /// Return addresses, as the C library knows them.
    told: Vec<u64>,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Waiting {
    fn start(program: &Path, what: &str) -> Self {
        let mut child =
            Command::new(program).arg(what).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let numbers: Vec<u64> = line
            .split_whitespace()
            .map(|w| u64::from_str_radix(w.trim_start_matches("0x"), 16).expect("a number"))
            .collect();
        // The order of `gregs`: r8 to r15, rdi, rsi, rbp, rbx, rdx, rax, rcx, rsp, rip.
        let mut registers = Registers::new(numbers[16], numbers[15], numbers[10]);
        registers.general[register::RBX] = Some(numbers[11]);
        for (register, value) in registers.general[8..].iter_mut().zip(&numbers) {
            *register = Some(*value);
        }
        let pid = child.id();
        let memory = File::open(format!("/proc/{pid}/mem")).unwrap();
        let mappings = mappings(&std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap());
        Self { child, memory, mappings, registers, told: numbers[23..].to_vec() }
    }

    fn stack(&self, most: usize) -> Stack {
        Unwinder::new(self.mappings.clone()).stack(self, &self.registers, most)
    }
}

impl Memory for Waiting {
    fn read(&self, at: u64, into: &mut [u8]) -> usize {
        self.memory.read_at(into, at).unwrap_or(0)
    }

    fn program(&self) -> Option<File> {
        File::open(format!("/proc/{}/exe", self.child.id())).ok()
    }
}

fn mappings(text: &str) -> Vec<Mapping> {
    let of_line = |line: &str| {
        let mut words = line.split_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let number = |w: &str| u64::from_str_radix(w, 16).ok();
        let executable = words.next()?.contains('x');
        let offset = number(words.next()?)?;
        let inode: u64 = words.nth(1)?.parse().ok()?;
        Some(Mapping {
            start: number(start)?,
            end: number(end)?,
            offset,
            executable,
            file: (inode != 0).then_some(inode),
        })
    };
    text.lines().filter_map(of_line).collect()
}

fn build(dir: &Path, name: &str, words: &[&str]) -> PathBuf {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stacks.c");
    let out = dir.join(name);
    let mut all: Vec<String> = ["gcc", "-o"].map(String::from).to_vec();
    all.extend([out.display().to_string(), source.display().to_string()]);
    all.extend(words.iter().map(|w| (*w).to_owned()));
    compile(&all, dir);
    out
}

fn returns(stack: &Stack) -> Vec<u64> {
    stack.frames[1..].iter().map(|f| f.pc).collect()
}

const KINDS: [&str; 7] = ["deep", "alloca", "aligned", "callback", "signal", "alternate", "fault"];

#[test]
fn stacks_are_those_that_the_c_library_knows() {
    let dir = tempfile::tempdir().unwrap();
    for (name, words) in [
        ("o0", &["-O0"][..]),
        ("o2", &["-O2"]),
        ("pointers", &["-O2", "-fno-omit-frame-pointer"]),
        ("realigned", &["-O1", "-mstackrealign", "-mavx2"]),
        ("static", &["-O2", "-static"]),
        ("fixed", &["-O2", "-no-pie"]),
    ] {
        let program = build(dir.path(), name, words);
        for what in KINDS {
            let waiting = Waiting::start(&program, what);
            let stack = waiting.stack(1000);
            assert!(waiting.told.len() >= 3, "{name} {what}: {:x?}", waiting.told);
            assert_eq!(returns(&stack), waiting.told, "{name} {what}");
            assert_eq!(stack.end, End::Outermost, "{name} {what}");
            assert!(stack.frames.iter().all(|f| f.by == Some(Method::Description)), "{name} {what}: {stack:x?}");
            let signals = stack.frames.iter().filter(|f| f.kind == Kind::Interrupted).count();
            assert_eq!(signals, usize::from(["signal", "alternate", "fault"].contains(&what)), "{name} {what}");
            // What is returned to stands below the canonical frame address.
            for pair in stack.frames.windows(2).filter(|pair| pair[1].kind == Kind::Called) {
                let mut word = [0; 8];
                waiting.read(pair[0].cfa.expect("known but for the last") - 8, &mut word);
                assert_eq!(u64::from_le_bytes(word), pair[1].pc, "{name} {what}");
            }
        }
    }
}

#[test]
fn frame_pointers_are_followed_where_nothing_is_described() {
    let dir = tempfile::tempdir().unwrap();
    let none = ["-O1", "-fno-asynchronous-unwind-tables", "-fno-unwind-tables", "-fno-optimize-sibling-calls"];
    let with: Vec<&str> = none.into_iter().chain(["-fno-omit-frame-pointer"]).collect();
    let described = build(dir.path(), "described", &["-O1", "-fno-optimize-sibling-calls"]);
    let program = build(dir.path(), "pointers", &with);
    for what in ["deep", "alloca", "callback"] {
        let expected = Waiting::start(&described, what).told.len();
        let stack = Waiting::start(&program, what).stack(1000);
        assert_eq!(stack.frames[0].by, Some(Method::FramePointer));
        // What calls main has descriptions again.
        assert_eq!((stack.frames.len() - 1, stack.end), (expected, End::Outermost), "{what}: {stack:x?}");
    }
    let bare: Vec<&str> = none.into_iter().chain(["-fomit-frame-pointer"]).collect();
    let stack = Waiting::start(&build(dir.path(), "bare", &bare), "deep").stack(1000);
    assert!(stack.frames.len() < 100, "nothing tells of frames there: {stack:x?}");
}

#[test]
fn no_more_frames_than_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let waiting = Waiting::start(&build(dir.path(), "o2", &["-O2", "-foptimize-sibling-calls"]), "deep");
    for most in [1, 2, 50] {
        let stack = waiting.stack(most);
        assert_eq!((stack.frames.len(), stack.end), (most, End::TooDeep));
        assert_eq!(returns(&stack), waiting.told[..most - 1]);
    }
    assert_eq!(waiting.stack(0).frames.len(), 1);
}

#[test]
fn broken_memory_ends_the_stack() {
    let dir = tempfile::tempdir().unwrap();
    let program = build(dir.path(), "o1", &["-O1", "-mstackrealign"]);
    // xorshift64: the same mistakes each time.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let mut different = 0;
    for what in ["deep", "signal"] {
        let waiting = Waiting::start(&program, what);
        let right = waiting.stack(1000);
        for round in 0..300 {
            // One byte in as many is wrong, wherever it is read.
            let rate = [20, 200, 2000, 20_000][round % 4];
            let (seed, kind) = (random(), random());
            let read = |at: u64, into: &mut [u8]| {
                let n = waiting.read(at, into);
                for (i, b) in into[..n].iter_mut().enumerate() {
                    let mut h = ((at + i as u64) ^ seed).wrapping_mul(0xff51_afd7_ed55_8ccd);
                    h ^= h >> 33;
                    if h.is_multiple_of(rate) {
                        *b ^= (h >> 40) as u8;
                    }
                }
                // Sometimes there is less than there should be.
                if kind.is_multiple_of(3) { n - n / 3 } else { n }
            };
            let stack = Unwinder::new(waiting.mappings.clone()).stack(&read, &waiting.registers, 1000);
            assert!((1..=1000).contains(&stack.frames.len()));
            different += usize::from(stack != right);
        }
        let mut nowhere = waiting.registers;
        nowhere.general = [Some(u64::MAX - 7); register::COUNT];
        for rip in [0, u64::MAX, waiting.registers.rip] {
            nowhere.rip = rip;
            let stack = Unwinder::new(waiting.mappings.clone()).stack(&waiting, &nowhere, 1000);
            assert_eq!(stack.frames.len(), 1);
        }
        assert_eq!(Unwinder::new(vec![]).stack(&|_: u64, _: &mut [u8]| 0, &waiting.registers, 9).end, End::Unknown);
    }
    assert!(different > 100, "mistakes were made: {different}");
}
