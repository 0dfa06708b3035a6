//! Start-up, and how cost grows: with cold code (translation), with hot code (counting), with threads.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::{Ways, set};

fn milliseconds(seconds: f64) -> String {
    format!("{:.1}", seconds * 1e3)
}

/// `/bin/true`, and a compiler with all its processes profiled.
pub(crate) fn start_up(ways: &Ways, repeats: u32, valgrind: u32) -> Result<()> {
    println!("\nstart-up, ms");
    println!("{:<40} {:>9} {:>9} {:>9} {:>9}", "command", "native", "grind", "over", "valgrind");
    let small = ways.dir.join("small.c");
    fs::write(&small, "#include <stdio.h>\nint main(int c, char **v) { while (c--) puts(v[c]); return 0; }\n")?;
    let compiler = ["gcc", "-O2", "-c", "-o", "small.o", "small.c"].map(str::to_owned);
    let cases =
        [("/bin/true", vec!["/bin/true".to_owned()]), ("gcc -O2 -c small.c, children traced", compiler.to_vec())];
    for (name, words) in cases {
        let trace = |mut profiler: Vec<String>| {
            profiler.push("--trace-children=yes".into());
            profiler
        };
        let traced = Ways {
            grind: trace(ways.grind.clone()),
            valgrind: ways.valgrind.clone().map(trace),
            dir: ways.dir.clone(),
            times: Default::default(),
        };
        let (native, grind, reference) = traced.times(None, &words, repeats * 2, valgrind)?;
        let reference = reference.map_or_else(|| "-".into(), milliseconds);
        let over = milliseconds(grind - native);
        println!("{name:<40} {:>9} {:>9} {over:>9} {reference:>9}", milliseconds(native), milliseconds(grind));
    }
    Ok(())
}

/// Assembles a static program of `blocks` different blocks that runs all of them `rounds` times.
fn cold_program(dir: &Path, blocks: u32, rounds: u32) -> Result<String> {
    // Two blocks an item: a branch that is sometimes taken, and what follows it.
    let text = format!(
        ".text\n.globl _start\n_start: mov ${rounds}, %ebx\n1: .set n, 0\n.rept {}\nadd $n, %rax\nimul $(n * 2 + 1), %eax, %edx\n\
         test $(1 << (n % 13)), %edx\njz 2f\nlea (%rdx,%rax,4), %rsi\nxor %rsi, %rax\n2: .set n, n + 1\n.endr\n\
         dec %ebx\njnz 1b\nmov $231, %eax\nxor %edi, %edi\nsyscall\n",
        blocks / 2
    );
    let out = dir.join(format!("cold{blocks}")).display().to_string();
    let source = format!("{out}.s");
    fs::write(&source, text)?;
    let built = Command::new("gcc").args(["-nostdlib", "-static", "-o", &out, &source]).status().context("gcc")?;
    ensure!(built.success(), "gcc refused {source}");
    Ok(out)
}

/// Three small tables, each of which should be a straight line.
pub(crate) fn cold_hot_threads(ways: &Ways, repeats: u32) -> Result<()> {
    println!("\ncold code: different blocks, each run once");
    println!("{:>12} {:>10} {:>10} {:>12}", "blocks", "native ms", "grind ms", "us a block");
    let mut base = None;
    for blocks in [2_000, 50_000, 100_000, 200_000] {
        let words = [cold_program(&ways.dir, blocks, 1)?];
        let (native, grind, _) = ways.times(None, &words, repeats, 0)?;
        // Against the smallest, so that start-up is left out.
        let (first_blocks, first) = *base.get_or_insert((blocks, grind - native));
        let each = (grind - native - first) * 1e6 / f64::from((blocks - first_blocks).max(1));
        let each = if blocks == first_blocks { "-".to_owned() } else { format!("{each:.2}") };
        println!("{blocks:>12} {:>10} {:>10} {each:>12}", milliseconds(native), milliseconds(grind));
    }

    println!("\nhot code: the recursive fib, by its argument");
    println!("{:>12} {:>10} {:>10} {:>12}", "argument", "native ms", "grind ms", "slowdown");
    let fib = set::compile(&ways.dir, "fib", &["-O1"])?;
    for argument in [30, 34, 38, 40] {
        let (native, grind, _) = ways.times(None, &[fib.clone(), argument.to_string()], repeats, 0)?;
        println!("{argument:>12} {:>10} {:>10} {:>12.2}", milliseconds(native), milliseconds(grind), grind / native);
    }

    contexts(ways, repeats)?;

    println!("\nthreads: the same work divided among them");
    println!("{:>12} {:>10} {:>10} {:>12}", "threads", "native ms", "grind ms", "slowdown");
    let program = set::compile(&ways.dir, "threads", &["-O2", "-pthread"])?;
    for threads in [1, 2, 4, 16] {
        let words = [program.clone(), threads.to_string(), "80000".into()];
        let (native, grind, _) = ways.times(None, &words, repeats, 0)?;
        println!("{threads:>12} {:>10} {:>10} {:>12.2}", milliseconds(native), milliseconds(grind), grind / native);
    }
    Ok(())
}

/// What a change of context costs, and what it costs to be in one.
fn contexts(ways: &Ways, repeats: u32) -> Result<()> {
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../include");
    let program = set::compile(&ways.dir, "contexts", &["-O1", include])?;
    for (what, options) in [("", &[][..]), (", caches simulated", &["--cache-sim=yes"])] {
        println!("\ncontexts{what}: pairs of a push and a pop");
        println!("{:>12} {:>10} {:>10} {:>12}", "pairs", "native ms", "grind ms", "us a pair");
        let mut grind = ways.grind.clone();
        grind.extend(options.iter().map(|o| (*o).to_owned()));
        let ways = Ways { grind, valgrind: None, dir: ways.dir.clone(), times: Default::default() };
        let mut base = None;
        for pairs in [1000, 1_000_000, 4_000_000] {
            let (native, grind, _) = ways.times(None, &[program.clone(), pairs.to_string()], repeats, 0)?;
            let (first_pairs, first) = *base.get_or_insert((pairs, grind - native));
            let each = (grind - native - first) * 1e6 / f64::from((pairs - first_pairs).max(1));
            let each = if pairs == first_pairs { "-".to_owned() } else { format!("{each:.3}") };
            println!("{pairs:>12} {:>10} {:>10} {each:>12}", milliseconds(native), milliseconds(grind));
        }
    }
    println!("\ncontexts: fib in context 0, and in another");
    for pairs in [0, 1] {
        let (native, grind, _) = ways.times(None, &[program.clone(), pairs.to_string(), "36".into()], repeats, 0)?;
        println!("{pairs:>12} {:>10} {:>10} {:>12.2}", milliseconds(native), milliseconds(grind), grind / native);
    }
    Ok(())
}
