//! What an option's value may look like, and the messages for those that do not.
//!
//! The wording follows the reference wherever it has one, since wrappers and people know it. Checking never applies an
//! option and never panics, whatever bytes it is given.

use std::ffi::OsStr;

/// The form of an option's value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// No value: `-q`.
    Flag,
    /// `yes` or `no`.
    Bool,
    /// A decimal integer in this range, both ends included.
    Int {
        /// The least value.
        min: i64,
        /// The greatest value.
        max: i64,
    },
    /// A decimal integer from 0 to this, or that word.
    IntOr(i64, &'static str),
    /// A hexadecimal number with `0x`.
    Hex,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// `none`, `all` where it is listed, or a comma-separated list of these words.
    Set(&'static [&'static str]),
    /// Any text; this is what the help calls it.
    Text(&'static str),
}

/// A checked value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Value<'a> {
    /// Of a [`Kind::Flag`].
    None,
    /// Of a [`Kind::Bool`].
    Bool(bool),
    /// Of a [`Kind::Int`], or a number of a [`Kind::IntOr`].
    Int(i64),
    /// Of every other kind.
    Text(&'a OsStr),
}

impl Value<'_> {
    /// The boolean, or `false` where the value is of another kind.
    #[must_use]
    pub fn is_yes(self) -> bool {
        self == Value::Bool(true)
    }
}

impl Kind {
    /// Checks `value` (the bytes after `=`; `None` where there is no `=`) for the option `name`.
    ///
    /// # Errors
    /// The lines to show, without prefix.
    pub fn check<'a>(self, name: &str, value: Option<&'a OsStr>) -> Result<Value<'a>, Vec<String>> {
        let one = |line: String| Err(vec![line]);
        let Some(value) = value else {
            return match self {
                Self::Flag => Ok(Value::None),
                Self::Bool => one(format!("Missing boolean value, did you mean '{name}=yes'?")),
                _ => one(format!("Missing value, expected '{name}={}'", self.placeholder())),
            };
        };
        let shown = value.to_string_lossy();
        match self {
            Self::Flag => one(format!("'{name}' takes no value")),
            Self::Bool => match &*shown {
                "yes" => Ok(Value::Bool(true)),
                "no" => Ok(Value::Bool(false)),
                _ => one(format!("Invalid boolean value '{shown}' (should be 'yes' or 'no')")),
            },
            Self::Int { min, max } => match shown.parse::<i64>() {
                Ok(n) if (min..=max).contains(&n) => Ok(Value::Int(n)),
                Ok(_) => one(format!("'{name}' argument must be between {min} and {max}")),
                Err(_) => one(format!("Invalid integer value '{shown}'")),
            },
            Self::IntOr(_, word) if shown == word => Ok(Value::Text(value)),
            Self::IntOr(max, _) => Self::Int { min: 0, max }.check(name, Some(value)),
            Self::Hex => {
                let digits = shown.strip_prefix("0x").unwrap_or_default();
                if u64::from_str_radix(digits, 16).is_ok() && !digits.starts_with('+') {
                    Ok(Value::Text(value))
                } else {
                    one(format!("Invalid hexadecimal value '{shown}' (expected 0x…)"))
                }
            }
            Self::Choice(words) if words.contains(&&*shown) => Ok(Value::Text(value)),
            Self::Choice(words) => one(format!("Bad argument, should be {}", alternatives(words))),
            Self::Set(words) => {
                let alone = shown == "none" || words.contains(&"all") && shown == "all";
                if alone || !shown.is_empty() && shown.split(',').all(|w| w != "all" && words.contains(&w)) {
                    Ok(Value::Text(value))
                } else {
                    one(format!("{shown} is an invalid {} set", name.trim_start_matches('-')))
                }
            }
            Self::Text(_) => Ok(Value::Text(value)),
        }
    }

    /// How help and manual write the value: `no|yes`, `<number>`, ….
    #[must_use]
    pub fn placeholder(self) -> String {
        match self {
            Self::Flag => String::new(),
            Self::Bool => "no|yes".to_owned(),
            Self::Int { .. } => "<number>".to_owned(),
            Self::IntOr(_, word) => format!("<number>|{word}"),
            Self::Hex => "0x<hexadecimal>".to_owned(),
            Self::Choice(words) => words.join("|"),
            Self::Set(_) => "<word>,<word>,...".to_owned(),
            Self::Text(what) => format!("<{what}>"),
        }
    }
}

/// `'a', 'b' or 'c'`.
fn alternatives(words: &[&str]) -> String {
    let quoted: Vec<String> = words.iter().map(|w| format!("'{w}'")).collect();
    match quoted.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => quoted.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(kind: Kind, value: Option<&str>) -> String {
        kind.check("--opt", value.map(OsStr::new)).unwrap_err().join("\n")
    }

    #[test]
    fn booleans_need_yes_or_no() {
        assert_eq!(Kind::Bool.check("--b", Some(OsStr::new("yes"))), Ok(Value::Bool(true)));
        assert_eq!(Kind::Bool.check("--b", Some(OsStr::new("no"))), Ok(Value::Bool(false)));
        assert_eq!(error(Kind::Bool, None), "Missing boolean value, did you mean '--opt=yes'?");
        assert_eq!(error(Kind::Bool, Some("maybe")), "Invalid boolean value 'maybe' (should be 'yes' or 'no')");
        assert_eq!(error(Kind::Bool, Some("")), "Invalid boolean value '' (should be 'yes' or 'no')");
    }

    #[test]
    fn integers_are_decimal_and_bounded() {
        let kind = Kind::Int { min: 1, max: 500 };
        assert_eq!(kind.check("--n", Some(OsStr::new("12"))), Ok(Value::Int(12)));
        assert_eq!(error(kind, Some("0x2")), "Invalid integer value '0x2'");
        assert_eq!(error(kind, Some("12x")), "Invalid integer value '12x'");
        assert_eq!(error(kind, Some("501")), "'--opt' argument must be between 1 and 500");
    }

    #[test]
    fn words_come_from_their_list() {
        let kind = Kind::Choice(&["yes", "all", "no"]);
        assert_eq!(error(kind, Some("foo")), "Bad argument, should be 'yes', 'all' or 'no'");
        let set = Kind::Set(&["a", "b"]);
        assert!(set.check("--s", Some(OsStr::new("a,b"))).is_ok());
        assert!(set.check("--s", Some(OsStr::new("none"))).is_ok());
        assert_eq!(error(set, Some("none,a")), "none,a is an invalid opt set");
        assert_eq!(error(set, Some("all")), "all is an invalid opt set");
    }

    #[test]
    fn addresses_are_hexadecimal() {
        assert!(Kind::Hex.check("--a", Some(OsStr::new("0x1000"))).is_ok());
        assert!(Kind::Hex.check("--a", Some(OsStr::new("1000"))).is_err());
        assert!(Kind::Hex.check("--a", Some(OsStr::new("0x+1"))).is_err());
    }
}
