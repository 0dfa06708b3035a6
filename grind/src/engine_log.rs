//! What the engine says while it runs, for who looks for a fault: `GRIND_LOG=LEVEL` or `GRIND_LOG=SUBJECT=LEVEL,…` in grind's
//! environment, for instance `signal=debug,link=trace`, to standard error. Nobody who does not ask sees or pays any of it. It must
//! never change what is counted, nor stop a run: of a wrong value one line is said, and the rest counts.
//!
//! Lines come from the engine, by the `log` crate; its subjects are named in [`grind_types::subject`].

use std::fmt::Write as _;
use std::io::Write as _;

use grind_types::subject;

use env_logger::{Builder, Target};
use log::LevelFilter;

/// The variable that says what is wanted.
pub const VARIABLE: &str = "GRIND_LOG";

/// What a value asks for: levels by subject (none: of all), and what it has that nobody knows.
fn parse(value: &str) -> (Vec<(Option<&str>, LevelFilter)>, Vec<&str>) {
    let (mut wanted, mut unknown) = (Vec::new(), Vec::new());
    for word in value.split(',').map(str::trim).filter(|word| !word.is_empty()) {
        let (name, level) = match word.split_once('=') {
            Some((name, level)) => (Some(name.trim()), level.trim().parse().ok()),
            None => match word.parse() {
                Ok(level) => (None, Some(level)),
                Err(_) => (Some(word), Some(LevelFilter::Trace)),
            },
        };
        match level {
            Some(level) if name.is_none_or(|name| subject::ALL.contains(&name)) => wanted.push((name, level)),
            _ => unknown.push(word),
        }
    }
    (wanted, unknown)
}

/// Lets the engine say what the environment asks for. Returns what is wrong with that, if something is.
#[must_use]
pub fn begin() -> Option<String> {
    let value = std::env::var_os(VARIABLE)?;
    let value = value.to_string_lossy();
    let (wanted, unknown) = parse(&value);
    if !wanted.is_empty() {
        let mut builder = Builder::new();
        for (name, level) in wanted {
            match name {
                Some(name) => builder.filter_module(name, level),
                None => builder.filter_level(level),
            };
        }
        builder.target(Target::Stderr);
        builder.format(|out, record| writeln!(out, "grind: {}: {}", record.target(), record.args()));
        // There is no other reader of it in the process.
        builder.init();
    }
    if unknown.is_empty() {
        return None;
    }
    let mut text = format!("{VARIABLE}: ");
    for word in unknown {
        let _ = write!(text, "'{word}' ");
    }
    let _ = write!(
        text,
        "is not known: it is LEVEL or SUBJECT=LEVEL, with the subjects {} and the levels debug and trace",
        subject::ALL.join(", ")
    );
    Some(text)
}

/// Whether lines may come.
#[must_use]
pub fn is_wanted() -> bool {
    log::max_level() > LevelFilter::Off
}

#[cfg(test)]
mod tests {
    use super::{LevelFilter, parse, subject};

    #[test]
    fn words_are_levels_subjects_or_both() {
        let all = [(None, LevelFilter::Debug)];
        assert_eq!(parse("debug"), (all.to_vec(), Vec::new()));
        let two = [(Some("signal"), LevelFilter::Debug), (Some("link"), LevelFilter::Trace)];
        assert_eq!(parse("signal=debug, link"), (two.to_vec(), Vec::new()));
        assert_eq!(parse("signal=loud,sgnal=debug,,"), (Vec::new(), vec!["signal=loud", "sgnal=debug"]));
        for name in subject::ALL {
            assert_eq!(parse(name).0, [(Some(name), LevelFilter::Trace)], "{name}");
        }
    }
}
