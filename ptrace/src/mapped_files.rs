//! Finds the files behind mappings of a process, and opens each once.
//!
//! A file is found through `/proc/PID`: by the mapping itself, where that is allowed; else by a name, or a descriptor of the program, that
//! leads to it. What is found by a name is compared with what the mapping says, and with the program's memory where the
//! kernel tells of devices in two ways. What must never happen: that another file of the same name is taken for it.

use std::collections::{HashMap, HashSet};
use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use grind_types::mapped_file::{Stamp, open};
use grind_types::{MappedFile, Tid};
use nix::libc;

use crate::Memory;
use crate::maps::Region;

/// Descriptors of the program that are looked at for one that leads to the file.
const MOST_DESCRIPTORS: usize = 256;
/// Bytes of code that are compared, where names are not enough.
const COMPARED: u64 = 1 << 16;

/// The files that are mapped at present, so that each is opened once, however many processes map it.
#[derive(Debug, Default)]
pub struct MappedFiles {
    known: HashMap<((u32, u32), u64), Weak<MappedFile>>,
    /// The kernel does not let us open files by their mappings.
    by_name_only: bool,
    /// What the user has been told of.
    told: HashSet<PathBuf>,
}

impl MappedFiles {
    /// The file behind a mapping that `tid` has; `None` if there is none.
    pub fn of(&mut self, tid: Tid, memory: &Memory, r: &Region) -> Option<Arc<MappedFile>> {
        r.path()?;
        let key = (r.device, r.inode);
        if let Some(known) = self.known.get(&key).and_then(Weak::upgrade)
            && known.is_unchanged()
        {
            return Some(known);
        }
        let content = self.find(tid, memory, r);
        let file = Arc::new(MappedFile::found(r.device, r.inode, content));
        self.known.retain(|_, file| file.strong_count() > 0);
        self.known.insert(key, Arc::downgrade(&file));
        Some(file)
    }

    fn find(&mut self, tid: Tid, memory: &Memory, r: &Region) -> io::Result<(File, Stamp)> {
        if !self.by_name_only {
            match open(Path::new(&format!("/proc/{tid}/map_files/{:x}-{:x}", r.start, r.end))) {
                Err(e) if e.kind() == io::ErrorKind::PermissionDenied => self.by_name_only = true,
                found => return found,
            }
        }
        let mut failure = io::Error::from(io::ErrorKind::NotFound);
        let named = r.name.strip_prefix(b"/").unwrap_or(&r.name);
        let named = Path::new(&format!("/proc/{tid}/root")).join(OsStr::from_bytes(named));
        let descriptors = || {
            let list = fs::read_dir(format!("/proc/{tid}/fd")).into_iter().flatten().take(MOST_DESCRIPTORS);
            list.filter_map(|entry| Some(entry.ok()?.path()))
                .filter(|path| fs::metadata(path).is_ok_and(|m| m.is_file() && m.ino() == r.inode))
        };
        let candidates = [PathBuf::from(format!("/proc/{tid}/exe")), named];
        for candidate in candidates.into_iter().chain(std::iter::once_with(descriptors).flatten()) {
            match open(&candidate) {
                Ok((file, stamp)) if is_behind(&file, &stamp, memory, r) => return Ok((file, stamp)),
                Ok(_) => {}
                Err(e) if e.kind() == io::ErrorKind::NotFound => {}
                Err(e) => failure = e,
            }
        }
        Err(failure)
    }

    /// Says for which of these files names may be missing, because they are not what was mapped.
    pub fn complain<'m>(
        &mut self,
        mapped: impl IntoIterator<Item = (&'m Path, &'m MappedFile)>,
        mut say: impl FnMut(String),
    ) {
        for (path, file) in mapped {
            if let Some(text) = self.complaint(path, file) {
                say(text);
            }
        }
    }

    /// What the user should be told of a file of this name, once.
    fn complaint(&mut self, path: &Path, file: &MappedFile) -> Option<String> {
        let why = match file.file() {
            Ok(_) if file.is_unchanged() => return None,
            Ok(_) => "has been written to since it was mapped".to_owned(),
            Err(io::ErrorKind::NotFound) => "is not the file any more that was mapped".to_owned(),
            // A device, or memory that is shared: it has no names.
            Err(io::ErrorKind::InvalidInput) => return None,
            Err(e) => format!("cannot be opened ({e})"),
        };
        self.told.insert(path.to_owned()).then(|| format!("{} {why}: names of its code may be missing", path.display()))
    }
}

