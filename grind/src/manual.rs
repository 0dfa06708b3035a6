//! What grind says about itself: `--help`, the manual page and shell completions, all made from the table of options.
//!
//! The manual's narrative is in `man/grind.1.in`; only the lists of options are made here. Tests compare the made files
//! with those in the repository.

use std::fmt::Write as _;

use crate::invocation::{Invocation, VERSION};
use crate::options::callgrind;
use crate::options::table::{OPTIONS, Opt, Role};
use crate::options::value::Kind;

/// Columns of the help text.
const WIDTH: usize = 80;
const INDENT: usize = 30;

/// What most people need, in the order in which the help shows it first.
const FIRST: &[&str] = &[
    "--cachegrind-out-file",
    "--callgrind-out-file",
    "--tool",
    "--cache-sim",
    "--branch-sim",
    "--trace-children",
    "--log-file",
    "--quiet",
    "--verbose",
    "--help-debug",
];

/// The text of `--help`; with `debug`, of `--help-debug`.
#[must_use]
pub fn help(invocation: Invocation, debug: bool) -> String {
    let names = invocation.option_names();
    let mut text = format!("usage: {} [options] program [arguments]\n", invocation.name());
    let first = FIRST.iter().filter_map(|name| all().find(|option| option.names[0] == *name));
    let first: Vec<&Opt> = first.collect();
    let is_first = |option: &Opt| first.iter().any(|shown| std::ptr::eq(*shown, option));
    let core = |o: &Opt| matches!(o.role, Role::Core(_) | Role::Early) && !is_first(o);
    let tool = |o: &Opt| matches!(o.role, Role::Tool(_)) && !is_first(o);
    entries(&mut text, "needed most, with defaults in [ ]", first.iter().copied());
    section(&mut text, "options of both tools", OPTIONS, core);
    section(&mut text, "options of cachegrind", OPTIONS, tool);
    section(&mut text, "options of callgrind", callgrind::OPTIONS, tool);
    if debug {
        section(&mut text, "rarely needed", OPTIONS, |o| matches!(o.role, Role::Debug(_)));
        text.push_str("\n  accepted without effect:\n");
        wrap(&mut text, 4, 4, &ignored().flat_map(|o| o.names).copied().collect::<Vec<_>>().join(" "));
    }
    text.push('\n');
    let sources = format!(
        "Options end at the first word that is none, or at --. More are read from ~/{file}, ${variable} and ./{file}, in \
         this order, before those of the command line.",
        file = names.file,
        variable = names.variable,
    );
    wrap(&mut text, 2, 2, &sources);
    text.push('\n');
    let readers =
        "A profile is read with cg_annotate, one of callgrind with callgrind_annotate. The manual is grind(1).";
    wrap(&mut text, 2, 2, readers);
    if invocation == Invocation::Grind {
        text.push('\n');
        wrap(&mut text, 2, 2, "Whether programs can be profiled here, and how well: grind doctor [program].");
    }
    text
}

fn section(text: &mut String, title: &str, options: &[Opt], wanted: impl Fn(&Opt) -> bool) {
    entries(text, title, options.iter().filter(|o| wanted(o)));
}

fn entries<'o>(text: &mut String, title: &str, options: impl Iterator<Item = &'o Opt>) {
    let _ = write!(text, "\n  {title}:\n");
    for option in options {
        let spelling = spelling(option);
        let default = if option.default.is_empty() { String::new() } else { format!(" [{}]", option.default) };
        let _ = write!(text, "    {spelling}");
        let column = 4 + spelling.chars().count();
        if column + 1 < INDENT {
            text.push_str(&" ".repeat(INDENT - column));
        } else {
            text.push('\n');
            text.push_str(&" ".repeat(INDENT));
        }
        wrap(text, INDENT, 0, &format!("{}{default}", option.help));
    }
}

