use super::*;
use proptest::prelude::*;

fn block(yaml: &str) -> String {
    format!("---\n{yaml}\n---\nbody")
}

fn read(yaml: &str) -> Result<Value, ErrorKind> {
    parse(&block(yaml)).map(|document| document.data).map_err(|error| error.kind)
}

/// The value of `a`, with nothing said about it.
fn scalar(text: &str) -> Value {
    let text = block(&format!("a: {text}"));
    let document = parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    assert_eq!(document.diagnostics, [], "{text}");
    document.data.get("a").cloned().unwrap_or_else(|| panic!("{text}"))
}

fn text(text: &str) -> Value {
    Value::Str(text.into())
}

fn list(items: &[Value]) -> Value {
    Value::List(items.to_vec())
}

fn map(pairs: &[(&str, Value)]) -> Value {
    Value::Map(pairs.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect())
}

#[test]
fn the_parts_of_a_document() {
    let document = parse("\u{FEFF}---\r\nname: a\r\n---\r\nline 4\r\n").unwrap();
    assert_eq!(document.data, map(&[("name", text("a"))]));
    assert_eq!((document.body, document.body_offset, document.body_line), ("line 4\r\n", 22, 4));
    assert!(document.present && document.diagnostics.is_empty());

    let document = parse("\u{FEFF}# Title\n").unwrap();
    assert_eq!(document.data, map(&[]));
    assert_eq!((document.body, document.body_offset, document.body_line), ("# Title\n", 3, 1));
    assert!(!document.present);

    let document = parse("---\n---").unwrap();
    assert_eq!(
        (document.body, document.body_offset, document.body_line, document.present),
        ("", 7, 2, true)
    );
}

#[test]
fn scalars_are_typed_as_in_the_core_schema() {
    let cases = [
        ("", Value::Null),
        ("~", Value::Null),
        ("null", Value::Null),
        ("NULL", Value::Null),
        ("nULL", text("nULL")),
        ("true", Value::Bool(true)),
        ("False", Value::Bool(false)),
        ("tRUE", text("tRUE")),
        ("yes", text("yes")),
        ("on", text("on")),
        ("0", Value::Int(0)),
        ("-0", Value::Int(0)),
        ("12", Value::Int(12)),
        ("+12", Value::Int(12)),
        ("-12", Value::Int(-12)),
        ("007", text("007")),
        ("-01", text("-01")),
        ("0x1F", Value::Int(31)),
        ("-0x1f", Value::Int(-31)),
        ("0o17", Value::Int(15)),
        ("0b101", Value::Int(5)),
        ("0xG", text("0xG")),
        ("1_000", text("1_000")),
        ("999999999999999999", Value::Int(999_999_999_999_999_999)),
        ("9223372036854775807", Value::Int(i64::MAX)),
        ("9223372036854775808", Value::Float(9_223_372_036_854_775_808.0)),
        ("-9223372036854775808", Value::Int(i64::MIN)),
        ("-9223372036854775809", Value::Float(-9_223_372_036_854_775_808.0)),
        (
            "340282366920938463463374607431768211456",
            Value::Float(340_282_366_920_938_463_463_374_607_431_768_211_456.0),
        ),
        ("1.5", Value::Float(1.5)),
        ("00.5", Value::Float(0.5)),
        ("-1.5", Value::Float(-1.5)),
        (".5", Value::Float(0.5)),
        ("1.", Value::Float(1.0)),
        ("1e3", Value::Float(1000.0)),
        ("1.5e-3", Value::Float(0.0015)),
        ("1e400", text("1e400")),
        ("1.2.3", text("1.2.3")),
        (".inf", text(".inf")),
        ("-.Inf", text("-.inf")),
        (".nan", text(".nan")),
        ("inf", text("inf")),
        ("nan", text("nan")),
        ("2026-02-27", text("2026-02-27")),
        ("2026-02-27T10:00:00Z", text("2026-02-27T10:00:00Z")),
        ("10:30", text("10:30")),
        ("\"12\"", text("12")),
        ("'null'", text("null")),
        ("!!str 12", text("12")),
        ("!!int 12", Value::Int(12)),
        ("!!float 12", Value::Float(12.0)),
    ];
    for (yaml, expected) in cases {
        assert_eq!(scalar(yaml), expected, "{yaml}");
    }
}

