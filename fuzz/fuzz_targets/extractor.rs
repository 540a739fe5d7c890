//! A stream gives the same result as the whole text, with chunks of any size. Bytes that are not
//! UTF-8 are an error, not a crash.
#![no_main]

use std::borrow::Cow;

use libfuzzer_sys::fuzz_target;
use skillbook_core::text::extract::{extract, steps, Event, Extractor, Unclosed};
use skillbook_core::text::words::split;

fuzz_target!(|input: (Vec<u8>, bool, Vec<u8>)| {
    let (sizes, run, bytes) = input;
    let unclosed = if run { Unclosed::Run } else { Unclosed::Hold };
    let mut extractor = Extractor::new(unclosed);
    let (mut text, mut commands, mut incomplete, mut closed) =
        (String::new(), Vec::new(), Vec::new(), 0);
    let mut hidden = Vec::new();
    let mut take = |events: Vec<Event<'static>>| {
        for event in events {
            match event {
                Event::Text(piece) => text.push_str(&piece),
                Event::Command(command) => commands.push(command),
                Event::Comment(_) => {}
                Event::Closed => closed = commands.len(),
                Event::Cut => incomplete = commands.split_off(closed),
                Event::Hidden(range) => hidden.push(range),
            }
        }
    };

    let mut rest = bytes.as_slice();
    let mut sizes = sizes.into_iter().map(usize::from);
    let mut failed = false;
    while !rest.is_empty() && !failed {
        let (chunk, tail) = rest.split_at(sizes.next().unwrap_or(rest.len()).min(rest.len()));
        match extractor.feed(chunk) {
            Ok(events) => take(events),
            Err(_) => failed = true,
        }
        rest = tail;
    }
    match extractor.finish() {
        Ok(events) => take(events),
        Err(_) => failed = true,
    }

    match std::str::from_utf8(&bytes) {
        Err(_) => assert!(failed),
        Ok(whole) => {
            let found = extract(whole, unclosed).expect("the input is small");
            assert!(!failed);
            assert_eq!(text, found.text());
            assert_eq!(commands, found.commands);
            assert_eq!(incomplete, found.incomplete);
            assert_eq!(hidden, found.hidden);
            assert!(hidden.iter().all(|range| whole.get(range.clone()).is_some()));
            assert_eq!(text.trim(), text);
            let found_steps = steps(whole).expect("the input is small");
            let closed = extract(whole, Unclosed::Hold).expect("the input is small");
            assert!(found_steps.lines.iter().map(|step| &step.line).eq(&closed.commands));
            assert!(closed.text().ends_with(&found_steps.rest));
            for command in found.commands.iter().chain(&found.incomplete).map(Cow::as_ref) {
                if let Err(error) = split(command) {
                    assert_ne!(error.kind().as_str(), "several_commands", "{command:?}");
                }
            }
        }
    }
});
