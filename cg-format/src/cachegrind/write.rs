//! Writes cachegrind profiles.
//!
//! The output depends on the profile alone, not on the order of insertion when it is sorted, nor on addresses or hash
//! seeds. What is written can always be read back: a line break inside a name, which the format cannot hold, is written
//! as `\n`, a carriage return at its end as `\r`.

use std::fmt;
use std::io::{self, Write};

use super::profile::{FileEntry, FunctionEntry, Profile};
use super::rows::Rows;

/// Why a profile was not written.
pub type WriteError = io::Error;

/// Writes a profile the way a run of the tool does: files, functions and lines in ascending order of their bytes and
/// numbers, all counts of every row, also those of rows that are all zero.
///
/// As in the reference's files, the `events:` line of a run with the cache simulation and without the branch simulation
/// ends with a blank.
///
/// # Errors
/// Whatever `out` answers.
///
/// # Example
/// ```
/// let mut profile = cg_format::cachegrind::Profile::new(["Ir"]);
/// profile.header.cmd = b"true".to_vec();
/// profile.add(b"b.c", b"g", 2, &[1]).unwrap();
/// profile.add(b"a.c", b"f", 9, &[5]).unwrap();
/// let mut out = Vec::new();
/// cg_format::cachegrind::write(&mut out, &profile).unwrap();
/// assert_eq!(out, b"cmd: true\nevents: Ir\nfl=a.c\nfn=f\n9 5\nfl=b.c\nfn=g\n2 1\nsummary: 6\n");
/// ```
pub fn write(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, profile.header.events.last().is_some_and(|last| last == crate::events::DLMW.name))?;
    let mut files: Vec<FileEntry<'_>> = profile.files().collect();
    files.sort_by_key(|file| file.name());
    for file in files {
        let functions = sorted_functions(file);
        writer.file(file, functions, false, |rows, order| order.sort_by_key(|row| rows.line(*row)))?;
    }
    writer.summary(profile)
}

/// Writes a profile in the order in which its files, functions and lines first came.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_stored(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, false)?;
    for file in profile.files() {
        writer.file(file, file.functions(), false, |_, _| ())?;
    }
    writer.summary(profile)
}

/// Writes a profile whose rows are whole functions, in ascending order, the file's name before each of them.
///
/// # Errors
/// Whatever `out` answers.
pub fn write_functions(out: &mut dyn Write, profile: &Profile) -> Result<(), WriteError> {
    let mut writer = Writer::new(out);
    writer.header(profile, false)?;
    let mut files: Vec<FileEntry<'_>> = profile.files().collect();
    files.sort_by_key(|file| file.name());
    for file in files {
        writer.file(file, sorted_functions(file), true, |_, _| ())?;
    }
    writer.summary(profile)
}

fn sorted_functions(file: FileEntry<'_>) -> Vec<FunctionEntry<'_>> {
    let mut functions: Vec<FunctionEntry<'_>> = file.functions().collect();
    functions.sort_by_key(|function| function.name());
    functions
}

/// Gathers output in large pieces; numbers are formatted here because they are most of the work.
struct Writer<'a> {
    out: &'a mut dyn Write,
    buffer: Vec<u8>,
}

const PIECE: usize = 1 << 16;

impl<'a> Writer<'a> {
    fn new(out: &'a mut dyn Write) -> Self {
        Self { out, buffer: Vec::with_capacity(PIECE + 4096) }
    }

    fn header(&mut self, profile: &Profile, trailing_blank: bool) -> io::Result<()> {
        for desc in &profile.header.desc {
            self.text(b"desc: ", desc)?;
        }
        self.text(b"cmd: ", &profile.header.cmd)?;
        let mut events = profile.header.events.join(" ");
        if trailing_blank {
            events.push(' ');
        }
        self.text(b"events: ", events.as_bytes())
    }

