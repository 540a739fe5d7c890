//! `flags`: the flags of a command, each with its type.
//!
//! ```yaml
//! flags:
//!   title: text
//!   limit: {type: integer, min: 1, max: 100, default: 20, description: How many}
//!   status: {values: [open, closed], repeatable: true}
//! ```
//!
//! A declaration fails closed. With one mistake in it the command does not run: a key that is
//! misspelt or a bound that cannot be read might have refused a value.

use std::ops::Range;

use rustc_hash::FxHashSet;
use strsim::jaro_winkler;

use super::place::line_of;
use super::typed::{describe, meant_flag};
use super::FieldReader;
use crate::page::declaration::{flag_name, schema, Flag, Given, Pattern, Positional, Type};
use crate::page::diagnostic::{limit, Code, Diagnostic, Fix, Severity, MAX_PER_CODE};
use crate::page::frontmatter;
use crate::schema::{json as schema_json, Schema};
use crate::text::line::push_line;
use crate::value::Value;

/// The name of the field.
pub(crate) const FLAGS: &str = "flags";

/// The limits of a declaration: flags, characters of a name, values of a flag, characters of a
/// value, characters of a text.
const MOST_FLAGS: usize = 100;
const LONGEST_NAME: usize = 64;
const MOST_VALUES: usize = 500;
const LONGEST_VALUE: usize = 200;
const LONGEST_TEXT: i64 = 1_000_000;

/// The similarity above which an unknown key is probably a misspelt one.
const CLOSE: f64 = 0.85;

/// The end of every message.
pub(super) const CLOSED: &str =
    "; the command does not run, because it might take values that its author \
                      meant to refuse";

const KEYS: [&str; 16] = [
    "type",
    "values",
    "min",
    "max",
    "max_length",
    "line",
    "empty",
    "pattern",
    "words",
    "required",
    "default",
    "repeatable",
    "description",
    "aliases",
    "positional",
    "schema",
];

const TYPES: &str = "text, integer, number, boolean, one_of, date, datetime, email, url or json";

/// A type by its name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Integer,
    Number,
    Boolean,
    OneOf,
    Date,
    Datetime,
    Email,
    Url,
    Json,
}

/// The types by their names, the right one first.
const KINDS: [(Kind, &[&str]); 10] = [
    (Kind::Text, &["text", "string", "str"]),
    (Kind::Integer, &["integer", "int", "whole number"]),
    (Kind::Number, &["number", "float", "decimal"]),
    (Kind::Boolean, &["boolean", "bool", "switch"]),
    (Kind::OneOf, &["one_of", "one-of", "one of", "enum", "choice"]),
    (Kind::Date, &["date", "day"]),
    (Kind::Datetime, &["datetime", "date-time", "timestamp", "time"]),
    (Kind::Email, &["email", "e-mail"]),
    (Kind::Url, &["url", "uri"]),
    (Kind::Json, &["json"]),
];

impl Kind {
    /// The type, and its right name if the text is another name of it.
    fn named(text: &str) -> Option<(Kind, Option<&'static str>)> {
        let text = text.trim();
        KINDS.iter().find_map(|(kind, names)| {
            let at = names.iter().position(|name| name.eq_ignore_ascii_case(text))?;
            Some((*kind, (names[at] != text || at > 0).then_some(names[0])))
        })
    }
}

