//! Changes to ELF files that leave them files: a header's field, a section's contents, which may become longer or shorter,
//! compressed or not; and, within sections, numbers, entries and opcodes of the kind that stands there.

use std::io::{Read, Write};

use flate2::{Compression, read::ZlibDecoder, write::ZlibEncoder};

use super::{files, joined};
use crate::mutate::Random;

/// Changes one of the files of an input once.
pub(super) fn change(random: &mut Random, input: &mut Vec<u8>) {
    let mut all: Vec<Vec<u8>> = files(input).into_iter().map(<[u8]>::to_vec).collect();
    let which = random.below(all.len());
    let file = &mut all[which];
    match random.below(10) {
        0 => field_of(random, file, 0..64),
        1 => {
            let start = number(file, 32, 8) as usize;
            field_of(random, file, start..start.saturating_add(56 * 6));
        }
        2 => header(random, file),
        _ => contents(random, file),
    }
    *input = joined(&all);
}

/// A little-endian number; 0 where there is none.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let part = at.checked_add(size).and_then(|end| bytes.get(at..end)).unwrap_or_default();
    part.iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

fn put(bytes: &mut [u8], at: usize, size: usize, value: u64) {
    if let Some(part) = at.checked_add(size).and_then(|end| bytes.get_mut(at..end)) {
        part.copy_from_slice(&value.to_le_bytes()[..size]);
    }
}

/// Changes a number of 2, 4 or 8 bytes that is aligned, as those of headers are.
fn field_of(random: &mut Random, bytes: &mut [u8], range: std::ops::Range<usize>) {
    let range = range.start.min(bytes.len())..range.end.min(bytes.len());
    if range.len() < 8 {
        return;
    }
    let size = *random.pick(&[2, 4, 8]);
    let at = range.start + random.below(range.len()) / size * size;
    let old = number(bytes, at, size);
    let value = match random.below(3) {
        0 => old.wrapping_add(random.below(9) as u64).wrapping_sub(4),
        1 => old << random.below(9),
        _ => random.number(),
    };
    put(bytes, at, size, value);
}

/// A section: where its header is, its name, where its contents are.
struct Section {
    header: usize,
    name: Vec<u8>,
    offset: usize,
    size: usize,
    compressed: bool,
}

const HEADER: usize = 64;
const COMPRESSED: u64 = 0x800;
/// The length of the header of a compressed section.
const PACKED: usize = 24;

fn sections(file: &[u8]) -> Vec<Section> {
    let start = number(file, 40, 8) as usize;
    let count = (number(file, 60, 2) as usize).min(100);
    let header = |i: usize| start.saturating_add(i * HEADER);
    let names = number(file, header(number(file, 62, 2) as usize).saturating_add(24), 8) as usize;
    (0..count)
        .map(header)
        .filter(|at| at.saturating_add(HEADER) <= file.len())
        .map(|at| {
            let name = file.get(names.saturating_add(number(file, at, 4) as usize)..).unwrap_or_default();
            let name = name.iter().take(30).take_while(|byte| **byte != 0).copied().collect();
            let (offset, size) = (number(file, at + 24, 8) as usize, number(file, at + 32, 8) as usize);
            let compressed = number(file, at + 8, 8) & COMPRESSED != 0;
            Section { header: at, name, offset, size, compressed }
        })
        .collect()
}

/// The length that a compressed section claims for its contents; 0: it is not compressed.
fn claim(file: &[u8], section: &Section) -> usize {
    let old = file.get(section.offset..).unwrap_or_default().strip_prefix(b"ZLIB");
    let old = old.and_then(|rest| Some(u64::from_be_bytes(*rest.first_chunk()?)));
    let new = section.offset.checked_add(8).map_or(0, |at| number(file, at, 8));
    (if section.compressed { new } else { old.unwrap_or(0) }) as usize
}

/// The lengths that a file's compressed sections claim for their contents, in all.
pub(super) fn claimed(file: &[u8]) -> usize {
    sections(file).iter().fold(0, |sum: usize, section| sum.saturating_add(claim(file, section)))
}

/// Whether a section of a file says that it is compressed in the newer way.
pub(super) fn has_zstd(file: &[u8]) -> bool {
    sections(file).iter().any(|section| section.compressed && number(file, section.offset, 4) == 2)
}

/// The bytes of tables that the library keeps an entry at a time, unpacked: abbreviations and files of line programs.
pub(super) fn tables(file: &[u8]) -> usize {
    let tables = [b".debug_abbrev".as_slice(), b".debug_line", b".zdebug_abbrev", b".zdebug_line"];
    let all = sections(file);
    let unpacked = |section: &Section| claim(file, section).min(64 * file.len()).max(section.size.min(file.len()));
    all.iter().filter(|section| tables.contains(&&*section.name)).map(unpacked).sum()
}

