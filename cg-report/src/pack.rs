//! Columns: lists of numbers and texts as they stand in the report, each compressed by itself so that the page unpacks
//! what it shows and nothing else.
//!
//! A column of numbers is written in as few bytes a value as its largest one needs: all first bytes, then all second
//! ones, and so on, which compresses well. Signed columns and differences are folded so that small sizes are small
//! numbers. The page's `data/columns.ts` is the other end; `tests` here are its twin in Rust.

use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::DeflateEncoder;

/// How a column is written; all that the page needs to read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: String,
    /// Where its text begins among all columns, in characters.
    pub(crate) start: usize,
    /// How long that is.
    pub(crate) length: usize,
    /// How many values it has; of a text, bytes.
    pub(crate) count: usize,
    /// Bytes a value: 0 if all are 0, else 1 to 4 or 8.
    pub(crate) width: u8,
    /// Whether values are folded because some are negative.
    pub(crate) signed: bool,
    /// Whether each value is the difference from the one before.
    pub(crate) delta: bool,
}

/// Columns in the making.
#[derive(Debug, Default)]
pub(crate) struct Pack {
    pub(crate) columns: Vec<Column>,
    /// The columns one after another, compressed and in base64.
    pub(crate) text: String,
}

impl Pack {
    /// Adds counts.
    pub(crate) fn numbers(&mut self, name: impl Into<String>, values: &[u64]) -> io::Result<()> {
        self.folded(name.into(), values, false, false)
    }

    /// Adds counts of which neighbours are alike, such as places in ascending order.
    pub(crate) fn close(&mut self, name: impl Into<String>, values: &[u64]) -> io::Result<()> {
        let mut last = 0_u64;
        let steps: Vec<u64> = values
            .iter()
            .map(|value| {
                let step = value.wrapping_sub(last) as i64;
                last = *value;
                fold(step)
            })
            .collect();
        self.folded(name.into(), &steps, true, true)
    }

    /// Adds costs.
    pub(crate) fn costs(&mut self, name: impl Into<String>, values: &[i64]) -> io::Result<()> {
        let signed = values.iter().any(|value| *value < 0);
        let folded: Vec<u64> = values.iter().map(|value| if signed { fold(*value) } else { *value as u64 }).collect();
        self.folded(name.into(), &folded, signed, false)
    }

    /// Adds a text.
    pub(crate) fn text(&mut self, name: impl Into<String>, text: &[u8]) -> io::Result<()> {
        self.push(name.into(), text, text.len(), 1, false, false)
    }

    fn folded(&mut self, name: String, values: &[u64], signed: bool, delta: bool) -> io::Result<()> {
        let width = match values.iter().max().copied().unwrap_or(0) {
            0 => 0,
            largest if largest > u64::from(u32::MAX) => 8,
            largest => (8 - largest.leading_zeros() as usize / 8) as u8,
        };
        let mut bytes = Vec::with_capacity(values.len() * usize::from(width));
        for plane in 0..u32::from(width) {
            bytes.extend(values.iter().map(|value| (value >> (8 * plane)) as u8));
        }
        self.push(name, &bytes, values.len(), width, signed, delta)
    }

    fn push(
        &mut self,
        name: String,
        bytes: &[u8],
        count: usize,
        width: u8,
        signed: bool,
        delta: bool,
    ) -> io::Result<()> {
        let start = self.text.len();
        if !bytes.is_empty() {
            self.text.push_str(&packed(bytes)?);
        }
        let length = self.text.len() - start;
        self.columns.push(Column { name, start, length, count, width, signed, delta });
        Ok(())
    }
}

/// Bytes as they stand in the page: compressed and in base64.
///
/// # Errors
/// Those of the encoder, which writes to memory.
pub(crate) fn packed(bytes: &[u8]) -> io::Result<String> {
    let mut encoder = DeflateEncoder::new(Vec::new(), Compression::new(6));
    encoder.write_all(bytes)?;
    Ok(STANDARD.encode(encoder.finish()?))
}

/// Makes small negative numbers small: 0, -1, 1, -2 become 0, 1, 2, 3.
fn fold(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;

    fn unpack(pack: &Pack, name: &str) -> Vec<i128> {
        let column = pack.columns.iter().find(|column| column.name == name).unwrap();
        let text = &pack.text[column.start..column.start + column.length];
        let packed = STANDARD.decode(text).unwrap();
        let mut bytes = Vec::new();
        flate2::read::DeflateDecoder::new(&packed[..]).read_to_end(&mut bytes).unwrap_or_default();
        let mut last = 0_u64;
        (0..column.count)
            .map(|i| {
                let value = (0..usize::from(column.width))
                    .map(|plane| u64::from(bytes[plane * column.count + i]) << (8 * plane))
                    .fold(0, |a, b| a | b);
                let unfolded = (value >> 1) as i64 ^ -((value & 1) as i64);
                if column.delta {
                    last = last.wrapping_add(unfolded as u64);
                    i128::from(last)
                } else if column.signed {
                    i128::from(unfolded)
                } else {
                    i128::from(value)
                }
            })
            .collect()
    }

    #[test]
    fn what_is_packed_comes_out_again() {
        let mut pack = Pack::default();
        let lists: [&[u64]; 7] = [
            &[],
            &[0, 0, 0],
            &[1, 255, 3],
            &[256, 7, 70_000],
            &[1 << 24, 5, u64::from(u32::MAX)],
            &[1 << 32, 0, 1 << 53, u64::MAX],
            &[0xffff_ffff_ff60_0000, 0x40_1000, 3],
        ];
        for (i, list) in lists.iter().enumerate() {
            pack.numbers(format!("n{i}"), list).unwrap();
            pack.close(format!("c{i}"), list).unwrap();
            let expected: Vec<i128> = list.iter().map(|value| i128::from(*value)).collect();
            assert_eq!(unpack(&pack, &format!("n{i}")), expected);
            assert_eq!(unpack(&pack, &format!("c{i}")), expected);
        }
        let costs = [0, -1, i64::MAX, i64::MIN, 77];
        pack.costs("costs", &costs).unwrap();
        assert_eq!(unpack(&pack, "costs"), costs.map(i128::from));
        let widths: Vec<u8> = (0..6).map(|i| pack.columns[2 * i].width).collect();
        assert_eq!(widths, [0, 0, 1, 3, 4, 8], "as few bytes as are needed");
    }
}
