//! The places that references of a schema lead to.

use rustc_hash::FxHashMap;
use serde_json::Value as Json;

use super::words::excerpt;

/// The keywords whose value is a schema, a list of schemas, and a mapping to schemas.
const ONE: [&str; 12] = [
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
];
const LISTS: [&str; 5] = ["allOf", "anyOf", "items", "oneOf", "prefixItems"];
const MAPPINGS: [&str; 6] =
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"];

pub(super) const TYPES: [&str; 7] =
    ["string", "integer", "number", "boolean", "array", "object", "null"];

/// A schema with an identifier of its own, or the root.
struct Resource<'s> {
    uri: String,
    node: &'s Json,
    anchors: FxHashMap<&'s str, &'s Json>,
    dynamic: FxHashMap<&'s str, &'s Json>,
}

/// The resources of a schema, their anchors, and the resource of each schema in it.
pub(super) struct Index<'s> {
    resources: Vec<Resource<'s>>,
    by_uri: FxHashMap<String, usize>,
    /// By the address of a schema, which the index borrows.
    of: FxHashMap<usize, usize>,
    /// Whether a schema asks which parts of a value others have seen.
    pub unevaluated: bool,
}

fn address(node: &Json) -> usize {
    std::ptr::from_ref(node) as usize
}

impl<'s> Index<'s> {
    /// With other documents by their addresses, for the suite of tests.
    pub fn new(root: &'s Json, others: &[(&str, &'s Json)]) -> Index<'s> {
        let mut index = Index {
            resources: Vec::new(),
            by_uri: FxHashMap::default(),
            of: FxHashMap::default(),
            unevaluated: false,
        };
        for (uri, document) in [("", root)].iter().chain(others) {
            let resource = index.resource((*uri).to_owned(), document);
            index.walk(document, resource);
        }
        index
    }

    fn resource(&mut self, uri: String, node: &'s Json) -> usize {
        let resource = self.resources.len();
        self.by_uri.entry(uri.clone()).or_insert(resource);
        let (anchors, dynamic) = (FxHashMap::default(), FxHashMap::default());
        self.resources.push(Resource { uri, node, anchors, dynamic });
        resource
    }

    fn walk(&mut self, root: &'s Json, resource: usize) {
        let mut open = vec![(root, resource)];
        while let Some((node, mut resource)) = open.pop() {
            let Json::Object(members) = node else { continue };
            if let Some(id) = members.get("$id").and_then(Json::as_str) {
                let uri = resolve(&self.resources[resource].uri, id);
                // The root has its own identifier beside the empty one.
                if address(node) == address(self.resources[resource].node) {
                    self.by_uri.entry(uri.clone()).or_insert(resource);
                    self.resources[resource].uri = uri;
                } else {
                    resource = self.resource(uri, node);
                }
            }
            self.of.insert(address(node), resource);
            for (keyword, is_dynamic) in [("$anchor", false), ("$dynamicAnchor", true)] {
                let Some(name) = members.get(keyword).and_then(Json::as_str) else { continue };
                self.resources[resource].anchors.insert(name, node);
                if is_dynamic {
                    self.resources[resource].dynamic.insert(name, node);
                }
            }
            self.unevaluated |= members.contains_key("unevaluatedItems")
                || members.contains_key("unevaluatedProperties");
            open.extend(below(members).map(|below| (below, resource)));
        }
    }

    /// The resource of a schema. A place that no keyword leads to, but a reference does, belongs to
    /// the resource that refers to it.
    pub fn of(&self, node: &Json, referring: usize) -> usize {
        self.of.get(&address(node)).copied().unwrap_or(referring)
    }

    /// The schema that a reference of a resource leads to; `None` if it is not here.
    pub fn target(&self, resource: usize, reference: &str) -> Option<(&'s Json, usize)> {
        let (uri, fragment) = reference.split_once('#').unwrap_or((reference, ""));
        let resource = match uri {
            "" => resource,
            uri => *self.by_uri.get(&resolve(&self.resources[resource].uri, uri))?,
        };
        let found = &self.resources[resource];
        let node = match fragment {
            "" => found.node,
            pointer if pointer.starts_with('/') => found.node.pointer(&decoded(pointer))?,
            anchor => found.anchors.get(anchor)?,
        };
        Some((node, self.of(node, resource)))
    }

    /// The schema that a dynamic reference leads to, in the outermost of the resources that are
    /// being checked.
    pub fn dynamic(
        &self,
        resource: usize,
        reference: &str,
        scope: &[usize],
    ) -> Option<(&'s Json, usize)> {
        let (node, found) = self.target(resource, reference)?;
        let anchor = reference.split_once('#').map_or("", |(_, fragment)| fragment);
        let is_dynamic = self.resources[found].dynamic.get(anchor);
        if is_dynamic.is_none_or(|dynamic| address(dynamic) != address(node)) {
            return Some((node, found));
        }
        let outer = scope.iter().find_map(|outer| {
            let node = *self.resources[*outer].dynamic.get(anchor)?;
            Some((node, self.of(node, *outer)))
        });
        outer.or(Some((node, found)))
    }
}

