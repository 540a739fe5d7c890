//! Writes documents. The YAML library writes every value, so no text can break out of its field.

use crate::value::Value;
use serde::ser::{Serialize, SerializeMap, SerializeSeq, Serializer};

/// Writes a document with this frontmatter and body.
///
/// [`super::parse`] reads the same pairs and body back, within its limits, if no key occurs twice
/// and numbers are finite. There is always a block, even without pairs, so that a body that begins
/// with `---` stays body.
///
/// ```
/// use skillbook_core::{page::frontmatter, value::Value};
///
/// let pairs = [("name".to_owned(), Value::Str("hello".into()))];
/// assert_eq!(frontmatter::write(&pairs, "# Hello\n"), "---\nname: hello\n---\n# Hello\n");
/// ```
pub fn write(pairs: &[(String, Value)], body: &str) -> String {
    let yaml = if pairs.is_empty() { String::new() } else { to_yaml(pairs) };
    ["---\n", &yaml, "---\n", body].concat()
}

fn to_yaml(pairs: &[(String, Value)]) -> String {
    // The library only fails if its writer fails, which memory does not, and for byte strings,
    // which are not values here.
    let mut yaml = serde_yaml::to_string(&Mapping(pairs)).expect("values are written to memory");
    // Text may end with one of YAML's other line breaks, such as U+2028. A comment ends the line
    // without changing the value.
    if !yaml.ends_with('\n') {
        yaml.push_str("#\n");
    }
    yaml
}

struct Mapping<'a>(&'a [(String, Value)]);

impl Serialize for Mapping<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Without a length: the library reads a mapping of one pair as a possible tag.
        let mut mapping = serializer.serialize_map(None)?;
        for (key, value) in self.0 {
            mapping.serialize_entry(key, &Node(value))?;
        }
        mapping.end()
    }
}

struct Node<'a>(&'a Value);

impl Serialize for Node<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0.typed() {
            Value::Null => serializer.serialize_unit(),
            Value::Bool(value) => serializer.serialize_bool(*value),
            Value::Int(value) => serializer.serialize_i64(*value),
            Value::Float(value) => serializer.serialize_f64(*value),
            Value::Str(value) => serializer.serialize_str(value),
            Value::List(values) => {
                let mut list = serializer.serialize_seq(None)?;
                for value in values {
                    list.serialize_element(&Node(value))?;
                }
                list.end()
            }
            Value::Map(pairs) => Mapping(pairs).serialize(serializer),
            // A typed value is none.
            Value::Written(scalar) => serializer.serialize_str(&scalar.text),
        }
    }
}
