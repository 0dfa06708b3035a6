//! CPython, from 3.8 to 3.14: each call of `_PyEval_EvalFrameDefault` runs a frame. From 3.11 on that runs frames of functions which are
//! called by what it runs in the same loop, and says which of them runs in a word: up to 3.12 in a structure on its own stack, then in
//! the thread's state.
//!
//! Offsets in objects are those of the versions' headers; where the interpreter says them itself (`_Py_DebugOffsets`, from 3.13 on), it is
//! believed. A build without the global lock has other objects, and is refused. So is one whose evaluation function is a chain of functions
//! (tail calls, from 3.14 on), since stores are looked for in that function only.

use std::path::Path;

use grind_symbols::{Object, Svma};
use grind_types::frames::{CodeAt, FrameFunction, FrameHook, ReadMemory};

use super::stores::{self, Found, Holder};
use super::{Interpreter, Refusal};

/// Registers of arguments.
const RDI: u8 = 7;
const RSI: u8 = 6;

/// The function that runs frames.
const EVALUATE: &str = "_PyEval_EvalFrameDefault";

/// Where parts of objects are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Offsets {
    /// In a frame: its code object, and what bits of that are none of its address.
    code: u64,
    tags: u8,
    /// In a code object.
    file: u64,
    name: u64,
    qualified: Option<u64>,
    line: u64,
    /// In a string: how many characters, what they are, and where they are if all are ASCII, or are not.
    length: u64,
    state: u64,
    ascii: u64,
    compact: u64,
    holder: Option<Holder>,
}

impl Offsets {
    /// Those of version 3.`minor`, if it does not say them itself.
    fn of(minor: u8) -> Option<Self> {
        let old = Self {
            code: 32,
            tags: 0,
            file: 104,
            name: 112,
            qualified: None,
            line: 40,
            length: 16,
            state: 32,
            ascii: 48,
            compact: 72,
            holder: None,
        };
        let new = Self { file: 112, name: 120, qualified: Some(128), ..old };
        let on_stack = |offset| Some(Holder::OnStack { link: 56, offset });
        Some(match minor {
            8..=10 => old,
            11 => Self { line: 72, holder: on_stack(8), ..new },
            12 => Self { code: 0, line: 68, ascii: 40, compact: 56, holder: on_stack(0), ..new },
            _ => return None,
        })
    }

    /// Those that the interpreter says itself, whose version is 3.`minor`.
    fn said(object: &Object, runtime: Svma, minor: u8) -> Result<Self, Refusal> {
        // Before that, words may come and go.
        const CANDIDATE: u64 = 12;
        let at = Words::of(minor).ok_or(Refusal::Version(3, minor))?;
        let bytes = object.bytes(runtime, 8 * (at.ascii as u64 + 1)).ok_or(Refusal::NoSymbol("_PyRuntime"))?;
        let words: Vec<u64> = bytes.as_chunks::<8>().0.iter().map(|word| u64::from_le_bytes(*word)).collect();
        // Its sign, the version, and whether there is no global lock.
        let (version, level) = (words[1] >> 16, words[1] >> 4 & 15);
        if &bytes[..8] != b"xdebugpy" || version != 0x0300 | u64::from(minor) || level < CANDIDATE || words[2] != 0 {
            return Err(Refusal::OtherCode);
        }
        let (ascii, qualified, current) = (words[at.ascii], words[at.file + 2], words[at.current]);
        let said = Self {
            code: words[at.code],
            tags: at.tags,
            file: words[at.file],
            name: words[at.file + 1],
            qualified: Some(qualified),
            line: words[at.file + 4],
            length: words[at.ascii - 1],
            state: words[at.ascii - 2],
            ascii,
            // Two words for what there may be in UTF-8 stand in between.
            compact: ascii.wrapping_add(16),
            holder: Some(Holder::By { offset: current }),
        };
        let all = [said.code, said.file, said.name, qualified, said.line, said.length, said.state, ascii, current];
        if all.iter().any(|offset| *offset > 4096) { Err(Refusal::OtherCode) } else { Ok(said) }
    }
}

/// Which words of `_Py_DebugOffsets` have what is needed. File, name, qualified name, a table and the line of a code object stand one behind
/// the other, and so do state and length of a string, and the bytes of one that is ASCII.
struct Words {
    current: usize,
    code: usize,
    tags: u8,
    file: usize,
    ascii: usize,
}

