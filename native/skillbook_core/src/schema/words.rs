//! Values and types in messages.

use serde_json::Value as Json;

use crate::text::line::push_line;

/// The characters of a value, and the values of a list.
const SHOWN: usize = 60;
pub(super) const LISTED: usize = 12;

/// The name of a type in messages.
pub(super) fn named(name: &str) -> &str {
    match name {
        "string" => "a text",
        "integer" => "a whole number",
        "number" => "a number",
        "boolean" => "true or false",
        "array" => "a list",
        "object" => "an object",
        other => other,
    }
}

/// A value in a message.
pub(super) fn excerpt(value: &Json) -> String {
    match value {
        Json::Object(members) if !members.is_empty() => "an object".to_owned(),
        Json::Array(items) if items.len() > 3 => format!("a list of {}", items.len()),
        other => written(other),
    }
}

/// A value that a schema names.
pub(super) fn written(value: &Json) -> String {
    shortened(&value.to_string())
}

/// A text of one line.
pub(super) fn shortened(text: &str) -> String {
    let mut out = String::new();
    push_line(&mut out, &text.chars().take(SHOWN).collect::<String>());
    if text.chars().nth(SHOWN).is_some() {
        out.push_str("...");
    }
    out
}

/// A choice of values in a message.
pub(super) fn one_of(values: &[Json]) -> String {
    let mut shown: Vec<_> = values.iter().take(LISTED).map(written).collect();
    if values.len() > LISTED {
        shown.push(format!("{} more", values.len() - LISTED));
    }
    match shown.as_slice() {
        [one] => one.clone(),
        many => format!("one of {}", many.join(", ")),
    }
}
