//! A value of frontmatter or JSON. Mappings keep their order.
//!
//! ```
//! use skillbook_core::value::Value;
//!
//! let value = Value::Map(vec![("name".into(), Value::Str("hello".into()))]);
//! assert_eq!(value.get("name").and_then(Value::as_str), Some("hello"));
//! ```

use std::hash::{Hash, Hasher};

/// A scalar, a list or a mapping.
///
/// Two values are equal regardless of their authors' texts: `1.10` is `1.1`.
#[derive(Debug, Clone, Default)]
pub enum Value {
    /// `null`, `~` or no value.
    #[default]
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A whole number that fits 64 bits.
    Int(i64),
    /// Any other number.
    Float(f64),
    /// Text, including dates and times.
    Str(String),
    /// A list.
    List(Vec<Value>),
    /// A mapping in its original order, without duplicate keys.
    Map(Vec<(String, Value)>),
    /// A boolean or a number whose author wrote another text than `Value::plain` would: `1.10`,
    /// `0x1F`, `True`. Only frontmatter has such values.
    Written(Box<Scalar>),
}

/// A boolean or a number with its author's text.
#[derive(Debug, Clone)]
pub struct Scalar {
    /// The boolean or number.
    pub value: Value,
    /// The text, such as `1.10`.
    pub text: String,
}

impl Value {
    /// The value of `key`, if this is a mapping with that key.
    pub fn get(&self, key: &str) -> Option<&Value> {
        match self {
            Value::Map(pairs) => pairs.iter().find(|(name, _)| name == key).map(|(_, value)| value),
            _ => None,
        }
    }

    /// The text, if this is text.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::Str(text) => Some(text),
            _ => None,
        }
    }

    /// A boolean or a number with its author's text, if that differs from the usual one.
    pub(crate) fn written(value: Value, text: &str) -> Value {
        match value.plain().as_deref() == Some(text) {
            true => value,
            false => Value::Written(Box::new(Scalar { value, text: text.to_owned() })),
        }
    }

    /// The value without its author's text.
    pub fn typed(&self) -> &Value {
        match self {
            Value::Written(scalar) => &scalar.value,
            value => value,
        }
    }

    /// The text of a scalar, as its author wrote it; `None` for blank text, null, a list or a
    /// mapping.
    pub(crate) fn plain(&self) -> Option<String> {
        let text = match self {
            Value::Str(text) => text.trim().to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Written(scalar) => scalar.text.clone(),
            Value::Null | Value::List(_) | Value::Map(_) => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}

impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self.typed(), other.typed()) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(one), Value::Bool(other)) => one == other,
            (Value::Int(one), Value::Int(other)) => one == other,
            (Value::Float(one), Value::Float(other)) => one == other,
            (Value::Str(one), Value::Str(other)) => one == other,
            (Value::List(one), Value::List(other)) => one == other,
            (Value::Map(one), Value::Map(other)) => one == other,
            _ => false,
        }
    }
}

/// Equal values have equal hashes.
impl Hash for Value {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let value = self.typed();
        std::mem::discriminant(value).hash(state);
        match value {
            Value::Null | Value::Written(_) => {}
            Value::Bool(value) => value.hash(state),
            Value::Int(value) => value.hash(state),
            // `-0.0` is `0.0`.
            Value::Float(value) => (value + 0.0).to_bits().hash(state),
            Value::Str(text) => text.hash(state),
            Value::List(items) => items.hash(state),
            Value::Map(pairs) => pairs.hash(state),
        }
    }
}
