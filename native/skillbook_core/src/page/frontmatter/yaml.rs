//! The YAML library's reading of a block, as a [`Value`], and its complaints in plain words.

use super::{ErrorKind, BLOCK_LINE, MAX_BLOCK, MAX_DEPTH};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::value::Value;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt;

/// What a block's values may cost: one for each and one for each byte of its text. Only aliases get that far.
const BUDGET: usize = 2 * MAX_BLOCK;

/// How many brackets may be open at once, in values and in text alike. The library's time for each token grows with the
/// open ones, so that half a megabyte of them takes minutes.
const OPEN_BRACKETS: usize = 256;

/// How many findings of a block are reported one by one. Each takes a reading of its own.
const FINDINGS: usize = 5;

/// Mappings up to this size are searched, larger ones get an index.
const INDEX_FROM: usize = 32;

/// A block that was read.
pub(super) struct Loaded {
    /// Always a mapping.
    pub data: Value,
    pub diagnostics: Vec<Diagnostic>,
}

/// A block that was not.
pub(super) struct Failure {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: &'static str,
    /// In bytes of the block.
    pub offset: usize,
    /// The anchor that is missing, where that is what is wrong.
    pub unknown_anchor: Option<String>,
}

impl Failure {
    fn new(kind: ErrorKind, message: impl Into<String>, hint: &'static str, offset: usize) -> Self {
        Failure { kind, message: message.into(), hint, offset, unknown_anchor: None }
    }
}

/// Reads a block that must hold a mapping or nothing.
pub(super) fn load(block: &str) -> Result<Loaded, Failure> {
    let (value, diagnostics) = value(block)?;
    match value {
        Value::Map(_) => Ok(Loaded { data: value, diagnostics }),
        Value::Null => Ok(Loaded { data: Value::Map(Vec::new()), diagnostics }),
        other => {
            let start = block.len() - block.trim_start().len();
            let hint = match other {
                Value::Str(text) if text.contains(':') => {
                    "write a blank after the colon: `key: value`"
                }
                _ => "write `key: value` lines",
            };
            Err(Failure::new(
                ErrorKind::NotMapping,
                "expected `key: value` lines, got a single value or a list",
                hint,
                start,
            ))
        }
    }
}

/// Reads a block that may hold anything.
pub(super) fn value(block: &str) -> Result<(Value, Vec<Diagnostic>), Failure> {
    if let Some(offset) = unprintable(block) {
        let character = block[offset..].chars().next().unwrap_or_default();
        let message =
            format!("a control character, U+{:04X}, is not allowed in YAML", character as u32);
        return Err(Failure::new(ErrorKind::Invalid, message, "delete it", offset));
    }
    if let Some(offset) = too_many_brackets(block) {
        return Err(too_deep(offset));
    }
    let reading = Reading::new(None);
    let value = reading.run(block).map_err(|error| reading.failure(block, &error))?;
    let found = reading.found.get();
    let mut diagnostics: Vec<_> =
        (0..found.min(FINDINGS)).filter_map(|number| finding(block, number)).collect();
    // An alias shows the same place again.
    diagnostics.dedup();
    if found > FINDINGS {
        let message =
            format!("{} more keys are written twice or values have a tag", found - FINDINGS);
        diagnostics.push(Diagnostic::new(Code::DuplicateKey, Severity::Warning, message));
    }
    Ok((value, diagnostics))
}

/// The visitor of a value is not told where it is, but an error is: a reading that fails at the finding says where.
fn finding(block: &str, number: usize) -> Option<Diagnostic> {
    let reading = Reading::new(Some(number));
    let error = reading.run(block).err()?;
    let (line, column) = line_and_column(block, offset(block, &error));
    match reading.stop.take()? {
        Stop::Duplicate(key) => {
            let message = format!("`{key}` is written more than once; the last one is used");
            let hint = "keep one of them";
            Some(
                Diagnostic::new(Code::DuplicateKey, Severity::Warning, message)
                    .at(line, column)
                    .hint(hint),
            )
        }
        Stop::Tag(tag) => {
            let name = tag.trim_start_matches('!');
            let message = format!("the tag `!{name}` is not part of the value and is left out");
            let hint = "put the value in quotes if the `!` belongs to it";
            Some(
                Diagnostic::new(Code::FrontmatterTag, Severity::Warning, message)
                    .at(line, column)
                    .hint(hint),
            )
        }
        Stop::TooDeep | Stop::TooLarge => None,
    }
}

