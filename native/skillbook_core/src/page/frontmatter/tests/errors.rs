//! Blocks that are refused, duplicates, tags and limits.

use super::*;

/// The error as `kind line:column message (hint)`.
fn refused(yaml: &str) -> String {
    match parse(&block(yaml)) {
        Ok(document) => panic!("{yaml}: {document:?}"),
        Err(error) => {
            let hint = error.hint.as_deref().unwrap_or("no hint");
            format!(
                "{} {}:{} {} ({hint})",
                error.kind.as_str(),
                error.line,
                error.column,
                error.message
            )
        }
    }
}

#[test]
fn what_could_mean_several_things_is_refused() {
    let cases = [
        (
            "just text",
            "not_mapping 2:1 expected `key: value` lines, got a single value or a list \
             (write `key: value` lines)",
        ),
        (
            "my name:x",
            "not_mapping 2:1 expected `key: value` lines, got a single value or a list \
             (write a space after the colon: `key: value`)",
        ),
        (
            "- a\n- b",
            "not_mapping 2:1 expected `key: value` lines, got a single value or a list \
             (write `key: value` lines)",
        ),
        (
            "a: b\n c: d",
            "invalid 3:3 a `key: value` is not allowed here (check the indentation of this line \
             and the one before it)",
        ),
        (
            "a: b: c\n  d: e",
            "invalid 2:5 an unquoted value may not contain a colon followed by a space \
             (put the value in quotes)",
        ),
        (
            "a: b: c\nuse when: d",
            "invalid 2:5 an unquoted value may not contain a colon followed by a space \
             (put the value in quotes)",
        ),
        (
            "a: [b, c",
            "invalid 3:1 expected `,` or `]` after an item of a list (close the list, or put the \
             value in quotes if it is text)",
        ),
        (
            "a: {b: c",
            "invalid 3:1 expected `,` or `}` after a pair of a mapping (close it, or put the value \
             in quotes if it is text)",
        ),
        (
            "a:\n  b: 1\n c: 2",
            "invalid 4:2 expected a line `key: value` (check this line's indentation, and the \
             quotes in the line before it)",
        ),
        (
            "a: |\ntext\nb: 1",
            "invalid 4:1 expected a colon and a space after the key (write `key: value`)",
        ),
        (
            "a: 1\n...\nb: 1",
            "invalid 3:1 expected one YAML document, but another one begins here \
             (remove the line that ends the first)",
        ),
        (
            "? [a]\n: b",
            "invalid 2:3 a key must be text, but this one is a list or a mapping \
             (put a value that begins with `{` or `[` in quotes)",
        ),
        (
            "\"a: 1\nb: 2",
            "invalid 2:1 the quote opened here is never closed (close it, or put the whole value \
             in the other kind of quotes)",
        ),
    ];
    for (yaml, expected) in cases {
        assert_eq!(refused(yaml), expected, "{yaml}");
    }
}

#[test]
fn an_open_block_names_its_first_line() {
    let error = parse("---\nname: a\n").unwrap_err();
    assert_eq!(
        (error.kind, error.line, error.column, error.offset),
        (ErrorKind::Unclosed, 1, 1, 0)
    );
    assert_eq!(
        error.message,
        "expected a closing `---` for the frontmatter opened here, got the end of the text"
    );
    assert_eq!(error.to_diagnostic().code, Code::FrontmatterUnclosed);
    assert_eq!(error.to_string(), format!("{} at line 1, column 1", error.message));
}

