//! Keys that are nearly fields: `shedule`, `time_zone`, `cron`. They have no effect, so a page with
//! one does less than its author wrote.
//!
//! Keys that another program reads, and words that are no slip, belong to their author and are
//! never reported. Restrictions and `approval` have stricter rules of their own.

use super::place::{at_key, line_of, without};
use super::restrictions;
use super::run::means_approval;
use super::FieldReader;
use crate::page::diagnostic::{apply, Code, Diagnostic, Fix, Severity};
use crate::page::frontmatter;
use crate::page::slip::{nearest, plain};
use crate::value::Value;

/// The fields that a slip can mean.
const FIELDS: [&str; 34] = [
    "aliases",
    "author",
    "compatibility",
    "connection",
    "description",
    "domain",
    "effects",
    "examples",
    "flags",
    "handler",
    "idempotent",
    "input_schema",
    "job",
    "license",
    "max_running",
    "metadata",
    "name",
    "on_error",
    "output",
    "proactive_for_profile_ids",
    "quick_reference",
    "replaces",
    "requires",
    "run_as",
    "schedule",
    "strict",
    "tags",
    "timeout",
    "timezone",
    "title",
    "tool",
    "trigger_keywords",
    "trust",
    "version",
];

/// Other words for fields, in letters and digits.
const SYNONYMS: [(&str, &str); 7] = [
    ("cron", "schedule"),
    ("desc", "description"),
    ("dependson", "requires"),
    ("sideeffects", "effects"),
    ("timelimit", "timeout"),
    ("tz", "timezone"),
    ("triggerwords", "trigger_keywords"),
];

/// Keys near a field that are none: those of other programs, and words of their own.
#[rustfmt::skip]
const OTHERS: [&str; 59] = [
    // Of Claude Code, OpenHands and GitHub.
    "effort", "outputs", "tools", "trigger", "triggers",
    "actor", "affects", "anchor", "auth", "authored", "authors", "auto", "bool", "collection",
    "conception", "connector", "contention", "convention", "cool", "correction", "descriptions",
    "descriptor", "domains", "expects", "fame", "flaws", "game", "handle", "handles", "jobs",
    "licensed", "licenses", "names", "outfit", "outlet", "outset", "pool", "relates", "replies",
    "required", "runat", "runs", "rust", "same", "scheduled", "scheduler", "script", "street",
    "string", "strip", "struct", "tabs", "timeline", "timeouts", "titled", "titles", "versioned",
    "versions", "vision",
];

/// The field that a key means without being it.
///
/// ```
/// use skillbook_core::page::fields::misspelt::meant;
///
/// assert_eq!(meant("shedule"), Some("schedule"));
/// assert_eq!(meant("schedule"), None);
/// assert_eq!(meant("argument-hint"), None);
/// ```
pub fn meant(key: &str) -> Option<&'static str> {
    if FIELDS.contains(&key) || key.len() < 2 {
        return None;
    }
    let word = plain(key)?;
    if OTHERS.contains(&word.as_str()) || is_of_another(key) {
        return None;
    }
    if let Some((_, field)) = SYNONYMS.iter().find(|(other, _)| *other == word) {
        return Some(field);
    }
    let found = nearest(&word, &FIELDS)?;
    let is_part = |part: &str| part.eq_ignore_ascii_case(found);
    // `description_de` and `x-version` are fields of their author.
    let mut parts = key.split(['_', '-', '.']);
    let has_more = parts.clone().count() > found.split('_').count();
    (!(has_more && parts.any(is_part))).then_some(found)
}

/// Whether a key is checked as a restriction or an approval.
fn is_of_another(key: &str) -> bool {
    restrictions::meant(key).is_some() || means_approval(key)
}

impl FieldReader<'_> {
    /// Reports the keys that mean a field which the document does not have.
    pub(super) fn misspelt(&mut self) {
        let Value::Map(pairs) = self.data else { return };
        let meant = |key: &str| {
            // Looking for what a key means takes longer than reading all fields.
            let found = Some(key).filter(|key| !self.columns.contains(key)).and_then(meant)?;
            self.data.get(found).is_none().then_some(found)
        };
        let found: Vec<_> = pairs.iter().filter_map(|(key, _)| Some((key, meant(key)?))).collect();
        for (key, field) in &found {
            let message = format!("expected the field `{field}`, got `{key}`, which has no effect");
            // Two keys for one field: only their author knows which one is right.
            let alone = found.iter().filter(|(_, other)| other == field).count() == 1;
            let fix = if alone { self.renamed(key, field) } else { None };
            let diagnostic = Diagnostic::new(Code::FieldMisspelt, Severity::Warning, message)
                .hint(format!("write {field}, or another name if it is a field of your own"))
                .fix(fix);
            self.diagnostics.push(at_key(self.block, key, diagnostic));
        }
    }

    /// A fix that renames a key at the start of its line, if parsing the new text proves that the
    /// field has its value and nothing else changes.
    fn renamed(&self, key: &str, field: &str) -> Option<Fix> {
        let start = line_of(self.block, key)?.1;
        let fix = Fix { range: start..start + key.len(), replacement: field.to_owned() };
        let mended = apply(self.block, std::slice::from_ref(&fix));
        let read = frontmatter::parse(&mended).ok()?.data;
        (read.get(field) == self.data.get(key) && without(&read, field) == without(self.data, key))
            .then_some(fix)
    }
}
