//! Tools in the formats of vendors. Each accepts another part of JSON Schema, and refuses a whole
//! request for one keyword that it does not know. So a format names the keywords that it keeps;
//! every other one is dropped. The command checks all values in any case.
//!
//! The schema of a page or of an MCP server may have all of JSON Schema. Vendors that read JSON
//! Schema itself get it as it is, but for the names of its properties and what no vendor allows
//! beside them: alternatives of the whole object.
//!
//! Schemas nest at most as deep as [`Schema`](crate::schema::Schema) and the bridge let them, so
//! the recursion is limited.

use std::collections::BTreeSet;

use serde_json::{json, Value as Json};

use super::{Object, Tool};

/// The vendor whose format a definition has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "names of vendors and of their interfaces")]
pub enum Shape {
    #[default]
    Openai,
    OpenaiStrict,
    OpenaiResponses,
    Anthropic,
    Gemini,
    Mcp,
    Llama,
}

impl Shape {
    /// All of them.
    pub const ALL: [Shape; 7] = [
        Shape::Openai,
        Shape::OpenaiStrict,
        Shape::OpenaiResponses,
        Shape::Anthropic,
        Shape::Gemini,
        Shape::Mcp,
        Shape::Llama,
    ];

    /// The name.
    pub fn as_str(self) -> &'static str {
        match self {
            Shape::Openai => "openai",
            Shape::OpenaiStrict => "openai_strict",
            Shape::OpenaiResponses => "openai_responses",
            Shape::Anthropic => "anthropic",
            Shape::Gemini => "gemini",
            Shape::Mcp => "mcp",
            Shape::Llama => "llama",
        }
    }

    /// The definition of a tool.
    pub fn of(self, tool: &Tool) -> Json {
        if self == Shape::Mcp {
            let mut definition = named(tool);
            definition.insert("inputSchema".into(), tool.schema.clone().into());
            definition.insert("annotations".into(), json!({"readOnlyHint": tool.reads}));
            if let Some(title) = &tool.title {
                definition.insert("title".into(), title.as_str().into());
            }
            return definition.into();
        }
        let schema = allowed(tool);
        let mut definition = named(tool);
        match self {
            Shape::OpenaiStrict | Shape::OpenaiResponses => {
                definition.extend(strict_fields(schema))
            }
            Shape::Llama => drop(definition.insert("parameters".into(), llama(schema).into())),
            Shape::Anthropic => drop(definition.insert("input_schema".into(), schema.into())),
            Shape::Gemini => definition.extend(gemini_fields(schema)),
            Shape::Openai | Shape::Mcp => {
                definition.insert("parameters".into(), schema.into());
            }
        }
        match self {
            Shape::Openai | Shape::OpenaiStrict | Shape::Llama => {
                json!({"type": "function", "function": definition})
            }
            Shape::OpenaiResponses => {
                definition.insert("type".into(), "function".into());
                definition.into()
            }
            _ => definition.into(),
        }
    }
}

/// Whether a word is one of these, which have spaces between them.
fn is_among(words: &str, word: &str) -> bool {
    words.split(' ').any(|one| one == word)
}

fn named(tool: &Tool) -> Object {
    let texts = [("name", &tool.name), ("description", &tool.description)];
    texts.map(|(key, text)| (key.to_owned(), text.as_str().into())).into_iter().collect()
}

// The schema of a tool that is no declaration of flags, without what no vendor allows.

const COMBINED: &str = "allOf anyOf oneOf not if then else";
/// Those of them whose properties the arguments may have.
const PARTS: &[&str] = &["allOf", "anyOf", "oneOf", "then", "else"];
/// How deep parts are looked for, one in the other, and how many.
const DEEPEST: usize = 2;
const MOST_PARTS: usize = 1_000;

