//! A value of frontmatter or JSON. Mappings keep their order.
//!
//! ```
//! use skillbook_core::value::Value;
//!
//! let value = Value::Map(vec![("name".into(), Value::Str("hello".into()))]);
//! assert_eq!(value.get("name").and_then(Value::as_str), Some("hello"));
//! ```

/// A scalar, a list or a mapping.
#[derive(Debug, Clone, PartialEq, Default)]
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

    /// The text of a scalar; `None` for blank text, null, a list or a mapping.
    pub(crate) fn plain(&self) -> Option<String> {
        let text = match self {
            Value::Str(text) => text.trim().to_owned(),
            Value::Bool(value) => value.to_string(),
            Value::Int(value) => value.to_string(),
            Value::Float(value) => value.to_string(),
            Value::Null | Value::List(_) | Value::Map(_) => return None,
        };
        (!text.is_empty()).then_some(text)
    }
}
