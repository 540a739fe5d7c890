//! The fields of frontmatter, each read with the type that its meaning needs.
//!
//! A value of another type is converted where its meaning is clear (`tags: a, b` is a list), with a
//! diagnostic and, if only one line changes, a fix. Any other value is ignored, also with a
//! diagnostic. Unknown fields stay in `Fields::data`; those that are nearly known get one too
//! ([`misspelt`]).
//!
//! Restrictions fail closed: a document with an error in one has no fields and is never shown
//! ([`restrictions`]).

pub mod examples;
mod flags;
mod input_schema;
pub mod misspelt;
pub(crate) mod place;
pub mod restrictions;
mod run;
mod typed;

pub use self::run::Approval;

use std::ops::Deref;
use std::sync::LazyLock;

use crate::page::declaration::Given;
use crate::page::diagnostic::{Code, Diagnostic};
use crate::page::sections;
use crate::source::{Effects, Trust};
use crate::value::Value;
use examples::Example;

/// The maximum lengths of the Agent Skills format, in characters.
const DESCRIPTION_LENGTH: usize = 1024;
const COMPATIBILITY_LENGTH: usize = 500;

/// The fields of a document.
#[derive(Debug, Clone, Default)]
pub struct Fields {
    /// Whether the document has frontmatter.
    pub present: bool,
    /// `name`, with each run of white space as one space.
    pub name: Option<String>,
    /// `domain`: makes a `SKILL.md` the index of that domain.
    pub domain: Option<String>,
    /// `title`.
    pub title: Option<String>,
    /// `description`.
    pub description: Option<String>,
    /// `tags`.
    pub tags: Vec<String>,
    /// `visibility_labels` and `labels`.
    pub labels: Vec<String>,
    /// `aliases`; those of a skill of a database begin with [`Rare::own_name`].
    pub aliases: Vec<String>,
    /// `idempotent`: whether a call whose end is unknown may run once more.
    pub idempotent: bool,
    /// `strict`: check flags against the page even if no handler receives them.
    pub strict: bool,
    /// `replaces`: whether it may take the place of another entry of its name.
    pub replaces: bool,
    /// `trust`: whether the page is trusted less than its source. A page cannot be trusted more.
    pub low_trust: bool,
    /// `include_in_prompt`, else `include_in_prompt_default`, else true.
    pub include_in_prompt: bool,
    /// `disable-model-invocation`: only people and programs use this skill; models do not see it.
    pub hidden_from_model: bool,
    /// `user-invocable`: whether people may invoke it.
    pub user_invocable: bool,
    /// The other fields; `None` without any of them.
    pub(crate) rare: Option<Box<Rare>>,
    /// The data of a record that differs from its columns; see
    /// [`Document::data`](crate::page::document::Document::data).
    pub(in crate::page) data: Value,
}

/// The fields that few documents have. There may be many documents in memory.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Rare {
    /// `handler`, unchanged.
    pub handler: Option<String>,
    /// The name in the text of a skill of a database, if the record has another one. Lists show it.
    pub own_name: Option<String>,
    /// `requires`: names of other skills.
    pub requires: Vec<String>,
    /// `effects`.
    pub effects: Option<Effects>,
    /// `connection`: the service that it needs, such as `mail`. Models are not shown it in views
    /// without a connection to the service.
    pub connection: Option<String>,
    /// `approval`: which calls of it need an approval.
    pub approval: Approval,
    /// `timeout`: the time limit of its handler, in milliseconds.
    pub timeout: Option<u32>,
    /// `max_running`: the concurrency limit of its handler.
    pub max_running: Option<u32>,
    /// `allowed-tools`; none if the field cannot be read, `None` if it is missing.
    pub allowed_tools: Option<Vec<String>>,
    /// `tool`, unchanged.
    pub(crate) tool: Option<String>,
    /// `schedule`, unchanged, if both it and its time zone are valid.
    pub schedule: Option<String>,
    /// `timezone`, unchanged, if the zone exists.
    pub timezone: Option<String>,
    /// `proactive_for_profile_ids`.
    pub proactive_for: Vec<String>,
    /// `exclude_from_prompt_profile_ids`.
    pub excluded_for: Vec<String>,
    /// `quick_reference` of an index: the actions of its domain that come first in the quick
    /// reference of a prompt.
    pub quick_reference: Vec<String>,
    /// `trigger_keywords`: words in a conversation that suggest this skill.
    pub triggers: Vec<String>,
    /// `examples`: requests that test the description.
    pub examples: Vec<Example>,
    /// `flags`: the flags of a command.
    pub flags: Option<Box<Given>>,
    /// `license`.
    pub license: Option<String>,
    /// `compatibility`.
    pub compatibility: Option<String>,
    /// The name of the command that was exported as this skill. The format's names have no dots, so
    /// the export writes it into `metadata`.
    pub(crate) exported: Option<String>,
    /// The first line of the body's Usage section.
    pub usage: Option<String>,
}

impl Deref for Fields {
    type Target = Rare;

    fn deref(&self) -> &Rare {
        static NONE: LazyLock<Rare> = LazyLock::new(Rare::default);
        self.rare.as_deref().unwrap_or(&NONE)
    }
}

