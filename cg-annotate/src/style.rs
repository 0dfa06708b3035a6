//! What the options say about the look of a report, and how its numbers look; all forms of the report use it.
//!
//! Numbers that are no counts are printed as the reference's language prints them.

use cg_cli::color::Palette;

/// What the options say about the look of the report.
pub(crate) struct Style {
    /// The command line, as called.
    pub(crate) invocation: Vec<u8>,
    pub(crate) threshold: f64,
    pub(crate) percentages: bool,
    pub(crate) annotate: bool,
    pub(crate) context: u64,
    /// Whether what grew is shown.
    pub(crate) growth: bool,
    pub(crate) palette: Palette,
}

/// A number as the reference's language prints it.
pub(crate) fn number(value: f64) -> String {
    if value != 0.0 && value.abs() < 1e-4 {
        let text = format!("{value:e}");
        if let Some((digits, exponent)) = text.split_once("e-") {
            return format!("{digits}e-{exponent:0>2}");
        }
    }
    format!("{value:?}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_look_like_the_references() {
        let cases =
            [(0.1, "0.1"), (0.0, "0.0"), (20.0, "20.0"), (1e-4, "0.0001"), (1e-5, "1e-05"), (2.5e-7, "2.5e-07")];
        for (value, text) in cases {
            assert_eq!(number(value), text);
        }
    }
}
