//! Properties of the extractor and the tokenizer, for all texts, chunks and bytes.

use std::ops::Range;

use proptest::prelude::*;
use skillbook_core::text::command::parse;
use skillbook_core::text::extract::{extract, Event, Extractor, Unclosed};
use skillbook_core::text::words::{quote, split};

/// Texts made of pieces with a meaning, so that the state machine gets into all its states.
fn replies() -> impl Strategy<Value = String> {
    let part = prop_oneof![
        4 => prop::sample::select(vec![
            "```cmd\n", "```\n", "```", "`", "~~~", "~~~cmd\n", "\n```cmd a```\n", "```py\n",
            "\n````md\n", "````\n", "  ```cmd\n", "\"", "'", "$'", "\\", "\\\n", "\n", "\r\n",
            "\r", " ", "\t", "  ", "=", "--flag", "--flag=", "—x", "|", "<<E", "<<-E", "<<'E'",
            "\nE\n", "E\n", "\tE\n", "“", "”", "‘", "’", "“a”", "““““““““““", "~~~py", "\n~~~\n",
            "# x", "$ ", "> ", "{\"a\": 1}", "a.b", "what's", "é", "text\n\n", "\u{a0}",
            "\u{2028}", "<think>", "<thinking>\n", "</think>", "</thinking>\n", "- ", "\n1. ",
            "<<~E", "\"$(cat <<E\n", "\n)\"", "\n)\n", "{\n", "}", "{\"a\":", "[\"a\"", "]",
            "\"\"\"", "\"C:\\", "# ", "\u{200b}", "'a's'",
        ]).prop_map(String::from),
        1 => "[ -~]{0,8}",
        1 => "\\PC{0,4}",
    ];
    prop::collection::vec(part, 0..40).prop_map(|parts| parts.concat())
}

#[derive(Debug, PartialEq, Default)]
struct Whole {
    text: String,
    commands: Vec<String>,
    incomplete: Vec<String>,
    hidden: Vec<Range<usize>>,
}

fn whole(text: &str, unclosed: Unclosed) -> Whole {
    let found = extract(text, unclosed).unwrap();
    let owned =
        |list: &[std::borrow::Cow<'_, str>]| list.iter().map(|item| item.to_string()).collect();
    Whole {
        text: found.text().into_owned(),
        commands: owned(&found.commands),
        incomplete: owned(&found.incomplete),
        hidden: found.hidden,
    }
}

/// The same in an open block, after a command's name.
fn in_a_block() -> impl Strategy<Value = String> {
    (
        prop::sample::select(vec![
            "```cmd\na ",
            "~~~~cmd\n",
            "  ```cmd\n  a “",
            "```cmd\r\na \"",
            "```cmd\na <<E ",
            "```cmd\na “ <<E\n",
            "```cmd\n$ $ {\"a\": 1, ",
            "<think>\n",
            "- ```cmd\n  a {",
        ]),
        replies(),
    )
        .prop_map(|(start, rest)| format!("{start}{rest}"))
}

fn chunked(text: &str, cuts: &[usize], unclosed: Unclosed) -> Whole {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| cut % (text.len() + 1)).collect();
    cuts.sort_unstable();
    cuts.push(text.len());
    let mut extractor = Extractor::new(unclosed);
    let mut events = Vec::new();
    let mut at = 0;
    for cut in cuts {
        events.extend(extractor.feed(&text.as_bytes()[at..cut]).unwrap());
        at = cut;
    }
    events.extend(extractor.finish().unwrap());
    joined(events)
}

fn joined(events: Vec<Event<'static>>) -> Whole {
    let mut all = Whole::default();
    let mut closed = 0;
    for event in events {
        match event {
            Event::Text(text) => all.text.push_str(&text),
            Event::Command(command) => all.commands.push(command.into_owned()),
            Event::Comment(_) => {}
            Event::Closed => closed = all.commands.len(),
            Event::Cut => all.incomplete = all.commands.split_off(closed),
            Event::Hidden(range) => all.hidden.push(range),
        }
    }
    all
}

/// Values that are hard to quote.
fn values() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "C:",
        "\n",
        "\t",
        "\r\n",
        "\r",
        "\\",
        "\"",
        "'",
        "$'",
        "—x",
        "--",
        "-",
        "{1}",
        "{last}",
        "“",
        "”",
        "‘",
        "’",
        "<<E",
        "#",
        "=",
        "|",
        " ",
        "a",
        "é",
        "\u{a0}",
        "\u{200b}",
        "\0",
        "`",
        "{\"a\": 1}",
        ":",
        ",",
        "1.",
        "> ",
        "\"\"\"",
    ]);
    let parts = prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat());
    prop_oneof![parts, any::<String>()]
}

/// At least 1,000 cases, and more if `PROPTEST_CASES` says so.
fn many() -> ProptestConfig {
    let default = ProptestConfig::default();
    ProptestConfig { cases: default.cases.max(1_000), ..default }
}

