//! From what a process has executed to its profile.
//!
//! Every executed instruction ends up in exactly one row; the total of the profile is the sum of the counts that the
//! engine reports, whatever debug information says. The order of the engine's report does not matter.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cg_format::cachegrind::{Profile, write};
use cg_format::count::TooLarge;
use grind_engine::{Module, ProcessReport};

use crate::attribute::{Attribute, Code, Place};

/// Which object an instruction belongs to. Several mappings of a file are one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Object<'a> {
    File(&'a Path),
    /// By the address of its bytes: the same image mapped twice is shared memory here.
    Image(*const u8, usize),
    Anonymous,
}

impl<'a> Object<'a> {
    fn of(module: &'a Module) -> Self {
        match (&module.image, &module.path) {
            (Some(image), _) => Self::Image(image.as_ptr(), image.len()),
            (None, Some(path)) => Self::File(path),
            (None, None) => Self::Anonymous,
        }
    }
}

/// The profile of a process.
///
/// # Errors
/// When a count is larger than a profile can hold.
pub fn profile(report: &ProcessReport<'_>, attribute: &mut dyn Attribute) -> Result<Profile, TooLarge> {
    let mut profile = Profile::new(["Ir"]);
    profile.header.cmd = command(&report.args);

    let mut objects: Vec<&Module> = Vec::new();
    let mut index_of: HashMap<Object<'_>, usize> = HashMap::new();
    let object_of_module: Vec<usize> = report
        .modules
        .iter()
        .map(|module| {
            *index_of.entry(Object::of(module)).or_insert_with(|| {
                objects.push(module);
                objects.len() - 1
            })
        })
        .collect();

    let mut counts: Vec<Vec<(u64, i128)>> = vec![Vec::new(); objects.len() + 1];
    for count in report.counts {
        // A module that does not exist would be the engine's mistake; its instructions are still counted, namelessly.
        let (object, offset) = match report.modules.get(count.module) {
            Some(module) if module.image.is_none() && module.path.is_none() => {
                (object_of_module[count.module], count.addr.0)
            }
            Some(module) => {
                (object_of_module[count.module], count.addr.since(module.start).wrapping_add(module.offset))
            }
            None => (objects.len(), count.addr.0),
        };
        counts[object].push((offset, i128::from(count.count)));
    }

    for (object, mut counts) in counts.into_iter().enumerate() {
        // Stable, because that makes use of the order in which most of them come.
        counts.sort_by_key(|(offset, _)| *offset);
        counts.dedup_by(|later, kept| {
            let same = later.0 == kept.0;
            if same {
                kept.1 += later.1;
            }
            same
        });
        if counts.is_empty() {
            continue;
        }
        let code = match objects.get(object) {
            Some(Module { image: Some(image), .. }) => Code::Image(image),
            Some(Module { path: Some(path), .. }) => Code::File(path),
            _ => Code::Anonymous,
        };
        let offsets: Vec<u64> = counts.iter().map(|(offset, _)| *offset).collect();
        let mut told = vec![false; offsets.len()];
        let mut failure = Ok(());
        let mut add = |index: usize, place: Place<'_>| {
            if let Some(slot) = told.get_mut(index).filter(|told| !**told) {
                *slot = true;
                let added = profile.add(place.file, place.function, u64::from(place.line), &[counts[index].1]);
                if added.is_err() {
                    failure = added;
                }
            }
        };
        attribute.places(code, &offsets, &mut add);
        // An answer that never came must not lose counts.
        for index in 0..offsets.len() {
            add(index, Place::UNKNOWN);
        }
        failure?;
    }
    Ok(profile)
}

/// The profile's total of instructions executed.
#[must_use]
pub fn total_ir(profile: &Profile) -> i128 {
    profile.total().first().copied().unwrap_or_default()
}

fn command(args: &[OsString]) -> Vec<u8> {
    args.iter().map(|a| a.as_bytes()).collect::<Vec<_>>().join(&b' ')
}

/// What became of a profile.
#[derive(Debug, PartialEq, Eq)]
pub enum Saved {
    /// It is where it was to be.
    AsAsked,
    /// It could not be written there, for this reason, and is here instead.
    Elsewhere(String, PathBuf),
    /// It could not be written anywhere; the first reason.
    Nowhere(String),
}

