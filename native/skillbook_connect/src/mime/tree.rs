//! The parts of a mail.
//!
//! The walk is ours, because the parser of headers that we use follows nested mails by recursion
//! and without a limit. A mail in a mail is one part.

use std::borrow::Cow;

use encodify::{base64, qp};
use mail_parser::{HeaderName, Message, MessageParser, MimeHeaders};
use memchr::memmem;

use super::problems::Problems;
use super::words;
use crate::charset;

/// The most parts of a mail, and the deepest nesting of parts.
pub const MAX_PARTS: usize = 1000;
pub const MAX_DEPTH: usize = 32;
/// The most bytes of a header that are read. Servers take a quarter of it.
pub const MAX_HEADER: usize = 256 << 10;
/// Longer ones are not allowed, and are ignored.
const MAX_BOUNDARY: usize = 200;

/// A part. Its number is its place in document order; the mail itself is part 0.
pub struct Part<'a> {
    pub parent: Option<usize>,
    pub kind: Kind,
    /// Its media type, in lower case.
    pub media_type: String,
    pub charset: String,
    pub name: Option<String>,
    pub encoding: Encoding,
    pub disposition: Disposition,
    /// Whether it is the first one of its parent.
    pub first: bool,
    pub body: &'a [u8],
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    Leaf,
    Alternative,
    Related,
    Digest,
    Mixed,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Encoding {
    None,
    Base64,
    QuotedPrintable,
    Uuencode,
    Unknown,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Disposition {
    None,
    Inline,
    Attachment,
}

impl<'a> Part<'a> {
    /// Its content, without the parts that cannot be decoded.
    pub fn decoded(&self, problems: &mut Problems) -> Cow<'a, [u8]> {
        let broken = "a part is not encoded as it says; what can be read is shown";
        match self.encoding {
            Encoding::None => Cow::Borrowed(self.body),
            Encoding::Unknown => {
                problems.add("a part has an unknown encoding, and is shown as it is");
                Cow::Borrowed(self.body)
            }
            Encoding::QuotedPrintable => {
                if qp::BODY.strict().decoded_len(self.body).is_err() {
                    problems.add(broken);
                }
                qp::BODY.decode(self.body).unwrap_or(Cow::Borrowed(self.body))
            }
            Encoding::Uuencode => match uudecoded(self.body) {
                Some(content) => Cow::Owned(content),
                None => {
                    problems.add(broken);
                    Cow::Borrowed(self.body)
                }
            },
            Encoding::Base64 => Cow::Owned(base64::MIME.decode(self.body).unwrap_or_else(|_| {
                problems.add(broken);
                let symbol = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/=".contains(byte);
                let symbols: Vec<u8> = self.body.iter().copied().filter(symbol).collect();
                base64::MIME.decode(&symbols).unwrap_or_default()
            })),
        }
    }
}

/// The header of a mail or of a part.
pub fn header<'a>(parser: &MessageParser, raw: &'a [u8]) -> Option<Message<'a>> {
    fields(parser, split(raw).0)
}

/// Bytes that are neither encoded nor UTF-8 are read as those of a text without a character set,
/// each line by itself.
fn fields<'a>(parser: &MessageParser, header: &'a [u8]) -> Option<Message<'a>> {
    let header = words::mended(header);
    let mut message = if simdutf8::basic::from_utf8(&header).is_ok() {
        match header {
            Cow::Borrowed(header) => parser.parse_headers(header),
            Cow::Owned(header) => parser.parse_headers(&header).map(Message::into_owned),
        }
    } else {
        let lines = header.split_inclusive(|byte| *byte == b'\n');
        let text: String = lines.map(|line| charset::decode(line, "")).collect();
        parser.parse_headers(text.as_bytes()).map(Message::into_owned)
    }?;
    // The parser takes the last of the headers of one name, other readers the first.
    message.parts.first_mut()?.headers.reverse();
    Some(message)
}

/// A part that was not read yet.
struct Pending<'a> {
    raw: &'a [u8],
    parent: Option<usize>,
    depth: usize,
    digest: bool,
    first: bool,
}

