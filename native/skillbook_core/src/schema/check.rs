//! Checks a value against a schema.

use std::collections::HashSet;

use regex_automata::meta::{Config, Regex};
use rustc_hash::FxHashMap;
use serde_json::{Map, Number, Value as Json};

use super::index::Index;
use super::words::{excerpt, named, one_of, shortened, written, LISTED};
use super::{Mistake, Wrong, MISTAKES, NESTED, STEPS};
use crate::text::line::push_line;

/// The memory of a compiled pattern, in bytes.
const PATTERN: usize = 1 << 20;

/// The check cannot go on within its limits.
pub(super) struct Stop;

/// The parts of a value that a schema has looked at, if the value fits.
type Checked<'v> = Result<Option<Seen<'v>>, Stop>;

/// Where mistakes are collected, if they are shown.
type Out<'o> = Option<&'o mut Vec<Mistake>>;

/// The way from the whole value to a part of it.
#[derive(Clone, Copy)]
enum Path<'p> {
    Whole,
    Key(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Path::Whole => {}
            Path::Key(above, key) => {
                above.write(out);
                if !out.is_empty() {
                    out.push('.');
                }
                push_line(out, key);
            }
            Path::Item(above, at) => {
                above.write(out);
                out.push_str(&format!("[{at}]"));
            }
        }
    }
}

/// The parts of a value that a schema has looked at, for `unevaluatedItems` and
/// `unevaluatedProperties`.
#[derive(Default)]
struct Seen<'v> {
    keys: HashSet<&'v str>,
    /// The first ones.
    items: usize,
    others: HashSet<usize>,
}

impl<'v> Seen<'v> {
    fn add(&mut self, other: Seen<'v>) {
        self.keys.extend(other.keys);
        self.items = self.items.max(other.items);
        self.others.extend(other.others);
    }
}

/// Whether the check may end with the first mistake.
fn is_decided(out: &Out) -> bool {
    out.as_ref().is_none_or(|found| found.len() >= MISTAKES)
}

fn wrong(out: &mut Out, at: Path, wrong: impl FnOnce() -> Wrong) {
    let Some(found) = out else { return };
    if found.len() < MISTAKES {
        let mut path = String::new();
        at.write(&mut path);
        let mistake = Mistake { path, wrong: wrong() };
        if !found.contains(&mistake) {
            found.push(mistake);
        }
    }
}

fn expected(out: &mut Out, at: Path, value: &Json, expected: impl FnOnce() -> String) {
    wrong(out, at, || Wrong::Value { expected: expected(), got: excerpt(value) });
}

/// Checks values against the schemas of an index.
pub(super) struct Checker<'i, 's> {
    pub(super) index: &'i Index<'s>,
    steps: u32,
    nested: usize,
    /// The resources that are being checked, from the outermost.
    scope: Vec<usize>,
    patterns: FxHashMap<&'s str, Option<Regex>>,
}

impl<'i, 's> Checker<'i, 's> {
    pub fn new(index: &'i Index<'s>) -> Checker<'i, 's> {
        let patterns = FxHashMap::default();
        Checker { index, steps: STEPS, nested: 0, scope: Vec::new(), patterns }
    }

    /// All that is wrong with a value, up to the limit.
    pub fn mistakes(&mut self, schema: &'s Json, value: &Json) -> Result<(), Vec<Mistake>> {
        let mut mistakes = Vec::new();
        let resource = self.index.of(schema, 0);
        match self.check(schema, resource, value, Path::Whole, Some(&mut mistakes)) {
            Ok(Some(_)) => Ok(()),
            Ok(None) => Err(mistakes),
            Err(Stop) => Err(vec![Mistake { path: String::new(), wrong: Wrong::Costly }]),
        }
    }

    /// Whether a value fits. One that cannot be checked does not.
    pub fn fits(&mut self, schema: &'s Json, value: &Json) -> bool {
        let resource = self.index.of(schema, 0);
        (self.nested, self.scope) = (0, Vec::new());
        matches!(self.check(schema, resource, value, Path::Whole, None), Ok(Some(_)))
    }

