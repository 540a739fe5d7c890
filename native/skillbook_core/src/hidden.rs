//! Finds hidden characters and makes them visible.
//!
//! A hidden character shows nothing of its own, or changes how other text is shown: control
//! characters, direction controls, zero-width characters, tags, and the like. A document could use
//! them to drive a terminal, or to tell a model something that its reviewer cannot see. Documents
//! are stored as their authors wrote them. Where their text goes out, [`visible`] replaces each
//! hidden character by its code, `\u{202E}`.
//!
//! These are not hidden, because ordinary text needs them: `\n`, `\t` and `\r\n`; joiners after a
//! letter of a script that uses them and within an emoji; one variation selector after an emoji, an
//! ideograph or another character that has variants; the tags in the flags of England, Scotland
//! and Wales. Characters for private use are not hidden either: fonts show them, at least as a box.

use std::borrow::Cow;
use std::ops::Range;

/// A hidden character and its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hidden {
    /// The offset, in bytes.
    pub at: usize,
    /// The character.
    pub character: char,
}

/// The kinds of hidden characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// A control character, also a `\r` without `\n`.
    Control,
    /// Sets, overrides or isolates the direction of text.
    Direction,
    /// An invisible letter with a direction.
    DirectionMark,
    /// A tag: an invisible copy of an ASCII character.
    Tag,
    /// A variation selector where nothing has variants.
    Variation,
    /// A soft hyphen.
    SoftHyphen,
    /// A byte order mark.
    ByteOrderMark,
    /// A space or joiner without width.
    ZeroWidth,
    /// A line or paragraph separator.
    LineSeparator,
    /// A blank letter, or another character without a picture.
    Filler,
}

impl Class {
    /// A short description.
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Control => "control character",
            Class::Direction => "changes the direction of text",
            Class::DirectionMark => "direction mark",
            Class::Tag => "tag, which spells an invisible text",
            Class::Variation => "variation selectors in a row",
            Class::SoftHyphen => "soft hyphen",
            Class::ByteOrderMark => "byte order mark within a text",
            Class::ZeroWidth => "zero width",
            Class::LineSeparator => "line separator",
            Class::Filler => "filler",
        }
    }

    /// Whether ordinary text hardly ever has such a character. Soft hyphens, marks and separators
    /// are often copied from web pages by accident.
    pub fn is_suspect(self) -> bool {
        !matches!(
            self,
            Class::DirectionMark | Class::SoftHyphen | Class::ByteOrderMark | Class::LineSeparator
        )
    }

    /// Whether such a character makes a text read differently from what it says.
    pub fn is_deceptive(self) -> bool {
        matches!(self, Class::Direction | Class::Tag)
    }
}

/// The class of a character that is hidden unless its neighbours need it.
pub fn class(character: char) -> Option<Class> {
    Some(match character {
        '\t' | '\n' => return None,
        '\0'..='\u{1F}' | '\u{7F}'..='\u{9F}' => Class::Control,
        '\u{AD}' => Class::SoftHyphen,
        '\u{200B}'..='\u{200D}' | '\u{2060}' => Class::ZeroWidth,
        '\u{61C}' | '\u{200E}' | '\u{200F}' => Class::DirectionMark,
        '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' => Class::Direction,
        '\u{2028}' | '\u{2029}' => Class::LineSeparator,
        '\u{FEFF}' => Class::ByteOrderMark,
        '\u{180B}'..='\u{180D}' | '\u{180F}' | '\u{FE00}'..='\u{FE0F}' => Class::Variation,
        '\u{E0100}'..='\u{E01EF}' => Class::Variation,
        '\u{E0000}'..='\u{E007F}' => Class::Tag,
        '\u{34F}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}' | '\u{180E}' => Class::Filler,
        '\u{2061}'..='\u{2065}' | '\u{206A}'..='\u{206F}' | '\u{3164}' => Class::Filler,
        '\u{FFA0}' | '\u{FFF0}'..='\u{FFFB}' | '\u{1BCA0}'..='\u{1BCA3}' => Class::Filler,
        '\u{1D173}'..='\u{1D17A}' | '\u{E0080}'..='\u{E00FF}' => Class::Filler,
        '\u{E01F0}'..='\u{E0FFF}' => Class::Filler,
        _ => return None,
    })
}