fn allowed(tool: &Tool) -> Object {
    let renamed = |name: &str| {
        let found = tool.renamed.iter().find(|(property, _)| property == name);
        found.map_or(name, |(_, name)| name).to_owned()
    };
    let root = &tool.schema;
    let mut properties = Object::new();
    add_properties(&mut properties, root, root, DEEPEST, &mut { MOST_PARTS });
    let property = |(name, property): (String, Json)| {
        (renamed(&name), if property == true { json!({}) } else { property })
    };
    let properties: Object = properties.into_iter().map(property).collect();
    let is_kept = |key: &str| !is_among("$schema $id properties", key) && !is_among(COMBINED, key);
    let kept = root.iter().filter(|(key, _)| is_kept(key));
    let mut schema: Object = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    schema.insert("properties".into(), properties.into());
    let required: Vec<String> =
        listed(root.get("required")).iter().filter_map(Json::as_str).map(renamed).collect();
    if !required.is_empty() {
        schema.insert("required".into(), required.into());
    }
    schema
}

/// The properties of a schema, with those of its parts and alternatives, which are dropped.
fn add_properties(
    out: &mut Object,
    schema: &Object,
    root: &Object,
    depth: usize,
    room: &mut usize,
) {
    let parts = PARTS.iter().filter(|_| depth > 0).flat_map(|key| listed(schema.get(*key)));
    for part in parts.filter_map(|part| referred(part, root)) {
        if *room == 0 {
            break;
        }
        *room -= 1;
        add_properties(out, part, root, depth - 1, room);
    }
    if let Some(Json::Object(own)) = schema.get("properties") {
        out.extend(own.iter().map(|(name, property)| (name.clone(), property.clone())));
    }
}

fn referred<'a>(part: &'a Json, root: &'a Object) -> Option<&'a Object> {
    let part = part.as_object()?;
    let pointer = part.get("$ref").and_then(Json::as_str).and_then(|text| text.strip_prefix("#/"));
    let Some(pointer) = pointer else { return Some(part) };
    pointer.split('/').try_fold(root, |schema, key| schema.get(key)?.as_object())
}

/// The items of a list, or one value.
fn listed(value: Option<&Json>) -> &[Json] {
    match value {
        None | Some(Json::Null) => &[],
        Some(Json::Array(items)) => items,
        Some(one) => std::slice::from_ref(one),
    }
}

/// Keywords without which a schema means something else. Flags have none of them.
const STRUCTURAL: &str = "\
    $ref $dynamicRef oneOf allOf not if prefixItems patternProperties propertyNames \
    dependentSchemas contains unevaluatedProperties unevaluatedItems";

/// Whether a schema has structures that formats of less than JSON Schema cannot show. `more` are
/// keywords that count too.
fn is_rich(schema: &Object, more: &[&str]) -> bool {
    schema.iter().any(|(key, value)| match (key.as_str(), value) {
        ("properties", Json::Object(properties)) => {
            properties.values().any(|schema| is_rich_below(schema, more))
        }
        ("items", items) => is_rich_below(items, more),
        ("anyOf", Json::Array(schemas)) => {
            more.contains(&"anyOf") || schemas.iter().any(|schema| is_rich_below(schema, more))
        }
        (key, _) => is_among(STRUCTURAL, key),
    })
}

fn is_rich_below(value: &Json, more: &[&str]) -> bool {
    let Json::Object(schema) = value else { return true };
    // A value that is an object of any keys.
    schema.get("additionalProperties").is_some_and(|more| *more != false)
        || (is_type(schema, "object") && !schema.contains_key("properties"))
        || is_rich(schema, more)
}

fn is_type(schema: &Object, name: &str) -> bool {
    schema.get("type").is_some_and(|own| *own == name)
}

// OpenAI's strict mode: every property is required, so an optional one may be null, and objects are
// closed. A tool that takes any property cannot be strict.

const STRICT: &str = "\
    type description enum items anyOf properties required additionalProperties pattern format \
    minimum maximum minItems maxItems";
const STRICT_FORMATS: &str = "date-time time date duration email hostname ipv4 ipv6 uuid";
/// Its limits of a schema.
const MOST_VALUES: usize = 1_000;
const LONG_ENUM: usize = 250;
const LONG_ENUM_SIZE: usize = 15_000;
const MOST_CHARACTERS: usize = 120_000;

