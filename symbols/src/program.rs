//! Line programs: the byte code that says which line each address belongs to.
//!
//! Own instead of the library's: only four registers matter, sequences at odd addresses must not be dropped, a broken
//! program still gives the rows before the break, and of a header only what the program needs is looked at.
//!
//! Invariant: nothing here trusts a length; what does not fit ends the program.

use gimli::{EndianSlice, LineProgramHeader, LittleEndian, Reader as _};

type Slice<'a> = EndianSlice<'a, LittleEndian>;

/// One row, with the address of its successor.
pub(super) struct Row {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// A program, ready to run.
pub(super) struct Program<'a> {
    code: Slice<'a>,
    line_base: i8,
    line_range: u8,
    opcode_base: u8,
    /// Bytes by which the address grows at a time.
    step: u8,
    /// How many operands the standard opcodes have, from opcode 1 on.
    lengths: Slice<'a>,
}

impl<'a> Program<'a> {
    /// The program behind a header.
    pub(super) fn of(header: &LineProgramHeader<Slice<'a>>) -> Self {
        Program {
            code: header.raw_program_buf(),
            line_base: header.line_base(),
            line_range: header.line_range(),
            opcode_base: header.opcode_base(),
            step: header.minimum_instruction_length(),
            lengths: *header.standard_opcode_lengths(),
        }
    }

    /// The program whose header is at `at` of `.debug_line`, and the offset behind it. `None` if it is not of DWARF 5,
    /// or broken.
    pub(super) fn of_version_5(section: &'a [u8], at: usize) -> Option<(Self, usize)> {
        let whole = Slice::new(section.get(at..)?, LittleEndian);
        let mut rest = whole;
        let (length, format) = rest.read_initial_length().ok()?;
        let mut rest = rest.split(length).ok()?;
        let next = at + rest.slice().as_ptr() as usize - whole.slice().as_ptr() as usize + length;
        let (version, address_size, selector_size) =
            (rest.read_u16().ok()?, rest.read_u8().ok()?, rest.read_u8().ok()?);
        if (version, address_size, selector_size) != (5, 8, 0) {
            return None;
        }
        let header_length = rest.read_length(format).ok()?;
        let mut header = rest.split(header_length).ok()?;
        let step = header.read_u8().ok()?;
        let _operations = header.read_u8().ok()?;
        let _default_is_statement = header.read_u8().ok()?;
        let (line_base, line_range) = (header.read_i8().ok()?, header.read_u8().ok()?);
        let opcode_base = header.read_u8().ok()?;
        let lengths = header.split(usize::from(opcode_base.checked_sub(1)?)).ok()?;
        Some((Program { code: rest, line_base, line_range, opcode_base, step, lengths }, next))
    }

    /// The address that the program sets first, if it begins with that.
    pub(super) fn first_address(&self) -> Option<u64> {
        // Extended, 9 bytes long, the opcode, the address; perhaps behind a column.
        let code = self.code.slice();
        let code = match code {
            [op, column, rest @ ..] if self.opcode_base > 5 && *op == gimli::DW_LNS_set_column.0 && *column < 0x80 => {
                rest
            }
            _ => code,
        };
        let address = code.strip_prefix(&[0, 9, gimli::DW_LNE_set_address.0])?;
        Some(u64::from_le_bytes(*address.first_chunk()?))
    }

