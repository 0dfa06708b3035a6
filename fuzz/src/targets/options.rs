//! Options: words of a command line and of option files, checked, applied and used.
//!
//! An input is the text of an option file. It is read as one, as the value of the variable, and its words are also given
//! as arguments.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::fs::PermissionsExt;

use cg_cli::expand::Sequence;
use grind::options::callgrind;
use grind::options::sources::{self, Names, Source};
use grind::options::table::{OPTIONS, Opt};
use grind::options::value::Kind;
use grind::options::{LogTarget, Options, Request, UsageError, parse};

use crate::mutate::Random;
use crate::{Target, limits};

pub(super) const TARGET: Target = Target {
    name: "options",
    run,
    laws,
    words: &[
        " ",
        "\n",
        "#",
        "=",
        "--",
        "-",
        "yes",
        "no",
        ",",
        "--tool=callgrind",
        "--tool=cachegrind",
        "--memcheck:",
        "--callgrind:",
        "--cachegrind:",
        "%p",
        "%n",
        "%q{HOME}",
        "%q{",
        "%%",
        "%",
        "*",
        "?",
        "32768,8,64",
        "0x",
        "é",
        "18446744073709551616",
        "-1",
        "none",
        "all",
        "\0",
        "~",
        "'",
        "\"",
        "@",
    ],
    change: Some(change),
    largest: 1 << 14,
    overhead: limits::OVERHEAD,
    // The arguments are there before anything is read.
    besides: |input| 2 * size_of::<OsString>() * (words(input).len() + 1),
};

const NAMES: Names = Names { file: ".grindrc", variable: "GRIND_OPTS" };

fn environment(name: &OsStr) -> Option<OsString> {
    (name == "HOME").then(|| "/home".into())
}

fn words(input: &[u8]) -> Vec<OsString> {
    let blank = u8::is_ascii_whitespace;
    input.split(blank).filter(|word| !word.is_empty()).map(|word| OsString::from_vec(word.to_vec())).collect()
}

/// The words of an option file that holds `input`, and of the variable.
fn from_file(input: &[u8], variable: Option<OsString>) -> Vec<Source> {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join(NAMES.file);
    fs::write(&path, input).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a file of our own");
    let (sources, warnings) = sources::read(NAMES, None, folder.path(), variable);
    assert!(warnings.is_empty(), "{warnings:?}");
    sources
}

fn run(input: &[u8]) {
    asked(parse(&["true".into()], environment, || (from_file(input, None), Vec::new())));
    let mut arguments = words(input);
    arguments.push("true".into());
    asked(parse(&arguments, environment, || (Vec::new(), Vec::new())));
}

fn asked(request: Result<Request, UsageError>) {
    match request {
        Ok(Request::Run(options, ..)) => used(&options),
        Ok(_) => {}
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

/// Does with the settings what a run does.
fn used(options: &Options) {
    let mut sequence = Sequence::default();
    let _ = (options.out_file.expand(1, &mut sequence), options.callgrind_out_file().expand(1, &mut sequence));
    if let LogTarget::File(template) = &options.log {
        let _ = (template.expand(1, &mut sequence), template.fixed_folder(), template.fixed_name());
    }
    let text = OsStr::new("/usr/bin/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaab");
    let _ = options.skip.iter().chain(&options.skip_by_arg).filter(|pattern| pattern.matches(text)).count();
    for name in [&b"main"[..], b"std::vector<int, std::allocator<int> >::push_back(int const&)", b""] {
        let _ = options.callgrind.function(name, b"/usr/lib/libc.so.6", false);
    }
    let callgrind = &options.callgrind;
    let _ = (
        callgrind.config(3),
        callgrind.events(cg_format::events::Caches::Two, options.branch_sim),
        callgrind.write_options(),
    );
    let _ = options.names();
}

/// Files and arguments say the same, and what was read is settled by its words alone.
fn laws(input: &[u8]) {
    let sources = from_file(input, Some(OsStr::from_bytes(input).to_owned()));
    assert_eq!(sources.len(), 2, "the variable and the file");
    assert_eq!(sources[0].words, sources[1].words);
    let mut all: Vec<_> = words(input);
    all.retain(|word| sources[0].words.contains(word));
    assert!(all.len() >= sources[0].words.len(), "a word came from nowhere");
    // A comment takes words away, and nothing else does.
    if !input.contains(&b'#') {
        assert_eq!(sources[0].words, words(input));
    }
}

/// Adds an option of the tables, with a value that may be its own, or takes a word away.
fn change(random: &mut Random, input: &mut Vec<u8>) {
    let starts: Vec<usize> =
        (0..input.len()).filter(|at| *at == 0 || input[at - 1].is_ascii_whitespace()).chain([input.len()]).collect();
    let at = *random.pick(&starts);
    if random.below(8) == 0 {
        let end = input[at..].iter().position(u8::is_ascii_whitespace).map_or(input.len(), |end| at + end);
        input.drain(at..end);
        return;
    }
    let own = random.below(2) == 0;
    let option: &Opt = random.pick(if own { callgrind::OPTIONS } else { OPTIONS });
    let mut text = (*random.pick(option.names)).to_owned();
    let numbered = ["--separate-callers", "--separate-recs", "--fn-group"];
    if random.below(12) == 0 {
        text = format!("{}{}", random.pick(&numbered), random.number());
    }
    let value = match (option.kind, random.below(4)) {
        (_, 0) => Some(random.number().to_string()),
        (Kind::Flag, _) => None,
        (Kind::Bool, _) => Some((*random.pick(&["yes", "no"])).to_owned()),
        (Kind::Int { min, max }, _) => Some((*random.pick(&[min, max, random.clone().bits() as i64])).to_string()),
        (Kind::IntOr(max, word), _) => Some((*random.pick(&[word.to_owned(), max.to_string()])).clone()),
        (Kind::Hex, _) => Some(format!("{:#x}", random.number())),
        (Kind::Choice(words) | Kind::Set(words), _) => {
            Some((0..=random.below(3)).map(|_| *random.pick(words)).collect::<Vec<_>>().join(","))
        }
        (Kind::Text(_), kind) => Some(match kind {
            1 => format!("{},{},{}", random.number(), random.number(), 1 << random.below(10)),
            2 => "*a?".repeat(1 << random.below(8)),
            _ => format!("f{}.%p.%q{{HOME}}%n", random.below(3)),
        }),
    };
    text.extend(value.map(|value| format!("={value}")));
    text.push(*random.pick(&[' ', '\n']));
    input.splice(at..at, text.into_bytes());
}
