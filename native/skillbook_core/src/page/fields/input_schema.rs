//! `input_schema`: the arguments of a command as a JSON Schema, instead of [`flags`](super::flags).
//!
//! ```yaml
//! input_schema:
//!   type: object
//!   properties:
//!     people: {type: array, items: {type: object, properties: {name: {type: string}}}}
//! ```
//!
//! As with flags, a command whose schema has a mistake does not run.

use super::flags::{CLOSED, FLAGS};
use super::place::at_key;
use super::FieldReader;
use crate::page::declaration::{schema, Given};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::schema::Schema;
use crate::value::Value;

/// The name of the field.
pub(crate) const INPUT_SCHEMA: &str = "input_schema";

impl FieldReader<'_> {
    /// The flags of the field; `None` without it.
    pub(super) fn input_schema(&mut self) -> Option<Given> {
        let Value::Map(pairs) = self.data else { return None };
        let (key, field) = pairs.iter().find(|(key, _)| is_meant(key))?;
        let read = if key != INPUT_SCHEMA {
            Err(format!("expected `{INPUT_SCHEMA}`, got `{key}`"))
        } else if self.data.get(FLAGS).is_some() {
            Err(format!("expected `{FLAGS}` or `{INPUT_SCHEMA}`, got both"))
        } else {
            Schema::of_field(field)
                .and_then(|schema| Ok((schema::flags(&schema)?, schema)))
                .map_err(|message| format!("{message} in `{INPUT_SCHEMA}`"))
        };
        Some(match read {
            Ok((flags, schema)) => Given { flags, schema: Some(schema), ..Given::default() },
            Err(message) => {
                let found = Diagnostic::new(
                    Code::FlagsInvalid,
                    Severity::Error,
                    format!("{message}{CLOSED}"),
                )
                .hint("write a JSON Schema, or `flags`");
                let found = at_key(self.block, key, found);
                Given { error: Some(message), diagnostics: vec![found], ..Given::default() }
            }
        })
    }
}

/// Whether a key is the field or nearly the field, such as `inputSchema`.
fn is_meant(key: &str) -> bool {
    let letters = key.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase);
    letters.take(INPUT_SCHEMA.len()).eq("inputschema".chars())
}
