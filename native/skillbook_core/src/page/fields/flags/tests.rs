//! The flags that are read from frontmatter.

use super::*;
use crate::page::diagnostic::apply;
use crate::page::document::Document;

fn page(block: &str) -> Document {
    Document::parse("/s", "a/b.md", format!("---\nname: a.b\n{block}\n---\n").as_bytes())
}

fn given(block: &str) -> Given {
    *page(block).fields.flags.clone().unwrap()
}

/// `name type several required =default` of each flag.
fn shown(flag: &Flag) -> String {
    let mut text = format!("{} {:?}", flag.names.join("/"), flag.kind);
    if let Some(pattern) = &flag.pattern {
        text.push_str(&format!(" {}", pattern.as_str()));
    }
    let marks = [
        (flag.several, " several"),
        (flag.required, " required"),
        (flag.positional == Some(Positional::One), " one"),
        (flag.positional == Some(Positional::All), " all"),
    ];
    marks.iter().filter(|mark| mark.0).for_each(|mark| text.push_str(mark.1));
    if !flag.default.is_empty() {
        text.push_str(&format!(" ={}", flag.default.join(",")));
    }
    text
}

#[test]
fn reads_all_types_and_keys() {
    let text = "Text { max: None, line: false, empty: false }";
    let rows = [
        ("text", format!("x {text}")),
        ("integer", "x Integer { min: None, max: None }".into()),
        ("boolean", "x Switch".into()),
        ("datetime", "x Datetime".into()),
        ("email", "x Email".into()),
        ("url", "x Url".into()),
        ("{}", format!("x {text}")),
        (
            "{type: integer, min: 1, max: 100, default: 20}",
            "x Integer { min: Some(1), max: Some(100) } =20".into(),
        ),
        (
            "{type: number, min: 0, max: 0.5, default: 0.25}",
            "x Number { min: Some(0.0), max: Some(0.5) } =0.25".into(),
        ),
        (
            "{type: one_of, values: [open, closed], repeatable: true}",
            "x OneOf([\"open\", \"closed\"]) several".into(),
        ),
        ("{values: [1.10, on, true]}", "x OneOf([\"1.10\", \"on\", \"true\"])".into()),
        (
            "{values: [a, b], repeatable: true, default: [a, b]}",
            "x OneOf([\"a\", \"b\"]) several =a,b".into(),
        ),
        ("{type: email, required: true}", "x Email required".into()),
        (
            "{max_length: 5, line: true, empty: true, default: ''}",
            "x Text { max: Some(5), line: true, empty: true } =".into(),
        ),
        ("{pattern: '^[A-Z]-\\d$', default: A-1}", format!("x {text} [A-Z]-[0-9] =A-1")),
        ("{type: date, words: true, default: today}", "x Date { words: true } =today".into()),
        ("{type: date, default: 2026-03-01}", "x Date { words: false } =2026-03-01".into()),
        ("{type: boolean, default: true}", "x Switch =true".into()),
        (
            "{type: datetime, default: '2026-03-01T10:00:00+01:00'}",
            "x Datetime =2026-03-01T10:00:00+01:00".into(),
        ),
        ("{type: url, default: 'https://a.example/b?c'}", "x Url =https://a.example/b?c".into()),
        ("{aliases: [y, z-z], positional: true}", format!("x/y/z-z {text} one")),
        ("{positional: all}", format!("x {text} all")),
        ("{description: , default: }", format!("x {text}")),
    ];
    for (spec, expected) in rows {
        let found = given(&format!("flags:\n  x: {spec}"));
        assert_eq!(found.flags.iter().map(shown).collect::<Vec<_>>(), [expected], "{spec}");
        assert_eq!((found.error, found.diagnostics), (None, vec![]), "{spec}");
    }
    for block in ["flags:", "flags: {}"] {
        assert_eq!(given(block), Given::default(), "{block}");
    }
    for block in ["title: x", "tags: [x]", "flagship: 1"] {
        assert_eq!(page(block).fields.flags, None, "{block}");
    }
    let described = given("flags: {x: {description: \"Two\\n lines\"}}");
    assert_eq!(described.flags[0].description, "Two lines");
}