impl Fields {
    /// The fields with others in the place of the rare ones.
    pub(crate) fn with(self, change: impl FnOnce(&mut Rare)) -> Fields {
        let mut rare = self.rare.unwrap_or_default();
        change(&mut rare);
        Fields { rare: (*rare != Rare::default()).then_some(rare), ..self }
    }

    /// The trust of a page of a source with this trust.
    pub fn trust(&self, of_source: Trust) -> Trust {
        if self.low_trust {
            of_source.min(Trust::Low)
        } else {
            of_source
        }
    }
}

/// `metadata` of a document's data, a mapping; `None` if it is missing or another value.
pub fn metadata(data: &Value) -> Option<&Value> {
    data.get("metadata").filter(|value| matches!(value, Value::Map(_)))
}

/// Reads fields from frontmatter, and collects diagnostics.
pub(crate) struct FieldReader<'a> {
    pub(crate) data: &'a Value,
    pub(crate) block: &'a str,
    /// The fields that are not in the block, but columns of a record.
    pub(crate) columns: &'a [&'static str],
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
}

impl FieldReader<'_> {
    /// Reads all fields but [`Rare::flags`], which only a file has, and [`Fields::data`].
    /// [`restrictions::errors`] must have found none.
    pub(crate) fn fields(&mut self, present: bool, body: &str) -> Fields {
        let (schedule, timezone) = self.schedule();
        let aliases = self.list("aliases");
        self.check_tool(&aliases);
        self.check_metadata();
        self.misspelt();
        let fields = Fields {
            present,
            labels: self.labels(),
            name: self
                .text("name")
                .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")),
            domain: self.text("domain"),
            title: self.text("title"),
            description: self.bounded("description", DESCRIPTION_LENGTH, Code::DescriptionTooLong),
            tags: self.list("tags"),
            aliases,
            idempotent: self.flag("idempotent").unwrap_or(false),
            strict: self.flag("strict").unwrap_or(false),
            replaces: self.flag("replaces").unwrap_or(true),
            low_trust: self.low_trust(),
            include_in_prompt: self.include_in_prompt(),
            hidden_from_model: self.flag(restrictions::HIDDEN_FROM_MODEL).unwrap_or(false),
            user_invocable: self.flag(restrictions::USER_INVOCABLE).unwrap_or(true),
            rare: None,
            data: Value::Null,
        };
        let rare = Rare {
            handler: self.text("handler"),
            own_name: None,
            requires: self.list("requires"),
            effects: self.effects(),
            connection: self.text("connection"),
            approval: self.approval(),
            timeout: self.timeout(),
            max_running: self.max_running(),
            allowed_tools: self.allowed_tools(),
            tool: self.data.get("tool").and_then(Value::as_str).map(str::to_owned),
            schedule,
            timezone,
            proactive_for: self.list("proactive_for_profile_ids"),
            excluded_for: self.excluded_for(),
            quick_reference: self.list("quick_reference"),
            triggers: self.list("trigger_keywords"),
            examples: self.examples(),
            flags: None,
            license: self.text("license"),
            compatibility: self.bounded(
                "compatibility",
                COMPATIBILITY_LENGTH,
                Code::CompatibilityTooLong,
            ),
            exported: self.exported(),
            usage: sections::usage(body).map(str::to_owned),
        };
        fields.with(|of_fields| *of_fields = rare)
    }

    /// The labels under both names.
    pub(crate) fn labels(&mut self) -> Vec<String> {
        [self.list(restrictions::LABELS), self.list(restrictions::SHORT_LABELS)].concat()
    }

    /// Whether prompts include it.
    pub(crate) fn include_in_prompt(&mut self) -> bool {
        self.flag(restrictions::IN_PROMPT)
            .or_else(|| self.flag(restrictions::IN_PROMPT_DEFAULT))
            .unwrap_or(true)
    }

    /// The ids of the excluded profiles.
    pub(crate) fn excluded_for(&mut self) -> Vec<String> {
        self.list(restrictions::EXCLUDED)
    }
}

/// The fields that are texts, so that a version 1.10 stays 1.10.
const TEXTS: [&str; 14] = [
    "name",
    "domain",
    "title",
    "description",
    "handler",
    "license",
    "compatibility",
    "version",
    "author",
    "created",
    "source",
    "schedule",
    "timezone",
    "run_as",
];

/// The data with the author's texts in place of the numbers and booleans of text fields and of
/// `metadata`. Columns keep their types.
pub(crate) fn with_texts(mut data: Value, columns: &[&str]) -> Value {
    let Value::Map(pairs) = &mut data else { return data };
    let mut open: Vec<&mut Value> = Vec::new();
    for (key, value) in pairs {
        let is_metadata = key == "metadata" && matches!(value, Value::Map(_));
        let is_text = TEXTS.contains(&key.as_str()) && !columns.contains(&key.as_str());
        if is_metadata || is_text {
            open.push(value);
        }
    }
    while let Some(value) = open.pop() {
        match value {
            Value::List(items) => open.extend(items),
            Value::Map(pairs) => open.extend(pairs.iter_mut().map(|(_, value)| value)),
            Value::Null | Value::Str(_) => {}
            scalar => *scalar = scalar.plain().map_or(Value::Null, Value::Str),
        }
    }
    data
}

#[cfg(test)]
mod tests;