    /// Whether a part of the value fits.
    fn part(
        &mut self,
        node: &'s Json,
        resource: usize,
        value: &Json,
        at: Path,
        out: &mut Out,
    ) -> Result<bool, Stop> {
        Ok(self.check(node, resource, value, at, out.as_deref_mut())?.is_some())
    }

    /// Whether a member that no other keyword knows fits.
    fn more(
        &mut self,
        node: &'s Json,
        resource: usize,
        value: &Json,
        at: Path,
        out: &mut Out,
        known: Option<&Map<String, Json>>,
    ) -> Result<bool, Stop> {
        if node == &Json::Bool(false) {
            wrong(out, at, || Wrong::Unknown(names(known)));
            return Ok(false);
        }
        self.part(node, resource, value, at, out)
    }

    fn step(&mut self, steps: usize) -> Result<(), Stop> {
        let steps = u32::try_from(steps).map_err(|_| Stop)?;
        self.steps = self.steps.checked_sub(steps).ok_or(Stop)?;
        Ok(())
    }

    fn check<'v>(
        &mut self,
        schema: &'s Json,
        resource: usize,
        value: &'v Json,
        at: Path,
        mut out: Out,
    ) -> Checked<'v> {
        self.step(1)?;
        let members = match schema {
            Json::Object(members) => members,
            Json::Bool(false) => {
                expected(&mut out, at, value, || "left out".to_owned());
                return Ok(None);
            }
            _ => return Ok(Some(Seen::default())),
        };
        let resource = self.index.of(schema, resource);
        let enters = self.scope.last() != Some(&resource);
        if enters {
            self.scope.push(resource);
        }
        self.nested += 1;
        if self.nested > NESTED {
            return Err(Stop);
        }
        // An error ends the whole check, so nothing needs to be put back then.
        let seen = self.keywords(members, resource, value, at, out)?;
        self.nested -= 1;
        if enters {
            self.scope.pop();
        }
        Ok(seen)
    }

    fn keywords<'v>(
        &mut self,
        schema: &'s Map<String, Json>,
        resource: usize,
        value: &'v Json,
        at: Path,
        mut out: Out,
    ) -> Checked<'v> {
        self.step(schema.len())?;
        let mut fits = self.simple(schema, value, at, &mut out)?;
        if !fits {
            // A value of another type has no parts that are worth a mistake.
            return Ok(None);
        }
        let mut seen = Seen::default();
        fits &= self.applied(schema, resource, value, at, &mut out, &mut seen)?;
        if fits || !is_decided(&out) {
            fits &= match value {
                Json::Object(members) => {
                    self.object(schema, resource, members, at, &mut out, &mut seen)?
                }
                Json::Array(items) => {
                    self.list(schema, resource, items, at, &mut out, &mut seen)?
                }
                _ => true,
            };
        }
        Ok(fits.then_some(seen))
    }

    /// The keywords without schemas.
    fn simple(
        &mut self,
        schema: &'s Map<String, Json>,
        value: &Json,
        at: Path,
        out: &mut Out,
    ) -> Result<bool, Stop> {
        let types = schema.get("type").map_or(&[][..], list);
        let nullable = value.is_null() && schema.get("nullable") == Some(&Json::Bool(true));
        if !types.is_empty() && !nullable && !types.iter().any(|name| has_type(value, name)) {
            wrong(out, at, || {
                let types = types.iter().filter_map(Json::as_str).map(named);
                Wrong::Form {
                    expected: types.collect::<Vec<_>>().join(" or "),
                    got: excerpt(value),
                }
            });
            return Ok(false);
        }
        if let Some(Json::Array(values)) = schema.get("enum") {
            self.step(values.iter().map(size).sum::<usize>() / 16 + size(value) / 16)?;
            if !nullable && !values.iter().any(|allowed| same(allowed, value)) {
                expected(out, at, value, || one_of(values));
                return Ok(false);
            }
        }
        if let Some(only) = schema.get("const") {
            self.step(size(only) / 16)?;
            if !same(only, value) {
                expected(out, at, value, || written(only));
                return Ok(false);
            }
        }
        match value {
            Json::Number(number) => Ok(numbers(schema, number, value, at, out)),
            Json::String(text) => self.text(schema, text, value, at, out),
            _ => Ok(true),
        }
    }

    fn text(
        &mut self,
        schema: &'s Map<String, Json>,
        text: &str,
        value: &Json,
        at: Path,
        out: &mut Out,
    ) -> Result<bool, Stop> {
        let (least, most) = (count(schema, "minLength"), count(schema, "maxLength"));
        if least.is_some() || most.is_some() {
            self.step(text.len() / 64)?;
            if !within(text.chars().count(), least, most) {
                expected(out, at, value, || format!("a text of {} characters", range(least, most)));
                return Ok(false);
            }
        }
        if let Some(pattern) = schema.get("pattern").and_then(Json::as_str) {
            if !self.matches(pattern, text)? {
                expected(out, at, value, || format!("a text that matches {}", shortened(pattern)));
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Whether a text matches a pattern, or one that is not understood.
    pub fn matches(&mut self, pattern: &'s str, text: &str) -> Result<bool, Stop> {
        self.step(text.len() / 16 + 1)?;
        if !self.patterns.contains_key(pattern) {
            self.step(pattern.len())?;
            self.patterns.insert(pattern, compiled(pattern));
        }
        let regex = self.patterns.get(pattern).and_then(Option::as_ref);
        Ok(regex.is_none_or(|regex| regex.is_match(text)))
    }

    /// The keywords that apply other schemas to the same value.
    fn applied<'v>(
        &mut self,
        schema: &'s Map<String, Json>,
        resource: usize,
        value: &'v Json,
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        let mut fits = true;
        if let Some(reference) = schema.get("$ref").and_then(Json::as_str) {
            if let Some((node, resource)) = self.index.target(resource, reference) {
                fits &= self.and(node, resource, value, at, out, seen)?;
            }
        }
        if let Some(reference) = schema.get("$dynamicRef").and_then(Json::as_str) {
            if let Some((node, resource)) = self.index.dynamic(resource, reference, &self.scope) {
                fits &= self.and(node, resource, value, at, out, seen)?;
            }
        }
        for node in schema.get("allOf").map_or(&[][..], list) {
            fits &= self.and(node, resource, value, at, out, seen)?;
        }
        if let Some(Json::Array(branches)) = schema.get("anyOf") {
            fits &= self.any(branches, resource, value, at, out, seen)?;
        }
        if let Some(Json::Array(branches)) = schema.get("oneOf") {
            fits &= self.one(branches, resource, value, at, out, seen)?;
        }
        if let Some(node) = schema.get("not") {
            if self.check(node, resource, value, at, None)?.is_some() {
                expected(out, at, value, || match (node.get("enum"), node.get("const")) {
                    (Some(Json::Array(values)), _) => {
                        format!("a value other than {}", one_of(values))
                    }
                    (_, Some(only)) => format!("a value other than {}", written(only)),
                    _ => "another value".to_owned(),
                });
                fits = false;
            }
        }
        if let Some(condition) = schema.get("if") {
            let met = self.check(condition, resource, value, at, None)?;
            let then = if met.is_some() { "then" } else { "else" };
            seen.add(met.unwrap_or_default());
            if let Some(node) = schema.get(then) {
                fits &= self.and(node, resource, value, at, out, seen)?;
            }
        }
        Ok(fits)
    }

    fn and<'v>(
        &mut self,
        node: &'s Json,
        resource: usize,
        value: &'v Json,
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        let found = self.check(node, resource, value, at, out.as_deref_mut())?;
        let fits = found.is_some();
        seen.add(found.unwrap_or_default());
        Ok(fits)
    }

    fn any<'v>(
        &mut self,
        branches: &'s [Json],
        resource: usize,
        value: &'v Json,
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        let mut fits = false;
        for node in branches {
            let found = self.check(node, resource, value, at, None)?;
            fits |= found.is_some();
            seen.add(found.unwrap_or_default());
            if fits && !self.index.unevaluated {
                return Ok(true);
            }
        }
        if !fits {
            self.nearest(branches, resource, value, at, out)?;
        }
        Ok(fits)
    }

    fn one<'v>(
        &mut self,
        branches: &'s [Json],
        resource: usize,
        value: &'v Json,
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        let mut fitting = 0;
        for node in branches {
            let found = self.check(node, resource, value, at, None)?;
            fitting += usize::from(found.is_some());
            seen.add(found.unwrap_or_default());
        }
        match fitting {
            1 => {}
            0 => self.nearest(branches, resource, value, at, out)?,
            _ => expected(out, at, value, || {
                format!("a value of one form only, and it fits {fitting} of {}", branches.len())
            }),
        }
        Ok(fitting == 1)
    }

    /// The mistakes of the branch that the value was meant for: the only one whose mistakes are
    /// inside of the value. Else the forms that a value may have.
    fn nearest(
        &mut self,
        branches: &'s [Json],
        resource: usize,
        value: &Json,
        at: Path,
        out: &mut Out,
    ) -> Result<(), Stop> {
        let Some(found) = out else { return Ok(()) };
        let mut here = String::new();
        at.write(&mut here);
        let mut inside = Vec::new();
        let mut forms: Vec<String> = Vec::new();
        let mut are_types = true;
        for node in branches {
            let mut mistakes = Vec::new();
            self.check(node, resource, value, at, Some(&mut mistakes))?;
            if mistakes.iter().all(|mistake| mistake.path != here) {
                inside.push(mistakes);
                continue;
            }
            for mistake in mistakes {
                match mistake.wrong {
                    Wrong::Value { expected, .. } if mistake.path == here => {
                        are_types = false;
                        forms.push(expected);
                    }
                    Wrong::Form { expected, .. } if mistake.path == here => forms.push(expected),
                    _ => {}
                }
            }
        }
        if let [_] = inside.as_slice() {
            found.extend(inside.remove(0).into_iter().take(MISTAKES - found.len().min(MISTAKES)));
            return Ok(());
        }
        forms.dedup();
        forms.truncate(LISTED);
        let expected = match (forms.as_slice(), inside.len()) {
            ([], _) => format!("a value of one of its {} forms", branches.len()),
            (forms, 0) => forms.join(" or "),
            (forms, _) => format!("{} or an object of another form", forms.join(" or ")),
        };
        wrong(out, at, || match are_types {
            true => Wrong::Form { expected, got: excerpt(value) },
            false => Wrong::Value { expected, got: excerpt(value) },
        });
        Ok(())
    }

    fn object<'v>(
        &mut self,
        schema: &'s Map<String, Json>,
        resource: usize,
        members: &'v Map<String, Json>,
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        self.step(members.len())?;
        let mut fits = counted(schema, members, at, out);
        for name in schema.get("required").and_then(Json::as_array).into_iter().flatten() {
            let name = name.as_str().unwrap_or("");
            if !members.contains_key(name) {
                wrong(out, Path::Key(&at, name), || Wrong::Missing);
                fits = false;
            }
        }
        fits &= self.dependencies(schema, resource, members, at, out, seen)?;
        if let Some(node) = schema.get("propertyNames") {
            for name in members.keys() {
                let key = Json::from(name.as_str());
                fits &= self.part(node, resource, &key, Path::Key(&at, name), out)?;
            }
        }
        let known = schema.get("properties").and_then(Json::as_object);
        let patterns = schema.get("patternProperties").and_then(Json::as_object);
        let additional = schema.get("additionalProperties");
        for (name, value) in members {
            if !fits && is_decided(out) {
                return Ok(false);
            }
            let below = Path::Key(&at, name);
            let mut found = false;
            if let Some(node) = known.and_then(|known| known.get(name)) {
                found = true;
                fits &= self.part(node, resource, value, below, out)?;
            }
            for (pattern, node) in patterns.into_iter().flatten() {
                if self.matches(pattern, name)? {
                    found = true;
                    fits &= self.part(node, resource, value, below, out)?;
                }
            }
            if let (false, Some(node)) = (found, additional) {
                found = true;
                fits &= self.more(node, resource, value, below, out, known)?;
            }
            if found && self.index.unevaluated {
                seen.keys.insert(name);
            }
        }
        if let Some(node) = schema.get("unevaluatedProperties") {
            for (name, value) in members.iter().filter(|(name, _)| !seen.keys.contains(&***name)) {
                fits &= self.more(node, resource, value, Path::Key(&at, name), out, None)?;
            }
            seen.keys.extend(members.keys().map(String::as_str));
        }
        Ok(fits)
    }

    /// The keys and schemas that a key asks for.
    fn dependencies<'v>(
        &mut self,
        schema: &'s Map<String, Json>,
        resource: usize,
        members: &'v Map<String, Json>,
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        let mut fits = true;
        for keyword in ["dependentRequired", "dependentSchemas", "dependencies"] {
            let rules = schema.get(keyword).and_then(Json::as_object).into_iter().flatten();
            for (_, rule) in rules.filter(|(key, _)| members.contains_key(*key)) {
                if let Json::Array(names) = rule {
                    let names = names.iter().filter_map(Json::as_str);
                    for name in names.filter(|name| !members.contains_key(*name)) {
                        wrong(out, Path::Key(&at, name), || Wrong::Missing);
                        fits = false;
                    }
                } else {
                    // The value is in hand only as its members, which a schema sees as a value.
                    let value = Json::Object(members.clone());
                    self.step(size(&value) / 16)?;
                    let found = self.check(rule, resource, &value, at, out.as_deref_mut())?;
                    fits &= found.is_some();
                    let keys = found.map(|found| found.keys).unwrap_or_default();
                    let keys = keys.iter().filter_map(|key| members.get_key_value(*key));
                    seen.keys.extend(keys.map(|(key, _)| key.as_str()));
                }
            }
        }
        Ok(fits)
    }

    fn list<'v>(
        &mut self,
        schema: &'s Map<String, Json>,
        resource: usize,
        items: &'v [Json],
        at: Path,
        out: &mut Out,
        seen: &mut Seen<'v>,
    ) -> Result<bool, Stop> {
        self.step(items.len())?;
        let mut fits = true;
        let (least, most) = (count(schema, "minItems"), count(schema, "maxItems"));
        if !within(items.len(), least, most) {
            wrong(out, at, || Wrong::Value {
                expected: format!("a list of {} items", range(least, most)),
                got: items.len().to_string(),
            });
            fits = false;
        }
        if schema.get("uniqueItems") == Some(&Json::Bool(true)) && items.len() > 1 {
            self.step(items.iter().map(size).sum::<usize>() / 8)?;
            let mut known = HashSet::new();
            if let Some(twice) = items.iter().find(|item| !known.insert(canonical(item))) {
                wrong(out, at, || Wrong::Value {
                    expected: "a list without repetitions".to_owned(),
                    got: format!("{} twice", written(twice)),
                });
                fits = false;
            }
        }
        // A list of `items` is the `prefixItems` of older drafts.
        let (prefix, rest) = match (schema.get("prefixItems"), schema.get("items")) {
            (None, Some(Json::Array(prefix))) => (&prefix[..], schema.get("additionalItems")),
            (prefix, rest) => (prefix.map_or(&[][..], list), rest),
        };
        for (place, item) in items.iter().enumerate() {
            if !fits && is_decided(out) {
                return Ok(false);
            }
            let Some(node) = prefix.get(place).or(rest) else { break };
            let below = Path::Item(&at, place);
            fits &= self.part(node, resource, item, below, out)?;
        }
        let looked_at = if rest.is_some() { items.len() } else { prefix.len() };
        seen.items = seen.items.max(looked_at);
        if let Some(node) = schema.get("contains") {
            let mut found = 0;
            for (place, item) in items.iter().enumerate() {
                if self.check(node, resource, item, Path::Item(&at, place), None)?.is_some() {
                    found += 1;
                    seen.others.insert(place);
                }
            }
            let least = Some(count(schema, "minContains").unwrap_or(1));
            let most = count(schema, "maxContains");
            if !within(found, least, most) {
                wrong(out, at, || Wrong::Value {
                    expected: format!("a list with {} items of a form", range(least, most)),
                    got: found.to_string(),
                });
                fits = false;
            }
        }
        if let Some(node) = schema.get("unevaluatedItems") {
            for (place, item) in items.iter().enumerate().skip(seen.items) {
                if !seen.others.contains(&place) {
                    let below = Path::Item(&at, place);
                    fits &= self.part(node, resource, item, below, out)?;
                }
            }
            seen.items = items.len();
        }
        Ok(fits)
    }
}

