//! Reads a block with the YAML library, as a [`Value`].
//!
//! The library is driven through serde, by a visitor that enforces the limits while values are
//! built, so that no input can expand without bound. Errors are reworded in `errors`.

mod errors;
mod texts;

use self::errors::{explain, KEY};
use super::{ErrorKind, BLOCK_LINE, MAX_BLOCK, MAX_DEPTH};
use crate::page::diagnostic::{Code, Diagnostic, Severity};
use crate::value::Value;
use serde::de::{
    DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess, Visitor,
};
use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};
use std::fmt;

/// The limit of a block's size after aliases are expanded: one for each value, and one for each
/// byte of text. Without aliases no block reaches it.
const BUDGET: usize = 2 * MAX_BLOCK;

/// How many brackets may be open at once, in values and in text. The library's time per token grows
/// with the number of open brackets, so half a megabyte of them takes minutes.
const OPEN_BRACKETS: usize = 256;

/// How many findings of a block are reported one by one. Each takes one more pass over the block.
pub(crate) const FINDINGS: usize = 5;

/// Larger mappings get an index for their keys.
const INDEX_FROM: usize = 32;

/// A block that can be read.
pub(super) struct Loaded {
    /// Always a mapping.
    pub data: Value,
    /// The keys of the block that occur twice.
    pub repeated: Vec<String>,
    pub diagnostics: Vec<Diagnostic>,
}

/// A block that cannot be read.
pub(super) struct Failure {
    pub kind: ErrorKind,
    pub message: String,
    pub hint: &'static str,
    /// The offset in the block, in bytes.
    pub offset: usize,
    /// The name of the anchor, if the error is an unknown anchor.
    pub unknown_anchor: Option<String>,
}

impl Failure {
    fn new(kind: ErrorKind, message: impl Into<String>, hint: &'static str, offset: usize) -> Self {
        Failure { kind, message: message.into(), hint, offset, unknown_anchor: None }
    }
}

