//! The fields of frontmatter, each read with the type that its meaning needs.
//!
//! A value of another type is converted where its meaning is clear (`tags: a, b` is a list), with a
//! diagnostic and, if only one line changes, a fix. Any other value is ignored, also with a
//! diagnostic. Unknown fields stay in [`Fields::data`].
//!
//! Restrictions fail closed: with unreadable `visibility_labels` the document has no fields and is
//! never shown.

pub(crate) mod place;
mod run;
mod typed;

use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::sections;
use crate::source::Effects;
use crate::value::Value;

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
    /// `handler`, unchanged.
    pub handler: Option<String>,
    /// `tags`.
    pub tags: Vec<String>,
    /// `visibility_labels`.
    pub labels: Vec<String>,
    /// `aliases`.
    pub aliases: Vec<String>,
    /// `requires`: names of other skills.
    pub requires: Vec<String>,
    /// `effects`.
    pub effects: Option<Effects>,
    /// `timeout`: the time limit of its handler, in milliseconds.
    pub timeout: Option<u32>,
    /// `max_running`: the concurrency limit of its handler.
    pub max_running: Option<u32>,
    /// `strict`: check flags against the page even if no handler receives them.
    pub strict: bool,
    /// `replaces`: whether it may take the place of another entry of its name.
    pub replaces: bool,
    /// `allowed-tools`.
    pub allowed_tools: Vec<String>,
    /// `schedule`, unchanged, if both it and its time zone are valid.
    pub schedule: Option<String>,
    /// `timezone`, unchanged, if the zone exists.
    pub timezone: Option<String>,
    /// `include_in_prompt`, else `include_in_prompt_default`, else true.
    pub include_in_prompt: bool,
    /// `proactive_for_profile_ids`.
    pub proactive_for: Vec<String>,
    /// `exclude_from_prompt_profile_ids`.
    pub excluded_for: Vec<String>,
    /// `disable-model-invocation`: only people and programs use this skill; models do not see it.
    pub hidden_from_model: bool,
    /// `user-invocable`: whether people may invoke it.
    pub user_invocable: bool,
    /// `trigger_keywords`: words in a conversation that suggest this skill.
    pub triggers: Vec<String>,
    /// `license`.
    pub license: Option<String>,
    /// `compatibility`.
    pub compatibility: Option<String>,
    /// `metadata`: texts by key, as in the Agent Skills format.
    pub metadata: Vec<(String, String)>,
    /// The first line of the body's Usage section.
    pub usage: Option<String>,
    /// All of the frontmatter, unchanged; always a mapping.
    pub data: Value,
}

/// Reads fields from frontmatter, and collects diagnostics.
pub(crate) struct FieldReader<'a> {
    pub(crate) data: &'a Value,
    pub(crate) block: &'a str,
    pub(crate) diagnostics: &'a mut Vec<Diagnostic>,
}

impl FieldReader<'_> {
    /// Reads all fields; `None` if the labels cannot be read, since then nobody may see the
    /// document.
    pub(crate) fn fields(&mut self, present: bool, body: &str) -> Option<Fields> {
        // Labels first: without them nothing else may be read.
        let labels = self.labels()?;
        let (schedule, timezone) = self.schedule();
        let aliases = self.list("aliases");
        self.check_tool(&aliases);
        Some(Fields {
            present,
            labels,
            name: self
                .text("name")
                .map(|name| name.split_whitespace().collect::<Vec<_>>().join(" ")),
            domain: self.text("domain"),
            title: self.text("title"),
            description: self.bounded("description", DESCRIPTION_LENGTH, Code::DescriptionTooLong),
            handler: self.text("handler"),
            tags: self.list("tags"),
            aliases,
            requires: self.list("requires"),
            effects: self.effects(),
            timeout: self.timeout(),
            max_running: self.max_running(),
            strict: self.flag("strict").unwrap_or(false),
            replaces: self.flag("replaces").unwrap_or(true),
            allowed_tools: self.allowed_tools(),
            schedule,
            timezone,
            include_in_prompt: self
                .flag("include_in_prompt")
                .or_else(|| self.flag("include_in_prompt_default"))
                .unwrap_or(true),
            proactive_for: self.list("proactive_for_profile_ids"),
            excluded_for: self.list("exclude_from_prompt_profile_ids"),
            hidden_from_model: self.flag("disable-model-invocation").unwrap_or(false),
            user_invocable: self.flag("user-invocable").unwrap_or(true),
            triggers: self.list("trigger_keywords"),
            license: self.text("license"),
            compatibility: self.bounded(
                "compatibility",
                COMPATIBILITY_LENGTH,
                Code::CompatibilityTooLong,
            ),
            metadata: self.metadata(),
            usage: sections::usage(body).map(str::to_owned),
            data: Value::Null,
        })
    }

    fn labels(&mut self) -> Option<Vec<String>> {
        let key = "visibility_labels";
        let readable = match self.data.get(key) {
            Some(Value::List(items)) => items.iter().all(|item| item.plain().is_some()),
            Some(Value::Map(_)) => false,
            _ => true,
        };
        if readable {
            return Some(self.list(key));
        }
        let message =
            "expected a list of texts for `visibility_labels`; the document is not used, because \
             the wrong reader might see it";
        let hint = "write for example visibility_labels: [private, family]";
        let diagnostic = Diagnostic::new(Code::LabelsInvalid, Severity::Error, message).hint(hint);
        self.push(key, diagnostic);
        None
    }
}

#[cfg(test)]
mod tests;