/// The line in the document and the column, both from 1, of a byte of the block.
pub(super) fn line_and_column(block: &str, offset: usize) -> (u32, u32) {
    let place = super::place(block.as_bytes(), offset);
    (place.line + BLOCK_LINE as u32 - 1, place.column)
}

/// The first character that YAML allows nowhere.
pub(super) fn unprintable(text: &str) -> Option<usize> {
    text.char_indices().find(|&(_, character)| is_unprintable(character)).map(|(at, _)| at)
}

/// Whether YAML allows the character nowhere.
pub(super) fn is_unprintable(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{FFFE}' | '\u{FFFF}' => true,
        _ => character.is_control(),
    }
}

fn too_many_brackets(block: &str) -> Option<usize> {
    let mut open = 0_usize;
    block.bytes().position(|byte| {
        match byte {
            b'[' | b'{' => open += 1,
            b']' | b'}' => open = open.saturating_sub(1),
            _ => {}
        }
        open > OPEN_BRACKETS
    })
}

fn too_deep(offset: usize) -> Failure {
    let message = format!("values may nest up to {MAX_DEPTH} deep, and these nest deeper");
    Failure::new(ErrorKind::TooDeep, message, "flatten the value, or move it into the body", offset)
}

fn expanded(offset: usize) -> Failure {
    let message = "the aliases make the data larger than 2 MiB";
    Failure::new(ErrorKind::TooLarge, message, "write the values out, without aliases", offset)
}

/// Why a reading was stopped by this side and not by the library.
enum Stop {
    TooDeep,
    TooLarge,
    Duplicate(String),
    Tag(String),
}

/// One pass over a block.
struct Reading {
    budget: Cell<usize>,
    /// How many duplicate keys and tags there were so far.
    found: Cell<usize>,
    /// The one of them to stop at.
    stop_at: Option<usize>,
    stop: RefCell<Option<Stop>>,
}

impl Reading {
    fn new(stop_at: Option<usize>) -> Self {
        Reading {
            budget: Cell::new(BUDGET),
            found: Cell::new(0),
            stop_at,
            stop: RefCell::new(None),
        }
    }

    fn run(&self, block: &str) -> Result<Value, serde_yaml::Error> {
        Node { reading: self, depth: 0 }.deserialize(serde_yaml::Deserializer::from_str(block))
    }

    fn stop<E: serde::de::Error>(&self, stop: Stop) -> E {
        *self.stop.borrow_mut() = Some(stop);
        E::custom("stopped")
    }

    fn spend<E: serde::de::Error>(&self, bytes: usize) -> Result<(), E> {
        match self.budget.get().checked_sub(bytes + 1) {
            Some(left) => {
                self.budget.set(left);
                Ok(())
            }
            None => Err(self.stop(Stop::TooLarge)),
        }
    }

    fn report<E: serde::de::Error>(&self, finding: impl FnOnce() -> Stop) -> Result<(), E> {
        let number = self.found.get();
        if self.stop_at == Some(number) {
            return Err(self.stop(finding()));
        }
        self.found.set(number + 1);
        Ok(())
    }

    fn failure(&self, block: &str, error: &serde_yaml::Error) -> Failure {
        let offset = offset(block, error);
        match self.stop.take() {
            Some(Stop::TooDeep) => too_deep(offset),
            Some(Stop::TooLarge) => expanded(offset),
            Some(Stop::Duplicate(_) | Stop::Tag(_)) | None => {
                explain(block, &error.to_string(), offset)
            }
        }
    }
}

/// The place of an error in the block. The library counts some characters as line breaks that editors do not, so its
/// lines are of no use.
fn offset(block: &str, error: &serde_yaml::Error) -> usize {
    block.floor_char_boundary(error.location().map_or(0, |location| location.index()))
}

/// Any value.
#[derive(Clone, Copy)]
struct Node<'r> {
    reading: &'r Reading,
    depth: usize,
}