fn list(value: &Json) -> &[Json] {
    match value {
        Json::Array(items) => items,
        one => std::slice::from_ref(one),
    }
}

fn names(known: Option<&Map<String, Json>>) -> Vec<String> {
    known.into_iter().flat_map(Map::keys).cloned().collect()
}

fn counted(
    schema: &Map<String, Json>,
    members: &Map<String, Json>,
    at: Path,
    out: &mut Out,
) -> bool {
    let (least, most) = (count(schema, "minProperties"), count(schema, "maxProperties"));
    let fits = within(members.len(), least, most);
    if !fits {
        wrong(out, at, || Wrong::Value {
            expected: format!("an object of {} keys", range(least, most)),
            got: members.len().to_string(),
        });
    }
    fits
}

fn numbers(
    schema: &Map<String, Json>,
    number: &Number,
    value: &Json,
    at: Path,
    out: &mut Out,
) -> bool {
    let bound = |key: &str| schema.get(key).and_then(Json::as_number);
    // Draft 4 has a boolean beside the bound.
    let excludes = |key: &str| schema.get(key) == Some(&Json::Bool(true));
    let rules = [
        (bound("minimum"), excludes("exclusiveMinimum"), true),
        (bound("exclusiveMinimum"), true, true),
        (bound("maximum"), excludes("exclusiveMaximum"), false),
        (bound("exclusiveMaximum"), true, false),
    ];
    for (bound, exclusive, is_least) in rules {
        let Some(bound) = bound else { continue };
        let order = order(number, bound);
        let fits = match (order, exclusive) {
            (std::cmp::Ordering::Equal, exclusive) => !exclusive,
            (std::cmp::Ordering::Greater, _) => is_least,
            (std::cmp::Ordering::Less, _) => !is_least,
        };
        if !fits {
            let words = match (is_least, exclusive) {
                (true, false) => "a number from",
                (true, true) => "a number above",
                (false, false) => "a number up to",
                (false, true) => "a number below",
            };
            let on = if is_least && !exclusive { " on" } else { "" };
            expected(out, at, value, || format!("{words} {bound}{on}"));
            return false;
        }
    }
    if let Some(step) = bound("multipleOf") {
        if !is_multiple(number, step) {
            expected(out, at, value, || format!("a multiple of {step}"));
            return false;
        }
    }
    true
}

