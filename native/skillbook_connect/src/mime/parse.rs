//! Reads mails.

use mail_parser::{Address, DateTime, HeaderName, HeaderValue, Message, MessageParser};

use super::problems::Problems;
use super::tree::{self, Disposition, Kind, Part};
use super::Mailbox;
use crate::charset;

/// The most bytes of a mail. Servers take less than half of it.
pub const MAX_BYTES: usize = 64 << 20;
/// The most bytes of its text, and of its HTML.
pub const MAX_TEXT: usize = 8 << 20;
/// The most mailboxes or ids of one header.
pub const MAX_LIST: usize = 2000;
/// The most bytes of a name, an address, an id and a subject.
pub const MAX_WORDS: usize = 2000;

/// A mail. Texts have `\n` between lines.
#[derive(Debug, Default, PartialEq)]
#[cfg_attr(feature = "nif", derive(rustler::NifMap))]
pub struct Mail {
    pub from: Vec<Mailbox>,
    pub to: Vec<Mailbox>,
    pub cc: Vec<Mailbox>,
    pub bcc: Vec<Mailbox>,
    pub reply_to: Vec<Mailbox>,
    pub subject: String,
    /// Seconds since 1970.
    pub date: Option<i64>,
    /// Ids, without their angle brackets.
    pub message_id: Option<String>,
    pub in_reply_to: Vec<String>,
    pub references: Vec<String>,
    /// The parts of plain text and the parts of HTML that a reader would show. If there are both,
    /// and they are no alternatives, each of the two has all parts.
    pub text: Option<String>,
    pub html: Option<String>,
    pub attachments: Vec<Attachment>,
    pub problems: Vec<String>,
}

/// A part that is not shown as text. `size` is in bytes; `inline` parts are shown within the
/// text, such as images. `charset` is the character set of a text, as the mail names it.
#[derive(Debug, PartialEq)]
#[cfg_attr(feature = "nif", derive(rustler::NifMap))]
pub struct Attachment {
    pub part: u32,
    pub name: Option<String>,
    pub r#type: String,
    pub charset: Option<String>,
    pub size: usize,
    pub inline: bool,
}

/// Reads a mail. The error is text.
pub fn parse(raw: &[u8]) -> Result<Mail, String> {
    check_size(raw)?;
    let mut problems = Problems::default();
    let parser =
        MessageParser::new().with_minimal_headers().with_message_ids().default_header_ignore();
    let mut mail = match tree::header(&parser, raw) {
        Some(message) => headers(&message, &mut problems),
        None => {
            problems.add("it has no header");
            Mail::default()
        }
    };
    let parts = tree::parts(raw, &mut problems);
    bodies(&mut mail, &parts, &mut problems);
    mail.problems = problems.list();
    Ok(mail)
}

/// The content of a part, by the number of [`Attachment::part`]. The error is text.
pub fn part(raw: &[u8], number: u32) -> Result<Vec<u8>, String> {
    check_size(raw)?;
    let mut problems = Problems::default();
    tree::parts(raw, &mut problems)
        .get(number as usize)
        .filter(|part| part.kind == Kind::Leaf)
        .map(|part| part.decoded(&mut problems).into_owned())
        .ok_or_else(|| format!("the mail has no part {number}"))
}

fn check_size(raw: &[u8]) -> Result<(), String> {
    if raw.len() <= MAX_BYTES {
        return Ok(());
    }
    Err(format!("the mail has {} bytes, and at most {MAX_BYTES} are read", raw.len()))
}

fn headers(message: &Message, problems: &mut Problems) -> Mail {
    for (name, label) in [
        (HeaderName::From, "From"),
        (HeaderName::To, "To"),
        (HeaderName::Cc, "Cc"),
        (HeaderName::ReplyTo, "Reply-To"),
        (HeaderName::Subject, "Subject"),
        (HeaderName::Date, "Date"),
        (HeaderName::MessageId, "Message-ID"),
    ] {
        let count = message.headers().iter().filter(|header| header.name == name).count();
        if count > 1 {
            problems.add(format!("{count} headers are named {label}; the first one is shown"));
        }
    }
    let date = message.date().filter(|date| date.is_valid() && is_day(date));
    if date.is_none() && message.header(HeaderName::Date).is_some() {
        problems.add("its date cannot be read");
    }
    let in_reply_to = identifiers(message.in_reply_to(), "In-Reply-To", problems);
    let references = identifiers(message.references(), "References", problems);
    Mail {
        from: mailboxes(message.from(), "From", problems),
        to: mailboxes(message.to(), "To", problems),
        cc: mailboxes(message.cc(), "Cc", problems),
        bcc: mailboxes(message.bcc(), "Bcc", problems),
        reply_to: mailboxes(message.reply_to(), "Reply-To", problems),
        subject: words(message.subject().unwrap_or_default(), "the subject", problems),
        date: date.map(|date| date.to_timestamp()),
        message_id: message.message_id().and_then(|id| identifier(id, problems)),
        in_reply_to,
        references,
        ..Mail::default()
    }
}

