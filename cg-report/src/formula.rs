//! Formulas of events: sums and differences of events, each times a number, with parentheses, such as `Ir + 10 Bm`.
//!
//! The page has the same grammar (`web/src/state/formula.ts`) and computes what it shows by itself; here formulas are checked
//! before there is a report, and totals are computed for `--fail-above`. A formula is always a sum of events: what things cost
//! together is then the sum of what each costs.

use std::fmt;

use anyhow::{anyhow, bail};

/// How deep parentheses may be.
const DEEPEST: usize = 100;

/// A formula with its name, as `--event` has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Formula {
    /// What the event is called.
    pub(crate) name: String,
    /// What it is computed by.
    pub(crate) text: String,
}

/// Events, by their places, and what each is multiplied by.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms(pub(crate) Vec<(usize, f64)>);

/// Why a text is no formula.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    text: String,
    /// Where, in bytes of the text.
    at: usize,
    cause: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let before = self.text.get(..self.at).unwrap_or(&self.text).chars().count();
        write!(f, "{}\n  {}\n  {}^", self.cause, self.text, " ".repeat(before))
    }
}

impl Formula {
    /// What `NAME=FORMULA` says.
    ///
    /// # Errors
    /// It has no such form.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, formula) =
            text.split_once('=').ok_or("it must have the form NAME=FORMULA, such as Work='Ir + 10 Bm'")?;
        let (name, formula) = (name.trim(), formula.trim());
        let mut letters = name.bytes();
        let first = letters.next().is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
        if !first || !letters.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_') {
            return Err(format!("`{name}` is no name of an event: it must consist of letters, digits and _"));
        }
        Ok(Self { name: name.to_owned(), text: formula.to_owned() })
    }

    /// What it means, where events have these names; those that have terms are formulas themselves.
    ///
    /// # Errors
    /// It is no formula of these events.
    pub(crate) fn terms(&self, events: &[(String, Terms)]) -> Result<Terms, Fault> {
        let mut reader = Reader { text: &self.text, at: 0, depth: 0, events };
        let fault = |(at, cause): Stop| Fault { text: self.text.clone(), at, cause };
        let value = reader.sum().map_err(fault)?;
        if reader.peek().is_some() {
            return Err(fault((reader.at, "something is too much".to_owned())));
        }
        if value.terms.is_empty() {
            return Err(fault((0, "it has no event".to_owned())));
        }
        if value.terms.iter().any(|(_, factor)| !factor.is_finite()) {
            return Err(fault((0, "a number is too large".to_owned())));
        }
        let terms: Vec<_> = value.terms.into_iter().filter(|(_, factor)| *factor != 0.0).collect();
        if terms.is_empty() {
            return Err(fault((0, "it is always 0".to_owned())));
        }
        Ok(Terms(terms))
    }
}

impl Terms {
    /// What it is where events have these values.
    pub(crate) fn value(&self, of: impl Fn(usize) -> i64) -> f64 {
        self.0.iter().map(|(event, factor)| factor * of(*event) as f64).sum()
    }
}

/// Events of these names and the formulas of them, each of which may name those before it.
///
/// # Errors
/// A formula is none of these events, or has the name of one.
pub(crate) fn known(events: &[String], formulas: &[Formula]) -> anyhow::Result<Vec<(String, Terms)>> {
    let mut known: Vec<(String, Terms)> =
        events.iter().zip(0..).map(|(name, at)| (name.clone(), Terms(vec![(at, 1.0)]))).collect();
    for formula in formulas {
        if known.iter().any(|(name, _)| *name == formula.name) {
            bail!("--event {}: there is an event of this name", formula.name);
        }
        let terms = formula.terms(&known).map_err(|fault| anyhow!("--event {}: {fault}", formula.name))?;
        known.push((formula.name.clone(), terms));
    }
    Ok(known)
}

/// Where reading stopped, and why.
type Stop = (usize, String);

/// A number, or a sum of events.
#[derive(Clone, Debug, Default)]
struct Value {
    constant: f64,
    terms: Vec<(usize, f64)>,
}

impl Value {
    fn scaled(mut self, by: f64) -> Self {
        self.constant *= by;
        self.terms.iter_mut().for_each(|(_, factor)| *factor *= by);
        self
    }

    fn plus(mut self, other: Self, at: usize) -> Result<Self, Stop> {
        if self.terms.is_empty() != other.terms.is_empty() {
            return Err((at, "a number is added to a cost".to_owned()));
        }
        self.constant += other.constant;
        for (event, factor) in other.terms {
            match self.terms.iter_mut().find(|(known, _)| *known == event) {
                Some((_, sum)) => *sum += factor,
                None => self.terms.push((event, factor)),
            }
        }
        Ok(self)
    }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    events: &'a [(String, Terms)],
}

