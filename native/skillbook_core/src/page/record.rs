//! Records of a database, in place of files with frontmatter.
//!
//! A record has the fields of the frontmatter in its content, and its columns. Where both have a
//! field the column decides, but restrictions are joined: all labels and exclusions count. Fields
//! that run something or give a name to it count only as columns ([`NOT_FROM_TEXT`]), since models
//! and strangers write records. With a name and a description in the content, a note is a skill.

use std::borrow::Cow;
use std::sync::Arc;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::fields::place::at_key;
use crate::page::fields::restrictions::{
    self, EXCLUDED, IN_PROMPT, IN_PROMPT_DEFAULT, LABELS, SHORT_LABELS,
};
use crate::page::fields::{with_texts, FieldReader, Fields};
use crate::page::frontmatter;
use crate::source::{Kind, Trust};
use crate::tenant::Tenant;
use crate::text::line::command_name;
use crate::value::Value;

/// One entry of a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The id, which distinguishes records of the same name. Readers never see it.
    pub id: i64,
    /// The name.
    pub name: String,
    /// Whether it is a skill regardless of its content. Otherwise the content decides between skill
    /// and note.
    pub is_skill: bool,
    /// The title.
    pub title: String,
    /// The description. If it is blank, the description in the content's frontmatter is used.
    pub description: String,
    /// The whole text, with frontmatter.
    pub content: Arc<str>,
    /// The tags.
    pub tags: Vec<String>,
    /// To whom it belongs.
    pub tenant: Tenant,
    /// The visibility labels.
    pub labels: Vec<String>,
    /// Whether prompts include it.
    pub include_in_prompt: bool,
    /// The ids of profiles whose prompts always include it.
    pub proactive_for: Vec<String>,
    /// The ids of profiles that may not load it.
    pub excluded_for: Vec<String>,
    /// Its author's kind.
    pub origin: Origin,
    /// Its version, from 1.
    pub version: i64,
    /// Its schedule: a cron expression.
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    pub timezone: Option<String>,
    /// The ids of the profiles that wrote any of the commands that it runs, its creator first;
    /// `None` for a writer with fewer rights than the profile of its id. Readers never see them.
    pub writers: Vec<Option<String>>,
}

/// The values of a record as a line of JSON has them. They come in groups, since serde reads no
/// longer tuple.
type Line<'a> = (
    (i64, Cow<'a, str>, bool, Cow<'a, str>, Cow<'a, str>, Cow<'a, str>),
    (Tags<'a>, (bool, Option<Cow<'a, str>>), Tags<'a>, bool, Tags<'a>, Tags<'a>),
    (Origin, i64, Option<Cow<'a, str>>, Option<Cow<'a, str>>, Cow<'a, [Option<String>]>),
);
type Tags<'a> = Cow<'a, [String]>;

/// The bytes that most columns and escapes take in a line.
const COLUMNS_BYTES: usize = 512;

impl Record {
    /// The name and the labels of the record's entry; `None` without one.
    pub(crate) fn entry(&self) -> Option<(String, Vec<String>)> {
        let (name, own) = entry(&self.name, &self.labels, Some(&self.content))?;
        Some((name, join(&self.labels, own.labels)))
    }

    /// The record as a line of JSON, with its end. Equal records have equal lines.
    pub(crate) fn line(&self) -> Vec<u8> {
        let tenant = (self.tenant == Tenant::All, self.tenant.name().map(Cow::from));
        let (tags, labels) = (Cow::from(&self.tags), Cow::from(&self.labels));
        let (proactive, excluded) = (Cow::from(&self.proactive_for), Cow::from(&self.excluded_for));
        let texts = [&self.name, &self.title, &self.description].map(|text| Cow::from(&**text));
        let [name, title, description] = texts;
        let [schedule, timezone] =
            [&self.schedule, &self.timezone].map(|text| text.as_deref().map(Cow::from));
        let line: Line = (
            (self.id, name, self.is_skill, title, description, Cow::from(&*self.content)),
            (tags, tenant, labels, self.include_in_prompt, proactive, excluded),
            (self.origin, self.version, schedule, timezone, Cow::from(&self.writers)),
        );
        // Texts and numbers can always be written.
        let mut bytes = Vec::with_capacity(self.content.len() + COLUMNS_BYTES);
        let _ = serde_json::to_writer(&mut bytes, &line);
        bytes.push(b'\n');
        bytes
    }

