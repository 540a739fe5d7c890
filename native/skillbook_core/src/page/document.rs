//! A file with the fields of its frontmatter, or a record of a database with its columns as fields.
//!
//! A [`Document`] depends only on its bytes and its path, so a reload reuses the documents of
//! unchanged files. A catalog turns documents into entries
//! ([`Entry`](crate::catalog::entry::Entry)), with names and precedence.
use std::borrow::Cow;
use std::ops::Range;
use std::sync::{Arc, OnceLock};

use crate::page::declaration::{self, Declaration, Given};
use crate::page::diagnostic::{apply, limit, Code, Diagnostic, Fix, Severity};
use crate::page::fields::place::{at_item, at_key, pair, without};
use crate::page::fields::{misspelt, restrictions, with_texts, FieldReader, Fields};
use crate::page::frontmatter;
use crate::page::record::{self, makes_skill, Own, Record, Stored};
use crate::page::references::{self, Reference};
use crate::source::Kind;
use crate::text::line::command_name;
use crate::value::Value;

/// The file that makes its folder a skill or a domain.
pub const SKILL_FILE: &str = "SKILL.md";

/// A document: its text and its fields.
#[derive(Debug, Clone)]
pub struct Document {
    /// The file's full path. A record has a path made of its name.
    pub path: String,
    /// The whole text.
    pub text: Arc<str>,
    /// The findings about the text. Without fields, an error says why.
    pub diagnostics: Vec<Diagnostic>,
    /// The references of a `SKILL.md` to files beside it.
    pub references: Vec<Reference>,
    relative: usize,
    body: Range<usize>,
    state: State,
    stored: Option<Stored>,
    lines: Option<CodeLines>,
    pub(crate) fields: Fields,
    /// Boxed, as the flags of the fields: most documents have none.
    declaration: OnceLock<Option<Box<Declaration>>>,
}

/// The lines of a source file of the program that a page is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CodeLines {
    /// The line of the declaration that becomes the frontmatter, from 1.
    pub head: u32,
    /// The line of the text's first line; `None` if the page has no text of its own.
    pub body: Option<u32>,
}

/// How far a document can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Its frontmatter cannot be read, so it has no fields.
    Unreadable,
    /// An error in a restriction hides it. Its fields only say what the files beside it are.
    Closed,
    Usable,
}

impl Document {
    /// Reads the file at `relative` (with `/` between folders) below `root`.
    pub fn parse(root: &str, relative: &str, bytes: &[u8]) -> Document {
        let mut document = Document::empty(root, relative);
        match simdutf8::compat::from_utf8(bytes) {
            Ok(text) => document.read(text),
            Err(error) => {
                let line =
                    memchr::memchr_iter(b'\n', &bytes[..error.valid_up_to()]).count() as u32 + 1;
                let message =
                    format!("expected UTF-8, got the byte 0x{:02x}", bytes[error.valid_up_to()]);
                let diagnostic = Diagnostic::new(Code::InvalidUtf8, Severity::Error, message)
                    .hint("save the file as UTF-8")
                    .in_file(document.path.as_str());
                document.diagnostics.push(Diagnostic { line: Some(line), ..diagnostic });
            }
        }
        document
    }

    /// Reads a page that the program's code hands over. `path` names the code, and diagnostics have
    /// its lines; without `lines` they have none.
    ///
    /// ```
    /// use skillbook_core::page::document::{CodeLines, Document};
    ///
    /// let page = "---\nname: tea\ntimeout: soon\n---\nBoil water.\n";
    /// let lines = CodeLines { head: 3, body: Some(8) };
    /// let document = Document::of_code("lib/tea.ex (Tea)", page, Some(lines));
    /// let found = &document.diagnostics[0];
    /// assert_eq!((found.path.as_deref(), found.line), (Some("lib/tea.ex (Tea)"), Some(3)));
    /// ```
    pub fn of_code(path: &str, text: &str, lines: Option<CodeLines>) -> Document {
        let lines = lines.unwrap_or(CodeLines { head: 0, body: None });
        let empty = Document::empty("", "");
        let mut document =
            Document { path: path.to_owned(), relative: 0, lines: Some(lines), ..empty };
        document.read(text);
        document
    }

    /// The lines of the code that it comes from; `None` for files and records.
    pub fn code_lines(&self) -> Option<CodeLines> {
        self.lines
    }