proptest! {
    #![proptest_config(many())]

    #[test]
    fn chunks_do_not_matter(
        text in replies(),
        cuts in prop::collection::vec(any::<usize>(), 0..12),
        run: bool,
    ) {
        let unclosed = if run { Unclosed::Run } else { Unclosed::Hold };
        prop_assert_eq!(chunked(&text, &cuts, unclosed), whole(&text, unclosed));
    }

    #[test]
    fn single_bytes_do_not_matter(text in replies()) {
        let cuts: Vec<usize> = (0..text.len()).collect();
        prop_assert_eq!(chunked(&text, &cuts, Unclosed::Hold), whole(&text, Unclosed::Hold));
    }

    #[test]
    fn single_bytes_do_not_matter_in_a_block(text in in_a_block(), run: bool) {
        let unclosed = if run { Unclosed::Run } else { Unclosed::Hold };
        let cuts: Vec<usize> = (0..text.len()).collect();
        prop_assert_eq!(chunked(&text, &cuts, unclosed), whole(&text, unclosed));
    }

    #[test]
    fn any_bytes_are_survived(bytes: Vec<u8>, cut: usize) {
        let cut = cut % (bytes.len() + 1);
        let mut extractor = Extractor::new(Unclosed::Hold);
        let result = extractor
            .feed(&bytes[..cut])
            .and_then(|_| extractor.feed(&bytes[cut..]))
            .and_then(|_| extractor.finish());
        match (result, std::str::from_utf8(&bytes)) {
            (Ok(_), Ok(_)) => {}
            (Err(error), Err(utf8)) => prop_assert_eq!(error.span().start, utf8.valid_up_to()),
            (result, utf8) => prop_assert!(false, "{result:?} {utf8:?}"),
        }
    }

    #[test]
    fn the_text_is_trimmed_and_has_no_carriage_line_ends(text in replies()) {
        let found = whole(&text, Unclosed::Hold);
        prop_assert_eq!(found.text.trim(), &found.text);
        // A carriage return before a line end of CRLF is text.
        prop_assert!(!found.text.contains("\r\n") || text.contains("\r\r"));
    }

    #[test]
    fn a_text_without_fences_stays(text in "[a-z \n'\"<]{0,60}") {
        let found = whole(&text, Unclosed::Hold);
        prop_assert_eq!(found.text, text.trim());
        prop_assert!(found.commands.is_empty());
    }

    #[test]
    fn places_are_inside_the_source(text in replies()) {
        match split(&text) {
            Ok(words) => {
                let mut end = 0;
                for word in words {
                    prop_assert!(text.get(word.span.clone()).is_some());
                    prop_assert!(word.span.start >= end && !word.span.is_empty());
                    end = word.span.end;
                }
            }
            Err(error) => {
                prop_assert!(error.span().end <= text.len() && !error.to_string().is_empty())
            }
        }
        let _ = parse(&text);
    }

    #[test]
    fn quoting_and_splitting_is_the_identity(values in prop::collection::vec(values(), 1..6)) {
        let line =
            format!("a {}", values.iter().map(|value| quote(value)).collect::<Vec<_>>().join(" "));
        prop_assert!(!line.contains('\n'));
        let words = split(&line).unwrap();
        let got: Vec<_> = words[1..].iter().map(|word| word.value.to_string()).collect();
        prop_assert_eq!(&got, &values);
        // No value is taken for a flag or a placeholder, and a block returns the line unchanged. An
        // object that is the only word stands for flags, also in quotes, but not after `--`.
        let behind = line.replacen("a ", "a -- ", 1);
        let command = parse(&behind).unwrap();
        prop_assert!(command.flags.is_empty() && command.placeholders.is_empty());
        prop_assert_eq!(&command.args, &values);
        prop_assert_eq!(
            whole(&format!("````cmd\n{line}\n````"), Unclosed::Hold).commands,
            vec![line]
        );
    }

    #[test]
    fn a_heredoc_takes_any_text(lines in prop::collection::vec("[^\r\n]{0,12}", 0..6)) {
        prop_assume!(lines.iter().all(|line| line.trim_end_matches([' ', '\t']) != "END"));
        let text = lines.join("\n");
        let body = if lines.is_empty() { String::new() } else { format!("{text}\n") };
        let words = split(&format!("a <<END\n{body}END")).map(|words| words[1].value.to_string());
        prop_assert_eq!(words.unwrap(), text);
    }

    #[test]
    fn extracted_commands_are_one_command_each(text in prop_oneof![replies(), in_a_block()]) {
        // The extractor and the tokenizer agree on where a command ends.
        for command in whole(&text, Unclosed::Hold).commands {
            if let Err(error) = split(&command) {
                prop_assert_ne!(error.kind().as_str(), "several_commands", "{:?}", command);
            }
        }
    }
}
