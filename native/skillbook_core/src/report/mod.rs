//! The output of the command line about skills. The program `skillbook` and the Elixir command line
//! print the same texts, since both take them from here.
//!
//! Texts of documents are shown with [`safe`] or [`line`](crate::hidden::line), so that they can
//! neither drive the terminal nor add a line that looks like one of ours.
//!
//! ```
//! use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};
//! use skillbook_core::report::problems;
//!
//! let found = Diagnostic::new(Code::NameMissing, Severity::Warning, "no name").in_file("a.md");
//! assert_eq!(
//!     problems(&[found]).as_deref(),
//!     Some(
//!         "skillbook: 1 problem in the skills; `list --diagnostics` shows them all\n  \
//!          a.md: warning: no name [name_missing]\n"
//!     )
//! );
//! ```

pub mod codes;
pub mod entries;
pub mod examples;
pub mod findings;
pub mod hits;
pub mod ranking;
pub mod route;
mod sarif;

use std::borrow::Cow;

use serde_json::Value;

use crate::hidden;
use crate::page::diagnostic::{Diagnostic, Severity};

/// How many problems [`problems`] shows.
const MAX_PROBLEMS: usize = 3;

/// Standard output, as far as texts depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Terminal {
    /// Whether to write colors.
    pub color: bool,
    /// The width in columns; `None` if it is not a terminal.
    pub width: Option<usize>,
}

/// The result of a command that prints.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Printed {
    /// The text for standard output.
    pub output: String,
    /// A message for standard error.
    pub complaint: Option<String>,
    /// Whether the exit status is 1.
    pub failed: bool,
}

impl Printed {
    /// A text, with the line break that ends it.
    fn text(mut output: String) -> Printed {
        output.push('\n');
        Printed { output, ..Printed::default() }
    }

    fn failing(self, complaint: String) -> Printed {
        Printed { complaint: Some(complaint), failed: true, ..self }
    }
}

#[derive(Clone, Copy)]
enum Style {
    Bright,
    Faint,
    Red,
    Yellow,
    Cyan,
}

impl Terminal {
    fn style(self, style: Style, text: &str) -> Cow<'_, str> {
        let number = match style {
            Style::Bright => 1,
            Style::Faint => 2,
            Style::Red => 31,
            Style::Yellow => 33,
            Style::Cyan => 36,
        };
        match self.color {
            true => Cow::Owned(format!("\u{1B}[{number}m{text}\u{1B}[0m")),
            false => Cow::Borrowed(text),
        }
    }
}

/// A text as a terminal may show it.
pub fn safe(text: &str) -> Cow<'_, str> {
    hidden::visible(text)
}

/// The first problems among diagnostics of loading, errors first, as lines for standard error;
/// `None` if there are only infos.
pub fn problems(diagnostics: &[Diagnostic]) -> Option<String> {
    let mut problems: Vec<&Diagnostic> =
        diagnostics.iter().filter(|found| found.severity != Severity::Info).collect();
    if problems.is_empty() {
        return None;
    }
    let count = match problems.len() {
        1 => "1 problem".to_owned(),
        count => format!("{count} problems"),
    };
    let mut text =
        format!("skillbook: {count} in the skills; `list --diagnostics` shows them all\n");
    problems.sort_by_key(|found| found.severity != Severity::Error);
    for problem in problems.into_iter().take(MAX_PROBLEMS) {
        let problem = problem.to_string();
        let first = problem.split('\n').next().unwrap_or_default();
        text.extend(["  ", first, "\n"]);
    }
    Some(text)
}

/// A path as it is written, if it is below the folder relative to it.
pub fn relative<'a>(path: &'a str, folder: &str) -> &'a str {
    match path.strip_prefix(folder.trim_end_matches('/')) {
        Some("") => ".",
        Some(below) => below.strip_prefix('/').unwrap_or(path),
        None => path,
    }
}

/// JSON with sorted keys, in which hidden characters are escaped.
pub fn json(mut value: Value) -> String {
    sort(&mut value);
    hidden::json(&value.to_string()).into_owned()
}

/// Sorts the keys of objects, which reports and tools nest a few levels deep.
fn sort(value: &mut Value) {
    match value {
        Value::Array(values) => values.iter_mut().for_each(sort),
        Value::Object(fields) => {
            fields.sort_keys();
            fields.values_mut().for_each(sort);
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_below_the_folder_are_relative() {
        for (path, folder, expected) in [
            ("/a/b/c.md", "/a", "b/c.md"),
            ("/a/b", "/a/b", "."),
            ("/ab/c.md", "/a", "/ab/c.md"),
            ("/a/b.md", "/", "a/b.md"),
            ("store/x", "/a", "store/x"),
        ] {
            assert_eq!(relative(path, folder), expected);
        }
    }
}