/// Whether the month has the day.
fn is_day(date: &DateTime) -> bool {
    let (year, month, day) = (date.year.into(), date.month.into(), date.day.into());
    chrono::NaiveDate::from_ymd_opt(year, month, day).is_some()
}

fn mailboxes(list: Option<&Address>, header: &str, problems: &mut Problems) -> Vec<Mailbox> {
    let Some(list) = list else { return Vec::new() };
    let mut boxes = Vec::new();
    for (number, mailbox) in list.iter().enumerate() {
        if number == MAX_LIST {
            problems.add(format!("{header} has more than {MAX_LIST} addresses"));
            break;
        }
        let name = mailbox.name().map(|name| words(name, "a name", problems));
        let address = words(mailbox.address().unwrap_or_default(), "an address", problems);
        let (name, address) = mended(name.filter(|name| !name.is_empty()), address);
        if name.is_some() || !address.is_empty() {
            boxes.push(Mailbox { name, address });
        }
    }
    boxes
}

/// Addresses of old mails: a quoted part before the `@`, which the parser takes for a name, a
/// route before the address, and blanks beside dots.
fn mended(name: Option<String>, address: String) -> (Option<String>, String) {
    let Some(domain) = address.strip_prefix('@') else { return (name, without_blanks(&address)) };
    match (name, domain.rsplit_once(':')) {
        (name, Some((_route, address))) => (name, without_blanks(address)),
        (Some(name), None) => {
            // A comment before the `@`, such as `ann(home)@example.com`.
            let bare = name.split_once(" (").filter(|(local, comment)| {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_+".contains(&byte);
                comment.ends_with(')') && local.bytes().all(plain)
            });
            if let Some((local, _comment)) = bare {
                return (None, format!("{local}@{domain}"));
            }
            let local = name.replace('\\', "\\\\").replace('"', "\\\"");
            (None, format!("\"{local}\"@{domain}"))
        }
        (None, None) => (None, address),
    }
}

fn without_blanks(address: &str) -> String {
    let mut text = String::with_capacity(address.len());
    for word in address.split_ascii_whitespace() {
        if !(text.is_empty() || text.ends_with(['.', '@']) || word.starts_with(['.', '@'])) {
            text.push(' ');
        }
        text.push_str(word);
    }
    text
}

fn identifiers(value: &HeaderValue, header: &str, problems: &mut Problems) -> Vec<String> {
    let ids: Vec<&str> = match value {
        HeaderValue::Text(id) => vec![id],
        HeaderValue::TextList(ids) => ids.iter().map(AsRef::as_ref).collect(),
        _ => Vec::new(),
    };
    if ids.len() > MAX_LIST {
        problems.add(format!("{header} has more than {MAX_LIST} ids"));
    }
    ids.into_iter().take(MAX_LIST).filter_map(|id| identifier(id, problems)).collect()
}

fn identifier(id: &str, problems: &mut Problems) -> Option<String> {
    let id = id.trim();
    (!id.is_empty()).then(|| words(id, "an id", problems))
}

/// A short text on one line.
fn words(text: &str, label: &str, problems: &mut Problems) -> String {
    let cut = text.get(..text.floor_char_boundary(MAX_WORDS)).unwrap_or(text);
    if cut.len() < text.len() {
        problems.add(format!("{label} has more than {MAX_WORDS} bytes; its beginning is shown"));
    }
    // The line ends of folded headers come before the blank that they fold.
    let unfolded = cut.replace("\r\n ", " ").replace("\r\n\t", "\t").replace("\n ", " ");
    unfolded.replace(['\r', '\n'], " ")
}

