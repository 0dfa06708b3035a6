//! Generates random programs in assembly: every register, size, flag and memory form, branches, calls, vectors, REP.
//!
//! A program is static, ends by itself, and writes its whole state (registers, flags, vector registers, memory) to standard
//! output. The same seed gives the same program. It never reads the trap flag or the clock, so that it takes the same path
//! when it is single-stepped. `rbx` points to the memory that it works in, `r12` is a small index, `r13` counts the rounds.

use std::fmt::Write as _;

/// Bytes of memory that a program works in.
const MEMORY: u32 = 2048;
const REGISTERS: [[&str; 4]; 12] = [
    ["al", "ax", "eax", "rax"],
    ["cl", "cx", "ecx", "rcx"],
    ["dl", "dx", "edx", "rdx"],
    ["sil", "si", "esi", "rsi"],
    ["dil", "di", "edi", "rdi"],
    ["bpl", "bp", "ebp", "rbp"],
    ["r8b", "r8w", "r8d", "r8"],
    ["r9b", "r9w", "r9d", "r9"],
    ["r10b", "r10w", "r10d", "r10"],
    ["r11b", "r11w", "r11d", "r11"],
    ["r14b", "r14w", "r14d", "r14"],
    ["r15b", "r15w", "r15d", "r15"],
];
const CONDITIONS: [&str; 16] = ["o", "no", "b", "ae", "e", "ne", "be", "a", "s", "ns", "p", "np", "l", "ge", "le", "g"];
const SUFFIXES: [char; 4] = ['b', 'w', 'l', 'q'];

/// What the processor has beyond x86-64.
#[derive(Clone, Copy, Debug)]
pub struct Features {
    /// AVX2, BMI1, BMI2 and FMA.
    pub avx2: bool,
    /// AVX-512 F, BW, DQ and VL.
    pub avx512: bool,
}

impl Features {
    /// Those of this processor.
    pub fn of_this_processor() -> Features {
        let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let all = |names: &[&str]| names.iter().all(|n| info.contains(&format!(" {n} ")));
        Features {
            avx2: all(&["avx2", "bmi1", "bmi2", "fma", "movbe"]),
            avx512: all(&["avx512f", "avx512bw", "avx512dq", "avx512vl"]),
        }
    }
}

struct Generator {
    state: u64,
    labels: u32,
    features: Features,
    text: String,
}

/// Words for the compiler that assembles and links a program: what its registers may point to is at fixed addresses.
pub const WORDS: [&str; 6] =
    ["gcc", "-static", "-nostdlib", "-no-pie", "-Wl,--section-start=.entries=0x10000000,-Tdata=0x20000000", "-o"];

/// The assembly source of the program with this seed, of `functions` functions run `rounds` times.
pub fn program(seed: u64, functions: u32, rounds: u32, features: Features) -> String {
    let state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def1;
    let mut g = Generator { state, labels: 0, features, text: String::new() };
    for _ in 0..8 {
        g.next();
    }
    g.whole(functions, rounds);
    g.text
}

impl Generator {
    fn next(&mut self) -> u64 {
        // xorshift64*
        self.state ^= self.state >> 12;
        self.state ^= self.state << 25;
        self.state ^= self.state >> 27;
        self.state.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 16
    }

