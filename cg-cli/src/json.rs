//! Writes JSON: enough for reports, without a data model in between.
//!
//! Strings are always valid UTF-8: bytes that are not become U+FFFD, and [`Json::name`] then adds the exact bytes in
//! hexadecimal. Numbers are written with all their digits. The output is indented and ends with a line end.

use std::fmt::Write;

/// A JSON text in the making. Calls must nest as the text does.
#[derive(Debug, Default)]
pub struct Json {
    text: String,
    /// One entry for each open bracket: whether something stands in it already.
    open: Vec<bool>,
    after_key: bool,
}

impl Json {
    /// Starts an object, as a value.
    pub fn begin_object(&mut self) {
        self.begin('{');
    }

    /// Ends the innermost object.
    pub fn end_object(&mut self) {
        self.end('}');
    }

    /// Starts an array, as a value.
    pub fn begin_array(&mut self) {
        self.begin('[');
    }

    /// Ends the innermost array.
    pub fn end_array(&mut self) {
        self.end(']');
    }

    /// Writes a key; its value comes next.
    pub fn key(&mut self, key: &str) {
        self.separate();
        self.quote(key);
        self.text.push_str(": ");
        self.after_key = true;
    }

    /// Writes a string, as a value.
    pub fn string(&mut self, bytes: &[u8]) {
        self.separate();
        let text = String::from_utf8_lossy(bytes);
        self.quote(&text);
    }

    /// Writes an integer, as a value.
    pub fn integer(&mut self, value: i128) {
        self.separate();
        let _ = write!(self.text, "{value}");
    }

    /// Writes a number that is not an integer, as a value; `null` for infinities and the like.
    pub fn float(&mut self, value: f64) {
        self.separate();
        if value.is_finite() {
            let _ = write!(self.text, "{value}");
        } else {
            self.text.push_str("null");
        }
    }

    /// Writes `true` or `false`, as a value.
    pub fn boolean(&mut self, value: bool) {
        self.separate();
        self.text.push_str(if value { "true" } else { "false" });
    }

    /// Writes `null`, as a value.
    pub fn null(&mut self) {
        self.separate();
        self.text.push_str("null");
    }

    /// Writes key and string; for bytes that are not UTF-8 also `KEY_hex`.
    pub fn name(&mut self, key: &str, bytes: &[u8]) {
        self.key(key);
        self.string(bytes);
        if std::str::from_utf8(bytes).is_err() {
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            self.key(&format!("{key}_hex"));
            self.string(hex.as_bytes());
        }
    }

    /// Writes a key and an array of integers, on one line.
    pub fn integers(&mut self, key: &str, values: impl IntoIterator<Item = i128>) {
        self.key(key);
        self.after_key = false;
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        let _ = write!(self.text, "[{}]", values.join(", "));
    }

    /// The text, complete.
    #[must_use]
    pub fn finish(mut self) -> String {
        debug_assert!(self.open.is_empty(), "a bracket is still open");
        self.text.push('\n');
        self.text
    }

    fn begin(&mut self, bracket: char) {
        self.separate();
        self.text.push(bracket);
        self.open.push(false);
    }

    fn end(&mut self, bracket: char) {
        if self.open.pop() == Some(true) {
            self.line();
        }
        self.text.push(bracket);
    }

    fn separate(&mut self) {
        if std::mem::take(&mut self.after_key) {
            return;
        }
        if let Some(filled) = self.open.last_mut() {
            if std::mem::replace(filled, true) {
                self.text.push(',');
            }
            self.line();
        }
    }

    fn line(&mut self) {
        self.text.push('\n');
        for _ in &self.open {
            self.text.push_str("  ");
        }
    }

    fn quote(&mut self, text: &str) {
        self.text.push('"');
        for c in text.chars() {
            match c {
                '"' => self.text.push_str("\\\""),
                '\\' => self.text.push_str("\\\\"),
                '\n' => self.text.push_str("\\n"),
                '\t' => self.text.push_str("\\t"),
                c if u32::from(c) < 0x20 || c == '\u{7f}' => _ = write!(self.text, "\\u{:04x}", u32::from(c)),
                c => self.text.push(c),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_nest_and_strings_are_escaped() {
        let mut json = Json::default();
        json.begin_object();
        json.name("name", b"a\"\\\n\x01\xff");
        json.integers("counts", [1, -2]);
        json.key("empty");
        json.begin_array();
        json.end_array();
        json.key("list");
        json.begin_array();
        json.float(0.5);
        json.float(f64::NAN);
        json.boolean(true);
        json.null();
        json.integer(10_i128.pow(30));
        json.end_array();
        json.end_object();
        let expected = "{\n  \"name\": \"a\\\"\\\\\\n\\u0001\u{fffd}\",\n  \"name_hex\": \"61225c0a01ff\",\n  \
                        \"counts\": [1, -2],\n  \"empty\": [],\n  \"list\": [\n    0.5,\n    null,\n    true,\n    null,\n    \
                        1000000000000000000000000000000\n  ]\n}\n";
        assert_eq!(json.finish(), expected);
    }
}
