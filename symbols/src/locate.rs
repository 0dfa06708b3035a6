//! Finding separate debug files, and making sure that a found file belongs to the object.
//!
//! The order is: the build-id folder, then the name in `.gnu_debuglink` next to the object, in its `.debug` folder and
//! under each debug root. A file counts only if it has the same build identifier or, without one, the checksum that the
//! link names: names from a file of another build would be wrong without anyone noticing.
//!
//! Links are data from the profiled file: they are never followed to anything but regular files, and the name in a
//! `.gnu_debuglink` may not contain a slash.

use std::{
    ffi::OsStr,
    fmt::Write as _,
    fs::File,
    io::Read,
    os::unix::ffi::OsStrExt,
    path::{Path, PathBuf},
};

use super::image::{Image, string_at, u32_at};
use super::problems::Problems;

/// What a search brought.
pub(super) struct Found {
    pub(super) image: Option<Image>,
    pub(super) warnings: Problems,
}

/// The separate debug file of `image`, whose own file is in `folder`.
pub(super) fn debug_file(image: &Image, folder: Option<&Path>, roots: &[PathBuf]) -> Found {
    let mut warnings = Problems::default();
    let id = image.build_id();
    if let Some(found) = by_build_id(&id, roots, &mut warnings) {
        return Found { image: Some(found), warnings };
    }
    let link = image.data(".gnu_debuglink").unwrap_or_else(|e| {
        warnings.push(e);
        None
    });
    let found = link.and_then(|link| by_link(&link, &id, folder, roots, &mut warnings));
    Found { image: found, warnings }
}

/// The file that several debug files share (`.gnu_debugaltlink` of `image`); relative names refer to `image`'s folder.
pub(super) fn alternate_file(image: &Image, folder: Option<&Path>, roots: &[PathBuf]) -> Found {
    let mut warnings = Problems::default();
    let link = image.data(".gnu_debugaltlink").unwrap_or_else(|e| {
        warnings.push(e);
        None
    });
    let Some(link) = link else { return Found { image: None, warnings } };
    let Some(name) = string_at(&link, 0) else {
        warnings.push("broken .gnu_debugaltlink");
        return Found { image: None, warnings };
    };
    let id = &link[name.len() + 1..];
    let mut candidates = Vec::new();
    let path = Path::new(OsStr::from_bytes(name));
    if path.is_absolute() {
        candidates.push(path.to_path_buf());
    } else {
        let own = image.path.as_deref().and_then(|p| p.canonicalize().ok());
        if let Some(folder) = own.as_deref().and_then(Path::parent).or(folder) {
            candidates.push(folder.join(path));
        }
    }
    if let Some(file) = path.file_name() {
        candidates.extend(roots.iter().map(|root| root.join(".dwz").join(file)));
    }
    for candidate in candidates {
        if let Ok(image) = Image::open(&candidate)
            && !id.is_empty()
            && image.build_id() == id
        {
            return Found { image: Some(image), warnings };
        }
    }
    if let Some(image) = by_build_id(id, roots, &mut warnings) {
        return Found { image: Some(image), warnings };
    }
    warnings.push(format_args!("shared debug file {} not found", path.display()));
    Found { image: None, warnings }
}

fn by_build_id(id: &[u8], roots: &[PathBuf], warnings: &mut Problems) -> Option<Image> {
    // One byte for the folder and one for the file are the least that can be a path.
    const MAX_ID: usize = 64;
    if id.len() < 2 || id.len() > MAX_ID {
        return None;
    }
    let mut hex = String::new();
    for byte in id {
        let _ = write!(hex, "{byte:02x}");
    }
    let file = format!(".build-id/{}/{}.debug", &hex[..2], &hex[2..]);
    for root in roots {
        let path = root.join(&file);
        let Ok(image) = Image::open(&path) else { continue };
        if image.build_id() == id {
            return Some(image);
        }
        warnings.push(format_args!("{} has another build id, ignored", path.display()));
    }
    None
}

fn by_link(link: &[u8], id: &[u8], folder: Option<&Path>, roots: &[PathBuf], warnings: &mut Problems) -> Option<Image> {
    let parsed = string_at(link, 0).and_then(|name| {
        let crc = u32_at(link, (name.len() + 1).next_multiple_of(4))?;
        (!name.is_empty() && !name.contains(&b'/')).then(|| (OsStr::from_bytes(name), crc))
    });
    let Some((name, crc)) = parsed else {
        warnings.push("broken .gnu_debuglink, ignored");
        return None;
    };
    let folder = folder?;
    let mut candidates = vec![folder.join(name), folder.join(".debug").join(name)];
    let relative = folder.strip_prefix("/").unwrap_or(folder);
    for root in roots {
        candidates.push(root.join(relative).join(name));
        // On systems where /lib is /usr/lib the debug package may have been made for either.
        candidates.push(match relative.strip_prefix("usr") {
            Ok(rest) => root.join(rest).join(name),
            Err(_) => root.join("usr").join(relative).join(name),
        });
    }
    for path in candidates {
        let Ok(image) = Image::open(&path) else { continue };
        let same = if id.is_empty() || image.build_id().is_empty() {
            file_crc(&path) == Some(crc)
        } else {
            image.build_id() == id
        };
        if same {
            return Some(image);
        }
        warnings.push(format_args!("{} does not belong to this file, ignored", path.display()));
    }
    warnings.push(format_args!("debug file {} not found", Path::new(name).display()));
    None
}

/// Eight tables, so that eight bytes are taken in one step.
static CRC_TABLES: [[u32; 256]; 8] = {
    let mut tables = [[0u32; 256]; 8];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg());
            bit += 1;
        }
        tables[0][i] = crc;
        i += 1;
    }
    let mut t = 1;
    while t < 8 {
        let mut i = 0;
        while i < 256 {
            let before = tables[t - 1][i];
            tables[t][i] = (before >> 8) ^ tables[0][(before & 0xff) as usize];
            i += 1;
        }
        t += 1;
    }
    tables
};

/// Goes on with the CRC-32 (of zlib) `crc` over `data`; starts at 0.
fn crc32(crc: u32, data: &[u8]) -> u32 {
    let t = &CRC_TABLES;
    let mut crc = !crc;
    let mut chunks = data.chunks_exact(8);
    for c in &mut chunks {
        let low = crc ^ u32::from_le_bytes([c[0], c[1], c[2], c[3]]);
        crc = t[7][(low & 0xff) as usize]
            ^ t[6][(low >> 8 & 0xff) as usize]
            ^ t[5][(low >> 16 & 0xff) as usize]
            ^ t[4][(low >> 24) as usize]
            ^ t[3][usize::from(c[4])]
            ^ t[2][usize::from(c[5])]
            ^ t[1][usize::from(c[6])]
            ^ t[0][usize::from(c[7])];
    }
    for &b in chunks.remainder() {
        crc = (crc >> 8) ^ t[0][((crc ^ u32::from(b)) & 0xff) as usize];
    }
    !crc
}

fn file_crc(path: &Path) -> Option<u32> {
    let mut file = File::open(path).ok()?;
    let mut buf = vec![0; 1 << 18];
    let mut crc = 0;
    loop {
        match file.read(&mut buf).ok()? {
            0 => return Some(crc),
            n => crc = crc32(crc, &buf[..n]),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::crc32;

    #[test]
    fn checksum_is_that_of_zlib() {
        assert_eq!(crc32(0, b"123456789"), 0xcbf4_3926);
        assert_eq!(crc32(crc32(0, b"1234567890123"), b"45678"), crc32(0, b"123456789012345678"));
        assert_eq!(crc32(0, b""), 0);
    }
}