impl FieldReader<'_> {
    /// The flags of the field. `found` are the findings of the block's reader: a key that occurs
    /// twice below `flags` is an error here.
    pub(crate) fn flags(&mut self, found: &[Diagnostic], repeated: &[String]) -> Option<Given> {
        if let Some(given) = self.input_schema() {
            return Some(given);
        }
        let mut reader =
            FlagReader { fields: self, given: Given::default(), names: FxHashSet::default() };
        let Some(value) = reader.fields.data.get(FLAGS) else {
            let Value::Map(pairs) = reader.fields.data else { return None };
            let key = pairs.iter().map(|(key, _)| key).find(|key| is_misspelt(key))?;
            let hint = "write for example flags: {limit: integer}";
            reader.refuse(&[key], format!("expected `flags`, got `{}`", excerpt(key)), hint);
            return Some(reader.given);
        };
        let twice = repeated.iter().any(|key| key == FLAGS);
        if twice || is_repeated(reader.fields.block, found) {
            let message = "expected each key of `flags` once, got one more than once";
            reader.refuse(&[FLAGS], message.to_owned(), "keep one of them");
        }
        match value {
            Value::Null => {}
            Value::Map(pairs) => {
                if pairs.len() > MOST_FLAGS {
                    let message =
                        format!("expected at most {MOST_FLAGS} flags, got {}", pairs.len());
                    reader.refuse(&[FLAGS], message, "split the command");
                }
                for (name, spec) in pairs.iter().take(MOST_FLAGS) {
                    reader.flag(name, spec);
                }
            }
            value => {
                let message =
                    format!("expected a mapping of names for `flags`, got {}", describe(value));
                reader.refuse(&[FLAGS], message, "write for example flags: {limit: integer}");
            }
        }
        limit(&mut reader.given.diagnostics);
        Some(reader.given)
    }
}

/// Reads the declarations one after the other.
struct FlagReader<'r, 'a> {
    fields: &'r mut FieldReader<'a>,
    given: Given,
    /// The names so far, in the spelling of comparisons.
    names: FxHashSet<String>,
}

impl FlagReader<'_, '_> {
    fn flag(&mut self, name: &str, spec: &Value) {
        let mut flag = Flag::named(name);
        self.name(name, name);
        let none = Vec::new();
        let pairs = match spec {
            Value::Map(pairs) => pairs,
            Value::Str(kind) => {
                match self.kind(name, kind) {
                    Some(Kind::OneOf) => {
                        let message = format!("expected values for --{name}, got only its type");
                        let hint = format!("write for example {name}: {{values: [low, high]}}");
                        self.refuse(&[name], message, &hint);
                    }
                    Some(kind) => {
                        flag.kind = plain(kind);
                        if kind == Kind::Json {
                            flag.schema = Schema::new(serde_json::Value::Bool(true)).ok();
                        }
                    }
                    None => {}
                }
                self.given.flags.push(flag);
                return;
            }
            other => {
                let message = format!(
                    "expected a type or a mapping for --{}, got {}",
                    excerpt(name),
                    describe(other)
                );
                let hint = format!("write for example {}: text", excerpt(name));
                self.refuse(&[name], message, &hint);
                &none
            }
        };
        for (key, _) in pairs.iter().filter(|(key, _)| !KEYS.contains(&key.as_str())) {
            let key = &excerpt(key);
            let close = KEYS
                .into_iter()
                .max_by(|one, other| jaro_winkler(one, key).total_cmp(&jaro_winkler(other, key)));
            let hint = match (key.as_str(), close) {
                ("enum" | "choices" | "options" | "one_of", _) => "did you mean `values`?".into(),
                ("maxLength" | "max-length" | "length", _) => "did you mean `max_length`?".into(),
                ("multiple" | "several" | "list", _) => "did you mean `repeatable`?".into(),
                ("minimum", _) => "did you mean `min`?".into(),
                ("maximum", _) => "did you mean `max`?".into(),
                (key, Some(close)) if jaro_winkler(key, close) > CLOSE => {
                    format!("did you mean `{close}`?")
                }
                _ => format!("the keys are {}", KEYS.join(", ")),
            };
            let message = format!("expected a key of a flag for --{name}, got `{key}`");
            self.refuse(&[name, key], message, &hint);
        }
        let spec = Spec { name, pairs };
        flag.kind = self.type_of(&spec);
        flag.schema = self.schema(&spec);
        flag.pattern = self.pattern(&spec, &flag.kind);
        flag.required = self.boolean(&spec, "required").unwrap_or(false);
        flag.several = self.boolean(&spec, "repeatable").unwrap_or(false);
        flag.positional = self.positional(&spec);
        match spec.get("description") {
            None | Some(Value::Null) => {}
            Some(_) => push_line(
                &mut flag.description,
                &self.text(&spec, "description").unwrap_or_default(),
            ),
        }
        if flag.several && flag.kind == Type::Switch {
            let message = format!("expected one value for --{name}, which is a boolean");
            self.refuse(&[name, "repeatable"], message, "leave out `repeatable`");
        }
        if let Some(schema) = flag.schema.clone() {
            if flag.several {
                let message = format!("expected no `repeatable` for --{name}, which has a schema");
                self.refuse(&[name, "repeatable"], message, "write a schema with type: array");
            }
            let described = std::mem::take(&mut flag.description);
            schema::describe(&schema, &mut flag);
            if !described.is_empty() {
                flag.description = described;
            }
        }
        for alias in self.texts(&spec, "aliases").unwrap_or_default() {
            self.name(name, &alias);
            flag.names.push(alias);
        }
        self.default(&spec, &mut flag);
        self.given.flags.push(flag);
    }