    /// Reads a record of a database. Its path is that of a file in `root` with the record's name.
    /// Its fields are its columns and those of the frontmatter in its text, see
    /// [`record`].
    ///
    /// ```
    /// use skillbook_core::page::document::Document;
    /// use skillbook_core::page::record::{Origin, Record};
    /// use skillbook_core::tenant::Tenant;
    ///
    /// let record = Record {
    ///     id: 1,
    ///     name: "milk".into(),
    ///     is_skill: false,
    ///     title: "Milk".into(),
    ///     description: String::new(),
    ///     content: "---\nhandler: Milk\nlicense: MIT\n---\nTwo litres".into(),
    ///     tags: vec!["shopping".into()],
    ///     tenant: Tenant::Common,
    ///     labels: Vec::new(),
    ///     include_in_prompt: true,
    ///     proactive_for: Vec::new(),
    ///     excluded_for: Vec::new(),
    ///     origin: Origin::User,
    ///     version: 1,
    ///     schedule: Some("0 8 * * 1".into()),
    ///     timezone: None,
    ///     writers: vec![Some("anna".into())],
    /// };
    /// let document = Document::stored("store", &record);
    /// let fields = document.fields().unwrap();
    /// assert_eq!((document.path.as_str(), document.body()), ("store/milk.md", "Two litres"));
    /// assert_eq!(fields.tags, ["shopping"]);
    /// assert_eq!((fields.license.as_deref(), fields.handler.as_deref()), (Some("MIT"), None));
    /// ```
    pub fn stored(root: &str, record: &Record) -> Document {
        let name = record.name.split_whitespace().collect::<Vec<_>>().join(" ");
        let mut document = Document::empty(root, &format!("{name}.md"));
        document.text = record.content.clone();
        let text = &*record.content;
        let own = frontmatter::parse(text);
        let errors = record.errors(own.as_ref());
        let own = own.map_err(|error| document.diagnostics.push(error.to_diagnostic())).ok();
        document.body = own.as_ref().map_or(0, |own| own.body_offset)..text.len();
        let is_skill = record.is_skill || own.as_ref().is_some_and(makes_skill);
        if errors.is_empty() {
            document.read_record(record, own.as_ref());
        }
        document.diagnostics.extend(errors);
        let kind = if is_skill { Kind::Skill } else { Kind::Note };
        let stored = Stored {
            id: record.id,
            writers: record.writers.clone(),
            kind,
            trust: record.origin.trust(),
            tenant: record.tenant.clone(),
            origin: record.origin,
            version: record.version,
        };
        // Of most records it can be made again, and there may be many in memory.
        if stored.is_data(&document.fields, &document.fields.data) {
            document.fields.data = Value::Null;
        }
        document.stored = Some(stored);
        document.name_diagnostics();
        document
    }

    /// Reads the columns of a record and the frontmatter in its text.
    fn read_record(&mut self, record: &Record, parsed: Option<&frontmatter::Document>) {
        let block = &record.content[..self.body.start];
        let mut own = Own::default();
        if let Some(parsed) = parsed {
            self.diagnostics.extend(parsed.diagnostics.iter().cloned());
            self.diagnostics.extend(record::lost_fields(block, parsed));
            own = Own::of(block, parsed, &mut self.diagnostics);
        }
        let (data, columns) = record.data(&own, parsed);
        let diagnostics = &mut self.diagnostics;
        let mut reader = FieldReader { data: &data, block, columns: &columns, diagnostics };
        let fields = reader.fields(true, &record.content[self.body.clone()]);
        let is_skill = record.is_skill || own.makes_skill;
        let own_name = parsed.filter(|_| is_skill).and_then(record::own_name);
        let own_name = own_name.filter(|own| Some(own) != fields.name.as_ref());
        let written = fields.aliases.iter().filter(|alias| Some(*alias) != own_name.as_ref());
        let aliases = own_name.iter().chain(written).cloned().collect();
        let data = with_texts(data, &columns);
        self.fields = Fields { aliases, data, ..fields }.with(|rare| rare.own_name = own_name);
        self.state = State::Usable;
    }

    fn empty(root: &str, relative: &str) -> Document {
        Document {
            path: format!("{root}/{relative}"),
            text: Arc::from(""),
            diagnostics: Vec::new(),
            references: Vec::new(),
            relative: root.len() + 1,
            body: 0..0,
            state: State::Unreadable,
            stored: None,
            lines: None,
            fields: Fields::default(),
            declaration: OnceLock::new(),
        }
    }

    fn name_diagnostics(&mut self) {
        limit(&mut self.diagnostics);
        for mut diagnostic in std::mem::take(&mut self.diagnostics) {
            diagnostic.path = None;
            self.diagnostics.push(self.locate(diagnostic));
        }
    }

