//! Just enough of ELF: headers, segments, and sections read one at a time.
//!
//! Files are read piecewise with positioned reads, never mapped: a file that somebody truncates while it is read then
//! costs names instead of killing the process with SIGBUS, and the text of a large program is never touched.
//!
//! Invariant: nothing here trusts an offset, a size or a count from the file; each is checked against the file's length
//! before memory is reserved, and compressed sections may not claim to grow beyond all reason.

use std::{
    fs::File,
    io,
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering},
};

use object::{CompressedData, CompressionFormat};
use ruzstd::decoding::FrameDecoder;

use super::problems::Problems;
use super::{OpenFile, Svma};

const PAGE: u64 = 4096;
/// Generated code shrinks to an eightieth in one section and to a thirteenth in a whole debug file; if sections claim to be so many
/// times larger than the file in all, that is an attack on memory.
const MAX_EXPANSION: u64 = 64;
/// So much is allowed whatever the file.
const SMALL: u64 = 64 << 10;
const MAX_EXPANDED: u64 = 4 << 30;
/// Program and section headers beyond this are not looked at.
const MAX_HEADERS: u64 = 1 << 17;

/// Where the bytes come from.
#[derive(Debug)]
enum Source {
    File { file: File, len: u64 },
    Mapped { file: Box<dyn OpenFile>, len: u64 },
    Bytes(Vec<u8>),
}

impl Source {
    fn len(&self) -> u64 {
        match self {
            Source::File { len, .. } | Source::Mapped { len, .. } => *len,
            Source::Bytes(bytes) => bytes.len() as u64,
        }
    }

    /// `len` bytes from `offset`; none if the source does not hold them all.
    fn read(&self, offset: u64, len: u64) -> Option<Vec<u8>> {
        let end = offset.checked_add(len)?;
        if end > self.len() {
            return None;
        }
        match self {
            Source::File { file, .. } => read_exact(file, offset, len),
            Source::Mapped { file, .. } => {
                let bytes = read_exact(file.file().ok()?.0, offset, len)?;
                // Only now: it may be written to while it is read.
                file.is_unchanged().then_some(bytes)
            }
            Source::Bytes(bytes) => bytes.get(offset as usize..end as usize).map(<[u8]>::to_vec),
        }
    }

    /// What is wrong if something cannot be read that the file should hold.
    fn unreadable(&self) -> &'static str {
        match self {
            Source::Mapped { file, .. } if !file.is_unchanged() => "the file has been written to since it was mapped",
            _ => "exceeds the file",
        }
    }
}

fn read_exact(file: &File, offset: u64, len: u64) -> Option<Vec<u8>> {
    let mut buf = vec![0; usize::try_from(len).ok()?];
    file.read_exact_at(&mut buf, offset).ok()?;
    Some(buf)
}

/// A loaded segment (PT_LOAD).
#[derive(Clone, Copy, Debug)]
struct Segment {
    executable: bool,
    offset: u64,
    vaddr: u64,
    file_size: u64,
    mem_size: u64,
}

/// A section header.
#[derive(Clone, Debug)]
pub(super) struct Section {
    pub(super) name: Vec<u8>,
    kind: u32,
    flags: u64,
    pub(super) address: u64,
    offset: u64,
    pub(super) size: u64,
}

const SHT_NOBITS: u32 = 8;
const SHF_ALLOC: u64 = 2;
const SHF_COMPRESSED: u64 = 0x800;

/// An ELF file, its headers read and its contents waiting.
#[derive(Debug)]
pub(super) struct Image {
    source: Source,
    /// The file it was opened from; none if from memory.
    pub(super) path: Option<PathBuf>,
    segments: Vec<Segment>,
    sections: Vec<Section>,
    notes: Vec<(u64, u64)>,
    warnings: Problems,
    /// The bytes that compressed sections have claimed to be.
    expanded: AtomicU64,
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(data.get(at..at + 2)?.try_into().ok()?))
}

