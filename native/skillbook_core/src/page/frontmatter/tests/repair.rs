//! Broken blocks that are repaired.

use super::*;

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
            "a:b",
            map(&[("a", text("b"))]),
            &["2:3 expected a space after the colon; read as: a: b"],
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