    /// Checks a name of a flag, which may be an alias.
    fn name(&mut self, flag: &str, name: &str) {
        let shown = excerpt(name);
        let starts = name.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        if name.chars().count() > LONGEST_NAME || !starts || flag_name(name) != name {
            let message = format!(
                "expected up to {LONGEST_NAME} letters, digits, `-` and `_` as a flag's name, got \
                 `{shown}`"
            );
            let plain = name.trim_start_matches('-');
            let hint = match flag_name(plain) {
                bare if !bare.is_empty() && bare == plain => format!("write `{}`", excerpt(bare)),
                _ => "write for example due-before".to_owned(),
            };
            self.refuse(&[flag], message, &hint);
        }
        // As handlers' flags are compared: without case, `-` and `_`.
        let folded: String =
            name.chars().filter(|c| !matches!(c, '-' | '_')).flat_map(char::to_lowercase).collect();
        if !self.names.insert(folded) {
            let message = format!("expected --{shown} once, got two flags that are spelled alike");
            self.refuse(&[flag], message, "rename or remove one of them");
        }
    }

    /// The type by its name.
    fn kind(&mut self, flag: &str, text: &str) -> Option<Kind> {
        match Kind::named(text) {
            Some((kind, None)) => Some(kind),
            Some((kind, Some(right))) => {
                let message =
                    format!("expected the type `{right}` for --{flag}, got `{}`", excerpt(text));
                self.mended(flag, "type", text, right, message);
                Some(kind)
            }
            None => {
                let message =
                    format!("expected the type {TYPES} for --{flag}, got \"{}\"", excerpt(text));
                let hint = match text.trim().to_lowercase().as_str() {
                    "list" | "array" => "write the type of one value, and repeatable: true",
                    _ => "write for example type: integer",
                };
                self.refuse(&[flag, "type"], message, hint);
                None
            }
        }
    }

    fn type_of(&mut self, spec: &Spec<'_>) -> Type {
        let named = match spec.get("type") {
            None => None,
            Some(Value::Str(text)) => match self.kind(spec.name, text) {
                Some(kind) => Some(kind),
                // Refused, so nothing else about its type needs to be said.
                None => return Type::Value,
            },
            Some(other) => {
                self.wrong(spec, "type", TYPES, other);
                return Type::Value;
            }
        };
        let is_number = spec.get("min").is_some() || spec.get("max").is_some();
        let kind = match named {
            Some(kind) => kind,
            None if spec.get("values").is_some() => Kind::OneOf,
            None if spec.get("schema").is_some() => Kind::Json,
            None if is_number => {
                let message = format!("expected a type for --{}, which has bounds", spec.name);
                let hint = "write type: integer or type: number; a text has max_length";
                self.refuse(&[spec.name], message, hint);
                return Type::Value;
            }
            None => Kind::Text,
        };
        self.only_for(spec, kind);
        match kind {
            Kind::Text => Type::Text {
                max: self.max_length(spec),
                line: self.boolean(spec, "line").unwrap_or(false),
                empty: self.boolean(spec, "empty").unwrap_or(false),
            },
            Kind::Integer => {
                let bounds = (self.integer(spec, "min"), self.integer(spec, "max"));
                self.ordered(spec, bounds.0.zip(bounds.1).is_some_and(|(min, max)| min > max));
                Type::Integer { min: bounds.0, max: bounds.1 }
            }
            Kind::Number => {
                let bounds = (self.number(spec, "min"), self.number(spec, "max"));
                self.ordered(spec, bounds.0.zip(bounds.1).is_some_and(|(min, max)| min > max));
                Type::Number { min: bounds.0, max: bounds.1 }
            }
            Kind::OneOf => Type::OneOf(self.values(spec)),
            Kind::Date => Type::Date { words: self.boolean(spec, "words").unwrap_or(false) },
            kind => plain(kind),
        }
    }

