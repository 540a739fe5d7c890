//! Reports characters that an author or a reviewer cannot see.

use crate::hidden::{class, find, name, Class, Hidden};
use crate::page::diagnostic::{Code, Diagnostic, Severity, MAX_PER_CODE};
use crate::page::document::Document;
use crate::page::frontmatter::place;

/// The maximum number of places that are reported for a document. With the count of the others
/// they are as many diagnostics as a file may have of a code.
const PLACES: usize = MAX_PER_CODE - 1;

/// The maximum number of characters that a message names.
const NAMED: usize = 3;

/// Reports the hidden characters of a document, neighbours together.
pub(super) fn document(document: &Document, found: &mut Vec<Diagnostic>) {
    let text: &str = &document.text;
    // A byte order mark at the start belongs to the file, not to its text.
    let is_text = |hidden: &Hidden| hidden.at > 0 || hidden.character != '\u{FEFF}';
    let all: Vec<Hidden> = find(text).filter(is_text).collect();
    let adjacent = |a: &Hidden, b: &Hidden| a.at + a.character.len_utf8() == b.at;
    let groups: Vec<&[Hidden]> = all.chunk_by(adjacent).collect();
    let (shown, rest) = groups.split_at(groups.len().min(PLACES));
    for group in shown {
        push(document, group, message(group), found);
    }
    if !rest.is_empty() {
        let rest = &all[shown.iter().map(|group| group.len()).sum()..];
        push(document, rest, format!("{} more hidden characters from here on", rest.len()), found);
    }
    // Quoted YAML can have them as escapes.
    let Some(fields) = document.fields() else { return };
    let values = [&fields.name, &fields.title, &fields.description];
    for (field, value) in ["name", "title", "description"].into_iter().zip(values) {
        let written = |hidden: &Hidden| all.iter().any(|other| other.character == hidden.character);
        let escaped = find(value.as_deref().unwrap_or_default()).filter(|hidden| !written(hidden));
        let escaped: Vec<Hidden> = escaped.take(PLACES).collect();
        if !escaped.is_empty() {
            let diagnostic = diagnostic(&escaped, message(&escaped));
            found.push(document.locate(document.at_field(field, diagnostic)));
        }
    }
}

fn push(document: &Document, group: &[Hidden], message: String, found: &mut Vec<Diagnostic>) {
    let at = place(document.text.as_bytes(), group[0].at);
    let diagnostic = diagnostic(group, message).at(at.line, at.column);
    found.push(document.locate(diagnostic));
}

fn diagnostic(group: &[Hidden], message: String) -> Diagnostic {
    let deceptive = |hidden: &Hidden| class(hidden.character).is_some_and(Class::is_deceptive);
    let severity = match group.iter().any(deceptive) {
        true => Severity::Error,
        false => Severity::Warning,
    };
    let hint = "remove it, unless it is meant; readers get its code instead";
    Diagnostic::new(Code::HiddenCharacters, severity, message).hint(hint)
}

fn message(group: &[Hidden]) -> String {
    let named =
        |hidden: &Hidden| format!("U+{:04X} {}", hidden.character as u32, name(hidden.character));
    let names: Vec<String> = group.iter().take(NAMED).map(named).collect();
    let names = names.join(", ");
    match group.len() {
        1 => format!("a hidden character: {names}"),
        count if count > NAMED => format!("{count} hidden characters: {names}, …"),
        count => format!("{count} hidden characters: {names}"),
    }
}