#[test]
fn values_of_every_shape() {
    let cases = [
        ("b c", text("b c")),
        ("b # comment", text("b")),
        ("b#c", text("b#c")),
        ("http://x.y/z", text("http://x.y/z")),
        ("b --- c", text("b --- c")),
        ("\"b: c\"", text("b: c")),
        ("\"b \\\"c\\\" \\u00e9\\n\"", text("b \"c\" é\n")),
        ("'it''s'", text("it's")),
        ("b\n  c\n\n  d", text("b c\nd")),
        ("|\n  b\n  ---\n   c\n", text("b\n---\n c\n")),
        (">-\n  b\n  c: d\n", text("b c: d")),
        ("|\r\n  b\r\n  c\r\n", text("b\nc\n")),
        ("日本語：é 😀", text("日本語：é 😀")),
        ("[]", list(&[])),
        ("{}", map(&[])),
        (
            "[b, 'c, d', \"e]\", 1, ~]",
            list(&[text("b"), text("c, d"), text("e]"), Value::Int(1), Value::Null]),
        ),
        ("[ b ,c ]", list(&[text("b"), text("c")])),
        ("[b, [c]]", list(&[text("b"), list(&[text("c")])])),
        ("[b, c,]", list(&[text("b"), text("c")])),
        ("[\n  b,\n  c\n]", list(&[text("b"), text("c")])),
        ("\n- b\n- 1", list(&[text("b"), Value::Int(1)])),
        ("\n  - b\n\n  # comment\n  - [c]", list(&[text("b"), list(&[text("c")])])),
        ("\n- b: c\n  d: e", list(&[map(&[("b", text("c")), ("d", text("e"))])])),
        ("\n  b: 1\n  c:\n    d: e", map(&[("b", Value::Int(1)), ("c", map(&[("d", text("e"))]))])),
        ("{b: c, d: [e]}", map(&[("b", text("c")), ("d", list(&[text("e")]))])),
    ];
    for (yaml, expected) in cases {
        assert_eq!(scalar(yaml), expected, "{yaml}");
    }
}

#[test]
fn keys_are_text_as_written() {
    let yaml = "1.50: a\ntrue: b\n~: c\n'q r': d\n? s\n: e\n<<: f\n2026-01-01: g";
    let keys = ["1.50", "true", "~", "q r", "s", "<<", "2026-01-01"];
    let values = ["a", "b", "c", "d", "e", "f", "g"];
    let pairs: Vec<_> = keys.into_iter().zip(values.map(text)).collect();
    assert_eq!(read(yaml), Ok(map(&pairs)));
}

#[test]
fn a_block_without_values_is_an_empty_mapping() {
    for yaml in ["", "\n", "# comment", "~", "  ", "{}"] {
        assert_eq!(read(yaml), Ok(map(&[])), "{yaml:?}");
    }
}

#[test]
fn aliases_repeat_a_value() {
    assert_eq!(
        read("a: &x [1]\nb: *x"),
        Ok(map(&[("a", list(&[Value::Int(1)])), ("b", list(&[Value::Int(1)]))]))
    );
}

/// The data and each diagnostic as `line:column message`.
fn mended(yaml: &str) -> (Value, Vec<String>) {
    let text = block(yaml);
    let document = parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
    let lines = document.diagnostics.iter().map(|found| {
        let (line, column) = (found.line.unwrap_or_default(), found.column.unwrap_or_default());
        assert_eq!((found.code, found.severity), (Code::FrontmatterRepaired, Severity::Warning));
        format!("{line}:{column} {}", found.message)
    });
    (document.data, lines.collect())
}

