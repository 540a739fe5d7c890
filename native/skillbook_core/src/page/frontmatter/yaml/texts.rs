//! The author's texts of numbers and booleans, which the library does not return with their values.
//!
//! A second pass over the block walks along the values of the first one, and asks for these scalars
//! as strings. A block without numbers and booleans, which is usual, needs no second pass.

use crate::value::Value;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Adds the texts to the numbers and booleans of a block. `data` is the value of the block, which
/// has neither duplicate keys nor tags.
pub(super) fn read(block: &str, data: &mut Value) {
    if has_scalars(data) {
        // The first pass has accepted the block. Should this one fail, values keep the usual texts.
        let _ = Texts(data).deserialize(serde_yaml::Deserializer::from_str(block));
    }
}

fn has_scalars(data: &Value) -> bool {
    let mut open = vec![data];
    while let Some(value) = open.pop() {
        match value {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => return true,
            Value::List(items) => open.extend(items),
            Value::Map(pairs) => open.extend(pairs.iter().map(|(_, value)| value)),
            Value::Null | Value::Str(_) | Value::Written(_) => {}
        }
    }
    false
}

/// A value of the first pass.
struct Texts<'v>(&'v mut Value);

impl<'de> DeserializeSeed<'de> for Texts<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        match self.0 {
            Value::Bool(_) | Value::Int(_) | Value::Float(_) => deserializer.deserialize_str(self),
            Value::List(_) => deserializer.deserialize_seq(self),
            Value::Map(_) => deserializer.deserialize_map(self),
            Value::Null | Value::Str(_) | Value::Written(_) => {
                deserializer.deserialize_ignored_any(IgnoredAny).map(drop)
            }
        }
    }
}

impl<'de> Visitor<'de> for Texts<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the value of the first pass")
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<(), E> {
        *self.0 = Value::written(std::mem::take(self.0), text.trim());
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let Value::List(values) = self.0 else { return Ok(()) };
        for value in values {
            items.next_element_seed(Texts(value))?;
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let Value::Map(pairs) = self.0 else { return Ok(()) };
        for (_, value) in pairs {
            entries.next_key::<IgnoredAny>()?;
            entries.next_value_seed(Texts(value))?;
        }
        Ok(())
    }
}