impl Words {
    fn of(minor: u8) -> Option<Self> {
        match minor {
            13 => Some(Self { current: 23, code: 30, tags: 0, file: 35, ascii: 70 }),
            // What a frame refers to says in its lowest bit whether it counts as a reference.
            14 => Some(Self { current: 26, code: 33, tags: 1, file: 40, ascii: 80 }),
            _ => None,
        }
    }
}

/// CPython in one file.
#[derive(Debug)]
struct CPython {
    offsets: Offsets,
    hooks: Vec<(u64, FrameHook)>,
    /// It can make machine code of what runs often, and then changes frames there.
    translates: bool,
}

/// The variable of the environment that has it do so.
const JIT: &str = "PYTHON_JIT";

/// Whether a program looks for that.
fn names_jit(constants: &[u8]) -> bool {
    let name = [b"\0", JIT.as_bytes(), b"\0"].concat();
    memchr::memmem::find(constants, &name).is_some()
}

/// The minor number in a file's name: `python3.8`, `libpython3.8.so.1.0`.
fn named(path: &Path) -> Option<u8> {
    let name = path.file_name()?.to_str()?;
    let (_, rest) = name.split_once("python3.")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..digits].parse().ok()
}

/// CPython, if that is what the file has.
pub(super) fn find(path: &Path, object: &Object) -> Option<Result<impl Interpreter + use<>, Refusal>> {
    let [evaluate, kind, version, runtime] =
        object.symbols_named([EVALUATE, "PyCode_Type", "Py_Version", "_PyRuntime"]);
    let (evaluate, size) = evaluate?;
    let found = || -> Result<CPython, Refusal> {
        let said = version.and_then(|(at, _)| object.bytes(at, 4));
        let said = said.and_then(|bytes| Some(u32::from_le_bytes(bytes.try_into().ok()?)));
        let (major, minor) = match said {
            Some(version) => ((version >> 24) as u8, (version >> 16) as u8),
            None => (3, named(path).ok_or(Refusal::NoVersion)?),
        };
        let offsets = match (major, minor) {
            (3, 13 | 14) => Offsets::said(object, runtime.ok_or(Refusal::NoSymbol("_PyRuntime"))?.0, minor)?,
            (3, _) => Offsets::of(minor).ok_or(Refusal::Version(major, minor))?,
            _ => return Err(Refusal::Version(major, minor)),
        };
        let small = |offset: u64| i8::try_from(offset).map_err(|_| Refusal::OtherCode);
        let code = CodeAt { offset: small(offsets.code)?, tags: offsets.tags };
        let frame = if minor < 9 { RDI } else { RSI };
        let mut places = Vec::new();
        let mut kept = None;
        if let Some(holder) = offsets.holder {
            if let Holder::By { offset } = holder {
                kept = Some(small(offset)?);
            }
            let stores = match stores::find(object, evaluate, size, holder) {
                Found::Stores(stores) => stores,
                Found::Chained => return Err(Refusal::Chained),
                Found::Unknown => return Err(Refusal::OtherCode),
            };
            for store in stores {
                let holder = kept.map(|offset| (store.base, offset));
                places.push((store.at, FrameHook::Switched { frame: store.register, code, holder }));
            }
        }
        let holder = kept.map(|offset| (RDI, offset));
        places.push((evaluate, FrameHook::Entered { frame, code, holder }));
        // `tp_dealloc`.
        const TAKES_BACK: u64 = 48;
        let kind = kind.ok_or(Refusal::NoSymbol("PyCode_Type"))?.0;
        let gone = object.pointer(Svma(kind.0.wrapping_add(TAKES_BACK))).ok_or(Refusal::OtherCode)?;
        places.push((gone, FrameHook::Gone { code: RDI }));
        let mut hooks = Vec::with_capacity(places.len());
        for (at, hook) in places {
            hooks.push((object.offset_of(at).ok_or(Refusal::OtherCode)?, hook));
        }
        hooks.sort_unstable_by_key(|(at, _)| *at);
        let translates = minor >= 13 && object.section_bytes(".rodata").is_some_and(|(_, bytes)| names_jit(&bytes));
        Ok(CPython { offsets, hooks, translates })
    };
    Some(found())
}

fn word(memory: ReadMemory<'_>, at: u64) -> Option<u64> {
    let mut bytes = [0; 8];
    (memory(at, &mut bytes) == 8).then(|| u64::from_le_bytes(bytes))
}

