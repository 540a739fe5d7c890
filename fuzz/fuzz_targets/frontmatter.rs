#![no_main]
//! Frontmatter of any text: no panic, positions inside the text, and three readers of the same data
//! agree.

use libfuzzer_sys::fuzz_target;
use skillbook_core::page::frontmatter::{parse, write, Document, MAX_BLOCK};
use skillbook_core::value::Value;

fuzz_target!(|text: &str| {
    check(text);
    check(&format!("---\n{text}\n---\n{text}"));
});

fn check(text: &str) {
    let document = match parse(text) {
        Ok(document) => document,
        Err(error) => {
            assert!(
                text.is_char_boundary(error.offset) && error.line >= 1 && error.column >= 1,
                "{error:?}"
            );
            return;
        }
    };
    assert_eq!(&text[document.body_offset..], document.body);
    assert_eq!(text[..document.body_offset].matches('\n').count() + 1, document.body_line as usize);
    let Value::Map(pairs) = &document.data else { panic!("{:?}", document.data) };

    let written = write(pairs, document.body);
    if written.len() - document.body.len() > MAX_BLOCK {
        // Expanded aliases take more space.
        return;
    }
    let again = parse(&written).unwrap_or_else(|error| panic!("{error} in {written:?}"));
    assert_eq!((&again.data, again.body), (&document.data, document.body), "{written:?}");
    assert!(again.diagnostics.is_empty(), "{written:?}");

    read_by_the_library(text, &document);
}

/// A tab in a comment means nothing to YAML, but makes the fast path give up.
fn read_by_the_library(text: &str, document: &Document) {
    if !document.present || !document.diagnostics.is_empty() || text.starts_with('\u{FEFF}') {
        return;
    }
    let (fence, rest) = text.split_once('\n').expect("a block has a line before it");
    let commented = format!("{fence}\n#\t\n{rest}");
    let library = parse(&commented).unwrap_or_else(|error| panic!("{error} in {commented:?}"));
    assert_eq!(library.data, document.data, "{commented:?}");
}