    /// Writes a file's functions; `arrange` puts the numbers of a function's rows, given in the stored order, in order.
    fn file<'f>(
        &mut self,
        file: FileEntry<'_>,
        functions: impl IntoIterator<Item = FunctionEntry<'f>>,
        repeat_name: bool,
        arrange: impl Fn(Rows<'_>, &mut [usize]),
    ) -> io::Result<()> {
        let mut named = false;
        let mut order = Vec::new();
        for function in functions.into_iter().filter(|function| !function.rows().is_empty()) {
            if repeat_name || !named {
                self.text(b"fl=", file.name())?;
                named = true;
            }
            self.text(b"fn=", function.name())?;
            let rows = function.rows();
            order.clear();
            order.extend(0..rows.len());
            arrange(rows, &mut order);
            for row in &order {
                if let Some((line, counts)) = rows.narrow(*row) {
                    push_number(&mut self.buffer, line);
                    for count in counts {
                        self.buffer.push(b' ');
                        if *count < 0 {
                            self.buffer.push(b'-');
                        }
                        push_number(&mut self.buffer, count.unsigned_abs());
                    }
                    self.end_line()?;
                    continue;
                }
                self.number(i128::from(rows.line(*row)));
                for column in 0..rows.width() {
                    self.buffer.push(b' ');
                    self.number(rows.count(*row, column));
                }
                self.end_line()?;
            }
        }
        Ok(())
    }

    fn summary(&mut self, profile: &Profile) -> io::Result<()> {
        self.buffer.extend_from_slice(b"summary:");
        for count in profile.total() {
            self.buffer.push(b' ');
            self.number(*count);
        }
        self.end_line()?;
        self.out.write_all(&self.buffer)
    }

    fn text(&mut self, key: &[u8], text: &[u8]) -> io::Result<()> {
        self.buffer.extend_from_slice(key);
        for (i, byte) in text.iter().enumerate() {
            match byte {
                b'\n' => self.buffer.extend_from_slice(b"\\n"),
                // At the end of a line it would be taken for a part of the line's end.
                b'\r' if i + 1 == text.len() => self.buffer.extend_from_slice(b"\\r"),
                _ => self.buffer.push(*byte),
            }
        }
        self.end_line()
    }

    fn number(&mut self, value: i128) {
        let Ok(narrow) = u64::try_from(value.unsigned_abs()) else {
            let _ = fmt::Write::write_fmt(&mut Text(&mut self.buffer), format_args!("{value}"));
            return;
        };
        if value < 0 {
            self.buffer.push(b'-');
        }
        push_number(&mut self.buffer, narrow);
    }

    fn end_line(&mut self) -> io::Result<()> {
        self.buffer.push(b'\n');
        if self.buffer.len() >= PIECE {
            self.out.write_all(&self.buffer)?;
            self.buffer.clear();
        }
        Ok(())
    }
}

/// Appends a number.
fn push_number(buffer: &mut Vec<u8>, number: u64) {
    const EIGHT: u64 = 100_000_000;
    if number < EIGHT {
        let digits = eight_digits(number);
        // The last digit is there in any case.
        let zeros = (digits | 1 << 56).trailing_zeros() & !7;
        buffer.extend_from_slice(&((digits | ZEROS) >> zeros).to_le_bytes());
        buffer.truncate(buffer.len() - zeros as usize / 8);
    } else {
        push_number(buffer, number / EIGHT);
        buffer.extend_from_slice(&(eight_digits(number % EIGHT) | ZEROS).to_le_bytes());
    }
}

const ZEROS: u64 = 0x3030_3030_3030_3030;

/// The digits of a number below 10^8, one in each byte, the first in the lowest: fours, pairs and digits side by side.
fn eight_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | ((number % 10_000) << 32);
    let hundreds = ((fours * 10_486) >> 20) & 0x0000_007f_0000_007f;
    let pairs = hundreds | (fours - hundreds * 100) << 16;
    let tens = ((pairs * 103) >> 10) & 0x000f_000f_000f_000f;
    tens | (pairs - tens * 10) << 8
}

struct Text<'a>(&'a mut Vec<u8>);

impl fmt::Write for Text<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.extend_from_slice(text.as_bytes());
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_written_like_the_librarys() {
        let mut numbers: Vec<u64> = (0..20_000).chain([u64::MAX, u64::MAX - 1, u64::from(u32::MAX)]).collect();
        for exponent in 0..20 {
            let power = 10_u64.pow(exponent);
            numbers.extend([power - 1, power, power + 1, power.saturating_mul(9), power.wrapping_mul(7_777_777)]);
        }
        let mut number = 1_u64;
        for shift in 0..64 {
            number = number.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(1);
            numbers.push(number >> shift);
        }
        for number in numbers {
            let mut text = b"x".to_vec();
            push_number(&mut text, number);
            assert_eq!(String::from_utf8(text).unwrap(), format!("x{number}"));
        }
    }

    #[test]
    fn eight_digits_are_right_throughout() {
        for number in (0..100_000_000).step_by(37) {
            let text = (eight_digits(number) | ZEROS).to_le_bytes();
            assert_eq!(text.as_slice(), format!("{number:08}").as_bytes());
        }
    }
}
