//! The guest's memory map, as `/proc/PID/maps` tells it: which file is behind an address, where there is room. Lines that
//! cannot be understood are passed over. The map is a copy of one moment; whoever keeps it must know when it is out of date.

use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::PathBuf;

use grind_types::Tid;

/// One mapping.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Region {
    /// First address.
    pub start: u64,
    /// One past the last address.
    pub end: u64,
    /// It may be read.
    pub read: bool,
    /// It may be written to.
    pub write: bool,
    /// It may be executed.
    pub exec: bool,
    /// What is written to it is seen by others that map it.
    pub shared: bool,
    /// File offset of `start`.
    pub offset: u64,
    /// Major and minor number of the device that the file is on.
    pub device: (u32, u32),
    /// The number of the file on that device; 0 where there is none.
    pub inode: u64,
    /// The file, or a name in brackets, or empty.
    pub name: Vec<u8>,
}

impl Region {
    /// The path of the file behind it.
    pub fn path(&self) -> Option<PathBuf> {
        (self.name.first() == Some(&b'/')).then(|| {
            let name = self.name.strip_suffix(b" (deleted)").unwrap_or(&self.name);
            PathBuf::from(OsString::from_vec(name.to_vec()))
        })
    }
}

/// All mappings of the process of `tid`, by address; none if that thread has ended, whatever becomes of its process.
pub fn read(tid: Tid) -> std::io::Result<Vec<Region>> {
    let text = std::fs::read(format!("/proc/{tid}/maps"))?;
    Ok(text.split(|&b| b == b'\n').filter_map(parse).collect())
}

/// Where the heap that `brk` grows and shrinks begins and ends, to whole pages; it may have several mappings with rights of their own.
pub fn heap(regions: &[Region]) -> Option<(u64, u64)> {
    let mut parts = regions.iter().filter(|r| r.name == b"[heap]");
    let first = parts.next()?;
    Some((first.start, parts.next_back().unwrap_or(first).end))
}

fn parse(line: &[u8]) -> Option<Region> {
    // start-end perms offset dev inode   name
    let mut rest = line;
    let mut field = || {
        let end = rest.iter().position(|&b| b == b' ').unwrap_or(rest.len());
        let f = &rest[..end];
        let next = rest[end..].iter().position(|&b| b != b' ').map_or(rest.len(), |n| end + n);
        rest = &rest[next..];
        std::str::from_utf8(f).ok()
    };
    let (start, end) = field()?.split_once('-')?;
    let perms = field()?.as_bytes();
    let offset = field()?;
    let (major, minor) = field()?.split_once(':')?;
    let inode = field()?;
    Some(Region {
        start: u64::from_str_radix(start, 16).ok()?,
        end: u64::from_str_radix(end, 16).ok()?,
        read: perms.first() == Some(&b'r'),
        write: perms.get(1) == Some(&b'w'),
        exec: perms.get(2) == Some(&b'x'),
        shared: perms.get(3) == Some(&b's'),
        offset: u64::from_str_radix(offset, 16).ok()?,
        device: (u32::from_str_radix(major, 16).ok()?, u32::from_str_radix(minor, 16).ok()?),
        inode: inode.parse().ok()?,
        name: rest.to_vec(),
    })
}

/// The highest address that user space can have, one past (4-level paging, less a guard page).
pub(crate) const USER_END: u64 = 0x7fff_ffff_f000;

/// Free stretches between mappings, from `low` on, by address.
pub fn gaps(regions: &[Region], low: u64) -> Vec<(u64, u64)> {
    let mut at = low;
    let mut out = Vec::new();
    for r in regions {
        if r.start >= USER_END {
            break;
        }
        if r.start > at {
            out.push((at, r.start));
        }
        at = at.max(r.end);
    }
    if at < USER_END {
        out.push((at, USER_END));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_with_blanks_in_its_name() {
        let r = parse(b"7f0000001000-7f0000003000 r-xp 00002000 08:01 131 /a b (deleted)").unwrap();
        assert_eq!((r.start, r.end, r.offset), (0x7f00_0000_1000, 0x7f00_0000_3000, 0x2000));
        assert_eq!((r.device, r.inode), ((8, 1), 131));
        assert!(r.exec && r.read && !r.write && !r.shared);
        assert_eq!(r.path(), Some(PathBuf::from("/a b")));
        assert_eq!(parse(b""), None);
        assert_eq!(parse(b"nonsense"), None);
    }

    #[test]
    fn gaps_are_what_lies_between() {
        let line = |s: u64, e: u64| parse(format!("{s:x}-{e:x} r--p 0 0:0 0 ").as_bytes()).unwrap();
        let regions = [line(0x10000, 0x20000), line(0x20000, 0x30000), line(0x50000, 0x60000)];
        assert_eq!(gaps(&regions, 0x1000), [(0x1000, 0x10000), (0x30000, 0x50000), (0x60000, USER_END)]);
    }
}