    /// Refuses keys that say nothing about values of this type.
    fn only_for(&mut self, spec: &Spec<'_>, kind: Kind) {
        let rules: [(&str, &[Kind], &str); 9] = [
            ("values", &[Kind::OneOf], "leave out `type`, or write type: one_of"),
            ("min", &[Kind::Integer, Kind::Number], "write type: integer or type: number"),
            ("max", &[Kind::Integer, Kind::Number], "a text has max_length"),
            ("max_length", &[Kind::Text], "leave it out"),
            ("line", &[Kind::Text], "leave it out"),
            ("empty", &[Kind::Text], "leave it out"),
            ("pattern", &[Kind::Text], "leave it out, or write type: text"),
            ("words", &[Kind::Date], "leave it out, or write type: date"),
            ("schema", &[Kind::Json], "leave out `type`, or write type: json"),
        ];
        let Some((_, names)) = KINDS.iter().find(|(own, _)| *own == kind) else { return };
        for (key, kinds, hint) in rules {
            if spec.get(key).is_some() && !kinds.contains(&kind) {
                let message =
                    format!("expected no `{key}` for --{}, whose type is {}", spec.name, names[0]);
                self.refuse(&[spec.name, key], message, hint);
            }
        }
    }

    /// The schema of a value in JSON: any value, if the flag has none of its own.
    fn schema(&mut self, spec: &Spec<'_>) -> Option<Schema> {
        let read = match spec.get("schema") {
            Some(field) => Schema::of_field(field),
            None => match spec.get("type").and_then(Value::as_str).and_then(Kind::named) {
                Some((Kind::Json, _)) => Schema::new(serde_json::Value::Bool(true)),
                _ => return None,
            },
        };
        match read {
            Ok(schema) => Some(schema),
            Err(message) => {
                let message = format!("{message} in `schema` of --{}", spec.name);
                self.refuse(&[spec.name, "schema"], message, "write a JSON Schema");
                None
            }
        }
    }

    fn ordered(&mut self, spec: &Spec<'_>, wrong: bool) {
        if wrong {
            let message = format!("expected `min` below `max` for --{}", spec.name);
            self.refuse(&[spec.name, "min"], message, "exchange them");
        }
    }

    fn values(&mut self, spec: &Spec<'_>) -> Vec<String> {
        let values = match spec.get("values") {
            Some(_) => self.texts(spec, "values").unwrap_or_default(),
            None => {
                let message = format!("expected `values` for --{}, got none", spec.name);
                self.refuse(&[spec.name], message, "write for example values: [low, high]");
                Vec::new()
            }
        };
        // As handlers' flags are compared: without case, and with `_` for `-` and blanks.
        let mut folded = FxHashSet::default();
        let fold = |value: &str| value.trim().to_lowercase().replace(['-', ' '], "_");
        if let Some(twice) = values.iter().find(|value| !folded.insert(fold(value))) {
            let message = format!(
                "expected different `values` for --{}, got `{}` twice",
                spec.name,
                excerpt(twice)
            );
            self.refuse(&[spec.name, "values"], message, "remove one of them");
        }
        values
    }

    fn pattern(&mut self, spec: &Spec<'_>, kind: &Type) -> Option<Pattern> {
        let text = self.text(spec, "pattern")?;
        if !matches!(kind, Type::Text { .. }) {
            return None;
        }
        match Pattern::read(&text) {
            Ok(pattern) => Some(pattern),
            Err(error) => {
                let message = format!(
                    "expected a plain regular expression as the `pattern` of --{}, got \
                     \"{}\": {} at character {}",
                    spec.name,
                    excerpt(&text),
                    error.message,
                    text[..error.offset].chars().count() + 1
                );
                let hint = "write for example pattern: '[A-Z]{2}-[0-9]+', which must match all of \
                            the value";
                self.refuse(&[spec.name, "pattern"], message, hint);
                None
            }
        }
    }

