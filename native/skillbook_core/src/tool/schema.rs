//! A declaration as JSON Schema, draft 2020-12. Undeclared types are left open. Properties have `_`
//! for the dashes of flags, as models write them in JSON.

use serde_json::{json, Number, Value as Json};

use super::Object;
use crate::hidden::visible;
use crate::page::declaration::{Declaration, Flag, Pattern, Type, DAYS};
use crate::schema::Schema;

/// `\d` is not in all vendors' patterns.
const DAY: &str = "[0-9]{4}-[0-9]{2}-[0-9]{2}";
/// The longest name of a property that all vendors allow.
const LONGEST_NAME: usize = 64;

/// The schema of all arguments. With `closed` other flags are rejected, unless vendors do not allow
/// the name of one.
pub(super) fn object(declaration: Option<&Declaration>, closed: bool) -> Object {
    let mut out = Object::new();
    let Some(declaration) = declaration else {
        out.insert("type".into(), "object".into());
        out.insert("properties".into(), json!({}));
        return out;
    };
    // As its author wrote it.
    if let Some(own) = own(&declaration.schema) {
        out.clone_from(own);
        out.insert("type".into(), "object".into());
        return out;
    }
    // `--help` asks for the page and belongs to every command.
    let flags = declaration.flags.iter().filter(|flag| flag.name() != "help");
    let (named, unnamed): (Vec<_>, Vec<_>) = flags.partition(|flag| is_allowed(flag.name()));
    let mut required: Vec<String> = Vec::new();
    let mut properties = Object::new();
    for flag in named {
        let name = property_name(flag.name());
        if flag.required && !required.contains(&name) {
            required.push(name.clone());
        }
        properties.insert(name, property(flag).into());
    }
    out.insert("type".into(), "object".into());
    out.insert("properties".into(), properties.into());
    if !required.is_empty() {
        out.insert("required".into(), required.into());
    }
    if closed || !unnamed.is_empty() {
        out.insert("additionalProperties".into(), (!unnamed.is_empty()).into());
    }
    out
}

/// The properties of a schema whose names vendors do not allow, with the names of their flags.
pub(super) fn renamed(declaration: &Declaration) -> Vec<(String, String)> {
    if own(&declaration.schema).is_none() {
        return Vec::new();
    }
    let renamed = |flag: &Flag| {
        let property = flag.property.as_ref().filter(|property| !is_allowed(property))?;
        let name = flag.names.iter().find(|name| is_allowed(name))?;
        Some((property.clone(), name.clone()))
    };
    declaration.flags.iter().filter_map(renamed).collect()
}

/// The name of the property for a flag.
pub(super) fn property_name(flag: &str) -> String {
    flag.replace('-', "_")
}

fn is_allowed(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte);
    (1..=LONGEST_NAME).contains(&name.len()) && name.bytes().all(is_plain)
}

fn own(schema: &Option<Schema>) -> Option<&Object> {
    schema.as_ref()?.as_json().as_object()
}

fn property(flag: &Flag) -> Object {
    let mut out = match own(&flag.schema) {
        Some(schema) => moved(schema, &format!("#/properties/{}", property_name(flag.name()))),
        None if flag.several => {
            let mut list = typed("array");
            list.insert("items".into(), item(flag).into());
            list
        }
        None => one(flag),
    };
    if !flag.description.is_empty() {
        out.insert("description".into(), visible(&flag.description).into());
    }
    if own(&flag.schema).is_none() {
        if let Some(default) = default(flag) {
            out.insert("default".into(), default);
        }
    }
    out
}

/// The schema with the references of one that is no longer the root. It was read with a limit of
/// nesting, so the recursion is limited too.
fn moved(schema: &Object, place: &str) -> Object {
    let member = |(key, value): (&String, &Json)| {
        let value = match value {
            Json::String(text) if key == "$ref" => match text.strip_prefix('#') {
                Some(pointer) if pointer.is_empty() || pointer.starts_with('/') => {
                    format!("{place}{pointer}").into()
                }
                _ => value.clone(),
            },
            value => moved_value(value, place),
        };
        (key.clone(), value)
    };
    schema.iter().map(member).collect()
}

fn moved_value(value: &Json, place: &str) -> Json {
    match value {
        Json::Object(members) => moved(members, place).into(),
        Json::Array(items) => items.iter().map(|item| moved_value(item, place)).collect(),
        value => value.clone(),
    }
}

fn typed(name: &str) -> Object {
    Object::from_iter([("type".to_owned(), name.into())])
}

/// One value, which may be a list if the page says nothing else.
fn one(flag: &Flag) -> Object {
    let types: &[&str] = match flag.kind {
        Type::Switch => return typed("boolean"),
        Type::Value => &["string", "array"],
        Type::Unknown => &["string", "array", "boolean"],
        _ => return item(flag),
    };
    let mut out = Object::new();
    out.insert("type".into(), types.into());
    out.insert("items".into(), json!({"type": "string"}));
    out
}

/// One value of several.
fn item(flag: &Flag) -> Object {
    let mut out = typed(match flag.kind {
        Type::Integer { .. } => "integer",
        Type::Number { .. } => "number",
        _ => "string",
    });
    let mut put = |key: &str, value: Option<Json>| {
        if let Some(value) = value {
            out.insert(key.into(), value);
        }
    };
    let format = |name: &str| Some(name.into());
    match &flag.kind {
        Type::OneOf(values) => put("enum", Some(values.as_slice().into())),
        Type::Date { words: false } => put("format", format("date")),
        Type::Date { words: true } => {
            put("pattern", Some(format!("^({DAY}|{})$", DAYS.join("|")).into()));
        }
        Type::Text { max, .. } => {
            put("maxLength", max.map(Json::from));
            let pattern = flag.pattern.as_ref().map(Pattern::as_str);
            put("pattern", pattern.map(|pattern| format!("^({pattern})$").into()));
        }
        Type::Datetime => put("format", format("date-time")),
        Type::Email => put("format", format("email")),
        Type::Url => put("format", format("uri")),
        Type::Integer { min, max } => {
            put("minimum", min.map(Json::from));
            put("maximum", max.map(Json::from));
        }
        Type::Number { min, max } => {
            put("minimum", min.and_then(bound));
            put("maximum", max.and_then(bound));
        }
        Type::Unknown | Type::Value | Type::Switch | Type::Json(_) => {}
    }
    out
}

/// A bound, as an integer if it is whole, so that it is written as its author wrote it.
fn bound(number: f64) -> Option<Json> {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => Some((number as i64).into()),
        false => Number::from_f64(number).map(Json::Number),
    }
}

fn default(flag: &Flag) -> Option<Json> {
    let value = |text: &String| value(&flag.kind, text);
    match &flag.default[..] {
        [] => None,
        values if flag.several => Some(values.iter().map(value).collect()),
        [one] => Some(value(one)),
        _ => None,
    }
}

fn value(kind: &Type, text: &str) -> Json {
    let number = match kind {
        Type::Switch => return (text == "true").into(),
        Type::Integer { .. } => text.parse::<i64>().ok().map(Json::from),
        Type::Number { .. } => text.parse().ok().and_then(Number::from_f64).map(Json::Number),
        _ => None,
    };
    // A default is one of the flag's values, so a number is read.
    number.unwrap_or_else(|| text.into())
}