fn is_multiple(number: &Number, step: &Number) -> bool {
    if let (Some(number), Some(step)) = (number.as_i64(), step.as_i64()) {
        return step == 0 || number % step == 0;
    }
    let (number, step) = (float(number), float(step));
    let times = number / step;
    // Decimal steps such as 0.01 are no sums of powers of two.
    step == 0.0 || (times - times.round()).abs() <= 1e-9 * times.abs().max(1.0)
}

fn float(number: &Number) -> f64 {
    number.as_f64().unwrap_or(f64::NAN)
}

fn order(one: &Number, other: &Number) -> std::cmp::Ordering {
    match (one.as_i64(), other.as_i64()) {
        (Some(one), Some(other)) => one.cmp(&other),
        _ => float(one).total_cmp(&float(other)),
    }
}

fn count(schema: &Map<String, Json>, key: &str) -> Option<usize> {
    let number = schema.get(key)?.as_f64().filter(|number| *number >= 0.0)?;
    Some(number as usize)
}

fn within(number: usize, least: Option<usize>, most: Option<usize>) -> bool {
    least.is_none_or(|least| number >= least) && most.is_none_or(|most| number <= most)
}

fn range(least: Option<usize>, most: Option<usize>) -> String {
    match (least, most) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("at least {least}"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => String::new(),
    }
}