#[test]
fn a_broken_value_is_read_as_text() {
    const COLON: &str = "an unquoted value may not contain a colon followed by a space";
    let begins = |character: char| format!("an unquoted value may not begin with `{character}`");
    let cases: Vec<(&str, String, &str, &str)> = vec![
        ("Use: it", COLON.into(), "\"Use: it\"", "Use: it"),
        ("a: \"b\" \\c", COLON.into(), "'a: \"b\" \\c'", "a: \"b\" \\c"),
        ("it's: so", COLON.into(), "\"it's: so\"", "it's: so"),
        ("ends in:", COLON.into(), "\"ends in:\"", "ends in:"),
        ("b: c # d", COLON.into(), "\"b: c # d\"", "b: c # d"),
        ("@b", begins('@'), "\"@b\"", "@b"),
        ("`b` c", begins('`'), "\"`b` c\"", "`b` c"),
        (", b", begins(','), "\", b\"", ", b"),
        ("%b", begins('%'), "\"%b\"", "%b"),
        ("& b", begins('&'), "\"& b\"", "& b"),
        ("*b* c", begins('*'), "\"*b* c\"", "*b* c"),
        ("*b", begins('*'), "\"*b\"", "*b"),
        ("!!int b", begins('!'), "\"!!int b\"", "!!int b"),
        ("| b", begins('|'), "\"| b\"", "| b"),
        ("> b", begins('>'), "\"> b\"", "> b"),
        ("]b", begins(']'), "\"]b\"", "]b"),
        ("}b", begins('}'), "\"}b\"", "}b"),
        ("- b", begins('-'), "\"- b\"", "- b"),
        ("? b", begins('?'), "\"? b\"", "? b"),
        ("[a] [b]", "a value that begins with `[` must be a list".into(), "\"[a] [b]\"", "[a] [b]"),
        ("{a} b", "a value that begins with `{` must be a mapping".into(), "\"{a} b\"", "{a} b"),
        (
            "{{ b }}",
            "a value that begins with `{` must be a mapping".into(),
            "\"{{ b }}\"",
            "{{ b }}",
        ),
        (
            "\"b\" c",
            "nothing may follow the quote that closes a value".into(),
            "'\"b\" c'",
            "\"b\" c",
        ),
        (
            "\"b\" or \"c\"",
            "a double quote inside double quotes needs a backslash".into(),
            "'\"b\" or \"c\"'",
            "\"b\" or \"c\"",
        ),
        (
            "\"b \"c\" d\"",
            "a double quote inside double quotes needs a backslash".into(),
            "'b \"c\" d'",
            "b \"c\" d",
        ),
        (
            "'it's b'",
            "a single quote inside single quotes must be doubled".into(),
            "\"it's b\"",
            "it's b",
        ),
        ("\"b", "the quote opened here is never closed".into(), "\"b\"", "b"),
        ("\"bé", "the quote opened here is never closed".into(), "\"bé\"", "bé"),
        ("'b", "the quote opened here is never closed".into(), "\"b\"", "b"),
        (
            "\"C:\\dir\"",
            "a backslash in double quotes begins an escape, and YAML has no such escape".into(),
            "'C:\\dir'",
            "C:\\dir",
        ),
    ];
    for (yaml, why, quoted, value) in cases {
        let (data, diagnostics) = mended(&format!("name: x\na: {yaml}\nz: 1"));
        assert_eq!(
            data,
            map(&[("name", text("x")), ("a", text(value)), ("z", Value::Int(1))]),
            "{yaml}"
        );
        assert_eq!(diagnostics, [format!("3:4 {why}; read as: a: {quoted}")], "{yaml}");
    }
}

#[test]
fn other_slips_that_are_mended() {
    let cases: &[(&str, Value, &[&str])] = &[
        (
            "a: b: c\n# one\nd: e: f\n  # two\n  g\n",
            map(&[("a", text("b: c")), ("d", text("e: f g"))]),
            &[
                "2:4 an unquoted value may not contain a colon followed by a space; read as: a: \
                 \"b: c\"",
                "4:4 an unquoted value may not contain a colon followed by a space; read as: d: \
                 \"e: f g\"",
            ],
        ),
        (
            "a: [@b/c, d, 1, e: f: g]",
            map(&[("a", list(&[text("@b/c"), text("d"), Value::Int(1), text("e: f: g")]))]),
            &["2:4 an unquoted value may not begin with `@`; read as: a: [\"@b/c\", d, 1, \"e: f: \
               g\"]"],
        ),
        (
            "a: [*]",
            map(&[("a", list(&[text("*")]))]),
            &["2:4 an unquoted value may not begin with `*`; read as: a: [\"*\"]"],
        ),
        (
            "a: -b: c",
            map(&[("a", text("-b: c"))]),
            &["2:4 an unquoted value may not contain a colon followed by a space; read as: a: \
               \"-b: c\""],
        ),
        (
            "a: b: c\n  and D: e\nf: g: h",
            map(&[("a", text("b: c and D: e")), ("f", text("g: h"))]),
            &[
                "2:4 an unquoted value may not contain a colon followed by a space; read as: a: \
                 \"b: c and D: e\"",
                "4:4 an unquoted value may not contain a colon followed by a space; read as: f: \
                 \"g: h\"",
            ],
        ),
        (
            "a:\n  Use: this\n  and that",
            map(&[("a", text("Use: this and that"))]),
            &["2:4 expected a colon and a space after the key; read as: a: \"Use: this and that\""],
        ),
        (
            "a: long text\nthat goes on\nb: 1",
            map(&[("a", text("long text that goes on")), ("b", Value::Int(1))]),
            &["2:4 expected a colon and a space after the key; read as: a: \
               \"long text that goes on\""],
        ),
        (
            "b: 1\na:c d",
            map(&[("b", Value::Int(1)), ("a", text("c d"))]),
            &["3:3 expected a space after the colon; read as: a: c d"],
        ),
        (
            "a:\n\tb: 1\n\tc: 2",
            map(&[("a", map(&[("b", Value::Int(1)), ("c", Value::Int(2))]))]),
            &[
                "3:1 a line may not be indented with a tab; read as: b: 1",
                "4:1 a line may not be indented with a tab; read as: c: 2",
            ],
        ),
        (
            "a: 1\n\t\nb: 2",
            map(&[("a", Value::Int(1)), ("b", Value::Int(2))]),
            &["3:1 a line may not be indented with a tab; read as: an empty line"],
        ),
        (" \t", map(&[]), &["2:1 a line may not be indented with a tab; read as: an empty line"]),
        (
            "a: b\u{8}c",
            map(&[("a", text("bc"))]),
            &["2:5 a control character is not allowed in YAML; read as: a: bc"],
        ),
        (
            "a: |\n  \u{1b}[1mb\n  c",
            map(&[("a", text("[1mb\nc\n"))]),
            &["3:3 a control character is not allowed in YAML; read as: [1mb"],
        ),
        (
            "m:\n  a: b: c\n  l:\n    - d: e: f\n      g: 1\n    - @h",
            map(&[(
                "m",
                map(&[
                    ("a", text("b: c")),
                    ("l", list(&[map(&[("d", text("e: f")), ("g", Value::Int(1))]), text("@h")])),
                ]),
            )]),
            &[
                "3:6 an unquoted value may not contain a colon followed by a space; read as: a: \
                 \"b: c\"",
                "5:10 an unquoted value may not contain a colon followed by a space; read as: - d: \
                 \"e: f\"",
                "7:7 an unquoted value may not begin with `@`; read as: - \"@h\"",
            ],
        ),
        (
            "a: &x 1\nb: *x\nc: d: e\nf: [\n  g,\n]\nh: >\n  i: j\n  k",
            map(&[
                ("a", Value::Int(1)),
                ("b", Value::Int(1)),
                ("c", text("d: e")),
                ("f", list(&[text("g")])),
                ("h", text("i: j k\n")),
            ]),
            &["4:4 an unquoted value may not contain a colon followed by a space; read as: c: \"d: \
               e\""],
        ),
        (
            "a: b: c\r\nd: e\r",
            map(&[("a", text("b: c")), ("d", text("e"))]),
            &["2:4 an unquoted value may not contain a colon followed by a space; read as: a: \"b: \
               c\""],
        ),
        (
            "é: 1\na: «é»: b",
            map(&[("é", Value::Int(1)), ("a", text("«é»: b"))]),
            &["3:4 an unquoted value may not contain a colon followed by a space; read as: a: \
               \"«é»: b\""],
        ),
    ];
    for (yaml, data, diagnostics) in cases {
        assert_eq!(
            mended(yaml),
            (data.clone(), diagnostics.iter().map(|&line| line.to_owned()).collect()),
            "{yaml}"
        );
    }
}

