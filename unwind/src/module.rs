//! A module as it stands in memory: its frame descriptions, and which of them covers an address.
//!
//! Invariant: no more is read than the mappings hold, and no more than [`MOST_BYTES`], whatever headers claim.

use std::fs::File;
use std::os::unix::fs::FileExt;

use gimli::{BaseAddresses, CieOrFde, EhFrame, EhFrameHdr, LittleEndian, UnwindSection};

use crate::{Mapping, Memory};

/// Frame descriptions of large programs have some 20 MiB.
const MOST_BYTES: u64 = 256 << 20;
/// A file has a handful of mappings, and more where somebody has changed protections of parts of it.
pub(crate) const MOST_MAPPINGS: usize = 4096;
const MOST_HEADERS: u16 = 1024;
const MOST_NAMES: u64 = 1 << 20;

const ELF_HEADER: usize = 64;
const PT_LOAD: u32 = 1;
const PT_GNU_EH_FRAME: u32 = 0x6474_e550;

/// The frame descriptions of a module.
#[derive(Debug)]
pub(crate) struct Module {
    /// Address of `.eh_frame`.
    at: u64,
    /// The bytes from there on, to the end of its segment if the length is not known.
    pub(crate) frames: Vec<u8>,
    index: Index,
}

/// Where the description of an address is.
#[derive(Debug)]
enum Index {
    /// Address and bytes of `.eh_frame_hdr`, which the linker has sorted.
    Linked(u64, Vec<u8>),
    /// First addresses, sorted, and offsets in the section.
    Made(Vec<(u64, usize)>),
}

struct Segment {
    kind: u32,
    address: u64,
    size: u64,
}

impl Module {
    /// The module whose file begins at address `header`. `None` if it has no frame descriptions.
    pub(crate) fn read(memory: &dyn Memory, mappings: &[Mapping], header: u64) -> Option<Self> {
        let elf = bytes(memory, header, ELF_HEADER)?;
        if !elf.starts_with(b"\x7fELF\x02\x01") {
            return None;
        }
        let (entry, count) = (u16_at(&elf, 54)?, u16_at(&elf, 56)?.min(MOST_HEADERS));
        let table = bytes(memory, header.checked_add(u64_at(&elf, 32)?)?, usize::from(entry) * usize::from(count))?;
        let mut bias = None;
        let mut segments = Vec::new();
        for h in table.chunks_exact(usize::from(entry).max(56)) {
            let (kind, offset, address) = (u32_at(h, 0)?, u64_at(h, 8)?, u64_at(h, 16)?);
            if kind == PT_LOAD && offset == 0 && bias.is_none() {
                bias = Some(header.wrapping_sub(address));
            }
            segments.push(Segment { kind, address, size: u64_at(h, 32)? });
        }
        let bias = bias?;
        let Some(of_index) = segments.iter().find(|s| s.kind == PT_GNU_EH_FRAME) else {
            let (address, size) = section_of_frames(&memory.program()?, &elf)?;
            return Self::without_index(memory, mappings, address.wrapping_add(bias), size);
        };
        let index_at = of_index.address.wrapping_add(bias);
        let index = read_mapped(memory, mappings, index_at, of_index.size)?;
        let bases = BaseAddresses::default().set_eh_frame_hdr(index_at);
        let parsed = EhFrameHdr::new(&index, LittleEndian).parse(&bases, 8).ok()?;
        let at = parsed.eh_frame_ptr().direct().ok()?;
        let linked = at.wrapping_sub(bias);
        let within = |s: &&Segment| s.kind == PT_LOAD && linked >= s.address && linked - s.address < s.size;
        let segment = segments.iter().find(within)?;
        let size = segment.size - (linked - segment.address);
        if parsed.table().is_none() {
            return Self::without_index(memory, mappings, at, size);
        }
        let frames = read_mapped(memory, mappings, at, size)?;
        Some(Self { at, frames, index: Index::Linked(index_at, index) })
    }

