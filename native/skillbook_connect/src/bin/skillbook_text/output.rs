//! The text of a document, which has a limit.

use std::fmt;

/// The most bytes of text.
pub const MAX_TEXT: usize = 4 << 20;

/// Text in lines and paragraphs.
#[derive(Default)]
pub struct Output {
    text: String,
    /// Line ends before the next text.
    lines: usize,
}

impl Output {
    /// Adds text on the current line. The error is that there is too much.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        if text.is_empty() {
            return Ok(());
        }
        if self.text.len() + self.lines + text.len() > MAX_TEXT {
            return Err(format!("it has more than {MAX_TEXT} bytes of text"));
        }
        let lines = if self.text.is_empty() { 0 } else { self.lines };
        self.text.extend(std::iter::repeat_n('\n', lines));
        self.lines = 0;
        self.text.push_str(text);
        Ok(())
    }

    /// Ends the line; with 2 an empty line follows.
    pub fn line(&mut self, count: usize) {
        self.lines = self.lines.max(count);
    }

    /// The whole text. A document without text is an error: it has pictures only.
    pub fn finish(self) -> Result<String, String> {
        let text = self.text.trim_end();
        if text.trim().is_empty() {
            return Err("it has no text; it may consist of pictures".to_owned());
        }
        Ok(format!("{text}\n"))
    }
}

impl fmt::Write for Output {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.add(text).map_err(|_| fmt::Error)
    }
}
