//! The fields that restrict who sees a document and what it may do.
//!
//! They fail closed. A document is not used if one of them cannot be read, occurs twice or is
//! misspelt, so that a slip opens nothing. Files, records of a database and the documents of vaults
//! are all checked here.
//!
//! A key is nearly a restriction if it has the same letters and digits in another case or with
//! other separators, or differs from one by few edits: one for a short name such as `labels`, up to
//! four for the longest.

use super::place::at_key;
use super::typed::{describe, meant_flag, split, split_tools};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::page::frontmatter::{self, Document};
use crate::page::slip::{self, plain};
use crate::value::Value;

/// The labels that a reader must hold.
pub(crate) const LABELS: &str = "visibility_labels";
/// The same, under the name that the store and sources use.
pub(crate) const SHORT_LABELS: &str = "labels";
/// The profiles that may not use the document.
pub(crate) const EXCLUDED: &str = "exclude_from_prompt_profile_ids";
/// The tools that it may use.
pub(crate) const TOOLS: &str = "allowed-tools";
/// Whether models do not see it.
pub(crate) const HIDDEN_FROM_MODEL: &str = "disable-model-invocation";
/// Whether people may invoke it.
pub(crate) const USER_INVOCABLE: &str = "user-invocable";
/// Whether prompts have its text.
pub(crate) const IN_PROMPT: &str = "include_in_prompt";
/// Its value where [`IN_PROMPT`] is missing.
pub(crate) const IN_PROMPT_DEFAULT: &str = "include_in_prompt_default";

/// A field that restricts.
struct Restriction {
    name: &'static str,
    form: Form,
    /// A right line.
    example: &'static str,
    /// Its names elsewhere in Skillbook, and shortened ones.
    also: &'static [&'static str],
    /// Whether no other program has such a field. Then it is misplaced in any other mapping.
    is_ours: bool,
}

#[derive(Clone, Copy)]
enum Form {
    List,
    Tools,
    Flag,
}

const fn restriction(name: &'static str, form: Form, example: &'static str) -> Restriction {
    Restriction { name, form, example, also: &[], is_ours: false }
}

const RESTRICTIONS: [Restriction; 8] = [
    Restriction {
        also: &["visible_labels"],
        is_ours: true,
        ..restriction(LABELS, Form::List, "visibility_labels: [private, family]")
    },
    restriction(SHORT_LABELS, Form::List, "labels: [private, family]"),
    Restriction {
        also: &["exclude_from_prompt", "exclude_profile_ids", "excluded_for"],
        is_ours: true,
        ..restriction(EXCLUDED, Form::List, "exclude_from_prompt_profile_ids: [guest]")
    },
    restriction(TOOLS, Form::Tools, "allowed-tools: Read Bash(git:*)"),
    Restriction {
        also: &["hidden_from_model"],
        ..restriction(HIDDEN_FROM_MODEL, Form::Flag, "disable-model-invocation: true")
    },
    restriction(USER_INVOCABLE, Form::Flag, "user-invocable: false"),
    Restriction { is_ours: true, ..restriction(IN_PROMPT, Form::Flag, "include_in_prompt: false") },
    Restriction {
        is_ours: true,
        ..restriction(IN_PROMPT_DEFAULT, Form::Flag, "include_in_prompt_default: false")
    },
];

/// The shortest one, in bytes: [`SHORT_LABELS`] without a letter.
const MIN_KEY: usize = SHORT_LABELS.len() - 1;

/// The longest part of a key in a message, in characters.
const EXCERPT: usize = 60;

/// The end of every message.
const CLOSED: &str =
    "the document is not used, because it might be open to more than its author meant";

/// The name of the restriction that a key is or nearly is.
///
/// ```
/// use skillbook_core::page::fields::restrictions::meant;
///
/// assert_eq!(meant("Visibility-Label"), Some("visibility_labels"));
/// assert_eq!(meant("labels"), Some("labels"));
/// assert_eq!(meant("tags"), None);
/// ```
pub fn meant(key: &str) -> Option<&'static str> {
    nearest(key).map(|found| found.name)
}

