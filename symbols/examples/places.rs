//! Prints function, file and line of link-time addresses: `places FILE < ADDRESSES`, one hexadecimal address a line.
//!
//! For looking at what the debug-info reader makes of a file; `--raw` as second argument shows mangled names.

use std::{
    io::{self, BufWriter, Read, Write},
    path::Path,
    process::ExitCode,
    time::Instant,
};

use grind_symbols::{Object, Options, Svma};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("places: {e}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> io::Result<()> {
    let mut args = std::env::args_os().skip(1);
    let Some(file) = args.next() else {
        return Err(io::Error::other("usage: places FILE [--raw] < ADDRESSES"));
    };
    let raw = args.next().is_some_and(|a| a == "--raw");
    let mut text = String::new();
    io::stdin().read_to_string(&mut text)?;
    let mut addresses = Vec::new();
    for word in text.split_whitespace() {
        let digits = word.trim_start_matches("0x");
        addresses
            .push(Svma(u64::from_str_radix(digits, 16).map_err(|e| io::Error::other(format!("address {word}: {e}")))?));
    }
    let start = Instant::now();
    let options = Options { demangle: !raw, ..Options::default() };
    let object = Object::open(Path::new(&file), &options);
    let found = object.resolve(&addresses);
    eprintln!("{} addresses in {:.1} ms", addresses.len(), start.elapsed().as_secs_f64() * 1e3);
    for warning in object.warnings() {
        eprintln!("{warning}");
    }
    let mut out = BufWriter::new(io::stdout().lock());
    for (at, place) in addresses.iter().zip(&found.places) {
        write!(out, "{:#x}\t", at.0)?;
        out.write_all(&found.functions[place.function.index()])?;
        out.write_all(b"\t")?;
        out.write_all(&found.files[place.file.index()])?;
        writeln!(out, "\t{}", place.line)?;
    }
    out.flush()
}
