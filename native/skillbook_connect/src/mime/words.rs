//! Encoded words (RFC 2047) that the parser of headers does not read, as mails have them: a
//! character in two words, Base64 without its padding, bytes outside ASCII. They become one word.

use std::borrow::Cow;

use encodify::base64;
use memchr::memmem;

use crate::charset;

/// An encoded word, and the bytes that it stands for.
struct Word<'a> {
    charset: &'a [u8],
    bytes: Vec<u8>,
    /// Whether the parser reads it alone.
    whole: bool,
    /// The place after it.
    end: usize,
}

/// A header whose encoded words can be read one by one. A word within another one becomes its text,
/// since the parser puts blanks beside encoded words.
pub fn mended(header: &[u8]) -> Cow<'_, [u8]> {
    let mut mended: Option<Vec<u8>> = None;
    let (mut at, mut kept) = (0, 0);
    let mut field = Field { start: 0, seen: 0 };
    while let Some(found) = header.get(at..).and_then(|rest| memmem::find(rest, b"=?")) {
        let start = at + found;
        let Some(first) = word(header, start) else {
            at = start + 2;
            continue;
        };
        let run = run(header, first);
        at = run.end;
        let is_subject = field.of(header, start).is_subject(header);
        let inner = inner(header, start, run.end, is_subject);
        if run.whole && !inner {
            continue;
        }
        let name = String::from_utf8_lossy(run.charset);
        let text = charset::decode(&run.bytes, &name);
        let plain = if is_subject { is_text(&text) } else { is_atom(&text) };
        if run.whole && !plain {
            continue;
        }
        let mended = mended.get_or_insert_with(Vec::new);
        mended.extend_from_slice(header.get(kept..start).unwrap_or_default());
        if inner && plain {
            mended.extend_from_slice(text.as_bytes());
        } else {
            mended.extend_from_slice(b"=?utf-8?B?");
            mended.extend_from_slice(base64::STANDARD.encode(text).as_bytes());
            mended.extend_from_slice(b"?=");
        }
        kept = at;
    }
    match mended {
        None => Cow::Borrowed(header),
        Some(mut mended) => {
            mended.extend_from_slice(header.get(kept..).unwrap_or_default());
            Cow::Owned(mended)
        }
    }
}

/// The place where the field of a word begins, found as words are read.
struct Field {
    start: usize,
    seen: usize,
}

impl Field {
    fn of(&mut self, header: &[u8], at: usize) -> &Self {
        let between = header.get(self.seen..at).unwrap_or_default();
        for end in memchr::memchr_iter(b'\n', between).map(|end| self.seen + end + 1) {
            // A line that begins with a blank continues the one before.
            if !matches!(header.get(end), Some(b' ' | b'\t')) {
                self.start = end;
            }
        }
        self.seen = at;
        self
    }

    fn is_subject(&self, header: &[u8]) -> bool {
        let name = header.get(self.start..).and_then(|field| field.get(..b"subject:".len()));
        name.is_some_and(|name| name.eq_ignore_ascii_case(b"subject:"))
    }
}

/// Whether a word stands within another one: in a subject beside anything but a blank, elsewhere
/// beside a letter or a digit.
fn inner(header: &[u8], start: usize, end: usize, is_subject: bool) -> bool {
    [start.checked_sub(1), Some(end)].into_iter().flatten().any(|place| {
        header.get(place).is_some_and(|byte| match is_subject {
            true => !byte.is_ascii_whitespace(),
            false => byte.is_ascii_alphanumeric(),
        })
    })
}

/// Whether a text can stand in a subject as it is.
fn is_text(text: &str) -> bool {
    !text.contains("=?") && !text.chars().any(char::is_control)
}

/// Whether a text can stand among addresses as it is, where other characters have a meaning.
fn is_atom(text: &str) -> bool {
    text.chars().all(|char| char.is_alphanumeric() || "-_'!".contains(char))
}

/// A word with those after it of the same character set, if they are only whole together.
fn run<'a>(header: &'a [u8], mut first: Word<'a>) -> Word<'a> {
    while let Some(next) = after(header, first.end) {
        if !next.charset.eq_ignore_ascii_case(first.charset) {
            break;
        }
        first.bytes.extend_from_slice(&next.bytes);
        first.whole &= next.whole;
        first.end = next.end;
    }
    first
}

/// The word after blanks and folds.
fn after(header: &[u8], at: usize) -> Option<Word<'_>> {
    let rest = header.get(at..)?;
    let blanks = rest.iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    (blanks > 0).then(|| word(header, at + blanks)).flatten()
}

/// The word at a place, if there is one.
fn word(header: &[u8], at: usize) -> Option<Word<'_>> {
    let rest = header.get(at..)?.strip_prefix(b"=?")?;
    let mut fields = rest.splitn(3, |byte| *byte == b'?');
    let (set, encoding, data) = (fields.next()?, fields.next()?, fields.next()?);
    let data = data.get(..memchr::memchr(b'?', data)?)?;
    if data.contains(&b'\n') {
        return None;
    }
    let end = at + 2 + set.len() + 1 + encoding.len() + 1 + data.len() + 2;
    if header.get(end - 1) != Some(&b'=') || set.is_empty() || !set.iter().all(u8::is_ascii_graphic)
    {
        return None;
    }
    // A language may follow (RFC 2231).
    let charset = set.split(|byte| *byte == b'*').next()?;
    let (bytes, encoded) = match encoding {
        b"Q" | b"q" => (quoted(data), data.is_ascii()),
        b"B" | b"b" => based(data),
        _ => return None,
    };
    let (_, readable) = charset::decode_checked(&bytes, &String::from_utf8_lossy(charset));
    Some(Word { charset, bytes, whole: encoded && readable, end })
}