/// Fills in the texts and the attachments.
fn bodies(mail: &mut Mail, parts: &[Part], problems: &mut Problems) {
    let shown: Vec<Shown> = parts.iter().map(|part| shown(part, parts)).collect();
    let groups: Vec<Option<usize>> =
        (0..parts.len()).map(|number| alternatives(number, parts)).collect();
    // Whether an alternative, or all outside of alternatives, has plain text, or HTML.
    let has = |group: Option<usize>, kind: Shown| {
        shown.iter().zip(&groups).any(|(shown, other)| *shown == kind && *other == group)
    };
    let both = shown.contains(&Shown::Plain) && shown.contains(&Shown::Html);
    for ((number, part), (shown, group)) in parts.iter().enumerate().zip(shown.iter().zip(&groups))
    {
        match shown {
            Shown::Nothing => {}
            Shown::Attachment => mail.attachments.push(attachment(number, part, problems)),
            Shown::Plain => {
                let text = text(part, problems);
                if both && (group.is_none() || !has(*group, Shown::Html)) {
                    let html = format!("<pre>{}</pre>", escaped(&text));
                    append(&mut mail.html, &html, "its HTML", problems);
                }
                append(&mut mail.text, &text, "its text", problems);
            }
            Shown::Html => {
                let html = text(part, problems);
                if both && (group.is_none() || !has(*group, Shown::Plain)) {
                    let text = crate::html::text(&html);
                    if text.hidden > 0 {
                        problems.add(format!(
                            "{} characters of its HTML are hidden from a reader, and left out",
                            text.hidden
                        ));
                    }
                    append(&mut mail.text, &text.text, "its text", problems);
                }
                append(&mut mail.html, &html, "its HTML", problems);
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Shown {
    Nothing,
    Plain,
    Html,
    Attachment,
}

/// How a part is shown, by the rules of RFC 8621, section 4.1.4.
fn shown(part: &Part, parts: &[Part]) -> Shown {
    if part.kind != Kind::Leaf {
        return Shown::Nothing;
    }
    let parent = part.parent.and_then(|number| parts.get(number)).map(|parent| parent.kind);
    let in_body = part.disposition != Disposition::Attachment
        && (part.first || parent != Some(Kind::Related) && part.name.is_none());
    match part.media_type.as_str() {
        "text/plain" if in_body => Shown::Plain,
        "text/html" if in_body => Shown::Html,
        _ => Shown::Attachment,
    }
}

/// The outermost part whose alternatives a part belongs to.
fn alternatives(number: usize, parts: &[Part]) -> Option<usize> {
    let parents = std::iter::successors(Some(number), |&number| parts.get(number)?.parent);
    parents
        .filter(|&number| parts.get(number).is_some_and(|part| part.kind == Kind::Alternative))
        .last()
}

/// The text of a part, in its character set, with `\n` between lines.
fn text(part: &Part, problems: &mut Problems) -> String {
    let bytes = part.decoded(problems);
    let (text, whole) = charset::decode_checked(&bytes, &part.charset);
    if !whole {
        problems.add("some of its characters cannot be read in the character set that it names");
    } else if !part.charset.is_empty() && !charset::known(&part.charset) {
        let name = part.charset.get(..part.charset.floor_char_boundary(50));
        problems.add(format!("its character set {:?} is unknown", name.unwrap_or_default()));
    }
    if text.contains('\r') {
        text.replace("\r\n", "\n").replace('\r', "\n")
    } else {
        text
    }
}

fn append(text: &mut Option<String>, more: &str, label: &str, problems: &mut Problems) {
    let text = text.get_or_insert_with(String::new);
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
    let room = MAX_TEXT.saturating_sub(text.len());
    if more.len() > room {
        problems.add(format!("{label} has more than {MAX_TEXT} bytes; its beginning is read"));
    }
    text.push_str(more.get(..more.floor_char_boundary(room)).unwrap_or_default());
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

fn attachment(number: usize, part: &Part, problems: &mut Problems) -> Attachment {
    let is_mail = matches!(part.media_type.as_str(), "message/rfc822" | "message/global");
    let subject = || {
        let parser = MessageParser::new().header_text(HeaderName::Subject).default_header_ignore();
        let body = part.decoded(&mut Problems::default()).into_owned();
        Some(tree::header(&parser, &body)?.subject()?.to_owned())
    };
    let name = part.name.clone().or_else(|| if is_mail { subject() } else { None });
    Attachment {
        part: u32::try_from(number).unwrap_or(u32::MAX),
        name: name
            .map(|name| words(&name, "the name of an attachment", problems))
            .filter(|name| !name.is_empty()),
        r#type: words(&part.media_type, "a media type", problems),
        charset: (part.media_type.starts_with("text/") && charset::known(&part.charset))
            .then(|| part.charset.clone()),
        size: part.decoded(&mut Problems::default()).len(),
        inline: part.disposition == Disposition::Inline,
    }
}