/// `-q --quiet`, `--log-fd=<number>`.
fn spelling(option: &Opt) -> String {
    let mut names: Vec<&str> = option.names.to_vec();
    names.sort_by_key(|n| n.len());
    let value = if option.kind == Kind::Flag { String::new() } else { format!("={}", option.kind.placeholder()) };
    if names.len() > 1 && option.kind == Kind::Flag { names.join(" ") } else { format!("{}{value}", option.names[0]) }
}

/// Appends `words`, broken at blanks before [`WIDTH`]; every line but the first starts in column `indent`.
fn wrap(text: &mut String, indent: usize, first: usize, words: &str) {
    text.push_str(&" ".repeat(first));
    let mut column = indent;
    for (index, word) in words.split(' ').enumerate() {
        let length = word.chars().count();
        if index > 0 {
            if column + 1 + length > WIDTH {
                text.push('\n');
                text.push_str(&" ".repeat(indent));
                column = indent;
            } else {
                text.push(' ');
                column += 1;
            }
        }
        text.push_str(word);
        column += length;
    }
    text.push('\n');
}

/// All options of all tools; those that both have come twice.
fn all() -> impl Iterator<Item = &'static Opt> {
    OPTIONS.iter().chain(callgrind::OPTIONS)
}

fn ignored() -> impl Iterator<Item = &'static Opt> {
    all().filter(|o| matches!(o.role, Role::Ignored(_)))
}

/// The manual page: `narrative` (the text of `man/grind.1.in`) with its `@…@` lines replaced by lists of options.
#[must_use]
pub fn page(narrative: &str) -> String {
    let mut page = String::from(".\\\" Made from man/grind.1.in and the table of options: do not edit.\n");
    for line in narrative.lines() {
        match line {
            "@CORE@" => options(&mut page, OPTIONS, |o| matches!(o.role, Role::Core(_) | Role::Early)),
            "@DEBUG@" => options(&mut page, OPTIONS, |o| matches!(o.role, Role::Debug(_))),
            "@TOOL@" => options(&mut page, OPTIONS, |o| matches!(o.role, Role::Tool(_))),
            "@CALLGRIND@" => options(&mut page, callgrind::OPTIONS, |o| matches!(o.role, Role::Tool(_))),
            "@IGNORED@" => {
                for option in ignored() {
                    let Role::Ignored(why) = option.role else { continue };
                    entry(&mut page, option, why);
                }
            }
            "@LACKING@" => {
                for option in all() {
                    let Role::Lacking(accepted, why) = option.role else { continue };
                    let accepted = match accepted {
                        [] => "Always refused".to_owned(),
                        values => format!("Only {} is accepted", values.join(", ")),
                    };
                    entry(&mut page, option, &format!("{accepted}: {why}."));
                }
            }
            _ => {
                page.push_str(&line.replace("@VERSION@", VERSION));
                page.push('\n');
            }
        }
    }
    page
}

fn options(page: &mut String, options: &[Opt], wanted: impl Fn(&Opt) -> bool) {
    for option in options.iter().filter(|o| wanted(o)) {
        let default = if option.default.is_empty() { String::new() } else { format!(" [{}]", option.default) };
        entry(page, option, &format!("{}{default}", option.help));
    }
}

fn entry(page: &mut String, option: &Opt, text: &str) {
    let value = if option.kind == Kind::Flag { String::new() } else { format!("={}", option.kind.placeholder()) };
    // A line may end between two of the values.
    let value = roff(&value).replace('|', "|\\:");
    let names: Vec<String> = option.names.iter().map(|n| format!("\\fB{}\\fR{value}", roff(n))).collect();
    let _ = writeln!(page, ".TP\n{}\n{}", names.join(", "), roff(text));
}