pub(super) fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(data.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

pub(super) fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(data.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

impl Image {
    /// Opens a regular file; anything else (a pipe would block, a device never end) is refused.
    pub(super) fn open(path: &Path) -> Result<Image, String> {
        let metadata = path.metadata().map_err(|e| format!("cannot be read: {e}"))?;
        if !metadata.is_file() {
            return Err("not a regular file: no names".to_owned());
        }
        let file = File::open(path).map_err(|e| format!("cannot be opened: {e}"))?;
        let mut image = Image::parse(Source::File { file, len: metadata.len() })?;
        image.path = Some(path.to_path_buf());
        Ok(image)
    }

    /// The file that was mapped under the name `path`.
    pub(super) fn mapped(path: &Path, file: Box<dyn OpenFile>) -> Result<Image, String> {
        let (_, len) = file.file().map_err(|e| match e {
            io::ErrorKind::InvalidInput => "not a regular file: no names".to_owned(),
            e => format!("cannot be opened: {e}"),
        })?;
        if !file.is_unchanged() {
            return Err("has been written to since it was mapped: no names".to_owned());
        }
        let mut image = Image::parse(Source::Mapped { file, len })?;
        image.path = Some(path.to_path_buf());
        Ok(image)
    }

    pub(super) fn from_bytes(bytes: Vec<u8>) -> Result<Image, String> {
        Image::parse(Source::Bytes(bytes))
    }

    fn parse(source: Source) -> Result<Image, String> {
        let header = source.read(0, 64).ok_or("shorter than an ELF header: no names")?;
        if &header[..4] != b"\x7fELF" {
            return Err("not an ELF file: no names".to_owned());
        }
        const CLASS64_LITTLE: [u8; 2] = [2, 1];
        const X86_64: u16 = 62;
        if header[4..6] != CLASS64_LITTLE || u16_at(&header, 18) != Some(X86_64) {
            return Err("not a 64-bit x86-64 ELF file: no names".to_owned());
        }
        let mut image = Image {
            source,
            path: None,
            segments: Vec::new(),
            sections: Vec::new(),
            notes: Vec::new(),
            warnings: Problems::default(),
            expanded: AtomicU64::new(0),
        };
        if image.parse_segments(&header).is_none() {
            image.warnings.push("program headers are broken: no addresses");
        }
        if image.parse_sections(&header).is_none() {
            image.warnings.push("section headers are broken: no names");
        }
        Ok(image)
    }

    fn table(&self, offset: u64, entry: u64, count: u64, min_entry: u64) -> Option<Vec<u8>> {
        if count == 0 {
            return Some(Vec::new());
        }
        if entry < min_entry || count > MAX_HEADERS {
            return None;
        }
        self.source.read(offset, entry.checked_mul(count)?)
    }

    fn parse_segments(&mut self, header: &[u8]) -> Option<()> {
        const PT_LOAD: u32 = 1;
        const PT_NOTE: u32 = 4;
        const PF_X: u32 = 1;
        let entry = u16_at(header, 54)?;
        let table = self.table(u64_at(header, 32)?, entry.into(), u16_at(header, 56)?.into(), 56)?;
        for h in table.chunks_exact(usize::from(entry).max(1)) {
            match u32_at(h, 0)? {
                PT_LOAD => self.segments.push(Segment {
                    executable: u32_at(h, 4)? & PF_X != 0,
                    offset: u64_at(h, 8)?,
                    vaddr: u64_at(h, 16)?,
                    file_size: u64_at(h, 32)?,
                    mem_size: u64_at(h, 40)?,
                }),
                PT_NOTE => self.notes.push((u64_at(h, 8)?, u64_at(h, 32)?)),
                _ => {}
            }
        }
        Some(())
    }

    fn parse_sections(&mut self, header: &[u8]) -> Option<()> {
        let offset = u64_at(header, 40)?;
        if offset == 0 {
            return Some(());
        }
        let entry: u64 = u16_at(header, 58)?.into();
        let mut count: u64 = u16_at(header, 60)?.into();
        let mut names: u64 = u16_at(header, 62)?.into();
        // With very many sections the true numbers are in the first, otherwise unused, header.
        const SHN_XINDEX: u64 = 0xffff;
        if count == 0 || names == SHN_XINDEX {
            let first = self.source.read(offset, 64)?;
            if count == 0 {
                count = u64_at(&first, 32)?;
            }
            if names == SHN_XINDEX {
                names = u32_at(&first, 40)?.into();
            }
        }
        let table = self.table(offset, entry, count, 64)?;
        let mut sections = Vec::new();
        let mut name_offsets = Vec::new();
        for h in table.chunks_exact(entry.max(1) as usize) {
            name_offsets.push(u32_at(h, 0)?);
            sections.push(Section {
                name: Vec::new(),
                kind: u32_at(h, 4)?,
                flags: u64_at(h, 8)?,
                address: u64_at(h, 16)?,
                offset: u64_at(h, 24)?,
                size: u64_at(h, 32)?,
            });
        }
        let strings = sections.get(names as usize)?;
        let strings = self.source.read(strings.offset, strings.size)?;
        for (section, at) in sections.iter_mut().zip(name_offsets) {
            section.name = string_at(&strings, at as usize)?.iter().take(256).copied().collect();
        }
        self.sections = sections;
        Some(())
    }

    pub(super) fn warnings(&self) -> &Problems {
        &self.warnings
    }

    /// The first section of that name.
    pub(super) fn section(&self, name: &str) -> Option<&Section> {
        self.sections.iter().find(|s| s.name == name.as_bytes())
    }

    /// Whether the file itself holds the bytes of the section (a separate debug file has headers without bytes).
    pub(super) fn has_data(&self, name: &str) -> bool {
        self.find_data(name).is_some()
    }

    fn find_data(&self, name: &str) -> Option<&Section> {
        let old_compressed = name.strip_prefix(".debug_").map(|rest| format!(".zdebug_{rest}"));
        self.sections.iter().find(|s| {
            s.kind != SHT_NOBITS
                && s.size > 0
                && (s.name == name.as_bytes() || old_compressed.as_ref().is_some_and(|z| s.name == z.as_bytes()))
        })
    }

    /// Whether [`Image::data`] would have to decompress the section.
    pub(super) fn is_compressed(&self, name: &str) -> bool {
        self.find_data(name).is_some_and(|s| s.flags & SHF_COMPRESSED != 0 || s.name.starts_with(b".zdebug_"))
    }

    /// The contents of a section, decompressed. `Ok(None)` if the file has no such section, or only its header.
    pub(super) fn data(&self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let Some(section) = self.find_data(name) else { return Ok(None) };
        let raw = self
            .source
            .read(section.offset, section.size)
            .ok_or_else(|| format!("section {name}: {}", self.source.unreadable()))?;
        let broken = || format!("section {name}: broken compression header");
        let (format, skip, size) = if section.flags & SHF_COMPRESSED != 0 && section.flags & SHF_ALLOC == 0 {
            let format = match u32_at(&raw, 0).ok_or_else(broken)? {
                1 => CompressionFormat::Zlib,
                2 => CompressionFormat::Zstandard,
                other => return Err(format!("section {name}: unknown compression {other}")),
            };
            (format, 24, u64_at(&raw, 8).ok_or_else(broken)?)
        } else if section.name.starts_with(b".zdebug_") && raw.starts_with(b"ZLIB") {
            let size = raw.get(4..12).and_then(|b| b.try_into().ok()).map(u64::from_be_bytes).ok_or_else(broken)?;
            (CompressionFormat::Zlib, 12, size)
        } else {
            return Ok(Some(raw));
        };
        let data = raw.get(skip..).ok_or_else(broken)?;
        let most = self.source.len().saturating_mul(MAX_EXPANSION).saturating_add(SMALL).min(MAX_EXPANDED);
        let before = self.expanded.fetch_add(size.min(most), Ordering::Relaxed);
        if size > most.saturating_sub(before) {
            return Err(format!("section {name}: claims to expand to {size} bytes, refused"));
        }
        let contents = if format == CompressionFormat::Zstandard {
            zstd(data, size).map_err(|e| format!("section {name}: {e}"))?
        } else {
            let compressed = CompressedData { format, data, uncompressed_size: size };
            compressed.decompress().map_err(|e| format!("section {name}: {e}"))?.into_owned()
        };
        Ok(Some(contents))
    }

    /// The build identifier from the notes; empty if there is none.
    pub(super) fn build_id(&self) -> Vec<u8> {
        const MAX_NOTES: u64 = 1 << 20;
        let from_sections = self.sections.iter().filter(|s| s.name == b".note.gnu.build-id" && s.kind != SHT_NOBITS);
        let places = from_sections.map(|s| (s.offset, s.size)).chain(self.notes.iter().copied());
        places
            .filter(|&(_, size)| size <= MAX_NOTES)
            .filter_map(|(offset, size)| self.source.read(offset, size))
            .find_map(|notes| build_id_in(&notes))
            .unwrap_or_default()
    }

    /// See [`Object::svma_of_offset`](super::Object::svma_of_offset).
    pub(super) fn svma_of_offset(&self, offset: u64) -> Option<Svma> {
        let executable = || self.segments.iter().filter(|s| s.executable);
        let address = |s: &Segment| Some(Svma(s.vaddr.wrapping_add(offset.wrapping_sub(s.offset))));
        // Whole pages are mapped, so a neighbour's bytes in the first or last page are executable too.
        executable()
            .find(|s| offset >= s.offset && offset - s.offset < s.file_size)
            .or_else(|| {
                executable().find(|s| {
                    let start = s.offset & !(PAGE - 1);
                    let end = s.offset.saturating_add(s.file_size).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
                    (start..end).contains(&offset)
                })
            })
            .and_then(address)
    }

    /// The link-time address of `start`, if that and all up to `end` (exclusive) lie in one executable segment, at addresses that
    /// follow one another.
    pub(super) fn svma_of_range(&self, start: u64, end: u64) -> Option<Svma> {
        let executable = self.segments.iter().filter(|s| s.executable);
        let mut meeting = executable.filter(|s| s.offset < end && s.offset.saturating_add(s.file_size) > start);
        let segment = meeting.next()?;
        let whole = segment.offset <= start && end <= segment.offset.saturating_add(segment.file_size);
        (whole && start < end).then(|| Svma(segment.vaddr.wrapping_add(start - segment.offset)))
    }

    /// The offset in the file of the byte at a link-time address, if it is part of an executable segment.
    pub(super) fn offset_of_svma(&self, at: u64) -> Option<u64> {
        let within = |s: &&Segment| s.executable && at >= s.vaddr && at - s.vaddr <= s.file_size;
        self.segments.iter().find(within).and_then(|s| (at - s.vaddr).checked_add(s.offset))
    }

    /// `n` bytes of the file from a link-time address on, if they are part of one segment.
    pub(super) fn bytes_at(&self, at: u64, n: u64) -> Option<Vec<u8>> {
        let end = at.checked_add(n)?;
        let within = |s: &&Segment| at >= s.vaddr && end <= s.vaddr.saturating_add(s.file_size);
        let segment = self.segments.iter().find(within)?;
        self.source.read((at - segment.vaddr).checked_add(segment.offset)?, n)
    }

    /// The lowest and one past the highest link-time address that is loaded; 0 and 0 if nothing is.
    pub(super) fn loaded(&self) -> (u64, u64) {
        let start = self.segments.iter().map(|s| s.vaddr).min().unwrap_or(0);
        let end = self.segments.iter().map(|s| s.vaddr.saturating_add(s.mem_size)).max().unwrap_or(0);
        (start, end)
    }

    /// Sections that are part of memory. (Those of thread-local data are only where it is copied from.)
    pub(super) fn loaded_sections(&self) -> impl Iterator<Item = &Section> {
        const SHF_TLS: u64 = 0x400;
        self.sections.iter().filter(|s| s.flags & SHF_ALLOC != 0 && s.address > 0 && s.size > 0).filter(
            // What is not in the file of those takes no room.
            |s| s.flags & SHF_TLS == 0 || s.kind != SHT_NOBITS,
        )
    }

    /// The address ranges `[start, end)`, in whole pages, from which code can run.
    pub(super) fn executable_ranges(&self) -> Vec<(u64, u64)> {
        let ranges = self.segments.iter().filter(|s| s.executable && s.mem_size > 0);
        ranges
            .map(|s| {
                let end = s.vaddr.saturating_add(s.mem_size).checked_next_multiple_of(PAGE).unwrap_or(u64::MAX);
                (s.vaddr & !(PAGE - 1), end)
            })
            .collect()
    }
}

/// The `size` bytes that frames of Zstandard hold. A frame says how far back its parts may refer, and that much memory is
/// reserved at once, whatever comes of it. So no more is believed than `size` bytes can need: compressors that do not know how
/// much comes claim megabytes.
fn zstd(data: &[u8], size: u64) -> Result<Vec<u8>, String> {
    const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
    /// In the descriptor behind that: there is no window but the contents.
    const SINGLE: u8 = 0x20;
    /// The least window, as a power of two.
    const LEAST: u32 = 10;
    let mut data = data.to_vec();
    let needed = size.max(1 << LEAST).next_power_of_two();
    if data.starts_with(&MAGIC)
        && let [_, _, _, _, descriptor, window, ..] = &mut data[..]
        && *descriptor & SINGLE == 0
    {
        // The upper five bits are the power, and larger bytes larger windows.
        let enough = ((needed.trailing_zeros() - LEAST) << 3) as u8;
        *window = enough.min(*window);
    }
    let mut contents = Vec::with_capacity(usize::try_from(size).map_err(|e| e.to_string())?);
    let mut decoder = FrameDecoder::new();
    decoder.set_max_window_size(needed);
    decoder.decode_all_to_vec(&data, &mut contents).map_err(|e| e.to_string())?;
    if contents.len() as u64 != size {
        return Err(format!("{} bytes where the header says {size}", contents.len()));
    }
    Ok(contents)
}

/// The NUL-terminated string at `at` of a string table.
pub(super) fn string_at(table: &[u8], at: usize) -> Option<&[u8]> {
    let rest = table.get(at..)?;
    let end = rest.iter().position(|&b| b == 0)?;
    Some(&rest[..end])
}

fn build_id_in(mut notes: &[u8]) -> Option<Vec<u8>> {
    const NT_GNU_BUILD_ID: u32 = 3;
    loop {
        let name_size = u32_at(notes, 0)? as usize;
        let data_size = u32_at(notes, 4)? as usize;
        let kind = u32_at(notes, 8)?;
        let data_at = 12usize.checked_add(name_size.checked_next_multiple_of(4)?)?;
        let name = notes.get(12..12usize.checked_add(name_size)?)?;
        let data = notes.get(data_at..data_at.checked_add(data_size)?)?;
        if kind == NT_GNU_BUILD_ID && name == b"GNU\0" {
            return Some(data.to_vec());
        }
        notes = notes.get(data_at.checked_add(data_size.checked_next_multiple_of(4)?)?..)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A frame with a window and one block of bytes as they are.
    fn frame(window: u8, contents: &[u8]) -> Vec<u8> {
        let block = (contents.len() as u32) << 3 | 1;
        [&[0x28, 0xb5, 0x2f, 0xfd, 0, window][..], &block.to_le_bytes()[..3], contents].concat()
    }

    #[test]
    fn a_window_is_as_large_as_the_contents_need() {
        // 1 KiB, what compressors of unknown lengths say (2 MiB), and 64 GiB.
        for window in [0, 11 << 3, 26 << 3 | 7] {
            assert_eq!(zstd(&frame(window, b"contents"), 8).as_deref(), Ok(&b"contents"[..]), "{window}");
        }
        assert!(zstd(&frame(0, b"contents"), 9).is_err(), "too little");
        // The second frame is taken by its word, and its word is too large.
        let two = [frame(0, b"con"), frame(26 << 3, b"tents")].concat();
        assert!(zstd(&two, 8).is_err());
    }
}
