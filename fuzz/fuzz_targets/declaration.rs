//! The declared flags of any page: no panic, places inside the text, defaults that are values of
//! their flags, and no values without a declaration that can be read.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::page::declaration::{read, Pattern};
use skillbook_core::page::diagnostic::Severity;
use skillbook_core::page::document::Document;

fuzz_target!(|bytes: &[u8]| {
    let mut text = b"---\nname: a.b\ndescription: D\nflags:\n".to_vec();
    text.extend_from_slice(bytes);
    check(&text);
    check(bytes);
    if let Ok(text) = std::str::from_utf8(bytes) {
        read(&format!("## Usage\n\na.b {text}\n\n## Flags\n\n--x {text}\n"));
        if let Ok(pattern) = Pattern::read(text) {
            let example = pattern.example();
            assert!(example.is_empty() || pattern.matches(&example));
            assert_eq!(Pattern::read(pattern.as_str()).as_ref(), Ok(&pattern));
        }
    }
});

fn check(bytes: &[u8]) {
    let page = Document::parse("/s", "a/b.md", bytes);
    let lines = page.text.matches('\n').count() as u32 + 1;
    let Some(given) = page.fields().and_then(|fields| fields.flags.as_ref()) else { return };
    for found in &given.diagnostics {
        assert!(found.line.is_none_or(|line| (1..=lines).contains(&line)), "{found:?}");
        assert!(found.fix.as_ref().is_none_or(|fix| page.text.get(fix.range.clone()).is_some()));
    }
    let errors = given.diagnostics.iter().any(|found| found.severity == Severity::Error);
    assert_eq!(errors, given.error.is_some());
    let declared = page.declaration().expect("flags are a declaration");
    assert_eq!(declared.error, given.error);
    for flag in declared.flags.iter().filter(|_| given.error.is_none()) {
        assert!(flag.offset.is_none_or(|offset| page.body()[offset..].starts_with("--")));
        assert!(!flag.required || flag.default.is_empty());
    }
}
