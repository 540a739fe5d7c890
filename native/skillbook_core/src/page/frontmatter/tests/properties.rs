//! Properties of any text: it is read or refused, written and read back, and both readers agree.

use super::*;
use proptest::prelude::*;

/// Text of all kinds, with many characters that have a meaning in YAML.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        "[ -~\n\r\t\u{85}\u{2028}\u{feff}\u{0}\u{7f}é#:'\"|>-]{0,12}",
        "(---|\\.\\.\\.|null|true|~|1e3|0x1f|\\.inf|-|\\?|: | #|\n| |x|😀){0,6}",
    ]
}

fn any_pairs() -> impl Strategy<Value = Vec<(String, Value)>> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        any::<i64>().prop_map(Value::Int),
        any::<f64>().prop_filter("finite", |number| number.is_finite()).prop_map(Value::Float),
        any_text().prop_map(Value::Str),
    ];
    let value = leaf.prop_recursive(4, 24, 4, |inner| {
        let pairs = prop::collection::btree_map(any_text(), inner.clone(), 0..4);
        prop_oneof![
            prop::collection::vec(inner, 0..4).prop_map(Value::List),
            pairs.prop_map(|pairs| Value::Map(pairs.into_iter().collect())),
        ]
    });
    prop::collection::btree_map(any_text(), value, 0..4)
        .prop_map(|pairs| pairs.into_iter().collect())
}

/// Lines of blocks, valid and broken.
fn any_block() -> impl Strategy<Value = String> {
    let value = concat!(
        "([a-z@*&!|>%{}\\[\\]'\"`,: #-]|: | #|[0-9.+x:-]|true|~|é|\t|\\\\){0,8}",
        "|[0-9]{1,20}|[+-]?[0-9a-fxob.e+-]{1,6}|\\[[a-z0-9'\" ,.-]{0,8}\\]",
    );
    let line = ("( {0,4}|\t)", "(- )?", "([a-c]:? ?)?", value, "\r?\n")
        .prop_map(|(a, b, c, d, e)| [a, b, c, d, e].concat());
    prop::collection::vec(line, 0..6).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_text_is_read_or_refused(
        text in prop_oneof![any::<String>(), any_block().prop_map(|yaml| block(&yaml))],
    ) {
        match parse(&text) {
            Ok(document) => {
                prop_assert_eq!(&text[document.body_offset..], document.body);
                prop_assert!(matches!(document.data, Value::Map(_)));
                let lines = text.split('\n').count() as u32;
                let placed = |found: &Diagnostic| found.line.is_some_and(|line| line <= lines);
                prop_assert!(document.diagnostics.iter().all(placed));
            }
            Err(error) => prop_assert!(text.is_char_boundary(error.offset)),
        }
    }

    #[test]
    fn what_is_written_is_read_back(pairs in any_pairs(), body in any_text()) {
        let written = write(&pairs, &body);
        let document = parse(&written)
            .map_err(|error| TestCaseError::fail(format!("{error}: {written:?}")))?;
        prop_assert_eq!(document.data, Value::Map(pairs), "{:?}", written);
        prop_assert_eq!(document.body, body.as_str(), "{:?}", written);
        prop_assert_eq!(document.diagnostics, []);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn the_fast_path_reads_what_the_library_reads(yaml in any_block()) {
        if let Some(pairs) = plain::parse(&yaml) {
            let failed = |failure: yaml::Failure| {
                TestCaseError::fail(format!("{}: {yaml:?}", failure.message))
            };
            let loaded = yaml::load(&yaml).map_err(failed)?;
            prop_assert_eq!(loaded.data, Value::Map(pairs), "{:?}", yaml);
            prop_assert_eq!(loaded.diagnostics, []);
        }
    }
}

#[test]
fn the_fast_path_takes_what_is_common() {
    let taken = [
        "",
        "name: a\ndescription: Does b, and c.\nversion: 1.0.2\ntags: [d, e]",
        "# comment\nname: \"a: b\"\n\nother: 'c'\n",
        "metadata:\n  author: a\n  version: \"1.0\"\n  tags:\n  - b\n  - c\nrisk: none",
        "name: a\r\ndate: 2026-02-27\r\n",
    ];
    let left = [
        "a: |\n  b",
        "a: &b c",
        "a: b\n  c",
        "a: \"b\\n\"",
        "a: b: c",
        "a: 0x1f",
        "a: b # c",
        "a: 1\na: 2",
        "{a: b}",
        "- a",
    ];
    for yaml in taken {
        assert!(plain::parse(yaml).is_some(), "{yaml}");
    }
    for yaml in left {
        assert!(plain::parse(yaml).is_none(), "{yaml}");
    }
}