/// Changes a section's header: a field, or two of them change places.
fn header(random: &mut Random, file: &mut [u8]) {
    let all = sections(file);
    if all.is_empty() {
        return;
    }
    let (one, other) = (random.pick(&all).header, random.pick(&all).header);
    match random.below(4) {
        0 => {
            let (a, b) = (number(file, one, 4), number(file, other, 4));
            put(file, one, 4, b);
            put(file, other, 4, a);
        }
        1 => {
            for field in [24, 32] {
                let value = number(file, other + field, 8);
                put(file, one + field, 8, value);
            }
        }
        _ => field_of(random, file, one..one + HEADER),
    }
}

/// Changes what a section holds; its header says where that is then.
fn contents(random: &mut Random, file: &mut Vec<u8>) {
    let mut all = sections(file);
    all.retain(|section| section.offset.checked_add(section.size).is_some_and(|end| end <= file.len()));
    let wanted = |section: &Section| {
        let of_interest: [&[u8]; 7] =
            [b".debug_line", b".debug_info", b".debug_abbrev", b".debug_", b".symtab", b".zdebug_", b".dynsym"];
        of_interest.iter().any(|start| section.name.starts_with(start))
    };
    let interesting: Vec<&Section> = all.iter().filter(|section| wanted(section)).collect();
    let section = if !interesting.is_empty() && random.below(6) > 0 {
        *random.pick(&interesting)
    } else if !all.is_empty() {
        random.pick(&all)
    } else {
        return;
    };
    let mut bytes = file[section.offset..section.offset + section.size].to_vec();
    let mut flags = number(file, section.header + 8, 8);
    let within = if section.compressed { unpacked(&bytes) } else { None };
    match within {
        Some(mut plain) if random.below(4) > 0 => {
            edit(random, &section.name, &mut plain);
            let claimed = if random.below(8) == 0 { random.number() } else { plain.len() as u64 };
            bytes = packed(&plain, claimed);
        }
        _ if !section.compressed && section.name.starts_with(b".debug_") && random.below(10) == 0 => {
            flags |= COMPRESSED;
            let claimed = if random.below(4) == 0 { random.number() } else { bytes.len() as u64 };
            bytes = packed(&bytes, claimed);
        }
        _ => edit(random, &section.name, &mut bytes),
    }
    put(file, section.header + 8, 8, flags);
    if bytes.len() <= section.size {
        let end = section.offset + bytes.len();
        file[section.offset..end].copy_from_slice(&bytes);
    } else if file.len() + bytes.len() < super::TARGET.largest {
        let end = file.len() as u64;
        put(file, section.header + 24, 8, end);
        file.extend_from_slice(&bytes);
    } else {
        return;
    }
    put(file, section.header + 32, 8, bytes.len() as u64);
}

fn unpacked(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut plain = Vec::new();
    ZlibDecoder::new(bytes.get(PACKED..)?).take(1 << 20).read_to_end(&mut plain).ok()?;
    Some(plain)
}

/// A compressed section that claims to be so long.
fn packed(plain: &[u8], claimed: u64) -> Vec<u8> {
    let mut out = vec![0; PACKED];
    put(&mut out, 0, 4, 1);
    put(&mut out, 8, 8, claimed);
    put(&mut out, 16, 8, 1);
    let mut encoder = ZlibEncoder::new(out, Compression::fast());
    encoder.write_all(plain).and_then(|()| encoder.finish()).unwrap_or_default()
}

/// Changes the contents of a section of that name.
fn edit(random: &mut Random, name: &[u8], bytes: &mut Vec<u8>) {
    match name {
        b".symtab" | b".dynsym" if random.below(3) > 0 => symbols(random, bytes),
        b".debug_line" | b".zdebug_line" if random.below(2) > 0 => line_program(random, bytes),
        b".debug_info" if random.below(6) == 0 => units(random, bytes),
        _ => anywhere(random, bytes),
    }
}

fn leb128(mut value: u64) -> Vec<u8> {
    let mut out = Vec::new();
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        out.push(if value == 0 { low } else { low | 0x80 });
        if value == 0 {
            return out;
        }
    }
}

