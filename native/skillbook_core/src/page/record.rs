//! A text with its columns as a database has them, in the place of a file with its frontmatter.

use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::page::frontmatter;
use crate::source::{Kind, Trust};
use crate::text::line::command_name;
use crate::value::Value;

/// What a database has of one entry. The columns decide: they are read as the frontmatter fields of the same meaning, and
/// none of the content's own frontmatter is, but that a name and a description in it make a skill of a note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// What tells it from others of its name. No reader is told of it.
    pub id: i64,
    /// The name.
    pub name: String,
    /// Whether it is a skill whatever its content has; else it is a note.
    pub is_skill: bool,
    /// The title.
    pub title: String,
    /// The description; that of the content's frontmatter is taken if it is blank.
    pub description: String,
    /// The whole text, frontmatter included.
    pub content: Arc<str>,
    /// The tags.
    pub tags: Vec<String>,
    /// The visibility labels.
    pub labels: Vec<String>,
    /// Whether it belongs into prompts.
    pub include_in_prompt: bool,
    /// The ids of the profiles into whose prompts it belongs in any case.
    pub proactive_for: Vec<String>,
    /// The ids of the profiles that it is kept from.
    pub excluded_for: Vec<String>,
    /// Who wrote it.
    pub origin: Origin,
    /// Its version, from 1.
    pub version: i64,
    /// When it is to run by itself: a cron expression.
    pub schedule: Option<String>,
    /// The time zone of the schedule.
    pub timezone: Option<String>,
    /// The ids of the profiles that had a part in what it runs, its creator first; `None` for one that had fewer rights than
    /// the profile of its id. No reader is told of them.
    pub writers: Vec<Option<String>>,
}

/// The items of a column that has a list, which is JSON; `None` if it is another value.
///
/// ```
/// use skillbook_core::page::record::list;
///
/// assert_eq!(list::<String>(r#"["a","b"]"#), Some(vec!["a".to_owned(), "b".to_owned()]));
/// assert_eq!(list::<String>("[1]"), None);
/// ```
pub fn list<T: DeserializeOwned>(json: &str) -> Option<Vec<T>> {
    // Most are empty.
    match json {
        "[]" => Some(Vec::new()),
        json => serde_json::from_str(json).ok(),
    }
}

/// Who wrote a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// A person.
    User,
    /// A model.
    Agent,
    /// It was brought in from elsewhere.
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

    /// How far its texts are trusted.
    pub fn trust(self) -> Trust {
        match self {
            Origin::User | Origin::Agent => Trust::Medium,
            Origin::Import => Trust::Low,
        }
    }
}

/// What a document of a record has beside its text and fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// The record's id.
    pub id: i64,
    /// Who had a part in what it runs.
    pub writers: Vec<Option<String>>,
    /// A skill or a note.
    pub kind: Kind,
    /// How far its text is trusted.
    pub trust: Trust,
}

/// The columns of a record by which a view decides whether it shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Access {
    /// The name.
    pub name: String,
    /// Whether it is a skill whatever its content has.
    pub is_skill: bool,
    /// The visibility labels.
    pub labels: Vec<String>,
    /// The ids of the profiles that it is kept from.
    pub excluded_for: Vec<String>,
    /// The whole text. Without it, [`Access::is_skill`] alone says what the record is.
    pub content: Option<String>,
}

impl Access {
    /// Name, kind, labels and excluded profiles of the entry that a catalog makes of the record;
    /// `None` if it makes none.
    pub(crate) fn entry(&self) -> Option<(String, Kind, Vec<String>, Vec<String>)> {
        let name = self.name.split_whitespace().collect::<Vec<_>>().join(" ");
        let texts = |texts: &[String]| -> Vec<String> {
            let trimmed = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
            trimmed.map(str::to_owned).collect()
        };
        let labels = texts(&self.labels);
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
    /// The columns under the names that frontmatter has for them.
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

/// Whether the frontmatter of a record's content makes a skill of it: it has a name and a
/// description.
pub(crate) fn makes_skill(own: &frontmatter::Document) -> bool {
    ["name", "description"].iter().all(|key| own.data.get(key).and_then(Value::plain).is_some())
}
