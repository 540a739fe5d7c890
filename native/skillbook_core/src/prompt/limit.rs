//! Limits for the length of a prompt, and the estimate of tokens.

/// The maximum length of a prompt. The default is no limit.
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

/// Estimates the tokens of a text: one for four ASCII characters, and one for every other
/// character.
///
/// Tokenizers differ. For English prose and for code most of them return fewer, so a prompt within
/// the limit rarely exceeds the real one.
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
        // Counted in quarters of a token, so that sums of pieces are exact.
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
