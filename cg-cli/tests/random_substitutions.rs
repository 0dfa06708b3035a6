//! Substitutions at random: none may panic or hang, and Python, whose dialect it is, must agree on each.
//!
//! `RANDOM_SECONDS=3600 cargo test --release -p cg-cli --test random_substitutions` is the long run; `RANDOM_SEED` starts
//! it elsewhere.

use std::io::Write;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use cg_cli::substitute::Substitution;

struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        ((self.0 >> 11) % bound as u64) as usize
    }
}

const OLD: &[&str] = &[
    "a",
    "b",
    "ab",
    ".",
    "c",
    "é",
    "x",
    "_",
    "1",
    "*",
    "+",
    "?",
    "*?",
    "{2}",
    "{1,}",
    "{,2}",
    "{",
    "}",
    "{a",
    "|",
    "(",
    "(",
    ")",
    ")",
    "(?:",
    "(?=",
    "(?!",
    "(?<=a)",
    "(?<!b)",
    "(?P<n>",
    "(?P=n)",
    "(?i:",
    "(?#x)",
    "(?(1)a|b)",
    "[ab]",
    "[^a]",
    "[a-c]",
    "[",
    "]",
    "[[]",
    "[]a]",
    "[a&&b]",
    "[\\w-]",
    "[b-a]",
    "^",
    "$",
    "\\d",
    "\\w",
    "\\s",
    "\\b",
    "\\B",
    "\\.",
    "\\/",
    "\\\\",
    "\\1",
    "\\2",
    "\\x61",
    "\\141",
    "\\0",
    "\\A",
    "\\Z",
    "\\h",
    "\\q",
    "(?i)",
    " ",
    "#",
    "~",
    "-",
    "\\-",
];
const NEW: &[&str] =
    &["a", "x", "\\1", "\\2", "\\g<0>", "\\g<n>", "\\g<1>", "\\n", "\\\\", "\\/", "&", "$1", "\\.", "\\061", "\\q", ""];
const NAMES: &[&str] =
    &["", "a", "ab", "abab", "aab/c", "a.b-c_1", "xéx", "ABab", "a{a}b", "[ab]", "aaaa bbb", "a\\b", "b", "cab"];
const FLAGS: &[&str] = &["", "", "g", "g", "i", "gi", "ig", "x"];

fn argument(random: &mut Random) -> String {
    let part = |random: &mut Random, list: &[&str], most: usize| -> String {
        (0..random.below(most)).map(|_| list[random.below(list.len())]).collect()
    };
    let (old, new) = (part(random, OLD, 7), part(random, NEW, 4));
    let mut text = format!("s/{old}/{new}/{}", FLAGS[random.below(FLAGS.len())]);
    if random.below(20) == 0 {
        let at = random.below(text.chars().count());
        text = text.chars().enumerate().filter(|(i, _)| *i != at).map(|(_, c)| c).collect();
    }
    text
}

/// The rule, in the language it comes from. One line in, one line out, all in hexadecimal.
const ORACLE: &str = r"
import re, sys, warnings
warnings.simplefilter('ignore')
form = re.compile(r's/(.*)(?<!\\)/(.*)(?<!\\)/(g|i|gi|ig|)$')
for line in sys.stdin:
    argument, name = (bytes.fromhex(word[1:]).decode() for word in line.split())
    try:
        found = form.match(argument)
        if not found: raise re.error('form')
        old, new, flags = (part.replace('\\/', '/') for part in found.groups())
        expression = re.compile(old, re.I if 'i' in flags else 0)
        # A template is only looked at when something matches; here it is always looked at.
        (getattr(re, '_parser', None) or __import__('sre_parse')).parse_template(new, expression)
        print('+' + expression.sub(new, name, 0 if 'g' in flags else 1).encode().hex())
    except (re.error, IndexError, OverflowError, RecursionError):
        print('-')
";

fn hexadecimal(text: &[u8]) -> String {
    text.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn ours(argument: &str, name: &str) -> String {
    match Substitution::parse(argument) {
        Ok(substitution) => match substitution.apply(name.as_bytes()) {
            Ok(result) => format!("+{}", hexadecimal(&result)),
            Err(_) => "too long".to_owned(),
        },
        Err(error) => {
            assert!(error.at <= argument.chars().count(), "{error}");
            "-".to_owned()
        }
    }
}

#[test]
fn python_agrees() {
    let variable = |name| std::env::var(name).ok().map(|text| text.parse::<u64>().expect(name));
    let until = variable("RANDOM_SECONDS").map(|seconds| Instant::now() + Duration::from_secs(seconds));
    let mut seed = variable("RANDOM_SEED").unwrap_or(1);
    let python = Command::new("python3").arg("-c").arg("import sys; sys.exit(sys.version_info < (3, 11))").status();
    let oracle = python.is_ok_and(|status| status.success());
    if !oracle {
        assert!(std::env::var_os("CI").is_none(), "python3 3.11 or newer is missing");
        eprintln!("without comparison: python3 3.11 or newer is missing");
    }
    loop {
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let cases: Vec<(String, &str)> =
            (0..4000).map(|_| (argument(&mut random), NAMES[random.below(NAMES.len())])).collect();
        let start = Instant::now();
        let results: Vec<String> = cases.iter().map(|(argument, name)| ours(argument, name)).collect();
        assert!(start.elapsed() < Duration::from_secs(120), "RANDOM_SEED={seed} takes {:?}", start.elapsed());
        if oracle {
            compare(seed, &cases, &results);
        }
        seed += 1;
        if until.is_none_or(|until| Instant::now() >= until) {
            break;
        }
    }
}

fn compare(seed: u64, cases: &[(String, &str)], results: &[String]) {
    let lines = cases.iter().map(|(argument, name)| [argument.as_bytes(), name.as_bytes()].map(hexadecimal));
    let input: String = lines.map(|[argument, name]| format!("x{argument} x{name}\n")).collect();
    let mut python = Command::new("python3")
        .args(["-c", ORACLE])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("python3 runs");
    let mut pipe = python.stdin.take().unwrap();
    let writer = std::thread::spawn(move || pipe.write_all(input.as_bytes()).unwrap());
    let output = python.wait_with_output().unwrap();
    writer.join().unwrap();
    let expected: Vec<&str> = std::str::from_utf8(&output.stdout).unwrap().lines().collect();
    assert_eq!(expected.len(), cases.len(), "the oracle stopped");
    let mut worked = 0;
    let mut differences = Vec::new();
    for ((case, own), expected) in cases.iter().zip(results).zip(expected) {
        worked += usize::from(expected != "-");
        // The one extension: a look-behind may have any width.
        let extension = expected == "-" && case.0.contains("(?<");
        if own != expected && !extension {
            differences.push(format!("{case:?}: {own} instead of {expected}"));
        }
    }
    assert!(worked > 500, "only {worked} of {} expressions work: not worth the name of a test", cases.len());
    assert!(
        differences.is_empty(),
        "RANDOM_SEED={seed}: {} differences\n{}",
        differences.len(),
        differences.join("\n")
    );
}
