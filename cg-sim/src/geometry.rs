//! The shape of a cache, and the rules that a shape has to keep.
//!
//! A [`Geometry`] can always be simulated: the number of sets and the line size are powers of two. Texts and the order of
//! the checks are those of the reference, since scripts and people know them. Nothing here simulates.

use std::fmt;

/// The smallest line, in bytes: with smaller ones an instruction could touch three lines.
pub const MIN_LINE: u32 = 16;

/// The shape of a cache that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometry {
    size: u32,
    assoc: u32,
    line: u32,
}

/// Numbers that are not the shape of a cache that can be simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Defect {
    /// Lines have no bytes.
    ZeroLine,
    /// Sets have no lines.
    ZeroAssociativity,
    /// The lines do not make up a power of two of sets.
    SetCount,
    /// The line size is not a power of two.
    LineNotPowerOfTwo,
    /// A line is smaller than [`MIN_LINE`].
    LineTooSmall,
    /// There is one line only, or none.
    SizeNotAboveLine,
    /// A set has more lines than the cache.
    Associativity,
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ZeroLine => "Cache line size is zero.",
            Self::ZeroAssociativity => "Cache associativity is zero.",
            Self::SetCount => "Cache set count is not a power of two.",
            Self::LineNotPowerOfTwo => "Cache line size is not a power of two.",
            Self::LineTooSmall => "Cache line size is too small.",
            Self::SizeNotAboveLine => "Cache size <= line size.",
            Self::Associativity => "Cache associativity > (size / line size).",
        })
    }
}

impl std::error::Error for Defect {}

/// Text that is not `size,associativity,line_size`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParseError {
    /// It is not three decimal numbers with commas between them.
    Malformed,
    /// A number has more than 31 bits.
    Overflow,
    /// The numbers are no shape of a cache.
    Defect(Defect),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("not of the form size,associativity,line_size"),
            Self::Overflow => f.write_str("One of the cache parameters was too large and overflowed."),
            Self::Defect(defect) => defect.fmt(f),
        }
    }
}

impl std::error::Error for ParseError {}

impl Geometry {
    /// A cache of `size` bytes in lines of `line` bytes, `assoc` of them a set.
    ///
    /// # Errors
    /// The first rule, in the reference's order, that the numbers break.
    pub fn new(size: i32, assoc: i32, line: i32) -> Result<Self, Defect> {
        if line == 0 {
            return Err(Defect::ZeroLine);
        }
        if assoc == 0 {
            return Err(Defect::ZeroAssociativity);
        }
        // 64 bits, so that nothing overflows; negative numbers fail in the same place as in 32.
        let (size, assoc, line) = (i64::from(size), i64::from(assoc), i64::from(line));
        let set = line * assoc;
        if size % set != 0 || !power_of_two(size / set) {
            return Err(Defect::SetCount);
        }
        if !power_of_two(line) {
            return Err(Defect::LineNotPowerOfTwo);
        }
        if line < i64::from(MIN_LINE) {
            return Err(Defect::LineTooSmall);
        }
        if size <= line {
            return Err(Defect::SizeNotAboveLine);
        }
        if assoc > size / line {
            return Err(Defect::Associativity);
        }
        // All are positive by now.
        Ok(Self { size: size as u32, assoc: assoc as u32, line: line as u32 })
    }

    /// The shape that `text`, `size,associativity,line_size`, describes.
    ///
    /// As in the reference, numbers may have blanks and a sign in front of them, and a missing one is 0.
    ///
    /// # Errors
    /// When it describes none.
    pub fn parse(text: &str) -> Result<Self, ParseError> {
        let mut fields = text.split(',');
        let (Some(size), Some(assoc), Some(line), None) = (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err(ParseError::Malformed);
        };
        let numbers = [number(size), number(assoc), number(line)];
        if numbers.contains(&None) {
            return Err(ParseError::Malformed);
        }
        let narrow = |n: Option<i64>| n.and_then(|n| i32::try_from(n).ok()).ok_or(ParseError::Overflow);
        Self::new(narrow(numbers[0])?, narrow(numbers[1])?, narrow(numbers[2])?).map_err(ParseError::Defect)
    }

    /// The size in bytes.
    #[must_use]
    pub fn size(self) -> u32 {
        self.size
    }

    /// Lines a set.
    #[must_use]
    pub fn assoc(self) -> u32 {
        self.assoc
    }

    /// The size of a line in bytes, a power of two.
    #[must_use]
    pub fn line(self) -> u32 {
        self.line
    }

    /// The number of sets, a power of two.
    #[must_use]
    pub fn sets(self) -> u32 {
        self.size / self.line / self.assoc
    }

