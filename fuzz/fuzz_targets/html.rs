#![no_main]
//! HTML and Markdown of any text: no panic, results within their limits, and Markdown gives no
//! elements and no addresses that its writer could use for more than text.

use libfuzzer_sys::fuzz_target;
use skillbook_connect::html::{markdown, text, MAX_TEXT};

fuzz_target!(|page: &str| {
    let shown = text(page);
    assert!(shown.text.len() <= MAX_TEXT && !shown.text.contains('\r'));
    let html = markdown::html(page).to_ascii_lowercase();
    for forbidden in ["<script", "<img", "<a href=\"javascript:", "<a href=\"data:"] {
        assert!(!html.contains(forbidden), "{forbidden}: {html}");
    }
});