    fn positional(&mut self, spec: &Spec<'_>) -> Option<Positional> {
        let value = spec.get("positional")?;
        self.given.placed = true;
        match value.typed() {
            Value::Bool(true) => Some(Positional::One),
            Value::Bool(false) => None,
            Value::Str(text) if text == "all" => Some(Positional::All),
            _ => {
                self.wrong(spec, "positional", "true, false or all", value);
                None
            }
        }
    }

    fn default(&mut self, spec: &Spec<'_>, flag: &mut Flag) {
        let is_json = flag.schema.is_some();
        let text = |value: &Value| match value {
            Value::Str(text) => Some(text.clone()),
            Value::List(_) | Value::Map(_) if is_json => Some(schema_json(value).to_string()),
            other => other.plain(),
        };
        let default: Option<Vec<String>> = match spec.get("default") {
            None | Some(Value::Null) => return,
            Some(Value::List(items)) if flag.several && !is_json => {
                items.iter().map(text).collect()
            }
            Some(value) => text(value).map(|text| vec![text]),
        };
        let default = match (default, spec.get("default")) {
            (Some(default), _) if default.len() <= MOST_VALUES => default,
            (_, Some(value)) => {
                let expected = if flag.several { "values" } else { "one value" };
                return self.wrong(spec, "default", expected, value);
            }
            _ => return,
        };
        if flag.required {
            let message = format!("expected no `default` for --{}, which is required", spec.name);
            self.refuse(&[spec.name, "default"], message, "remove `required` or `default`");
        }
        if let Some(wrong) = default.iter().find(|value| !flag.takes(value)) {
            let message = format!(
                "expected one of its values as the `default` of --{}, got \"{}\"",
                spec.name,
                excerpt(wrong)
            );
            self.refuse(&[spec.name, "default"], message, "correct the default or the values");
        }
        flag.default = default;
    }

    fn boolean(&mut self, spec: &Spec<'_>, key: &'static str) -> Option<bool> {
        let value = spec.get(key)?;
        if let Value::Bool(flag) = value.typed() {
            return Some(*flag);
        }
        match (meant_flag(value), value) {
            (Some(meant), Value::Str(text)) => {
                let right = if meant { "true" } else { "false" };
                let message =
                    format!("expected {right} for `{key}` of --{}, got \"{text}\"", spec.name);
                self.mended(spec.name, key, text, right, message);
                Some(meant)
            }
            _ => {
                self.wrong(spec, key, "true or false", value);
                None
            }
        }
    }

    fn integer(&mut self, spec: &Spec<'_>, key: &'static str) -> Option<i64> {
        let value = spec.get(key)?;
        match value.typed() {
            Value::Int(number) => Some(*number),
            _ => {
                self.wrong(spec, key, "a whole number", value);
                None
            }
        }
    }

