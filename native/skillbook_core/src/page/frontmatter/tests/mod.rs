//! Documents with frontmatter, read as a whole. The parts have their own tests beside them.

mod errors;
mod properties;
mod repair;
mod values;
mod write;

use super::*;

fn block(yaml: &str) -> String {
    format!("---\n{yaml}\n---\nbody")
}

fn read(yaml: &str) -> Result<Value, ErrorKind> {
    parse(&block(yaml)).map(|document| document.data).map_err(|error| error.kind)
}

/// The value of `a`, which must not have diagnostics.
fn scalar(text: &str) -> Value {
    let text = block(&format!("a: {text}"));
    let document = parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(document.diagnostics, [], "{text}");
    document.data.get("a").cloned().unwrap_or_else(|| panic!("{text}"))
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

fn list(items: &[Value]) -> Value {
    Value::List(items.to_vec())
}

fn map(pairs: &[(&str, Value)]) -> Value {
    Value::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}
