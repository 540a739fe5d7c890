//! White space in the text for the user: the ends are trimmed, and the gap that a block leaves
//! becomes one blank line.

use std::borrow::Cow;

use super::Event;

/// The text for the user, emitted piece by piece.
#[derive(Debug, Clone, Default)]
pub(super) struct ReplyText {
    started: bool,
    gap: bool,
    /// White space that belongs to the text only if more text follows.
    blank: String,
}

impl ReplyText {
    /// Marks the place of a block that was taken out.
    pub(super) fn gap(&mut self) {
        self.gap = true;
        self.blank.clear();
    }

    pub(super) fn emit<'b>(&mut self, text: &'b str, out: &mut impl FnMut(Event<'b>)) {
        let lead = blank_start(text);
        // Only white space: it matters only if text follows.
        if lead == text.len() {
            self.blank.push_str(text);
            return;
        }
        let mut from = lead;
        if !self.started {
            self.blank.clear();
        } else if self.gap {
            out(Event::Text(Cow::Borrowed("\n\n")));
            // The first line after the gap keeps its indentation.
            match text[..lead].rfind('\n') {
                Some(line) => from = line + 1,
                None => {
                    let line = self.blank.rfind('\n').map_or(0, |at| at + 1);
                    if line < self.blank.len() {
                        out(Event::Text(Cow::Owned(self.blank.split_off(line))));
                    }
                    from = 0;
                }
            }
            self.blank.clear();
        } else {
            if !self.blank.is_empty() {
                out(Event::Text(Cow::Owned(std::mem::take(&mut self.blank))));
            }
            from = 0;
        }
        self.started = true;
        self.gap = false;
        let body = trim_end(&text[from..]);
        out(Event::Text(Cow::Borrowed(body)));
        self.blank.push_str(&text[from + body.len()..]);
    }
}

/// How many bytes of white space a text begins with. The first byte nearly always decides.
fn blank_start(text: &str) -> usize {
    match text.as_bytes() {
        [b'!'..=b'~', ..] => 0,
        _ => text.len() - text.trim_start().len(),
    }
}

/// The text without trailing white space, which nearly always is line breaks.
pub(super) fn trim_end(text: &str) -> &str {
    let breaks = text.bytes().rev().take_while(|byte| *byte == b'\n').count();
    let text = &text[..text.len() - breaks];
    match text.as_bytes() {
        [.., b'!'..=b'~'] => text,
        _ => text.trim_end(),
    }
}