#[test]
fn closes_a_declaration_with_a_mistake() {
    let rows = [
        (
            "flags: [x]",
            "3:1",
            "expected a mapping of names for `flags`, got a list",
            "write for example flags: {limit: integer}",
        ),
        (
            "flag:\n  x: text",
            "",
            "expected `flags`, got `flag`",
            "write for example flags: {limit: integer}",
        ),
        (
            "Flags: {x: text}",
            "",
            "expected `flags`, got `Flags`",
            "write for example flags: {limit: integer}",
        ),
        (
            "flags: {x: text}\nflags: {y: text}",
            "3:1",
            "expected each key of `flags` once, got one more than once",
            "keep one of them",
        ),
        (
            "flags:\n  x: text\n  x: integer",
            "3:1",
            "expected each key of `flags` once, got one more than once",
            "keep one of them",
        ),
        (
            "flags:\n  x: {max: 5, max: 500, type: integer}",
            "3:1",
            "expected each key of `flags` once, got one more than once",
            "keep one of them",
        ),
        (
            "flags:\n  x:",
            "4:3",
            "expected a type or a mapping for --x, got nothing",
            "write for example x: text",
        ),
        (
            "flags:\n  x: 5",
            "4:3",
            "expected a type or a mapping for --x, got the number 5",
            "write for example x: text",
        ),
        (
            "flags:\n  x: one_of",
            "4:3",
            "expected values for --x, got only its type",
            "write for example x: {values: [low, high]}",
        ),
        (
            "flags:\n  x: list",
            "4:3",
            "expected the type text, integer, number, boolean, one_of, date, datetime, email, \
          url or json for --x, got \"list\"",
            "write the type of one value, and repeatable: true",
        ),
        (
            "flags:\n  x:\n    type: intger",
            "5:5",
            "expected the type text, integer, number, boolean, one_of, date, datetime, email, \
          url or json for --x, got \"intger\"",
            "write for example type: integer",
        ),
        (
            "flags: {x: {type: 5}}",
            "3:13",
            "expected text, integer, number, boolean, one_of, date, datetime, email, url or \
          json for `type` of --x, got the number 5",
            "write for example type: integer",
        ),
        (
            "flags:\n  --x: text",
            "4:3",
            "expected up to 64 letters, digits, `-` and `_` as a flag's name, got `--x`",
            "write `x`",
        ),
        (
            "flags:\n  x y: text",
            "4:3",
            "expected up to 64 letters, digits, `-` and `_` as a flag's name, got `x y`",
            "write for example due-before",
        ),
        (
            "flags:\n  x-y: text\n  X_y: text",
            "5:3",
            "expected --X_y once, got two flags that are spelled alike",
            "rename or remove one of them",
        ),
        (
            "flags:\n  x: {requird: true}",
            "4:7",
            "expected a key of a flag for --x, got `requird`",
            "did you mean `required`?",
        ),
        (
            "flags:\n  x: {minimum: 1, type: integer}",
            "4:7",
            "expected a key of a flag for --x, got `minimum`",
            "did you mean `min`?",
        ),
        (
            "flags:\n  x: {enum: [a]}",
            "4:7",
            "expected a key of a flag for --x, got `enum`",
            "did you mean `values`?",
        ),
        (
            "flags:\n  x: {min: 1}",
            "4:3",
            "expected a type for --x, which has bounds",
            "write type: integer or type: number; a text has max_length",
        ),
        (
            "flags:\n  x: {type: integer, min: 5, max: 1}",
            "4:22",
            "expected `min` below `max` for --x",
            "exchange them",
        ),
        (
            "flags:\n  x: {type: integer, min: 1.5}",
            "4:22",
            "expected a whole number for `min` of --x, got the number 1.5",
            "write for example min: 100",
        ),
        (
            "flags:\n  x: {type: number, max: .inf}",
            "4:21",
            "expected a number for `max` of --x, got the text \".inf\"",
            "write for example max: 100",
        ),
        (
            "flags:\n  x: {max: 5, type: text}",
            "4:7",
            "expected no `max` for --x, whose type is text",
            "a text has max_length",
        ),
        (
            "flags:\n  x: {max_length: 0}",
            "4:7",
            "expected a number of characters, from 1 to 1000000 for `max_length` of --x, got the \
          number 0",
            "write for example max_length: 100",
        ),
        (
            "flags:\n  x: {type: one_of}",
            "4:3",
            "expected `values` for --x, got none",
            "write for example values: [low, high]",
        ),
        (
            "flags:\n  x: {values: []}",
            "4:7",
            "expected a list of 1 to 500 texts of up to 200 characters for `values` of --x, got a \
          list",
            "write for example values: [low, high]",
        ),
        (
            "flags:\n  x: {values: a}",
            "4:7",
            "expected a list of 1 to 500 texts of up to 200 characters for `values` of --x, got \
          the text \"a\"",
            "write for example values: [low, high]",
        ),
        (
            "flags:\n  x: {values: [a-b, A_B]}",
            "4:7",
            "expected different `values` for --x, got `A_B` twice",
            "remove one of them",
        ),
        (
            "flags:\n  x: {pattern: '(?=a)'}",
            "4:7",
            "expected a plain regular expression as the `pattern` of --x, got \"(?=a)\": `(?` is \
          not supported at character 1",
            "write for example pattern: '[A-Z]{2}-[0-9]+', which must match all of the value",
        ),
        (
            "flags:\n  x: {pattern: '[a'}",
            "4:7",
            "expected a plain regular expression as the `pattern` of --x, got \"[a\": it is too \
          large, or its brackets do not match at character 1",
            "write for example pattern: '[A-Z]{2}-[0-9]+', which must match all of the value",
        ),
        (
            "flags:\n  x: {type: integer, pattern: a}",
            "4:22",
            "expected no `pattern` for --x, whose type is integer",
            "leave it out, or write type: text",
        ),
        (
            "flags:\n  x: {type: integer, max: 5, default: 6}",
            "4:30",
            "expected one of its values as the `default` of --x, got \"6\"",
            "correct the default or the values",
        ),
        (
            "flags:\n  x: {pattern: a, default: b}",
            "4:19",
            "expected one of its values as the `default` of --x, got \"b\"",
            "correct the default or the values",
        ),
        (
            "flags:\n  x: {default: [a, b]}",
            "4:7",
            "expected one value for `default` of --x, got a list",
            "write one value, or a list for a repeatable flag",
        ),
        (
            "flags:\n  x: {required: true, default: a}",
            "4:23",
            "expected no `default` for --x, which is required",
            "remove `required` or `default`",
        ),
        (
            "flags:\n  x: {required: maybe}",
            "4:7",
            "expected true or false for `required` of --x, got the text \"maybe\"",
            "write for example required: true",
        ),
        (
            "flags:\n  x: {type: boolean, repeatable: true}",
            "4:22",
            "expected one value for --x, which is a boolean",
            "leave out `repeatable`",
        ),
        (
            "flags:\n  x: {positional: some}",
            "4:7",
            "expected true, false or all for `positional` of --x, got the text \"some\"",
            "write for example positional: true",
        ),
        (
            "flags:\n  x: {description: [a]}",
            "4:7",
            "expected text for `description` of --x, got a list",
            "put it in quotes",
        ),
    ];
    for (block, place, message, hint) in rows {
        let found = given(block);
        let [first, ..] = found.diagnostics.as_slice() else { panic!("{block}") };
        let at = first
            .line
            .map_or(String::new(), |line| format!("{line}:{}", first.column.unwrap_or(0)));
        assert_eq!((&*at, &*first.message), (place, &*format!("{message}{CLOSED}")), "{block}");
        assert_eq!(first.hint.as_deref(), Some(hint), "{block}");
        assert_eq!((first.code, first.severity), (Code::FlagsInvalid, Severity::Error));
        assert_eq!(found.error.as_deref(), Some(message), "{block}");
        assert_eq!(found.diagnostics.len(), 1, "{block}: {:?}", found.diagnostics);
    }
    let many = (0..101).map(|n| format!("  x{n}: text\n")).collect::<String>();
    let error = given(&format!("flags:\n{many}")).error;
    assert_eq!(error.as_deref(), Some("expected at most 100 flags, got 101"));
}