impl CPython {
    /// The text of a string object.
    fn text(&self, memory: ReadMemory<'_>, at: u64) -> Option<Vec<u8>> {
        const MOST: u64 = 4096;
        let of = self.offsets;
        let length = word(memory, at.wrapping_add(of.length))?.min(MOST) as usize;
        let state = word(memory, at.wrapping_add(of.state))?;
        let (width, compact, ascii) = ((state >> 2 & 7) as usize, state >> 5 & 1, state >> 6 & 1);
        if compact == 0 || !matches!(width, 1 | 2 | 4) {
            return None;
        }
        let mut bytes = vec![0; length * width];
        let data = at.wrapping_add(if ascii == 1 { of.ascii } else { of.compact });
        if memory(data, &mut bytes) != bytes.len() {
            return None;
        }
        let character = |unit: &[u8]| {
            let value = unit.iter().rev().fold(0, |value, byte| value << 8 | u32::from(*byte));
            char::from_u32(value).unwrap_or(char::REPLACEMENT_CHARACTER)
        };
        Some(bytes.chunks_exact(width).map(character).collect::<String>().into_bytes())
    }
}

impl Interpreter for CPython {
    fn hooks(&self) -> &[(u64, FrameHook)] {
        &self.hooks
    }

    fn refuses(&self, environment: &[u8]) -> Option<Refusal> {
        let value = environment
            .split(|byte| *byte == 0)
            .find_map(|entry| entry.strip_prefix(JIT.as_bytes())?.strip_prefix(b"="))?;
        (self.translates && !matches!(value.first(), None | Some(b'0'))).then_some(Refusal::Translates(JIT))
    }

    fn function(&self, memory: ReadMemory<'_>, code: u64) -> Option<FrameFunction> {
        const TYPE: u64 = 8;
        const TYPE_NAME: u64 = 24;
        let of = self.offsets;
        let kind = word(memory, code.wrapping_add(TYPE))?;
        let mut name = [0; 5];
        memory(word(memory, kind.wrapping_add(TYPE_NAME))?, &mut name);
        if &name != b"code\0" {
            return None;
        }
        let [file, plain] = [of.file, of.name].map(|offset| word(memory, code.wrapping_add(offset)));
        let (file, plain) = (file?, plain?);
        // What a frame of its own runs, which stands for a call from C, has one string for both.
        if file == plain {
            return None;
        }
        let name = match of.qualified {
            Some(offset) => word(memory, code.wrapping_add(offset))?,
            None => plain,
        };
        let line = word(memory, code.wrapping_add(of.line))? as u32;
        Some(FrameFunction { name: self.text(memory, name)?, file: self.text(memory, file)?, line })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use grind_symbols::Options;

    /// Memory with these words, by address.
    fn memory(parts: &[(u64, Vec<u8>)]) -> impl Fn(u64, &mut [u8]) -> usize + '_ {
        move |at, to| {
            let Some((start, bytes)) =
                parts.iter().find(|(start, bytes)| (*start..*start + bytes.len() as u64).contains(&at))
            else {
                return 0;
            };
            let bytes = &bytes[(at - start) as usize..];
            let n = bytes.len().min(to.len());
            to[..n].copy_from_slice(&bytes[..n]);
            n
        }
    }

    fn put(bytes: &mut Vec<u8>, at: u64, value: u64) {
        bytes.resize(bytes.len().max(at as usize + 8), 0);
        bytes[at as usize..][..8].copy_from_slice(&value.to_le_bytes());
    }

    /// A string object of characters that have `width` bytes each.
    fn string(of: &Offsets, width: usize, ascii: bool, text: &str) -> Vec<u8> {
        let mut bytes = Vec::new();
        let units: Vec<u8> = text.chars().flat_map(|c| u32::from(c).to_le_bytes()[..width].to_vec()).collect();
        put(&mut bytes, of.length, text.chars().count() as u64);
        put(&mut bytes, of.state, (width as u64) << 2 | 1 << 5 | u64::from(ascii) << 6);
        bytes.resize(if ascii { of.ascii } else { of.compact } as usize, 0);
        bytes.extend(units);
        bytes
    }