#[test]
fn duplicate_keys_and_tags_are_told() {
    let text = block("a: 1\nb: !t 2\nc: {d: 1, d: 2}\na: 3\ne: ! f");
    let document = parse(&text).unwrap();
    let expected = [
        ("a", Value::Int(3)),
        ("b", Value::Int(2)),
        ("c", map(&[("d", Value::Int(2))])),
        ("e", self::text("f")),
    ];
    assert_eq!(document.data, map(&expected));
    let found: Vec<_> = document
        .diagnostics
        .iter()
        .map(|d| (d.code, d.line.unwrap(), d.column.unwrap(), d.message.as_str()))
        .collect();
    assert_eq!(
        found,
        [
            (Code::FrontmatterTag, 3, 4, "the tag `!t` is not part of the value and is left out"),
            (Code::DuplicateKey, 4, 11, "`d` is written more than once; the last one is used"),
            (Code::DuplicateKey, 5, 1, "`a` is written more than once; the last one is used"),
            (Code::FrontmatterTag, 6, 4, "the tag `!` is not part of the value and is left out"),
        ]
    );

    let text = block(&"a: 1\n".repeat(100));
    let document = parse(&text).unwrap();
    assert_eq!(document.diagnostics.len(), 6);
    assert!(document
        .diagnostics
        .iter()
        .any(|d| d.message == "94 more keys are duplicates or values have a tag"));
}

#[test]
fn what_would_take_too_long_or_too_much_is_refused() {
    let nine = |name: char| format!("[{}]", vec![format!("*{name}"); 9].join(","));
    let laughs: String = ('b'..'k')
        .zip('a'..)
        .map(|(next, name)| format!("{next}: &{next} {}\n", nine(name)))
        .collect();
    let cases = [
        ("lists", "[".repeat(500_000), ErrorKind::TooDeep),
        ("mappings", "{a: ".repeat(200_000), ErrorKind::TooDeep),
        ("closed lists", format!("a: {}{}", "[".repeat(200), "]".repeat(200)), ErrorKind::TooDeep),
        ("items", "- ".repeat(100_000), ErrorKind::TooDeep),
        (
            "entries",
            (0..100).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect(),
            ErrorKind::TooDeep,
        ),
        ("an alias of itself", "a: &a [*a, *a]".into(), ErrorKind::TooDeep),
        ("laughs", format!("a: &a [1,1,1,1,1,1,1,1,1]\n{laughs}"), ErrorKind::TooLarge),
        (
            "a long list, again and again",
            format!("a: &a [{}]\nb: [{}]", "1,".repeat(9999), "*a,".repeat(9999)),
            ErrorKind::TooLarge,
        ),
        (
            "a long text, again and again",
            format!("a: &a {}\nb: [{}]", "x".repeat(99_999), "*a,".repeat(9999)),
            ErrorKind::TooLarge,
        ),
        (
            "a million aliases",
            format!("a: &a x\nb: [{}]", "*a,".repeat(1_000_000)),
            ErrorKind::TooLarge,
        ),
        ("no end", "a: b\n".repeat(300_000), ErrorKind::TooLarge),
        ("a quote without end", format!("a: \"{}", "b\n".repeat(300_000)), ErrorKind::Invalid),
    ];
    for (name, yaml, kind) in cases {
        assert_eq!(read(&yaml), Err(kind), "{name}");
    }
}

#[test]
fn values_nest_64_deep() {
    let nested = |depth: usize| format!("a: {}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&nested(MAX_DEPTH - 1)).is_ok());
    assert_eq!(read(&nested(MAX_DEPTH)), Err(ErrorKind::TooDeep));
}

#[test]
fn bytes_that_are_not_utf8_are_refused() {
    let cases: [(&[u8], usize, u32, u32, &str); 4] = [
        (b"\xff", 0, 1, 1, "save the file as UTF-8"),
        (b"ab\ncd\xc3", 5, 2, 3, "save the file as UTF-8"),
        ("é\u{FEFF}".as_bytes().split_last().unwrap().1, 2, 1, 2, "save the file as UTF-8"),
        (b"\xff\xfea\0", 0, 1, 1, "this looks like UTF-16; save the file as UTF-8"),
    ];
    for (bytes, offset, line, column, hint) in cases {
        let error = decode(bytes).unwrap_err();
        assert_eq!(
            (error.kind, error.offset, error.line, error.column),
            (ErrorKind::Encoding, offset, line, column)
        );
        assert_eq!(error.hint.as_deref(), Some(hint));
    }
    assert_eq!(decode("é".as_bytes()), Ok("é"));
}
