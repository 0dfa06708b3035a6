//! A program's stack as lines of the log, for requests that print one. In the form that the reference gives it, which tools read:
//! the innermost function first, and none below `main` unless that is asked for.

use std::fmt::Write as _;

use grind_names::symbolizer::{Code, Symbolizer, UNKNOWN};
use grind_types::Module;
use grind_types::addr::GuestAddr;

/// What is known of a frame's place.
#[derive(Debug)]
struct Found {
    function: String,
    /// Without its folder; empty if it is not known.
    file: String,
    line: u32,
    /// The object that it is in; empty for anonymous memory.
    object: String,
}

/// One line for each of these frames, which are addresses within the instructions that are being executed.
pub fn lines(symbolizer: &mut dyn Symbolizer, modules: &[Module], frames: &[GuestAddr], below_main: bool) -> String {
    let mut text = String::new();
    for (n, frame) in frames.iter().enumerate() {
        let found = find(symbolizer, modules, *frame);
        let (by, end) = (if n == 0 { "   at" } else { "   by" }, if n == 0 { "" } else { "\n" });
        let _ = write!(text, "{end}{by} 0x{:X}: {}", frame.0, found.function);
        let _ = match (found.file.as_str(), found.object.as_str()) {
            ("", "") => Ok(()),
            ("", object) => write!(text, " (in {object})"),
            (file, _) => write!(text, " ({file}:{})", found.line),
        };
        if !below_main && ["main", "(below main)"].contains(&found.function.as_str()) {
            break;
        }
    }
    text
}

fn find(symbolizer: &mut dyn Symbolizer, modules: &[Module], at: GuestAddr) -> Found {
    let unknown = || String::from_utf8_lossy(UNKNOWN).into_owned();
    let mut found = Found { function: unknown(), file: String::new(), line: 0, object: String::new() };
    let Some(module) = modules.iter().find(|m| (m.start.0..m.end.0).contains(&at.0)) else { return found };
    let code = match (&module.image, &module.path, &module.file) {
        (Some(image), ..) => Code::Image(image),
        (None, Some(path), Some(file)) => {
            found.object = path.display().to_string();
            Code::File(path, file)
        }
        _ => return found,
    };
    symbolizer.places(code, &[at.since(module.start).wrapping_add(module.offset)], &mut |_, place| {
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        found.function = text(place.function);
        if place.file != UNKNOWN {
            found.file = text(place.file.rsplit(|b| *b == b'/').next().unwrap_or_default());
        }
        found.line = place.line;
    });
    found
}

#[cfg(test)]
mod tests {
    use std::ops::Range;
    use std::path::PathBuf;
    use std::sync::Arc;

    use grind_names::symbolizer::Place;
    use grind_types::MappedFile;

    use super::*;

    /// Knows what stands at three offsets.
    struct Three;

    impl Symbolizer for Three {
        fn places(&mut self, _: Code<'_>, offsets: &[u64], tell: &mut dyn FnMut(Range<usize>, Place<'_>)) {
            tell(
                0..1,
                match offsets {
                    [0x110] => Place { file: b"/src/a.c", function: b"leaf", line: 7 },
                    [0x120] => Place { function: b"middle", ..Place::UNKNOWN },
                    [0x130] => Place { file: b"a.c", function: b"main", line: 9 },
                    _ => Place::UNKNOWN,
                },
            );
        }
    }

    #[test]
    fn frames_are_lines() {
        let path = PathBuf::from("/bin/prog");
        let file = Some(Arc::new(MappedFile::at(&path)));
        let (start, end) = (GuestAddr(0x40_0000), GuestAddr(0x40_1000));
        let modules = [Module { path: Some(path), file, image: None, start, end, offset: 0x100 }];
        let frames = [0x40_0010, 0x40_0020, 0x10, 0x40_0fff, 0x40_0030, 0x40_0040].map(GuestAddr);
        let main = "   at 0x400010: leaf (a.c:7)\n   by 0x400020: middle (in /bin/prog)\n   by 0x10: ???\n   \
                    by 0x400FFF: ??? (in /bin/prog)\n   by 0x400030: main (a.c:9)";
        assert_eq!(lines(&mut Three, &modules, &frames, false), main);
        let all = format!("{main}\n   by 0x400040: ??? (in /bin/prog)");
        assert_eq!(lines(&mut Three, &modules, &frames, true), all);
        assert_eq!(lines(&mut Three, &modules, &[], true), "");
    }
}