#[test]
fn a_long_line_is_shown_in_part() {
    let (_, diagnostics) = mended(&format!("a: b: {}", "é".repeat(500)));
    assert!(
        diagnostics[0].ends_with("ééé…") && diagnostics[0].chars().count() < 300,
        "{}",
        diagnostics[0]
    );
}

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
            "name:x",
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
fn a_large_mapping_has_each_key_once() {
    let mut yaml: String = (0..100).map(|number| format!("k{number}: {number}\n")).collect();
    yaml += "k7: again\nk99: again";
    let Ok(Value::Map(pairs)) = read(&yaml) else { panic!("not read") };
    assert_eq!(pairs.len(), 100);
    assert_eq!(
        (&pairs[7].1, &pairs[99].1, &pairs[8].1),
        (&text("again"), &text("again"), &Value::Int(8))
    );
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

#[test]
fn what_is_written() {
    let pairs = [
        ("name", text("a")),
        ("note", text("b: c")),
        ("text", text("d\n---\ne\n")),
        ("version", text("1.0")),
        ("tags", list(&[text("x"), Value::Null])),
        ("metadata", map(&[("one", Value::Float(1.0))])),
    ];
    let Value::Map(pairs) = map(&pairs) else { unreachable!() };
    let expected = "---\nname: a\nnote: 'b: c'\ntext: |\n  d\n  ---\n  e\nversion: '1.0'\ntags:\n\
                    - x\n- null\nmetadata:\n  one: 1.0\n---\nbody";
    assert_eq!(write(&pairs, "body"), expected);
    assert_eq!(write(&[], "---\n"), "---\n---\n---\n");
}

#[test]
fn a_text_may_end_with_any_line_break() {
    for end in ["\n", "\r", "\u{85}", "\u{2028}", "\u{2029}"] {
        let Value::Map(pairs) = map(&[("a", list(&[text(&format!("\n{end}"))]))]) else {
            unreachable!()
        };
        let written = write(&pairs, "body");
        let document = parse(&written).unwrap_or_else(|error| panic!("{error}: {written:?}"));
        assert_eq!(
            (document.data, document.body, document.diagnostics),
            (Value::Map(pairs), "body", vec![])
        );
    }
}

/// Text of all sorts, and much of what has a meaning in YAML.
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

/// Lines as they stand in blocks, whole and broken.
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