/// `text` as roff shows it literally.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    // A control character only at the start of a line.
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// The words that complete an option: with each value where there are few.
fn completions() -> Vec<(String, &'static str)> {
    let mut words = Vec::new();
    let own = callgrind::OPTIONS.iter().filter(|o| !OPTIONS.iter().any(|shared| shared.names[0] == o.names[0]));
    for option in OPTIONS.iter().chain(own) {
        let (values, help): (&[&str], &'static str) = match (option.role, option.kind) {
            (Role::Ignored(_) | Role::Lacking(..), _) => continue,
            (_, Kind::Flag) => {
                words.extend(option.names.iter().map(|n| ((*n).to_owned(), option.help)));
                continue;
            }
            (_, Kind::Bool) => (&["yes", "no"], option.help),
            (_, Kind::Choice(values)) => (values, option.help),
            (Role::Early, Kind::Text(_)) => (crate::options::table::TOOLS, option.help),
            _ => (&[""], option.help),
        };
        for name in option.names {
            words.extend(values.iter().map(|v| (format!("{name}={v}"), help)));
        }
    }
    words
}

/// The completion of a shell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// `man/completions/grind.bash`
    Bash,
    /// `man/completions/_grind`
    Zsh,
    /// `man/completions/grind.fish`
    Fish,
}