    fn number(&mut self, spec: &Spec<'_>, key: &'static str) -> Option<f64> {
        let value = spec.get(key)?;
        match value.typed() {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) if number.is_finite() => Some(*number),
            _ => {
                self.wrong(spec, key, "a number", value);
                None
            }
        }
    }

    fn max_length(&mut self, spec: &Spec<'_>) -> Option<u64> {
        let value = spec.get("max_length")?;
        match value.typed() {
            Value::Int(number @ 1..=LONGEST_TEXT) => Some(*number as u64),
            _ => {
                self.wrong(spec, "max_length", "a number of characters, from 1 to 1000000", value);
                None
            }
        }
    }

    fn text(&mut self, spec: &Spec<'_>, key: &'static str) -> Option<String> {
        let value = spec.get(key)?;
        match value.plain() {
            Some(text) => Some(text),
            None => {
                self.wrong(spec, key, "text", value);
                None
            }
        }
    }

    fn texts(&mut self, spec: &Spec<'_>, key: &'static str) -> Option<Vec<String>> {
        let value = spec.get(key)?;
        let texts: Option<Vec<String>> = match value {
            Value::List(items) => items.iter().map(Value::plain).collect(),
            _ => None,
        };
        let fits = |texts: &Vec<String>| {
            (1..=MOST_VALUES).contains(&texts.len())
                && texts.iter().all(|text| {
                    text.chars().count() <= LONGEST_VALUE && !text.contains(char::is_control)
                })
        };
        let texts = texts.filter(fits);
        if texts.is_none() {
            let expected =
                format!("a list of 1 to {MOST_VALUES} texts of up to {LONGEST_VALUE} characters");
            self.wrong(spec, key, &expected, value);
        }
        texts
    }

    fn wrong(&mut self, spec: &Spec<'_>, key: &str, expected: &str, value: &Value) {
        let message =
            format!("expected {expected} for `{key}` of --{}, got {}", spec.name, describe(value));
        let hint = match key {
            "values" | "aliases" => format!("write for example {key}: [low, high]"),
            "type" => "write for example type: integer".to_owned(),
            "min" | "max" | "max_length" => format!("write for example {key}: 100"),
            "default" => "write one value, or a list for a repeatable flag".to_owned(),
            "pattern" => "put it in single quotes".to_owned(),
            "description" => "put it in quotes".to_owned(),
            _ => format!("write for example {key}: true"),
        };
        self.refuse(&[spec.name, key], message, &hint);
    }

    /// Adds an error, at the place of a key below `flags`.
    fn refuse(&mut self, path: &[&str], message: String, hint: &str) {
        self.given.error.get_or_insert_with(|| message.clone());
        let diagnostic =
            Diagnostic::new(Code::FlagsInvalid, Severity::Error, message + CLOSED).hint(hint);
        self.push(path, diagnostic);
    }

    /// Adds a warning for a word with another name, and a fix.
    fn mended(&mut self, flag: &str, key: &str, word: &str, right: &str, message: String) {
        let fix = self.renamed(flag, key, word, right);
        let diagnostic = Diagnostic::new(Code::FieldMended, Severity::Warning, message)
            .hint(format!("write {right}"));
        self.push(&[flag, key], diagnostic.fix(fix));
    }

    fn push(&mut self, path: &[&str], diagnostic: Diagnostic) {
        // A place takes a search of the block, and only so many findings are shown.
        let is_shown = self.given.diagnostics.len() < MAX_PER_CODE;
        let diagnostic = match is_shown.then(|| place(self.fields.block, path)).flatten() {
            Some((line, column, _)) => diagnostic.at(line, column),
            None => diagnostic,
        };
        self.given.diagnostics.push(diagnostic);
    }

    /// A fix that replaces a word behind a key, if everything else then reads the same.
    fn renamed(&self, flag: &str, key: &str, word: &str, right: &str) -> Option<Fix> {
        if self.given.diagnostics.len() >= MAX_PER_CODE {
            return None;
        }
        let block = self.fields.block;
        let mut meant = self.fields.data.get(FLAGS)?.clone();
        let Value::Map(flags) = &mut meant else { return None };
        let (_, spec) = flags.iter_mut().find(|(name, _)| name == flag)?;
        let value = match right {
            "true" | "false" => Value::Bool(right == "true"),
            right => Value::Str(right.to_owned()),
        };
        let path = match spec {
            Value::Map(pairs) => {
                pairs.iter_mut().find(|(own, _)| own == key)?.1 = value;
                [flag, key].to_vec()
            }
            spec => {
                *spec = value;
                vec![flag]
            }
        };
        let (_, _, range) = place(block, &path)?;
        let line = block[range.end..].split('\n').next()?;
        let at = range.end + line.find(word)?;
        let fix = Fix { range: at..at + word.len(), replacement: right.to_owned() };
        self.fields.proven(FLAGS, &meant, fix)
    }
}

/// The declaration of one flag.
struct Spec<'a> {
    name: &'a str,
    pairs: &'a [(String, Value)],
}