fn quoted(data: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(data.len());
    let mut rest = data;
    while let Some((first, tail)) = rest.split_first() {
        rest = tail;
        let hex = tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let hex = hex.filter(|hex| hex.bytes().all(|byte| byte.is_ascii_hexdigit()));
        match (first, hex.and_then(|hex| u8::from_str_radix(hex, 16).ok())) {
            (b'=', Some(byte)) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            (b'_', _) => bytes.push(b' '),
            (byte, _) => bytes.push(*byte),
        }
    }
    bytes
}

/// Bytes of Base64, and whether it has its padding.
fn based(data: &[u8]) -> (Vec<u8>, bool) {
    let symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/".contains(byte);
    let mut symbols: Vec<u8> = data.iter().copied().filter(symbol).collect();
    let padded = data.len().is_multiple_of(4) && symbols.len().next_multiple_of(4) == data.len();
    // One symbol is less than a byte.
    if symbols.len() % 4 == 1 {
        symbols.pop();
    }
    while !symbols.len().is_multiple_of(4) {
        symbols.push(b'=');
    }
    (base64::LENIENT.decode(&symbols).unwrap_or_default(), padded)
}

#[cfg(test)]
mod tests {
    use super::mended;

    #[test]
    fn mends() {
        let rows: [(&[u8], &str); 26] = [
            (b"Subject: plain\r\n", "Subject: plain\r\n"),
            // The readable characters stay as they are.
            (b"=?utf-8?Q?Gr=C3=BC?= =?utf-8?B?w58=?=", "=?utf-8?Q?Gr=C3=BC?= =?utf-8?B?w58=?="),
            (b"=?utf-8?Q?=C3=A4?= =?koi8-r?Q?=C3?=", "=?utf-8?Q?=C3=A4?= =?koi8-r?Q?=C3?="),
            // A character in two words, also folded.
            (b"a =?utf-8?Q?Gr=C3?= =?UTF-8?Q?=BC_n?= b", "a =?utf-8?B?R3LDvCBu?= b"),
            (b"=?utf-8?B?R3LD?=\r\n =?utf-8?B?vG4=?=", "=?utf-8?B?R3LDvG4=?="),
            (b"=?utf-8?B?R3LD?=\t=?utf-8?Q?=BCn?=", "=?utf-8?B?R3LDvG4=?="),
            // Without its padding, or with too much.
            (b"=?utf-8?B?w7w?=", "=?utf-8?B?w7w=?="),
            (b"=?utf-8?B?YWI====?=", "=?utf-8?B?YWI=?="),
            (b"=?utf-8?B?YWJjZ?=", "=?utf-8?B?YWJj?="),
            // Bytes outside ASCII.
            (b"=?iso-8859-1?Q?Fr\xf6sche?=", "=?utf-8?B?RnLDtnNjaGU=?="),
            (b"=?iso-8859-1*de?Q?\xf6?=", "=?utf-8?B?w7Y=?="),
            // Words within others.
            (b"Subject: a=?utf-8?Q?=C3=BC?=c", "Subject: a\u{fc}c"),
            (b"Subject: (=?utf-8?Q?b_c?=), d", "Subject: (b c), d"),
            (b"subject:=?utf-8?Q?b?=\r\n =?utf-8?Q?c?= d", "subject:bc d"),
            (b"Subject: a\r\n b=?utf-8?Q?c?==?x?Q?d?=", "Subject: a\r\n bcd"),
            (b"Subject: a=?utf-8?Q?=0Ab?=", "Subject: a=?utf-8?Q?=0Ab?="),
            (b"Subject: a=?utf-8?Q?=3D=3F?=", "Subject: a=?utf-8?Q?=3D=3F?="),
            (b"To: a=?utf-8?Q?b?=c <a@b>", "To: abc <a@b>"),
            (b"To: a=?utf-8?Q?b,?=c <a@b>", "To: a=?utf-8?Q?b,?=c <a@b>"),
            (b"To: =?utf-8?Q?b?=<a@b>", "To: =?utf-8?Q?b?=<a@b>"),
            (b"Subject: a\r\nTo: \"=?utf-8?Q?b?=\"", "Subject: a\r\nTo: \"=?utf-8?Q?b?=\""),
            // No words.
            (b"=?utf-8?Q?a", "=?utf-8?Q?a"),
            (b"=?utf-8?X?a?=", "=?utf-8?X?a?="),
            (b"=??Q?a?=", "=??Q?a?="),
            (b"=?utf-8?Q?a?b", "=?utf-8?Q?a?b"),
            (b"=?utf-8?Q?a\r\n b?=", "=?utf-8?Q?a\r\n b?="),
        ];
        for (header, expected) in rows {
            let found = mended(header);
            assert_eq!(String::from_utf8_lossy(&found), expected, "{header:?}");
        }
    }
}
