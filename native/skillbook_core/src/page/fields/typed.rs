//! Fields of the plain types: texts, lists, true or false, and `metadata`.

use super::place::{at_key, line_of, pair, without};
use super::FieldReader;
use crate::page::diagnostic::{apply, Code, Diagnostic, Fix, Severity};
use crate::page::frontmatter;
use crate::text::line::command_name;
use crate::value::Value;

impl FieldReader<'_> {
    /// Text that is not blank. A number or a boolean is read as text.
    pub(super) fn text(&mut self, key: &'static str) -> Option<String> {
        let value = self.data.get(key)?;
        if let Value::Str(text) = value {
            let text = text.trim();
            return (!text.is_empty()).then(|| text.to_owned());
        }
        match value.plain() {
            Some(text) => {
                let message = format!(
                    "expected text for `{key}`, got {}; read as \"{text}\"",
                    describe(value)
                );
                self.mended(key, message, Some(Value::Str(text.clone())));
                Some(text)
            }
            None => {
                self.unless_null(key, "text", value);
                None
            }
        }
    }

    /// Text with a maximum length in other readers of skills. A longer one is reported and used.
    pub(super) fn bounded(
        &mut self,
        key: &'static str,
        longest: usize,
        code: Code,
    ) -> Option<String> {
        let text = self.text(key)?;
        // A character has at least one byte, so most texts need no counting.
        let length = if text.len() > longest { text.chars().count() } else { 0 };
        if length > longest {
            let message = format!(
                "`{key}` has {length} characters; other readers of skills accept at most {longest}"
            );
            self.push(key, Diagnostic::new(code, Severity::Warning, message).hint("shorten it"));
        }
        Some(text)
    }

    pub(super) fn list(&mut self, key: &'static str) -> Vec<String> {
        match self.data.get(key) {
            None => Vec::new(),
            Some(Value::List(items)) => {
                let texts: Vec<_> = items.iter().filter_map(Value::plain).collect();
                if texts.len() < items.len() {
                    let message = format!(
                        "expected only texts in the list `{key}`; other values are left out"
                    );
                    self.mended(key, message, None);
                }
                texts
            }
            Some(value) => match value.plain() {
                Some(text) => {
                    let items = split(&text);
                    let message = format!(
                        "expected a list for `{key}`, got {}; read as [{}]",
                        describe(value),
                        items.join(", ")
                    );
                    let list = items.iter().cloned().map(Value::Str).collect();
                    self.mended(key, message, Some(Value::List(list)));
                    items
                }
                None => {
                    self.unless_null(key, "a list of texts", value);
                    Vec::new()
                }
            },
        }
    }

    /// The Agent Skills format has a single text here, so one needs no diagnostic.
    pub(super) fn allowed_tools(&mut self) -> Option<Vec<String>> {
        Some(match self.data.get("allowed-tools")? {
            Value::Str(text) => split_tools(text),
            _ => self.list("allowed-tools"),
        })
    }

    /// `metadata` has no types: applications read it from the data.
    pub(super) fn check_metadata(&mut self) {
        match self.data.get("metadata") {
            None | Some(Value::Map(_)) => {}
            Some(value) => self.unless_null("metadata", "a mapping", value),
        }
    }

    /// The name of a command in `metadata`.
    pub(super) fn exported(&self) -> Option<String> {
        let name = self.data.get("metadata")?.get("skillbook-command")?.plain()?;
        command_name(&name).is_some().then_some(name)
    }

    pub(super) fn flag(&mut self, key: &'static str) -> Option<bool> {
        let value = self.data.get(key)?;
        if let Value::Bool(flag) = value.typed() {
            return Some(*flag);
        }
        let meant = meant_flag(value);
        match meant {
            Some(flag) => {
                let message = format!(
                    "expected true or false for `{key}`, got {}; read as {flag}",
                    describe(value)
                );
                self.mended(key, message, Some(Value::Bool(flag)));
            }
            None => self.unless_null(key, "true or false", value),
        }
        meant
    }

    /// Reports a value of another type that was converted. `meant` is the value to write instead,
    /// if it loses nothing.
    pub(super) fn mended(&mut self, key: &str, message: String, meant: Option<Value>) {
        let fix = meant.and_then(|meant| self.line_fix(key, &meant));
        self.push(key, Diagnostic::new(Code::FieldMended, Severity::Warning, message).fix(fix));
    }

    /// A fix that rewrites the key's line, if the value is on that line alone and everything else
    /// then reads the same.
    pub(super) fn line_fix(&self, key: &str, meant: &Value) -> Option<Fix> {
        let start = line_of(self.block, key)?.1;
        let line = self.block[start..].split('\n').next()?;
        let bare = line.strip_suffix('\r').unwrap_or(line);
        // A comment would be lost, and `#` may also be part of the value.
        if bare.contains('#') {
            return None;
        }
        let end_of_line = if bare.len() < line.len() { "\r\n" } else { "\n" };
        let replacement = pair(key, meant, end_of_line).trim_end().to_owned();
        self.proven(key, meant, Fix { range: start..start + bare.len(), replacement })
    }

    /// A fix, if parsing the new text proves it: the field has the meant value, and no other field
    /// changes.
    pub(super) fn proven(&self, key: &str, meant: &Value, fix: Fix) -> Option<Fix> {
        let mended = apply(self.block, std::slice::from_ref(&fix));
        let read = frontmatter::parse(&mended).ok()?.data;
        (read.get(key) == Some(meant) && without(&read, key) == without(self.data, key))
            .then_some(fix)
    }

    /// Reports a value that is not used, except for a key without a value, which is not a mistake.
    pub(super) fn unless_null(&mut self, key: &str, expected: &str, value: &Value) {
        if *value != Value::Null {
            let message = format!(
                "expected {expected} for `{key}`, got {}; the field is not used",
                describe(value)
            );
            self.push(key, Diagnostic::new(Code::FieldIgnored, Severity::Warning, message));
        }
    }

    pub(super) fn push(&mut self, key: &str, diagnostic: Diagnostic) {
        // Columns have no line.
        let block = if self.columns.contains(&key) { "" } else { self.block };
        self.diagnostics.push(at_key(block, key, diagnostic));
    }
}