/// Reads a block that must be a mapping or empty.
pub(super) fn load(block: &str) -> Result<Loaded, Failure> {
    let Loaded { mut data, repeated, diagnostics } = value(block)?;
    // With duplicate keys or tags a second pass does not meet the same values.
    if diagnostics.is_empty() {
        texts::read(block, &mut data);
    }
    match data {
        Value::Map(_) => Ok(Loaded { data, repeated, diagnostics }),
        Value::Null => Ok(Loaded { data: Value::Map(Vec::new()), repeated, diagnostics }),
        other => {
            let start = block.len() - block.trim_start().len();
            let hint = match other {
                Value::Str(text) if text.contains(':') => {
                    "write a space after the colon: `key: value`"
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

/// Reads a block with any value.
pub(super) fn value(block: &str) -> Result<Loaded, Failure> {
    if let Some(offset) = unprintable(block) {
        let character = block[offset..].chars().next().unwrap_or_default();
        let message =
            format!("a control character, U+{:04X}, is not allowed in YAML", character as u32);
        return Err(Failure::new(ErrorKind::Invalid, message, "delete it", offset));
    }
    // Checked before the library reads the block, because the limit bounds the library's time.
    if let Some(offset) = too_many_brackets(block) {
        return Err(too_deep(offset));
    }
    let reading = Reading::new(None);
    let data = reading.run(block).map_err(|error| reading.failure(block, &error))?;
    let found = reading.found.get();
    let mut diagnostics: Vec<_> =
        (0..found.min(FINDINGS)).filter_map(|number| finding(block, number)).collect();
    // An alias repeats the findings of its anchor.
    diagnostics.dedup();
    if found > FINDINGS {
        let message = format!("{} more keys are duplicates or values have a tag", found - FINDINGS);
        diagnostics.push(Diagnostic::new(Code::DuplicateKey, Severity::Warning, message));
    }
    Ok(Loaded { data, repeated: reading.repeated.take().into_iter().collect(), diagnostics })
}

/// The diagnostic of a finding. A serde visitor does not know its place in the text, but an error
/// does. So this reads the block again and fails at the finding.
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

/// The line in the document and the column of a byte of the block, both from 1.
pub(super) fn line_and_column(block: &str, offset: usize) -> (u32, u32) {
    let place = super::place(block.as_bytes(), offset);
    (place.line + BLOCK_LINE as u32 - 1, place.column)
}

/// The offset of the first character that YAML does not allow anywhere.
pub(super) fn unprintable(text: &str) -> Option<usize> {
    // These bytes begin all such characters, and few others.
    let suspect =
        |byte: &u8| matches!(byte, 0..=0x08 | 0x0B | 0x0C | 0x0E..=0x1F | 0x7F | 0xC2 | 0xEF);
    let start = text.as_bytes().iter().position(suspect)?;
    let mut characters = text[start..].char_indices();
    characters.find(|&(_, character)| is_unprintable(character)).map(|(at, _)| start + at)
}

/// Whether YAML does not allow the character anywhere (YAML 1.2.2, section 5.1).
pub(super) fn is_unprintable(character: char) -> bool {
    match character {
        '\t' | '\n' | '\r' | '\u{85}' => false,
        '\u{FFFE}' | '\u{FFFF}' => true,
        _ => character.is_control(),
    }
}

fn too_many_brackets(block: &str) -> Option<usize> {
    // Most blocks have fewer brackets than may be open at once.
    memchr::memchr2_iter(b'[', b'{', block.as_bytes()).nth(OPEN_BRACKETS)?;
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
    let message = format!("values may be nested at most {MAX_DEPTH} deep");
    Failure::new(ErrorKind::TooDeep, message, "flatten the value, or move it into the body", offset)
}

fn expanded(offset: usize) -> Failure {
    let message = "the aliases make the data larger than 2 MiB";
    Failure::new(ErrorKind::TooLarge, message, "write the values out, without aliases", offset)
}

/// The reason why the visitor stopped a pass.
enum Stop {
    TooDeep,
    TooLarge,
    Duplicate(String),
    Tag(String),
}

/// One pass over a block.
struct Reading {
    budget: Cell<usize>,
    /// The number of duplicate keys and tags so far.
    found: Cell<usize>,
    /// The duplicate keys of the block itself, not of values in it.
    repeated: RefCell<BTreeSet<String>>,
    /// The number of the finding to stop at.
    stop_at: Option<usize>,
    stop: RefCell<Option<Stop>>,
}

impl Reading {
    fn new(stop_at: Option<usize>) -> Self {
        Reading {
            budget: Cell::new(BUDGET),
            found: Cell::new(0),
            repeated: RefCell::new(BTreeSet::new()),
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

/// The offset of an error in the block. The library's line numbers cannot be used, since it counts
/// more characters as line breaks than editors do.
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
            if at.is_some() && self.depth == 0 {
                self.reading.repeated.borrow_mut().insert(key.clone());
            }
            let value = entries.next_value_seed(inner)?;
            pairs.put(key, at, value);
        }
        Ok(Value::Map(pairs.list))
    }

    /// A value with a custom tag.
    fn visit_enum<A: EnumAccess<'de>>(self, tagged: A) -> Result<Value, A::Error> {
        let (tag, value) = tagged.variant::<String>()?;
        self.reading.report(|| Stop::Tag(tag))?;
        value.newtype_variant_seed(self)
    }
}

/// A mapping that is being read.
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

/// Reads a key, and the index of an equal key that the mapping already has.
struct Key<'r> {
    reading: &'r Reading,
    pairs: &'r Pairs,
}

impl<'de> DeserializeSeed<'de> for Key<'_> {
    type Value = (String, Option<usize>);

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        // As a string the library returns a scalar's text, even if it is a number or a boolean.
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