/// The parts of a mail, in document order.
pub fn parts<'a>(raw: &'a [u8], problems: &mut Problems) -> Vec<Part<'a>> {
    let parser = MessageParser::new()
        .header_content_type(HeaderName::ContentType)
        .header_content_type(HeaderName::ContentDisposition)
        .header_text(HeaderName::ContentTransferEncoding)
        .default_header_ignore();
    let mut parts = Vec::new();
    let mut pending = vec![Pending { raw, parent: None, depth: 0, digest: false, first: true }];
    while let Some(next) = pending.pop() {
        let (mut part, boundary) = read(&parser, &next, problems);
        let number = parts.len();
        if let Some(boundary) = boundary {
            let room = MAX_PARTS - parts.len() - 1 - pending.len();
            let (children, closed) = delimited(part.body, boundary.as_bytes(), room + 1);
            if children.is_empty() {
                problems.add("it says that it has parts, and has none; it is shown as it is");
                as_text(&mut part);
            } else if next.depth == MAX_DEPTH {
                problems.add("its parts are nested too deeply; the inner ones are one attachment");
                part.kind = Kind::Leaf;
            } else {
                if children.len() > room {
                    problems
                        .add(format!("it has more than {MAX_PARTS} parts; others are left out"));
                } else if !closed {
                    problems.add("the end of its parts is missing; it may be cut");
                }
                let children = children.into_iter().take(room).enumerate().rev();
                pending.extend(children.map(|(place, raw)| Pending {
                    raw,
                    parent: Some(number),
                    depth: next.depth + 1,
                    digest: part.kind == Kind::Digest,
                    first: place == 0,
                }));
            }
        } else if part.kind != Kind::Leaf {
            problems.add("it says that it has parts, and has none; it is shown as it is");
            as_text(&mut part);
        }
        parts.push(part);
    }
    parts
}

fn as_text(part: &mut Part) {
    part.kind = Kind::Leaf;
    part.media_type = "text/plain".to_owned();
}

/// A part and, if it has parts, their boundary.
fn read<'a>(
    parser: &MessageParser,
    pending: &Pending<'a>,
    problems: &mut Problems,
) -> (Part<'a>, Option<String>) {
    let (header, body) = split(pending.raw);
    if header.len() > MAX_HEADER {
        problems.add("a header is very long; only its beginning is read");
    }
    let header = header.get(..MAX_HEADER).unwrap_or(header);
    let message = fields(parser, header);
    let message = message.as_ref();
    let content_type = message.and_then(|message| message.content_type());
    let media_type = match content_type {
        None if pending.digest => "message/rfc822".to_owned(),
        None => "text/plain".to_owned(),
        Some(kind) => match kind.subtype() {
            Some(subtype) => format!("{}/{subtype}", kind.ctype()).to_ascii_lowercase(),
            None if kind.ctype().eq_ignore_ascii_case("text") => "text/plain".to_owned(),
            None => "application/octet-stream".to_owned(),
        },
    };
    let attribute = |name| content_type.and_then(|kind| kind.attribute(name));
    let disposition = message.and_then(|message| message.content_disposition());
    let encoding = message.and_then(|message| message.content_transfer_encoding());
    let part = Part {
        parent: pending.parent,
        kind: match media_type.split_once('/') {
            Some(("multipart", "alternative")) => Kind::Alternative,
            Some(("multipart", "related")) => Kind::Related,
            Some(("multipart", "digest")) => Kind::Digest,
            Some(("multipart", _)) => Kind::Mixed,
            _ => Kind::Leaf,
        },
        charset: attribute("charset").unwrap_or_default().to_owned(),
        name: message.and_then(|message| message.attachment_name()).map(str::to_owned),
        encoding: match encoding.map(|name| name.trim().to_ascii_lowercase()).as_deref() {
            None | Some("" | "7bit" | "8bit" | "binary") => Encoding::None,
            Some("base64") => Encoding::Base64,
            Some("quoted-printable") => Encoding::QuotedPrintable,
            Some("x-uuencode" | "uuencode" | "x-uue" | "uue") => Encoding::Uuencode,
            Some(_) => Encoding::Unknown,
        },
        disposition: match disposition {
            Some(value) if value.is_inline() => Disposition::Inline,
            // Unknown ones mean attachments.
            Some(_) => Disposition::Attachment,
            None => Disposition::None,
        },
        first: pending.first,
        body,
        media_type,
    };
    let boundary = attribute("boundary")
        .filter(|boundary| part.kind != Kind::Leaf && (1..=MAX_BOUNDARY).contains(&boundary.len()))
        .map(str::to_owned);
    (part, boundary)
}

