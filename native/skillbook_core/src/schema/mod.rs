//! JSON Schema, draft 2020-12: the arguments of a command whose types are richer than those of
//! flags, such as the tools of MCP servers.
//!
//! A schema is kept as it was written, and goes to models unchanged. Its values are checked here,
//! not by a crate: schemas of strangers can ask for time without limit (a tree of references that
//! doubles at each level), so a check counts its steps; and its errors are for models. Nothing is
//! loaded from elsewhere. A reference to a document that is not here holds for every value, and so
//! does a pattern with a look-ahead or another thing that is not understood. The words of drafts 4
//! to 7 that are still written (`definitions`, a list of `items`, `dependencies`) have their
//! meaning.
//!
//! ```
//! use serde_json::json;
//! use skillbook_core::schema::Schema;
//!
//! let schema = Schema::new(json!({
//!     "type": "object",
//!     "properties": {"people": {"type": "array", "items": {"$ref": "#/$defs/person"}}},
//!     "$defs": {"person": {"type": "object", "required": ["name"]}},
//! })).unwrap();
//! assert_eq!(schema.check(&json!({"people": [{"name": "Ann"}]})), Ok(()));
//! let mistakes = schema.check(&json!({"people": [{"age": 7}]})).unwrap_err();
//! assert_eq!(mistakes[0].to_string(), "people[0].name is missing");
//! ```

mod arguments;
mod check;
mod index;
mod shape;
mod words;

use std::fmt;
use std::sync::Arc;

use serde_json::Value as Json;

use crate::value::Value;
use check::Checker;
use index::Index;

pub use arguments::{arguments, value, Given};
pub(crate) use shape::{Reader, MOST_PROPERTIES};

/// The limits of a schema: bytes of its text, and nested values.
const LONGEST: usize = 256 * 1024;
const DEEPEST: usize = 64;
/// The steps of one check. A step is a schema that meets a value, or a few bytes of a value that is
/// compared.
const STEPS: u32 = 500_000;
/// The nested schemas of one check, and the stack that they need.
const NESTED: usize = 2_000;
const STACK: usize = 32 * 1024 * 1024;
/// The mistakes that one check reports.
const MISTAKES: usize = 5;

/// A schema.
#[derive(Debug, Clone, PartialEq)]
pub struct Schema {
    root: Arc<Json>,
}

/// A place where a value does not fit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The place of the value, such as `people[0].name`; empty for the whole value.
    pub path: String,
    /// The mistake.
    pub wrong: Wrong,
}

/// The kind of a mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wrong {
    /// A required key is missing.
    Missing,
    /// A key is not one of these, which are all.
    Unknown(Vec<String>),
    /// Another value was expected.
    Value {
        /// A description of valid values.
        expected: String,
        /// The value, shortened.
        got: String,
    },
    /// A value of another type, or of none of the schema's forms.
    Form {
        /// A description of the types and forms.
        expected: String,
        /// The value, shortened.
        got: String,
    },
    /// A value is needed, and none is given.
    NoValue,
    /// The value could not be checked, because the schema asks for too many steps.
    Costly,
}

impl fmt::Display for Mistake {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = if self.path.is_empty() { "it" } else { &self.path };
        match &self.wrong {
            Wrong::Missing => write!(out, "{path} is missing"),
            Wrong::Unknown(known) if known.is_empty() => write!(out, "{path} is unknown"),
            Wrong::Unknown(known) => write!(out, "{path} is unknown; known: {}", known.join(", ")),
            Wrong::Value { expected, got } | Wrong::Form { expected, got } => {
                write!(out, "{path} must be {expected}, got {got}")
            }
            Wrong::NoValue => write!(out, "{path} needs a value"),
            Wrong::Costly => write!(out, "{path} takes too long to check"),
        }
    }
}

impl Schema {
    /// A schema within the limits.
    pub fn new(root: Json) -> Result<Schema, String> {
        if !matches!(root, Json::Object(_) | Json::Bool(_)) {
            return Err(format!("expected an object, got {}", words::excerpt(&root)));
        }
        if depth(&root) > DEEPEST {
            return Err(format!("expected values that are nested at most {DEEPEST} deep"));
        }
        if root.to_string().len() > LONGEST {
            return Err(format!("expected at most {LONGEST} bytes"));
        }
        if let Some(fault) = index::fault(&root) {
            return Err(fault);
        }
        Ok(Schema { root: Arc::new(root) })
    }

    /// A schema that [`Schema::new`] has made before, without another look at its limits.
    pub fn known(root: Json) -> Schema {
        Schema { root: Arc::new(root) }
    }

    /// The schema in a field of frontmatter: a mapping, or JSON in a text.
    pub(crate) fn of_field(field: &Value) -> Result<Schema, String> {
        match field {
            Value::Str(text) => {
                let value = serde_json::from_str(text);
                value.map_err(|error| format!("expected JSON: {error}")).and_then(Schema::new)
            }
            field => {
                let schema = Schema::new(json(field))?;
                index::unknown_type(&schema.root).map_or(Ok(schema), Err)
            }
        }
    }

    /// As it was written.
    pub fn as_json(&self) -> &Json {
        &self.root
    }

    /// Calls a function with a reader of the schema.
    pub(crate) fn read<T>(&self, read: impl FnOnce(&Reader, &Json) -> T) -> T {
        let index = Index::new(&self.root, &[]);
        read(&Reader::new(&index), &self.root)
    }

    /// Checks a value. An error has one to five mistakes.
    pub fn check(&self, value: &Json) -> Result<(), Vec<Mistake>> {
        with_stack(|| {
            let index = Index::new(&self.root, &[]);
            Checker::new(&index).mistakes(&self.root, value)
        })
    }
}

/// Runs a check on a stack that is large enough for the nested schemas of strangers.
fn with_stack<T: Send>(run: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().stack_size(STACK).spawn_scoped(scope, run);
        match thread.map(std::thread::ScopedJoinHandle::join) {
            Ok(Ok(result)) => result,
            Ok(Err(panic)) => std::panic::resume_unwind(panic),
            Err(error) => panic!("no thread for a check: {error}"),
        }
    })
}

/// A value of frontmatter as JSON.
pub(crate) fn json(value: &Value) -> Json {
    match value.typed() {
        Value::Bool(value) => Json::Bool(*value),
        Value::Int(value) => Json::from(*value),
        Value::Float(value) => Json::from(*value),
        Value::Str(text) => Json::from(text.as_str()),
        Value::List(items) => Json::Array(items.iter().map(json).collect()),
        Value::Map(pairs) => {
            Json::Object(pairs.iter().map(|(key, value)| (key.clone(), json(value))).collect())
        }
        Value::Null | Value::Written(_) => Json::Null,
    }
}

/// How deep values are nested. `serde_json` and frontmatter limit what is read.
fn depth(value: &Json) -> usize {
    let mut deepest = 0;
    let mut open = vec![(value, 1)];
    while let Some((value, level)) = open.pop() {
        deepest = deepest.max(level);
        match value {
            Json::Array(items) => open.extend(items.iter().map(|item| (item, level + 1))),
            Json::Object(members) => open.extend(members.values().map(|item| (item, level + 1))),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests;