    /// Runs the program and gives each row to `emit`; `None` if it breaks off in the middle.
    pub(super) fn run(self, steps: &mut Steps, mut emit: impl FnMut(Row)) -> Option<()> {
        let Program { line_range, opcode_base, lengths, .. } = self;
        let mut code = Code(self.code.slice());
        let step = u64::from(self.step);
        if line_range == 0 {
            return None;
        }
        let table = steps.of(self.line_base, line_range, opcode_base);
        let (mut address, mut file, mut line) = (0u64, 1u64, 1u64);
        // The row at hand, if there is one.
        let (mut open, mut start, mut start_file, mut start_line) = (false, 0u64, 0u32, 0u32);
        let mut row = |address: u64, file: u64, line: u64, last: bool| {
            if open {
                emit(Row { start, end: address, file: start_file, line: start_line });
            }
            let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
            (open, start, start_file, start_line) = (!last, address, small(file), small(line));
        };
        while let Some(opcode) = code.byte() {
            if opcode >= opcode_base {
                let (addresses, lines) = table[usize::from(opcode)];
                address = address.wrapping_add(u64::from(addresses).wrapping_mul(step));
                line = line.wrapping_add_signed(i64::from(lines));
                row(address, file, line, false);
                continue;
            }
            match gimli::DwLns(opcode) {
                gimli::DwLns(0) => {
                    let length = usize::try_from(code.unsigned()?).ok()?;
                    let mut body = Code(code.take(length)?);
                    let Some(extended) = body.byte() else { continue };
                    match gimli::DwLne(extended) {
                        gimli::DW_LNE_end_sequence => {
                            row(address, file, line, true);
                            (address, file, line) = (0, 1, 1);
                        }
                        gimli::DW_LNE_set_address => address = u64::from_le_bytes(*body.0.first_chunk()?),
                        _ => {}
                    }
                }
                gimli::DW_LNS_copy => row(address, file, line, false),
                gimli::DW_LNS_advance_pc => address = address.wrapping_add(code.unsigned()?.wrapping_mul(step)),
                gimli::DW_LNS_advance_line => line = line.wrapping_add_signed(code.signed()?),
                gimli::DW_LNS_set_file => file = code.unsigned()?,
                gimli::DW_LNS_set_column | gimli::DW_LNS_set_isa => code.skip_number()?,
                gimli::DW_LNS_const_add_pc => {
                    address = address.wrapping_add(u64::from(table[255].0).wrapping_mul(step));
                }
                gimli::DW_LNS_fixed_advance_pc => {
                    let by = u16::from_le_bytes(code.take(2)?.try_into().ok()?);
                    address = address.wrapping_add(by.into());
                }
                gimli::DW_LNS_negate_stmt
                | gimli::DW_LNS_set_basic_block
                | gimli::DW_LNS_set_prologue_end
                | gimli::DW_LNS_set_epilogue_begin => {}
                _ => {
                    for _ in 0..*lengths.slice().get(usize::from(opcode) - 1)? {
                        code.skip_number()?;
                    }
                }
            }
        }
        Some(())
    }
}

/// By how much each special opcode advances address (in steps) and line. Nearly all programs of a file have the same table.
#[derive(Default)]
pub(super) struct Steps {
    of: Option<(i8, u8, u8)>,
    table: Vec<(u8, i16)>,
}

impl Steps {
    fn of(&mut self, line_base: i8, line_range: u8, opcode_base: u8) -> &[(u8, i16); 256] {
        let key = Some((line_base, line_range, opcode_base));
        if self.of != key {
            self.of = key;
            let step = |opcode: u8| {
                // Only special opcodes are looked up; 255 stands for "advance as by 255" whatever the base is.
                let adjusted = opcode.wrapping_sub(opcode_base);
                (adjusted / line_range, i16::from(line_base) + i16::from(adjusted % line_range))
            };
            self.table = (0..=255).map(step).collect();
        }
        self.table.first_chunk().expect("256 entries have just been made")
    }
}

/// What is left of a program.
struct Code<'a>(&'a [u8]);

impl<'a> Code<'a> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    /// An unsigned LEB128 number; `None` if it does not end, or is more than 64 bits long.
    #[inline]
    fn unsigned(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        if first < 0x80 {
            self.0 = &self.0[1..];
            return Some(first.into());
        }
        let mut rest = Slice::new(self.0, LittleEndian);
        let n = rest.read_uleb128().ok()?;
        self.0 = rest.slice();
        Some(n)
    }

    /// A signed LEB128 number.
    #[inline]
    fn signed(&mut self) -> Option<i64> {
        let mut rest = Slice::new(self.0, LittleEndian);
        let n = rest.read_sleb128().ok()?;
        self.0 = rest.slice();
        Some(n)
    }

    /// Passes over a LEB128 number of any length.
    #[inline]
    fn skip_number(&mut self) -> Option<()> {
        while self.byte()? >= 0x80 {}
        Some(())
    }
}
