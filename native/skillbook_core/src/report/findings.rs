//! Diagnostics, as `lint` and `list --diagnostics` print them.

use std::collections::HashMap;

use serde_json::{json, Value};

use super::{relative, sarif, Printed, Style, Terminal};
use crate::excerpt::at_column;
use crate::hidden::line;
use crate::page::diagnostic::{Diagnostic, Severity};

/// The format of the findings of lint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Format {
    /// Lines with excerpts, for people.
    #[default]
    Text,
    /// An array of objects.
    Json,
    /// A log in the Static Analysis Results Interchange Format.
    Sarif,
    /// Workflow commands of GitHub Actions, which shows them beside the lines of a change.
    Github,
}

impl Format {
    /// All formats.
    pub const ALL: [Format; 4] = [Format::Text, Format::Json, Format::Sarif, Format::Github];

    /// `text`, `json`, `sarif` or `github`.
    pub fn as_str(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Sarif => "sarif",
            Format::Github => "github",
        }
    }
}

/// The findings of lint, sorted by path. Paths below `folder`, the current one, are written
/// relative to it. `read` returns the bytes of a file, if it is a document.
pub fn lint(
    diagnostics: &[Diagnostic],
    folder: &str,
    format: Format,
    terminal: Terminal,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> Printed {
    let printed = match format {
        // Without findings there is nothing to show beside a line.
        Format::Github if diagnostics.is_empty() => Printed::default(),
        Format::Github => {
            let lines: Vec<_> = diagnostics.iter().map(|found| command(found, folder)).collect();
            Printed::text(lines.join("\n"))
        }
        Format::Text if diagnostics.is_empty() => Printed::text("No problems found.".into()),
        Format::Text => Printed::text(text(diagnostics, folder, terminal, read)),
        Format::Json => {
            let relative = |found: &Diagnostic| {
                let path = found.path.as_deref().map(|path| relative(path, folder).to_owned());
                fields(&Diagnostic { path, ..found.clone() })
            };
            Printed::text(super::json(diagnostics.iter().map(relative).collect()))
        }
        Format::Sarif => Printed::text(super::json(sarif::log(diagnostics, folder, read))),
    };
    let failed = diagnostics.iter().any(|found| found.severity != Severity::Info);
    Printed { failed, ..printed }
}

/// The diagnostics of loading.
pub fn loading(diagnostics: &[Diagnostic], as_json: bool) -> Printed {
    let printed = Printed::text(match as_json {
        true => super::json(diagnostics.iter().map(fields).collect()),
        false if diagnostics.is_empty() => "No problems found.".to_owned(),
        false => diagnostics.iter().map(Diagnostic::to_string).collect::<Vec<_>>().join("\n"),
    });
    let failed = diagnostics.iter().any(|found| found.severity == Severity::Error);
    Printed { failed, ..printed }
}

fn fields(found: &Diagnostic) -> Value {
    let fix = found.fix.as_ref().map(|fix| {
        json!({
            "offset": fix.range.start,
            "length": fix.range.len(),
            "text": fix.replacement,
        })
    });
    json!({
        "code": found.code.as_str(),
        "severity": found.severity.as_str(),
        "path": found.path,
        "line": found.line,
        "column": found.column,
        "message": found.message,
        "hint": found.hint,
        "fix": fix,
    })
}

/// A finding as `::error file=…,line=…,col=…,title=…::message`. In values `%` and line ends are
/// escaped, and in properties also `:` and `,`.
fn command(found: &Diagnostic, folder: &str) -> String {
    let value = |text: &str| {
        let text = line(text);
        text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
    };
    let property = |text: &str| value(text).replace(':', "%3A").replace(',', "%2C");
    let level = match found.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Info => "notice",
    };
    let path = found.path.as_deref().map(|path| property(relative(path, folder)));
    let number = |number: Option<u32>| number.map(|number| number.to_string());
    let properties = [
        ("file", path),
        ("line", number(found.line)),
        ("col", number(found.column)),
        ("title", Some(property(found.code.as_str()))),
    ];
    let properties: Vec<_> = properties
        .into_iter()
        .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
        .collect();
    let hint = found.hint.as_ref().map(|hint| format!("; {hint}")).unwrap_or_default();
    let message = value(&format!("{}{hint}", found.message));
    format!("::{level} {}::{message}", properties.join(","))
}

fn text(
    diagnostics: &[Diagnostic],
    folder: &str,
    terminal: Terminal,
    read: impl Fn(&str) -> Option<Vec<u8>>,
) -> String {
    let mut files: HashMap<&str, Vec<u8>> = HashMap::new();
    let mut text = String::new();
    for found in diagnostics {
        let path = found.path.as_deref().unwrap_or_default();
        let bytes = files.entry(path).or_insert_with(|| read(path).unwrap_or_default());
        text += &finding(found, folder, bytes, terminal);
        text += "\n\n";
    }
    text + &summary(diagnostics)
}

fn finding(found: &Diagnostic, folder: &str, bytes: &[u8], terminal: Terminal) -> String {
    let path = found.path.as_deref().map(|path| relative(path, folder).to_owned());
    let numbers = [found.line, found.column].into_iter().flatten().map(|number| number.to_string());
    let place = path.into_iter().chain(numbers).collect::<Vec<_>>().join(":");
    let color = match found.severity {
        Severity::Error => Style::Red,
        Severity::Warning => Style::Yellow,
        Severity::Info => Style::Cyan,
    };
    let mut text = format!(
        "{}: {}: {} [{}]",
        terminal.style(Style::Bright, &line(&place)),
        terminal.style(color, found.severity.as_str()),
        line(&found.message),
        found.code.as_str()
    );
    text += &excerpt(found, bytes, terminal);
    if let Some(hint) = &found.hint {
        text += "\n  hint: ";
        text += &line(hint);
    }
    if found.fix.is_some() {
        text += "\n  --fix corrects this";
    }
    text
}

/// The line, with a caret under the column, if there is one.
fn excerpt(found: &Diagnostic, bytes: &[u8], terminal: Terminal) -> String {
    let Some(number) = found.line.filter(|line| *line > 0) else { return String::new() };
    // Without a file there is no line, not an empty one.
    let lines = (!bytes.is_empty()).then(|| bytes.split(|byte| *byte == b'\n'));
    let line = lines.and_then(|mut lines| lines.nth(number as usize - 1));
    let Some(Ok(line)) = line.map(std::str::from_utf8) else { return String::new() };
    let excerpt = at_column(line, found.column.unwrap_or(1) as usize);
    let start = format!("{number} | ");
    let mut text = format!("\n  {}{}", terminal.style(Style::Faint, &start), excerpt.text);
    if found.column.is_some() {
        text += &format!("\n  {:1$} | {2}", "", number.to_string().len(), excerpt.caret);
    }
    text
}

fn summary(diagnostics: &[Diagnostic]) -> String {
    let severities = [Severity::Error, Severity::Warning, Severity::Info];
    let counts = severities.into_iter().filter_map(|severity| {
        let word = severity.as_str();
        match diagnostics.iter().filter(|found| found.severity == severity).count() {
            0 => None,
            1 => Some(format!("1 {word}")),
            count => Some(format!("{count} {word}s")),
        }
    });
    counts.collect::<Vec<_>>().join(", ")
}
