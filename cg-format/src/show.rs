//! How counts and percentages look in reports.

use std::fmt::Write;

/// A count with commas between thousands.
///
/// ```
/// assert_eq!(cg_format::show::commas(-1234567), "-1,234,567");
/// ```
#[must_use]
pub fn commas(count: i128) -> String {
    let mut text = String::new();
    push_commas(&mut text, count);
    text
}

/// Appends what [`commas`] gives: reports have many counts.
pub fn push_commas(text: &mut String, count: i128) {
    if count < 0 {
        text.push('-');
    }
    // From the last three digits to the first: 39 digits of 128 bits have 12 commas.
    let mut groups = [0; 13];
    let mut length = 0;
    let mut rest = count.unsigned_abs();
    while rest > u128::from(u64::MAX) {
        groups[length] = (rest % 1000) as u16;
        rest /= 1000;
        length += 1;
    }
    let mut rest = rest as u64;
    loop {
        groups[length] = (rest % 1000) as u16;
        rest /= 1000;
        length += 1;
        if rest == 0 {
            break;
        }
    }
    for (i, group) in groups[..length].iter().rev().enumerate() {
        if i > 0 {
            text.push(',');
        }
        for (unit, least) in [(100, 100), (10, 10), (1, 0)] {
            if i > 0 || *group >= least {
                text.push(char::from(b'0' + (group / unit % 10) as u8));
            }
        }
    }
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
    let mut text = String::new();
    push_percent(&mut text, percent);
    text
}

/// Appends what [`percent_text`] gives.
pub fn push_percent(text: &mut String, percent: Option<f64>) {
    let Some(percent) = percent else {
        text.push_str("n/a");
        return;
    };
    let tenths = percent.abs() * 10.0;
    let nearest = tenths.round();
    // Rounding is only in doubt near a half; the product is off by less than 10^-9.
    if nearest < 1e6 && (tenths - nearest).abs() < 0.499_999 {
        if percent.is_sign_negative() {
            text.push('-');
        }
        let tenths = nearest as u32;
        push_digits(text, tenths / 10);
        text.push('.');
        push_digits(text, tenths % 10);
        text.push('%');
    } else {
        let _ = write!(text, "{percent:.1}%");
    }
}

fn push_digits(text: &mut String, number: u32) {
    if number >= 10 {
        push_digits(text, number / 10);
    }
    text.push(char::from(b'0' + (number % 10) as u8));
}

/// The double next to `dividend / divisor`.
fn quotient(dividend: u128, divisor: u128) -> f64 {
    const EXACT: u128 = 1 << 53;
    if dividend < EXACT && divisor < EXACT {
        // Both are doubles, and the processor rounds their quotient correctly.
        return dividend as u64 as f64 / divisor as u64 as f64;
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
        for (count, text) in [
            (0, "0"),
            (7, "7"),
            (10, "10"),
            (999, "999"),
            (-1000, "-1,000"),
            (123_456, "123,456"),
            (1_000_007, "1,000,007"),
        ] {
            assert_eq!(commas(count), text);
        }
        assert!(commas(-LIMIT).starts_with("-1,000,000"));
        let mut count: i128 = 1;
        for i in 0..3000_i128 {
            count = (count * 7 + i) % LIMIT;
            assert_eq!(commas(count).replace(',', ""), count.to_string());
            assert!(
                commas(count).rsplit(',').skip(1).zip(commas(count).rsplit(',')).all(|(_, group)| group.len() == 3)
            );
        }
        assert_eq!(commas(i128::MIN).len(), 1 + 39 + 12);
    }

    #[test]
    fn percentages_are_rounded_as_the_language_does() {
        let mut value: f64 = 0.05;
        while value < 1e7 {
            for percent in
                [value, -value, value.next_up(), value.next_down(), (value * 20.0).round() / 20.0, value.floor()]
            {
                assert_eq!(percent_text(Some(percent)), format!("{percent:.1}%"));
            }
            value *= 1.003;
        }
        for percent in [0.0, -0.0, 0.04, -0.04, 0.05, 0.15, 0.25, 0.35, 99.95, 99.949, 1e300, f64::MIN_POSITIVE] {
            assert_eq!(percent_text(Some(percent)), format!("{percent:.1}%"));
        }
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
