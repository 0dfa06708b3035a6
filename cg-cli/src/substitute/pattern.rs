//! Translates a regular expression from Python's dialect into fancy-regex's.
//!
//! Every construct is understood here before it is handed on, so that nothing means one thing there and another here:
//! braces that are no repetition, brackets inside classes, octal escapes, `\Z`, comments. What is not understood is
//! refused at its character. The places of the output are remembered, to report what fancy-regex itself refuses.

use std::fmt::Write;

use super::{Fault, Placed, fault};

mod class;

/// A translated expression.
#[derive(Debug)]
pub(super) struct Translated {
    /// The expression for fancy-regex.
    pub(super) text: String,
    /// Names of the groups, from group 1.
    pub(super) groups: Vec<Option<String>>,
    /// From which place of `text` on the characters stem from which place of the argument.
    places: Vec<(usize, usize)>,
}

impl Translated {
    /// The place in the argument of an error of fancy-regex.
    pub(super) fn place_of(&self, error: &fancy_regex::Error) -> usize {
        let offset = match error {
            fancy_regex::Error::ParseError(offset, _) => *offset,
            _ => 0,
        };
        let before = self.places.partition_point(|(out, _)| *out <= offset);
        self.places[before.saturating_sub(1)].1
    }
}

/// Translates `chars`; `end` is the place in the argument after them.
pub(super) fn translate(chars: &[Placed], end: usize) -> Result<Translated, Fault> {
    let mut translator = Translator {
        chars,
        end,
        at: 0,
        out: Translated { text: String::new(), groups: Vec::new(), places: Vec::new() },
        open: Vec::new(),
        closed: Vec::new(),
        conditions: Vec::new(),
        last: Item::Nothing,
        look_around: None,
        verbose: false,
    };
    translator.all()?;
    Ok(translator.out)
}

/// What a repetition would apply to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Item {
    Nothing,
    Atom,
    Repeated,
}

struct Open {
    place: usize,
    /// The number of the group, if it captures.
    group: Option<usize>,
    /// Whether blanks counted outside.
    verbose: bool,
    /// The condition group `(?(1)a|b)`: alternatives seen, or none if it is no condition.
    alternatives: Option<usize>,
    /// Where a look-around begins in the output.
    look_around: Option<usize>,
}

struct Translator<'a> {
    chars: &'a [Placed],
    end: usize,
    at: usize,
    out: Translated,
    open: Vec<Open>,
    /// For each group whether it is closed, so that it may be referred to.
    closed: Vec<bool>,
    /// Groups that conditions ask for, and where.
    conditions: Vec<(usize, usize)>,
    last: Item,
    /// Where the last item begins in the output, if it is a look-around.
    look_around: Option<usize>,
    verbose: bool,
}