#[test]
fn mends_other_names_of_types() {
    let rows = [
        ("flags:\n  x: int", "flags:\n  x: integer", "4:3"),
        ("flags:\n  x: {type: string}", "flags:\n  x: {type: text}", "4:7"),
        ("flags:\n  x:\n    type: Bool", "flags:\n  x:\n    type: boolean", "5:5"),
        ("flags: {x: e-mail}", "flags: {x: email}", "3:9"),
        ("flags:\n  x: {required: yes}", "flags:\n  x: {required: true}", "4:7"),
        ("flags:\n  x: {repeatable: 'no'}", "", "4:7"),
    ];
    for (block, right, place) in rows {
        let found = given(block);
        let [mended] = found.diagnostics.as_slice() else { panic!("{block}") };
        assert_eq!((mended.code, found.error), (Code::FieldMended, None), "{block}");
        let at = format!("{}:{}", mended.line.unwrap_or(0), mended.column.unwrap_or(0));
        assert_eq!(at, place, "{block}");
        let text = format!("---\nname: a.b\n{block}\n---\n");
        let fixed = mended.fix.iter().map(|fix| apply(&text, std::slice::from_ref(fix)));
        let expected = match right {
            "" => vec![],
            right => vec![format!("---\nname: a.b\n{right}\n---\n")],
        };
        assert_eq!(fixed.collect::<Vec<_>>(), expected, "{block}");
    }
    assert_eq!(
        given("flags: {x: int}").diagnostics[0].message,
        "expected the type `integer` for --x, got `int`"
    );
}