/// The boolean that a text or a number means.
pub(super) fn meant_flag(value: &Value) -> Option<bool> {
    match value.plain()?.to_ascii_lowercase().as_str() {
        "true" | "yes" | "on" | "1" => Some(true),
        "false" | "no" | "off" | "0" => Some(false),
        _ => None,
    }
}

pub(super) fn describe(value: &Value) -> String {
    match value {
        Value::Null => "nothing".into(),
        Value::Bool(value) => format!("the boolean {value}"),
        Value::Int(value) => format!("the number {value}"),
        Value::Float(value) => format!("the number {value}"),
        Value::Str(text) => format!("the text \"{}\"", text.chars().take(60).collect::<String>()),
        Value::List(_) => "a list".into(),
        Value::Map(_) => "a mapping".into(),
        Value::Written(scalar) => match scalar.value {
            Value::Bool(_) => format!("the boolean {}", scalar.text),
            _ => format!("the number {}", scalar.text),
        },
    }
}

/// Splits at commas if there are any, so that items may contain spaces; otherwise at white space.
pub(super) fn split(text: &str) -> Vec<String> {
    let clean = |item: &str| item.trim().to_owned();
    let items: Vec<_> = match text.contains(',') {
        true => text.split(',').map(clean).collect(),
        false => text.split_whitespace().map(clean).collect(),
    };
    items.into_iter().filter(|item| !item.is_empty()).collect()
}

/// Splits at commas and white space outside of parentheses: `Bash(git add:*) Read`.
pub(super) fn split_tools(text: &str) -> Vec<String> {
    let mut depth = 0usize;
    let between = |c: char| {
        match c {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => return depth == 0 && (c == ',' || c.is_whitespace()),
        }
        false
    };
    text.split(between).filter(|item| !item.is_empty()).map(str::to_owned).collect()
}