    fn below(&mut self, n: u32) -> u32 {
        (self.next() % u64::from(n)) as u32
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len() as u32) as usize]
    }

    fn emit(&mut self, line: &str) {
        self.text.push_str("    ");
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn register(&mut self, size: usize) -> String {
        // Now and then a high byte.
        if size == 0 && self.below(6) == 0 {
            return format!("%{}", self.pick(&["ah", "ch", "dh"]));
        }
        format!("%{}", REGISTERS[self.below(12) as usize][size])
    }

    /// A register that may stand beside a memory operand or a REX register: no high byte.
    fn plain(&mut self, size: usize) -> String {
        format!("%{}", REGISTERS[self.below(12) as usize][size])
    }

    /// A register of 32 or 64 bits.
    fn wide(&mut self) -> String {
        let size = 2 + self.below(2) as usize;
        self.plain(size)
    }

    /// A memory operand within the memory, for accesses of up to 64 bytes.
    fn memory(&mut self) -> String {
        let at = self.below(MEMORY - 64 * 9);
        match self.below(7) {
            0 => format!("{}(%rbx)", at % 128),
            1 | 2 => format!("{at}(%rbx)"),
            3 => format!("{}(%rbx,%r12,{})", at, 1 << self.below(4)),
            4 => format!("memory+{at}(%rip)"),
            5 => format!("memory+{at}(,%r12,{})", 1 << self.below(4)),
            _ => format!("{}(%ebx,%r12d)", at),
        }
    }

    fn immediate(&mut self, size: usize) -> String {
        let value = self.next() as i64;
        match (size, self.below(3)) {
            (0, _) | (_, 0) => format!("${}", value as i8),
            (1, _) => format!("${}", value as i16),
            _ => format!("${}", value as i32),
        }
    }

    fn vector(&mut self, kind: char) -> String {
        format!("%{kind}mm{}", self.below(16))
    }

    /// One or a few instructions without control flow.
    fn straight(&mut self) {
        let size = self.below(4) as usize;
        let s = SUFFIXES[size];
        match self.below(30) {
            0..=4 => {
                let op = self.pick(&["add", "sub", "and", "or", "xor", "cmp", "adc", "sbb", "test", "mov"]);
                let line = match self.below(4) {
                    // A high byte cannot stand beside a register that needs REX.
                    0 => format!("{op}{s} {}, {}", self.plain(size), self.plain(size)),
                    1 if op != "test" => format!("{op}{s} {}, {}", self.memory(), self.plain(size)),
                    2 => format!("{op}{s} {}, {}", self.immediate(size), self.memory()),
                    3 => format!("{op}{s} {}, {}", self.immediate(size), self.register(size)),
                    _ => format!("{op}{s} {}, {}", self.plain(size), self.memory()),
                };
                self.emit(&line);
            }
            5 => {
                let op = self.pick(&["inc", "dec", "neg", "not"]);
                let to = if self.below(2) == 0 { self.memory() } else { self.register(size) };
                self.emit(&format!("{op}{s} {to}"));
            }
            6 | 7 => {
                let op = self.pick(&["shl", "shr", "sar", "rol", "ror", "rcl", "rcr"]);
                let by = if self.below(2) == 0 { "%cl".to_owned() } else { format!("${}", self.below(70)) };
                let to = if self.below(3) == 0 { self.memory() } else { self.register(size) };
                self.emit(&format!("{op}{s} {by}, {to}"));
            }
            8 => {
                let op = self.pick(&["shld", "shrd"]);
                // 16-bit double shifts by more than 16 have undefined results.
                let size = 2 + self.below(2) as usize;
                let by = if self.below(2) == 0 { "%cl".to_owned() } else { format!("${}", self.below(40)) };
                let line = format!("{op} {by}, {}, {}", self.plain(size), self.plain(size));
                self.emit(&line);
            }
            9 => {
                let size = size.max(1);
                let line = match self.below(3) {
                    0 => format!("imul {}, {}", self.plain(size), self.plain(size)),
                    1 => format!("imul {}, {}, {}", self.immediate(size), self.memory(), self.plain(size)),
                    _ => format!("{}{} {}", self.pick(&["mul", "imul"]), SUFFIXES[size], self.memory()),
                };
                self.emit(&line);
            }
            10 => {
                self.emit("mov $0, %edx");
                self.emit("or $1, %ecx");
                let op = self.pick(&["div %ecx", "div %rcx"]);
                self.emit(op);
            }
            11 => {
                let op = self.pick(&["bt", "bts", "btr", "btc"]);
                let size = size.max(1);
                let line = match self.below(3) {
                    0 => format!("{op} {}, {}", self.plain(size), self.plain(size)),
                    1 => format!("{op}{} ${}, {}", SUFFIXES[size], self.below(64), self.memory()),
                    _ => format!("{op} %r12, {}(%rbx)", self.below(1024)),
                };
                self.emit(&line);
            }
            12 => {
                let op = self.pick(&["bsf", "bsr", "popcnt", "lzcnt", "tzcnt"]);
                let size = size.max(1);
                let from = if self.below(2) == 0 { self.memory() } else { self.plain(size) };
                let to = self.plain(size);
                self.emit(&format!("{op} {from}, {to}"));
            }
            13 | 14 => {
                let condition = self.pick(&CONDITIONS);
                let line = match self.below(4) {
                    0 => format!("set{condition} {}", self.memory()),
                    1 => format!("set{condition} {}", self.register(0)),
                    2 => format!("cmov{condition} {}, {}", self.plain(size.max(1)), self.plain(size.max(1))),
                    _ => format!("cmov{condition} {}, {}", self.memory(), self.plain(size.max(1))),
                };
                let line = if line.starts_with("cmov") { self.same_size(&line) } else { line };
                self.emit(&line);
            }
            15 => {
                let op = self.pick(&["movzb", "movsb", "movzw", "movsw"]);
                let from = if op.ends_with('b') { 0 } else { 1 };
                let to = (from + 1 + self.below(3 - from as u32) as usize).min(3);
                let source = if self.below(2) == 0 { self.memory() } else { self.plain(from) };
                let line = format!("{op}{} {source}, {}", SUFFIXES[to], self.plain(to));
                self.emit(&line);
            }
            16 => {
                let line = match self.below(5) {
                    0 => format!("xchg {}, {}", self.plain(3), self.plain(3)),
                    1 => format!("xchg{s} {}, {}", self.plain(size), self.memory()),
                    2 => format!("bswap {}", self.wide()),
                    3 => format!("lea {}, {}", self.memory(), self.wide()),
                    _ => format!(
                        "lea {}({},{},{}), {}",
                        self.below(9999),
                        self.plain(3),
                        self.plain(3),
                        1 << self.below(4),
                        self.plain(3)
                    ),
                };
                self.emit(&line);
            }
            17 => {
                let op = self.pick(&[
                    "cbtw", "cwtl", "cltq", "cwtd", "cltd", "cqto", "cmc", "clc", "stc", "nop", "pause", "lahf",
                ]);
                self.emit(op);
            }
            18 => {
                let lock = self.pick(&["lock ", ""]);
                let line = match self.below(4) {
                    0 => format!("{lock}xadd{s} {}, {}", self.plain(size), self.memory()),
                    1 => format!("{lock}cmpxchg{s} {}, {}", self.plain(size), self.memory()),
                    2 => format!(
                        "{lock}{}{s} {}, {}",
                        self.pick(&["add", "xor", "and", "sbb"]),
                        self.plain(size),
                        self.memory()
                    ),
                    _ => format!("{lock}{}{s} {}", self.pick(&["inc", "dec", "not", "neg"]), self.memory()),
                };
                self.emit(&line);
            }
            19 => {
                let (a, b) = (self.plain(3), self.plain(3));
                let line = match self.below(3) {
                    0 => format!("push {a}\n    pop {b}"),
                    1 => format!("pushq {}\n    popq {}", self.memory(), self.memory()),
                    _ => format!("push {a}\n    {} {}, (%rsp)\n    pop {b}", self.pick(&["add", "xor"]), self.plain(3)),
                };
                self.emit(&line);
            }
            20 => {
                // Only the arithmetic flags: a stepped program has the trap flag set.
                let to = self.plain(3);
                self.emit(&format!("pushfq\n    andq $0x8d5, (%rsp)\n    pop {to}"));
            }
            21 => {
                let from = self.plain(3);
                self.emit(&format!("push {from}\n    andq $0x8d5, (%rsp)\n    popfq"));
            }
            22 => self.repeated(),
            23..=25 => self.sse(),
            _ if self.features.avx512 && self.below(3) == 0 => self.avx512(),
            _ if self.features.avx2 => self.avx2(),
            _ => self.sse(),
        }
    }

    /// Registers of one size in an instruction written with two sizes drawn independently: drawn anew.
    fn same_size(&mut self, line: &str) -> String {
        let op = line.split(' ').next().expect("an operation");
        if line.contains('(') { line.to_owned() } else { format!("{op} {}, {}", self.plain(3), self.plain(3)) }
    }

    fn repeated(&mut self) {
        let n = self.pick(&["0", "1", "2", "7", "16", "63"]);
        let (from, to) = (self.below(1000), self.below(1000));
        self.emit(&format!("lea {from}(%rbx), %rsi\n    lea {to}(%rbx), %rdi\n    mov ${n}, %ecx"));
        let s = SUFFIXES[self.below(4) as usize];
        let op = self.pick(&[
            "rep movs",
            "rep stos",
            "repe cmps",
            "repne cmps",
            "repe scas",
            "repne scas",
            "movs",
            "stos",
            "cmps",
            "lods",
            "rep lods",
        ]);
        if self.below(4) == 0 {
            // Backwards, from far enough up.
            self.emit(&format!("add $520, %rsi\n    add $520, %rdi\n    std\n    {op}{s}\n    cld"));
        } else {
            self.emit(&format!("{op}{s}"));
        }
    }

    fn sse(&mut self) {
        let op = self.pick(&[
            "paddb",
            "paddw",
            "paddd",
            "paddq",
            "psubd",
            "pmullw",
            "pmuludq",
            "pand",
            "pxor",
            "por",
            "pandn",
            "pcmpeqb",
            "pcmpgtd",
            "punpcklbw",
            "punpckhdq",
            "packsswb",
            "psadbw",
            "pmaxub",
            "pshufb",
            "pabsd",
            "phaddd",
            "addps",
            "subpd",
            "mulps",
            "minps",
            "maxpd",
            "addss",
            "mulsd",
            "andps",
            "xorpd",
            "unpcklps",
        ]);
        let line = match self.below(9) {
            0 => format!("movdqu {}, {}", self.memory(), self.vector('x')),
            1 => format!("movups {}, {}", self.vector('x'), self.memory()),
            2 => format!("movq {}, {}", self.plain(3), self.vector('x')),
            3 => format!("movd {}, {}", self.vector('x'), self.plain(2)),
            4 => format!("pshufd ${}, {}, {}", self.below(256), self.vector('x'), self.vector('x')),
            5 => format!("pmovmskb {}, {}", self.vector('x'), self.plain(2)),
            6 => format!("{} {}, {}", self.pick(&["ucomiss", "comisd", "ptest"]), self.vector('x'), self.vector('x')),
            _ => format!("{op} {}, {}", self.vector('x'), self.vector('x')),
        };
        self.emit(&line);
    }

    fn avx2(&mut self) {
        let kind = if self.below(2) == 0 { 'x' } else { 'y' };
        let op = self.pick(&[
            "vpaddb",
            "vpaddq",
            "vpsubw",
            "vpmulld",
            "vpand",
            "vpxor",
            "vpcmpeqd",
            "vpunpckldq",
            "vpshufb",
            "vaddps",
            "vmulpd",
            "vminps",
            "vfmadd213ps",
            "vfnmadd231pd",
            "vpsllvd",
            "vpsravd",
            "vpmaxsw",
            "vandnps",
            "vpackuswb",
        ]);
        let line = match self.below(12) {
            0 => format!("vmovdqu {}, {}", self.memory(), self.vector(kind)),
            1 => format!("vmovups {}, {}", self.vector(kind), self.memory()),
            2 | 3 => format!("{op} {}, {}, {}", self.memory(), self.vector(kind), self.vector(kind)),
            4 => format!("vpermd {}, {}, {}", self.vector('y'), self.vector('y'), self.vector('y')),
            5 => format!("vpmovmskb {}, {}", self.vector('y'), self.plain(2)),
            6 => format!(
                "{} {}, {}, {}",
                self.pick(&["andn", "pdep", "pext"]),
                self.memory(),
                self.plain(3),
                self.plain(3)
            ),
            7 => format!(
                "{} {}, {}, {}",
                self.pick(&["shlx", "sarx", "shrx", "bzhi", "bextr"]),
                self.plain(3),
                self.memory(),
                self.plain(3)
            ),
            8 => format!("rorx ${}, {}, {}", self.below(64), self.memory(), self.plain(3)),
            9 => format!("movbe {}, {}", self.memory(), self.plain(3)),
            _ => format!("{op} {}, {}, {}", self.vector(kind), self.vector(kind), self.vector(kind)),
        };
        self.emit(&line);
    }

    fn avx512(&mut self) {
        let high = |g: &mut Self| format!("%zmm{}", g.below(32));
        let mask = 1 + self.below(7);
        let line = match self.below(7) {
            0 => format!("vmovdqu32 {}, {}{{%k{mask}}}", self.memory(), high(self)),
            1 => format!("vmovdqu64 {}, {}", high(self), self.memory()),
            2 => format!("vpaddd {}, {}, {}{{%k{mask}}}{{z}}", high(self), high(self), high(self)),
            3 => format!("vpternlogd ${}, {}, {}, {}", self.below(256), high(self), high(self), high(self)),
            4 => format!("vpcmpgtd {}, {}, %k{mask}", high(self), high(self)),
            5 => format!("kmovw {}, %k{mask}", self.plain(2)),
            _ => format!("vpaddq {}{{1to8}}, {}, {}", self.memory(), high(self), high(self)),
        };
        self.emit(&line);
    }

    /// Some straight code.
    fn run(&mut self, most: u32) {
        for _ in 0..=self.below(most) {
            self.straight();
        }
    }

    /// Something with control flow; calls only functions numbered `callees`.
    fn flow(&mut self, callees: std::ops::Range<u32>) {
        self.labels += 1;
        let n = self.labels;
        match self.below(9) {
            0..=2 => {
                let condition = self.pick(&CONDITIONS);
                self.emit(&format!("j{condition} 1f"));
                self.run(4);
                self.text.push_str("1:\n");
            }
            3 => {
                // Both arms.
                let condition = self.pick(&CONDITIONS);
                self.emit(&format!("j{condition} 1f"));
                self.run(3);
                self.emit("jmp 2f");
                self.text.push_str("1:\n");
                self.run(3);
                self.text.push_str("2:\n");
            }
            4 => {
                let rounds = 1 + self.below(6);
                self.emit(&format!("movl ${rounds}, count+{}(%rip)", n % 64 * 4));
                let _ = writeln!(self.text, "loop{n}:");
                self.run(5);
                self.emit(&format!("decl count+{}(%rip)\n    jnz loop{n}", n % 64 * 4));
            }
            5 => {
                let (op, rounds) = (self.pick(&["loop", "loope", "loopne"]), self.below(6) + 1);
                self.emit(&format!("mov ${rounds}, %ecx"));
                let _ = writeln!(self.text, "loop{n}:");
                self.emit("push %rcx");
                self.run(3);
                self.emit(&format!("pop %rcx\n    {op} loop{n}"));
            }
            6 => {
                // A jump table of four.
                let index = self.plain(3);
                self.emit(&format!("mov {index}, %rax\n    and $3, %eax\n    jmp *table{n}(,%rax,8)"));
                let _ =
                    writeln!(self.text, "    .section .rodata\ntable{n}: .quad t{n}a, t{n}b, t{n}c, t{n}d\n    .text");
                for arm in ["a", "b", "c"] {
                    let _ = writeln!(self.text, "t{n}{arm}:");
                    self.run(2);
                    self.emit(&format!("jmp t{n}d"));
                }
                let _ = writeln!(self.text, "t{n}d:");
            }
            7 => {
                let from = self.plain(2);
                self.emit(&format!("mov {from}, %ecx\n    and $3, %ecx\n    jrcxz 1f"));
                self.run(3);
                self.text.push_str("1:\n");
            }
            _ if !callees.is_empty() => {
                let f = callees.start + self.below(callees.end - callees.start);
                let call = match self.below(4) {
                    0 => format!("lea f{f}(%rip), %rax\n    call *%rax"),
                    1 => format!("call *functions+{}(%rip)", f * 8),
                    2 => format!("mov ${f}, %eax\n    call *functions(,%rax,8)"),
                    _ => format!("call f{f}"),
                };
                self.emit(&call);
            }
            _ => self.run(2),
        }
    }

    fn whole(&mut self, functions: u32, rounds: u32) {
        let random: Vec<String> = (0..MEMORY / 8).map(|_| format!("{:#x}", self.next() << 20 ^ self.next())).collect();
        let _ = writeln!(self.text, ".data\n.balign 64\nmemory: .quad {}", random.join(", "));
        self.text.push_str(".balign 64\nstate: .space 4096\ncount: .space 256\nfunctions: .quad ");
        let names: Vec<String> = (0..functions).map(|f| format!("f{f}")).collect();
        self.text.push_str(&names.join(", "));
        self.text.push_str("\n.text\n.globl _start\n.type _start, @function\n_start:\n");
        self.emit(&format!("lea memory(%rip), %rbx\n    mov ${rounds}, %r13d"));
        if self.features.avx512 {
            // Masks and the upper registers start with something.
            for k in 1..8 {
                self.emit(&format!("mov ${}, %eax\n    kmovw %eax, %k{k}", 0x9249 * k));
            }
        }
        self.text
            .push_str("again:\n    mov %r13d, %r12d\n    and $63, %r12d\n    call f0\n    dec %r13d\n    jnz again\n");
        // The state: flags first, then the rest, which changes no flags.
        let names = [
            "rax", "rcx", "rdx", "rsi", "rdi", "rbp", "rbx", "rsp", "r8", "r9", "r10", "r11", "r12", "r13", "r14",
            "r15",
        ];
        for (i, name) in names.iter().enumerate().filter(|(_, n)| **n != "rsp") {
            self.emit(&format!("mov %{name}, state+{}(%rip)", i * 8));
        }
        self.emit("lahf\n    seto %al\n    mov %eax, state+128(%rip)");
        for v in 0..16 {
            let line = match self.features {
                Features { avx512: true, .. } => format!("vmovdqu64 %zmm{v}, state+{}(%rip)", 192 + v * 64),
                Features { avx2: true, .. } => format!("vmovdqu %ymm{v}, state+{}(%rip)", 192 + v * 64),
                _ => format!("movdqu %xmm{v}, state+{}(%rip)", 192 + v * 64),
            };
            self.emit(&line);
        }
        let bytes = MEMORY + 4096;
        self.emit(&format!("mov $1, %eax\n    mov $1, %edi\n    mov %rbx, %rsi\n    mov ${bytes}, %edx\n    syscall"));
        self.emit("mov $231, %eax\n    xor %edi, %edi\n    syscall");
        self.text.push_str(".size _start, . - _start\n");
        for f in 0..functions {
            // Registers may get to hold the address of a function: it does not depend on the length of any code.
            let _ = writeln!(self.text, ".section .entries, \"ax\"\nf{f}:");
            self.emit(&format!("jmp body{f}"));
            let _ = writeln!(self.text, ".balign 64\n.text\n.type body{f}, @function\nbody{f}:");
            for _ in 0..6 {
                self.run(4);
                self.flow(f + 1..functions);
            }
            let _ = writeln!(self.text, "    ret\n.size body{f}, . - body{f}");
        }
    }
}
