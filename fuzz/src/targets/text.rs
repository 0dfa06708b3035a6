//! Changes to inputs that are lines of words and numbers.

use crate::mutate::Random;

/// Changes a line or a number, or repeats lines.
pub(super) fn change(random: &mut Random, input: &mut Vec<u8>) {
    let line = line(random, input);
    match random.below(6) {
        0 => drop(input.drain(line)),
        1 => {
            let copy = input[line].to_vec();
            let at = self::line(random, input).start;
            input.splice(at..at, copy);
        }
        2 if random.below(4) == 0 => {
            // Few lines, many times: more than a few show what grows faster than the input.
            let copy = input[line.start..self::line(random, input).end.max(line.end)].to_vec();
            let times = 1 << random.below(15);
            if copy.len() * times <= 1 << 18 {
                input.splice(line.start..line.start, copy.repeat(times));
            }
        }
        3 => {
            let lines = [line.end, self::line(random, input).end];
            let (a, b) = (lines[0].min(lines[1]), lines[0].max(lines[1]));
            let mid = a + (b - a) / 2;
            input[a..b].rotate_left(mid - a);
        }
        _ => number(random, input),
    }
}

/// A line with its end.
fn line(random: &mut Random, input: &[u8]) -> std::ops::Range<usize> {
    let at = random.below(input.len() + 1);
    let start = input[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    let end = input[at..].iter().position(|byte| *byte == b'\n').map_or(input.len(), |end| at + end + 1);
    start..end
}

/// Changes a number, or puts one where there is none.
fn number(random: &mut Random, input: &mut Vec<u8>) {
    let at = random.below(input.len() + 1);
    let start = input[at..].iter().position(u8::is_ascii_digit).map_or(at, |digit| at + digit);
    let end = input[start..].iter().position(|byte| !byte.is_ascii_digit()).map_or(input.len(), |end| start + end);
    let value = random.number();
    let text = match random.below(6) {
        0 => format!("{value:#x}"),
        1 => format!("-{value}"),
        2 => format!("+{}", value % 100),
        3 => "*".to_owned(),
        _ => value.to_string(),
    };
    input.splice(start..end, text.into_bytes());
}