impl Shell {
    /// All of them, with the names of their files.
    pub const ALL: [(Self, &'static str); 3] =
        [(Self::Bash, "grind.bash"), (Self::Zsh, "_grind"), (Self::Fish, "grind.fish")];

    /// The completion's text.
    #[must_use]
    pub fn completion(self) -> String {
        let words = completions();
        let mut text = String::new();
        match self {
            Self::Bash => {
                text.push_str("# Completes grind's options, then the program and its arguments.\n_grind() {\n");
                text.push_str("    local current=${COMP_WORDS[COMP_CWORD]} at\n");
                text.push_str("    COMPREPLY=()\n");
                text.push_str("    # COMP_WORDS splits at \"=\"; the line itself does not.\n");
                text.push_str("    local before=${COMP_LINE:0:COMP_POINT}\n    local -a typed\n");
                text.push_str("    read -ra typed <<<\"$before\"\n");
                text.push_str("    [[ $before == *[[:space:]] ]] && typed+=(\"\")\n");
                text.push_str("    for ((at = 1; at < ${#typed[@]} - 1; at++)); do\n");
                text.push_str("        [[ ${typed[at]} == -- ]] && { ((at++)); break; }\n");
                text.push_str("        [[ ${typed[at]} == -* ]] || break\n    done\n");
                text.push_str("    if ((at < ${#typed[@]} - 1)); then\n");
                text.push_str("        declare -F _command_offset >/dev/null && _command_offset \"$at\"\n        return\n    fi\n");
                text.push_str("    local word=${typed[at]}\n");
                text.push_str(
                    "    if [[ $word == -*=* && $word == --@(log|cachegrind-out|callgrind-out)-file=* ]]; then\n",
                );
                text.push_str("        COMPREPLY=($(compgen -f -- \"${word#*=}\"))\n");
                text.push_str("    elif [[ $word == -* ]]; then\n        local IFS=$'\\n' match\n");
                text.push_str("        for match in $(compgen -W \"$_grind_options\" -- \"$word\"); do\n");
                text.push_str("            [[ $word == *=* ]] && match=${match#*=}\n");
                text.push_str("            COMPREPLY+=(\"$match\")\n        done\n");
                text.push_str("        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace\n");
                text.push_str("    else\n        COMPREPLY=($(compgen -c -- \"$current\"))\n    fi\n}\n");
                text.push_str("_grind_options='");
                text.push_str(&words.iter().map(|(w, _)| w.as_str()).collect::<Vec<_>>().join("\n"));
                text.push_str("'\ncomplete -F _grind grind\n");
            }
            Self::Zsh => {
                text.push_str("#compdef grind\n# Completes grind's options, then the program and its arguments.\n_arguments -S \\\n");
                let mut last = "";
                for (word, help) in &words {
                    let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
                    if name == last {
                        continue;
                    }
                    last = name;
                    let help = help.replace('\'', "'\\''").replace('[', "\\[").replace(']', "\\]").replace(':', "\\:");
                    let all: Vec<&str> = words
                        .iter()
                        .filter_map(|(w, _)| w.split_once('=').filter(|(n, _)| *n == name).map(|(_, v)| v))
                        .collect();
                    let _ = match value {
                        None => writeln!(text, "  '*{name}[{help}]' \\"),
                        Some("") if name.ends_with("-file") => writeln!(text, "  '*{name}=[{help}]:file:_files' \\"),
                        Some("") => writeln!(text, "  '*{name}=[{help}]:value:' \\"),
                        Some(_) => writeln!(text, "  '*{name}=[{help}]:value:({})' \\", all.join(" ")),
                    };
                }
                text.push_str("  '(-):program: _command_names -e' \\\n  '*::arguments: _normal'\n");
            }
            Self::Fish => {
                text.push_str("# Completes grind's options, then the program and its arguments.\n");
                text.push_str("complete -c grind -f -a '(__fish_complete_subcommand)'\n");
                let mut last = "";
                for (word, help) in &words {
                    let (name, value) = word.split_once('=').map_or((word.as_str(), None), |(n, v)| (n, Some(v)));
                    if name == last {
                        continue;
                    }
                    last = name;
                    let option = match name.strip_prefix("--") {
                        Some(long) => format!("-l {long}"),
                        None => format!("-s {}", name.trim_start_matches('-')),
                    };
                    let all: Vec<&str> = words
                        .iter()
                        .filter_map(|(w, _)| w.split_once('=').filter(|(n, _)| *n == name).map(|(_, v)| v))
                        .collect();
                    let values = match value {
                        None => String::new(),
                        Some("") if name.ends_with("-file") => " -r -F".to_owned(),
                        Some("") => " -x".to_owned(),
                        Some(_) => format!(" -x -a '{}'", all.join(" ")),
                    };
                    let help = help.replace('\\', "\\\\").replace('\'', "\\'");
                    let _ = writeln!(text, "complete -c grind {option}{values} -d '{help}'");
                }
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_fits_the_terminal_and_names_every_option() {
        for debug in [false, true] {
            let text = help(Invocation::Grind, debug);
            for line in text.lines() {
                assert!(line.chars().count() <= WIDTH, "{line}");
            }
            for option in all() {
                let shown = match option.role {
                    Role::Core(_) | Role::Tool(_) | Role::Early => true,
                    Role::Debug(_) | Role::Ignored(_) => debug,
                    Role::Lacking(..) => continue,
                };
                let named = |w: &str| option.names.iter().any(|n| w.split('=').next() == Some(n));
                assert_eq!(text.split_whitespace().any(named), shown, "{:?}", option.names);
            }
        }
        assert!(help(Invocation::Valgrind, false).starts_with("usage: valgrind "));
        let text = help(Invocation::Grind, false);
        let of = |name: &&str| all().find(|option| option.names[0] == *name).expect("it exists");
        let places: Vec<_> = FIRST.iter().map(|name| text.find(&format!("    {}", spelling(of(name))))).collect();
        assert!(places.is_sorted(), "what is needed most comes first, in its order: {places:?}");
    }

    #[test]
    fn roff_is_literal() {
        assert_eq!(roff("a-b\\c"), "a\\-b\\ec");
        assert_eq!(roff(".x"), "\\&.x");
    }

    #[test]
    fn completions_offer_values() {
        let words: Vec<String> = completions().into_iter().map(|(w, _)| w).collect();
        for wanted in
            ["--trace-children=yes", "--cpu=host", "--log-file=", "-q", "--tool=callgrind", "--dump-instr=yes"]
        {
            assert!(words.iter().any(|w| w == wanted), "{wanted}");
        }
        assert!(!words.iter().any(|w| w.starts_with("--vgdb")));
    }
}
