//! Formulas of events: sums and differences of events, each times a number, with parentheses, such as `Ir + 10 Bm`, and ratios of
//! two such sums, such as `1000 L1m / Ir`.
//!
//! The page has the same grammar (`web/src/state/formula.ts`) and computes what it shows by itself; here formulas are checked
//! before there is a report, and totals are computed for `--fail-above`. What things cost together is the sum of what each costs.
//! That holds for sums of events and not for ratios, of which both sums are added up by themselves and divided last. So nothing is ever
//! added to a ratio.

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
pub(crate) type Sum = Vec<(usize, f64)>;

/// What a formula means.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Terms {
    /// The sum, or of a ratio what is divided.
    over: Sum,
    /// What that is divided by, of a ratio.
    under: Option<Sum>,
}

/// Sums that every report has if it has all events of them, as long as nothing else has their names; the page lists the same
/// (`BUILT_IN` there).
const BUILT_IN: [(&str, &str); 5] = [
    ("L1m", "I1mr + D1mr + D1mw"),
    ("LLm", "ILmr + DLmr + DLmw"),
    ("Bm", "Bcm + Bim"),
    ("CEst", "Ir + 10 (Bcm + Bim) + 10 (I1mr + D1mr + D1mw) + 100 (ILmr + DLmr + DLmw)"),
    ("CEst", "Ir + 10 (I1mr + D1mr + D1mw) + 100 (ILmr + DLmr + DLmw)"),
];

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
        let settle = |sum| settled(sum).map_err(|cause| fault((0, cause)));
        Ok(Terms { over: settle(value.terms)?, under: value.under.map(settle).transpose()? })
    }
}

/// A sum without what is multiplied by 0.
fn settled(terms: Sum) -> Result<Sum, String> {
    if terms.iter().any(|(_, factor)| !factor.is_finite()) {
        return Err("a number is too large".to_owned());
    }
    let terms: Sum = terms.into_iter().filter(|(_, factor)| *factor != 0.0).collect();
    if terms.is_empty() { Err("it is always 0".to_owned()) } else { Ok(terms) }
}

impl Terms {
    /// That of one event.
    fn one(event: usize) -> Self {
        Self { over: vec![(event, 1.0)], under: None }
    }

    /// Whether it is a ratio, which no whole has as the sum of its parts.
    pub(crate) fn is_ratio(&self) -> bool {
        self.under.is_some()
    }

    /// What it is where events have these values; nothing if it is divided by 0.
    pub(crate) fn value(&self, of: impl Fn(usize) -> i64) -> Option<f64> {
        let sum = |terms: &Sum| terms.iter().map(|(event, factor)| factor * of(*event) as f64).sum::<f64>();
        let under = self.under.as_ref().map_or(1.0, &sum);
        (under != 0.0).then(|| sum(&self.over) / under)
    }
}

/// Events of these names, the formulas of them, each of which may name those before it, and the sums that are built in.
///
/// # Errors
/// A formula is none of these events, or has the name of one.
pub(crate) fn known(events: &[String], formulas: &[Formula]) -> anyhow::Result<Vec<(String, Terms)>> {
    let mut known: Vec<(String, Terms)> =
        events.iter().zip(0..).map(|(name, at)| (name.clone(), Terms::one(at))).collect();
    for formula in formulas {
        if known.iter().any(|(name, _)| *name == formula.name) {
            bail!("--event {}: there is an event of this name", formula.name);
        }
        let mut all = known.clone();
        add_built_in(&mut all);
        let terms = formula.terms(&all).map_err(|fault| anyhow!("--event {}: {fault}", formula.name))?;
        known.push((formula.name.clone(), terms));
    }
    add_built_in(&mut known);
    Ok(known)
}

/// Adds the sums that are built in, where there are all events of them.
fn add_built_in(known: &mut Vec<(String, Terms)>) {
    for (name, text) in BUILT_IN {
        if known.iter().all(|(known, _)| known != name) {
            let formula = Formula { name: name.to_owned(), text: text.to_owned() };
            known.extend(formula.terms(known).ok().map(|terms| (formula.name, terms)));
        }
    }
}

/// Where reading stopped, and why.
type Stop = (usize, String);

/// A number, a sum of events, or a ratio of two.
#[derive(Clone, Debug, Default)]
struct Value {
    constant: f64,
    terms: Sum,
    under: Option<Sum>,
}

impl Value {
    fn scaled(mut self, by: f64) -> Self {
        self.constant *= by;
        self.terms.iter_mut().for_each(|(_, factor)| *factor *= by);
        self
    }

