//! Words have positions inside the command and in order, quoting round-trips, and errors can be
//! displayed.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::text::words::{quote, split};

fuzz_target!(|line: &str| {
    match split(line) {
        Ok(words) => {
            let mut end = 0;
            for word in &words {
                assert!(line.get(word.span.clone()).is_some());
                assert!(word.span.start >= end && !word.span.is_empty());
                end = word.span.end;
            }
            let line: Vec<_> = words.iter().map(|word| quote(&word.value)).collect();
            let line = line.join(" ");
            assert!(!line.contains('\n'));
            let again = split(&line).expect("quoted words are words");
            assert!(words.iter().map(|word| &word.value).eq(again.iter().map(|word| &word.value)));
        }
        Err(error) => {
            assert!(line.get(error.span()).is_some());
            assert!(error.to_string().contains("hint: "));
        }
    }
});