    fn known(offsets: Offsets, type_name: &[u8], shim: bool) -> Option<FrameFunction> {
        let mut code = Vec::new();
        put(&mut code, 8, 0x2000);
        put(&mut code, offsets.line, 42);
        put(&mut code, offsets.file, 0x5000);
        put(&mut code, offsets.name, if shim { 0x5000 } else { 0x6000 });
        if let Some(qualified) = offsets.qualified {
            put(&mut code, qualified, 0x7000);
        }
        let mut kind = Vec::new();
        put(&mut kind, 24, 0x3000);
        let parts = [
            (0x1000, code),
            (0x2000, kind),
            (0x3000, type_name.to_vec()),
            (0x5000, string(&offsets, 1, true, "/x/a.py")),
            (0x6000, string(&offsets, 2, false, "größe☃")),
            (0x7000, string(&offsets, 4, false, "C.größe𝄞")),
        ];
        CPython { offsets, hooks: Vec::new(), translates: false }.function(&memory(&parts), 0x1000)
    }

    #[test]
    fn a_code_object_is_read_with_names_of_any_width() {
        for minor in 8..=12 {
            let offsets = Offsets::of(minor).expect("known");
            let name = if minor < 11 { "größe☃" } else { "C.größe𝄞" };
            let function = FrameFunction { name: name.into(), file: b"/x/a.py".to_vec(), line: 42 };
            assert_eq!(known(offsets, b"code\0", false), Some(function), "3.{minor}");
            assert_eq!(known(offsets, b"NoneType\0", false), None, "3.{minor}: none");
            assert_eq!(known(offsets, b"code\0", true), None, "3.{minor}: a call from C");
        }
        assert_eq!((Offsets::of(7), Offsets::of(14)), (None, None));
    }

    #[test]
    fn memory_that_is_not_there_is_no_function() {
        let found = CPython { offsets: Offsets::of(11).expect("known"), hooks: Vec::new(), translates: false };
        assert_eq!(found.function(&|_, _| 0, 0x1000), None);
        assert_eq!(
            found.function(
                &|_, to: &mut [u8]| {
                    to.fill(0xff);
                    to.len()
                },
                u64::MAX - 3
            ),
            None
        );
    }

    #[test]
    fn one_that_makes_machine_code_is_refused_if_it_has_been_asked_to() {
        let found = CPython { offsets: Offsets::of(12).expect("known"), hooks: Vec::new(), translates: true };
        for (environment, refused) in [
            ("A=1\0PYTHON_JIT=1\0", true),
            ("PYTHON_JIT=yes", true),
            ("PYTHON_JIT=0\0B=1\0", false),
            ("PYTHON_JIT=\0", false),
            ("XPYTHON_JIT=1\0PYTHON_JITTER=1\0", false),
            ("", false),
        ] {
            let refusal = refused.then_some(Refusal::Translates(JIT));
            assert_eq!(found.refuses(environment.as_bytes()), refusal, "{environment}");
            let plain = CPython { offsets: found.offsets, hooks: Vec::new(), translates: false };
            assert_eq!(plain.refuses(environment.as_bytes()), None, "{environment}");
        }
        assert!(names_jit(b"x\0PYTHON_JIT\0") && !names_jit(b"\0PYTHON_JITTER\0PYTHON_JI\0"));
    }

    #[test]
    fn versions_are_in_names_of_files() {
        let of = |path: &str| named(Path::new(path));
        assert_eq!((of("/x/libpython3.8.so.1.0"), of("/bin/python3.10")), (Some(8), Some(10)));
        assert_eq!((of("/bin/python3"), of("/bin/pythonx3.9"), of("/python3.x")), (None, None, None));
    }

    /// Debian's Python, if it is here: how often it stores which frame runs is known from its disassembly.
    #[test]
    fn a_real_interpreter_has_its_hooks() {
        let path = Path::new("/usr/bin/python3.11");
        if !path.exists() {
            return;
        }
        const PLAIN: CodeAt = CodeAt { offset: 32, tags: 0 };
        let object = Object::open(path, &Options::default());
        let found = find(path, &object).expect("it is CPython").expect("it is known");
        let count = |wanted: fn(&FrameHook) -> bool| found.hooks().iter().filter(|(_, hook)| wanted(hook)).count();
        assert_eq!(count(|hook| matches!(hook, FrameHook::Entered { frame: RSI, code: PLAIN, holder: None })), 1);
        assert_eq!(count(|hook| matches!(hook, FrameHook::Gone { code: RDI })), 1);
        assert!((4..20).contains(&count(|hook| matches!(hook, FrameHook::Switched { code: PLAIN, .. }))));
        assert!(found.hooks().is_sorted_by_key(|(at, _)| *at));
        // Another file has none.
        let me = std::env::current_exe().expect("this test");
        assert!(find(&me, &Object::open(&me, &Options::default())).is_none());
    }
}
