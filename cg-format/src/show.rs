//! How counts and percentages look in reports.

/// A count with commas between thousands.
///
/// ```
/// assert_eq!(cg_format::show::commas(-1234567), "-1,234,567");
/// ```
#[must_use]
pub fn commas(count: i128) -> String {
    let digits = count.unsigned_abs().to_string();
    let mut text = String::with_capacity(digits.len() * 4 / 3 + 2);
    if count < 0 {
        text.push('-');
    }
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `count` as a percentage of `total`, correctly rounded whatever their size; nothing if `total` is 0.
///
/// Zero of a negative total is -0.0, as the reports show it. Both must be within [`crate::count::LIMIT`].
#[must_use]
pub fn percent(count: i128, total: i128) -> Option<f64> {
    if total == 0 {
        return None;
    }
    let size = quotient(count.unsigned_abs() * 100, total.unsigned_abs());
    Some(if (count < 0) == (total < 0) { size } else { -size })
}

/// A percentage with one digit after the point, or `n/a`.
#[must_use]
pub fn percent_text(percent: Option<f64>) -> String {
    percent.map_or_else(|| "n/a".to_owned(), |percent| format!("{percent:.1}%"))
}

/// The double next to `dividend / divisor`.
fn quotient(dividend: u128, divisor: u128) -> f64 {
    const EXACT: u128 = 1 << 53;
    if dividend < EXACT && divisor < EXACT {
        // Both are doubles, and the processor rounds their quotient correctly.
        return dividend as f64 / divisor as f64;
    }
    // Divide bit by bit until the quotient has more bits than a double; what remains only has to be non-zero.
    let (mut quotient, mut rest) = (dividend / divisor, dividend % divisor);
    let mut shift = 0;
    while quotient < 1 << 56 {
        rest <<= 1;
        quotient <<= 1;
        if rest >= divisor {
            rest -= divisor;
            quotient |= 1;
        }
        shift += 1;
    }
    quotient |= u128::from(rest != 0);
    quotient as f64 * 2f64.powi(-shift)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count::LIMIT;

    #[test]
    fn commas_stand_between_thousands() {
        for (count, text) in [(0, "0"), (999, "999"), (-1000, "-1,000"), (123_456, "123,456")] {
            assert_eq!(commas(count), text);
        }
        assert!(commas(-LIMIT).starts_with("-1,000,000"));
    }

    #[test]
    fn percentages_are_exact() {
        assert_eq!(percent(1, 0), None);
        assert_eq!(percent_text(percent(0, -6)), "-0.0%");
        assert_eq!(percent_text(percent(-2, -6)), "33.3%");
        assert_eq!(percent_text(percent(LIMIT, LIMIT)), "100.0%");
        assert_eq!(percent(LIMIT, 1), Some(1e38));
        assert_eq!(percent(1, LIMIT), Some(1e-34));
        // Not what doubles would give: the operands are rounded there.
        assert_eq!(percent((1 << 60) + 1, 3), Some(38_430_716_820_228_233_000.0));
        for (count, total) in [(1_i128, 3_i128), (9_007_199_254_740_991, 7), (90_071_992_547_409, 11)] {
            let scaled = percent(count * 1_000_000_007, total * 1_000_000_007);
            assert_eq!(scaled, percent(count, total), "{count} of {total}");
        }
    }
}
