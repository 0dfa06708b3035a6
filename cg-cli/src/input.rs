//! Opens inputs: files, `-` for standard input, and compressed ones, recognised by their first bytes.
//!
//! Decompressors are pure Rust and maintained: flate2 with the back end zlib-rs, lzma-rust2 (streams, unlike lzma-rs) and
//! ruzstd. All of them check what they decompress; a stream that is cut short is an error, never a short profile.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;
use lzma_rust2::XzReader;
use ruzstd::decoding::{FrameDecoder, StreamingDecoder};

use crate::progress::Counter;

/// An input that is being read.
pub type Input = Box<dyn Read + Send>;

/// The largest window or dictionary, in KiB, that a compressed profile may ask memory for.
const WINDOW_KIB: u32 = 256 * 1024;

/// How messages call an input.
#[must_use]
pub fn name(path: &OsStr) -> String {
    if path == "-" { "<stdin>".to_owned() } else { path.to_string_lossy().into_owned() }
}

/// Opens `path`, or standard input for `-`; what comes out is decompressed. Bytes taken are told to `counter`.
///
/// # Errors
/// The file cannot be opened or its first bytes cannot be read.
pub fn open(path: &OsStr, counter: &Arc<Counter>) -> io::Result<Input> {
    let raw: Input = if path == "-" {
        counter.expect(None);
        Box::new(io::stdin())
    } else {
        let file = File::open(Path::new(path))?;
        let meta = file.metadata()?;
        if meta.is_dir() {
            return Err(io::Error::from(io::ErrorKind::IsADirectory));
        }
        counter.expect(meta.is_file().then_some(meta.len()));
        Box::new(file)
    };
    decompressed(Box::new(Counted { inner: raw, counter: Arc::clone(counter) }))
}

/// What `raw` holds, decompressed if its first bytes are those of gzip, xz or zstd.
///
/// # Errors
/// The first bytes cannot be read.
pub fn decompressed(mut raw: Input) -> io::Result<Input> {
    let mut magic = Vec::with_capacity(6);
    raw.by_ref().take(6).read_to_end(&mut magic)?;
    let kind = magic.clone();
    let whole: Input =
        if magic.len() < 6 { Box::new(Cursor::new(magic)) } else { Box::new(Cursor::new(magic).chain(raw)) };
    Ok(match kind.as_slice() {
        [0x1f, 0x8b, ..] => Box::new(MultiGzDecoder::new(BufReader::with_capacity(1 << 16, whole))),
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(XzReader::new_mem_limit(BufReader::with_capacity(1 << 16, whole), true, WINDOW_KIB))
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Box::new(Zstd { state: State::Between(BufReader::with_capacity(1 << 16, whole)) })
        }
        _ => whole,
    })
}

struct Counted {
    inner: Input,
    counter: Arc<Counter>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        self.counter.add(count as u64);
        Ok(count)
    }
}

/// A zstd file: frames one after another, some of which are to be skipped. ruzstd decodes one frame at a time.
struct Zstd {
    state: State,
}

type Framed = io::Chain<Cursor<[u8; 4]>, BufReader<Input>>;

enum State {
    Between(BufReader<Input>),
    Inside(Box<StreamingDecoder<Framed, FrameDecoder>>),
    End,
}

impl Read for Zstd {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, State::End) {
                State::End => return Ok(0),
                State::Between(source) => self.state = next_frame(source)?,
                State::Inside(mut frame) => {
                    let count = frame.read(buffer)?;
                    if count > 0 {
                        self.state = State::Inside(frame);
                        return Ok(count);
                    }
                    let (source, decoder) = frame.into_parts();
                    if let Some(stated) = decoder.get_checksum_from_data()
                        && decoder.get_calculated_checksum() != Some(stated)
                    {
                        return Err(corrupt("zstd: the checksum does not match"));
                    }
                    self.state = State::Between(source.into_inner().1);
                }
            }
        }
    }
}

fn next_frame(mut source: BufReader<Input>) -> io::Result<State> {
    let mut magic = Vec::with_capacity(4);
    source.by_ref().take(4).read_to_end(&mut magic)?;
    let magic: [u8; 4] = match <[u8; 4]>::try_from(magic) {
        Ok(magic) => magic,
        Err(rest) if rest.is_empty() => return Ok(State::End),
        Err(_) => return Err(corrupt("zstd: the file is cut short")),
    };
    if matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
        let mut length = [0; 4];
        source.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        if io::copy(&mut source.by_ref().take(length), &mut io::sink())? < length {
            return Err(corrupt("zstd: the file is cut short"));
        }
        return Ok(State::Between(source));
    }
    let window = u64::from(WINDOW_KIB) * 1024;
    let frame = StreamingDecoder::new_with_max_window_size(Cursor::new(magic).chain(source), window)
        .map_err(|error| corrupt(&format!("zstd: {error}")))?;
    Ok(State::Inside(Box::new(frame)))
}

fn corrupt(message: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    fn all(bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        decompressed(Box::new(Cursor::new(bytes)))?.read_to_end(&mut out)?;
        Ok(out)
    }

    fn gzip(text: &[u8]) -> Vec<u8> {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        encoder.write_all(text).unwrap();
        encoder.finish().unwrap()
    }

    fn zstd(text: &[u8]) -> Vec<u8> {
        ruzstd::encoding::compress_to_vec(text, ruzstd::encoding::CompressionLevel::Fastest)
    }

    #[test]
    fn plain_bytes_pass_whatever_their_length() {
        for text in [&b""[..], b"c", b"cmd:", b"cmd: x", b"cmd: xyz\n", &[0x1f]] {
            assert_eq!(all(text.to_vec()).unwrap(), text);
        }
    }

    #[test]
    fn members_and_frames_are_joined() {
        assert_eq!(all([gzip(b"one "), gzip(b"two")].concat()).unwrap(), b"one two");
        let skipped = [&[0x52, 0x2a, 0x4d, 0x18, 3, 0, 0, 0][..], b"abc"].concat();
        let frames = [skipped.clone(), zstd(b"one "), skipped, zstd(&[7; 300_000])].concat();
        assert_eq!(all(frames).unwrap(), [b"one ".to_vec(), vec![7; 300_000]].concat());
    }

    #[test]
    fn cut_and_damaged_streams_are_errors() {
        let text: Vec<u8> = (0..200_000_u32).map(|i| (i.wrapping_mul(2_654_435_761) >> 24) as u8).collect();
        for packed in [gzip(&text), zstd(&text)] {
            assert_eq!(all(packed.clone()).unwrap(), text);
            for cut in [8, packed.len() / 2, packed.len() - 1] {
                assert!(all(packed[..cut].to_vec()).is_err(), "cut at {cut} of {}", packed.len());
            }
            let mut damaged = packed.clone();
            let middle = damaged.len() / 2;
            damaged[middle] ^= 0x55;
            assert!(all(damaged).is_err());
        }
    }
}
