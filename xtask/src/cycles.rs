//! Makes the tables of `cg-cycles`: each form of instruction goes through `llvm-mc`, which says how it is written, and `llvm-mca`, which
//! says what it costs by a scheduling model.
//!
//! In both directions every instruction has a marker in front of it, a load of its number, so that nothing depends on what these
//! programs leave out. Invariant: what either of them does not know has no entry.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use cg_cycles::{Entry, Form, MODELS, Model, Use, forms, write};
use serde::Deserialize;

/// Writes all tables.
pub(crate) fn make(root: &Path, llvm: &str) -> Result<()> {
    let texts = assembly(llvm, &forms::samples())?;
    for model in MODELS {
        let path = root.join("cg-cycles/data").join(format!("{}.txt", model.name));
        std::fs::write(&path, table(llvm, model, &texts)?).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

fn run(program: &str, llvm: &str, words: &[&str], input: &str) -> Result<String> {
    let file = tempfile::NamedTempFile::new()?;
    std::fs::write(file.path(), input)?;
    let name = if llvm.is_empty() { program.to_owned() } else { format!("{program}-{llvm}") };
    let output = Command::new(&name).args(words).arg(file.path()).stdin(Stdio::null()).output();
    let output = output.with_context(|| format!("{name}: is LLVM {llvm} installed?"))?;
    // `llvm-mc` fails because of each encoding that it does not know, and goes on.
    ensure!(
        output.status.success() || program == "llvm-mc" && !output.stdout.is_empty(),
        "{name}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    Ok(String::from_utf8(output.stdout)?)
}

/// What begins the text of a marker.
const MARKER: &str = "movabsq\t$";

fn number_of(text: &str) -> Option<usize> {
    let rest = text.trim().strip_prefix(MARKER)?;
    let number: u64 = rest.split(',').next()?.trim().parse().ok()?;
    // A program may load large numbers, too.
    usize::try_from(number.checked_sub(1 << 40)?).ok().filter(|number| *number < 1 << 20)
}

/// How LLVM writes each form.
fn assembly(llvm: &str, samples: &BTreeMap<Form, Vec<u8>>) -> Result<Vec<(Form, String)>> {
    let all: Vec<Form> = samples.keys().copied().collect();
    let bytes: Vec<&[u8]> = samples.values().map(Vec::as_slice).collect();
    Ok(written(llvm, &bytes)?.into_iter().map(|(number, text)| (all[number], text)).collect())
}

/// How LLVM writes each of these instructions, by their numbers.
fn written(llvm: &str, instructions: &[&[u8]]) -> Result<BTreeMap<usize, String>> {
    let hex = |bytes: &[u8]| bytes.iter().map(|b| format!("0x{b:02x}")).collect::<Vec<_>>().join(" ");
    let mut input = String::new();
    for (number, bytes) in instructions.iter().enumerate() {
        let marker = [&[0x48, 0xb8][..], &((1u64 << 40) + number as u64).to_le_bytes()].concat();
        // In brackets what cannot be read takes nothing of the next line with it.
        input += &format!("[{}]\n[{}]\n", hex(&marker), hex(bytes));
    }
    let output = run("llvm-mc", llvm, &["--disassemble", "-triple=x86_64"], &input)?;
    let mut texts: BTreeMap<usize, Vec<&str>> = BTreeMap::new();
    let mut current = None;
    for line in output.lines().map(|line| line.split('#').next().unwrap_or_default()) {
        match (number_of(line), current) {
            (Some(number), _) => current = Some(number),
            (None, Some(number)) if !line.trim().is_empty() => texts.entry(number).or_default().push(line),
            _ => {}
        }
    }
    // A prefix that is an instruction of its own, as LLVM sees it, stays in front of what it belongs to.
    let joined = |(number, lines): (usize, Vec<&str>)| {
        let prefixes = ["lock", "rep", "repne", "notrack", "xacquire", "xrelease"];
        let (last, before) = lines.split_last()?;
        let all_prefixes = before.iter().all(|line| prefixes.contains(&line.trim()));
        all_prefixes
            .then(|| (number, lines.iter().map(|l| l.trim()).collect::<Vec<_>>().join(" ")))
            .filter(|_| !last.trim().is_empty())
    };
    Ok(texts.into_iter().filter_map(joined).collect())
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Report {
    code_regions: Vec<Region>,
    target_info: Target,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Target {
    resources: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Region {
    instructions: Vec<String>,
    instruction_info_view: Infos,
    resource_pressure_view: Pressures,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Infos {
    instruction_list: Vec<Info>,
}

#[derive(Deserialize)]
struct Info {
    #[serde(rename = "Latency")]
    latency: f64,
    #[serde(rename = "NumMicroOpcodes")]
    operations: u32,
    #[serde(rename = "RThroughput")]
    throughput: Option<f64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pressures {
    resource_pressure_info: Vec<Pressure>,
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Pressure {
    instruction_index: usize,
    resource_index: usize,
    resource_usage: f64,
}

fn hundredths(cycles: f64) -> u32 {
    (cycles * 100.0).round() as u32
}

/// What `llvm-mca` says of these instructions, by their numbers; the names of ports; and how wide the front end is.
pub(crate) fn ask(llvm: &str, cpu: &str, texts: &[String]) -> Result<(BTreeMap<usize, Entry>, Vec<String>, u32)> {
    let mut input = String::new();
    for (number, text) in texts.iter().enumerate() {
        // Twice, since a line that cannot be read may take the next one with it.
        let marker = format!("movabsq ${}, %rax\n", (1u64 << 40) + number as u64);
        input += &format!("{marker}{marker}{text}\n");
    }
    let cpu = format!("-mcpu={cpu}");
    let words = ["-mtriple=x86_64", &cpu, "-instruction-tables", "--json", "--skip-unsupported-instructions=any"];
    let report: Report = serde_json::from_str(&run("llvm-mca", llvm, &words, &input)?)?;
    let [region] = &report.code_regions[..] else { bail!("llvm-mca tells of more than was asked") };
    let mut usage: BTreeMap<usize, Vec<(usize, f64)>> = BTreeMap::new();
    for p in &region.resource_pressure_view.resource_pressure_info {
        usage.entry(p.instruction_index).or_default().push((p.resource_index, p.resource_usage));
    }
    let mut all = BTreeMap::new();
    let mut current = None;
    for (at, (text, info)) in region.instructions.iter().zip(&region.instruction_info_view.instruction_list).enumerate()
    {
        if let Some(number) = number_of(text) {
            current = Some(number);
        } else if let Some(number) = current.take() {
            let entry = Entry {
                latency: hundredths(info.latency),
                throughput: hundredths(info.throughput.unwrap_or(0.0)),
                operations: info.operations,
                uses: uses(usage.get(&at).map_or(&[], |list| list)),
            };
            all.insert(number, entry);
        }
    }
    let width_of = run("llvm-mca", llvm, &["-mtriple=x86_64", &cpu], "nop\n")?;
    let width = width_of.lines().find_map(|line| line.strip_prefix("Dispatch Width:")?.trim().parse().ok());
    Ok((all, report.target_info.resources, width.context("no dispatch width")?))
}

/// From the load of each port, where that of a group is spread evenly over it, to groups: the least load is that of all of them, and
/// so on with what is left.
fn uses(loads: &[(usize, f64)]) -> Vec<Use> {
    const NOTHING: f64 = 0.004;
    let mut left: Vec<(usize, f64)> = loads.iter().copied().filter(|(_, load)| *load > NOTHING).collect();
    let mut all = Vec::new();
    while let Some(least) = left.iter().map(|(_, load)| *load).min_by(f64::total_cmp) {
        let ports = left.iter().fold(0, |mask, (port, _)| mask | 1 << port);
        all.push(Use { ports, time: hundredths(least * left.len() as f64) });
        left.iter_mut().for_each(|(_, load)| *load -= least);
        left.retain(|(_, load)| *load > NOTHING);
    }
    all.sort();
    all
}

/// The table of a model, as text.
fn table(llvm: &str, model: &Model, texts: &[(Form, String)]) -> Result<String> {
    let lines: Vec<String> = texts.iter().map(|(_, text)| text.clone()).collect();
    let (entries, ports, width) = ask(llvm, model.cpu, &lines)?;
    ensure!(ports.len() <= 32, "more ports than a mask has bits");
    let entries: Vec<(Form, Entry)> = entries.into_iter().map(|(number, entry)| (texts[number].0, entry)).collect();
    let version = run("llvm-mca", llvm, &["--version"], "")?;
    let version = version.split("version ").nth(1).and_then(|v| v.split_whitespace().next()).context("no version")?;
    let about = [
        format!("What instructions cost on {}: made by `cargo xtask cycles`, not to be changed by hand.", model.name),
        format!("From the scheduling model of llvm-mca {version} -mcpu={}, by forms of iced-x86.", model.cpu),
        "Latency, reciprocal throughput (hundredths of cycles), micro-operations, ports:time, forms.".to_owned(),
    ];
    // Parts of a group have names with bytes that are no text.
    let plain = |name: &String| name.chars().filter(char::is_ascii_alphanumeric).collect();
    let ports: Vec<String> = ports.iter().map(plain).collect();
    Ok(write(&about, width, &ports, &entries))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The version that a table was made with, if it is installed.
    fn installed(model: &Model) -> Option<String> {
        let version = model.text().split("llvm-mca ").nth(1)?.split('.').next()?.to_owned();
        Command::new(format!("llvm-mca-{version}")).arg("--version").output().ok().map(|_| version)
    }

    /// A sample of all forms; where the version of LLVM that made the tables is not there, there is nothing to compare with.
    #[test]
    fn tables_are_what_llvm_mca_says() {
        for model in MODELS {
            let Some(llvm) = installed(model) else {
                eprintln!("{}: not compared, its LLVM is not installed", model.name);
                continue;
            };
            let samples =
                forms::samples().into_iter().enumerate().filter(|(i, _)| i % 7 == 3).map(|(_, one)| one).collect();
            let texts = assembly(&llvm, &samples).unwrap();
            let lines: Vec<String> = texts.iter().map(|(_, text)| text.clone()).collect();
            let (entries, _, width) = ask(&llvm, model.cpu, &lines).unwrap();
            let table = model.table().unwrap();
            assert_eq!(table.width, width);
            for (number, (form, text)) in texts.iter().enumerate() {
                assert_eq!(table.of(*form), entries.get(&number), "{}: {text}", model.name);
            }
            assert!(entries.len() > 200, "{}: {}", model.name, entries.len());
        }
    }

    /// Blocks of forms that compilers use, by chance: LLVM bounds a block by the groups of ports of its model, this by those that its
    /// instructions use.
    #[test]
    fn blocks_are_bounded_as_llvm_mca_says() {
        const BLOCKS: usize = 50;
        for model in MODELS {
            let Some(llvm) = installed(model) else { continue };
            let usual = [
                "Add_",
                "Sub_",
                "Imul_r",
                "Mov_r",
                "Lea_r64",
                "Cmp_",
                "Shl_rm64",
                "Xor_",
                "Mulsd_",
                "Addpd_",
                "Cvtsi2sd_",
                "Div_rm32",
                "Movsd_",
                "Pshufb_",
                "VEX_Vfmadd231pd_ymm",
                "VEX_Vpaddd_ymm",
                "Jne_rel8_64",
                "Test_rm",
                "Setne",
                "Cmovne_r64",
            ];
            let samples = forms::samples().into_iter();
            let samples = samples.filter(|(form, _)| usual.iter().any(|name| form.name().starts_with(name))).collect();
            let texts = assembly(&llvm, &samples).unwrap();
            let table = model.table().unwrap();
            let texts: Vec<_> = texts.into_iter().filter(|(form, _)| table.of(*form).is_some()).collect();
            let mut state = 42u64;
            let mut random = |n: usize| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33) as usize % n
            };
            let (mut input, mut bounds) = (String::new(), Vec::new());
            for block in 0..BLOCKS {
                let chosen: Vec<_> = (0..3 + random(20)).map(|_| &texts[random(texts.len())]).collect();
                input += &format!("# LLVM-MCA-BEGIN b{block}\n");
                chosen.iter().for_each(|(_, text)| input += &format!("{text}\n"));
                input += "# LLVM-MCA-END\n";
                bounds.push(table.bound(&chosen.iter().map(|(form, _)| *form).collect::<Vec<_>>()).total);
            }
            let cpu = format!("-mcpu={}", model.cpu);
            let output = run("llvm-mca", &llvm, &["-mtriple=x86_64", &cpu], &input).unwrap();
            let said =
                output.lines().filter_map(|line| line.strip_prefix("Block RThroughput:")?.trim().parse::<f64>().ok());
            let mut errors: Vec<f64> =
                said.zip(&bounds).map(|(said, bound)| (*bound as f64 / 100.0 - said) / said).collect();
            assert_eq!(errors.len(), BLOCKS);
            errors.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
            let (median, worst) = (errors[BLOCKS / 2], errors[BLOCKS - 1]);
            println!("{}: median {:.1} %, worst {:.1} %", model.name, median * 100.0, worst * 100.0);
            // The models of Zen have groups of ports that overlap.
            let most = if model.name.starts_with("zen") { 0.1 } else { 0.03 };
            assert!(median.abs() < most, "{}: median {median}, worst {worst}", model.name);
        }
    }

    /// Loops of a file of machine code: what lies between a jump back and where it leads, if nothing in it jumps or calls.
    fn loops(path: &Path) -> Vec<Vec<iced_x86::Instruction>> {
        use iced_x86::{Decoder, DecoderOptions, FlowControl};
        use object::{Object, ObjectSection};
        let bytes = std::fs::read(path).unwrap();
        let file = object::File::parse(&bytes[..]).unwrap();
        let text = file.section_by_name(".text").unwrap();
        let mut code = Decoder::with_ip(64, text.data().unwrap(), text.address(), DecoderOptions::NONE);
        let all: Vec<_> = code.iter().collect();
        let mut found = Vec::new();
        for (last, insn) in all.iter().enumerate() {
            let target = insn.near_branch_target();
            if insn.flow_control() != FlowControl::ConditionalBranch || target >= insn.ip() {
                continue;
            }
            let first = all[..last].partition_point(|before| before.ip() < target);
            let body = &all[first..last];
            let plain = body.iter().all(|insn| insn.flow_control() == FlowControl::Next && !insn.has_rep_prefix());
            if body.len() > 2 && body[0].ip() == target && plain {
                found.push(all[first..=last].to_vec());
            }
        }
        found
    }

    /// Loops of the C library and of a library that multiplies, evenly chosen.
    #[test]
    fn loops_are_bounded_as_llvm_mca_says() {
        const LOOPS: usize = 50;
        let folder = Path::new("/usr/lib/x86_64-linux-gnu");
        let files = ["libc.so.6", "libm.so.6", "libgmp.so.10", "libz.so.1", "libstdc++.so.6"];
        for model in MODELS {
            let Some(llvm) = installed(model) else {
                eprintln!("{}: not compared, its LLVM is not installed", model.name);
                continue;
            };
            let table = model.table().unwrap();
            let mut all: Vec<(String, Vec<iced_x86::Instruction>)> = Vec::new();
            for file in files.iter().filter(|file| folder.join(file).exists()) {
                let known = |body: &[iced_x86::Instruction]| body.iter().all(|i| table.of(Form::of(i)).is_some());
                let found = loops(&folder.join(file)).into_iter().filter(|body| known(body));
                all.extend(found.map(|body| (format!("{file} {:#x}", body[0].ip()), body)));
            }
            assert!(all.len() > LOOPS, "{}", all.len());
            let step = all.len() / LOOPS;
            let chosen: Vec<_> = all.into_iter().step_by(step).take(LOOPS).collect();
            let mut encoded: Vec<Vec<u8>> = Vec::new();
            for insn in chosen.iter().flat_map(|(_, body)| body) {
                let mut encoder = iced_x86::Encoder::new(64);
                encoder.encode(insn, insn.ip()).unwrap();
                encoded.push(encoder.take_buffer());
            }
            let texts = written(&llvm, &encoded.iter().map(Vec::as_slice).collect::<Vec<_>>()).unwrap();
            let (mut input, mut bounds, mut n) = (String::new(), Vec::new(), 0);
            for (name, body) in &chosen {
                let texts: Option<Vec<&String>> = (n..n + body.len()).map(|i| texts.get(&i)).collect();
                n += body.len();
                let Some(texts) = texts else { continue };
                input += &format!("# LLVM-MCA-BEGIN b{}\n", bounds.len());
                texts.iter().for_each(|text| input += &format!("{text}\n"));
                input += "# LLVM-MCA-END\n";
                let forms: Vec<Form> = body.iter().map(Form::of).collect();
                bounds.push((name, body.len(), table.bound(&forms).total));
            }
            assert!(bounds.len() > LOOPS * 9 / 10, "LLVM writes {} of them", bounds.len());
            let cpu = format!("-mcpu={}", model.cpu);
            let output = run("llvm-mca", &llvm, &["-mtriple=x86_64", &cpu], &input).unwrap();
            let said =
                output.lines().filter_map(|line| line.strip_prefix("Block RThroughput:")?.trim().parse::<f64>().ok());
            let said: Vec<f64> = said.collect();
            assert_eq!(said.len(), bounds.len());
            let mut errors = Vec::new();
            for (said, (name, length, bound)) in said.iter().zip(&bounds) {
                // LLVM says tenths.
                let error = (*bound as f64 / 100.0 - said).abs() - 0.05;
                let error = error.max(0.0) / said;
                println!(
                    "{} {name}: {length} instructions, {said} and {:.2} cycles",
                    model.name,
                    *bound as f64 / 100.0
                );
                errors.push(error);
            }
            errors.sort_by(f64::total_cmp);
            let (median, worst) = (errors[errors.len() / 2], errors[errors.len() - 1]);
            println!("{}: median {:.1} %, worst {:.1} %", model.name, median * 100.0, worst * 100.0);
            assert!(median < 0.03, "{}: median {median}, worst {worst}", model.name);
        }
    }

    #[test]
    fn loads_of_ports_become_groups() {
        let group = |ports, time| Use { ports, time };
        assert_eq!(uses(&[(0, 0.25), (1, 0.25), (5, 0.25), (6, 0.25)]), [group(0b110_0011, 100)]);
        assert_eq!(uses(&[(0, 0.5), (1, 1.5)]), [group(0b10, 100), group(0b11, 100)]);
        assert_eq!(uses(&[]), []);
    }
}
