//! What a schema means for a command line: the flags of its properties, and a short notation of
//! structures for people and models.

use std::cell::Cell;

use rustc_hash::FxHashSet;
use serde_json::{Map, Value as Json};

use super::index::Index;
use super::words::written;
use crate::text::line::push_line;

/// The limits of a notation: its characters, and the references that it follows.
const LONGEST: usize = 400;
const NESTED: usize = 4;
/// The properties of one object that are listed.
pub(crate) const MOST_PROPERTIES: usize = 500;
/// The references, one after the other, that a type is searched behind.
const HOPS: usize = 16;
/// The values of a choice that a notation lists.
const MOST_VALUES: usize = 50;
/// The steps of one reader: a schema that it looks at, or a name in it. References that lead to
/// several others would make them grow without limit.
const STEPS: usize = 200_000;

/// The types that values of a schema may have, as bits in the order of `TYPES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Types(u8);

const STRING: u8 = 1;
const INTEGER: u8 = 2;
const NUMBER: u8 = 4;
const BOOLEAN: u8 = 8;
const ARRAY: u8 = 16;
const OBJECT: u8 = 32;
const NULL: u8 = 64;
const ALL: u8 = 127;

impl Types {
    /// The type that values other than null have, if it is one.
    pub fn single(self) -> Option<&'static str> {
        match self.0 & !NULL {
            INTEGER => Some("integer"),
            // A number may be whole.
            bits if bits | INTEGER == INTEGER | NUMBER => Some("number"),
            STRING => Some("string"),
            BOOLEAN => Some("boolean"),
            ARRAY => Some("array"),
            _ => None,
        }
    }

    pub fn has_object(self) -> bool {
        self.0 & OBJECT != 0
    }

    pub fn is_text(self) -> bool {
        self.0 == STRING
    }

    pub fn has_text(self) -> bool {
        self.0 & STRING != 0
    }

    pub fn has_list(self) -> bool {
        self.0 & ARRAY != 0
    }

    pub fn has_boolean(self) -> bool {
        self.0 & BOOLEAN != 0
    }

    /// Whether it may be something else than a list or null.
    pub fn has_others(self) -> bool {
        self.0 & !(ARRAY | NULL) != 0
    }

    pub fn has_null(self) -> bool {
        self.0 & NULL != 0
    }

    fn named(name: &str) -> u8 {
        match name {
            "string" => STRING,
            "integer" => INTEGER,
            "number" => INTEGER | NUMBER,
            "boolean" => BOOLEAN,
            "array" => ARRAY,
            "object" => OBJECT,
            "null" => NULL,
            _ => ALL,
        }
    }

    fn of(value: &Json) -> u8 {
        match value {
            Json::Null => NULL,
            Json::Bool(_) => BOOLEAN,
            Json::Number(_) => INTEGER | NUMBER,
            Json::String(_) => STRING,
            Json::Array(_) => ARRAY,
            Json::Object(_) => OBJECT,
        }
    }
}

/// Reads a schema beside its index.
pub(crate) struct Reader<'i, 's> {
    index: &'i Index<'s>,
    left: Cell<usize>,
}

impl<'i, 's> Reader<'i, 's> {
    pub(super) fn new(index: &'i Index<'s>) -> Reader<'i, 's> {
        Reader { index, left: Cell::new(STEPS) }
    }

    /// Whether the schema takes more steps than a reader has, so that its answers are not whole.
    pub fn is_spent(&self) -> bool {
        self.left.get() == 0
    }

    /// Whether there was a step left.
    fn steps(&self, steps: usize) -> bool {
        self.left.set(self.left.get().saturating_sub(steps));
        !self.is_spent()
    }

