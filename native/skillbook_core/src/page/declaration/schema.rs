//! The flags of a JSON Schema: one for each property of an object.

use rustc_hash::FxHashSet;
use serde_json::{Map, Value as Json};

use super::{flag_name, Flag, Type};
use crate::schema::{value, Given, Reader, Schema, MOST_PROPERTIES};
use crate::text::line::push_line;

/// The limits of a name and of a description, in characters, and of the words of a choice.
const LONGEST_NAME: usize = 64;
const DESCRIBED: usize = 1_000;
const MOST_WORDS: usize = 500;

/// The flags of an object's properties. A property whose name is no flag's gets a spelling of its
/// own.
pub(crate) fn flags(schema: &Schema) -> Result<Vec<Flag>, String> {
    schema.read(|reader, root| {
        if !reader.types(root).has_object() {
            return Err("expected the type \"object\"".to_owned());
        }
        // Words take the required ones in their order, which lists keep wherever they come from.
        let mut properties = reader.properties(root);
        let required = root.get("required").and_then(Json::as_array).map_or(&[][..], |list| list);
        let place = |name: &str| required.iter().position(|own| own == name);
        properties.sort_by_key(|(name, ..)| place(name).unwrap_or(usize::MAX));
        if properties.len() > MOST_PROPERTIES {
            return Err(format!("expected at most {MOST_PROPERTIES} properties"));
        }
        let mut taken: FxHashSet<_> = ["help", "json"].map(str::to_owned).into_iter().collect();
        // Names that can be flags keep theirs, whatever comes before them.
        let kept: Vec<_> = properties
            .iter()
            .map(|(name, ..)| is_flag(name) && taken.insert(folded(name)))
            .collect();
        let flags = properties.iter().zip(kept).map(|((name, node, required), kept)| {
            let spelled = if kept { (*name).to_owned() } else { spelling(name, &mut taken) };
            let mut flag = Flag::named(&spelled);
            // Vendors of models allow ASCII only.
            if !spelled.is_ascii() {
                flag.names.push(spelling(name, &mut taken));
            }
            read(reader, node, &mut flag);
            flag.required = *required;
            flag.property = Some((*name).to_owned());
            flag
        });
        let flags = flags.collect();
        match reader.is_spent() {
            true => Err("expected fewer references, got a schema that takes too long".to_owned()),
            false => Ok(flags),
        }
    })
}

/// Adds to a flag what a schema says about its values.
pub(crate) fn describe(schema: &Schema, flag: &mut Flag) {
    schema.read(|reader, root| read(reader, root, flag));
}

fn read<'s>(reader: &Reader<'_, 's>, node: &'s Json, flag: &mut Flag) {
    (flag.kind, flag.several) = kind(reader, node);
    let text = reader.description(node).unwrap_or("");
    push_line(&mut flag.description, text.chars().take(DESCRIBED).collect::<String>().trim());
    // A text whose values need quotes is no choice of words.
    if reader.types(node).is_text() && matches!(flag.kind, Type::Text { .. }) {
        let notation = reader.notation(node);
        if notation.starts_with('"') {
            let blank = if flag.description.is_empty() { "" } else { " " };
            flag.description.push_str(&format!("{blank}One of: {notation}"));
        }
    }
}

/// The type of a flag with these values, and whether it takes several.
fn kind<'s>(reader: &Reader<'_, 's>, node: &'s Json) -> (Type, bool) {
    let json = || (Type::Json(reader.notation(node)), false);
    let Json::Object(members) = reader.core(node) else { return json() };
    let integer = |key: &str| members.get(key).and_then(Json::as_i64);
    let float = |key: &str| members.get(key).and_then(Json::as_f64);
    let has_values = members.contains_key("enum") || members.contains_key("const");
    let kind = match reader.types(node).single() {
        Some("string") => match words(members) {
            Some(words) => Type::OneOf(words),
            None => Type::Text {
                max: members.get("maxLength").and_then(Json::as_u64),
                line: false,
                empty: true,
            },
        },
        Some("array") => {
            let items = members.get("items").filter(|items| items.is_object());
            let Some(items) = items.filter(|items| !reader.types(items).has_null()) else {
                return json();
            };
            return match kind(reader, items) {
                (Type::Json(_) | Type::Switch, _) | (_, true) => json(),
                (kind, false) => (kind, true),
            };
        }
        _ if has_values => return json(),
        Some("boolean") => Type::Switch,
        Some("integer") => Type::Integer { min: integer("minimum"), max: integer("maximum") },
        Some("number") => Type::Number { min: float("minimum"), max: float("maximum") },
        _ => return json(),
    };
    (kind, false)
}

/// The values of a choice, if each is a word that needs no quotes and differs from the others in
/// more than its case.
fn words(members: &Map<String, Json>) -> Option<Vec<String>> {
    let values = match members.get("enum") {
        Some(Json::Array(values)) => values.as_slice(),
        _ => std::slice::from_ref(members.get("const")?),
    };
    let texts: Vec<_> =
        values.iter().filter_map(Json::as_str).map(str::to_owned).take(MOST_WORDS + 1).collect();
    let is_word = |text: &String| {
        !text.is_empty()
            && text.chars().all(|c| c.is_alphanumeric() || "_.-".contains(c))
            && !text.starts_with('-')
    };
    let folded: FxHashSet<_> = texts.iter().map(|text| folded(text)).collect();
    (!texts.is_empty()
        && texts.len() <= MOST_WORDS
        && folded.len() == texts.len()
        && texts.iter().all(is_word))
    .then_some(texts)
}

/// The spelling in which names of flags are compared.
fn folded(name: &str) -> String {
    name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect()
}

fn is_flag(name: &str) -> bool {
    name.chars().count() <= LONGEST_NAME
        && name.starts_with(|c: char| c.is_alphanumeric() || c == '_')
        && flag_name(name) == name
}

/// A name of ASCII letters, digits, `_` and dashes that is not taken.
fn spelling(name: &str, taken: &mut FxHashSet<String>) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
    let text: String = name.chars().take(LONGEST_NAME - 4).map(plain).collect();
    let base = match text.trim_matches('-') {
        "" => "argument",
        text => text,
    };
    let numbered = (2..).map(|number| format!("{base}-{number}"));
    let mut names = std::iter::once(base.to_owned()).chain(numbered);
    names.find(|name| taken.insert(folded(name))).unwrap_or_default()
}

/// Whether a word can be a value.
pub(crate) fn takes(schema: &Schema, word: &str) -> bool {
    let given = Given::Words(vec![word.to_owned()]);
    matches!(value(schema, given), Ok(Some(_)))
}