/// The name that Unicode gives a hidden character, or of a long range the name of the range.
pub fn name(character: char) -> &'static str {
    const CONTROLS: [&str; 32] = [
        "NULL",
        "START OF HEADING",
        "START OF TEXT",
        "END OF TEXT",
        "END OF TRANSMISSION",
        "ENQUIRY",
        "ACKNOWLEDGE",
        "BELL",
        "BACKSPACE",
        "CHARACTER TABULATION",
        "LINE FEED",
        "LINE TABULATION",
        "FORM FEED",
        "CARRIAGE RETURN",
        "SHIFT OUT",
        "SHIFT IN",
        "DATA LINK ESCAPE",
        "DEVICE CONTROL ONE",
        "DEVICE CONTROL TWO",
        "DEVICE CONTROL THREE",
        "DEVICE CONTROL FOUR",
        "NEGATIVE ACKNOWLEDGE",
        "SYNCHRONOUS IDLE",
        "END OF TRANSMISSION BLOCK",
        "CANCEL",
        "END OF MEDIUM",
        "SUBSTITUTE",
        "ESCAPE",
        "INFORMATION SEPARATOR FOUR",
        "INFORMATION SEPARATOR THREE",
        "INFORMATION SEPARATOR TWO",
        "INFORMATION SEPARATOR ONE",
    ];
    match character {
        '\0'..='\u{1F}' => CONTROLS[character as usize],
        '\u{7F}' => "DELETE",
        '\u{85}' => "NEXT LINE",
        '\u{9B}' => "CONTROL SEQUENCE INTRODUCER",
        '\u{80}'..='\u{9F}' => "C1 CONTROL",
        '\u{AD}' => "SOFT HYPHEN",
        '\u{34F}' => "COMBINING GRAPHEME JOINER",
        '\u{61C}' => "ARABIC LETTER MARK",
        '\u{115F}' => "HANGUL CHOSEONG FILLER",
        '\u{1160}' => "HANGUL JUNGSEONG FILLER",
        '\u{17B4}' => "KHMER VOWEL INHERENT AQ",
        '\u{17B5}' => "KHMER VOWEL INHERENT AA",
        '\u{180B}'..='\u{180D}' | '\u{180F}' => "MONGOLIAN FREE VARIATION SELECTOR",
        '\u{180E}' => "MONGOLIAN VOWEL SEPARATOR",
        '\u{200B}' => "ZERO WIDTH SPACE",
        '\u{200C}' => "ZERO WIDTH NON-JOINER",
        '\u{200D}' => "ZERO WIDTH JOINER",
        '\u{200E}' => "LEFT-TO-RIGHT MARK",
        '\u{200F}' => "RIGHT-TO-LEFT MARK",
        '\u{2028}' => "LINE SEPARATOR",
        '\u{2029}' => "PARAGRAPH SEPARATOR",
        '\u{202A}' => "LEFT-TO-RIGHT EMBEDDING",
        '\u{202B}' => "RIGHT-TO-LEFT EMBEDDING",
        '\u{202C}' => "POP DIRECTIONAL FORMATTING",
        '\u{202D}' => "LEFT-TO-RIGHT OVERRIDE",
        '\u{202E}' => "RIGHT-TO-LEFT OVERRIDE",
        '\u{2060}' => "WORD JOINER",
        '\u{2061}' => "FUNCTION APPLICATION",
        '\u{2062}' => "INVISIBLE TIMES",
        '\u{2063}' => "INVISIBLE SEPARATOR",
        '\u{2064}' => "INVISIBLE PLUS",
        '\u{2066}' => "LEFT-TO-RIGHT ISOLATE",
        '\u{2067}' => "RIGHT-TO-LEFT ISOLATE",
        '\u{2068}' => "FIRST STRONG ISOLATE",
        '\u{2069}' => "POP DIRECTIONAL ISOLATE",
        '\u{206A}'..='\u{206F}' => "DEPRECATED FORMAT CHARACTER",
        '\u{3164}' => "HANGUL FILLER",
        '\u{FE00}'..='\u{FE0F}' | '\u{E0100}'..='\u{E01EF}' => "VARIATION SELECTOR",
        '\u{FEFF}' => "ZERO WIDTH NO-BREAK SPACE",
        '\u{FFA0}' => "HALFWIDTH HANGUL FILLER",
        '\u{FFF9}' => "INTERLINEAR ANNOTATION ANCHOR",
        '\u{FFFA}' => "INTERLINEAR ANNOTATION SEPARATOR",
        '\u{FFFB}' => "INTERLINEAR ANNOTATION TERMINATOR",
        '\u{1BCA0}'..='\u{1BCA3}' => "SHORTHAND FORMAT CONTROL",
        '\u{1D173}'..='\u{1D17A}' => "MUSICAL SYMBOL FORMAT CHARACTER",
        '\u{E0000}'..='\u{E007F}' => "TAG CHARACTER",
        _ => "DEFAULT IGNORABLE CHARACTER",
    }
}