/// Whether a value has a type. One that does not exist is that of every value.
pub(super) fn has_type(value: &Json, name: &Json) -> bool {
    match name.as_str() {
        Some("null") => value.is_null(),
        Some("boolean") => value.is_boolean(),
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("number") => value.is_number(),
        Some("integer") => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|n| n.fract() == 0.0)
        }
        _ => true,
    }
}

/// Whether two values are the same: 1 is 1.0, and keys have no order.
fn same(one: &Json, other: &Json) -> bool {
    match (one, other) {
        (Json::Number(one), Json::Number(other)) => order(one, other).is_eq(),
        (Json::Array(one), Json::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Json::Object(one), Json::Object(other)) => {
            one.len() == other.len()
                && one
                    .iter()
                    .all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
        }
        (one, other) => one == other,
    }
}

/// A text that is the same for the same values.
fn canonical(value: &Json) -> String {
    match value {
        Json::Number(number) if number.is_f64() && float(number).fract() == 0.0 => {
            format!("{:.0}", float(number))
        }
        Json::Array(items) => {
            format!("[{}]", items.iter().map(canonical).collect::<Vec<_>>().join(","))
        }
        Json::Object(members) => {
            let pair = |(key, value): (&String, &Json)| {
                format!("{}:{}", Json::from(key.as_str()), canonical(value))
            };
            let mut pairs: Vec<_> = members.iter().map(pair).collect();
            pairs.sort_unstable();
            format!("{{{}}}", pairs.join(","))
        }
        other => other.to_string(),
    }
}

