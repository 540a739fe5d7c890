//! Any JSON Schema with any value: no panic, and a check that ends within its steps.
#![no_main]

use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use skillbook_core::page::document::Document;
use skillbook_core::schema::{arguments, value, Given, Schema};

fuzz_target!(|bytes: &[u8]| {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let json = |part: Option<&[u8]>| serde_json::from_slice::<Value>(part?).ok();
    let Some(schema) = json(parts.next()).and_then(|json| Schema::new(json).ok()) else { return };
    let page = format!("---\nname: a.b\ninput_schema: '{}'\n---\n", schema.as_json());
    Document::parse("/s", "a/b.md", page.as_bytes()).declaration();
    let Some(given) = json(parts.next()) else { return };
    let words = Given::Words(vec![given.to_string()]);
    let members = vec![("a".to_owned(), Given::Json(given.clone())), ("b".to_owned(), words)];
    let fits = schema.check(&given).is_ok();
    if let Ok(read) = value(&schema, Given::Json(given.clone())) {
        // A value that fits is not changed.
        assert!(!fits || read == Some(given));
    }
    let _ = arguments(&schema, members);
});