    fn without_index(memory: &dyn Memory, mappings: &[Mapping], at: u64, size: u64) -> Option<Self> {
        let frames = read_mapped(memory, mappings, at, size)?;
        let section = EhFrame::new(&frames, LittleEndian);
        let bases = BaseAddresses::default().set_eh_frame(at);
        let mut made = Vec::new();
        let mut entries = section.entries(&bases);
        // What cannot be read ends the section: nobody knows where the next entry begins.
        while let Ok(Some(entry)) = entries.next() {
            if let CieOrFde::Fde(partial) = entry
                && let Ok(description) = partial.parse(EhFrame::cie_from_offset)
            {
                made.push((description.initial_address(), description.offset()));
            }
        }
        made.sort_unstable();
        Some(Self { at, frames, index: Index::Made(made) })
    }

    /// What addresses in descriptions are relative to.
    pub(crate) fn bases(&self) -> BaseAddresses {
        let bases = BaseAddresses::default().set_eh_frame(self.at);
        match self.index {
            Index::Linked(at, _) => bases.set_eh_frame_hdr(at),
            Index::Made(_) => bases,
        }
    }

    /// The offset of the description that covers `pc`, if there is one; if there is none, of any other.
    pub(crate) fn description_of(&self, pc: u64) -> Option<usize> {
        match &self.index {
            Index::Made(made) => made.get(made.partition_point(|d| d.0 <= pc).checked_sub(1)?).map(|d| d.1),
            Index::Linked(_, bytes) => {
                let bases = self.bases();
                let index = EhFrameHdr::new(bytes, LittleEndian).parse(&bases, 8).ok()?;
                let at = index.table()?.lookup(pc, &bases).ok()?.direct().ok()?;
                usize::try_from(at.checked_sub(self.at)?).ok()
            }
        }
    }
}

/// Address and size of `.eh_frame` by the sections of `file`, if that has the header `elf`.
fn section_of_frames(file: &File, elf: &[u8]) -> Option<(u64, u64)> {
    let read = |at: u64, len: u64| {
        let mut bytes = vec![0; usize::try_from(len).ok()?];
        file.read_exact_at(&mut bytes, at).ok().map(|()| bytes)
    };
    if read(0, ELF_HEADER as u64)? != elf {
        return None;
    }
    let (entry, count, names) = (u16_at(elf, 58)?, u16_at(elf, 60)?.min(MOST_HEADERS), u16_at(elf, 62)?);
    let table = read(u64_at(elf, 40)?, u64::from(entry) * u64::from(count))?;
    let headers = || table.chunks_exact(usize::from(entry).max(ELF_HEADER));
    let names = headers().nth(names.into())?;
    let names = read(u64_at(names, 24)?, u64_at(names, 32)?.min(MOST_NAMES))?;
    let named = |h: &[u8]| u32_at(h, 0).and_then(|at| names.get(at as usize..)?.split(|&b| b == 0).next());
    let section = headers().find(|h| named(h) == Some(b".eh_frame"))?;
    Some((u64_at(section, 16)?, u64_at(section, 32)?))
}

/// `size` bytes at `at`, or fewer where the mappings end before that.
fn read_mapped(memory: &dyn Memory, mappings: &[Mapping], at: u64, size: u64) -> Option<Vec<u8>> {
    let mut end = at;
    for m in &mappings[mappings.partition_point(|m| m.end <= at)..] {
        if m.start > end {
            break;
        }
        end = m.end;
    }
    let size = size.min(end - at).min(MOST_BYTES);
    let mut bytes = vec![0; usize::try_from(size).ok()?];
    let got = memory.read(at, &mut bytes);
    bytes.truncate(got);
    (!bytes.is_empty()).then_some(bytes)
}

fn bytes(memory: &dyn Memory, at: u64, len: usize) -> Option<Vec<u8>> {
    let mut bytes = vec![0; len];
    (memory.read(at, &mut bytes) == len).then_some(bytes)
}

fn u16_at(data: &[u8], at: usize) -> Option<u16> {
    data.get(at..)?.first_chunk().copied().map(u16::from_le_bytes)
}

fn u32_at(data: &[u8], at: usize) -> Option<u32> {
    data.get(at..)?.first_chunk().copied().map(u32::from_le_bytes)
}

fn u64_at(data: &[u8], at: usize) -> Option<u64> {
    data.get(at..)?.first_chunk().copied().map(u64::from_le_bytes)
}