fn nearest(key: &str) -> Option<&'static Restriction> {
    if let Some(exact) = RESTRICTIONS.iter().find(|restriction| restriction.name == key) {
        return Some(exact);
    }
    if key.len() < MIN_KEY {
        return None;
    }
    let plain = plain(key)?;
    let edits = |restriction: &&Restriction| {
        let names = std::iter::once(&restriction.name).chain(restriction.also);
        names.filter_map(|name| edits(&plain, name)).min()
    };
    RESTRICTIONS.iter().filter(|it| edits(it).is_some()).min_by_key(edits)
}

/// The edits between a key and a name, if they are few for the length of the name.
fn edits(key: &str, name: &str) -> Option<usize> {
    let length = name.bytes().filter(u8::is_ascii_alphanumeric).count();
    slip::edits(key, name, 1 + length / 8)
}

/// The errors in the restrictions of a document. With at least one, nobody may see it.
///
/// Frontmatter that cannot be read has one if a line of it looks like a restriction. `text` is the
/// whole document.
pub(crate) fn errors(text: &str, own: Result<&Document, &frontmatter::Error>) -> Vec<Diagnostic> {
    let Ok(own) = own else {
        let head = frontmatter::head(text);
        return mentions(head).next().map(Mention::unreadable).into_iter().collect();
    };
    let (block, Value::Map(pairs)) = (&text[..own.body_offset], &own.data) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for (key, value) in pairs {
        if let Some(restriction) = nearest(key) {
            let error = restriction.error(key, value, &own.repeated);
            found.extend(error.map(|error| at_key(block, key, error)));
        }
    }
    found.extend(misplaced(block, pairs));
    if own.diagnostics.iter().any(|found| found.code == Code::FrontmatterRepaired) {
        found.extend(swallowed(block, &own.data));
    }
    found
}

/// An error of [`errors`] as one line, for a text that is refused.
pub(crate) fn reason(error: &Diagnostic) -> String {
    let line = error.line.map(|line| format!("line {line}: ")).unwrap_or_default();
    let hint = error.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = error.message.trim_end_matches(CLOSED).trim_end_matches("; ");
    format!("{line}{message}{hint}")
}

impl Restriction {
    fn error(&self, key: &str, value: &Value, repeated: &[String]) -> Option<Diagnostic> {
        let (name, example) = (self.name, self.example);
        if key != name {
            let got = excerpt(key);
            return Some(
                self.diagnostic(format!("expected `{name}`, got `{got}`"))
                    .hint(format!("write for example {example}")),
            );
        }
        if repeated.iter().any(|twice| twice == key) {
            let message = format!("expected `{name}` once, got it more than once");
            return Some(self.diagnostic(message).hint("keep one of them"));
        }
        if self.form.reads(value) {
            return None;
        }
        let (expected, none) = match self.form {
            Form::List => ("a list of texts", ", or an empty list [] for none"),
            Form::Tools => ("tools, as a text or a list", ", or an empty list [] for none"),
            Form::Flag => ("true or false", ""),
        };
        let got = match value.typed() {
            Value::List(_) => "a list with other values".to_owned(),
            _ => describe(value),
        };
        Some(
            self.diagnostic(format!("expected {expected} for `{name}`, got {got}"))
                .hint(format!("write for example {example}{none}")),
        )
    }

    fn diagnostic(&self, message: String) -> Diagnostic {
        let code = match self.name {
            LABELS | SHORT_LABELS => Code::LabelsInvalid,
            _ => Code::RestrictionInvalid,
        };
        Diagnostic::new(code, Severity::Error, format!("{message}; {CLOSED}"))
    }
}

impl Form {
    /// Whether a value of this form can be read without leaving anything out.
    fn reads(self, value: &Value) -> bool {
        match (self, value.typed()) {
            (Form::Flag, Value::Bool(_)) => true,
            (Form::Flag, _) => meant_flag(value).is_some(),
            (_, Value::List(items)) => items.iter().all(|item| item.plain().is_some()),
            (Form::List, _) => value.plain().is_some_and(|text| !split(&text).is_empty()),
            (Form::Tools, _) => value.plain().is_some_and(|text| !split_tools(&text).is_empty()),
        }
    }
}

