//! Opens inputs: files, `-` for standard input, and compressed ones, recognised by their first bytes.
//!
//! Decompressors are pure Rust and maintained: flate2 with the back end zlib-rs, lzma-rust2 (streams, unlike lzma-rs) and
//! ruzstd. All of them check what they decompress; a stream that is cut short, or that something else follows, is an error,
//! never a short profile.

use std::error::Error;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;

use flate2::bufread::GzDecoder;
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

/// The same for a profile: the reason, which does not name it, tells of the newest one if it is not there.
///
/// # Errors
/// As [`open`].
pub fn open_profile(path: &OsStr, counter: &Arc<Counter>) -> Result<Input, String> {
    open(path, counter).map_err(|error| {
        let instead = if error.kind() == io::ErrorKind::NotFound { crate::newest::instead() } else { String::new() };
        format!("{}{instead}", crate::exit::plain(&error.to_string()))
    })
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
    let source = |whole| BufReader::with_capacity(1 << 16, whole);
    Ok(match kind.as_slice() {
        [0x1f, 0x8b, ..] => {
            let inner = Gzip { state: GzipState::Inside(Box::new(GzDecoder::new(source(whole)))) };
            Box::new(Named { format: "gzip", inner })
        }
        [0xfd, b'7', b'z', b'X', b'Z', 0] => {
            Box::new(Named { format: "xz", inner: XzReader::new_mem_limit(source(whole), true, WINDOW_KIB) })
        }
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Box::new(Named { format: "zstd", inner: Zstd { state: State::Between(source(whole)) } })
        }
        _ => whole,
    })
}

/// Says of what decompresses that it did, in one sentence: decompressors nest their errors and tell each cause again.
struct Named<R> {
    format: &'static str,
    inner: R,
}

impl<R: Read> Read for Named<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read(buffer).map_err(|error| {
            if error.raw_os_error().is_some() || error.kind() == io::ErrorKind::Interrupted {
                return error;
            }
            let format = self.format;
            if is_short(&error) {
                return io::Error::new(io::ErrorKind::UnexpectedEof, format!("{format}: the file is cut short"));
            }
            io::Error::new(error.kind(), format!("{format}: {error}"))
        })
    }
}

/// Whether an error, or one that it tells of, is the end of the input.
fn is_short(error: &(dyn Error + 'static)) -> bool {
    let is_end = error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::UnexpectedEof);
    is_end || error.source().is_some_and(is_short)
}

/// A gzip file: members one after another, and zeros, which tapes leave behind them.
struct Gzip {
    state: GzipState,
}

enum GzipState {
    Between(BufReader<Input>),
    Inside(Box<GzDecoder<BufReader<Input>>>),
    End,
}

impl Read for Gzip {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            match std::mem::replace(&mut self.state, GzipState::End) {
                GzipState::End => return Ok(0),
                GzipState::Between(mut source) => match source.fill_buf()? {
                    [] => return Ok(0),
                    [0x1f, ..] => self.state = GzipState::Inside(Box::new(GzDecoder::new(source))),
                    rest => {
                        let zeros = rest.iter().take_while(|byte| **byte == 0).count();
                        if zeros == 0 {
                            return Err(corrupt("something that is not compressed follows"));
                        }
                        source.consume(zeros);
                        self.state = GzipState::Between(source);
                    }
                },
                GzipState::Inside(mut member) => {
                    let count = member.read(buffer)?;
                    if count > 0 {
                        self.state = GzipState::Inside(member);
                        return Ok(count);
                    }
                    self.state = GzipState::Between(member.into_inner());
                }
            }
        }
    }
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
                        return Err(corrupt("the checksum does not match"));
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
        Err(_) => return Err(short()),
    };
    if matches!(magic, [0x50..=0x5f, 0x2a, 0x4d, 0x18]) {
        let mut length = [0; 4];
        source.read_exact(&mut length)?;
        let length = u64::from(u32::from_le_bytes(length));
        if io::copy(&mut source.by_ref().take(length), &mut io::sink())? < length {
            return Err(short());
        }
        return Ok(State::Between(source));
    }
    if magic != [0x28, 0xb5, 0x2f, 0xfd] {
        return Err(corrupt("something that is not compressed follows"));
    }
    let window = u64::from(WINDOW_KIB) * 1024;
    let frame = StreamingDecoder::new_with_max_window_size(Cursor::new(magic).chain(source), window)
        .map_err(|error| if is_short(&error) { short() } else { corrupt(&error.to_string()) })?;
    Ok(State::Inside(Box::new(frame)))
}

fn short() -> io::Error {
    io::Error::from(io::ErrorKind::UnexpectedEof)
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
    fn what_follows_is_told_from_a_cut() {
        let fault = |bytes: Vec<u8>| all(bytes).unwrap_err().to_string();
        let (gzip, zstd) = (gzip(b"one"), zstd(b"one"));
        for (format, packed) in [("gzip", &gzip), ("zstd", &zstd)] {
            let garbage = [&packed[..], b"cmd: x\n"].concat();
            assert_eq!(fault(garbage), format!("{format}: something that is not compressed follows"));
            for cut in 7..packed.len() {
                assert_eq!(fault(packed[..cut].to_vec()), format!("{format}: the file is cut short"), "at {cut}");
                let second = [&packed[..], &packed[..cut]].concat();
                assert_eq!(fault(second), format!("{format}: the file is cut short"), "second at {cut}");
            }
        }
        // As the gzip program does.
        assert_eq!(all([&gzip[..], &[0; 70_000], &gzip, &[0]].concat()).unwrap(), b"oneone");
        assert_eq!(fault([&zstd[..], &[0; 3]].concat()), "zstd: the file is cut short");
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