fn strict_fields(schema: Object) -> Object {
    let strict = (can_be_strict(&schema) && !is_rich(&schema, &[])).then(|| strict(schema.clone()));
    let strict = strict.filter(fits);
    let fields = [
        ("strict".to_owned(), strict.is_some().into()),
        ("parameters".to_owned(), strict.unwrap_or(schema).into()),
    ];
    fields.into_iter().collect()
}

fn can_be_strict(schema: &Object) -> bool {
    match (schema.get("additionalProperties"), schema.get("properties")) {
        (Some(more), _) => *more == false,
        (None, Some(Json::Object(properties))) => !properties.is_empty(),
        _ => false,
    }
}

fn strict(schema: Object) -> Object {
    let is_kept = |key: &str, value: &Json| match key {
        "format" => value.as_str().is_some_and(|format| is_among(STRICT_FORMATS, format)),
        "enum" => value.as_array().is_none_or(|values| !values.is_empty()),
        key => is_among(STRICT, key),
    };
    all_required(nested(alternatives(kept(with_default(schema), is_kept)), strict))
}

fn kept(schema: Object, is_kept: impl Fn(&str, &Json) -> bool) -> Object {
    schema.into_iter().filter(|(key, value)| is_kept(key, value)).collect()
}

fn all_required(mut schema: Object) -> Object {
    let Some(Json::Object(properties)) = schema.get("properties").cloned() else { return schema };
    let required = schema.get("required").and_then(Json::as_array).cloned().unwrap_or_default();
    let property = |(name, property): (String, Json)| {
        let is_required = required.iter().any(|required| *required == name);
        (name, if is_required { property } else { nullable(property) })
    };
    let properties: Object = properties.into_iter().map(property).collect();
    let names: BTreeSet<&String> = properties.keys().collect();
    schema.insert("required".into(), names.into_iter().cloned().collect());
    schema.insert("properties".into(), properties.into());
    schema.insert("additionalProperties".into(), false.into());
    schema
}

fn nullable(property: Json) -> Json {
    let Json::Object(mut schema) = property else { return property };
    if let Some(Json::Array(schemas)) = schema.get_mut("anyOf") {
        let null = json!({"type": "null"});
        let mut unique: Vec<Json> = Vec::new();
        for one in schemas.drain(..).chain([null]) {
            if !unique.contains(&one) {
                unique.push(one);
            }
        }
        *schemas = unique;
    } else if let Some(Json::String(name)) = schema.get("type").filter(|name| **name != "null") {
        let types = json!([name, "null"]);
        schema.insert("type".into(), types);
        if let Some(Json::Array(values)) = schema.get_mut("enum") {
            values.push(Json::Null);
        }
    }
    schema.into()
}

/// A value of several types, as `anyOf` with one type each.
fn alternatives(mut schema: Object) -> Object {
    let types = match schema.get("type") {
        Some(Json::Array(types)) => types.clone(),
        _ => return schema,
    };
    match &types[..] {
        [] => schema,
        [one] => of_type(&schema, one),
        types => {
            let description = schema.shift_remove_entry("description");
            let mut outer: Object = description.into_iter().collect();
            let each = types.iter().map(|name| Json::from(of_type(&schema, name)));
            outer.insert("anyOf".into(), each.collect());
            outer
        }
    }
}

fn of_type(schema: &Object, name: &Json) -> Object {
    let own = match name.as_str() {
        Some("string") => "enum pattern format minLength maxLength",
        Some("integer" | "number") => "enum minimum maximum",
        Some("array") => "items minItems maxItems",
        Some("object") => "properties required additionalProperties",
        _ => "",
    };
    let is_kept = |key: &str| is_among("type description default", key) || is_among(own, key);
    let kept = schema.iter().filter(|(key, _)| is_kept(key));
    let mut out: Object = kept.map(|(key, value)| (key.clone(), value.clone())).collect();
    out.insert("type".into(), name.clone());
    out
}