/// Finds the hidden characters of a text.
///
/// ```
/// use skillbook_core::hidden::{find, Hidden};
/// let found: Vec<_> = find("a\u{202E}b").collect();
/// assert_eq!(found, [Hidden { at: 1, character: '\u{202E}' }]);
/// assert_eq!(find("❤️ and 👩‍💻\r\n").count(), 0);
/// ```
pub fn find(text: &str) -> Find<'_> {
    Find { text, at: 0, needed: 0 }
}

/// The iterator of [`find`].
#[derive(Debug, Clone)]
pub struct Find<'a> {
    text: &'a str,
    at: usize,
    /// The end of the last character that was found and is not hidden.
    needed: usize,
}

impl Iterator for Find<'_> {
    type Item = Hidden;

    fn next(&mut self) -> Option<Hidden> {
        loop {
            let at = self.at + suspect(&self.text.as_bytes()[self.at..])?;
            let character = self.text[at..].chars().next()?;
            let end = at + character.len_utf8();
            self.at = end;
            if class(character).is_none() {
                continue;
            }
            match needed(self.text, at..end, self.needed == at) {
                Some(length) => {
                    self.at = at + length;
                    self.needed = self.at;
                }
                None => return Some(Hidden { at, character }),
            }
        }
    }
}

/// Replaces hidden characters by their codes. Returns the same text if it has none.
///
/// ```
/// use skillbook_core::hidden::visible;
/// assert_eq!(visible("\u{1B}[2J \u{202E}txt"), "\\u{1B}[2J \\u{202E}txt");
/// ```
pub fn visible(text: &str) -> Cow<'_, str> {
    replaced(text, |out, character| {
        out.push_str("\\u{");
        let code = character as u32;
        let digits = (32 - code.leading_zeros()).div_ceil(4).max(1);
        push_hex(out, code, digits, b"0123456789ABCDEF");
        out.push('}');
    })
}

/// The same on one line: line breaks become `\n`.
///
/// ```
/// use skillbook_core::hidden::line;
/// assert_eq!(line("a\r\n\u{1B}b"), "a\\n\\u{1B}b");
/// ```
pub fn line(text: &str) -> Cow<'_, str> {
    let text = visible(text);
    match text.contains('\n') {
        true => Cow::Owned(text.replace("\r\n", "\n").replace('\n', "\\n")),
        false => text,
    }
}

/// Replaces the hidden characters of a JSON text by escapes of JSON, which keeps its meaning.
///
/// ```
/// use skillbook_core::hidden::json;
/// assert_eq!(json("\"a\u{202E}\u{E0041}\""), "\"a\\u202e\\udb40\\udc41\"");
/// ```
pub fn json(text: &str) -> Cow<'_, str> {
    replaced(text, |out, character| {
        for unit in character.encode_utf16(&mut [0; 2]) {
            out.push_str("\\u");
            push_hex(out, u32::from(*unit), 4, b"0123456789abcdef");
        }
    })
}

/// Makes the hidden characters of a text visible from an offset on, in place.
pub fn reveal(text: &mut String, from: usize) {
    if let Cow::Owned(shown) = visible(&text[from..]) {
        text.truncate(from);
        text.push_str(&shown);
    }
}

fn replaced(text: &str, write: impl Fn(&mut String, char)) -> Cow<'_, str> {
    let mut found = find(text).peekable();
    if found.peek().is_none() {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + text.len() / 8);
    let mut done = 0;
    for Hidden { at, character } in found {
        out.push_str(&text[done..at]);
        write(&mut out, character);
        done = at + character.len_utf8();
    }
    out.push_str(&text[done..]);
    Cow::Owned(out)
}

/// Several times as fast as `write!`, for texts full of hidden characters.
fn push_hex(out: &mut String, code: u32, digits: u32, alphabet: &[u8; 16]) {
    for digit in (0..digits).rev() {
        out.push(alphabet[(code >> (4 * digit)) as usize & 15] as char);
    }
}

