//! Checks names against paths and against the Agent Skills format, and suggests better ones.

use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::document::Document;
use crate::source::Kind;

/// The diagnostics collected while a document's entry is built.
pub(super) type Notes = Vec<Diagnostic>;

/// The length limit of the Agent Skills format, in characters.
const NAME_LENGTH: usize = 64;

pub(super) fn name_missing(document: &Document, name: &str) -> Diagnostic {
    let message = format!("expected a name in the frontmatter; its path says {}", quote(name));
    Diagnostic::new(Code::NameMissing, Severity::Warning, message)
        .hint(format!("add the line name: {name}"))
        .fix(document.added_field("name", name))
}

/// The diagnostic for a name that differs from the path's. `place` says how to move the file
/// instead. If one of the two names has invalid characters, only the other one is suggested.
pub(super) fn differs(
    document: &Document,
    kind: Kind,
    message: String,
    name: &str,
    expected: &str,
    place: String,
) -> Diagnostic {
    let other = format!("write name: {expected}");
    // Suggest the name that other readers accept; if both or neither are accepted, offer both ways.
    let hint = match (odd(expected, kind), odd(name, kind)) {
        (None, Some(_)) => other,
        (Some(_), None) => place,
        _ => format!("{other}, or {place}"),
    };
    let diagnostic =
        Diagnostic::new(Code::NameDiffers, Severity::Warning, message + "; the name is used");
    document.at_field("name", diagnostic.hint(hint))
}

/// Whether a name with blanks, such as `Home Automation`, agrees with the path's, such as
/// `home-automation`.
pub(super) fn agrees(name: &str, expected: &str) -> bool {
    has_blank(name)
        && plainer(name, Kind::Skill)
            .is_some_and(|plain| plain == expected || Some(plain) == plainer(expected, Kind::Skill))
}

/// Names with blanks are titles on purpose, and work here. Only lint says that other programs want
/// others.
pub(crate) fn has_blank(name: &str) -> bool {
    name.contains(char::is_whitespace)
}

pub(super) fn check_name(document: &Document, name: &str, kind: Kind, notes: &mut Notes) {
    // The hint of that diagnostic contains a name already, and a second one would confuse.
    let differs = notes.iter().any(|note| note.code == Code::NameDiffers);
    let mut push = |code, message, hint: Option<String>| {
        let diagnostic = Diagnostic { hint, ..Diagnostic::new(code, Severity::Warning, message) };
        notes.push(document.at_field("name", diagnostic));
    };
    let length = name.chars().count();
    if length > NAME_LENGTH {
        let message = format!(
            "the name has {length} characters; the Agent Skills format allows {NAME_LENGTH}"
        );
        push(Code::NameTooLong, message, Some("shorten it".to_owned()));
    }
    if !has_blank(name) {
        // One suggestion per name.
        notes.extend(characters(document, name, kind, !differs));
    }
}

/// The diagnostic for a name that other readers of skills reject, with a better one if `suggests`.
pub(crate) fn characters(
    document: &Document,
    name: &str,
    kind: Kind,
    suggests: bool,
) -> Option<Diagnostic> {
    let diagnostic = Diagnostic::new(Code::NameCharacters, Severity::Warning, odd(name, kind)?);
    let hint = plainer(name, kind).filter(|_| suggests).map(|name| format!("call it {name}"));
    Some(document.at_field("name", Diagnostic { hint, ..diagnostic }))
}

/// The reason why other readers of skills reject a name.
fn odd(name: &str, kind: Kind) -> Option<String> {
    let words = match kind {
        Kind::Command => "lowercase letters, digits, `_` and the dot",
        _ => "lowercase letters, digits and `-`",
    };
    if let Some(odd) = name.chars().find(|c| !is_plain(*c, kind)) {
        return Some(format!("expected {words} in the name, got {odd:?} in {}", quote(name)));
    }
    let misplaced =
        |word: &str| word.starts_with('-') || word.ends_with('-') || word.contains("--");
    misplaced(name).then(|| {
        format!("expected each `-` between two letters or digits of the name, got {}", quote(name))
    })
}

/// Whether a character is allowed in names: `_` and dots in those of commands, `-` in others.
fn is_plain(c: char, kind: Kind) -> bool {
    let other = match kind {
        Kind::Command => matches!(c, '.' | '_'),
        _ => c == '-',
    };
    c.is_ascii_lowercase() || c.is_ascii_digit() || other
}

/// The name without characters that others reject; `None` if letters would be lost.
fn plainer(name: &str, kind: Kind) -> Option<String> {
    let lower = name.to_lowercase();
    let joint = if kind == Kind::Command { "_" } else { "-" };
    let word = |word: &str| {
        let parts: Vec<&str> = word
            .split(|c| c == '-' || !is_plain(c, kind))
            .filter(|part| !part.is_empty())
            .collect();
        parts.join(joint)
    };
    let words: Vec<String> = match kind {
        Kind::Command => lower.split('.').map(word).collect(),
        _ => vec![word(&lower)],
    };
    let whole =
        lower.is_ascii() && lower.len() <= NAME_LENGTH && words.iter().all(|word| !word.is_empty());
    whole.then(|| words.join("."))
}

/// A name in backticks, cut if it is extremely long.
pub(super) fn quote(name: &str) -> String {
    match name.char_indices().nth(100) {
        Some((at, _)) => format!("`{}…`", &name[..at]),
        None => format!("`{name}`"),
    }
}