/// Writes `profile` to `path`, or, if that fails, to a new file in `spare`.
pub fn save(profile: &Profile, path: &Path, spare: &Path) -> Saved {
    let fill = |out: &mut dyn std::io::Write| write(out, profile);
    let Err(error) = cg_format::atomic::write_file(path, 0o600, fill) else { return Saved::AsAsked };
    let reason = crate::resolve::reason(&error.cause);
    let name = path.file_name().map_or_else(|| "cachegrind.out".into(), |n| n.to_string_lossy().into_owned());
    let elsewhere =
        tempfile::Builder::new().prefix(&format!("{name}.")).rand_bytes(6).tempfile_in(spare).and_then(|file| {
            let mut out = std::io::BufWriter::new(file.as_file());
            fill(&mut out)?;
            std::io::Write::flush(&mut out)?;
            drop(out);
            file.keep().map(|(_, path)| path).map_err(|e| e.error)
        });
    match elsewhere {
        Ok(path) => Saved::Elsewhere(reason, path),
        Err(_) => Saved::Nowhere(reason),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attribute::Nothing;
    use grind_engine::InstructionCount;
    use grind_engine::addr::GuestAddr;
    use std::sync::Arc;

    fn module(path: Option<&str>, start: u64, offset: u64) -> Module {
        Module {
            path: path.map(PathBuf::from),
            image: None,
            start: GuestAddr(start),
            end: GuestAddr(start + 0x1000),
            offset,
        }
    }

    fn count(module: usize, addr: u64, count: u64) -> InstructionCount {
        InstructionCount { module, addr: GuestAddr(addr), len: 1, count }
    }

    fn report<'a>(modules: &'a [Module], counts: &'a [InstructionCount]) -> ProcessReport<'a> {
        ProcessReport {
            pid: 1,
            parent: 0,
            exe: "/bin/x".into(),
            args: vec!["x".into(), "a b".into()],
            exit: None,
            modules,
            counts,
        }
    }

    /// Shows what it was asked: the object as file, the offset as line.
    struct Echo;

    impl Attribute for Echo {
        fn places(&mut self, code: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(usize, Place<'_>)) {
            assert!(offsets.is_sorted_by(|a, b| a < b));
            for (index, offset) in offsets.iter().enumerate().rev() {
                let file = match code {
                    Code::File(path) => path.as_os_str().as_bytes(),
                    Code::Image(_) => b"image",
                    Code::Anonymous => b"anonymous",
                };
                tell(index, Place { file, function: b"f", line: u32::try_from(*offset).unwrap() });
            }
        }
    }

    fn text(profile: &Profile) -> String {
        let mut out = Vec::new();
        write(&mut out, profile).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn counts_are_summed_by_place() {
        let mut modules = vec![module(Some("a"), 0x1000, 0), module(Some("a"), 0x9000, 0x10), module(None, 0x500, 0)];
        modules.push(Module { image: Some(Arc::from([0u8; 4].as_slice())), ..module(Some("[vdso]"), 0x7000, 0) });
        let counts =
            [count(0, 0x1010, 5), count(1, 0x9000, 7), count(0, 0x1000, 1), count(2, 0x501, 2), count(3, 0x7002, 0)];
        let profile = profile(&report(&modules, &counts), &mut Echo).unwrap();
        assert_eq!(
            text(&profile),
            "cmd: x a b\nevents: Ir\nfl=a\nfn=f\n0 1\n16 12\nfl=anonymous\nfn=f\n1281 2\nfl=image\nfn=f\n2 0\nsummary: 15\n"
        );
        assert_eq!(total_ir(&profile), 15);
    }

    #[test]
    fn no_count_is_lost_when_nothing_is_known() {
        /// Answers some twice, some never.
        struct Sloppy;
        impl Attribute for Sloppy {
            fn places(&mut self, _: Code<'_>, _: &[u64], tell: &mut dyn FnMut(usize, Place<'_>)) {
                tell(0, Place::UNKNOWN);
                tell(0, Place::UNKNOWN);
                tell(99, Place::UNKNOWN);
            }
        }
        let modules = [module(Some("a"), 0, 0)];
        let counts = [count(0, 1, 1), count(0, 2, 2), count(7, 3, u64::MAX)];
        let all: [&mut dyn Attribute; 2] = [&mut Nothing, &mut Sloppy];
        for attribute in all {
            let result = profile(&report(&modules, &counts), attribute);
            match result {
                Ok(profile) => assert_eq!(total_ir(&profile), i128::from(u64::MAX) + 3),
                Err(e) => panic!("{e}"),
            }
        }
    }

    #[test]
    fn an_unwritable_profile_is_saved_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let profile = Profile::new(["Ir"]);
        let good = folder.path().join("good");
        assert_eq!(save(&profile, &good, folder.path()), Saved::AsAsked);
        assert!(good.exists());
        let bad = folder.path().join("absent/out.7");
        match save(&profile, &bad, folder.path()) {
            Saved::Elsewhere(reason, path) => {
                assert_eq!(reason, "No such file or directory");
                assert!(path.file_name().unwrap().to_string_lossy().starts_with("out.7."));
                assert_eq!(std::fs::read(path).unwrap(), std::fs::read(&good).unwrap());
            }
            other => panic!("{other:?}"),
        }
        assert!(matches!(save(&profile, &bad, &folder.path().join("absent")), Saved::Nowhere(_)));
    }
}
