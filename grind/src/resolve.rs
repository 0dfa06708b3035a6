//! Which file a program name means, and whether grind can run it: found out before anything starts.
//!
//! The answers and exit codes are those of a shell, 127 for "not found" and 126 for "found but cannot be run"; each
//! message names the cause and, where there is one, the remedy. Files are only read. What cannot be known beforehand (a
//! file that changes in between) is left to the kernel's own refusal.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

pub use cg_cli::reason::reason;
use nix::unistd::{AccessFlags, access};

/// A program that can be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// The file for `execve`.
    pub path: PathBuf,
    /// The argument vector: as given, or with the shell in front of a script that names no interpreter.
    pub args: Vec<OsString>,
}

/// Why a program cannot be run.
#[derive(Debug)]
pub struct Refusal {
    /// The program as the user wrote it.
    pub program: PathBuf,
    /// The reason.
    pub cause: Cause,
}

/// The reasons.
#[derive(Debug)]
pub enum Cause {
    /// No folder of `$PATH` has it.
    NotInPath,
    /// The file cannot be looked at.
    Missing(io::Error),
    /// It is a folder.
    Directory,
    /// It is a device, socket or pipe.
    NotAFile,
    /// It may not be executed.
    NotExecutable(io::Error),
    /// It may not be read, which grind must for the instructions in it.
    Unreadable(io::Error),
    /// It would run with the rights of its owner or group.
    SetId,
    /// An ELF file of 32 bits.
    Elf32,
    /// An ELF file for another processor (`e_machine`).
    Foreign(u16),
    /// An ELF file, but no program.
    NoProgram(&'static str),
    /// Neither ELF nor text.
    Binary,
    /// A script whose interpreter cannot be run.
    Interpreter(PathBuf, Box<Cause>),
    /// A program whose dynamic loader does not exist.
    Loader(PathBuf, io::Error),
    /// Scripts that interpret scripts, too many times over.
    TooDeep,
}

impl Refusal {
    /// The exit code: 127 if there is no such program, else 126.
    #[must_use]
    pub fn exit_code(&self) -> u8 {
        match &self.cause {
            Cause::NotInPath => 127,
            Cause::Missing(e) if e.kind() == io::ErrorKind::NotFound => 127,
            _ => 126,
        }
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.program.display(), self.cause)
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotInPath => f.write_str("command not found"),
            Self::Missing(e) => f.write_str(&reason(e)),
            Self::Directory => f.write_str("is a directory"),
            Self::NotAFile => f.write_str("is not a regular file"),
            Self::NotExecutable(e) => write!(f, "{} (make it executable with chmod +x)", reason(e)),
            Self::Unreadable(e) => write!(f, "cannot be read: {} (grind must read what it runs)", reason(e)),
            Self::SetId => f.write_str(
                "is set-uid or set-gid, and such a program cannot be traced (profile a copy without these bits)",
            ),
            Self::Elf32 => f.write_str("is a 32-bit program; grind runs x86-64 programs only (build it with -m64)"),
            Self::Foreign(machine) => {
                write!(f, "is a program for another processor (ELF machine {machine}); grind runs x86-64 programs only")
            }
            Self::NoProgram(what) => write!(f, "is {what}, not a program"),
            Self::Binary => f.write_str("cannot execute binary file: neither an ELF program nor a script"),
            Self::Interpreter(path, cause) => write!(f, "bad interpreter: {}: {cause}", path.display()),
            Self::Loader(path, e) => write!(f, "needs the dynamic loader {}: {}", path.display(), reason(e)),
            Self::TooDeep => f.write_str("bad interpreter: too many levels of scripts"),
        }
    }
}

impl std::error::Error for Refusal {}

/// Finds the program that `args[0]` names, as a shell would, and checks it.
///
/// # Errors
/// When it does not exist or cannot be run.
pub fn resolve(args: &[OsString], search_path: Option<&OsStr>) -> Result<Resolved, Refusal> {
    let name = args.first().map(OsString::as_os_str).unwrap_or_default();
    let refuse = |cause| Refusal { program: PathBuf::from(name), cause };
    let path = find(name, search_path).map_err(refuse)?;
    match check(&path).map_err(refuse)? {
        Form::Native => Ok(Resolved { path, args: args.to_vec() }),
        Form::PlainText => {
            // What execvp and every shell do with a text that does not say who is to read it.
            let shell = PathBuf::from("/bin/sh");
            check(&shell).map_err(|cause| refuse(Cause::Interpreter(shell.clone(), Box::new(cause))))?;
            let mut with_shell = vec![shell.clone().into_os_string(), path.into_os_string()];
            with_shell.extend_from_slice(&args[1..]);
            Ok(Resolved { path: shell, args: with_shell })
        }
    }
}

