//! Checks a `SKILL.md` against the Agent Skills format. The verdict is that of the format's own
//! validator; the messages are ours.
//!
//! The format is stricter than loading. Frontmatter is the text between the first two `---`, at any
//! place. Its YAML may not have flow collections, tags, anchors or duplicate keys, and every scalar
//! is text. There are six fields.
//!
//! The validator's parser accepts less than YAML, so this module walks the events of a YAML parser
//! and refuses the rest.

use std::ops::Range;

use rustc_hash::FxHashSet;
use saphyr_parser::{Event, Parser, ScalarStyle, Span};
use unicode_normalization::char::is_combining_mark;
use unicode_normalization::UnicodeNormalization;

use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::fields::restrictions;
use crate::page::frontmatter::decode;

/// The fields of the format.
const FIELDS: [&str; 6] =
    ["name", "description", "license", "compatibility", "metadata", "allowed-tools"];

/// The maximum lengths of fields, in characters.
const NAME: usize = 64;
const DESCRIPTION: usize = 1024;
const COMPATIBILITY: usize = 500;

/// The maximum depth of values.
const DEPTH: usize = 64;

/// Checks the `SKILL.md` of a folder with this name. Returns the violations of the format.
///
/// ```
/// use skillbook_core::lint::spec::check;
///
/// assert_eq!(check("pdf", b"---\nname: pdf\ndescription: Reads forms\n---\n"), []);
/// let found = check("pdf", b"---\nname: PDF\ndescription: [Reads forms]\n---\n");
/// assert_eq!(found[0].message, "expected block style, got a list or mapping in brackets");
/// ```
pub fn check(folder: &str, bytes: &[u8]) -> Vec<Diagnostic> {
    let text = match decode(bytes) {
        // The validator reads the file in text mode, which converts all line breaks.
        Ok(text) => text.replace("\r\n", "\n").replace('\r', "\n"),
        Err(error) => return vec![violation(error.message, error.line, error.column)],
    };
    if !text.starts_with("---") {
        let message = match text.starts_with('\u{FEFF}') {
            true => "expected `---` as the first characters, got a byte order mark",
            false => "expected `---` as the first characters",
        };
        return vec![violation(message, 1, 1)];
    }
    let mut parts = text.splitn(3, "---").skip(1);
    let (Some(block), Some(_)) = (parts.next(), parts.next()) else {
        return vec![violation("expected a second `---`, got the end of the file", 1, 1)];
    };
    match read(block) {
        Ok(fields) => Checker { fields, found: Vec::new() }.check(folder),
        Err(refused) => vec![refused],
    }
}

/// A violation at a place in the file.
fn violation(message: impl Into<String>, line: u32, column: u32) -> Diagnostic {
    Diagnostic::new(Code::SpecViolation, Severity::Error, message).at(line, column)
}

/// A field of the frontmatter; the value is `None` if it is a list or a mapping.
struct Field {
    key: String,
    line: u32,
    value: Option<String>,
}

/// An open list or mapping.
struct Open {
    is_map: bool,
    keys: FxHashSet<String>,
    /// Whether the next node of a mapping is a value.
    value_next: bool,
    /// Whether that value belongs to an unquoted `<<`.
    merges: bool,
    /// The column of the mappings in it.
    indent: Option<usize>,
}