/// The number of bytes that are compared at once.
const BLOCK: usize = 64;

/// The bytes that a hidden character may begin with.
const LEADS: [bool; 256] = {
    let mut leads = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        leads[byte] = matches!(byte as u8,
            0..=0x08 | 0x0B..=0x1F | 0x7F
            | 0xC2 | 0xCD | 0xD8 | 0xE1 | 0xE2 | 0xE3 | 0xEF | 0xF0 | 0xF3);
        byte += 1;
    }
    leads
};

/// The offset of the first byte that a hidden character may begin with.
fn suspect(bytes: &[u8]) -> Option<usize> {
    if may_hide(bytes, 0) {
        return Some(0);
    }
    let mut start = 0;
    for block in bytes.chunks(BLOCK) {
        // Most texts are ASCII. The compiler turns this test of a block into a few instructions.
        let odd = |byte: &u8| *byte >= 0x7F || (*byte < 0x20 && *byte != b'\n' && *byte != b'\t');
        if block.iter().fold(false, |any, byte| any | odd(byte)) {
            for (at, byte) in block.iter().enumerate() {
                if LEADS[*byte as usize] && may_hide(bytes, start + at) {
                    return Some(start + at);
                }
            }
        }
        start += block.len();
    }
    None
}

/// Whether a hidden character may begin at an offset. It decides by up to three bytes, since other
/// characters that begin with the same byte, such as quotation marks and emoji, are frequent.
fn may_hide(bytes: &[u8], at: usize) -> bool {
    let next = |distance: usize| bytes.get(at + distance).copied().unwrap_or_default();
    match bytes.get(at) {
        Some(0xC2) => matches!(next(1), 0x80..=0x9F | 0xAD),
        Some(0xCD) => next(1) == 0x8F,
        Some(0xD8) => next(1) == 0x9C,
        Some(0xE1) => matches!(next(1), 0x85 | 0x9E | 0xA0),
        Some(0xE2) => {
            matches!((next(1), next(2)), (0x80, 0x8B..=0x8F | 0xA8..=0xAE) | (0x81, 0xA0..))
        }
        Some(0xE3) => next(1) == 0x85,
        Some(0xEF) => matches!(next(1), 0xB8 | 0xBB | 0xBE | 0xBF),
        Some(0xF0) => matches!(next(1), 0x9B | 0x9D),
        Some(0xF3) => next(1) == 0xA0,
        Some(byte) => LEADS[*byte as usize],
        None => false,
    }
}

/// The length in bytes of a character at `place` that its neighbours need, or of the whole
/// sequence; `None` if the character is hidden. `follows` says whether the character before is
/// of a class of hidden characters, but needed too.
fn needed(text: &str, place: Range<usize>, follows: bool) -> Option<usize> {
    let length = place.len();
    let character = text[place.clone()].chars().next()?;
    let before = || text[..place.start].chars().next_back();
    let after = || text[place.end..].chars().next();
    let holds = match character {
        '\r' => after() == Some('\n'),
        '\u{200C}' | '\u{200D}' => {
            let before = before()?;
            joins(before)
                || character == '\u{200D}'
                    && (is_emoji(before) || follows && ends_emoji(before))
                    && after().is_some_and(is_emoji)
        }
        '\u{FE0E}' | '\u{FE0F}' => {
            let before = before()?;
            is_emoji(before) || matches!(before, '0'..='9' | '#' | '*') || has_variants(before)
        }
        '\u{FE00}'..='\u{FE0D}' => has_variants(before()?),
        '\u{E0100}'..='\u{E01EF}' => is_ideograph(before()?),
        '\u{180B}'..='\u{180F}' => matches!(before()?, '\u{1820}'..='\u{18AA}'),
        '\u{E0020}'..='\u{E007E}' if before()? == '\u{1F3F4}' => {
            let rest = &text[place.start..];
            return FLAGS.iter().find(|flag| rest.starts_with(**flag)).map(|flag| flag.len());
        }
        _ => false,
    };
    holds.then_some(length)
}

/// The tags of the flags of England, Scotland and Wales, the only ones that Unicode recommends.
const FLAGS: [&str; 3] = [
    "\u{E0067}\u{E0062}\u{E0065}\u{E006E}\u{E0067}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
    "\u{E0067}\u{E0062}\u{E0077}\u{E006C}\u{E0073}\u{E007F}",
];