/// The file that `name` means: itself if it contains a slash, else the first executable one in `search_path`.
fn find(name: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, Cause> {
    if name.is_empty() {
        return Err(Cause::NotInPath);
    }
    if name.as_bytes().contains(&b'/') {
        return Ok(PathBuf::from(name));
    }
    let search_path = search_path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    let mut found = None;
    for folder in search_path.as_bytes().split(|&b| b == b':') {
        let folder = if folder.is_empty() { OsStr::new(".") } else { OsStr::from_bytes(folder) };
        let candidate = Path::new(folder).join(name);
        if !fs::metadata(&candidate).is_ok_and(|m| m.is_file()) {
            continue;
        }
        if access(&candidate, AccessFlags::X_OK).is_ok() {
            return Ok(candidate);
        }
        found.get_or_insert(candidate);
    }
    found.ok_or(Cause::NotInPath)
}

/// What kind of program a file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// The kernel can execute it: ELF, or a script with `#!`.
    Native,
    /// A text without `#!`: only a shell can.
    PlainText,
}

/// Checks that `path` can be run under grind.
///
/// # Errors
/// The reason why not.
pub fn check(path: &Path) -> Result<Form, Cause> {
    check_at(path, 0)
}

/// Scripts may name scripts as interpreters; the kernel gives up after this many.
const DEEPEST: usize = 5;

fn check_at(path: &Path, depth: usize) -> Result<Form, Cause> {
    if depth > DEEPEST {
        return Err(Cause::TooDeep);
    }
    let meta = fs::metadata(path).map_err(Cause::Missing)?;
    if meta.is_dir() {
        return Err(Cause::Directory);
    }
    if !meta.is_file() {
        return Err(Cause::NotAFile);
    }
    access(path, AccessFlags::X_OK).map_err(|e| Cause::NotExecutable(e.into()))?;
    let (set_uid, set_gid) = (meta.mode() & 0o4000 != 0, meta.mode() & 0o2010 == 0o2010);
    let mut file = File::open(path).map_err(Cause::Unreadable)?;
    let mut head = Vec::new();
    (&mut file).take(512).read_to_end(&mut head).map_err(Cause::Unreadable)?;

    // The kernel heeds these bits of programs, not of scripts.
    if (set_uid || set_gid) && !head.starts_with(b"#!") {
        return Err(Cause::SetId);
    }
    if head.starts_with(b"\x7fELF") {
        check_elf(&mut file, &head)?;
        return Ok(Form::Native);
    }
    if let Some(line) = head.strip_prefix(b"#!") {
        let line = line.split(|&b| b == b'\n').next().unwrap_or_default();
        let interpreter = line.split(|b| matches!(b, b' ' | b'\t')).find(|w| !w.is_empty());
        return match interpreter {
            Some(interpreter) => {
                let interpreter = PathBuf::from(OsStr::from_bytes(interpreter));
                match check_at(&interpreter, depth + 1) {
                    Ok(Form::Native) => Ok(Form::Native),
                    // The kernel does not put a shell in front of an interpreter.
                    Ok(Form::PlainText) => Err(Cause::Interpreter(interpreter, Box::new(Cause::Binary))),
                    Err(Cause::TooDeep) => Err(Cause::TooDeep),
                    Err(cause) => Err(Cause::Interpreter(interpreter, Box::new(cause))),
                }
            }
            None => Ok(Form::PlainText),
        };
    }
    let first_line = head.split(|&b| b == b'\n').next().unwrap_or_default();
    if first_line.contains(&0) { Err(Cause::Binary) } else { Ok(Form::PlainText) }
}