    /// Adds the path to a diagnostic of this document, unless it has one. In a page of code its
    /// line in the page becomes the line of the code, and its fix, which is for files, is dropped.
    pub fn locate(&self, mut diagnostic: Diagnostic) -> Diagnostic {
        if diagnostic.path.is_some() {
            return diagnostic;
        }
        if let Some(lines) = self.lines {
            let head = &self.text.as_bytes()[..self.body.start];
            let first = memchr::memchr_iter(b'\n', head).count() as u32 + 1;
            let in_body = |line: u32| Some(lines.body?.saturating_add(line.checked_sub(first)?));
            let line = diagnostic.line.map(|line| in_body(line).unwrap_or(lines.head));
            (diagnostic.line, diagnostic.column) = (line.filter(|line| *line > 0), None);
            diagnostic.fix = None;
        }
        diagnostic.in_file(self.path.as_str())
    }

    fn read(&mut self, text: &str) {
        self.text = Arc::from(text);
        self.body = text.len()..text.len();
        match frontmatter::parse(text) {
            Ok(mut parsed) => {
                self.body = parsed.body_offset..text.len();
                let errors = restrictions::errors(text, Ok(&parsed));
                self.diagnostics = std::mem::take(&mut parsed.diagnostics);
                let (mut found, repeated) = (Vec::new(), std::mem::take(&mut parsed.repeated));
                let mut reader = FieldReader {
                    data: &parsed.data,
                    block: &text[..parsed.body_offset],
                    columns: &[],
                    diagnostics: &mut found,
                };
                let fields = reader.fields(parsed.present, parsed.body);
                let flags = reader.flags(&self.diagnostics, &repeated);
                let usage = fields.usage.clone().or_else(|| usage(&fields, flags.as_ref()?));
                self.fields = fields.with(|rare| {
                    rare.usage = usage;
                    rare.flags = flags.map(Box::new);
                });
                self.state = if errors.is_empty() { State::Usable } else { State::Closed };
                self.diagnostics.extend(if errors.is_empty() { found } else { errors });
            }
            Err(error) => self.diagnostics.push(error.to_diagnostic()),
        }
        // Only a skill's folder has resources, so other documents need no search for links.
        if self.state == State::Usable && self.is_skill_file() {
            self.references = references::find(text, self.body.start);
        }
        self.name_diagnostics();
    }

    /// A fix that adds the line of a field at the top of the frontmatter, if everything else then
    /// reads the same.
    pub(crate) fn added_field(&self, key: &str, value: &str) -> Option<Fix> {
        // The fix of a misspelt key makes one too.
        let data = self.data();
        let Value::Map(pairs) = &*data else { return None };
        if pairs.iter().any(|(other, _)| misspelt::meant(other) == Some(key)) {
            return None;
        }
        let open = self.text.find('\n').filter(|_| self.fields.present)? + 1;
        let value = Value::Str(value.to_owned());
        let fix = Fix { range: open..open, replacement: pair(key, &value, self.end_of_line()) };
        let mended =
            Document::parse("", "", apply(&self.text, std::slice::from_ref(&fix)).as_bytes());
        // Parsing the new text proves the fix, as for fields.
        mended.fields()?;
        let read = mended.data();
        (without(&read, key) == without(&data, key)
            && read.get(key) == Some(&value)
            && mended.diagnostics.len() == self.diagnostics.len())
        .then_some(fix)
    }

