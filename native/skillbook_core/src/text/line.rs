//! Helpers for text of one line: the domain and action of a command's name, and text with its line
//! breaks folded.

/// Splits a command's name into domain and action.
///
/// A name has two or more words, separated by dots, of letters, digits, `-` and `_`.
///
/// ```
/// use skillbook_core::text::line::command_name;
/// assert_eq!(command_name("email.send"), Some(("email", "send")));
/// assert_eq!(command_name("email"), None);
/// assert_eq!(command_name("Node.js tips"), None);
/// ```
pub fn command_name(name: &str) -> Option<(&str, &str)> {
    let word = |word: &str| {
        !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || c == '-' || c == '_')
    };
    let (domain, action) = name.split_once('.')?;
    (word(domain) && action.split('.').all(word)).then_some((domain, action))
}

/// Appends text as one line: each run of white space becomes one space.
///
/// ```
/// let mut line = String::from("- ");
/// skillbook_core::text::line::push_line(&mut line, " two\n words ");
/// assert_eq!(line, "- two words");
/// ```
pub fn push_line(out: &mut String, text: &str) {
    // A prompt has thousands of descriptions, and most are on one line already.
    if is_line(text.as_bytes()) {
        out.push_str(text);
        return;
    }
    for (index, word) in text.split_whitespace().enumerate() {
        if index > 0 {
            out.push(' ');
        }
        out.push_str(word);
    }
}

/// Whether the text is ASCII whose only white space is single spaces between words.
fn is_line(text: &[u8]) -> bool {
    let mut blank = true;
    for byte in text {
        match byte {
            b' ' if blank => return false,
            b' ' => blank = true,
            b'!'..=b'~' => blank = false,
            _ => return false,
        }
    }
    !blank
}

#[cfg(test)]
mod tests {
    use super::push_line;

    #[test]
    fn a_text_on_one_line() {
        let rows = [
            ("", ""),
            (" ", ""),
            ("a", "a"),
            ("a b", "a b"),
            ("a  b", "a b"),
            (" a b", "a b"),
            ("a b ", "a b"),
            ("a\tb\nc", "a b c"),
            ("a\u{2028}b\u{a0}c", "a b c"),
            ("ä\u{0}b", "ä\u{0}b"),
        ];
        for (text, expected) in rows {
            let mut out = String::new();
            push_line(&mut out, text);
            assert_eq!(out, expected, "{text:?}");
        }
    }
}