    /// How far an address is shifted to become a line's number.
    #[must_use]
    pub fn line_bits(self) -> u32 {
        self.line.trailing_zeros()
    }
}

impl fmt::Display for Geometry {
    /// As the description in a profile: `32768 B, 64 B, 8-way associative`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} B, {} B, ", self.size, self.line)?;
        match self.assoc {
            1 => f.write_str("direct-mapped"),
            n => write!(f, "{n}-way associative"),
        }
    }
}

/// The shapes of the three simulated caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Geometries {
    /// The first-level instruction cache.
    pub i1: Geometry,
    /// The first-level data cache.
    pub d1: Geometry,
    /// The last-level cache.
    pub ll: Geometry,
}

impl Geometries {
    /// The smallest of the three line sizes, in bytes.
    #[must_use]
    pub fn min_line(&self) -> u32 {
        self.i1.line.min(self.d1.line).min(self.ll.line)
    }
}

fn power_of_two(n: i64) -> bool {
    n > 0 && n & (n - 1) == 0
}

/// A decimal number that fills the whole text; 0 for none; the largest or smallest for what 64 bits do not hold.
fn number(text: &str) -> Option<i64> {
    let text = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, digits) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if !digits.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let size = digits.bytes().fold(0i64, |n, b| n.saturating_mul(10).saturating_add(i64::from(b - b'0')));
    Some(if negative { -size } else { size })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_checked_in_the_references_order() {
        // Found by asking Valgrind.
        for (text, error) in [
            ("0,0,0", ParseError::Defect(Defect::ZeroLine)),
            (",,", ParseError::Defect(Defect::ZeroLine)),
            ("32768,0,64", ParseError::Defect(Defect::ZeroAssociativity)),
            ("32768,8,48", ParseError::Defect(Defect::SetCount)),
            ("32768,3,64", ParseError::Defect(Defect::SetCount)),
            ("0,1,64", ParseError::Defect(Defect::SetCount)),
            ("-32768,8,64", ParseError::Defect(Defect::SetCount)),
            ("32768,8,-64", ParseError::Defect(Defect::SetCount)),
            ("64,2,64", ParseError::Defect(Defect::SetCount)),
            ("32768,-8,-64", ParseError::Defect(Defect::LineNotPowerOfTwo)),
            ("98304,8,48", ParseError::Defect(Defect::LineNotPowerOfTwo)),
            ("32768,8,8", ParseError::Defect(Defect::LineTooSmall)),
            ("64,1,64", ParseError::Defect(Defect::SizeNotAboveLine)),
            ("99999999999,8,64", ParseError::Overflow),
            ("99999999999999999999999,8,64", ParseError::Overflow),
            ("2147483648,8,64", ParseError::Overflow),
            ("", ParseError::Malformed),
            ("1,2", ParseError::Malformed),
            ("1,2,x", ParseError::Malformed),
            ("1,2,3,4", ParseError::Malformed),
            ("32768,8,64x", ParseError::Malformed),
            ("32768,8,64 ", ParseError::Malformed),
            ("0x8000,8,64", ParseError::Malformed),
            ("32768,8,é", ParseError::Malformed),
            ("- 1,8,64", ParseError::Malformed),
        ] {
            assert_eq!(Geometry::parse(text), Err(error), "{text:?}");
        }
    }

    #[test]
    fn good_shapes_are_taken() {
        for (text, sets) in [
            ("32768,8,64", 64),
            (" 32768,8,64", 64),
            ("+32768,08,64", 64),
            ("32768,1,16", 2048),
            ("32768,512,64", 1),
            ("49152,12,64", 64),
            ("1073741824,1,16", 1 << 26),
        ] {
            let g = Geometry::parse(text).unwrap();
            assert_eq!(g.sets(), sets, "{text}");
            assert_eq!(g.sets() * g.assoc() * g.line(), g.size());
        }
        let g = Geometry::parse("32768,8,64").unwrap();
        assert_eq!((g.size(), g.assoc(), g.line(), g.line_bits()), (32768, 8, 64, 6));
        assert_eq!(g.to_string(), "32768 B, 64 B, 8-way associative");
        assert_eq!(Geometry::new(16384, 1, 32).unwrap().to_string(), "16384 B, 32 B, direct-mapped");
    }

    #[test]
    fn no_numbers_are_too_strange() {
        let edges = [i32::MIN, -65, -64, -2, -1, 0, 1, 2, 3, 15, 16, 64, 1 << 30, i32::MAX];
        for size in edges {
            for assoc in edges {
                for line in edges {
                    if let Ok(g) = Geometry::new(size, assoc, line) {
                        assert!(g.sets().is_power_of_two() && g.line() >= MIN_LINE);
                    }
                }
            }
        }
    }
}