    fn plus(mut self, other: Self, at: usize) -> Result<Self, Stop> {
        if self.under.is_some() || other.under.is_some() {
            return Err((at, "nothing can be added to a ratio: its sums are added up by themselves".to_owned()));
        }
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
                (true, true, false) => return Err((at, "a number is divided by a cost".to_owned())),
                (true, false, false) if value.under.is_some() || other.under.is_some() => {
                    return Err((at, "a ratio is divided, or divided by".to_owned()));
                }
                (true, false, false) => Value { under: Some(other.terms), ..value },
                (true, ..) if other.constant == 0.0 => return Err((at, "division by 0".to_owned())),
                (true, ..) => value.scaled(1.0 / other.constant),
                (false, false, false) => return Err((at, "a product of events is not a cost".to_owned())),
                (false, true, true) => Value { constant: value.constant * other.constant, ..Value::default() },
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
            return Ok(Value { constant: sign * number, ..Value::default() });
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
            Some((_, terms)) => {
                Ok(Value { constant: 0.0, terms: terms.over.clone(), under: terms.under.clone() }.scaled(sign))
            }
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

    fn formula(text: &str) -> Formula {
        Formula { name: "N".into(), text: text.into() }
    }

    fn ratio(text: &str) -> Result<(Sum, Option<Sum>), (usize, String)> {
        let events: Vec<(String, Terms)> =
            ["Ir", "Bm", "LLm"].iter().zip(0..).map(|(name, at)| ((*name).to_owned(), Terms::one(at))).collect();
        let terms = formula(text).terms(&events).map_err(|fault| (fault.at, fault.cause));
        terms.map(|terms| (terms.over, terms.under))
    }

    fn terms(text: &str) -> Result<Sum, (usize, String)> {
        ratio(text).map(|(over, under)| {
            assert_eq!(under, None, "{text}");
            over
        })
    }

    #[test]
    fn formulas_are_sums_of_events_times_numbers() {
        assert_eq!(terms("Ir"), Ok(vec![(0, 1.0)]));
        assert_eq!(terms("Ir + 10 Bm + 100*LLm"), Ok(vec![(0, 1.0), (1, 10.0), (2, 100.0)]));
        assert_eq!(terms("2 (Ir - Bm / 4) - -Bm"), Ok(vec![(0, 2.0), (1, 0.5)]));
        assert_eq!(terms("(1+2) Ir 0.5 + Bm - Bm"), Ok(vec![(0, 1.5)]));
        let sum = Terms { over: vec![(0, 2.0), (1, -0.5)], under: None };
        assert_eq!((sum.value(|event| [10, 4][event]), sum.is_ratio()), (Some(18.0), false));
    }

    #[test]
    fn ratios_are_two_sums_that_are_divided_last() {
        assert_eq!(ratio("1000 Bm / Ir"), Ok((vec![(1, 1000.0)], Some(vec![(0, 1.0)]))));
        assert_eq!(ratio("100 ((Bm + LLm) / (2 Ir)) / 4"), Ok((vec![(1, 25.0), (2, 25.0)], Some(vec![(0, 2.0)]))));
        assert_eq!(ratio("-(Bm / Ir)"), Ok((vec![(1, -1.0)], Some(vec![(0, 1.0)]))));
        let share = Terms { over: vec![(1, 100.0)], under: Some(vec![(0, 1.0)]) };
        assert_eq!((share.value(|event| [8, 2][event]), share.value(|event| [0, 2][event])), (Some(25.0), None));
    }

    #[test]
    fn formulas_may_name_earlier_ones_and_sums_that_are_built_in() {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let events = names(&["Ir", "I1mr", "D1mr", "D1mw"]);
        let texts = [("Twice", "2 L1m"), ("Rate", "Twice / Ir"), ("PerK", "1000 Rate")];
        let formulas = texts.map(|(name, text)| Formula { name: name.into(), text: text.into() });
        let known = known(&events, &formulas).unwrap();
        assert_eq!(
            known.iter().map(|(name, _)| name.as_str()).skip(4).collect::<Vec<_>>(),
            ["Twice", "Rate", "PerK", "L1m"]
        );
        let value =
            |name: &str| known.iter().find(|(known, _)| known == name).unwrap().1.value(|event| [1000, 1, 2, 3][event]);
        assert_eq!([value("L1m"), value("Twice"), value("Rate"), value("PerK")], [6.0, 12.0, 0.012, 12.0].map(Some));
        // Whoever has another meaning for a name is believed.
        let own = super::known(&events, &[Formula { name: "L1m".into(), text: "D1mr".into() }]).unwrap();
        assert_eq!((own.len(), &own[4].1.over), (5, &vec![(2, 1.0)]));
    }

    #[test]
    fn what_is_wrong_is_told_with_its_place() {
        for (text, at, cause) in [
            ("", 0, "missing"),
            ("Ir +", 4, "missing"),
            ("Ir + Xx", 5, "there is no event Xx: it has Ir Bm LLm"),
            ("1 / Bm", 4, "a number is divided by a cost"),
            ("Ir / Bm / LLm", 10, "a ratio is divided"),
            ("Ir + Bm / LLm", 4, "added to a ratio"),
            ("Ir / Bm - Ir / LLm", 9, "added to a ratio"),
            ("(Ir / Bm) LLm", 10, "product"),
            ("Ir / (Bm - Bm)", 0, "always 0"),
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
        assert_eq!(formula("é + x").terms(&[]).unwrap_err().to_string(), "`é` was not expected\n  é + x\n  ^");
    }

    #[test]
    fn names_are_names_of_events() {
        assert_eq!(Formula::parse("A_1 = Ir = x"), Ok(Formula { name: "A_1".into(), text: "Ir = x".into() }));
        for wrong in ["Ir", "=Ir", "1a=Ir", "a b=Ir", "é=Ir"] {
            assert!(Formula::parse(wrong).is_err(), "{wrong}");
        }
    }
}
