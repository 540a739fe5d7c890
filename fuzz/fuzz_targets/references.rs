//! Links, headings and sections of any body: positions are in the text and in order, and no link
//! leaves the source.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::page::references::{find, resolve};
use skillbook_core::page::sections::{headings, section, usage};

fuzz_target!(|text: &str| {
    for reference in find(text, 0) {
        if let Some(path) = resolve("folder", &reference.target) {
            let below = |path: &str| path.split('/').all(|part| !matches!(part, "" | "." | ".."));
            assert!(path.is_empty() || below(&path), "{path:?}");
        }
    }
    for heading in headings(text) {
        assert!(text.contains(heading.title));
        let _ = section(text, heading.title);
    }
    assert!(usage(text).is_none_or(|usage| text.contains(usage)));
});