/// Reads the fields of a block, or returns its first violation.
fn read(block: &str) -> Result<Vec<Field>, Diagnostic> {
    let chars: Vec<char> = block.chars().collect();
    let at_char = |index: usize, message: &str| {
        let before = &chars[..index];
        let line_start = before.iter().rposition(|c| *c == '\n').map_or(0, |at| at + 1);
        let line = 1 + before.iter().filter(|c| **c == '\n').count() as u32;
        let column = (index - line_start) as u32 + 1;
        violation(message, line, if line == 1 { column + 3 } else { column })
    };
    let lines = block.matches('\n').count() + 1;
    let at = |span: &Span, message: &str| {
        // The parser ends the last line, and then may be on the next one, which is not there.
        if span.start.line() > lines {
            return at_char(chars.len(), message);
        }
        let (line, column) = (span.start.line().max(1) as u32, span.start.col() as u32 + 1);
        violation(message, line, if line == 1 { column + 3 } else { column })
    };
    if let Some(index) = chars.iter().position(|c| !is_printable(*c)) {
        return Err(at_char(
            index,
            &format!("YAML does not allow the character U+{:04X}", chars[index] as u32),
        ));
    }
    // The ranges of quoted scalars and block scalars, which may contain tabs.
    let mut literal: Vec<Range<usize>> = Vec::new();
    let mut fields: Vec<Field> = Vec::new();
    let mut open: Vec<Open> = Vec::new();
    let mut documents = 0;
    for event in Parser::new_from_str(block) {
        let (event, span) = event.map_err(|error| {
            let mark = error.marker();
            at(&Span::new(*mark, *mark), &format!("expected YAML: {}", error.info()))
        })?;
        let refused = |message: &str| Err(at(&span, message));
        let (anchor, tagged, collection) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some(), false),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.is_some(), true)
            }
            Event::Alias(_) => return refused("expected no alias"),
            Event::SequenceEnd | Event::MappingEnd => {
                open.pop();
                continue;
            }
            Event::DocumentStart(_) => {
                documents += 1;
                match documents {
                    1 => continue,
                    _ => return refused("expected one YAML document, got a second one"),
                }
            }
            _ => continue,
        };
        if tagged {
            return refused("expected no tag");
        }
        if anchor != 0 {
            return refused("expected no anchor");
        }
        if collection && matches!(chars.get(span.start.index()), Some('[' | '{')) {
            return refused("expected block style, got a list or mapping in brackets");
        }
        if let Event::Scalar(_, style, ..) = &event {
            if *style != ScalarStyle::Plain {
                let end = span.end.index().min(chars.len());
                let blanks = chars[..end].iter().rev().take_while(|c| c.is_whitespace()).count();
                literal.push(span.start.index()..end - blanks);
            }
        }
        let depth = open.len();
        let is_map = matches!(event, Event::MappingStart(..));
        match open.last_mut() {
            None if !is_map => return refused("expected `key: value` lines"),
            None => {}
            Some(parent) if parent.is_map && !parent.value_next => {
                let Event::Scalar(key, style, ..) = &event else {
                    return refused("expected text as a key");
                };
                if !parent.keys.insert(key.to_string()) {
                    return refused(&format!("the key `{key}` is written twice"));
                }
                parent.value_next = true;
                parent.merges = key == "<<" && *style == ScalarStyle::Plain;
                if depth == 1 {
                    let line = span.start.line() as u32;
                    fields.push(Field { key: key.to_string(), line, value: None });
                }
                continue;
            }
            Some(parent) => {
                parent.value_next = false;
                if parent.merges && !collection {
                    return refused("expected a mapping after the key `<<`, got text");
                }
                if is_map
                    && parent.is_map
                    && *parent.indent.get_or_insert(span.start.col()) != span.start.col()
                {
                    return refused("expected the same indentation as the mapping before");
                }
            }
        }
        if let (Event::Scalar(value, ..), 1, Some(field)) = (&event, depth, fields.last_mut()) {
            field.value = Some(value.to_string());
        }
        if collection {
            if depth == DEPTH {
                return refused("values may be nested at most 64 deep");
            }
            open.push(Open {
                is_map,
                keys: FxHashSet::default(),
                value_next: false,
                merges: false,
                indent: None,
            });
        }
    }
    // After the parser, whose events say which tabs are inside scalars.
    if let Some(index) = stray_tab(&chars, &literal) {
        return Err(at_char(index, "expected spaces, got a tab outside of quotes"));
    }
    match fields.is_empty() {
        true => Err(violation("expected `key: value` lines between the `---`", 1, 1)),
        false => Ok(fields),
    }
}

/// The characters that YAML allows.
fn is_printable(c: char) -> bool {
    let control = c.is_control() && !matches!(c, '\t' | '\n' | '\u{85}');
    !control && !matches!(c, '\u{FFFE}' | '\u{FFFF}')
}

