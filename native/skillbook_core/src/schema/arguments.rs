//! Reads what a caller gave for the properties of a schema: words of a line, or members of a JSON
//! object.

use serde_json::{Map, Value as Json};

use super::check::Checker;
use super::index::Index;
use super::shape::Reader;
use super::{with_stack, Mistake, Schema, Wrong, MISTAKES};

/// The schema of every value.
static ANY: Json = Json::Bool(true);

/// The words or the member that a caller gave for a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Given {
    /// The words behind a flag, perhaps none.
    Words(Vec<String>),
    /// A member of a JSON object.
    Json(Json),
}

/// The arguments that a caller meant, checked against the schema. Words become values of the types
/// that the schema allows: a text stays one where only texts are allowed, and is read as JSON
/// elsewhere if the result fits. A member of an object is changed only if it does not fit: a number
/// in quotes, one value for a list, JSON in a text. A `null` that does not fit is left out.
///
/// ```
/// use serde_json::json;
/// use skillbook_core::schema::{arguments, Given, Schema};
///
/// let schema = json!({"properties": {"ids": {"type": "array", "items": {"type": "integer"}}}});
/// let schema = Schema::new(schema).unwrap();
/// let words = |words: &[&str]| Given::Words(words.iter().map(|word| word.to_string()).collect());
/// let given = vec![("ids".to_string(), words(&["7", "8"]))];
/// assert_eq!(arguments(&schema, given).unwrap()["ids"], json!([7, 8]));
/// ```
pub fn arguments(
    schema: &Schema,
    given: Vec<(String, Given)>,
) -> Result<Map<String, Json>, Vec<Mistake>> {
    with_stack(|| {
        let index = Index::new(&schema.root, &[]);
        let mut reading = Reading::new(&index);
        let properties = reading.reader.properties(&schema.root);
        let mut arguments = Map::new();
        let mut mistakes = Vec::new();
        for (name, given) in given {
            let known = properties.iter().find(|(known, ..)| *known == name);
            let node = match known {
                Some((_, node, _)) => *node,
                None => reading.other(&schema.root, &name),
            };
            match reading.value(node, given) {
                Some(Some(value)) => {
                    arguments.insert(name, value);
                }
                Some(None) => {}
                None => mistakes.push(Mistake { path: name, wrong: Wrong::NoValue }),
            }
        }
        let arguments = Json::Object(arguments);
        if let Err(found) = reading.checker.mistakes(&schema.root, &arguments) {
            // A flag without a value is not missing too.
            let known =
                |found: &Mistake| mistakes.iter().any(|own: &Mistake| own.path == found.path);
            let found: Vec<_> = found.into_iter().filter(|found| !known(found)).collect();
            mistakes.extend(found);
            mistakes.truncate(MISTAKES);
        }
        match arguments {
            Json::Object(arguments) if mistakes.is_empty() => Ok(arguments),
            _ => Err(mistakes),
        }
    })
}

/// The one value that a caller meant, as in [`arguments`]; `None` to leave it out.
pub fn value(schema: &Schema, given: Given) -> Result<Option<Json>, Vec<Mistake>> {
    with_stack(|| {
        let index = Index::new(&schema.root, &[]);
        let mut reading = Reading::new(&index);
        match reading.value(&schema.root, given) {
            Some(Some(value)) => {
                reading.checker.mistakes(&schema.root, &value)?;
                Ok(Some(value))
            }
            Some(None) => Ok(None),
            None => Err(vec![Mistake { path: String::new(), wrong: Wrong::NoValue }]),
        }
    })
}

struct Reading<'i, 's> {
    reader: Reader<'i, 's>,
    checker: Checker<'i, 's>,
}

impl<'i, 's> Reading<'i, 's> {
    fn new(index: &'i Index<'s>) -> Reading<'i, 's> {
        Reading { reader: Reader::new(index), checker: Checker::new(index) }
    }

