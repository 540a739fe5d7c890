//! Records of a database, in place of files with frontmatter.
//!
//! The columns decide: each is read like the frontmatter field of the same meaning. Frontmatter in
//! the content does not count, with one exception: with a name and a description in it, a note is a
//! skill.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::page::frontmatter;
use crate::source::{Kind, Trust};
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
}

/// The columns that decide whether a view shows a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The name.
    pub name: String,
    /// Whether it is a skill regardless of its content.
    pub is_skill: bool,
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
        let name = self.name.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = |texts: &[String]| -> Vec<String> {
            let trimmed = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
            trimmed.map(str::to_owned).collect()
        };
        let labels = texts(&self.labels);
        // Records are skills or notes, never commands. Blank labels fail closed, as in files.
        if name.is_empty() || command_name(&name).is_some() || labels.len() < self.labels.len() {
            return None;
        }
        let own = || {
            self.content
                .as_deref()
                .is_some_and(|text| frontmatter::parse(text).is_ok_and(|own| makes_skill(&own)))
        };
        let kind = if self.is_skill || own() { Kind::Skill } else { Kind::Note };
        Some((name, kind, labels, texts(&self.excluded_for)))
    }
}

impl Record {
    /// The columns under the names of the frontmatter fields.
    pub(crate) fn data(&self, description: &str) -> Value {
        let text = |text: &str| Value::Str(text.to_owned());
        let list = |texts: &[String]| Value::List(texts.iter().map(|item| text(item)).collect());
        let columns = [
            ("name", text(&self.name)),
            ("title", text(&self.title)),
            ("description", text(description)),
            ("tags", list(&self.tags)),
            ("visibility_labels", list(&self.labels)),
            ("include_in_prompt", Value::Bool(self.include_in_prompt)),
            ("proactive_for_profile_ids", list(&self.proactive_for)),
            ("exclude_from_prompt_profile_ids", list(&self.excluded_for)),
            ("schedule", text(self.schedule.as_deref().unwrap_or_default())),
            ("timezone", text(self.timezone.as_deref().unwrap_or_default())),
            ("version", Value::Int(self.version)),
            ("source", text(self.origin.as_str())),
        ];
        let is_empty = |value: &Value| match value {
            Value::Str(text) => text.is_empty(),
            Value::List(items) => items.is_empty(),
            _ => false,
        };
        let there = columns.into_iter().filter(|(_, value)| !is_empty(value));
        Value::Map(there.map(|(key, value)| (key.to_owned(), value)).collect())
    }
}

/// Whether frontmatter in a record's content makes the record a skill: it has a name and a
/// description.
pub(crate) fn makes_skill(own: &frontmatter::Document) -> bool {
    ["name", "description"].iter().all(|key| own.data.get(key).and_then(Value::plain).is_some())
}
