//! File names with `%p`, `%n`, `%q{VAR}`, `%r` and `%%`.
//!
//! A template is checked once, when the options are read; expanding it later cannot fail. Environment variables are those
//! of grind itself at that time. Nothing here touches the file system.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;

use crate::launcher::LAUNCHERS;

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(Vec<u8>),
    Pid,
    Sequence,
}

/// No file has a longer name, in bytes.
const LONGEST: usize = 4096;

/// A checked file name that may differ from process to process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template(Vec<Piece>);

/// Counts the uses of `%n` per process: each stands for the next number, from 1 on in every process.
#[derive(Debug, Default)]
pub struct Sequence(HashMap<i32, u64>);

impl Sequence {
    fn next(&mut self, pid: i32) -> u64 {
        let n = self.0.entry(pid).or_default();
        *n += 1;
        *n
    }
}

impl Template {
    /// Reads `format`, looking variables up with `env`.
    ///
    /// # Errors
    /// The lines to show, without prefix, where the name cannot be used.
    pub fn parse(format: &OsStr, env: impl Fn(&OsStr) -> Option<OsString>) -> Result<Self, Vec<String>> {
        let one = |line: &str| Err(vec![line.to_owned()]);
        let bytes = format.as_bytes();
        if bytes.is_empty() {
            return one("No filename given");
        }
        if bytes[0] == b'~' {
            return Err(vec![
                "Filename begins with '~'".to_owned(),
                "The shell was to replace it, but shells differ in where they do;".to_owned(),
                "write $HOME instead.".to_owned(),
            ]);
        }
        if bytes.contains(&0) {
            return one("Filename contains a NUL byte");
        }
        if bytes.len() > LONGEST {
            return one("Filename is too long");
        }
        let mut pieces = Vec::new();
        let mut text = Vec::new();
        let mut rest = bytes;
        while let Some((&byte, after)) = rest.split_first() {
            rest = after;
            if byte != b'%' {
                text.push(byte);
                continue;
            }
            let Some((&what, after)) = rest.split_first() else {
                return one("Expected 'p', 'n', 'q', 'r' or '%' after '%'");
            };
            rest = after;
            match what {
                b'%' => text.push(b'%'),
                b'p' | b'n' => {
                    if !text.is_empty() {
                        pieces.push(Piece::Text(std::mem::take(&mut text)));
                    }
                    pieces.push(if what == b'p' { Piece::Pid } else { Piece::Sequence });
                }
                b'q' => {
                    let Some(name) = rest.strip_prefix(b"{") else {
                        return one("Expected '{' after '%q'");
                    };
                    let Some(end) = name.iter().position(|&b| b == b'}') else {
                        return one("Missing '}' in %q specifier");
                    };
                    let variable = OsStr::from_bytes(&name[..end]);
                    let Some(value) = env(variable) else {
                        return one(&format!("Environment variable '{}' is not set", variable.to_string_lossy()));
                    };
                    text.extend_from_slice(value.as_bytes());
                    if text.len() > LONGEST {
                        return one("Filename is too long");
                    }
                    rest = &name[end + 1..];
                }
                b'r' => {
                    let ranks = LAUNCHERS.map(|launcher| launcher.rank);
                    let Some(rank) = ranks.iter().find_map(|name| env(OsStr::new(name))) else {
                        return Err(vec![
                            "No launcher of parallel programs has given this process a rank for '%r'".to_owned(),
                            format!("None of these is set: {}", ranks.join(", ")),
                        ]);
                    };
                    text.extend_from_slice(rank.as_bytes());
                }
                _ => return one("Expected 'p', 'n', 'q', 'r' or '%' after '%'"),
            }
        }
        if !text.is_empty() {
            pieces.push(Piece::Text(text));
        }
        if pieces.is_empty() {
            return one("No filename given");
        }
        Ok(Self(pieces))
    }

