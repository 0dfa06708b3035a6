//! `s/old/new/` on names, in the dialect that users of the reference write: Python's regular expressions.
//!
//! The expressions run on fancy-regex, because the dialect has look-around and back-references, which the regex crate
//! refuses; fancy-regex hands everything else to that crate's automata. Where the two dialects spell things
//! differently, `pattern` translates; what Python refuses is refused here too, at the same character. The one
//! extension: a look-behind may have any width.
//!
//! Backtracking is bounded: an expression that explodes on a name ends with an error, it does not hang.

mod pattern;
mod template;

use std::fmt;

use fancy_regex::{CompileError, Error, Regex, RegexBuilder};

use template::Template;

/// A fault in an argument, with the character at which it lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubstituteError {
    /// The whole argument.
    pub text: String,
    /// The character at fault, from 0.
    pub at: usize,
    /// What is wrong there.
    pub cause: String,
}

impl fmt::Display for SubstituteError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, at, cause } = self;
        write!(f, "{cause} at character {}\n  {text}\n  {:at$}^", at + 1, "")
    }
}

impl std::error::Error for SubstituteError {}

/// An expression took too long on a name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApplyError {
    /// The argument.
    pub text: String,
    /// The name.
    pub name: String,
}

impl fmt::Display for ApplyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` takes too long on `{}`: simplify its repetitions", self.text, self.name)
    }
}

impl std::error::Error for ApplyError {}

/// A fault at a character of an argument; the argument is added by the caller.
#[derive(Debug)]
struct Fault {
    at: usize,
    cause: String,
}

fn fault<T>(at: usize, cause: impl Into<String>) -> Result<T, Fault> {
    Err(Fault { at, cause: cause.into() })
}

/// A substitution that is ready to be applied.
#[derive(Clone, Debug)]
pub struct Substitution {
    text: String,
    expression: Regex,
    /// Matches like `expression`, but never nothing; absent if that cannot be.
    not_empty: Option<Regex>,
    template: Template,
    global: bool,
}

/// A character and its place in the argument.
type Placed = (char, usize);

impl Substitution {
    /// Reads `s/old/new/` with the flags `g` (all matches) and `i` (ignore case) in any order.
    ///
    /// A slash inside `old` or `new` is written `\/`. With more slashes than needed the last ones count.
    ///
    /// # Errors
    /// [`SubstituteError`] names the character at fault.
    ///
    /// # Example
    /// ```
    /// use cg_cli::substitute::Substitution;
    ///
    /// let rename = Substitution::parse(r"s/.*\/(\w+)\.c$/\1/").unwrap();
    /// assert_eq!(rename.apply(b"/home/me/main.c").unwrap(), b"main");
    /// assert_eq!(Substitution::parse("s/a(b/c/").unwrap_err().at, 3);
    /// ```
    pub fn parse(text: &str) -> Result<Self, SubstituteError> {
        Self::parse_parts(text).map_err(|Fault { at, cause }| SubstituteError { text: text.to_owned(), at, cause })
    }

    fn parse_parts(text: &str) -> Result<Self, Fault> {
        let chars: Vec<Placed> = text.chars().zip(0..).collect();
        if !text.starts_with("s/") {
            return fault(0, "a substitution must start with `s/`");
        }
        if let Some((_, at)) = chars.iter().find(|(c, _)| *c == '\n') {
            return fault(*at, "a substitution must not hold a line break");
        }
        let slashes: Vec<usize> = (2..chars.len()).filter(|i| chars[*i].0 == '/' && chars[*i - 1].0 != '\\').collect();
        let [.., middle, last] = slashes[..] else {
            return fault(chars.len(), "a substitution must have the form `s/old/new/`");
        };
        let (mut global, mut ignore_case) = (false, false);
        for (c, at) in &chars[last + 1..] {
            let flag = match c {
                'g' => &mut global,
                'i' => &mut ignore_case,
                _ => return fault(*at, format!("unknown flag `{c}`: only g and i are known")),
            };
            if std::mem::replace(flag, true) {
                return fault(*at, format!("flag `{c}` is given twice"));
            }
        }
        let old = without_escaped_slashes(&chars[2..middle]);
        let translated = pattern::translate(&old, middle)?;
        let build = |not_empty| {
            RegexBuilder::new(&translated.text)
                .case_insensitive(ignore_case)
                .find_not_empty(not_empty)
                .backtrack_limit(2_000_000)
                .build()
        };
        let expression = match build(false) {
            Ok(expression) => expression,
            Err(error) => return fault(translated.place_of(&error), describe(&error)),
        };
        let not_empty = match build(true) {
            Ok(expression) => Some(expression),
            Err(Error::CompileError(error)) if matches!(*error, CompileError::PatternCanNeverMatch) => None,
            Err(error) => return fault(translated.place_of(&error), describe(&error)),
        };
        let new = without_escaped_slashes(&chars[middle + 1..last]);
        let template = Template::parse(&new, last, &translated.groups)?;
        Ok(Self { text: text.to_owned(), expression, not_empty, template, global })
    }

    /// The name with the first match, or with `g` every match, replaced.
    ///
    /// Names need not be UTF-8: a byte that is not part of a character counts as a character of its own.
    ///
    /// # Errors
    /// [`ApplyError`] when matching backtracks too much.
    pub fn apply(&self, name: &[u8]) -> Result<Vec<u8>, ApplyError> {
        let text = to_chars(name);
        let failed = |_| ApplyError { text: self.text.clone(), name: String::from_utf8_lossy(name).into_owned() };
        let mut out = String::with_capacity(text.len());
        let (mut copied, mut from) = (0, 0);
        let mut after_empty = false;
        // No match before here is not empty. Looking for one at each place would take the square of the length.
        let mut only_empty_before = 0;
        loop {
            // After an empty match the next one may start at the same place only if it is not empty.
            let mut found = None;
            if !after_empty {
                found = self.expression.captures_from_pos(&text[..], from).map_err(failed)?;
            } else {
                if let Some(expression) = self.not_empty.as_ref().filter(|_| from >= only_empty_before) {
                    found = expression.captures_from_pos(&text[..], from).map_err(failed)?;
                    let start = found.as_ref().and_then(|captures| captures.get(0)).map(|all| all.start());
                    only_empty_before = start.unwrap_or(usize::MAX);
                    found = found.filter(|_| start == Some(from));
                }
                if found.is_none()
                    && let Some(next) = text[from..].chars().next()
                {
                    from += next.len_utf8();
                    found = self.expression.captures_from_pos(&text[..], from).map_err(failed)?;
                }
            }
            let Some((captures, all)) = found.and_then(|captures| captures.get(0).map(|all| (captures, all))) else {
                break;
            };
            out.push_str(&text[copied..all.start()]);
            self.template.expand(&mut out, |group| captures.get(group).map_or("", |part| part.as_str()));
            copied = all.end();
            from = all.end();
            after_empty = all.start() == all.end();
            if !self.global {
                break;
            }
        }
        out.push_str(&text[copied..]);
        Ok(to_bytes(&out))
    }
}

fn without_escaped_slashes(chars: &[Placed]) -> Vec<Placed> {
    let escaped = |i: usize| chars[i].0 == '\\' && chars.get(i + 1).is_some_and(|(c, _)| *c == '/');
    (0..chars.len()).filter(|i| !escaped(*i)).map(|i| chars[i]).collect()
}

fn describe(error: &Error) -> String {
    match error {
        Error::ParseError(_, cause) => cause.to_string(),
        Error::CompileError(cause) => cause.to_string(),
        Error::RuntimeError(cause) => cause.to_string(),
        _ => "invalid expression".to_owned(),
    }
}

/// Where single bytes that are no UTF-8 live while they are matched: the end of the last private plane, which no
/// compiler puts into names.
const STRAY: u32 = 0x10_FE00;

fn to_chars(name: &[u8]) -> String {
    let mut text = String::with_capacity(name.len());
    for chunk in name.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(STRAY + u32::from(*byte))));
    }
    text
}

fn to_bytes(text: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    for c in text.chars() {
        match u32::from(c).checked_sub(STRAY) {
            Some(byte) if (0x80..0x100).contains(&byte) => bytes.push(byte as u8),
            _ => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        }
    }
    bytes
}

#[cfg(test)]
mod tests;