impl Node<'_> {
    fn inner<E: serde::de::Error>(self) -> Result<Self, E> {
        if self.depth == MAX_DEPTH {
            return Err(self.reading.stop(Stop::TooDeep));
        }
        self.reading.spend(0)?;
        Ok(Node { depth: self.depth + 1, ..self })
    }

    fn scalar<E: serde::de::Error>(self, value: Value) -> Result<Value, E> {
        self.reading.spend(0)?;
        Ok(value)
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value")
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<Value, E> {
        self.scalar(Value::Null)
    }

    fn visit_bool<E: serde::de::Error>(self, value: bool) -> Result<Value, E> {
        self.scalar(Value::Bool(value))
    }

    fn visit_i64<E: serde::de::Error>(self, value: i64) -> Result<Value, E> {
        self.scalar(Value::Int(value))
    }

    fn visit_u64<E: serde::de::Error>(self, value: u64) -> Result<Value, E> {
        self.scalar(i64::try_from(value).map_or(Value::Float(value as f64), Value::Int))
    }

    fn visit_i128<E: serde::de::Error>(self, value: i128) -> Result<Value, E> {
        self.scalar(Value::Float(value as f64))
    }

    fn visit_u128<E: serde::de::Error>(self, value: u128) -> Result<Value, E> {
        self.scalar(Value::Float(value as f64))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        self.scalar(if value.is_nan() {
            Value::Str(".nan".into())
        } else if value.is_infinite() {
            Value::Str(if value > 0.0 { ".inf" } else { "-.inf" }.into())
        } else {
            Value::Float(value)
        })
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.reading.spend(value.len())?;
        Ok(Value::Str(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut values = Vec::new();
        while let Some(value) = items.next_element_seed(inner)? {
            values.push(value);
        }
        Ok(Value::List(values))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut pairs = Pairs::default();
        while let Some((key, at)) =
            entries.next_key_seed(Key { reading: self.reading, pairs: &pairs })?
        {
            let value = entries.next_value_seed(inner)?;
            pairs.put(key, at, value);
        }
        Ok(Value::Map(pairs.list))
    }

    /// A value with a tag of one's own.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (tag, value) = tagged.variant::<String>()?;
        self.reading.report(|| Stop::Tag(tag))?;
        value.newtype_variant_seed(self)
    }
}

/// A mapping in the making.
#[derive(Default)]
struct Pairs {
    list: Vec<(String, Value)>,
    index: HashMap<String, usize>,
}

impl Pairs {
    fn find(&self, key: &str) -> Option<usize> {
        if self.index.is_empty() {
            self.list.iter().position(|(name, _)| name == key)
        } else {
            self.index.get(key).copied()
        }
    }

    fn put(&mut self, key: String, at: Option<usize>, value: Value) {
        if let Some(at) = at {
            self.list[at].1 = value;
            return;
        }
        if !self.index.is_empty() {
            self.index.insert(key.clone(), self.list.len());
        }
        self.list.push((key, value));
        if self.list.len() == INDEX_FROM {
            self.index =
                self.list.iter().enumerate().map(|(at, (key, _))| (key.clone(), at)).collect();
        }
    }
}

/// A key, and where the mapping has it already.
struct Key<'r> {
    reading: &'r Reading,
    pairs: &'r Pairs,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = (String, Option<usize>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // Asked for text, the library gives a scalar's text whatever it would be as a value.
        deserializer.deserialize_str(self)
    }
}

impl<'de> Visitor<'de> for Key<'_> {
    type Value = (String, Option<usize>);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(KEY)
    }

    fn visit_str<E: serde::de::Error>(self, key: &str) -> Result<Self::Value, E> {
        self.reading.spend(key.len())?;
        let at = self.pairs.find(key);
        if at.is_some() {
            self.reading.report(|| Stop::Duplicate(key.to_owned()))?;
        }
        Ok((key.to_owned(), at))
    }
}

/// What the library says it expected where a key is not a scalar.
const KEY: &str = "the text of a key";

const QUOTE: &str = "put the value in quotes";

