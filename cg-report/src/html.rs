//! The page around the data: one HTML file that loads nothing and runs nothing but our own program.
//!
//! Names, commands and sources are hostile. They stand in the file as JSON without a `<`, as base64, or in the table for
//! browsers without scripts, escaped. The policy in the head lets the browser run two scripts and use one style sheet, by
//! their hashes, and open no connection, unless it is served, and then only to where it comes from: the first script unpacks the second, since every report has them.

use std::fmt::Write as _;
use std::io::{self, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

use crate::pack::{Text, packed};

/// What unpacks the page's program, the program with its style sheet, what it runs beside itself, and the style sheet of the page without it,
/// built from `web/`.
const LOADER: &str = include_str!("../dist/loader.js");
const SCRIPT: &str = include_str!("../dist/app.js");
const WORKER: &str = include_str!("../dist/worker.js");
const STYLE: &str = include_str!("../dist/base.css");

/// Where the page finds its columns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    /// In itself.
    Inside,
    /// Where it comes from itself, below `data/`.
    Below,
    /// Likewise, below `data/VERSION/`, while it changes.
    Live(u64),
}

/// What a page is made of.
#[derive(Debug)]
pub(crate) struct Page {
    /// The title of the window.
    pub(crate) title: String,
    /// JSON; see [`crate::head`].
    pub(crate) head: String,
    /// Columns.
    pub(crate) data: Text,
    /// Rows of the table for browsers without scripts: inclusive, self, name.
    pub(crate) table: Vec<[String; 3]>,
}

impl Page {
    /// Writes the page.
    ///
    /// # Errors
    /// Those of `out`.
    pub(crate) fn write(&self, data: &Data, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(self.beginning(*data).as_bytes())?;
        out.write_all(b"<script type=\"application/json\" id=\"head\">")?;
        out.write_all(inert(&self.head).as_bytes())?;
        out.write_all(b"</script>\n<script type=\"application/octet-stream\" id=\"data\"")?;
        match data {
            Data::Inside => {
                out.write_all(b">")?;
                self.data.write_first(out)?;
            }
            Data::Below => out.write_all(b" data-below=\"data/\">")?,
            Data::Live(version) => {
                write!(out, " data-below=\"data/{version}/\" data-live=\"{version}\">")?;
            }
        }
        for (id, program) in [("worker", WORKER), ("program", SCRIPT)] {
            write!(out, "</script>\n<script type=\"application/octet-stream\" id=\"{id}\">")?;
            out.write_all(packed(program.as_bytes())?.as_bytes())?;
        }
        out.write_all(b"</script>\n<script>")?;
        out.write_all(LOADER.as_bytes())?;
        out.write_all(b"</script>\n")?;
        if *data == Data::Inside {
            // The page is shown before the browser has read this, which is most of a large one.
            out.write_all(b"<script type=\"application/octet-stream\" id=\"rest\">")?;
            self.data.write_rest(out)?;
            out.write_all(b"</script>\n")?;
        }
        out.write_all(b"</body>\n</html>\n")
    }

    /// How many bytes [`Page::write`] writes, at most and nearly.
    pub(crate) fn size(&self) -> usize {
        LOADER.len() + SCRIPT.len() + WORKER.len() + STYLE.len() + self.head.len() + self.data.len()
    }

    /// The part of the columns that START-LENGTH names, if there is one.
    pub(crate) fn part(&self, range: &str) -> Option<&str> {
        let (start, length) = range.split_once('-')?;
        let (start, length) = (start.parse::<usize>().ok()?, length.parse::<usize>().ok()?);
        self.data.whole().get(start..start.checked_add(length)?)
    }

    fn beginning(&self, data: Data) -> String {
        let reach = if data == Data::Inside { "'none'" } else { "'self'" };
        let policy = format!(
            "default-src 'none'; script-src 'sha256-{}' 'sha256-{}'; style-src 'sha256-{}'; worker-src blob:; img-src data: blob:; \
             connect-src {reach}; base-uri 'none'; form-action 'none'",
            hash(LOADER),
            hash(SCRIPT),
            hash(STYLE)
        );
        let mut text = format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"referrer\" content=\"no-referrer\">\n<title>{}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n\
             <div id=\"app\"></div>\n<noscript>\n<h1>{}</h1>\n\
             <p>This report is a program: with scripts switched on it shows call graphs, flame graphs and sources. \
             These are the functions with the highest inclusive cost.</p>\n\
             <table>\n<tr><th>inclusive</th><th>self</th><th>function</th></tr>\n",
            escaped(&self.title),
            escaped(&self.title),
        );
        for [inclusive, own, name] in &self.table {
            let _ = writeln!(text, "<tr><td>{inclusive}</td><td>{own}</td><td>{}</td></tr>", escaped(name));
        }
        text.push_str("</table>\n</noscript>\n");
        text
    }
}

/// The hash of a text, as policies have it.
fn hash(text: &str) -> String {
    STANDARD.encode(Sha256::digest(text.as_bytes()))
}

/// JSON that no browser takes for anything else, wherever it stands.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}

/// Text in HTML. Control characters and those that turn the direction of a text around become visible.
pub(crate) fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}' => {
                let _ = write!(out, "[U+{:04X}]", letter as u32);
            }
            letter if letter.is_control() => {
                let _ = write!(out, "[U+{:04X}]", letter as u32);
            }
            letter => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_own_program_does_not_end_its_element() {
        for part in [LOADER, STYLE] {
            let lower = part.to_lowercase();
            assert!(!lower.contains("</script") && !lower.contains("</style") && !lower.contains("<!--"));
        }
    }

    #[test]
    fn our_own_program_is_small() {
        let packed = |program: &str| packed(program.as_bytes()).unwrap().len();
        let size = LOADER.len() + STYLE.len() + packed(SCRIPT) + packed(WORKER);
        assert!(size < 160_000, "{size} bytes in every report");
    }

    #[test]
    fn hostile_text_has_no_markup_and_hides_nothing() {
        assert_eq!(
            escaped("<img onerror='x'>&\"\u{202e}\u{1b}"),
            "&lt;img onerror=&#39;x&#39;&gt;&amp;&quot;[U+202E][U+001B]"
        );
        assert_eq!(inert("{\"a\": \"</script>\u{2028}\"}"), "{\"a\": \"\\u003c/script>\\u2028\"}");
    }
}