    fn end_of_line(&self) -> &'static str {
        let first = self.text.find('\n').map_or("", |at| &self.text[..at]);
        if first.ends_with('\r') {
            "\r\n"
        } else {
            "\n"
        }
    }

    /// The path relative to the source's root.
    pub fn relative(&self) -> &str {
        &self.path[self.relative..]
    }

    /// The folder relative to the source's root, `""` for the root itself.
    pub fn folder(&self) -> &str {
        self.relative().rsplit_once('/').map_or("", |(folder, _)| folder)
    }

    /// The file's name.
    pub fn file_name(&self) -> &str {
        self.path.rsplit_once('/').map_or(self.path.as_str(), |(_, name)| name)
    }

    /// The file's name without `.md`.
    pub fn stem(&self) -> &str {
        strip_md(self.file_name())
    }

    /// The text after the frontmatter.
    pub fn body(&self) -> &str {
        &self.text[self.body.clone()]
    }

    /// Whether there is no text after the frontmatter.
    pub fn is_blank(&self) -> bool {
        self.body().trim().is_empty()
    }

    /// The flags that the page declares in its frontmatter or its text, read on first use; `None`
    /// if it declares none.
    pub fn declaration(&self) -> Option<&Declaration> {
        let read = || declaration::read_with(self.fields.flags.as_deref(), self.body());
        self.declaration.get_or_init(|| read().map(Box::new)).as_deref()
    }

    /// Adds the line of a field to a diagnostic.
    pub fn at_field(&self, key: &str, diagnostic: Diagnostic) -> Diagnostic {
        at_key(&self.text[..self.body.start], key, diagnostic)
    }

    /// Adds the place of an item of a field's list to a diagnostic.
    pub fn at_item(&self, key: &str, item: &str, diagnostic: Diagnostic) -> Diagnostic {
        at_item(&self.text[..self.body.start], key, item, diagnostic)
    }

    /// The byte range of the body in the text.
    pub fn body_range(&self) -> Range<usize> {
        self.body.clone()
    }

    /// The frontmatter's fields; `None` if the document cannot be used.
    pub fn fields(&self) -> Option<&Fields> {
        (self.state == State::Usable).then_some(&self.fields)
    }

    /// The fields even of a document that an error in a restriction hides. Only the meaning of the
    /// files beside it may depend on them.
    pub(crate) fn fields_of_hidden(&self) -> Option<&Fields> {
        (self.state != State::Unreadable).then_some(&self.fields)
    }

    /// All of the frontmatter, a mapping; of a record its columns too. Fields that are texts, and
    /// all scalars of `metadata`, are texts as their author wrote them. `null` if it cannot be
    /// read.
    ///
    /// It is made again from the text or the columns, since there may be many documents in memory.
    pub fn data(&self) -> Cow<'_, Value> {
        match (&self.fields.data, &self.stored) {
            (Value::Null, Some(stored)) if self.state == State::Usable => {
                Cow::Owned(stored.data(&self.fields))
            }
            (Value::Null, None) => {
                let parsed = frontmatter::parse(&self.text);
                Cow::Owned(parsed.map_or(Value::Null, |parsed| with_texts(parsed.data, &[])))
            }
            (data, _) => Cow::Borrowed(data),
        }
    }

    /// The extra data of a record; `None` for a file.
    pub fn of_record(&self) -> Option<&Stored> {
        self.stored.as_ref()
    }

    /// Whether two documents have the same path and content, even if read at different times.
    pub fn is_same(&self, other: &Document) -> bool {
        // A file's fields are in its text; a record's are not.
        let columns = || {
            self.stored == other.stored && (self.stored.is_none() || self.data() == other.data())
        };
        self.path == other.path && self.text == other.text && columns()
    }

    /// Whether this is a `SKILL.md`.
    pub fn is_skill_file(&self) -> bool {
        self.stored.is_none()
            && self.path.strip_suffix(SKILL_FILE).is_some_and(|folder| folder.ends_with('/'))
    }

    /// Whether this file makes its folder a skill. Then the folder's other files are resources of
    /// the skill and never entries.
    pub fn claims_folder(&self) -> bool {
        self.is_skill_file() && self.fields.name.is_some() && self.fields.domain.is_none()
    }
}

/// The usage of a command whose flags are in its frontmatter.
fn usage(fields: &Fields, flags: &Given) -> Option<String> {
    let name = fields.name.as_deref().filter(|name| command_name(name).is_some())?;
    flags.error.is_none().then(|| declaration::text::usage(name, &flags.flags))
}

/// A path without the `.md` at its end, in any case.
pub fn strip_md(path: &str) -> &str {
    match path.len().checked_sub(3) {
        Some(at) if path.is_char_boundary(at) && path[at..].eq_ignore_ascii_case(".md") => {
            &path[..at]
        }
        _ => path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn knows_its_path() {
        let document = Document::parse("/r", "a/b.md", b"x");
        assert_eq!(document.relative(), "a/b.md");
        assert_eq!((document.folder(), document.file_name(), document.stem()), ("a", "b.md", "b"));
        assert_eq!(Document::parse("/r", "B.MD", b"").folder(), "");
        assert_eq!(strip_md("é.Md"), "é");
        assert_eq!(strip_md("md"), "md");
    }

    #[test]
    fn bytes_that_are_not_utf8_have_no_fields() {
        let bytes = Document::parse("/r", "a.md", b"one\n\xff");
        assert_eq!(bytes.diagnostics[0].message, "expected UTF-8, got the byte 0xff");
        assert_eq!((bytes.diagnostics[0].line, bytes.fields().is_none()), (Some(2), true));
    }
}
