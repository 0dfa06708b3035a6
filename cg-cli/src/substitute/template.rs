//! The replacement of a substitution: text with `\1`, `\g<name>` and escapes, as Python's `re.sub` reads it.
//!
//! A group that took no part in the match stands for nothing. Escapes that Python refuses are refused.

use super::{Fault, Placed, fault};

/// A replacement that is ready to be filled in.
#[derive(Clone, Debug)]
pub(super) struct Template {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
enum Piece {
    Text(String),
    Group(usize),
}

impl Template {
    /// Reads a replacement. `groups` are the names of the expression's groups, from group 1; `end` is the place after it.
    pub(super) fn parse(chars: &[Placed], end: usize, groups: &[Option<String>]) -> Result<Self, Fault> {
        let mut reader = Reader { chars, end, groups, at: 0, pieces: Vec::new() };
        while let Some((c, place)) = reader.next() {
            if c == '\\' {
                reader.escape(place)?;
            } else {
                reader.push(c);
            }
        }
        Ok(Self { pieces: reader.pieces })
    }

    /// Appends the replacement to `out`, with groups by their number.
    pub(super) fn expand<'t>(&self, out: &mut String, group: impl Fn(usize) -> &'t str) {
        for piece in &self.pieces {
            match piece {
                Piece::Text(text) => out.push_str(text),
                Piece::Group(number) => out.push_str(group(*number)),
            }
        }
    }
}

struct Reader<'a> {
    chars: &'a [Placed],
    end: usize,
    groups: &'a [Option<String>],
    at: usize,
    pieces: Vec<Piece>,
}

impl Reader<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).map(|(c, _)| *c)
    }

    fn next(&mut self) -> Option<Placed> {
        let found = self.chars.get(self.at).copied();
        self.at += 1;
        found
    }

    fn push(&mut self, c: char) {
        match self.pieces.last_mut() {
            Some(Piece::Text(text)) => text.push(c),
            _ => self.pieces.push(Piece::Text(c.into())),
        }
    }

    fn group(&mut self, number: usize, place: usize) -> Result<(), Fault> {
        if number > self.groups.len() {
            return fault(place, format!("invalid group reference {number}"));
        }
        self.pieces.push(Piece::Group(number));
        Ok(())
    }

    /// What follows a backslash at `place`.
    fn escape(&mut self, place: usize) -> Result<(), Fault> {
        let octal = |c: Option<char>| c.and_then(|c| c.to_digit(8));
        let Some((c, _)) = self.next() else { return fault(place, "the replacement ends with a backslash") };
        match c {
            'g' => return self.named(place),
            '0' => {
                let mut value = 0;
                for _ in 0..2 {
                    let Some(digit) = octal(self.peek(0)) else { break };
                    value = value * 8 + digit;
                    self.at += 1;
                }
                self.push(char::from_u32(value).unwrap_or_default());
            }
            '1'..='9' => {
                let mut number = c.to_digit(10).unwrap_or_default();
                if let (Some(a), Some(b), Some(c)) = (c.to_digit(8), octal(self.peek(0)), octal(self.peek(1))) {
                    let value = (a * 8 + b) * 8 + c;
                    if value > 0o377 {
                        return fault(place, "an octal escape must be below \\400");
                    }
                    self.at += 2;
                    self.push(char::from_u32(value).unwrap_or_default());
                    return Ok(());
                }
                if let Some(digit) = self.peek(0).and_then(|c| c.to_digit(10)) {
                    number = number * 10 + digit;
                    self.at += 1;
                }
                return self.group(number as usize, place + 1);
            }
            'a' => self.push('\x07'),
            'b' => self.push('\x08'),
            'f' => self.push('\x0c'),
            'n' => self.push('\n'),
            'r' => self.push('\r'),
            't' => self.push('\t'),
            'v' => self.push('\x0b'),
            '\\' => self.push('\\'),
            c if c.is_ascii_alphabetic() => return fault(place, format!("bad escape \\{c}")),
            c => {
                self.push('\\');
                self.push(c);
            }
        }
        Ok(())
    }

    fn named(&mut self, place: usize) -> Result<(), Fault> {
        if self.next().map(|(c, _)| c) != Some('<') {
            return fault(place + 2, "missing < after \\g");
        }
        let start = self.chars.get(self.at).map_or(self.end, |(_, place)| *place);
        let mut name = String::new();
        loop {
            match self.next() {
                Some(('>', _)) => break,
                Some((c, _)) => name.push(c),
                None => return fault(start, "missing >, unterminated name"),
            }
        }
        if name.is_empty() {
            return fault(start, "missing group name");
        }
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            return match name.parse() {
                Ok(number) => self.group(number, start),
                Err(_) => fault(start, format!("invalid group reference {name}")),
            };
        }
        match self.groups.iter().position(|group| group.as_deref() == Some(&name)) {
            Some(index) => self.group(index + 1, start),
            None => fault(start, format!("unknown group name `{name}`")),
        }
    }
}