/// Whether a character is of a script that needs joiners: Arabic, Syriac, N'Ko and Mandaic; the
/// scripts of India and its neighbours; Khmer, Myanmar, Mongolian, Balinese, Javanese.
fn joins(character: char) -> bool {
    matches!(character,
        '\u{620}'..='\u{6D5}' | '\u{6EE}'..='\u{6FF}' | '\u{710}'..='\u{7FA}'
        | '\u{840}'..='\u{88E}' | '\u{8A0}'..='\u{8C9}'
        | '\u{900}'..='\u{DFF}' | '\u{F40}'..='\u{FBC}' | '\u{1000}'..='\u{109F}'
        | '\u{1780}'..='\u{17B3}' | '\u{17B6}'..='\u{17D3}' | '\u{1820}'..='\u{18AA}'
        | '\u{1B00}'..='\u{1B7F}' | '\u{A8E0}'..='\u{A8FF}' | '\u{A980}'..='\u{A9DF}'
        | '\u{FB50}'..='\u{FDFB}' | '\u{FE70}'..='\u{FEFC}' | '\u{11000}'..='\u{1184F}')
}

/// Whether an emoji may end with this character.
fn ends_emoji(character: char) -> bool {
    matches!(character, '\u{FE0F}' | '\u{E007F}')
}

/// Whether a character is an emoji, or a symbol that can be shown as one.
fn is_emoji(character: char) -> bool {
    matches!(character,
        '©' | '®' | '‼' | '⁉' | '\u{20E3}' | '™' | 'ℹ' | '↔'..='↪' | '⌚'..='⏿' | 'Ⓜ'
        | '■'..='➿' | '⤴' | '⤵' | '⬅'..='⭕' | '〰' | '〽' | '㊗' | '㊙'
        | '\u{1F000}'..='\u{1FAFF}')
}

/// Whether a character has variants that a selector chooses: an ideograph, a mathematical symbol, a
/// letter of Myanmar or Phags-pa.
fn has_variants(character: char) -> bool {
    is_ideograph(character)
        || matches!(character,
            '\u{2190}'..='\u{22FF}' | '\u{2A00}'..='\u{2AFF}' | '\u{1000}'..='\u{109F}'
            | '\u{A840}'..='\u{A877}' | '\u{3001}' | '\u{3002}' | '\u{FF01}'..='\u{FF1F}')
}

