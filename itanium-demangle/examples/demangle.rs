//! Shows names, one a line, as `c++filt` does: `cargo run -p itanium-demangle --example demangle < NAMES`.

use std::io::{self, BufRead, Write};

use itanium_demangle::demangle;

fn main() -> io::Result<()> {
    let mut out = io::stdout().lock();
    for line in io::stdin().lock().split(b'\n') {
        let name = line?;
        out.write_all(&demangle(&name).unwrap_or(name))?;
        out.write_all(b"\n")?;
    }
    Ok(())
}