impl Reader<'_> {
    /// The next letter that is no blank.
    fn peek(&mut self) -> Option<char> {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start().len();
        self.text[self.at..].chars().next()
    }

    fn skip(&mut self, wanted: &[char]) -> Option<char> {
        let next = self.peek().filter(|letter| wanted.contains(letter))?;
        self.at += next.len_utf8();
        Some(next)
    }

    fn while_is(&mut self, wanted: impl Fn(char) -> bool) -> &str {
        let rest = &self.text[self.at..];
        let end = rest.find(|letter| !wanted(letter)).unwrap_or(rest.len());
        self.at += end;
        &rest[..end]
    }

    fn sum(&mut self) -> Result<Value, Stop> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((self.at, "too many parentheses".to_owned()));
        }
        let mut value = self.product()?;
        while let Some(sign) = self.skip(&['+', '-', '\u{2212}']) {
            let at = self.at;
            let other = self.product()?;
            value = value.plus(other.scaled(if sign == '+' { 1.0 } else { -1.0 }), at)?;
        }
        self.depth -= 1;
        Ok(value)
    }

    fn product(&mut self) -> Result<Value, Stop> {
        let mut value = self.factor()?;
        loop {
            let sign = self.skip(&['*', '\u{d7}', '/']);
            let more = self.peek().is_some_and(|next| next == '(' || next == '_' || next.is_ascii_alphanumeric());
            if sign.is_none() && !more {
                return Ok(value);
            }
            let at = self.at;
            let other = self.factor()?;
            value = match (sign == Some('/'), value.terms.is_empty(), other.terms.is_empty()) {
                (true, _, false) => return Err((at, "a ratio of events is not a cost".to_owned())),
                (true, ..) if other.constant == 0.0 => return Err((at, "division by 0".to_owned())),
                (true, ..) => value.scaled(1.0 / other.constant),
                (false, false, false) => return Err((at, "a product of events is not a cost".to_owned())),
                (false, true, true) => Value { constant: value.constant * other.constant, terms: Vec::new() },
                (false, true, false) => other.scaled(value.constant),
                (false, false, true) => value.scaled(other.constant),
            };
        }
    }

    fn factor(&mut self) -> Result<Value, Stop> {
        // Signs are counted and not followed, so that many of them need no stack.
        let mut sign = 1.0;
        while self.skip(&['-', '\u{2212}']).is_some() {
            sign = -sign;
        }
        let Some(next) = self.peek() else { return Err((self.text.len(), "something is missing".to_owned())) };
        let at = self.at;
        if next.is_ascii_digit() {
            let digits = self.while_is(|letter| letter.is_ascii_digit() || letter == '.');
            let number: f64 = digits.parse().map_err(|_| (at, format!("`{digits}` is no number")))?;
            return Ok(Value { constant: sign * number, terms: Vec::new() });
        }
        if self.skip(&['(']).is_some() {
            let value = self.sum()?;
            return match self.skip(&[')']) {
                Some(_) => Ok(value.scaled(sign)),
                None => Err((self.at, "a parenthesis is not closed".to_owned())),
            };
        }
        let events = self.events;
        let name = self.while_is(|letter| letter == '_' || letter.is_ascii_alphanumeric());
        if name.is_empty() {
            return Err((at, format!("`{next}` was not expected")));
        }
        match events.iter().find(|(known, _)| known == name) {
            Some((_, terms)) => Ok(Value { constant: 0.0, terms: terms.0.clone() }.scaled(sign)),
            None => {
                let known: Vec<&str> = events.iter().map(|(name, _)| name.as_str()).collect();
                Err((at, format!("there is no event {name}: it has {}", known.join(" "))))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn terms(text: &str) -> Result<Vec<(usize, f64)>, (usize, String)> {
        let events: Vec<(String, Terms)> = ["Ir", "Bm", "LLm"]
            .iter()
            .zip(0..)
            .map(|(name, at)| ((*name).to_owned(), Terms(vec![(at, 1.0)])))
            .collect();
        let formula = Formula { name: "N".into(), text: text.into() };
        formula.terms(&events).map(|terms| terms.0).map_err(|fault| (fault.at, fault.cause))
    }

    #[test]
    fn formulas_are_sums_of_events_times_numbers() {
        assert_eq!(terms("Ir"), Ok(vec![(0, 1.0)]));
        assert_eq!(terms("Ir + 10 Bm + 100*LLm"), Ok(vec![(0, 1.0), (1, 10.0), (2, 100.0)]));
        assert_eq!(terms("2 (Ir - Bm / 4) - -Bm"), Ok(vec![(0, 2.0), (1, 0.5)]));
        assert_eq!(terms("(1+2) Ir 0.5 + Bm - Bm"), Ok(vec![(0, 1.5)]));
        assert_eq!(Terms(vec![(0, 2.0), (1, -0.5)]).value(|event| [10, 4][event]), 18.0);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, at, cause) in [
            ("", 0, "missing"),
            ("Ir +", 4, "missing"),
            ("Ir + Xx", 5, "there is no event Xx: it has Ir Bm LLm"),
            ("Ir / Bm", 5, "ratio"),
            ("Ir Bm", 3, "product"),
            ("Ir / 0", 5, "division by 0"),
            ("Ir + 1", 4, "a number is added"),
            ("3 * 4", 0, "no event"),
            ("Ir - Ir", 0, "always 0"),
            ("(Ir", 3, "not closed"),
            ("Ir)", 2, "too much"),
            ("Ir + é", 5, "not expected"),
            ("1.2.3 Ir", 0, "no number"),
        ] {
            let (place, why) = terms(text).expect_err(text);
            assert!(place == at && why.contains(cause), "{text}: {place} {why}");
        }
        assert!(terms(&"(".repeat(5000)).is_err() && terms(&format!("{}Ir", "-".repeat(5000))).is_ok());
        let formula = Formula { name: "N".into(), text: "é + x".into() };
        assert_eq!(formula.terms(&[]).unwrap_err().to_string(), "`é` was not expected\n  é + x\n  ^");
    }

    #[test]
    fn names_are_names_of_events() {
        assert_eq!(Formula::parse("A_1 = Ir = x"), Ok(Formula { name: "A_1".into(), text: "Ir = x".into() }));
        for wrong in ["Ir", "=Ir", "1a=Ir", "a b=Ir", "é=Ir"] {
            assert!(Formula::parse(wrong).is_err(), "{wrong}");
        }
    }
}
