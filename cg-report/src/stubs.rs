//! What calls of functions of other objects lead to: stubs of the procedure linkage table, which have no symbols.
//!
//! A stub jumps to where a word of the file's data says. The dynamic linker writes that word, and a relocation tells it the function
//! that belongs there: so a stub has that function's name, with `@plt` behind it, as other disassemblers show it. What a
//! damaged file says is not believed: a stub without such a word, or a relocation without a name, names nothing.

use std::collections::HashMap;

use iced_x86::{Code, Decoder, DecoderOptions, Mnemonic};
use object::read::{Object, ObjectSection, ObjectSymbol, ObjectSymbolTable, ReadRef, RelocationTarget};

/// Sections that hold stubs, and nothing else.
const SECTIONS: [&str; 3] = [".plt", ".plt.sec", ".plt.got"];
/// The longest stub.
const LONGEST: u64 = 16;

/// A stub.
#[derive(Debug)]
pub(crate) struct Stub {
    pub(crate) start: u64,
    /// Behind its last byte, at most.
    pub(crate) end: u64,
    pub(crate) name: String,
}

/// Stubs of an object file with the names of what they lead to, by their addresses.
pub(crate) fn stubs<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> Vec<Stub> {
    let words = words(file);
    let mut stubs = Vec::new();
    for section in SECTIONS.iter().filter_map(|name| file.section_by_name(name)) {
        let Ok(code) = section.data() else { continue };
        for (start, word) in jumps(code, section.address()) {
            if let Some(name) = words.get(&word) {
                stubs.push(Stub { start, end: start.saturating_add(LONGEST), name: format!("{name}@plt") });
            }
        }
    }
    stubs.sort_by_key(|stub| stub.start);
    stubs.dedup_by_key(|stub| stub.start);
    stubs
}

/// Words that the dynamic linker fills with addresses of functions, and the names of these.
fn words<'data, R: ReadRef<'data>>(file: &object::File<'data, R>) -> HashMap<u64, String> {
    let (Some(relocations), Some(symbols)) = (file.dynamic_relocations(), file.dynamic_symbol_table()) else {
        return HashMap::new();
    };
    let name = |target| {
        let RelocationTarget::Symbol(index) = target else { return None };
        let name = symbols.symbol_by_index(index).ok()?.name().ok()?.to_owned();
        (!name.is_empty()).then_some(name)
    };
    relocations.filter_map(|(word, relocation)| Some((word, name(relocation.target())?))).collect()
}

/// Where stubs of a section begin, with the words that they jump by.
fn jumps(code: &[u8], start: u64) -> Vec<(u64, u64)> {
    let mut decoder = Decoder::with_ip(64, code, start, DecoderOptions::NONE);
    let mut jumps = Vec::new();
    // A stub may begin with what says that indirect branches may lead there.
    let mut mark = None;
    while decoder.can_decode() {
        let instruction = decoder.decode();
        if instruction.mnemonic() == Mnemonic::Jmp && instruction.is_ip_rel_memory_operand() {
            jumps.push((mark.unwrap_or(instruction.ip()), instruction.ip_rel_memory_address()));
        }
        mark = (instruction.code() == Code::Endbr64).then_some(instruction.ip());
    }
    jumps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stubs_begin_where_calls_lead() {
        // jmp [rip + 0x2fe2]; push 0; jmp back; then endbr64; bnd jmp [rip + 0x2fd1]; nop; then jmp [rip + 8] by itself.
        let code = [
            &[0xff, 0x25, 0xe2, 0x2f, 0, 0, 0x68, 0, 0, 0, 0, 0xe9, 0xe0, 0xff, 0xff, 0xff][..],
            &[0xf3, 0x0f, 0x1e, 0xfa, 0xf2, 0xff, 0x25, 0xd1, 0x2f, 0, 0, 0x0f, 0x1f, 0x44, 0, 0],
            &[0xff, 0x25, 8, 0, 0, 0, 0x66, 0x90],
        ];
        assert_eq!(jumps(&code.concat(), 0x1020), [(0x1020, 0x4008), (0x1030, 0x400c), (0x1040, 0x104e)]);
    }
}
