//! Which line of a set goes when another one comes: the names of the policies, what each does, and which caches can have it.
//!
//! The names are those of uops.info and nanoBench where these have one. Nothing here simulates; [`crate::cache`] does.
//!
//! Sources of the rules:
//! - `plru`, `lru3plru4`, `nru` and `qlru`: A. Abel, J. Reineke, "nanoBench: A Low-Overhead Tool for Running Microbenchmarks
//!   on x86 Systems" (arXiv 1911.03282), and <https://uops.info/cache.html>;
//! - `nru`, `srrip`, `brrip` and `drrip`: A. Jaleel and others, "High Performance Cache Replacement Using Re-Reference
//!   Interval Prediction (RRIP)", ISCA 2010; which sets duel: M. Qureshi and others, "Adaptive Insertion Policies for High
//!   Performance Caching", ISCA 2007.

use std::fmt;

use crate::geometry::{Geometry, ParseError};

/// The most lines a set that have a tree of bits.
const MOST_LEAVES: u32 = 64;

/// Lines a set under [`Policy::Lru3Plru4`].
const TREES_OF_FOUR: u32 = 12;

/// Which line of a full set is replaced. Under each of them ways without a line are filled first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// The one that was used longest ago.
    #[default]
    Lru,
    /// The one that a binary tree of bits leads to; each use turns the bits above the line away from it.
    Plru,
    /// Of three trees over four lines each that which was used longest ago, and in it the line that its bits lead to.
    Lru3Plru4,
    /// The one that was loaded longest ago.
    Fifo,
    /// Any, by a generator with this seed.
    Random(u32),
    /// The first one whose bit says that it was not used; a use sets its bit, and if a miss finds all set, it clears them.
    Nru,
    /// The first one whose next use is predicted for the distant future (3): a line that is loaded has 2, one that is hit 0, and
    /// where none has 3, all grow older together.
    Srrip,
    /// As [`Policy::Srrip`], but lines are loaded with 3, all but each thirty-second.
    Brrip,
    /// The better one of these two: up to 32 sets always follow the first and as many the second, and a counter of 10 bits
    /// knows which of the two kinds has missed more.
    Drrip,
    /// Ages of two bits, with the rules that the name says.
    Qlru(Qlru),
}

/// The rules of a policy of the family QLRU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qlru {
    /// The age of a line that is hit: of one whose age was 3, and of one whose age was 2. All others have 0 then.
    pub hit: [u8; 2],
    /// The age of a line that is loaded.
    pub loaded: u8,
    /// Which line is replaced: 0 and 2: the first of age 3; 1: the same, or the first line if none has that age. With 2 the last
    /// of the empty ways is filled first.
    pub replaced: u8,
    /// How ages grow if none is 3 behind an access: 0: all, until one is; 1: the same, but for the line that was accessed; 2: all
    /// by one; 3: the same, but for that line.
    pub grows: u8,
    /// Ages only grow in front of a replacement.
    pub on_miss: bool,
}

/// The fixed part of the names of policies, for messages.
pub const NAMES: &str = "lru, plru, lru3plru4, fifo, random[:SEED], nru, srrip, brrip, drrip, qlru:H11_M1_R0_U0";

/// Text that is no policy, or one that a cache cannot have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PolicyError {
    /// There is none of this name.
    Unknown(String),
    /// The rules that follow `qlru:` are not known, or leave it open what is replaced.
    Rules(String),
    /// The seed is no number of 32 bits.
    Seed(String),
    /// A tree of bits has a power of two of leaves.
    Tree(u32),
    /// Three trees of four lines.
    Trees(u32),
    /// Sets duel, and there is one only.
    OneSet,
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unknown(name) => write!(f, "there is no policy '{name}', only {NAMES}"),
            Self::Rules(rules) => write!(
                f,
                "there are no rules '{rules}' of qlru: they are H00, H10, H11, H20 or H21, then M0 to M3, R0 to R2, U0 to U3 \
                 (U2 and U3 with R1 only), and _UMO where ages grow on misses only"
            ),
            Self::Seed(seed) => write!(f, "the seed '{seed}' of random is no number of 32 bits"),
            Self::Tree(ways) => {
                write!(f, "plru needs a power of two of lines a set, at most {MOST_LEAVES}, and there are {ways}")
            }
            Self::Trees(ways) => write!(f, "lru3plru4 needs {TREES_OF_FOUR} lines a set, and there are {ways}"),
            Self::OneSet => f.write_str("drrip needs more than one set"),
        }
    }
}

