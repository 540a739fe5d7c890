//! How long a prompt may be.

/// How long a prompt may be; without numbers, as long as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Limit {
    /// Unicode characters.
    pub chars: Option<usize>,
    /// Tokens, as [`tokens`] estimates them.
    pub tokens: Option<usize>,
}

impl Limit {
    pub(super) fn is_none(self) -> bool {
        self == Limit::default()
    }

    pub(super) fn holds(self, size: Size) -> bool {
        self.chars.is_none_or(|most| size.chars <= most)
            && self.tokens.is_none_or(|most| size.tokens() <= most)
    }
}

/// How many tokens a text has, about: one for four ASCII characters, and one for each other character. Tokenizers of
/// models differ; of English prose and of code they make fewer.
///
/// ```
/// use skillbook_core::prompt::tokens;
/// assert_eq!((tokens("get_skill"), tokens("日本"), tokens("")), (3, 2, 0));
/// ```
pub fn tokens(text: &str) -> usize {
    Size::of(text).tokens()
}

/// The length of a text in both measures.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Size {
    chars: usize,
    quarters: usize,
}

impl Size {
    pub(super) fn of(text: &str) -> Size {
        let ascii = text.bytes().filter(u8::is_ascii).count();
        let chars = text.chars().count();
        Size { chars, quarters: ascii + 4 * (chars - ascii) }
    }

    pub(super) fn plus(self, text: &str) -> Size {
        let more = Size::of(text);
        Size { chars: self.chars + more.chars, quarters: self.quarters + more.quarters }
    }

    fn tokens(self) -> usize {
        self.quarters.div_ceil(4)
    }
}
