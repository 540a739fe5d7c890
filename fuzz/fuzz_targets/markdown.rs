#![no_main]
//! Markdown of strangers: no panic, and nothing but known tags, closed in order, with known
//! attributes and addresses, within the limits.

use libfuzzer_sys::fuzz_target;
use skillbook_core::markdown::{html, MAX_HTML, MAX_TEXT};

#[path = "../../native/skillbook_core/tests/common/html.rs"]
mod checker;

fuzz_target!(|text: &str| {
    for files in ["", "/files/"] {
        let (shown, _) = html(text, files);
        assert!(shown.len() <= MAX_HTML + MAX_TEXT * 6);
        checker::check(&shown).unwrap_or_else(|error| panic!("{error}: {shown}"));
    }
});