mod properties {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_bytes_can_be_read(
            block in concat!(
                r"flags:[ ]?(\{[-a-c:,{}\[\]0-9. 'é]{0,60}\})?\n",
                r"([ ]{0,4}(x|y|type|min|max|values|default|pattern|required|aliases)",
                r"(: |:\n)(text|int|integer|[0-9]{1,2}|\[a, b\]|true|'[a\[(*+]{1,4}'|é)?\n){0,8}",
            ),
            bytes in proptest::collection::vec(any::<u8>(), 0..40),
        ) {
            let mut text = b"---\nname: a.b\n".to_vec();
            text.extend(block.as_bytes());
            text.extend(&bytes);
            text.extend(b"\n---\n## Flags\n\n--x  X\n");
            let page = Document::parse("/s", "a/b.md", &text);
            let lines = text.iter().filter(|byte| **byte == b'\n').count() as u32 + 1;
            if let Some(given) = &page.fields.flags {
                for found in &given.diagnostics {
                    prop_assert!(found.line.is_none_or(|line| (1..=lines).contains(&line)));
                    let fix = found.fix.as_ref().map(|fix| fix.range.clone());
                    prop_assert!(fix.is_none_or(|range| page.text.get(range).is_some()));
                }
                let errors =
                    given.diagnostics.iter().any(|found| found.severity == Severity::Error);
                prop_assert_eq!(errors, given.error.is_some());
                for flag in given.flags.iter().filter(|_| given.error.is_none()) {
                    prop_assert!(flag.default.iter().all(|value| flag.takes(value)));
                    prop_assert!(!flag.required || flag.default.is_empty());
                }
            }
        }
    }
}