    /// Reads a line that [`Record::line`] wrote.
    pub(crate) fn of_line(line: &[u8]) -> Option<Record> {
        let (
            (id, name, is_skill, title, description, content),
            (tags, (is_all, tenant), labels, include_in_prompt, proactive_for, excluded_for),
            (origin, version, schedule, timezone, writers),
        ): Line = serde_json::from_slice(line).ok()?;
        let (name, title, description) =
            (name.into_owned(), title.into_owned(), description.into_owned());
        let tenant = match tenant {
            Some(name) => Tenant::One(name.into()),
            None if is_all => Tenant::All,
            None => Tenant::Common,
        };
        Some(Record {
            id,
            name,
            is_skill,
            title,
            description,
            content: content.into(),
            tags: tags.into_owned(),
            tenant,
            labels: labels.into_owned(),
            include_in_prompt,
            proactive_for: proactive_for.into_owned(),
            excluded_for: excluded_for.into_owned(),
            origin,
            version,
            schedule: schedule.map(Cow::into_owned),
            timezone: timezone.map(Cow::into_owned),
            writers: writers.into_owned(),
        })
    }
}

/// Reads a column that contains a JSON list; `None` for any other value.
///
/// ```
/// use skillbook_core::page::record::list;
///
/// assert_eq!(list::<String>(r#"["a","b"]"#), Some(vec!["a".to_owned(), "b".to_owned()]));
/// assert_eq!(list::<String>("[1]"), None);
/// ```
pub fn list<T: DeserializeOwned>(json: &str) -> Option<Vec<T>> {
    // Most lists are empty, and need no parser.
    match json {
        "[]" => Some(Vec::new()),
        json => serde_json::from_str(json).ok(),
    }
}

/// The kind of author of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Origin {
    /// A person.
    User,
    /// A model.
    Agent,
    /// An import from another place.
    Import,
}

impl Origin {
    /// `user`, `agent` or `import`.
    pub fn as_str(self) -> &'static str {
        match self {
            Origin::User => "user",
            Origin::Agent => "agent",
            Origin::Import => "import",
        }
    }

    /// The trust level of its text.
    pub fn trust(self) -> Trust {
        match self {
            Origin::User | Origin::Agent => Trust::Medium,
            Origin::Import => Trust::Low,
        }
    }
}

/// The data of a record's document that a file does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The record's id.
    pub id: i64,
    /// The profiles that wrote its commands, see [`Record::writers`].
    pub writers: Vec<Option<String>>,
    /// A skill or a note.
    pub kind: Kind,
    /// The trust level of its text.
    pub trust: Trust,
    /// To whom it belongs.
    pub tenant: Tenant,
    /// Its author's kind.
    pub origin: Origin,
    /// Its version.
    pub version: i64,
}

/// The columns that decide whether a view shows a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The name.
    pub name: String,
    /// Whether it is a skill regardless of its content.
    pub is_skill: bool,
    /// To whom it belongs.
    pub tenant: Tenant,
    /// The visibility labels.
    pub labels: Vec<String>,
    /// The ids of profiles that may not load it.
    pub excluded_for: Vec<String>,
    /// The whole text. Without it, [`Access::is_skill`] alone decides the kind.
    pub content: Option<String>,
}

impl Access {
    /// Name, kind, labels and excluded profiles of the record's entry; `None` if a catalog makes no
    /// entry of the record.
    pub(crate) fn entry(&self) -> Option<(String, Kind, Vec<String>, Vec<String>)> {
        let (name, own) = entry(&self.name, &self.labels, self.content.as_deref())?;
        let kind = if self.is_skill || own.makes_skill { Kind::Skill } else { Kind::Note };
        Some((
            name,
            kind,
            join(&self.labels, own.labels),
            join(&self.excluded_for, own.excluded_for),
        ))
    }
}

/// The name of a record's entry and the restrictions in its text; `None` without an entry.
fn entry(name: &str, labels: &[String], content: Option<&str>) -> Option<(String, Own)> {
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    // Records are skills or notes, never commands. Blank labels fail closed, as in files.
    if name.is_empty() || command_name(&name).is_some() || !are_readable(labels) {
        return None;
    }
    Some((name, Own::read(content.unwrap_or_default()).ok()?))
}

/// The restrictions in the frontmatter of a text, and whether it makes a skill.
#[derive(Debug, Clone, PartialEq)]
pub struct Own {
    /// Whether the text is a skill by itself: it has a name and a description.
    pub makes_skill: bool,
    /// Whether it has a description.
    pub is_described: bool,
    /// Its labels.
    pub labels: Vec<String>,
    /// The profiles that it excludes.
    pub excluded_for: Vec<String>,
    /// Whether prompts include it.
    pub include_in_prompt: bool,
    /// The whole frontmatter, as in [`Document::data`](super::document::Document::data); null
    /// without one.
    pub data: Value,
}

impl Default for Own {
    /// Those of a text without frontmatter.
    fn default() -> Own {
        Own {
            makes_skill: false,
            is_described: false,
            labels: Vec::new(),
            excluded_for: Vec::new(),
            include_in_prompt: true,
            data: Value::Null,
        }
    }
}