/// About the bytes of a value.
fn size(value: &Json) -> usize {
    match value {
        Json::String(text) => text.len() + 2,
        Json::Array(items) => 2 + items.iter().map(size).sum::<usize>(),
        Json::Object(members) => {
            2 + members.iter().map(|(key, value)| key.len() + 4 + size(value)).sum::<usize>()
        }
        _ => 4,
    }
}

/// A pattern of ECMAScript, in linear time. `None` for one that cannot be read, or that is so large
/// that it would take much memory.
fn compiled(pattern: &str) -> Option<Regex> {
    let config = Config::new().nfa_size_limit(Some(PATTERN)).hybrid_cache_capacity(PATTERN);
    Regex::builder().configure(config).build(&ascii(pattern)).ok()
}

/// The classes of ECMAScript, which mean ASCII there.
fn ascii(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let (mut chars, mut is_class) = (pattern.chars(), false);
    while let Some(c) = chars.next() {
        match (c, is_class) {
            ('[', false) => is_class = true,
            (']', true) => is_class = false,
            // A class within a class, which only other dialects have.
            ('[' | '&' | '~', true) => out.push('\\'),
            ('\\', _) => {
                let bare = match chars.next() {
                    Some('d') => "0-9",
                    Some('w') => "A-Za-z0-9_",
                    Some(other) => {
                        out.push('\\');
                        out.push(other);
                        continue;
                    }
                    None => continue,
                };
                out.push_str(&if is_class { bare.to_owned() } else { format!("[{bare}]") });
                continue;
            }
            _ => {}
        }
        out.push(c);
    }
    out
}