    /// The file name for process `pid`; `sequence` advances where the template contains `%n`.
    pub fn expand(&self, pid: i32, sequence: &mut Sequence) -> PathBuf {
        let mut name = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => name.extend_from_slice(text),
                Piece::Pid => name.extend_from_slice(pid.to_string().as_bytes()),
                Piece::Sequence => name.extend_from_slice(sequence.next(pid).to_string().as_bytes()),
            }
        }
        PathBuf::from(OsString::from_vec(name))
    }

    /// The name as it was given, but for variables, which have their values.
    #[must_use]
    pub fn pattern(&self) -> PathBuf {
        let mut name = Vec::new();
        for piece in &self.0 {
            match piece {
                Piece::Text(text) => name.extend(text.split(|byte| *byte == b'%').collect::<Vec<_>>().join(&b"%%"[..])),
                Piece::Pid => name.extend_from_slice(b"%p"),
                Piece::Sequence => name.extend_from_slice(b"%n"),
            }
        }
        PathBuf::from(OsString::from_vec(name))
    }

    /// Whether the name contains the process ID, so that every process has a file of its own.
    #[must_use]
    pub fn has_pid(&self) -> bool {
        self.0.contains(&Piece::Pid)
    }

    /// The folder that the files go to, if it is the same for every process.
    #[must_use]
    pub fn fixed_folder(&self) -> Option<PathBuf> {
        let last_slash = self.0.iter().rposition(|p| matches!(p, Piece::Text(t) if t.contains(&b'/')));
        let Some(last) = last_slash else {
            return Some(PathBuf::from("."));
        };
        let mut folder = Vec::new();
        for (index, piece) in self.0[..=last].iter().enumerate() {
            let Piece::Text(text) = piece else { return None };
            match text.iter().rposition(|&b| b == b'/') {
                Some(slash) if index == last => folder.extend_from_slice(&text[..=slash]),
                _ => folder.extend_from_slice(text),
            }
        }
        Some(PathBuf::from(OsString::from_vec(folder)))
    }

    /// The file name, if it is the same for every process.
    #[must_use]
    pub fn fixed_name(&self) -> Option<PathBuf> {
        let mut name = Vec::new();
        for piece in &self.0 {
            let Piece::Text(text) = piece else { return None };
            name.extend_from_slice(text);
        }
        Some(PathBuf::from(OsString::from_vec(name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &OsStr) -> Option<OsString> {
        (name == "HERE").then(|| OsString::from("a/b"))
    }

    fn parse(format: &str) -> Result<Template, String> {
        Template::parse(OsStr::new(format), env).map_err(|lines| lines.join("\n"))
    }

    fn expand(format: &str) -> String {
        parse(format).unwrap().expand(42, &mut Sequence::default()).to_string_lossy().into_owned()
    }

    #[test]
    fn specifiers_are_replaced() {
        assert_eq!(expand("cachegrind.out.%p"), "cachegrind.out.42");
        assert_eq!(expand("%q{HERE}/x%%%n"), "a/b/x%1");
        assert_eq!(expand("%p%p.%n.%n"), "4242.1.2");
    }

    #[test]
    fn the_rank_is_that_of_whoever_has_launched_the_program() {
        let ranked = |set: &[(&str, &str)], format: &str| {
            let env = |name: &OsStr| set.iter().find(|(n, _)| name == *n).map(|(_, value)| OsString::from(value));
            let template = Template::parse(OsStr::new(format), env).map_err(|lines| lines.join("\n"))?;
            Ok::<_, String>(template.expand(42, &mut Sequence::default()).to_string_lossy().into_owned())
        };
        for name in LAUNCHERS.map(|launcher| launcher.rank) {
            assert_eq!(ranked(&[(name, "17")], "cg.%r.%p"), Ok("cg.17.42".to_owned()), "{name}");
        }
        assert_eq!(ranked(&[("SLURM_PROCID", "0"), ("OMPI_COMM_WORLD_RANK", "3")], "%r"), Ok("3".to_owned()));
        let refused = ranked(&[], "cg.%r").unwrap_err();
        assert!(refused.contains("OMPI_COMM_WORLD_RANK") && refused.contains("'%r'"), "{refused}");
    }

    #[test]
    fn numbers_run_per_process() {
        let mut sequence = Sequence::default();
        let template = parse("f.%n").unwrap();
        let mut name = |pid| template.expand(pid, &mut sequence).to_string_lossy().into_owned();
        assert_eq!([name(1), name(1), name(2), name(1)], ["f.1", "f.2", "f.1", "f.3"]);
    }

    #[test]
    fn wrong_names_are_refused() {
        for (format, message) in [
            ("", "No filename given"),
            ("%q{EMPTY", "Missing '}' in %q specifier"),
            ("%qX", "Expected '{' after '%q'"),
            ("%q{NOPE}", "Environment variable 'NOPE' is not set"),
            ("%x", "Expected 'p', 'n', 'q', 'r' or '%' after '%'"),
            ("x%", "Expected 'p', 'n', 'q', 'r' or '%' after '%'"),
        ] {
            assert_eq!(parse(format).unwrap_err(), message, "{format}");
        }
        assert!(parse("~/x").unwrap_err().starts_with("Filename begins with '~'"));
        assert!(parse(&"%p".repeat(2048)).is_ok());
        assert_eq!(parse(&"%p".repeat(2049)).unwrap_err(), "Filename is too long");
        let long = |_: &OsStr| Some("x".repeat(3000).into());
        assert!(Template::parse(OsStr::new("%q{A}"), long).is_ok());
        assert!(Template::parse(OsStr::new("%q{A}%q{A}"), long).is_err());
    }

    #[test]
    fn the_folder_is_known_beforehand_unless_it_depends_on_the_process() {
        let folder = |f| parse(f).unwrap().fixed_folder().map(|p| p.to_string_lossy().into_owned());
        assert_eq!(folder("out.%p").as_deref(), Some("."));
        assert_eq!(folder("/x/y/out.%p").as_deref(), Some("/x/y/"));
        assert_eq!(folder("%q{HERE}").as_deref(), Some("a/"));
        assert_eq!(folder("x.%p/out"), None);
        assert_eq!(folder("a/%p.%n").as_deref(), Some("a/"));
        assert_eq!(parse("x%%").unwrap().fixed_name(), Some(PathBuf::from("x%")));
        assert_eq!(parse("x%p").unwrap().fixed_name(), None);
    }
}
