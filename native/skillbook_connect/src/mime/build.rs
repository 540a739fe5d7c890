//! Writes mails.

use encodify::base64::MIME;
use mail_builder::headers::address::Address;
use mail_builder::headers::content_type::ContentType;
use mail_builder::headers::message_id::MessageId;
use mail_builder::mime::{BodyPart, MimePart};
use mail_builder::MessageBuilder;

use super::Mailbox;
use crate::charset;

/// The most mailboxes and ids of one header, and the most bytes of a subject, a name, an address
/// and an id.
pub const MAX_LIST: usize = 2000;
pub const MAX_WORDS: usize = 2000;
const MAX_ADDRESS: usize = 254;
const MAX_ID: usize = 900;
/// The longest line of a mail (RFC 5322, section 2.1.1).
const MAX_LINE: usize = 998;

/// A mail to write.
#[derive(Debug, Clone, Default)]
pub struct Draft<'a> {
    pub from: Option<Mailbox>,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    pub subject: String,
    /// Seconds since 1970.
    pub date: i64,
    /// Ids, without their angle brackets.
    pub message_id: String,
    pub in_reply_to: Vec<String>,
    pub references: Vec<String>,
    pub text: String,
    pub html: Option<String>,
    pub attachments: Vec<File<'a>>,
}

/// An attachment. Its type is a media type such as `text/csv`, and its character set is that of a
/// text.
#[derive(Debug, Clone)]
pub struct File<'a> {
    pub name: String,
    pub r#type: String,
    pub charset: Option<String>,
    pub data: &'a [u8],
}

/// Writes a mail: text, or text and HTML as alternatives, then the attachments. Lines end with
/// CRLF, have at most 78 bytes where that is possible, and all is ASCII, except for names of
/// mailboxes and attached mails that are not. The error is text.
pub fn build(draft: &Draft) -> Result<Vec<u8>, String> {
    let mut message = MessageBuilder::new();
    if let Some(from) = &draft.from {
        message = message.from(mailbox("from", from)?);
    }
    for (name, header, boxes) in [
        ("reply_to", "Reply-To", &draft.reply_to),
        ("to", "To", &draft.to),
        ("cc", "Cc", &draft.cc),
        ("bcc", "Bcc", &draft.bcc),
    ] {
        if !boxes.is_empty() {
            message = message.header(header, mailboxes(name, boxes)?);
        }
    }
    check_line("subject", &draft.subject)?;
    message = message
        .subject(draft.subject.as_str())
        .date(draft.date)
        .message_id(identifier("message_id", &draft.message_id)?);
    for (name, header, ids) in [
        ("in_reply_to", "In-Reply-To", &draft.in_reply_to),
        ("references", "References", &draft.references),
    ] {
        if !ids.is_empty() {
            message = message.header(header, identifiers(name, ids)?);
        }
    }
    message = message.text_body(lines(&draft.text));
    if let Some(html) = &draft.html {
        message = message.html_body(lines(html));
    }
    let files = draft.attachments.iter().map(file).collect::<Result<Vec<_>, _>>()?;
    if !files.is_empty() {
        message.attachments = Some(files);
    }
    message.write_to_vec().map_err(|error| error.to_string())
}

fn mailboxes<'a>(name: &str, boxes: &'a [Mailbox]) -> Result<Address<'a>, String> {
    check_count(name, boxes.len())?;
    let list: Result<_, _> = boxes.iter().map(|one| mailbox(name, one)).collect();
    Ok(Address::new_list(list?))
}

fn mailbox<'a>(field: &str, mailbox: &'a Mailbox) -> Result<Address<'a>, String> {
    if !is_address(&mailbox.address) {
        return Err(format!(
            "expected an address such as \"ann@example.com\" as {field}, got: {:?}",
            short(&mailbox.address)
        ));
    }
    if let Some(name) = &mailbox.name {
        check_line(&format!("a name in {field}"), name)?;
    }
    Ok(Address::new_address(mailbox.name.as_deref(), mailbox.address.as_str()))
}

/// Whether an address is a local part and a domain in ASCII without quotes, comments and the signs
/// that headers and commands of SMTP give a meaning. Letters of a local part outside ASCII need a
/// server with SMTPUTF8.
pub fn is_address(address: &str) -> bool {
    let Some((local, domain)) = address.rsplit_once('@') else { return false };
    let atom = |part: &str| {
        let is_sign = |char: char| char.is_ascii() && "!#$%&'*+-/=?^_`{|}~".contains(char);
        !part.is_empty() && part.chars().all(|char| char.is_alphanumeric() || is_sign(char))
    };
    let label = |label: &str| {
        !label.is_empty() && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    address.len() <= MAX_ADDRESS && local.split('.').all(atom) && domain.split('.').all(label)
}

fn identifiers<'a>(name: &str, ids: &'a [String]) -> Result<MessageId<'a>, String> {
    check_count(name, ids.len())?;
    for id in ids {
        identifier(name, id)?;
    }
    Ok(MessageId::new_list(ids.iter().map(String::as_str)))
}