impl std::error::Error for PolicyError {}

impl Policy {
    /// The policy of this name.
    ///
    /// # Errors
    /// When there is none.
    pub fn parse(text: &str) -> Result<Self, PolicyError> {
        let (name, rest) = text.split_once(':').map_or((text, None), |(name, rest)| (name, Some(rest)));
        let policy = match (name, rest) {
            ("lru", None) => Self::Lru,
            ("plru", None) => Self::Plru,
            ("lru3plru4", None) => Self::Lru3Plru4,
            ("fifo", None) => Self::Fifo,
            ("random", None) => Self::Random(0),
            ("random", Some(seed)) => {
                let digits = !seed.is_empty() && seed.bytes().all(|b| b.is_ascii_digit());
                Self::Random(seed.parse().ok().filter(|_| digits).ok_or_else(|| PolicyError::Seed(seed.to_owned()))?)
            }
            ("nru", None) => Self::Nru,
            ("srrip", None) => Self::Srrip,
            ("brrip", None) => Self::Brrip,
            ("drrip", None) => Self::Drrip,
            ("qlru", Some(rules)) => {
                Self::Qlru(Qlru::parse(rules).ok_or_else(|| PolicyError::Rules(rules.to_owned()))?)
            }
            _ => return Err(PolicyError::Unknown(text.to_owned())),
        };
        Ok(policy)
    }

    /// Whether a cache of this shape can have it.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn fits(self, shape: Geometry) -> Result<(), PolicyError> {
        let ways = shape.assoc();
        match self {
            Self::Plru if !ways.is_power_of_two() || ways > MOST_LEAVES => Err(PolicyError::Tree(ways)),
            Self::Lru3Plru4 if ways != TREES_OF_FOUR => Err(PolicyError::Trees(ways)),
            Self::Drrip if shape.sets() < 2 => Err(PolicyError::OneSet),
            _ => Ok(()),
        }
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Lru => "lru",
            Self::Plru => "plru",
            Self::Lru3Plru4 => "lru3plru4",
            Self::Fifo => "fifo",
            Self::Random(seed) => return write!(f, "random:{seed}"),
            Self::Nru => "nru",
            Self::Srrip => "srrip",
            Self::Brrip => "brrip",
            Self::Drrip => "drrip",
            Self::Qlru(Qlru { hit: [three, two], loaded, replaced, grows, on_miss }) => {
                let end = if *on_miss { "_UMO" } else { "" };
                return write!(f, "qlru:H{three}{two}_M{loaded}_R{replaced}_U{grows}{end}");
            }
        })
    }
}

impl Qlru {
    fn parse(rules: &str) -> Option<Self> {
        let (rules, on_miss) = rules.strip_suffix("_UMO").map_or((rules, false), |rules| (rules, true));
        let mut parts = rules.split('_');
        let mut part = |letter: char, most: u8| {
            let digits = parts.next()?.strip_prefix(letter)?.as_bytes();
            digits.iter().all(|d| d.is_ascii_digit() && *d - b'0' <= most).then(|| digits.to_vec())
        };
        let one = |digits: Vec<u8>| <[u8; 1]>::try_from(digits).ok().map(|[d]| d - b'0');
        let hit = <[u8; 2]>::try_from(part('H', 2)?).ok()?.map(|d| d - b'0');
        let qlru = Self {
            hit,
            loaded: one(part('M', 3)?)?,
            replaced: one(part('R', 2)?)?,
            grows: one(part('U', 3)?)?,
            on_miss,
        };
        // A line does not grow older by being hit. And growing by one may leave none of age 3, where it must not.
        let good = qlru.hit[1] <= qlru.hit[0].min(1) && (qlru.grows < 2 || qlru.replaced == 1);
        (good && parts.next().is_none()).then_some(qlru)
    }
}