/// The library's complaint in words that name what stands in the file.
fn explain(block: &str, complaint: &str, offset: usize) -> Failure {
    // "<problem> at line 2 column 5, while <context> at line 1 column 7": either place may be missing.
    let (problem, context) = complaint.split_once(", while ").unwrap_or((complaint, ""));
    let problem = problem
        .split(" at line ")
        .next()
        .unwrap_or(problem)
        .split(" at position ")
        .next()
        .unwrap_or(problem);
    let here = &block[offset..];
    let character = here.chars().next();
    let line_start = block[..offset].rfind('\n').map_or(0, |at| at + 1);
    let invalid = |message: &str, hint| Failure::new(ErrorKind::Invalid, message, hint, offset);
    let begins = |character: char| {
        let message = format!("an unquoted value may not begin with `{character}`");
        Failure::new(ErrorKind::Invalid, message, QUOTE, offset)
    };
    match problem {
        "mapping values are not allowed in this context" => {
            if [": ", ":\t"].iter().any(|colon| block[line_start..offset].contains(colon)) {
                invalid("an unquoted value may not contain a colon before a blank", QUOTE)
            } else {
                invalid(
                    "a `key: value` is not allowed here",
                    "check how this line and the one before it are indented",
                )
            }
        }
        "found character that cannot start any token" => match character {
            Some('\t') => invalid("a tab may not indent a line", "indent with blanks"),
            Some(character) => begins(character),
            None => invalid("the value is missing", QUOTE),
        },
        "found a tab character that violates indentation"
        | "found a tab character where an indentation space is expected" => {
            invalid("a tab may not indent a line", "indent with blanks")
        }
        "did not find expected alphabetic or numeric character" => {
            begins(if context.starts_with("scanning an anchor") { '&' } else { '*' })
        }
        "unknown anchor" => {
            let name: String = here
                .chars()
                .skip(1)
                .take_while(|c| c.is_ascii_alphanumeric() || "-_".contains(*c))
                .collect();
            let message =
                format!("`*{name}` stands for the anchor `&{name}`, which is not defined");
            let mut failure = Failure::new(ErrorKind::Invalid, message, QUOTE, offset);
            failure.unknown_anchor = Some(name);
            failure
        }
        "found unexpected end of stream" => {
            // The library leaves out a place at the very beginning.
            let opened = context_offset(block, context).unwrap_or(0);
            let hint = "close it, or put the whole value in the other kind of quotes";
            Failure::new(ErrorKind::Invalid, "the quote opened here is never closed", hint, opened)
        }
        "found unknown escape character"
        | "did not find expected hexadecimal number"
        | "found invalid Unicode character escape code" => invalid(
            "a backslash in double quotes begins an escape, and YAML does not know this one",
            "use single quotes",
        ),
        "did not find expected ',' or ']'" => invalid(
            "expected `,` or `]` after an item of a list",
            "close the list, or put the value in quotes if it is text",
        ),
        "did not find expected ',' or '}'" => invalid(
            "expected `,` or `}` after a pair of a mapping",
            "close it, or put the value in quotes if it is text",
        ),
        "did not find expected key" => invalid(
            "expected a line `key: value`",
            "check this line's indentation, and the quotes in the line before it",
        ),
        "could not find expected ':'" => {
            invalid("expected a colon and a blank after the key", "write `key: value`")
        }
        "did not find expected '-' indicator" => invalid(
            "expected another `- ` item",
            "check how this line and the one before it are indented",
        ),
        "block sequence entries are not allowed in this context" => {
            invalid("a `- ` item is not allowed here", "begin the list on the line after its key")
        }
        "did not find expected comment or line break" => invalid(
            "after `|` or `>` the text begins on the next line",
            "move the text there, or put it in quotes",
        ),
        "did not find expected node content" => invalid("expected a value", QUOTE),
        "repetition limit exceeded" => expanded(offset),
        _ if problem.contains("invalid value") => {
            invalid("the value does not fit its tag", "remove the tag, or put the value in quotes")
        }
        _ if problem.ends_with(KEY) => invalid(
            "a key must be text, and this one is a list or a mapping",
            "put a value that begins with `{` or `[` in quotes",
        ),
        _ if context.starts_with("scanning a directive") => begins('%'),
        _ if context.starts_with("scanning a tag") || context.starts_with("parsing a tag") => {
            begins('!')
        }
        _ if problem.contains("more than one document") || problem.contains("<document start>") => {
            let ends = |line: &str| line.starts_with("...") || line.starts_with("---");
            let at = block
                .split_inclusive('\n')
                .take_while(|line| !ends(line))
                .map(str::len)
                .sum::<usize>();
            let hint = "remove the line that ends the first";
            let offset = if at < block.len() { at } else { offset };
            Failure::new(
                ErrorKind::Invalid,
                "expected one YAML document, got another one from here on",
                hint,
                offset,
            )
        }
        other => Failure::new(ErrorKind::Invalid, format!("this is not YAML: {other}"), "", offset),
    }
}

/// The place that a context names, in bytes of the block.
fn context_offset(block: &str, context: &str) -> Option<usize> {
    let (_, place) = context.rsplit_once(" at line ")?;
    let (line, column) = place.split_once(" column ")?;
    let (line, column): (usize, usize) = (line.parse().ok()?, column.parse().ok()?);
    let text = block.split('\n').nth(line.checked_sub(1)?)?;
    let start = text.as_ptr() as usize - block.as_ptr() as usize;
    text.char_indices().nth(column.checked_sub(1)?).map(|(at, _)| start + at)
}