    /// The schema of a property without one of its own: that of a pattern of names, or of all
    /// others.
    fn other(&mut self, root: &'s Json, name: &str) -> &'s Json {
        let patterns = root.get("patternProperties").and_then(Json::as_object);
        let of_name = patterns.into_iter().flatten().find(|(pattern, _)| {
            // A check that cannot go on ends when the whole is checked.
            self.checker.matches(pattern, name).unwrap_or(false)
        });
        let others = ["additionalProperties", "unevaluatedProperties"];
        let others = || others.iter().find_map(|key| root.get(key));
        let node = of_name.map(|(_, node)| node).or_else(others);
        node.filter(|node| node.is_object()).unwrap_or(&ANY)
    }

    /// `None` if a value is needed and none is given, `Some(None)` to leave it out.
    fn value(&mut self, node: &'s Json, given: Given) -> Option<Option<Json>> {
        match given {
            Given::Words(words) => self.words(node, words).map(Some),
            Given::Json(value) => Some(self.member(node, value)),
        }
    }

    fn words(&mut self, node: &'s Json, words: Vec<String>) -> Option<Json> {
        let types = self.reader.types(node);
        if words.is_empty() {
            return types.has_boolean().then_some(Json::Bool(true));
        }
        let text = words.join(" ");
        if types.has_list() {
            let single = self.word(node, &text);
            if types.has_others() && words.len() == 1 && self.checker.fits(node, &single) {
                return Some(single);
            }
            let whole = json(&text).filter(Json::is_array);
            let core = self.reader.core(node);
            // One word that is a list is the only item of a list of lists, and else all of it.
            let of_lists = item(core, 0)
                .map(|item| self.reader.types(item))
                .is_some_and(|types| types.has_list() && !types.has_others());
            if let Some(list) = whole {
                if self.checker.fits(node, &list) || words.len() == 1 && !of_lists {
                    return Some(list);
                }
            }
            let items = words.iter().enumerate().map(|(at, word)| {
                let item = item(core, at).unwrap_or(&ANY);
                self.word(item, word)
            });
            let list = Json::Array(items.collect());
            if words.len() > 1 || self.checker.fits(node, &list) {
                return Some(list);
            }
            return Some(single);
        }
        Some(self.word(node, &text))
    }

    fn word(&mut self, node: &'s Json, text: &str) -> Json {
        let types = self.reader.types(node);
        if types.is_text() {
            return Json::from(text);
        }
        let read = json(text);
        if let Some(value) = read.as_ref().filter(|value| self.checker.fits(node, value)) {
            return value.clone();
        }
        if types.has_boolean() {
            match text.trim().to_ascii_lowercase().as_str() {
                "yes" | "on" | "true" => return Json::Bool(true),
                "no" | "off" | "false" => return Json::Bool(false),
                _ => {}
            }
        }
        if types.has_text() {
            return Json::from(text);
        }
        if types.has_list() && !read.as_ref().is_some_and(Json::is_array) {
            let item = item(self.reader.core(node), 0).unwrap_or(&ANY);
            return Json::Array(vec![self.word(item, text)]);
        }
        read.unwrap_or_else(|| Json::from(text))
    }

    fn member(&mut self, node: &'s Json, value: Json) -> Option<Json> {
        if self.checker.fits(node, &value) {
            return Some(value);
        }
        let types = self.reader.types(node);
        let meant = match &value {
            Json::Null => return None,
            Json::Array(items) if items.is_empty() && !types.has_list() => return None,
            Json::Array(items) => match items.as_slice() {
                [one] if !types.has_list() => one.clone(),
                _ => return Some(value),
            },
            Json::String(text) => self.word(node, text),
            Json::Number(_) | Json::Bool(_) if types.is_text() => Json::from(value.to_string()),
            _ if types.has_list() => Json::Array(vec![value.clone()]),
            _ => return Some(value),
        };
        Some(if self.checker.fits(node, &meant) { meant } else { value })
    }
}

/// The schema of an item, where a list says it itself.
fn item(node: &Json, at: usize) -> Option<&Json> {
    let prefix = node.get("prefixItems").and_then(Json::as_array);
    prefix
        .and_then(|prefix| prefix.get(at))
        .or_else(|| node.get("items"))
        .filter(|item| item.is_object())
}

/// JSON in a text, with few levels.
fn json(text: &str) -> Option<Json> {
    let text = text.trim();
    let begins = text.starts_with(|c: char| "{[\"-tfn".contains(c) || c.is_ascii_digit());
    serde_json::from_str(text).ok().filter(|_| begins)
}