    /// The description of a schema, or of the one that it refers to.
    pub fn description(&self, node: &'s Json) -> Option<&'s str> {
        let Json::Object(members) = node else { return None };
        let text = |node: &'s Json| node.get("description").and_then(Json::as_str);
        text(node).or_else(|| text(self.target(node, members)?))
    }

    /// The types that a schema allows. More than it allows if that is not known.
    pub fn types(&self, node: &'s Json) -> Types {
        Types(self.bits(node, HOPS))
    }

    fn bits(&self, node: &'s Json, hops: usize) -> u8 {
        let Json::Object(members) = node else {
            return if node == &Json::Bool(false) { 0 } else { ALL };
        };
        if hops == 0 || !self.steps(members.len() + 1) {
            return ALL;
        }
        let mut bits = ALL;
        match members.get("type") {
            Some(Json::String(name)) => bits &= Types::named(name),
            Some(Json::Array(names)) => {
                let names = names.iter().filter_map(Json::as_str);
                bits &= names.fold(0, |bits, name| bits | Types::named(name));
            }
            _ => {}
        }
        if let Some(values) = members.get("enum").and_then(Json::as_array) {
            bits &= values.iter().fold(0, |bits, value| bits | Types::of(value));
        }
        if let Some(value) = members.get("const") {
            bits &= Types::of(value);
        }
        if let Some(target) = self.target(node, members) {
            bits &= self.bits(target, hops - 1);
        }
        for branch in list(members, "allOf") {
            bits &= self.bits(branch, hops - 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if members.contains_key(keyword) {
                let branches = list(members, keyword);
                bits &= branches.fold(0, |bits, branch| bits | self.bits(branch, hops - 1));
            }
        }
        if members.get("nullable") == Some(&Json::Bool(true)) {
            bits |= NULL;
        }
        bits
    }

    fn target(&self, node: &'s Json, members: &'s Map<String, Json>) -> Option<&'s Json> {
        let reference = members.get("$ref")?.as_str()?;
        Some(self.index.target(self.index.of(node, 0), reference)?.0)
    }

    /// The only schema that says something about values other than null, behind references and
    /// alternatives with null.
    pub fn core(&self, node: &'s Json) -> &'s Json {
        let mut node = node;
        for _ in 0..HOPS {
            let Json::Object(members) = node else { return node };
            let own = ["type", "enum", "const", "properties", "items"];
            if own.iter().any(|key| members.contains_key(*key)) {
                return node;
            }
            let mut below: Vec<_> = self.target(node, members).into_iter().collect();
            for keyword in ["allOf", "anyOf", "oneOf"] {
                let not_null = |node: &&Json| self.bits(node, HOPS) != NULL;
                below.extend(list(members, keyword).filter(not_null));
            }
            match below.as_slice() {
                [one] => node = one,
                _ => return node,
            }
        }
        node
    }

    /// The properties of an object, also those of its parts and alternatives, with the schemas
    /// that declare them.
    pub fn properties(&self, node: &'s Json) -> Vec<(&'s str, &'s Json, bool)> {
        let mut found: Vec<(&str, &Json, bool)> = Vec::new();
        let mut open = vec![(node, true, HOPS)];
        while let Some((node, always, hops)) = open.pop() {
            let (Json::Object(members), true) = (node, hops > 0) else { continue };
            let names: FxHashSet<_> = match always {
                true => list(members, "required").filter_map(Json::as_str).collect(),
                false => FxHashSet::default(),
            };
            if !self.steps(members.len() + names.len() + found.len()) {
                break;
            }
            let required = |name: &str| names.contains(name);
            let own = members.get("properties").and_then(Json::as_object).into_iter().flatten();
            for (name, schema) in own {
                match found.iter_mut().find(|(known, ..)| known == name) {
                    Some(known) => known.2 |= required(name),
                    None => found.push((name, schema, required(name))),
                }
            }
            for (name, _, is_required) in &mut found {
                *is_required |= required(name);
            }
            open.extend(self.target(node, members).map(|target| (target, always, hops - 1)));
            let mut parts: Vec<_> = Vec::new();
            for (keyword, always) in [("allOf", always), ("anyOf", false), ("oneOf", false)] {
                parts.extend(list(members, keyword).map(|part| (part, always, hops - 1)));
            }
            for keyword in ["then", "else"] {
                parts.extend(members.get(keyword).map(|part| (part, false, hops - 1)));
            }
            open.extend(parts.into_iter().rev());
            if found.len() > MOST_PROPERTIES {
                break;
            }
        }
        found
    }

    /// The structure of a value on one line: `list of {name: text, age?: integer}`.
    pub fn notation(&self, node: &'s Json) -> String {
        let mut out = String::new();
        self.write(node, &mut out, NESTED, false);
        if out.chars().count() > LONGEST {
            out = out.chars().take(LONGEST - 1).collect();
            out.push('…');
        }
        out
    }

    /// `inner` puts alternatives in parentheses.
    fn write(&self, node: &'s Json, out: &mut String, hops: usize, inner: bool) {
        let Json::Object(members) = node else { return out.push_str("any value") };
        if out.len() > 4 * LONGEST || hops == 0 || !self.steps(members.len() + 1) {
            return out.push('…');
        }
        if let Some(values) = members.get("enum").and_then(Json::as_array) {
            return join(out, values.iter().take(MOST_VALUES).map(written), inner);
        }
        if let Some(value) = members.get("const") {
            return out.push_str(&written(value));
        }
        if let Some(target) = self.target(node, members) {
            return self.write(target, out, hops - 1, inner);
        }
        for keyword in ["anyOf", "oneOf"] {
            if members.contains_key(keyword) {
                let mut texts: Vec<String> = Vec::new();
                for branch in list(members, keyword) {
                    let mut text = String::new();
                    self.write(branch, &mut text, hops - 1, true);
                    if !texts.contains(&text) {
                        texts.push(text);
                    }
                }
                return join(out, texts.into_iter(), inner);
            }
        }
        let types: Vec<_> = list(members, "type").filter_map(Json::as_str).collect();
        let types = match types.as_slice() {
            [] if members.contains_key("properties") => vec!["object"],
            [] if members.contains_key("items") || members.contains_key("prefixItems") => {
                vec!["array"]
            }
            [] => match self.core(node) {
                core if !std::ptr::eq(core, node) => {
                    return self.write(core, out, hops - 1, inner);
                }
                _ if members.contains_key("allOf") => vec!["object"],
                _ => return out.push_str("any value"),
            },
            types => types.to_vec(),
        };
        let texts: Vec<_> =
            types.iter().map(|name| self.of_type(node, members, name, hops)).collect();
        join(out, texts.into_iter(), inner);
    }

    fn of_type(
        &self,
        node: &'s Json,
        members: &'s Map<String, Json>,
        name: &str,
        hops: usize,
    ) -> String {
        let mut out = String::new();
        match name {
            "string" => match members.get("format").and_then(Json::as_str) {
                Some(format) => push_line(&mut out, &format!("text ({format})")),
                None => out.push_str("text"),
            },
            "boolean" => out.push_str("true or false"),
            "array" => {
                let prefix: Vec<_> = list(members, "prefixItems").collect();
                if prefix.is_empty() {
                    out.push_str("list");
                    if let Some(items) = members.get("items").filter(|items| items.is_object()) {
                        out.push_str(" of ");
                        self.write(items, &mut out, hops - 1, true);
                    }
                } else {
                    for (at, node) in prefix.iter().enumerate() {
                        out.push_str(if at == 0 { "[" } else { ", " });
                        self.write(node, &mut out, hops - 1, true);
                    }
                    out.push(']');
                }
            }
            "object" => {
                let properties = self.properties(node);
                if properties.is_empty() {
                    out.push_str("object");
                    let values = members.get("additionalProperties");
                    if let Some(values) = values.filter(|values| values.is_object()) {
                        out.push_str(" of ");
                        self.write(values, &mut out, hops - 1, true);
                    }
                    return out;
                }
                for (at, (name, schema, required)) in properties.iter().enumerate() {
                    out.push_str(if at == 0 { "{" } else { ", " });
                    push_line(&mut out, name);
                    out.push_str(if *required { ": " } else { "?: " });
                    self.write(schema, &mut out, hops - 1, true);
                    if out.len() > 4 * LONGEST {
                        break;
                    }
                }
                out.push('}');
            }
            other => push_line(&mut out, other),
        }
        out
    }
}

fn join(out: &mut String, texts: impl Iterator<Item = String>, inner: bool) {
    let texts: Vec<_> = texts.collect();
    let parentheses = inner && texts.len() > 1;
    if parentheses {
        out.push('(');
    }
    out.push_str(&texts.join(" or "));
    if parentheses {
        out.push(')');
    }
}

fn list<'s>(members: &'s Map<String, Json>, key: &str) -> impl Iterator<Item = &'s Json> {
    let (items, one) = match members.get(key) {
        Some(Json::Array(items)) => (&items[..], None),
        one => (&[][..], one),
    };
    items.iter().chain(one)
}