fn is_ideograph(character: char) -> bool {
    matches!(character,
        '\u{2E80}'..='\u{2FDF}' | '\u{3400}'..='\u{9FFF}' | '\u{F900}'..='\u{FAFF}'
        | '\u{20000}'..='\u{3FFFF}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn shows_hidden_characters_and_keeps_the_rest() {
        let rows = [
            ("", ""),
            ("plain\n\ttext\r\n é ö 日本 🎉", "plain\n\ttext\r\n é ö 日本 🎉"),
            // Control characters
            ("\u{1B}[31mred\u{7}", "\\u{1B}[31mred\\u{7}"),
            ("a\rb\u{8}\u{B}\u{C}\0", "a\\u{D}b\\u{8}\\u{B}\\u{C}\\u{0}"),
            ("a\r", "a\\u{D}"),
            ("\u{7F}\u{85}\u{9B}31m", "\\u{7F}\\u{85}\\u{9B}31m"),
            ("\u{A0}", "\u{A0}"),
            // Directions and separators
            ("a\u{202E}b\u{202C}", "a\\u{202E}b\\u{202C}"),
            ("\u{2066}a\u{2069}", "\\u{2066}a\\u{2069}"),
            ("\u{200E}\u{200F}\u{61C}", "\\u{200E}\\u{200F}\\u{61C}"),
            ("a\u{2028}b\u{2029}", "a\\u{2028}b\\u{2029}"),
            ("“a” – b… €", "“a” – b… €"),
            // Zero width
            ("a\u{200B}b\u{2060}\u{FEFF}", "a\\u{200B}b\\u{2060}\\u{FEFF}"),
            ("a\u{200D}b\u{200C}c", "a\\u{200D}b\\u{200C}c"),
            ("\u{200D}", "\\u{200D}"),
            ("می\u{200C}خواهم क्\u{200D}ष", "می\u{200C}خواهم क्\u{200D}ष"),
            ("می\u{200C}\u{200C}", "می\u{200C}\\u{200C}"),
            ("soft\u{AD}ly", "soft\\u{AD}ly"),
            // Emoji
            ("👩\u{200D}💻 👩🏽\u{200D}💻 ❤\u{FE0F}", "👩\u{200D}💻 👩🏽\u{200D}💻 ❤\u{FE0F}"),
            ("🏳\u{FE0F}\u{200D}🌈 1\u{FE0F}\u{20E3}", "🏳\u{FE0F}\u{200D}🌈 1\u{FE0F}\u{20E3}"),
            ("👩\u{200D}", "👩\\u{200D}"),
            ("👩\u{200D}a", "👩\\u{200D}a"),
            // Variation selectors
            ("a\u{FE0F}", "a\\u{FE0F}"),
            ("a\u{FE0F}\u{200D}👩", "a\\u{FE0F}\\u{200D}👩"),
            ("😀\u{FE01}", "😀\\u{FE01}"),
            ("😀\u{FE0F}\u{FE0F}", "😀\u{FE0F}\\u{FE0F}"),
            ("😀\u{E0101}", "😀\\u{E0101}"),
            ("葛\u{E0100} 葛\u{E0100}\u{E0101}", "葛\u{E0100} 葛\u{E0100}\\u{E0101}"),
            ("∪\u{FE00}", "∪\u{FE00}"),
            ("ᠠ\u{180B}a\u{180B}", "ᠠ\u{180B}a\\u{180B}"),
            // Tags
            ("\u{E0041}b", "\\u{E0041}b"),
            (
                "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
                "🏴\u{E0067}\u{E0062}\u{E0073}\u{E0063}\u{E0074}\u{E007F}",
            ),
            ("🏴\u{E0067}\u{E0062}\u{E007F}", "🏴\\u{E0067}\\u{E0062}\\u{E007F}"),
            ("🏴\u{E0068}\u{E0069}", "🏴\\u{E0068}\\u{E0069}"),
            // Fillers
            ("\u{3164}\u{115F}\u{FFA0}", "\\u{3164}\\u{115F}\\u{FFA0}"),
            ("\u{FFF9}a\u{FFFB}", "\\u{FFF9}a\\u{FFFB}"),
            ("\u{1D173}\u{206A}\u{2062}\u{34F}", "\\u{1D173}\\u{206A}\\u{2062}\\u{34F}"),
            ("\u{E000}\u{F0000}", "\u{E000}\u{F0000}"),
        ];
        for (text, expected) in rows {
            assert_eq!(visible(text), expected, "{text:?}");
            // At any offset of a block.
            for length in [1, BLOCK - 1, BLOCK, 2 * BLOCK + 1] {
                let before = "x".repeat(length);
                let (text, expected) = (format!("{before}{text}"), format!("{before}{expected}"));
                assert_eq!(visible(&text), expected, "{text:?}");
            }
        }
    }

    #[test]
    fn a_text_without_hidden_characters_is_not_copied() {
        for text in ["", "plain", "ü 日本 “q” 👩\u{200D}💻 ✔\u{FE0F}"] {
            assert!(matches!(visible(text), Cow::Borrowed(_)), "{text}");
        }
    }

    #[test]
    fn the_scan_finds_every_hidden_character() {
        for character in '\0'..=char::MAX {
            if class(character).is_some() {
                let text = format!("{}{character}", "x".repeat(BLOCK));
                assert_eq!(suspect(text.as_bytes()), Some(BLOCK), "{character:?}");
                assert!(!name(character).is_empty());
            }
        }
    }

    #[test]
    fn reveals_the_end_of_a_text() {
        let mut text = "a\u{7}b\u{7}".to_owned();
        reveal(&mut text, 2);
        assert_eq!(text, "a\u{7}b\\u{7}");
    }

    proptest! {
        #[test]
        fn nothing_hidden_is_left(
            text in "[a\n\r\u{200B}-\u{200F}\u{FE0E}\u{FE0F}👩💻❤ک🏴\u{E0060}-\u{E007F}]{0,40}",
        ) {
            let shown = visible(&text);
            prop_assert_eq!(find(&shown).count(), 0);
            prop_assert_eq!(visible(&shown), shown.clone());
            let escaped = json(&text);
            prop_assert_eq!(find(&escaped).count(), 0);
        }
    }
}
