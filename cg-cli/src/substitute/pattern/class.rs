//! Character classes. In Python a bracket, `&&`, `--` or `~~` inside a class means its characters; the regex crate
//! would read nested classes and set operations, so every literal character is written as a code point.

use std::fmt::Write;

use super::{Item, Translator};
use crate::substitute::{Fault, fault};

/// A member of a class.
enum Member {
    Character(char),
    /// Such as `\w`, already translated.
    Set(String),
}

impl Translator<'_> {
    /// After `[`.
    pub(super) fn class(&mut self, place: usize) -> Result<(), Fault> {
        let mut text = String::from("[");
        if self.take('^') {
            text.push('^');
        }
        let mut first = true;
        loop {
            if self.peek().is_none() {
                return fault(place, "unterminated character set");
            }
            if !first && self.take(']') {
                break;
            }
            first = false;
            let start = self.place();
            let low = self.member()?;
            // `a-` at the end of a class is no range.
            let range = self.peek() == Some('-') && self.chars.get(self.at + 1).is_some_and(|(c, _)| *c != ']');
            if !range {
                match low {
                    Member::Character(c) => push(&mut text, c),
                    Member::Set(set) => text.push_str(&set),
                }
                continue;
            }
            self.at += 1;
            let high = self.member()?;
            match (low, high) {
                (Member::Character(low), Member::Character(high)) if low <= high => {
                    push(&mut text, low);
                    text.push('-');
                    push(&mut text, high);
                }
                _ => return fault(start, "bad character range"),
            }
        }
        text.push(']');
        self.emit(&text);
        self.last = Item::Atom;
        Ok(())
    }

    fn member(&mut self) -> Result<Member, Fault> {
        let place = self.place();
        let Some(c) = self.peek() else { return fault(place, "unterminated character set") };
        self.at += 1;
        if c != '\\' {
            return Ok(Member::Character(c));
        }
        match self.peek() {
            Some(c @ ('d' | 'D' | 's' | 'S' | 'w' | 'W')) => {
                self.at += 1;
                Ok(Member::Set(format!("\\{c}")))
            }
            Some('b') => {
                self.at += 1;
                Ok(Member::Character('\x08'))
            }
            Some('1'..='7') => {
                let mut value = 0;
                for _ in 0..3 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.at += 1;
                }
                if value > 0o377 {
                    return fault(place, "an octal escape must be below \\400");
                }
                Ok(Member::Character(char::from_u32(value).unwrap_or_default()))
            }
            _ => Ok(Member::Character(self.character_escape(place)?)),
        }
    }
}

fn push(text: &mut String, c: char) {
    let _ = write!(text, "\\x{{{:x}}}", u32::from(c));
}