fn check_elf(file: &mut File, head: &[u8]) -> Result<(), Cause> {
    const BROKEN: Cause = Cause::NoProgram("a broken ELF file");
    const X86_64: u16 = 62;
    let u16_at = |at: usize| head.get(at..at + 2).map(|b| u16::from_le_bytes([b[0], b[1]])).ok_or(BROKEN);
    let u64_at = |bytes: &[u8], at: usize| {
        bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map(u64::from_le_bytes).ok_or(BROKEN)
    };
    let (class, order) = (head.get(4).copied(), head.get(5).copied());
    if order == Some(2) {
        // Big-endian: the machine is stored the other way round.
        return Err(Cause::Foreign(u16_at(18)?.swap_bytes()));
    }
    let machine = u16_at(18)?;
    match (class, machine) {
        (Some(1), 3 | X86_64) => return Err(Cause::Elf32),
        (Some(2), X86_64) => {}
        _ => return Err(Cause::Foreign(machine)),
    }
    match u16_at(16)? {
        2 | 3 => {}
        1 => return Err(Cause::NoProgram("an object file")),
        4 => return Err(Cause::NoProgram("a core dump")),
        _ => return Err(BROKEN),
    }
    // A loader that is missing would otherwise be reported as if the program itself did not exist.
    let (offset, size, count) = (u64_at(head, 32)?, u64::from(u16_at(54)?), u16_at(56)?);
    for index in 0..u64::from(count) {
        let Some(at) = size.checked_mul(index).and_then(|o| offset.checked_add(o)) else { return Err(BROKEN) };
        let mut header = Vec::new();
        file.seek(SeekFrom::Start(at)).map_err(|_| BROKEN)?;
        (&mut *file).take(56).read_to_end(&mut header).map_err(Cause::Unreadable)?;
        if header.get(..4) != Some(&[3, 0, 0, 0]) {
            continue;
        }
        let (from, length) = (u64_at(&header, 8)?, u64_at(&header, 32)?);
        let mut name = Vec::new();
        file.seek(SeekFrom::Start(from)).map_err(|_| BROKEN)?;
        (&mut *file).take(length.min(4096)).read_to_end(&mut name).map_err(Cause::Unreadable)?;
        let name = name.split(|&b| b == 0).next().unwrap_or_default();
        let loader = PathBuf::from(OsStr::from_bytes(name));
        return match fs::metadata(&loader) {
            Ok(_) => Ok(()),
            Err(e) => Err(Cause::Loader(loader, e)),
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Self(tempfile::tempdir().unwrap())
        }

        fn put(&self, name: &str, bytes: &[u8], mode: u32) -> PathBuf {
            let path = self.0.path().join(name);
            fs::write(&path, bytes).unwrap();
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            path
        }
    }

    fn refusal(path: &Path) -> (u8, String) {
        let error = resolve(&[path.as_os_str().to_owned()], None).unwrap_err();
        (error.exit_code(), error.cause.to_string())
    }

    fn elf(class: u8, machine: u16, kind: u16) -> Vec<u8> {
        let mut bytes = vec![0x7f, b'E', b'L', b'F', class, 1, 1, 0];
        bytes.resize(64, 0);
        bytes[16..18].copy_from_slice(&kind.to_le_bytes());
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn programs_are_searched_for() {
        let (a, b) = (Folder::new(), Folder::new());
        a.put("prog", b"#!/bin/sh\n", 0o644);
        let wanted = b.put("prog", b"#!/bin/sh\n", 0o755);
        let path = OsString::from(format!("/nonexistent:{}:{}", a.0.path().display(), b.0.path().display()));
        let found = resolve(&["prog".into(), "x".into()], Some(&path)).unwrap();
        assert_eq!(found, Resolved { path: wanted, args: vec!["prog".into(), "x".into()] });

        let only_a = OsString::from(a.0.path());
        let error = resolve(&["prog".into()], Some(&only_a)).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string().starts_with("prog: Permission denied")), (126, true));
        let error = resolve(&["absent".into()], Some(&only_a)).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string()), (127, "absent: command not found".to_owned()));
        let error = resolve(&["".into()], Some(&only_a)).unwrap_err();
        assert_eq!((error.exit_code(), error.to_string()), (127, ": command not found".to_owned()));
    }

    #[test]
    fn what_is_no_program_is_refused() {
        let f = Folder::new();
        assert_eq!(refusal(Path::new("/nonexistent/x")), (127, "No such file or directory".into()));
        assert_eq!(refusal(f.0.path()), (126, "is a directory".into()));
        let path = f.put("noexec", b"#!/bin/sh\n", 0o644);
        assert_eq!(refusal(&path), (126, "Permission denied (make it executable with chmod +x)".into()));
        assert_eq!(refusal(Path::new("/dev/null")), (126, "is not a regular file".into()));
        let path = f.put("binary", b"\x01\x00\x02", 0o755);
        assert!(refusal(&path).1.starts_with("cannot execute binary file"));
    }

    #[test]
    fn foreign_elf_is_refused() {
        let f = Folder::new();
        for (bytes, text) in [
            (elf(1, 3, 2), "is a 32-bit program"),
            (elf(1, 62, 2), "is a 32-bit program"),
            (elf(2, 183, 3), "is a program for another processor (ELF machine 183)"),
            (elf(2, 62, 1), "is an object file, not a program"),
            (elf(2, 62, 4), "is a core dump, not a program"),
            (elf(2, 62, 9), "is a broken ELF file"),
            (b"\x7fELF".to_vec(), "is a broken ELF file"),
            (elf(2, 62, 2)[..40].to_vec(), "is a broken ELF file"),
        ] {
            let path = f.put("elf", &bytes, 0o755);
            let (code, message) = refusal(&path);
            assert_eq!(code, 126);
            assert!(message.starts_with(text), "{message}");
        }
        let path = f.put("fine", &elf(2, 62, 2), 0o755);
        assert_eq!(check(&path).unwrap(), Form::Native);
    }

    #[test]
    fn a_missing_loader_is_named() {
        let f = Folder::new();
        let mut bytes = elf(2, 62, 3);
        bytes[32..40].copy_from_slice(&64u64.to_le_bytes());
        bytes[54..56].copy_from_slice(&56u16.to_le_bytes());
        bytes[56..58].copy_from_slice(&1u16.to_le_bytes());
        let mut header = vec![0; 56];
        header[0] = 3;
        header[8..16].copy_from_slice(&120u64.to_le_bytes());
        header[32..40].copy_from_slice(&9u64.to_le_bytes());
        bytes.extend(header);
        bytes.extend(b"/no/ld.so");
        let path = f.put("dynamic", &bytes, 0o755);
        assert_eq!(refusal(&path), (126, "needs the dynamic loader /no/ld.so: No such file or directory".into()));
    }

    #[test]
    fn set_id_programs_are_refused() {
        let f = Folder::new();
        for mode in [0o4755, 0o2755] {
            let path = f.put("setid", &elf(2, 62, 2), mode);
            assert!(refusal(&path).1.starts_with("is set-uid or set-gid"));
        }
        // Without group execution the bit means something else.
        let path = f.put("locking", &elf(2, 62, 2), 0o2705);
        assert!(check(&path).is_ok());
    }

    #[test]
    fn scripts_need_their_interpreter() {
        let f = Folder::new();
        let path = f.put("script", b"#! /nonexistent/interp -x\n", 0o755);
        assert_eq!(refusal(&path), (126, "bad interpreter: /nonexistent/interp: No such file or directory".into()));
        let path = f.put("script", b"#!/bin/sh -e\ntrue\n", 0o755);
        assert_eq!(check(&path).unwrap(), Form::Native);
        let me = f.0.path().join("loop");
        let path = f.put("loop", format!("#!{}\n", me.display()).as_bytes(), 0o755);
        assert_eq!(refusal(&path), (126, "bad interpreter: too many levels of scripts".into()));
    }

    #[test]
    fn a_text_is_given_to_the_shell() {
        let f = Folder::new();
        let path = f.put("text", b"echo hello\n", 0o755);
        let found = resolve(&[path.clone().into_os_string(), "x".into()], None).unwrap();
        assert_eq!(found.path, Path::new("/bin/sh"));
        assert_eq!(found.args, ["/bin/sh".into(), path.into_os_string(), OsString::from("x")]);
        let path = f.put("empty", b"", 0o755);
        assert_eq!(check(&path).unwrap(), Form::PlainText);
    }
}