/// The header of a mail or a part, with its blank line, and the body. A text that does not begin
/// with a header is all body.
fn split(raw: &[u8]) -> (&[u8], &[u8]) {
    // The line before a mail in a mailbox file.
    let raw = match memchr::memchr(b'\n', raw) {
        Some(end) if raw.starts_with(b"From ") => raw.get(end + 1..).unwrap_or_default(),
        _ => raw,
    };
    if !begins_with_field(raw) {
        let blank = [&b"\r\n"[..], b"\n"].into_iter().find(|blank| raw.starts_with(blank));
        return raw.split_at(blank.map_or(0, <[u8]>::len));
    }
    let mut ends = memchr::memchr_iter(b'\n', raw).filter_map(|at| match raw.get(at + 1..at + 3) {
        Some(b"\r\n") => Some(at + 3),
        Some([b'\n', _]) => Some(at + 2),
        _ => (raw.get(at + 1..) == Some(&b"\n"[..])).then_some(at + 2),
    });
    match ends.next() {
        Some(end) => raw.split_at(end),
        None => raw.split_at(last_field(raw)),
    }
}

/// The end of the header of a text without a blank line: the body begins with the first line that
/// is no field.
fn last_field(raw: &[u8]) -> usize {
    let mut end = 0;
    for line in raw.split_inclusive(|&byte| byte == b'\n') {
        if !(begins_with_field(line) || line.starts_with(b" ") || line.starts_with(b"\t")) {
            break;
        }
        end += line.len();
    }
    end
}

/// The content of a uuencoded text, between its lines `begin` and `end`.
fn uudecoded(body: &[u8]) -> Option<Vec<u8>> {
    let mut lines = body.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii_end);
    lines.find(|line| line.starts_with(b"begin "))?;
    let mut content = Vec::with_capacity(body.len() / 4 * 3);
    for line in lines {
        if line == b"end" {
            return Some(content);
        }
        let value = |byte: &u8| byte.wrapping_sub(b' ') & 63;
        let Some((length, symbols)) = line.split_first() else { continue };
        let length = usize::from(value(length));
        // Blanks at the end of a line may be lost.
        let bytes = symbols.chunks(4).flat_map(|four| {
            let [a, b, c, d] = [0, 1, 2, 3].map(|at| four.get(at).map_or(0, value));
            [a << 2 | b >> 4, b << 4 | c >> 2, c << 6 | d]
        });
        content.extend(bytes.chain(std::iter::repeat(0)).take(length));
    }
    None
}

/// Whether the first line is `Name: value`.
fn begins_with_field(raw: &[u8]) -> bool {
    let line = raw.split(|&byte| byte == b'\n').next().unwrap_or_default();
    let Some(colon) = memchr::memchr(b':', line) else { return false };
    let name = line.split_at(colon).0.trim_ascii_end();
    !name.is_empty() && name.iter().all(u8::is_ascii_graphic)
}

/// The texts between delimiters, at most so many, and whether the last delimiter closes them.
fn delimited<'a>(body: &'a [u8], boundary: &[u8], most: usize) -> (Vec<&'a [u8]>, bool) {
    let delimiter = [b"--", boundary].concat();
    let mut found = Vec::new();
    let mut start = None;
    for at in memmem::find_iter(body, &delimiter) {
        let (before, after) = (body.split_at(at).0, body.split_at(at + delimiter.len()).1);
        if !(before.is_empty() || before.ends_with(b"\n")) {
            continue;
        }
        let line = memchr::memchr(b'\n', after).unwrap_or(after.len());
        let rest = after.split_at(line).0.trim_ascii();
        let closes = rest.starts_with(b"--");
        if !(rest.is_empty() || closes && rest.trim_ascii_start().len() == 2) {
            continue;
        }
        let end = before.len() - ending(before);
        if let Some(start) = start {
            found.push(body.get(start..end.max(start)).unwrap_or_default());
        }
        if closes && start.is_some() {
            return (found, true);
        }
        if found.len() >= most {
            return (found, false);
        }
        start = Some((at + delimiter.len() + line + 1).min(body.len()));
    }
    if let Some(start) = start {
        found.push(body.get(start..).unwrap_or_default());
    }
    (found, false)
}

/// The length of the line end of a text.
fn ending(text: &[u8]) -> usize {
    if text.ends_with(b"\r\n") {
        2
    } else {
        usize::from(text.ends_with(b"\n"))
    }
}