/// Changes of no particular kind.
fn anywhere(random: &mut Random, bytes: &mut Vec<u8>) {
    let at = random.below(bytes.len() + 1);
    match random.below(8) {
        0 if !bytes.is_empty() => {
            let at = random.below(bytes.len());
            bytes[at] = random.below(256) as u8;
        }
        1 => {
            let length = random.below(4);
            bytes.splice(at..(at + length).min(bytes.len()), leb128(random.number()));
        }
        2 => put(bytes, at, *random.pick(&[2, 4, 8]), random.number()),
        3 => drop(bytes.drain(random.range(bytes.len()))),
        4 => {
            let copy = bytes[random.range(bytes.len())].to_vec();
            let times = 1 << random.below(12);
            if copy.len() * times < 1 << 16 {
                bytes.splice(at..at, copy.repeat(times));
            }
        }
        5 => {
            // A number that does not end.
            let length = 1 + random.below(14);
            bytes.splice(at..at, vec![0xff; length]);
        }
        _ => {
            let size = bytes.len();
            field_of(random, bytes, at.min(size.saturating_sub(8))..size);
        }
    }
}

/// Changes entries of a symbol table: values and sizes next to those of others, or many entries.
fn symbols(random: &mut Random, bytes: &mut Vec<u8>) {
    const ENTRY: usize = 24;
    let count = bytes.len() / ENTRY;
    if count == 0 {
        return;
    }
    let (one, other) = (random.below(count) * ENTRY, random.below(count) * ENTRY);
    match random.below(5) {
        0 => {
            let value = number(bytes, other + 8, 8).wrapping_add(random.below(5) as u64).wrapping_sub(2);
            put(bytes, one + 8, 8, value);
        }
        1 => put(bytes, one + 16, 8, random.number()),
        2 => put(bytes, one + 4, 1, (*random.pick(&[0x12, 0x22, 0x02, 0x1a, 0x11, 0xff])) as u64),
        3 => put(bytes, one, 4, random.number() & 0xffff),
        _ => {
            // Each a little longer than the one before, or behind it.
            let entry = bytes[one..one + ENTRY].to_vec();
            let (start, step) = (number(&entry, 8, 8), random.below(3) as u64);
            let size = number(&entry, 16, 8).max(1);
            for i in 0..1 << random.below(11) {
                let mut new = entry.clone();
                put(&mut new, 8, 8, start.wrapping_add(i * step));
                put(&mut new, 16, 8, size.wrapping_add(i * random.below(3) as u64));
                bytes.extend_from_slice(&new);
            }
        }
    }
}

/// Puts opcodes into a line program, or a field of its header; its length is made right as a rule.
fn line_program(random: &mut Random, bytes: &mut Vec<u8>) {
    // Programs one after another; any of them.
    let mut starts = vec![0];
    while let Some(next) =
        starts.last().map(|at| at + 4 + number(bytes, *at, 4) as usize).filter(|at| *at < bytes.len())
    {
        if starts.len() > 50 {
            break;
        }
        starts.push(next);
    }
    let start = *random.pick(&starts);
    let length = number(bytes, start, 4) as usize;
    let end = (start + 4).saturating_add(length).min(bytes.len());
    if end <= start + 12 {
        return anywhere(random, bytes);
    }
    if random.below(6) == 0 {
        return field_of(random, bytes, start..(start + 40).min(end));
    }
    let at = start + 12 + random.below(end - start - 11);
    let mut code = Vec::new();
    for _ in 0..=random.below(6) {
        match random.below(14) {
            0 => code.extend([0, 1, 1]),
            1 => {
                code.extend([0, 9, 2]);
                code.extend(random.number().to_le_bytes());
            }
            2 => code.extend([[2].to_vec(), leb128(random.number())].concat()),
            3 => code.extend([[3].to_vec(), leb128(random.number())].concat()),
            4 => code.extend([[4].to_vec(), leb128(random.below(6) as u64)].concat()),
            5 => code.extend([9, random.below(256) as u8, random.below(256) as u8]),
            6 => code.push(8),
            7 => code.extend([[0].to_vec(), leb128(random.number()), [random.below(5) as u8].to_vec()].concat()),
            8 => code.push(1),
            9 => code.extend([10 + random.below(3) as u8, random.below(4) as u8]),
            _ => code.push(13 + random.below(243) as u8),
        }
    }
    if random.below(10) == 0 {
        code = code.repeat(1 << random.below(12));
    }
    let gone = if random.below(3) == 0 { random.below(4).min(end - at) } else { 0 };
    let grown = code.len();
    bytes.splice(at..at + gone, code);
    if random.below(8) > 0 {
        put(bytes, start, 4, (length + grown - gone) as u64);
    }
}

/// Copies a unit many times.
fn units(random: &mut Random, bytes: &mut Vec<u8>) {
    let length = 4 + number(bytes, 0, 4) as usize;
    let Some(unit) = bytes.get(..length).map(<[u8]>::to_vec) else { return };
    let times = 1 << random.below(12);
    if unit.len() * times < 1 << 16 {
        bytes.extend(unit.repeat(times));
    }
}