/// Whether `file` is what the mapping shows. Some file systems have one number for their files' device in the memory map and
/// another elsewhere: then the bytes decide.
fn is_behind(file: &File, stamp: &Stamp, memory: &Memory, r: &Region) -> bool {
    if stamp.inode != r.inode {
        return false;
    }
    if r.device == (libc::major(stamp.device), libc::minor(stamp.device)) {
        return true;
    }
    let len = (r.end - r.start).min(COMPARED).min(stamp.size.saturating_sub(r.offset)) as usize;
    let (mut mapped, mut stored) = (vec![0; len], vec![0; len]);
    len > 0
        && memory.read(r.start, &mut mapped) == len
        && file.read_exact_at(&mut stored, r.offset).is_ok()
        && mapped == stored
}

#[cfg(test)]
mod tests {
    use grind_types::Pid;

    use super::*;

    /// A mapping of this program's own code, as the kernel shows it.
    fn own_code() -> (Tid, Memory, Region) {
        let tid = Tid::main_of(Pid::own());
        let here = own_code as *const () as u64;
        let regions = crate::maps::read(tid).unwrap();
        let region = regions.into_iter().find(|r| (r.start..r.end).contains(&here)).unwrap();
        (tid, Memory::open(tid).unwrap(), region)
    }

    #[test]
    fn a_mapping_leads_to_its_file_with_and_without_the_right_to_ask_for_it() {
        let (tid, memory, region) = own_code();
        let own = File::open("/proc/self/exe").unwrap();
        let mut found = Vec::new();
        for by_name_only in [false, true] {
            let mut files = MappedFiles { by_name_only, ..MappedFiles::default() };
            let file = files.of(tid, &memory, &region).unwrap();
            assert_eq!(Stamp::of(file.file().unwrap().0).unwrap(), Stamp::of(&own).unwrap());
            assert!(file.is_unchanged() && file.is_behind(region.device, region.inode));
            let again = files.of(tid, &memory, &region).unwrap();
            assert!(Arc::ptr_eq(&file, &again), "it is opened once");
            assert_eq!(files.complaint(Path::new("/x"), &file), None);
            found.push(file);
        }
        assert_eq!(found[0], found[1]);
    }

    #[test]
    fn devices_that_differ_are_decided_by_content() {
        let (tid, memory, region) = own_code();
        let mut files = MappedFiles { by_name_only: true, ..MappedFiles::default() };
        let odd = Region { device: (77, 7), ..region.clone() };
        assert!(files.of(tid, &memory, &odd).unwrap().file().is_ok());
        // The same file, but not what is mapped there.
        let wrong = Region { offset: region.offset + 4096, ..odd.clone() };
        let mut files = MappedFiles { by_name_only: true, ..MappedFiles::default() };
        assert_eq!(files.of(tid, &memory, &wrong).unwrap().file().err(), Some(io::ErrorKind::NotFound));
    }

    #[test]
    fn another_file_of_that_name_is_not_taken() {
        let (tid, memory, region) = own_code();
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("other");
        fs::copy("/proc/self/exe", &path).unwrap();
        let stamp = open(&path).unwrap().1;
        let other = Region { name: path.as_os_str().as_bytes().to_vec(), inode: stamp.inode + 1, ..region.clone() };
        let mut files = MappedFiles { by_name_only: true, ..MappedFiles::default() };
        let file = files.of(tid, &memory, &other).unwrap();
        assert_eq!(file.file().err(), Some(io::ErrorKind::NotFound));
        let said = files.complaint(&path, &file).unwrap();
        assert!(
            said.ends_with("other is not the file any more that was mapped: names of its code may be missing"),
            "{said}"
        );
        assert_eq!(files.complaint(&path, &file), None, "once");
        assert!(files.of(tid, &memory, &Region { name: b"[heap]".to_vec(), ..region }).is_none());
    }

    #[test]
    fn what_is_written_to_is_not_the_same_any_more() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("library");
        fs::write(&path, "one").unwrap();
        let before = MappedFile::at(&path);
        assert!(before.is_unchanged() && before == MappedFile::at(&path));
        fs::write(&path, "other").unwrap();
        assert!(!before.is_unchanged() && before != MappedFile::at(&path));
        let said = MappedFiles::default().complaint(&path, &before).unwrap();
        assert!(said.contains("has been written to since"), "{said}");
        // A name that leads elsewhere changes nothing.
        let before = MappedFile::at(&path);
        fs::rename(&path, dir.path().join("old")).unwrap();
        fs::write(&path, "third").unwrap();
        assert!(before.is_unchanged());
    }
}
