//! What a look at a finished profile says to somebody who is about to read it: that it is empty, that its hottest code has no names or
//! lines, that the program was not optimized. For people alone: never with `-q`, never in Valgrind's place, and never a failure.

use std::path::Path;

use cg_format::cachegrind::Profile;

use crate::built;

/// What was counted, by how much is known of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Known {
    all: i128,
    without_name: i128,
    without_line: i128,
}

impl Known {
    /// By the first event, which is instructions.
    fn of(profile: &Profile) -> Self {
        let mut known = Self::default();
        for file in profile.files() {
            for function in file.functions() {
                let rows = function.rows();
                for row in 0..rows.len() {
                    let count = rows.count(row, 0);
                    known.all += count;
                    if function.name() == b"???" {
                        known.without_name += count;
                    } else if rows.line(row) == 0 {
                        known.without_line += count;
                    }
                }
            }
        }
        known
    }
}

/// What to say of a profile that has nothing, if something is to be said.
#[must_use]
pub fn of_nothing(total: i128, begins_on: bool, start: &str) -> Option<String> {
    if total != 0 {
        return None;
    }
    let why = match begins_on {
        true => "nothing ran while instructions were counted",
        false => start,
    };
    Some(format!("nothing was counted, the profile is empty: {why}"))
}

/// What to say of names and lines: of half of what was executed at least, since there is always some code without.
#[must_use]
pub fn of_names(profile: &Profile) -> Option<String> {
    say(Known::of(profile))
}

fn say(known: Known) -> Option<String> {
    let share = |part: i128| (known.all > 0 && part * 2 >= known.all).then(|| part * 100 / known.all);
    if let Some(percent) = share(known.without_name) {
        return Some(format!(
            "{percent}% of the instructions are in code without names: the program or a library is stripped, or the code was made \
             at run time (grind doctor PROGRAM looks for names)"
        ));
    }
    let percent = share(known.without_line + known.without_name)?;
    Some(format!(
        "{percent}% of the instructions are in code without lines: build with -g; for the distribution's libraries there are packages \
         with debug information (libc6-dbg)"
    ))
}

/// What to say of how a program was built.
#[must_use]
pub fn of_building(exe: &Path) -> Option<String> {
    let unoptimized = built::look(exe)?.optimized == Some(false);
    unoptimized.then(|| {
        "the program was built without optimization (no -O in what gcc was told): what is hot here may not be so with -O2".to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn profile(rows: &[(&str, u64, i128)]) -> Profile {
        let mut profile = Profile::new(["Ir"]);
        for (function, line, count) in rows {
            profile.add(b"a.c", function.as_bytes(), *line, &[*count]).unwrap();
        }
        profile
    }

    #[test]
    fn code_without_names_or_lines_is_told_from_half_on() {
        assert_eq!(of_names(&profile(&[("f", 3, 51), ("???", 0, 49)])), None);
        assert!(of_names(&profile(&[("f", 3, 50), ("???", 0, 50)])).unwrap().starts_with("50% "));
        let mixed = of_names(&profile(&[("f", 3, 30), ("g", 0, 40), ("???", 0, 30)])).unwrap();
        assert!(mixed.starts_with("70% ") && mixed.contains("without lines"), "{mixed}");
        assert_eq!(of_names(&profile(&[])), None);
    }

    #[test]
    fn an_empty_profile_says_why() {
        assert_eq!(of_nothing(1, true, ""), None);
        assert!(of_nothing(0, false, "START was not called").unwrap().ends_with("START was not called"));
        assert!(of_nothing(0, true, "").unwrap().contains("empty"));
    }
}