impl Translator<'_> {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).map(|(c, _)| *c)
    }

    fn place(&self) -> usize {
        self.chars.get(self.at).map_or(self.end, |(_, place)| *place)
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn take_all(&mut self, wanted: &str) -> bool {
        let found = wanted.chars().enumerate().all(|(i, c)| self.chars.get(self.at + i).is_some_and(|(d, _)| *d == c));
        self.at += if found { wanted.len() } else { 0 };
        found
    }

    fn emit(&mut self, text: &str) {
        self.out.text.push_str(text);
    }

    fn emit_literal(&mut self, c: char) {
        if c.is_ascii_alphanumeric() || c == '_' || c == '/' || !c.is_ascii() {
            self.out.text.push(c);
        } else {
            let _ = write!(self.out.text, "\\x{{{:x}}}", u32::from(c));
        }
    }

    fn atom(&mut self, text: &str) {
        self.emit(text);
        self.last = Item::Atom;
    }

    fn all(&mut self) -> Result<(), Fault> {
        self.out.places.push((0, self.place()));
        while let Some((c, place)) = self.chars.get(self.at).copied() {
            self.out.places.push((self.out.text.len(), place));
            self.at += 1;
            if !matches!(c, '*' | '+' | '?' | '{') && !(self.verbose && (c.is_ascii_whitespace() || c == '#')) {
                self.look_around = None;
            }
            match c {
                '\\' => self.escape(place)?,
                '[' => self.class(place)?,
                '(' => self.group(place)?,
                ')' => self.close(place)?,
                '|' => self.alternative(place)?,
                '*' => self.repeat(place, "*")?,
                '+' => self.repeat(place, "+")?,
                '?' => self.repeat(place, "?")?,
                '{' => self.brace(place)?,
                '^' | '$' => {
                    self.out.text.push(c);
                    self.last = Item::Nothing;
                }
                '.' => self.atom("."),
                ' ' | '\t' | '\n' | '\r' | '\x0b' | '\x0c' if self.verbose => {}
                '#' if self.verbose => {
                    while self.peek().is_some_and(|c| c != '\n') {
                        self.at += 1;
                    }
                }
                c => {
                    self.emit_literal(c);
                    self.last = Item::Atom;
                }
            }
        }
        if let Some((number, at)) = self.conditions.iter().find(|(number, _)| *number > self.out.groups.len()) {
            return fault(*at, format!("invalid group reference {number}"));
        }
        match self.open.last() {
            Some(open) => fault(open.place, "missing ), unterminated group"),
            None => Ok(()),
        }
    }

    fn alternative(&mut self, place: usize) -> Result<(), Fault> {
        if let Some(Open { alternatives: Some(count), .. }) = self.open.last_mut() {
            *count += 1;
            if *count > 1 {
                return fault(place, "a condition has at most two branches");
            }
        }
        self.emit("|");
        self.last = Item::Nothing;
        Ok(())
    }

    /// A repetition whose sign was taken; `text` is its translation.
    fn repeat(&mut self, place: usize, text: &str) -> Result<(), Fault> {
        match self.last {
            Item::Nothing => return fault(place, "nothing to repeat"),
            Item::Repeated => return fault(place, "multiple repeat"),
            Item::Atom => {}
        }
        if let Some(start) = self.look_around.take() {
            // fancy-regex refuses to repeat a look-around. It takes no room, so once is as good as often, and if it
            // need not hold at all, it is an alternative to nothing.
            let (lazy, _) = (self.take('?'), self.take('+'));
            if text == "*" || text == "?" || text.starts_with("{0,") {
                self.out.text.insert_str(start, if lazy { "(?:|" } else { "(?:" });
                self.emit(if lazy { ")" } else { "|)" });
            }
            self.last = Item::Repeated;
            return Ok(());
        }
        self.emit(text);
        if self.take('?') {
            self.emit("?");
        } else if self.take('+') {
            self.emit("+");
        }
        self.last = Item::Repeated;
        Ok(())
    }

    /// After `{`: a repetition, or a brace that means itself.
    fn brace(&mut self, place: usize) -> Result<(), Fault> {
        let start = self.at;
        let low = self.number();
        let comma = self.take(',');
        let high = if comma { self.number() } else { low.clone() };
        let closed = self.take('}');
        if !closed || (low.is_empty() && !comma) {
            self.at = start;
            self.look_around = None;
            self.atom("\\{");
            return Ok(());
        }
        let bound = |text: &str| text.parse::<u32>().ok();
        let least = if low.is_empty() { Some(0) } else { bound(&low) };
        let most = if high.is_empty() { Some(u32::MAX) } else { bound(&high) };
        let (Some(least), Some(most)) = (least, most) else {
            return fault(place, "the repetition number is too large");
        };
        if least > most {
            return fault(place, "min repeat greater than max repeat");
        }
        let text = if high.is_empty() { format!("{{{least},}}") } else { format!("{{{least},{most}}}") };
        // A repetition of a repetition `a{2}{3}` is refused by Python as well.
        self.repeat(place, &text)
    }

    fn number(&mut self) -> String {
        let mut digits = String::new();
        while let Some(c) = self.peek().filter(char::is_ascii_digit) {
            digits.push(c);
            self.at += 1;
        }
        digits
    }

    /// After a backslash, outside a class.
    fn escape(&mut self, place: usize) -> Result<(), Fault> {
        let Some(c) = self.peek() else { return fault(place, "the expression ends with a backslash") };
        self.at += 1;
        match c {
            'A' | 'b' | 'B' => {
                self.emit(&format!("\\{c}"));
                self.last = Item::Nothing;
            }
            'Z' => {
                self.emit("\\z");
                self.last = Item::Nothing;
            }
            'd' | 'D' | 's' | 'S' | 'w' | 'W' => self.atom(&format!("\\{c}")),
            '1'..='9' => self.reference(c, place)?,
            _ => {
                self.at -= 1;
                let c = self.character_escape(place)?;
                self.emit_literal(c);
                self.last = Item::Atom;
            }
        }
        Ok(())
    }

    /// `\12`: a reference to a group, or three octal digits.
    fn reference(&mut self, first: char, place: usize) -> Result<(), Fault> {
        let octal = |c: Option<&Placed>| c.and_then(|(c, _)| c.to_digit(8));
        let mut number = first.to_digit(10).unwrap_or_default();
        if let (Some(a), Some(b), Some(c)) =
            (first.to_digit(8), octal(self.chars.get(self.at)), octal(self.chars.get(self.at + 1)))
        {
            let value = (a * 8 + b) * 8 + c;
            if value > 0o377 {
                return fault(place, "an octal escape must be below \\400");
            }
            self.at += 2;
            self.emit_literal(char::from_u32(value).unwrap_or_default());
            self.last = Item::Atom;
            return Ok(());
        }
        if let Some(digit) = self.peek().and_then(|c| c.to_digit(10)) {
            number = number * 10 + digit;
            self.at += 1;
        }
        match self.closed.get(number as usize - 1) {
            None => fault(place + 1, format!("invalid group reference {number}")),
            Some(false) => fault(place + 1, "cannot refer to an open group"),
            Some(true) => {
                self.atom(&format!("(?:\\{number})"));
                Ok(())
            }
        }
    }

    /// After a backslash, an escape that stands for one character; the same inside and outside classes.
    fn character_escape(&mut self, place: usize) -> Result<char, Fault> {
        let Some(c) = self.peek() else { return fault(place, "the expression ends with a backslash") };
        self.at += 1;
        let hexadecimal = |translator: &mut Self, count: usize| {
            let mut value = 0;
            for _ in 0..count {
                let Some(digit) = translator.peek().and_then(|c| c.to_digit(16)) else {
                    return fault(place, format!("incomplete escape \\{c}: {count} hexadecimal digits are needed"));
                };
                value = value * 16 + digit;
                translator.at += 1;
            }
            char::from_u32(value).map_or_else(|| fault(place, "the escape is no character"), Ok)
        };
        Ok(match c {
            'a' => '\x07',
            'f' => '\x0c',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\x0b',
            'x' => hexadecimal(self, 2)?,
            'u' => hexadecimal(self, 4)?,
            'U' => hexadecimal(self, 8)?,
            '0' => {
                let mut value = 0;
                for _ in 0..2 {
                    let Some(digit) = self.peek().and_then(|c| c.to_digit(8)) else { break };
                    value = value * 8 + digit;
                    self.at += 1;
                }
                char::from_u32(value).unwrap_or_default()
            }
            c if c.is_ascii_alphanumeric() => return fault(place, format!("bad escape \\{c}")),
            c => c,
        })
    }

    /// After `(`.
    fn group(&mut self, place: usize) -> Result<(), Fault> {
        let mut open = Open { place, group: None, verbose: self.verbose, alternatives: None, look_around: None };
        if !self.take('?') {
            open.group = Some(self.new_group(None));
            self.emit("(");
        } else if self.take('#') {
            while !self.take(')') {
                if self.peek().is_none() {
                    return fault(place, "missing ), unterminated comment");
                }
                self.at += 1;
            }
            return Ok(());
        } else if self.take_all("P<") {
            let name = self.name('>')?;
            if self.out.groups.iter().any(|group| group.as_deref() == Some(&name)) {
                return fault(place, format!("group name `{name}` is used twice"));
            }
            self.emit("(");
            open.group = Some(self.new_group(Some(name)));
        } else if self.take_all("P=") {
            let at = self.place();
            let name = self.name(')')?;
            let number = self.named(&name, at)?;
            if !self.closed[number - 1] {
                return fault(at, "cannot refer to an open group");
            }
            self.atom(&format!("(?:\\{number})"));
            return Ok(());
        } else if self.take('(') {
            let at = self.place();
            let name = self.name(')')?;
            let number = match name.parse::<usize>() {
                // A group that comes later is allowed; whether it comes is known at the end.
                Ok(number @ 1..100) => {
                    self.conditions.push((number, at));
                    number
                }
                Ok(number) => return fault(at, format!("invalid group reference {number}")),
                Err(_) => self.named(&name, at)?,
            };
            self.emit(&format!("(?({number})"));
            open.alternatives = Some(0);
        } else if let Some(start) = ["<=", "<!", "=", "!", ":", ">"].into_iter().find(|start| self.take_all(start)) {
            if start != ":" && start != ">" {
                open.look_around = Some(self.out.text.len());
            }
            self.emit(&format!("(?{start}"));
        } else if !self.flags(place)? {
            return Ok(());
        }
        self.open.push(open);
        self.last = Item::Nothing;
        Ok(())
    }

    /// `(?i:` or `(?i)`; whether a group was opened.
    fn flags(&mut self, place: usize) -> Result<bool, Fault> {
        let (mut on, mut off) = (String::new(), String::new());
        let mut minus = false;
        let mut verbose = self.verbose;
        loop {
            let at = self.place();
            let Some(c) = self.peek() else { return fault(at, "missing ), unterminated group") };
            self.at += 1;
            match c {
                // Blanks are left out here, so that fancy-regex need not know; `u` is how it always is.
                'x' => verbose = !minus,
                'u' if !minus => {}
                'i' | 'm' | 's' => if minus { &mut off } else { &mut on }.push(c),
                'a' | 'L' => return fault(at, format!("flag `{c}` is not supported: names are Unicode")),
                '-' if !minus => minus = true,
                ':' => break,
                ')' if !minus && at > place + 2 => {
                    if self.chars.first().is_none_or(|(_, first)| *first != place) {
                        return fault(place, "global flags not at the start of the expression");
                    }
                    self.verbose = verbose;
                    if !on.is_empty() {
                        self.emit(&format!("(?{on})"));
                    }
                    return Ok(false);
                }
                c => return fault(place + 1, format!("unknown extension ?{c}")),
            }
        }
        if let Some(both) = on.chars().find(|c| off.contains(*c)) {
            return fault(place, format!("flag `{both}` is turned on and off"));
        }
        let off = if off.is_empty() { String::new() } else { format!("-{off}") };
        self.emit(&format!("(?{on}{off}:"));
        self.verbose = verbose;
        Ok(true)
    }

    fn close(&mut self, place: usize) -> Result<(), Fault> {
        let Some(open) = self.open.pop() else { return fault(place, "unbalanced parenthesis") };
        if let Some(group) = open.group {
            self.closed[group - 1] = true;
        }
        self.verbose = open.verbose;
        self.atom(")");
        self.look_around = open.look_around;
        Ok(())
    }

    fn new_group(&mut self, name: Option<String>) -> usize {
        self.out.groups.push(name);
        self.closed.push(false);
        self.out.groups.len()
    }

    /// A name that ends with `end`.
    fn name(&mut self, end: char) -> Result<String, Fault> {
        let start = self.place();
        let mut name = String::new();
        loop {
            let Some(c) = self.peek() else { return fault(start, format!("missing {end}, unterminated name")) };
            self.at += 1;
            if c == end {
                break;
            }
            name.push(c);
        }
        let word = |c: char| c.is_alphanumeric() || c == '_';
        if name.is_empty() {
            return fault(start, "missing group name");
        }
        let number = name.bytes().all(|byte| byte.is_ascii_digit());
        if !name.chars().all(word) || (name.starts_with(|c: char| c.is_numeric()) && (!number || end == '>')) {
            return fault(start, format!("bad character in group name `{name}`"));
        }
        Ok(name)
    }

    fn named(&self, name: &str, place: usize) -> Result<usize, Fault> {
        match self.out.groups.iter().position(|group| group.as_deref() == Some(name)) {
            Some(index) => Ok(index + 1),
            None => fault(place, format!("unknown group name `{name}`")),
        }
    }
}
