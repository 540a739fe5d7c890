//! JSON objects and arrays as values. Their characters are passed on unchanged.

use super::chars::blank_at;
use super::{LineEnd, Mode, Scanner, Sink};
use crate::text::fence;

/// The state inside a JSON object or array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Json {
    depth: usize,
    string: bool,
    escaped: bool,
}

impl Scanner {
    /// Whether a JSON object or array begins here, rather than a word such as `{last}` or `[x]`.
    ///
    /// Only an object that is the command's first or second word may continue on the next line, and
    /// only between its strings.
    pub(super) fn json_opens(&mut self, line: &str) -> Option<Json> {
        let inner = fence::trim_start(line.strip_prefix(['{', '['])?);
        let object = line.starts_with('{');
        let goes_on = object && !self.in_word && self.words < 2;
        // An object begins with a key, a list with text or an object, and both may be empty. Other
        // words in braces and brackets are placeholders or globs.
        let plausible = match inner.as_bytes().first() {
            None => goes_on,
            Some(b'"') => true,
            Some(b'}') => object,
            Some(first) => !object && matches!(first, b'{' | b']'),
        };
        if !plausible || self.guess_budget == 0 {
            return None;
        }
        let mut json = Json::default();
        let len = json.read(line.as_bytes());
        let opens = if json.depth > 0 {
            goes_on && !json.string
        } else {
            len == line.len() || blank_at(line.as_bytes(), len) > 0
        };
        // A line of many such beginnings must not be read to its end for each of them.
        if !opens {
            self.guess_budget = self.guess_budget.saturating_sub(len);
        }
        opens.then(Json::default)
    }

    /// Reads the characters of a JSON object or array, up to its end or the end of the line.
    pub(super) fn json<S: Sink>(
        &mut self,
        mut json: Json,
        src: &str,
        at: usize,
        end: usize,
        sink: &mut S,
    ) -> Result<usize, LineEnd> {
        let next = at + json.read(&src.as_bytes()[at..end]);
        sink.text(at..next);
        if json.depth > 0 {
            self.mode = Mode::Json(json);
            return Err(LineEnd::Quote);
        }
        self.mode = Mode::Plain;
        Ok(next)
    }
}

impl Json {
    /// Reads up to the end of the outermost object or array. Returns the number of bytes.
    fn read(&mut self, bytes: &[u8]) -> usize {
        for (at, byte) in bytes.iter().enumerate() {
            if self.string {
                match byte {
                    _ if self.escaped => self.escaped = false,
                    b'\\' => self.escaped = true,
                    b'"' => self.string = false,
                    _ => {}
                }
                continue;
            }
            match byte {
                b'"' => self.string = true,
                b'{' | b'[' => self.depth += 1,
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
            if self.depth == 0 {
                return at + 1;
            }
        }
        bytes.len()
    }
}
