//! The placeholders of a statement: `$1`, `$2` and so on.

use crate::error::Detail;
use crate::{Error, ErrorKind};

/// The placeholders of a statement, in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Placeholders<'a> {
    /// The offset of each in the statement's text, and its number.
    numbers: Vec<(usize, usize)>,
    /// The first one that is not a number.
    invalid: Option<&'a str>,
}

impl<'a> Placeholders<'a> {
    pub fn push(&mut self, name: &'a str, start: usize) {
        match number(name) {
            Some(number) => self.numbers.push((start, number)),
            None => self.invalid = self.invalid.or(Some(name)),
        }
    }

    /// Checks that there are as many parameters as placeholders, and that each of them is used.
    pub fn check(&self, given: usize) -> Result<(), Error> {
        let wrong = |detail| Err(Error::new(ErrorKind::Params, detail));
        if let Some(name) = self.invalid {
            return wrong(Detail::Placeholder(name.to_owned()));
        }
        let highest = self.numbers.iter().map(|(_, number)| *number).max().unwrap_or(0);
        if highest != given {
            return wrong(Detail::ParamCount { placeholders: highest, given });
        }
        let mut is_used = vec![false; highest];
        self.numbers.iter().for_each(|(_, number)| is_used[number - 1] = true);
        let missing = is_used.iter().position(|is_used| !is_used);
        missing.map_or(Ok(()), |at| wrong(Detail::PlaceholderMissing(at + 1)))
    }

    /// The statement's text with the placeholders `?1` and `?2`.
    pub fn with_question_marks(&self, text: &str) -> String {
        let (mut out, mut from) = (String::with_capacity(text.len()), 0);
        for (start, _) in &self.numbers {
            out.push_str(&text[from..*start]);
            out.push('?');
            from = start + 1;
        }
        out.push_str(&text[from..]);
        out
    }
}

/// `$7` is 7. `$0`, `$07`, `$a`, `?1` and `:a` have no number.
pub(crate) fn number(name: &str) -> Option<usize> {
    let digits = name.strip_prefix('$')?;
    let plain = !digits.starts_with('0') && digits.bytes().all(|byte| byte.is_ascii_digit());
    plain.then(|| digits.parse().ok()).flatten()
}
