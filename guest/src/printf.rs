//! `printf` for a program: its format, and arguments as they lie in its memory. It reads that memory, writes nothing but how far its
//! `va_list` has been read, and never more than [`MAX_TEXT`] bytes of a string.

use crate::process::Process;

/// The longest text that is read of a program.
pub const MAX_TEXT: usize = 1 << 16;

/// A `va_list` in the guest (System V ABI for x86-64, 3.5.7): offsets into a register save area, then the stack.
struct VaList {
    at: u64,
}

impl VaList {
    fn general(&mut self, p: &Process) -> u64 {
        self.next(p, 0, 48, 8)
    }

    fn floating(&mut self, p: &Process) -> f64 {
        f64::from_bits(self.next(p, 4, 176, 16))
    }

    fn next(&mut self, p: &Process, field: u64, limit: u32, step: u32) -> u64 {
        let m = &p.memory;
        let offset = m.array::<4>(self.at + field).map_or(limit, u32::from_le_bytes);
        if offset < limit {
            let _ = m.write(self.at + field, &(offset + step).to_le_bytes());
            let area = m.word(self.at + 16).unwrap_or(0);
            m.word(area + u64::from(offset)).unwrap_or(0)
        } else {
            let stack = m.word(self.at + 8).unwrap_or(0);
            let _ = m.write(self.at + 8, &(stack + 8).to_le_bytes());
            m.word(stack).unwrap_or(0)
        }
    }
}

/// `printf` with the conversions that C programs use; an unknown one is printed as it is. `f` is the format, `at` where the process's
/// `va_list` is.
#[must_use]
pub fn format(p: &Process, f: &[u8], at: u64) -> Vec<u8> {
    let args = &mut VaList { at };
    let mut out = Vec::new();
    let mut rest = f;
    while let Some((&c, tail)) = rest.split_first() {
        rest = tail;
        if c != b'%' {
            out.push(c);
            continue;
        }
        let start = rest;
        let flags_end = rest.iter().position(|b| !b"-+ #0'".contains(b)).unwrap_or(rest.len());
        let flags = &rest[..flags_end];
        rest = &rest[flags_end..];
        let mut left = flags.contains(&b'-');
        let number = |rest: &mut &[u8], args: &mut VaList| -> Option<i64> {
            if rest.first() == Some(&b'*') {
                *rest = &rest[1..];
                return Some(i64::from(args.general(p) as i32));
            }
            let n = rest.iter().position(|b| !b.is_ascii_digit()).unwrap_or(rest.len());
            let (digits, tail) = rest.split_at(n);
            *rest = tail;
            std::str::from_utf8(digits).ok()?.parse().ok()
        };
        let mut width = number(&mut rest, args).unwrap_or(0);
        if width < 0 {
            left = true;
            width = -width;
        }
        let mut precision = None;
        if rest.first() == Some(&b'.') {
            rest = &rest[1..];
            precision = Some(number(&mut rest, args).unwrap_or(0));
        }
        let size_end = rest.iter().position(|b| !b"hlLqjzt".contains(b)).unwrap_or(rest.len());
        let size = &rest[..size_end];
        rest = &rest[size_end..];
        let Some((&conversion, tail)) = rest.split_first() else {
            out.push(b'%');
            out.extend_from_slice(start);
            break;
        };
        rest = tail;
        let wide = size.iter().any(|b| b"lqjzt".contains(b));
        let signed = |v: u64| match size {
            b"hh" => i64::from(v as i8),
            b"h" => i64::from(v as i16),
            _ if wide => v as i64,
            _ => i64::from(v as i32),
        };
        let unsigned = |v: u64| match size {
            b"hh" => u64::from(v as u8),
            b"h" => u64::from(v as u16),
            _ if wide => v,
            _ => u64::from(v as u32),
        };
        let digits = |s: String| match precision {
            Some(n) if (s.len() as i64) < n => "0".repeat((n - s.len() as i64) as usize) + &s,
            _ => s,
        };
        let (sign, body): (&str, Vec<u8>) = match conversion {
            b'%' => ("", b"%".to_vec()),
            b'c' => ("", vec![args.general(p) as u8]),
            b's' => {
                let at = args.general(p);
                let limit = precision.map_or(MAX_TEXT, |n| n.max(0) as usize);
                ("", p.memory.c_string(at, limit).unwrap_or_else(|| b"(null)".to_vec()))
            }
            b'd' | b'i' => {
                let v = signed(args.general(p));
                let sign = if v < 0 {
                    "-"
                } else if flags.contains(&b'+') {
                    "+"
                } else if flags.contains(&b' ') {
                    " "
                } else {
                    ""
                };
                (sign, digits(v.unsigned_abs().to_string()).into_bytes())
            }
            b'u' => ("", digits(unsigned(args.general(p)).to_string()).into_bytes()),
            b'x' | b'X' | b'o' => {
                let v = unsigned(args.general(p));
                let s = match conversion {
                    b'x' => format!("{v:x}"),
                    b'X' => format!("{v:X}"),
                    _ => format!("{v:o}"),
                };
                let prefix = match (flags.contains(&b'#') && v != 0, conversion) {
                    (true, b'x') => "0x",
                    (true, b'X') => "0X",
                    (true, b'o') => "0",
                    _ => "",
                };
                (prefix, digits(s).into_bytes())
            }
            b'p' => ("0x", format!("{:x}", args.general(p)).into_bytes()),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' => {
                let v = args.floating(p);
                let n = precision.unwrap_or(6).max(0) as usize;
                let s = match conversion {
                    b'e' | b'E' => format!("{:.n$e}", v.abs()),
                    b'g' | b'G' => format!("{}", v.abs()),
                    _ => format!("{:.n$}", v.abs()),
                };
                (if v.is_sign_negative() { "-" } else { "" }, s.into_bytes())
            }
            _ => {
                out.push(b'%');
                rest = start;
                continue;
            }
        };
        let pad = (width as usize).saturating_sub(sign.len() + body.len());
        let zero = flags.contains(&b'0') && !left && !b"sc%".contains(&conversion);
        let fill = |n: usize, c: u8| std::iter::repeat_n(c, n);
        if !left && !zero {
            out.extend(fill(pad, b' '));
        }
        out.extend_from_slice(sign.as_bytes());
        if zero {
            out.extend(fill(pad, b'0'));
        }
        out.extend_from_slice(&body);
        if left {
            out.extend(fill(pad, b' '));
        }
    }
    out
}