/// The shape of a cache with its policy, `size,associativity,line_size[,policy]`.
///
/// # Errors
/// When the text is not of that form, or the cache cannot have the policy.
pub fn parse_shape(text: &str) -> Result<(Geometry, Policy), ShapeError> {
    let (shape, policy) = match text.match_indices(',').nth(2) {
        Some((at, _)) => (&text[..at], Some(&text[at + 1..])),
        None => (text, None),
    };
    let shape = Geometry::parse(shape).map_err(ShapeError::Numbers)?;
    let policy = policy.map_or(Ok(Policy::Lru), Policy::parse).map_err(ShapeError::Policy)?;
    policy.fits(shape).map_err(ShapeError::Policy)?;
    Ok((shape, policy))
}

/// Text that is not `size,associativity,line_size[,policy]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ShapeError {
    /// The numbers are wrong.
    Numbers(ParseError),
    /// The policy is.
    Policy(PolicyError),
}

impl fmt::Display for ShapeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Numbers(e) => e.fmt(f),
            Self::Policy(e) => e.fmt(f),
        }
    }
}

impl std::error::Error for ShapeError {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_written() {
        for name in [
            "lru",
            "plru",
            "lru3plru4",
            "fifo",
            "random:0",
            "random:4294967295",
            "nru",
            "srrip",
            "brrip",
            "drrip",
            "qlru:H11_M1_R0_U0",
            "qlru:H00_M3_R2_U1",
            "qlru:H21_M2_R1_U3_UMO",
        ] {
            assert_eq!(Policy::parse(name).map(|p| p.to_string()), Ok(name.to_owned()));
        }
        assert_eq!(Policy::parse("random"), Ok(Policy::Random(0)));
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        for name in ["", "LRU", "lru:1", "mru", "qlru", "plru ", ":", "é"] {
            assert_eq!(Policy::parse(name), Err(PolicyError::Unknown(name.to_owned())));
        }
        for seed in ["", "x", "+1", "-1", "4294967296", "1:2"] {
            assert_eq!(Policy::parse(&format!("random:{seed}")), Err(PolicyError::Seed(seed.to_owned())));
        }
        for rules in [
            "",
            "H11",
            "H11_M1_R0",
            "H12_M1_R0_U0",
            "H01_M1_R0_U0",
            "H22_M1_R0_U0",
            "H11_M4_R0_U0",
            "H11_M1_R3_U0",
            "H11_M1_R0_U2",
            "H11_M1_R2_U3",
            "H11_M1_R0_U4",
            "H11_M1_R0_U0_X",
            "H11_M1_R0_U0_UMO_UMO",
            "H1_M1_R0_U0",
            "H11_M_R0_U0",
            "H11_M11_R0_U0",
            "h11_m1_r0_u0",
            "é",
        ] {
            assert_eq!(Policy::parse(&format!("qlru:{rules}")), Err(PolicyError::Rules(rules.to_owned())));
        }
    }

    #[test]
    fn a_cache_needs_what_its_policy_asks_for() {
        for (text, error) in [
            ("49152,12,64,plru", "plru needs a power of two of lines a set, at most 64, and there are 12"),
            ("32768,8,64,lru3plru4", "lru3plru4 needs 12 lines a set, and there are 8"),
            ("512,8,64,drrip", "drrip needs more than one set"),
            ("32768,8,64,", "there is no policy ''"),
            ("32768,8,64,lru,lru", "there is no policy 'lru,lru'"),
            ("32768,8,48,lru", "Cache set count is not a power of two."),
            ("32768,8", "not of the form size,associativity,line_size"),
        ] {
            let found = parse_shape(text).unwrap_err().to_string();
            assert!(found.starts_with(error), "{text}: {found}");
        }
        let (shape, policy) = parse_shape("49152,12,64,lru3plru4").unwrap();
        assert_eq!((shape.sets(), policy), (64, Policy::Lru3Plru4));
        assert_eq!(parse_shape("32768,8,64").unwrap().1, Policy::Lru);
    }
}