impl Own {
    /// Reads them from a whole text. Frontmatter that cannot be read is text, if no line of it
    /// looks like a restriction.
    ///
    /// # Errors
    ///
    /// The first error in a restriction, with its line and a hint. Then nobody may see the text.
    ///
    /// ```
    /// use skillbook_core::page::record::Own;
    ///
    /// let own = Own::read("---\nlabels: [home]\nvisibility_labels: [family]\n---\n").unwrap();
    /// assert_eq!(own.labels, ["family", "home"]);
    /// assert_eq!(
    ///     Own::read("---\nvisibility-labels: [home]\n---\n").unwrap_err(),
    ///     "line 2: expected `visibility_labels`, got `visibility-labels`; \
    ///      write for example visibility_labels: [private, family]"
    /// );
    /// assert_eq!(Own::read("Text").unwrap().labels, Vec::<String>::new());
    /// ```
    pub fn read(text: &str) -> Result<Own, String> {
        let parsed = frontmatter::parse(text);
        if let Some(error) = restrictions::errors(text, parsed.as_ref()).first() {
            return Err(restrictions::reason(error));
        }
        let Ok(parsed) = parsed else { return Ok(Own::default()) };
        let own = Own::of("", &parsed, &mut Vec::new());
        Ok(Own { data: with_texts(parsed.data, &[]), ..own })
    }

    /// Reads them from frontmatter whose restrictions have no error.
    pub(crate) fn of(
        block: &str,
        parsed: &frontmatter::Document,
        diagnostics: &mut Vec<Diagnostic>,
    ) -> Own {
        let mut reader = FieldReader { data: &parsed.data, block, columns: &[], diagnostics };
        Own {
            labels: join(&[], reader.labels()),
            excluded_for: join(&[], reader.excluded_for()),
            include_in_prompt: reader.include_in_prompt(),
            makes_skill: makes_skill(parsed),
            is_described: has_text(parsed, "description"),
            data: Value::Null,
        }
    }
}

/// The fields that a record has only as columns. In the text they would run something, choose its
/// rights, or take the name of a tool.
pub const NOT_FROM_TEXT: [&str; 5] = ["handler", "schedule", "timezone", "run_as", "tool"];

impl Record {
    /// The errors in the restrictions of the record. With at least one, nobody may see it.
    pub(crate) fn errors(
        &self,
        parsed: Result<&frontmatter::Document, &frontmatter::Error>,
    ) -> Vec<Diagnostic> {
        let mut errors = restrictions::errors(&self.content, parsed);
        if !are_readable(&self.labels) {
            let message = "expected texts as the labels of the record, got a blank one; the \
                           record is not used, because the wrong reader might see it";
            errors.push(Diagnostic::new(Code::LabelsInvalid, Severity::Error, message));
        }
        errors
    }

    /// The columns under the names of the frontmatter fields, then the other fields of the text.
    /// Also the names of the columns among them.
    pub(crate) fn data(
        &self,
        own: &Own,
        parsed: Option<&frontmatter::Document>,
    ) -> (Value, Vec<&'static str>) {
        let columns = Columns {
            name: &self.name,
            title: &self.title,
            description: self.description.trim(),
            tags: &self.tags,
            labels: &join(&self.labels, own.labels.clone()),
            include_in_prompt: self.include_in_prompt && own.include_in_prompt,
            proactive_for: &self.proactive_for,
            excluded_for: &join(&self.excluded_for, own.excluded_for.clone()),
            schedule: self.schedule.as_deref(),
            timezone: self.timezone.as_deref(),
            version: self.version,
            origin: self.origin,
        };
        let columns = columns.values();
        let names: Vec<_> = columns.iter().map(|(key, _)| *key).collect();
        let mut data: Vec<_> =
            columns.into_iter().map(|(key, value)| (key.to_owned(), value)).collect();
        if let Some(Value::Map(pairs)) = parsed.map(|parsed| &parsed.data) {
            let counts = |key: &str| {
                // The restrictions of the text are among the columns.
                let joined = [SHORT_LABELS, IN_PROMPT_DEFAULT].contains(&key);
                !names.contains(&key) && !NOT_FROM_TEXT.contains(&key) && !joined
            };
            data.extend(pairs.iter().filter(|(key, _)| counts(key)).cloned());
        }
        (Value::Map(data), names)
    }
}

/// The columns of a record with their names in frontmatter.
struct Columns<'a> {
    name: &'a str,
    title: &'a str,
    description: &'a str,
    tags: &'a [String],
    labels: &'a [String],
    include_in_prompt: bool,
    proactive_for: &'a [String],
    excluded_for: &'a [String],
    schedule: Option<&'a str>,
    timezone: Option<&'a str>,
    version: i64,
    origin: Origin,
}

