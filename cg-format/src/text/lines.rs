//! Cuts an input into pieces of whole lines, for the readers.
//!
//! One buffer serves all pieces. It grows only for a line that does not fit, and not without bound.

use std::io::{self, Read};

use super::InputError;

/// Cuts an input into pieces of whole lines.
pub(crate) struct LineSource<R> {
    input: R,
    /// Always [`PAD`] bytes longer than what it may hold.
    buffer: Vec<u8>,
    /// What `buffer` holds: `..end`, of which `..cut` was handed out last.
    end: usize,
    cut: usize,
}

/// Whole lines, each with its `\n`, and behind them [`PAD`] bytes that mean nothing.
pub(crate) struct Piece<'a> {
    pub(crate) padded: &'a [u8],
}

impl Piece<'_> {
    pub(crate) fn text(&self) -> &[u8] {
        &self.padded[..self.padded.len() - PAD]
    }
}

const PIECE: usize = 1 << 16;
const LONGEST_LINE: usize = 1 << 24;
/// Numbers are looked for in whole blocks, also at the end of a piece.
pub(crate) const PAD: usize = super::ends::BLOCK;

impl<R: Read> LineSource<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, buffer: vec![0; PIECE + PAD], end: 0, cut: 0 }
    }

    /// The next lines; nothing at the end.
    pub(crate) fn next_piece(&mut self) -> Result<Piece<'_>, InputError> {
        self.buffer.copy_within(self.cut..self.end, 0);
        self.end -= self.cut;
        self.cut = 0;
        loop {
            let room = self.buffer.len() - PAD;
            if self.end == room {
                if self.end >= LONGEST_LINE {
                    return Err(InputError::LineTooLong);
                }
                self.buffer.resize(room * 2 + PAD, 0);
                continue;
            }
            let count = match self.input.read(&mut self.buffer[self.end..room]) {
                Ok(count) => count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(InputError::Io(error)),
            };
            let fresh = self.end;
            self.end += count;
            if count == 0 {
                if self.end > 0 {
                    // The last line may lack its end.
                    self.buffer[self.end] = b'\n';
                    self.end += 1;
                }
                self.cut = self.end;
                break;
            }
            if let Some(last) = memchr::memrchr(b'\n', &self.buffer[fresh..self.end]) {
                self.cut = fresh + last + 1;
                break;
            }
        }
        Ok(Piece { padded: &self.buffer[..self.cut + PAD] })
    }
}
