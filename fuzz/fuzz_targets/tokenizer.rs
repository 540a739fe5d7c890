//! Words have places inside the command, in order; what is quoted comes back; errors can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::text::words::split;

fuzz_target!(|line: &str| {
    match split(line) {
        Ok(words) => {
            let mut end = 0;
            for word in &words {
                assert!(line.get(word.span.clone()).is_some());
                assert!(word.span.start >= end && !word.span.is_empty());
                end = word.span.end;
            }
            // A code block that one word opens and another closes is one nested block to any reader.
            if words.iter().any(|word| word.value.contains("```") || word.value.contains("~~~")) {
                return;
            }
            let quote = |value: &str| format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""));
            let line: Vec<String> = words.iter().map(|word| quote(&word.value)).collect();
            let line = line.join(" ");
            let again = split(&line).expect("quoted words are words");
            let values = words.iter().map(|word| word.value.replace("\r\n", "\n"));
            assert!(values.eq(again.iter().map(|word| word.value.to_string())));
        }
        Err(error) => {
            assert!(line.get(error.span()).is_some());
            assert!(error.to_string().contains("hint: "));
        }
    }
});