impl Columns<'_> {
    /// Those that are not empty.
    fn values(&self) -> Vec<(&'static str, Value)> {
        let text = |text: &str| Value::Str(text.to_owned());
        let list = |texts: &[String]| Value::List(texts.iter().map(|item| text(item)).collect());
        let columns = [
            ("name", text(self.name)),
            ("title", text(self.title)),
            ("description", text(self.description)),
            ("tags", list(self.tags)),
            (LABELS, list(self.labels)),
            (IN_PROMPT, Value::Bool(self.include_in_prompt)),
            ("proactive_for_profile_ids", list(self.proactive_for)),
            (EXCLUDED, list(self.excluded_for)),
            ("schedule", text(self.schedule.unwrap_or_default())),
            ("timezone", text(self.timezone.unwrap_or_default())),
            ("version", Value::Int(self.version)),
            ("source", text(self.origin.as_str())),
        ];
        let is_empty = |value: &Value| match value {
            Value::Str(text) => text.is_empty(),
            Value::List(items) => items.is_empty(),
            _ => false,
        };
        columns.into_iter().filter(|(_, value)| !is_empty(value)).collect()
    }
}

impl Stored {
    /// The data of a record whose columns are in its fields as they are, and whose text adds none.
    pub(crate) fn data(&self, fields: &Fields) -> Value {
        let pairs = self.columns(fields).into_iter().map(|(key, value)| (key.to_owned(), value));
        Value::Map(pairs.collect())
    }

    /// Whether that is this data.
    pub(crate) fn is_data(&self, fields: &Fields, data: &Value) -> bool {
        let Value::Map(pairs) = data else { return false };
        let columns = self.columns(fields);
        let same = |((key, value), (own, of)): (&(&str, Value), &(String, Value))| {
            key == own && value == of
        };
        columns.len() == pairs.len() && columns.iter().zip(pairs).all(same)
    }

    fn columns(&self, fields: &Fields) -> Vec<(&'static str, Value)> {
        let columns = Columns {
            name: fields.name.as_deref().unwrap_or_default(),
            title: fields.title.as_deref().unwrap_or_default(),
            description: fields.description.as_deref().unwrap_or_default(),
            tags: &fields.tags,
            labels: &fields.labels,
            include_in_prompt: fields.include_in_prompt,
            proactive_for: &fields.proactive_for,
            excluded_for: &fields.excluded_for,
            schedule: fields.schedule.as_deref(),
            timezone: fields.timezone.as_deref(),
            version: self.version,
            origin: self.origin,
        };
        columns.values()
    }
}

/// The diagnostics for fields of a text that count only as columns.
pub(crate) fn lost_fields<'a>(
    block: &'a str,
    parsed: &'a frontmatter::Document,
) -> impl Iterator<Item = Diagnostic> + 'a {
    let lost = NOT_FROM_TEXT.iter().filter(|key| parsed.data.get(key).is_some());
    lost.map(move |key| {
        let message = format!("the field `{key}` in the text of a record is not used");
        let hint = match *key {
            "schedule" | "timezone" => format!("set the record's own `{key}`"),
            _ => "write the page as a file, in a source of skills".to_owned(),
        };
        let diagnostic = Diagnostic::new(Code::UntrustedField, Severity::Warning, message);
        at_key(block, key, diagnostic.hint(hint))
    })
}

/// The largest number of characters of a title in the store, of which a name in a text may be one.
const OWN_NAME_LENGTH: usize = 200;

/// Whether labels of a record can be read.
fn are_readable(labels: &[String]) -> bool {
    labels.iter().all(|label| !label.trim().is_empty())
}

/// The texts of both lists, sorted.
fn join(one: &[String], other: Vec<String>) -> Vec<String> {
    let one = one.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
    let mut all: Vec<String> = one.map(str::to_owned).chain(other).collect();
    all.sort();
    all.dedup();
    all
}

/// Whether frontmatter in a record's content makes the record a skill: it has a name and a
/// description.
pub(crate) fn makes_skill(own: &frontmatter::Document) -> bool {
    has_text(own, "name") && has_text(own, "description")
}

/// The name in a record's content by which lists may show it and readers ask for it. Text of a
/// record takes no name of a command, and lists need a short one.
pub(crate) fn own_name(own: &frontmatter::Document) -> Option<String> {
    let name = own.data.get("name").and_then(Value::plain)?;
    let name = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let fits = !name.is_empty() && name.chars().count() <= OWN_NAME_LENGTH;
    (fits && command_name(&name).is_none()).then_some(name)
}

fn has_text(own: &frontmatter::Document, key: &str) -> bool {
    own.data.get(key).and_then(Value::plain).is_some()
}