/// The error for a restriction in another mapping, such as `metadata`, where it has no effect.
fn misplaced(block: &str, pairs: &[(String, Value)]) -> Option<Diagnostic> {
    let inner = |value| matches!(value, &Value::List(_) | &Value::Map(_));
    for (top, value) in pairs.iter().filter(|(_, value)| inner(value)) {
        // A merge key is not applied, so the fields below it are lost.
        let merges = top == "<<";
        for key in keys(value) {
            let found = nearest(key).filter(|found| {
                let named = || plain(key).is_some_and(|key| edits(&key, found.name).is_some());
                merges || found.is_ours && named()
            });
            if let Some(found) = found {
                let message = format!(
                    "expected `{}` at the top of the frontmatter, got it in `{}`",
                    found.name,
                    excerpt(top)
                );
                let hint = format!(
                    "write it on a line of its own, without indentation: {}",
                    found.example
                );
                return Some(at_key(block, top, found.diagnostic(message).hint(hint)));
            }
        }
    }
    None
}

/// The keys of all mappings in a value.
fn keys(value: &Value) -> Vec<&str> {
    let (mut open, mut keys) = (vec![value], Vec::new());
    while let Some(value) = open.pop() {
        match value {
            Value::List(items) => open.extend(items),
            Value::Map(pairs) => {
                keys.extend(pairs.iter().map(|(key, _)| key.as_str()));
                open.extend(pairs.iter().map(|(_, value)| value));
            }
            _ => {}
        }
    }
    keys
}

/// The error for a line that looks like a restriction and became a part of a text when the block
/// was repaired.
fn swallowed(block: &str, data: &Value) -> Option<Diagnostic> {
    let read = keys(data);
    let lost = mentions(block).find(|mention| !read.contains(&mention.key))?;
    let name = lost.restriction.name;
    let message = format!("expected `{name}` as a field, got it inside of another value");
    let hint =
        format!("write it on a line of its own, without indentation: {}", lost.restriction.example);
    Some(lost.restriction.diagnostic(message).hint(hint).at(lost.line, 1))
}

/// A line that looks like a restriction.
struct Mention<'a> {
    restriction: &'static Restriction,
    key: &'a str,
    /// From 1.
    line: u32,
}

impl Mention<'_> {
    fn unreadable(self) -> Diagnostic {
        let message = format!(
            "expected frontmatter that can be read, since a line of it looks like `{}`",
            self.restriction.name
        );
        let hint = "mend the frontmatter";
        self.restriction.diagnostic(message).hint(hint).at(self.line, 1)
    }
}

fn mentions(text: &str) -> impl Iterator<Item = Mention<'_>> {
    (1..).zip(text.lines()).filter_map(|(line, text)| {
        let (restriction, key) = mention(text)?;
        Some(Mention { restriction, key, line })
    })
}

/// The restriction that a line looks like, and its key in the line.
fn mention(line: &str) -> Option<(&'static Restriction, &str)> {
    let mark = |c: char| c.is_whitespace() || matches!(c, '-' | '?' | '"' | '\'' | '{' | ',');
    if let Some((key, _)) = line.split_once(':') {
        let key = key.trim_matches(mark);
        if let Some(restriction) = nearest(key) {
            return Some((restriction, key));
        }
    }
    // Anywhere in the line, as in a mapping in braces, or before the colon is written.
    let fits = |it: &&Restriction| it.is_ours && it.name.len() <= line.len();
    let mut ours = RESTRICTIONS.iter().filter(fits).peekable();
    ours.peek()?;
    let lower = line.to_ascii_lowercase().replace('-', "_");
    let found = ours.find(|restriction| lower.contains(restriction.name))?;
    Some((found, found.name))
}

/// Whether a line looks like a restriction.
pub(crate) fn is_mentioned(line: &str) -> bool {
    mention(line).is_some()
}

/// A key in a message.
fn excerpt(key: &str) -> String {
    key.chars().take(EXCERPT).collect()
}