fn fits(schema: &Object) -> bool {
    let (mut values, mut characters) = (0, 0);
    let mut open = vec![schema];
    while let Some(schema) = open.pop() {
        if let Some(Json::Array(own)) = schema.get("enum") {
            let size = own.iter().map(|value| text(value).chars().count()).sum::<usize>();
            if own.len() > LONG_ENUM && size > LONG_ENUM_SIZE {
                return false;
            }
            values += own.len();
            characters += size;
        }
        if let Some(Json::Object(properties)) = schema.get("properties") {
            characters += properties.keys().map(|name| name.chars().count()).sum::<usize>();
            open.extend(properties.values().filter_map(Json::as_object));
        }
        let below = listed(schema.get("anyOf")).iter().chain(listed(schema.get("items")));
        open.extend(below.filter_map(Json::as_object));
    }
    values <= MOST_VALUES && characters <= MOST_CHARACTERS
}

/// The text of a scalar.
fn text(value: &Json) -> String {
    match value {
        Json::Null => String::new(),
        Json::String(text) => text.clone(),
        value => value.to_string(),
    }
}

// llama.cpp makes a grammar of all tools of a request. It refuses long repetitions and patterns
// that it cannot read.

const LLAMA: &str = "\
    type description items anyOf properties required additionalProperties const oneOf allOf \
    prefixItems $ref $defs definitions enum";
const LLAMA_FORMATS: &str = "date date-time time uuid";
const MOST_REPEATS: f64 = 100.0;
/// Numbers of its older versions have 32 bits.
const LARGEST: f64 = 2_147_483_647.0;

fn llama(schema: Object) -> Object {
    let is_number = |value: &Json, most: f64| value.as_f64().is_some_and(|one| one.abs() <= most);
    // Some versions do not escape these characters.
    let is_word = |value: &Json| {
        !text(value).contains(|c: char| matches!(c, '"' | '\\' | '\0'..='\x1f' | '\x7f'))
    };
    let is_kept = |key: &str, value: &Json| match key {
        "format" => value.as_str().is_some_and(|format| is_among(LLAMA_FORMATS, format)),
        "pattern" => value.as_str().is_some_and(is_day),
        "minItems" | "maxItems" | "minLength" | "maxLength" => is_number(value, MOST_REPEATS),
        "minimum" | "maximum" => is_number(value, LARGEST),
        "enum" => {
            value.as_array().is_some_and(|values| !values.is_empty() && values.iter().all(is_word))
        }
        key => is_among(LLAMA, key),
    };
    let mut schema = nested(alternatives(kept(with_default(schema), is_kept)), llama);
    // Without this, an object without properties is `{}`.
    if schema.get("properties").is_some_and(|properties| *properties == json!({})) {
        schema.entry("additionalProperties").or_insert(true.into());
    }
    schema
}

/// Whether a pattern is that of a date that may be a word too.
fn is_day(pattern: &str) -> bool {
    let words = pattern
        .strip_prefix("^([0-9]{4}-[0-9]{2}-[0-9]{2}")
        .and_then(|rest| rest.strip_suffix(")$"));
    let is_word =
        |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    words.is_some_and(|words| {
        words.is_empty()
            || words.strip_prefix('|').is_some_and(|words| words.split('|').all(is_word))
    })
}

// Gemini's `parameters`: a value has one type, only texts have `enum`, and names of properties have
// neither dots nor dashes.

const GEMINI: &str = "\
    type description enum items properties required nullable format pattern minimum maximum \
    minItems maxItems minLength maxLength";
const GEMINI_NAME: usize = 64;
const DAY: &str = "^[0-9]{4}-[0-9]{2}-[0-9]{2}$";

fn gemini_fields(schema: Object) -> Object {
    let field = |key: &str, schema: Object| Object::from_iter([(key.to_owned(), schema.into())]);
    if is_rich(&schema, &["anyOf"]) {
        return field("parametersJsonSchema", schema);
    }
    let schema = gemini(schema);
    // It refuses an object without properties.
    match schema.get("properties").is_some_and(|properties| *properties == json!({})) {
        true => Object::new(),
        false => field("parameters", schema),
    }
}