fn identifier<'a>(field: &str, id: &'a str) -> Result<MessageId<'a>, String> {
    let allowed = |byte: u8| byte.is_ascii_graphic() && byte != b'<' && byte != b'>';
    if id.is_empty() || id.len() > MAX_ID || !id.bytes().all(allowed) {
        return Err(format!(
            "expected an id such as \"1a2b@example.com\" as {field}, got: {:?}",
            short(id)
        ));
    }
    Ok(MessageId::new(id))
}

fn file<'a>(file: &'a File) -> Result<MimePart<'a>, String> {
    check_line("the name of an attachment", &file.name)?;
    if !is_media_type(&file.r#type) {
        return Err(format!(
            "expected a media type such as \"text/csv\" of the attachment {:?}, got: {:?}",
            short(&file.name),
            short(&file.r#type)
        ));
    }
    // Base64 keeps all bytes, and must not be used for mails and multiparts (RFC 2046, sections 5.1
    // and 5.2.1). Mails are sent as they are; what cannot be stays a file.
    let kind = match file.r#type.split_once('/') {
        Some(("message", _)) => match mail(file.data) {
            Some(mail) => return Ok(attached(file, mail)),
            None => "application/octet-stream",
        },
        Some(("multipart", _)) => "application/octet-stream",
        _ => file.r#type.as_str(),
    };
    let mut kind = ContentType::new(kind).attribute("name", file.name.as_str());
    if let Some(charset) = file.charset.as_deref().filter(|name| charset::known(name)) {
        kind = kind.attribute("charset", charset.trim().to_owned());
    }
    Ok(MimePart::new(kind, BodyPart::Binary(MIME.encode(file.data).into_bytes().into()))
        .attachment(file.name.as_str())
        .transfer_encoding("base64"))
}

/// A mail as a part of another one: lines that end with CRLF and have at most 998 bytes.
fn mail(data: &[u8]) -> Option<Vec<u8>> {
    let mut mail = Vec::with_capacity(data.len());
    for line in data.split_inclusive(|byte| *byte == b'\n') {
        let text = line.strip_suffix(b"\n").unwrap_or(line);
        let text = text.strip_suffix(b"\r").unwrap_or(text);
        if text.len() > MAX_LINE || text.iter().any(|byte| b"\r\0".contains(byte)) {
            return None;
        }
        mail.extend_from_slice(text);
        mail.extend_from_slice(b"\r\n");
    }
    Some(mail)
}

fn attached<'a>(file: &'a File, mail: Vec<u8>) -> MimePart<'a> {
    let encoding = if mail.is_ascii() { "7bit" } else { "8bit" };
    let kind = ContentType::new(file.r#type.as_str()).attribute("name", file.name.as_str());
    MimePart::new(kind, BodyPart::Binary(mail.into()))
        .attachment(file.name.as_str())
        .transfer_encoding(encoding)
}

fn is_media_type(kind: &str) -> bool {
    let token = |part: &str| {
        (1..=127).contains(&part.len())
            && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&byte))
    };
    kind.split_once('/').is_some_and(|(kind, subtype)| token(kind) && token(subtype))
}

/// Refuses everything that could begin another header, and the sign of encoded words: mail programs
/// decode them, so that the reader would see another text than the writer.
fn check_line(field: &str, text: &str) -> Result<(), String> {
    if text.len() > MAX_WORDS {
        return Err(format!(
            "expected at most {MAX_WORDS} bytes as {field}, got {} bytes",
            text.len()
        ));
    }
    if text.contains("=?") {
        return Err(format!(
            "expected a text without \"=?\", which mail programs decode, as {field}, got: {:?}",
            short(text)
        ));
    }
    if text.chars().any(char::is_control) {
        return Err(format!(
            "expected one line without control characters as {field}, got: {:?}",
            short(text)
        ));
    }
    Ok(())
}

fn check_count(field: &str, count: usize) -> Result<(), String> {
    if count <= MAX_LIST {
        return Ok(());
    }
    Err(format!("expected at most {MAX_LIST} entries in {field}, got {count}"))
}

/// A text with `\n` between lines and without other control characters: these would be lost or
/// changed on the way.
fn lines(text: &str) -> String {
    let text = text.replace("\r\n", "\n");
    text.chars()
        .map(|char| match char {
            '\n' | '\t' => char,
            '\r' => '\n',
            char if char.is_control() => '\u{fffd}',
            char => char,
        })
        .collect()
}

/// The beginning of a value, for errors.
fn short(text: &str) -> &str {
    text.get(..text.floor_char_boundary(100)).unwrap_or(text)
}