/// The index of the first tab outside of these ranges and of comments.
fn stray_tab(chars: &[char], literal: &[Range<usize>]) -> Option<usize> {
    let mut ranges = literal.iter().peekable();
    let mut index = 0;
    while let Some(c) = chars.get(index) {
        match ranges.peek() {
            Some(range) if range.start <= index => {
                index = range.end.max(index);
                ranges.next();
                continue;
            }
            _ => {}
        }
        let begins_comment = || index == 0 || chars[index - 1].is_whitespace();
        match c {
            '\t' => return Some(index),
            '#' if begins_comment() => {
                index +=
                    chars[index..].iter().position(|c| *c == '\n').unwrap_or(chars.len() - index);
            }
            _ => index += 1,
        }
    }
    None
}

struct Checker {
    fields: Vec<Field>,
    found: Vec<Diagnostic>,
}

impl Checker {
    fn check(mut self, folder: &str) -> Vec<Diagnostic> {
        let others = self.fields.iter().filter(|field| !FIELDS.contains(&field.key.as_str()));
        let other = |field: &Field| {
            let message = format!("the format has no field `{}`", field.key);
            // Below metadata a restriction would have no effect.
            let place = match restrictions::meant(&field.key) {
                Some(_) => "keep it here, since it restricts the skill in Skillbook",
                None => "put it under metadata",
            };
            violation(message, field.line, 1)
                .hint(format!("{place}; the fields are {}", FIELDS.join(", ")))
        };
        self.found = others.map(other).collect();
        if let Some((name, line)) = self.text("name", true) {
            self.name(&name, line, folder);
        }
        if let Some((description, line)) = self.text("description", true) {
            self.length("description", &description, DESCRIPTION, line);
        }
        if let Some((compatibility, line)) = self.text("compatibility", false) {
            self.length("compatibility", &compatibility, COMPATIBILITY, line);
        }
        self.found.sort_by_key(|diagnostic| diagnostic.line);
        self.found
    }

    /// The text of a field, unchanged, and its line. A required field must exist and not be blank.
    fn text(&mut self, key: &str, needed: bool) -> Option<(String, u32)> {
        let field = self.fields.iter().find(|field| field.key == key);
        let (line, value) = match field {
            Some(field) => (field.line, field.value.as_ref()),
            None if needed => {
                self.found.push(violation(format!("expected the field `{key}`"), 1, 1));
                return None;
            }
            None => return None,
        };
        match value {
            Some(value) if !needed || !value.trim().is_empty() => Some((value.clone(), line)),
            Some(_) => {
                self.found.push(violation(
                    format!("expected text for `{key}`, got nothing"),
                    line,
                    1,
                ));
                None
            }
            None => {
                self.found.push(violation(
                    format!("expected text for `{key}`, got a list or a mapping"),
                    line,
                    1,
                ));
                None
            }
        }
    }

    fn length(&mut self, key: &str, text: &str, most: usize, line: u32) {
        let length = text.chars().count();
        if length > most {
            self.found.push(violation(
                format!("`{key}` may have at most {most} characters, this one has {length}"),
                line,
                1,
            ));
        }
    }

    fn name(&mut self, name: &str, line: u32, folder: &str) {
        let name: String = name.trim().nfkc().collect();
        let mut found = Vec::new();
        if name != name.to_lowercase() {
            found.push("expected lowercase letters in the name".to_owned());
        }
        if name.starts_with('-') || name.ends_with('-') {
            found.push("a name may not begin or end with `-`".to_owned());
        }
        if name.contains("--") {
            found.push("a name may not have two `-` in a row".to_owned());
        }
        if let Some(odd) = name.chars().find(|c| !(*c == '-' || is_letter_or_digit(*c))) {
            found.push(format!("expected letters, digits and `-` in the name, got {odd:?}"));
        }
        if folder.nfkc().ne(name.chars()) {
            found.push(format!("the name `{name}` differs from its folder's, `{folder}`"));
        }
        self.length("name", &name, NAME, line);
        self.found.extend(found.into_iter().map(|message| violation(message, line, 1)));
    }
}

/// Whether a character is a letter or a number by its general category. Marks, and letters in
/// squares and circles, are alphabetic in Unicode but not letters.
fn is_letter_or_digit(c: char) -> bool {
    c.is_alphanumeric() && !is_combining_mark(c) && !('\u{1F130}'..='\u{1F189}').contains(&c)
}