fn gemini(schema: Object) -> Object {
    let mut schema = one_type(with_default(schema));
    if let Some(format) = schema.get("format").filter(|format| **format != "date-time") {
        if *format == "date" {
            schema.entry("pattern").or_insert(DAY.into());
        }
        schema.shift_remove("format");
    }
    let is_text = is_type(&schema, "string");
    let is_choice = |value: &Json| {
        let is_word = |value: &Json| value.as_str().is_some_and(|text| !text.is_empty());
        is_text
            && value
                .as_array()
                .is_some_and(|values| !values.is_empty() && values.iter().all(is_word))
    };
    let is_kept = |key: &str, value: &Json| match key {
        "enum" => is_choice(value),
        key => is_among(GEMINI, key),
    };
    let mut schema = nested(kept(schema, is_kept), gemini);
    if let Some(Json::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| is_gemini_name(name));
        let names: BTreeSet<String> = properties.keys().cloned().collect();
        let mut required = listed(schema.get("required")).to_vec();
        required.retain(|name| name.as_str().is_some_and(|name| names.contains(name)));
        match required.is_empty() {
            true => drop(schema.shift_remove("required")),
            false => drop(schema.insert("required".into(), required.into())),
        }
    }
    schema
}

fn is_gemini_name(name: &str) -> bool {
    name.len() <= GEMINI_NAME
        && name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// `null` is no type of its own. Text comes before lists, since most values are single ones.
fn one_type(mut schema: Object) -> Object {
    while let Some(Json::Array(schemas)) = schema.get("anyOf") {
        if is_list(schema.get("type")) {
            break;
        }
        let Some(first) = schemas.first().cloned() else { break };
        schema.shift_remove("anyOf");
        if let Json::Object(first) = first {
            schema.extend(first);
        }
    }
    let Some(Json::Array(types)) = schema.get("type") else { return schema };
    let string = Json::from("string");
    let first = types.iter().find(|name| **name != "null").unwrap_or(&string);
    let is_nullable = types.iter().any(|name| *name == "null");
    let mut one = of_type(&schema, first);
    match (is_nullable, schema.get("nullable")) {
        (true, _) => drop(one.insert("nullable".into(), true.into())),
        (false, Some(nullable)) => drop(one.insert("nullable".into(), nullable.clone())),
        (false, None) => {}
    }
    one
}

fn is_list(value: Option<&Json>) -> bool {
    matches!(value, Some(Json::Array(_)))
}

/// A format without `default` has it in the description.
fn with_default(mut schema: Object) -> Object {
    let Some(default) = schema.get("default") else { return schema };
    let text = match default {
        Json::String(text) => text.clone(),
        default => {
            let mut default = default.clone();
            default.sort_all_objects();
            default.to_string()
        }
    };
    let description = schema.get("description").and_then(Json::as_str).unwrap_or("");
    if !description.contains(&text) {
        let described = format!("{description} (default: {text})").trim().to_owned();
        schema.insert("description".into(), described.into());
    }
    schema
}

/// The schema with those inside of it in this form.
fn nested(schema: Object, form: fn(Object) -> Object) -> Object {
    let formed = |value: Json| match value {
        Json::Object(schema) => form(schema).into(),
        other => other,
    };
    let all = |schemas: Object| -> Object {
        schemas.into_iter().map(|(name, schema)| (name, formed(schema))).collect()
    };
    let member = |(key, value): (String, Json)| {
        let value = match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Json::Object(schemas)) => all(schemas).into(),
            ("items" | "additionalProperties", value) => formed(value),
            ("anyOf" | "oneOf" | "allOf" | "prefixItems", Json::Array(schemas)) => schemas
                .into_iter()
                .map(|schema| if schema.is_object() { formed(schema) } else { json!({}) })
                .collect(),
            (_, value) => value,
        };
        (key, value)
    };
    schema.into_iter().map(member).collect()
}
