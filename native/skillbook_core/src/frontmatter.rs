//! The frontmatter of a document: the YAML between two lines of `---` at its start.

use crate::diagnostic::{Code, Diagnostic, Severity};
use crate::value::Value;

/// A document's frontmatter and body.
#[derive(Debug)]
pub struct Document<'a> {
    /// The frontmatter; always a mapping.
    pub data: Value,
    /// The text after it.
    pub body: &'a str,
    /// Where the body begins, in bytes.
    pub body_offset: usize,
    /// Where the body begins, in lines from 1.
    pub body_line: u32,
    /// Whether there was a block at all.
    pub present: bool,
    /// What was mended.
    pub diagnostics: Vec<Diagnostic>,
}

/// Frontmatter that could not be read.
#[derive(Debug)]
pub struct Error {
    /// What was expected and what came.
    pub message: String,
}

impl Error {
    /// The same as a diagnostic.
    pub fn to_diagnostic(&self) -> Diagnostic {
        Diagnostic::new(Code::FrontmatterInvalid, Severity::Error, self.message.clone())
    }
}

/// Splits a document.
pub fn parse(text: &str) -> Result<Document<'_>, Error> {
    let start = if text.starts_with('\u{feff}') { 3 } else { 0 };
    let rest = &text[start..];
    let none = || Document {
        data: Value::Map(vec![]),
        body: rest,
        body_offset: start,
        body_line: 1,
        present: false,
        diagnostics: vec![],
    };
    let Some(first) = rest.lines().next() else { return Ok(none()) };
    if first.trim_end() != "---" {
        return Ok(none());
    }
    let mut offset = start + rest.find('\n').map_or(rest.len(), |at| at + 1);
    let yaml_start = offset;
    let mut line = 2;
    loop {
        let tail = &text[offset..];
        if tail.is_empty() {
            return Err(Error { message: "the opening `---` has no closing one".into() });
        }
        let end = tail.find('\n').map_or(tail.len(), |at| at + 1);
        line += 1;
        if tail[..end].trim_end() == "---" {
            let yaml = &text[yaml_start..offset];
            let data: serde_yaml::Value =
                serde_yaml::from_str(yaml).map_err(|error| Error { message: error.to_string() })?;
            let data = match convert(data) {
                Value::Map(pairs) => Value::Map(pairs),
                _ => Value::Map(vec![]),
            };
            let body_offset = offset + end;
            return Ok(Document {
                data,
                body: &text[body_offset..],
                body_offset,
                body_line: line,
                present: true,
                diagnostics: vec![],
            });
        }
        offset += end;
    }
}

fn convert(value: serde_yaml::Value) -> Value {
    match value {
        serde_yaml::Value::Null => Value::Null,
        serde_yaml::Value::Bool(value) => Value::Bool(value),
        serde_yaml::Value::Number(value) => {
            value.as_i64().map_or_else(|| Value::Float(value.as_f64().unwrap_or(0.0)), Value::Int)
        }
        serde_yaml::Value::String(value) => Value::Str(value),
        serde_yaml::Value::Sequence(values) => Value::List(values.into_iter().map(convert).collect()),
        serde_yaml::Value::Mapping(pairs) => Value::Map(
            pairs.into_iter().map(|(k, v)| (k.as_str().unwrap_or_default().to_string(), convert(v))).collect(),
        ),
        serde_yaml::Value::Tagged(tagged) => convert(tagged.value),
    }
}