/// The schemas directly below a schema.
fn below(members: &serde_json::Map<String, Json>) -> impl Iterator<Item = &Json> {
    let one = ONE.iter().filter_map(|key| members.get(*key));
    let lists = LISTS.iter().filter_map(|key| members.get(*key)?.as_array()).flatten();
    let mappings = MAPPINGS.iter().filter_map(|key| members.get(*key)?.as_object());
    one.chain(lists).chain(mappings.flat_map(serde_json::Map::values))
}

/// The first place of a schema that cannot mean anything: a keyword whose value has another type
/// than the standard gives it.
pub(super) fn fault(root: &Json) -> Option<String> {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let members = match node {
            Json::Object(members) => members,
            Json::Bool(_) => continue,
            other => return Some(format!("expected a schema, got {}", excerpt(other))),
        };
        for (keyword, value) in members {
            let (is_right, expected) = match keyword.as_str() {
                "type" => (is_type(value), "a type or a list of types"),
                "properties" | "patternProperties" | "$defs" | "definitions"
                | "dependentSchemas" => (value.is_object(), "a mapping of schemas"),
                "required" => {
                    let texts = |list: &Vec<Json>| list.iter().all(Json::is_string);
                    // Draft 3 had a boolean.
                    (value.is_boolean() || value.as_array().is_some_and(texts), "a list of names")
                }
                "enum" => (value.is_array(), "a list of values"),
                "allOf" | "anyOf" | "oneOf" | "prefixItems" => {
                    (value.is_array(), "a list of schemas")
                }
                "pattern" | "$ref" | "$dynamicRef" => (value.is_string(), "a text"),
                "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties"
                | "maxProperties" | "multipleOf" | "minimum" | "maximum" => {
                    (value.is_number(), "a number")
                }
                _ => (true, ""),
            };
            if !is_right {
                return Some(format!(
                    "expected {expected} for `{keyword}`, got {}",
                    excerpt(value)
                ));
            }
        }
        // The dependencies of old drafts may be names, and `items` a list.
        open.extend(below(members).filter(|node| !node.is_array()));
    }
    None
}

fn is_type(value: &Json) -> bool {
    value.is_string() || value.as_array().is_some_and(|list| list.iter().all(Json::is_string))
}

/// A type that does not exist. It holds for every value, which an author did not mean.
pub(super) fn unknown_type(root: &Json) -> Option<String> {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        let Json::Object(members) = node else { continue };
        let types = match members.get("type") {
            Some(Json::Array(types)) => types.as_slice(),
            Some(one) => std::slice::from_ref(one),
            None => &[],
        };
        let mut texts = types.iter().filter_map(Json::as_str);
        if let Some(unknown) = texts.find(|name| !TYPES.contains(name)) {
            let types = TYPES.join(", ");
            return Some(format!("expected one of {types} for `type`, got \"{unknown}\""));
        }
        open.extend(below(members));
    }
    None
}

/// Resolves an identifier, without its fragment, against that of the resource around it.
fn resolve(base: &str, reference: &str) -> String {
    let reference = reference.split('#').next().unwrap_or("");
    let has_scheme = reference.split_once(':').is_some_and(|(scheme, _)| {
        scheme.starts_with(|c: char| c.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c))
    });
    if reference.is_empty() {
        return base.to_owned();
    }
    if has_scheme || base.is_empty() {
        return reference.to_owned();
    }
    let start = base.find("://").map_or(0, |at| at + 3);
    let host = base[start..].find('/').map_or(base.len(), |at| start + at);
    let path = if reference.starts_with('/') {
        reference.to_owned()
    } else {
        let folder = base[host..].rfind('/').map_or("", |at| &base[host..host + at]);
        format!("{folder}/{reference}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in path.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    format!("{}{}", &base[..host], parts.join("/"))
}

/// A fragment without percent signs. Bytes that are no text lead nowhere.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let [first, after @ ..] = rest {
        let hex = |digit: u8| (digit as char).to_digit(16);
        let byte = match (first, after) {
            (b'%', [high, low, ..]) => hex(*high).zip(hex(*low)),
            _ => None,
        };
        match byte {
            Some((high, low)) => {
                bytes.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            None => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes).unwrap_or_default()
}