impl<'a> Spec<'a> {
    fn get(&self, key: &str) -> Option<&'a Value> {
        self.pairs.iter().find(|(own, _)| own == key).map(|(_, value)| value)
    }
}

/// A type without limits.
fn plain(kind: Kind) -> Type {
    match kind {
        Kind::Text => Type::Text { max: None, line: false, empty: false },
        Kind::Integer => Type::Integer { min: None, max: None },
        Kind::Number => Type::Number { min: None, max: None },
        Kind::Boolean => Type::Switch,
        Kind::OneOf => Type::OneOf(Vec::new()),
        Kind::Date => Type::Date { words: false },
        Kind::Datetime => Type::Datetime,
        Kind::Email => Type::Email,
        Kind::Url => Type::Url,
        Kind::Json => Type::Json("any value".to_owned()),
    }
}

/// Whether a key of a command was meant as `flags`.
fn is_misspelt(key: &str) -> bool {
    let plain: String = key
        .chars()
        .filter(|c| c.is_alphanumeric())
        .flat_map(char::to_lowercase)
        .take(FLAGS.len() + 2)
        .collect();
    key != FLAGS && strsim::osa_distance(&plain, FLAGS) <= 1
}

/// Whether the block's reader found a key twice on a line of `flags`, or so many findings that it
/// did not list all of them.
fn is_repeated(block: &str, found: &[Diagnostic]) -> bool {
    let twice: Vec<_> = found.iter().filter(|found| found.code == Code::DuplicateKey).collect();
    let lines =
        region(block).map(|(first, lines)| first..first + block[lines].lines().count() as u32);
    twice.iter().any(|found| match (&lines, found.line) {
        (Some(lines), Some(line)) => lines.contains(&line),
        _ => true,
    }) || found
        .iter()
        .filter(|found| matches!(found.code, Code::DuplicateKey | Code::FrontmatterTag))
        .count()
        >= frontmatter::FINDINGS
}

/// The number of the field's first line, and the bytes of its lines.
fn region(block: &str) -> Option<(u32, Range<usize>)> {
    let (first, start) = line_of(block, FLAGS)?;
    let mut end = start;
    for (at, line) in block[start..].split_inclusive('\n').enumerate() {
        if at > 0 && !line.starts_with([' ', '\t', '#', '}']) && !line.trim().is_empty() {
            break;
        }
        end += line.len();
    }
    Some((first, start..end))
}

/// The line and column of the last key of a path below `flags`, and its bytes with the colon. A key
/// that is written in another form has the place of the key before it.
fn place(block: &str, path: &[&str]) -> Option<(u32, u32, Range<usize>)> {
    let (_, region) = region(block)?;
    let mut at = region.start..region.start + FLAGS.len() + 1;
    let mut rest = region.start + FLAGS.len();
    for key in path.iter().filter(|key| **key != FLAGS && !key.is_empty()) {
        let Some(found) = key_in(&block[rest..region.end], key) else { break };
        at = rest + found.start..rest + found.end;
        rest = at.end;
    }
    let place = frontmatter::place(block.as_bytes(), at.start);
    Some((place.line, place.column, at))
}

/// The first place of a key with its colon. Before it only marks of YAML and blanks may stand.
fn key_in(text: &str, key: &str) -> Option<Range<usize>> {
    text.match_indices(key).find_map(|(at, _)| {
        let before = text[..at].trim_end_matches(['"', '\'']);
        let begins = before.is_empty()
            || before.ends_with(['\n', '{', ','])
            || before.ends_with([' ', '\t'])
                && before.trim_end_matches([' ', '\t']).ends_with(['\n', '{', ',']);
        let after = text[at + key.len()..].trim_start_matches(['"', '\'']);
        let colon = after.trim_start_matches(' ').starts_with(':');
        let end = text.len() - after.len() + after.find(':').unwrap_or(0) + 1;
        (begins && colon).then_some(at..end)
    })
}

/// A part of the page in a message.
fn excerpt(text: &str) -> String {
    text.chars().take(60).collect()
}

#[cfg(test)]
mod tests;
