//! `examples`: requests that should lead to an entry, and those that should not. They are tests of
//! its description, so neither search nor prompts read them.
//!
//! ```yaml
//! examples:
//!   - Is it going to rain tomorrow?
//!   - not: Write a poem about rain
//! ```

use super::place::{at_item, line_of};
use super::typed::describe;
use super::FieldReader;
use crate::page::diagnostic::{Code, Diagnostic, Fix, Severity};
use crate::page::frontmatter;
use crate::value::Value;

/// The name of the field.
pub(crate) const EXAMPLES: &str = "examples";
/// The key of a request that should not lead to the entry.
const NOT: &str = "not";

/// The maximum number of examples of an entry.
pub const MAX_EXAMPLES: usize = 50;
/// The maximum length of an example in characters.
pub const MAX_EXAMPLE: usize = 500;

const HINT: &str = "write for example - Is it going to rain tomorrow?";
const NOT_HINT: &str = "write for example - not: Write a poem about rain";

/// A request of `examples`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Example {
    /// The request.
    pub text: String,
    /// Whether it should not lead to the entry.
    pub not: bool,
}

impl FieldReader<'_> {
    /// The requests of `examples`, in their order.
    pub(super) fn examples(&mut self) -> Vec<Example> {
        let mut examples = Vec::new();
        let mut add = |text: String, not| examples.push(Example { text, not });
        match self.data.get(EXAMPLES) {
            None => return Vec::new(),
            Some(Value::List(items)) => {
                for (at, item) in items.iter().enumerate() {
                    match item.plain() {
                        Some(text) => add(text, false),
                        None => self.example_of(items, at, &mut add),
                    }
                }
            }
            Some(map @ Value::Map(pairs)) => match pairs.as_slice() {
                [(key, value)] if key == NOT && !texts(value).is_empty() => {
                    let texts = texts(value);
                    let message = format!(
                        "expected a list for `examples`, got a mapping; read as {} after `not`",
                        requests(texts.len())
                    );
                    let hint = "write `- not:` before each, indented below `examples:`";
                    self.push(EXAMPLES, mended(message).hint(hint));
                    texts.into_iter().for_each(|text| add(text, true));
                }
                _ => self.unless_null(EXAMPLES, "a list of requests", map),
            },
            Some(value) => match value.plain() {
                Some(text) => {
                    let message = format!(
                        "expected a list for `examples`, got {}; read as a list of one request",
                        describe(value)
                    );
                    let meant = Value::List(vec![Value::Str(text.clone())]);
                    let fix = self.line_fix(EXAMPLES, &meant);
                    self.push(EXAMPLES, mended(message).fix(fix));
                    add(text, false);
                }
                None => self.unless_null(EXAMPLES, "a list of requests", value),
            },
        }
        self.within_limits(examples)
    }

    /// Reads an item that is not a text.
    fn example_of(&mut self, items: &[Value], at: usize, add: &mut impl FnMut(String, bool)) {
        let item = &items[at];
        let pair = match item {
            Value::Map(pairs) => pairs.as_slice(),
            _ => &[],
        };
        match pair {
            [(key, value)] if key.eq_ignore_ascii_case(NOT) => {
                let texts = texts(value);
                if texts.is_empty() {
                    let got = describe(value);
                    let message = format!(
                        "expected a request after `not` in `examples`, got {got}; it is left out"
                    );
                    self.push_example(key, ignored(message).hint(NOT_HINT));
                } else if matches!(value, Value::List(_)) {
                    let message = format!(
                        "expected one request after each `not` in `examples`, got a list; read as \
                         {}",
                        requests(texts.len())
                    );
                    self.push_example(key, mended(message).hint("write `- not:` before each"));
                } else if key != NOT {
                    let message = format!("expected `not` in `examples`, got `{key}`");
                    self.push_example(key, mended(message).hint(NOT_HINT));
                }
                texts.into_iter().for_each(|text| add(text, true));
            }
            // A request with a colon and a space is a mapping in YAML.
            [(key, value)] if value.plain().is_some() || *value == Value::Null => {
                let rest = value.plain().map(|value| format!(" {value}")).unwrap_or_default();
                let text = format!("{key}:{rest}");
                let message = format!(
                    "expected a request in `examples`, got a mapping; read as \"{}\"",
                    text.chars().take(60).collect::<String>()
                );
                let fix = self.quoted(items, at, &text);
                self.push_example(key, mended(message).hint("put it in quotes").fix(fix));
                add(text, false);
            }
            _ => {
                let message = format!(
                    "expected requests in the list `examples`, got {}; it is left out",
                    describe(item)
                );
                self.push(EXAMPLES, ignored(message).hint(HINT));
            }
        }
    }

    /// A fix that puts an item with a line of its own in quotes, if everything else then reads the
    /// same.
    fn quoted(&self, items: &[Value], at: usize, text: &str) -> Option<Fix> {
        let mut start = line_of(self.block, EXAMPLES)?.1;
        for line in self.block[start..].split_inclusive('\n') {
            let bare = line.trim();
            if bare.strip_prefix("- ").is_some_and(|own| own.trim_start() == text) {
                let written = frontmatter::write(&[("x".into(), Value::Str(text.into()))], "");
                let quoted = written.strip_prefix("---\nx: ")?.strip_suffix("\n---\n")?;
                let item = start + line.find(text)?;
                let fix = Fix { range: item..item + text.len(), replacement: quoted.to_owned() };
                let mut meant = items.to_vec();
                meant[at] = Value::Str(text.to_owned());
                return self.proven(EXAMPLES, &Value::List(meant), fix);
            }
            start += line.len();
        }
        None
    }

    /// Leaves out what exceeds the limits.
    fn within_limits(&mut self, mut examples: Vec<Example>) -> Vec<Example> {
        examples.retain(|example| {
            // A character has at least one byte, so most texts need no counting.
            let length = match example.text.len() > MAX_EXAMPLE {
                true => example.text.chars().count(),
                false => 0,
            };
            if length > MAX_EXAMPLE {
                let message = format!(
                    "expected at most {MAX_EXAMPLE} characters in a request of `examples`, got \
                     {length}; it is left out"
                );
                self.push_example(&example.text, ignored(message).hint("shorten it"));
            }
            length <= MAX_EXAMPLE
        });
        if examples.len() > MAX_EXAMPLES {
            let message = format!(
                "expected at most {MAX_EXAMPLES} requests in `examples`, got {}; the last ones are \
                 left out",
                examples.len()
            );
            self.push(EXAMPLES, ignored(message).hint("keep the most different ones"));
            examples.truncate(MAX_EXAMPLES);
        }
        examples
    }

    /// Adds a diagnostic at the line of an item that begins with this text.
    fn push_example(&mut self, text: &str, diagnostic: Diagnostic) {
        let block = if self.columns.contains(&EXAMPLES) { "" } else { self.block };
        self.diagnostics.push(at_item(block, EXAMPLES, text, diagnostic));
    }
}

/// The texts of a text or a list.
fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::List(items) => items.iter().filter_map(Value::plain).collect(),
        value => value.plain().into_iter().collect(),
    }
}

fn requests(count: usize) -> String {
    if count == 1 {
        "1 request".to_owned()
    } else {
        format!("{count} requests")
    }
}

fn mended(message: String) -> Diagnostic {
    Diagnostic::new(Code::FieldMended, Severity::Warning, message)
}

fn ignored(message: String) -> Diagnostic {
    Diagnostic::new(Code::FieldIgnored, Severity::Warning, message)
}
