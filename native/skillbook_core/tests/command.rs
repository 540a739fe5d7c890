//! Words, flags and names of commands, and the errors for lines that are not commands.

use skillbook_core::text::command::{parse, FlagValue};
use skillbook_core::text::words::split;
use skillbook_core::text::words::Reference::{self, Last, Number};
use skillbook_core::value::Value;

fn words(rows: &[(&str, &str, &[&str])]) {
    for (case, line, expected) in rows {
        let words = split(line).unwrap_or_else(|error| panic!("{case}: {error}"));
        let values: Vec<_> = words.iter().map(|word| word.value.as_ref()).collect();
        assert_eq!(values, *expected, "{case}");
    }
}

#[test]
fn words_and_quotes() {
    words(&[
        ("nothing", "", &[]),
        ("blanks", " \t ", &[]),
        ("plain", "a b\tc  d", &["a", "b", "c", "d"]),
        ("single", "a 'b c'", &["a", "b c"]),
        ("no escape in single", r"a 'b\n\'", &["a", r"b\n\"]),
        ("double", r#"a "b c""#, &["a", "b c"]),
        ("empty", r#"a "" ''"#, &["a", "", ""]),
        ("escapes", r#"a "\"\\\n\t\r""#, &["a", "\"\\\n\t\r"]),
        ("other backslashes stay", r#"a "C:\Users\d""#, &["a", r"C:\Users\d"]),
        ("dollar quote", r"a $'b\n\'c'", &["a", "b\n'c"]),
        ("a dollar inside a word", "a x$'b c'", &["a", "x$'b", "c'"]),
        (
            "dollars are not expanded",
            "a $100 $HOME `x` $(y)",
            &["a", "$100", "$HOME", "`x`", "$(y)"],
        ),
        ("double inside a word", r#"a from:"Bob Smith"x"#, &["a", "from:Bob Smithx"]),
        ("single inside a word", "a what's up", &["a", "what's", "up"]),
        ("single after equals", "a --b='c d' e='f g'", &["a", "--b=c d", "e=f g"]),
        ("single behind a quote", r#"a "b"'c"#, &["a", "b'c"]),
        ("a line break in a quote", "a \"b\nc\"", &["a", "b\nc"]),
        ("CRLF in a quote", "a 'b\r\nc'", &["a", "b\nc"]),
        ("a hash inside", "a #b c#", &["a", "#b", "c#"]),
        ("a comment", "# a b", &[]),
        ("a prompt", "$ a", &["a"]),
        ("one prompt", "$ $ a", &["$", "a"]),
        ("another prompt", "> a", &["a"]),
        ("line breaks around", "\n\n a\n\n", &["a"]),
    ]);
}

#[test]
fn curly_quotes() {
    words(&[
        ("double", "a “b c”", &["a", "b c"]),
        ("single", "a ‘b c’", &["a", "b c"]),
        ("after equals", "a --b=“c d”", &["a", "--b=c d"]),
        ("nested", "a “b “c” d”", &["a", "b “c” d"]),
        ("an apostrophe in a single one", "a ‘it’s so’", &["a", "it’s so"]),
        ("no partner", "a “b c", &["a", "“b", "c"]),
        ("no partner and a quote", "a “b \"c d\" e", &["a", "“b", "c d", "e"]),
        ("a closing one alone", "a b” c", &["a", "b”", "c"]),
        ("inside a word", "a x“b c”", &["a", "x“b", "c”"]),
        ("escapes", r#"a “b\n\"c”"#, &["a", "b\n\"c"]),
        ("over lines", "a “b\nc”", &["a", "b\nc"]),
        ("too deep", "a ““““““““““x””””””””””", &["a", "““““““““““x””””””””””"]),
    ]);
}

#[test]
fn backslashes() {
    words(&[
        ("the next character", r"a b\ c \- \\ \'e", &["a", "b c", "-", "\\", "'e"]),
        ("a letter or digit keeps it", r"a \d+\s C:\x\1y", &["a", r"\d+\s", r"C:\x\1y"]),
        ("a character of several bytes", "a \\é \\€", &["a", "\\é", "€"]),
        ("before a line end", "a b\\\nc \\\n  d", &["a", "bc", "d"]),
        ("before blanks and a line end", "a \\ \n d", &["a", "d"]),
        ("at the end", "a b\\", &["a", "b"]),
        ("a quoted one does not join", "a \"b\\\nc\"", &["a", "b\\\nc"]),
    ]);
}

#[test]
fn apostrophes() {
    words(&[
        ("between letters", "a 'it's Bob's'", &["a", "it's Bob's"]),
        ("behind equals", "a --b='it's'", &["a", "--b=it's"]),
        ("at the end it closes", "a 'Bobs' b", &["a", "Bobs", "b"]),
        ("before a letter alone", "a ''b", &["a", "b"]),
        ("with a backslash", r"a 'it\'s' b", &["a", "it's", "b"]),
        ("a backslash at the end", r"a 'C:\x\' b", &["a", r"C:\x\", "b"]),
        ("doubled", "a 'it''s' b", &["a", "it's", "b"]),
        ("as in a shell", r"a 'it'\''s' b", &["a", "it's", "b"]),
        ("as in a shell, quoted", r#"a 'it'"'"'s' b"#, &["a", "it's", "b"]),
        ("over lines", "a 'it's\nBob's'", &["a", "it's\nBob's"]),
    ]);
    let rows = [("a 'the users' list' b", 18..19), ("a 'say \\'hi\\' now'", 17..18)];
    for (line, span) in rows {
        let error = split(line).expect_err(line);
        assert_eq!((error.kind().as_str(), error.span()), ("unescaped_quote", span), "{line}");
    }
    for fine in ["a dogs' 'x'", "a 'x' rock'n'", "a 'x' '"] {
        assert_ne!(
            split(fine).map_err(|error| error.kind().as_str()),
            Err("unescaped_quote"),
            "{fine}"
        );
    }
}

#[test]
fn quotes_that_were_not_escaped() {
    for (line, at) in [
        (r#"a "The "best" b""#, 7),
        (r#"a --b="x"y"#, 8),
        (r#"a "x""y""#, 4),
        ("a \"p(\"hi\")\n\"", 5),
    ] {
        let error = split(line).expect_err(line);
        assert_eq!(
            (error.kind().as_str(), error.span()),
            ("unescaped_quote", at..at + 1),
            "{line}"
        );
    }
    words(&[
        ("behind it no letter", r#"a "b", "c". "d"/e"#, &["a", "b,", "c.", "d/e"]),
        ("a quote inside a word", r#"a b"c"d"#, &["a", "bcd"]),
        ("three quotes", "a \"\"\"say \"hi\"\nnow\"\"\" b", &["a", "say \"hi\"\nnow", "b"]),
        ("three quotes behind equals", r#"a --b="""c "d" e""""#, &["a", r#"--b=c "d" e"#]),
    ]);
}

#[test]
fn paths() {
    words(&[
        ("a drive", r#"a "C:\temp\new" b"#, &["a", r"C:\temp\new", "b"]),
        ("a drive and a backslash at the end", r#"a "C:\temp\" b"#, &["a", r"C:\temp\", "b"]),
        ("escaped ones", r#"a "C:\\temp\\new" b"#, &["a", r"C:\temp\new", "b"]),
        ("a drive and a quote", r#"a "C:\" b" c"#, &["a", "C:\" b", "c"]),
        ("a path inside a text", r#"a "in C:\temp" b"#, &["a", "in C:\temp", "b"]),
    ]);
}

#[test]
fn characters_that_look_like_blanks_or_nothing() {
    words(&[
        (
            "blanks of other kinds",
            "a\u{A0}b\u{202F}c\u{2009}d\u{3000}e\u{2028}f",
            &["a", "b", "c", "d", "e", "f"],
        ),
        ("in quotes they stay", "a \"b\u{A0}c\"", &["a", "b\u{A0}c"]),
        ("no width", "\u{FEFF}a.\u{200B}b --\u{AD}c\u{200E} d\u{2060}", &["a.b", "--c", "d"]),
        ("in quotes too", "a 'b\u{200B}c'", &["a", "b\u{200B}c"]),
        (
            "joiners are letters",
            "a \u{645}\u{6CC}\u{200C}\u{62E} \u{200D}",
            &["a", "\u{645}\u{6CC}\u{200C}\u{62E}", "\u{200D}"],
        ),
        ("other letters of three bytes", "a あ（ー） ﬁ", &["a", "あ（ー）", "ﬁ"]),
    ]);
    assert_eq!(parse("a\u{A0}--b\u{A0}c").unwrap().flag("b"), Some(&FlagValue::One("c".into())));
}

#[test]
fn comments_and_prompts() {
    words(&[
        ("behind the command", "a b # it's \"c", &["a", "b"]),
        ("alone at the end", "a b #", &["a", "b"]),
        ("a hash before a word", "a #b --c #1", &["a", "#b", "--c", "#1"]),
        ("quoted", "a '#' b \\# c", &["a", "#", "b", "#", "c"]),
        ("among joined lines", "a \\\n # b\n c", &["a", "c"]),
        ("behind words of a joined line", "a \\\n b # c", &["a", "b"]),
        ("Python's prompt", ">>> a", &["a"]),
        ("a number", "12. a", &["a"]),
        ("a number and a bracket", "1) a", &["a"]),
        ("bullets", "- a", &["a"]),
        ("another bullet", "• a", &["a"]),
        ("one mark only", "- - a", &["-", "a"]),
        ("no mark", "-a 1.b", &["-a", "1.b"]),
    ]);
}

#[test]
fn json_words() {
    words(&[
        ("an array", r#"a ["b", "c d"] e"#, &["a", r#"["b", "c d"]"#, "e"]),
        (
            "an object",
            r#"a --b {"c": [1, 2], "d": "} x"} e"#,
            &["a", "--b", r#"{"c": [1, 2], "d": "} x"}"#, "e"],
        ),
        ("behind equals", r#"a --b=["c", "d"]"#, &["a", r#"--b=["c", "d"]"#]),
        ("over lines", "a {\n  \"b\": 1\n}", &["a", "{\n  \"b\": 1\n}"]),
        ("no array", "a [b, c] [] {d}", &["a", "[b,", "c]", "[]", "{d}"]),
        ("something glued to it", r#"a ["b"]c"#, &["a", "[b]c"]),
        ("a string that goes on", "a {\"b\nc\"", &["a", "{b\nc"]),
    ]);
}

#[test]
fn heredocs() {
    words(&[
        ("common indentation", "a <<~EOF\n  b\n\n    c\n  EOF", &["a", "b\n\n  c"]),
        ("common indentation, quoted word", "a --b=<<~'E' c\n\tb\nE", &["a", "--b=b", "c"]),
        (
            "tabs are dropped, the end may be indented by blanks",
            "a <<-EOF\n\t b\n  EOF",
            &["a", " b"],
        ),
        ("in a substitution", "a \"$(cat <<'EOF'\nb \"c\"\nEOF\n)\" d", &["a", "b \"c\"", "d"]),
        (
            "in a substitution, without quotes",
            "a --b=$(cat << EOF\nb\nEOF\n  ) d",
            &["a", "--b=b", "d"],
        ),
        ("plain", "a <<EOF\nb\nc\nEOF", &["a", "b\nc"]),
        ("empty", "a <<EOF\nEOF", &["a", ""]),
        ("one empty line", "a <<EOF\n\nEOF", &["a", ""]),
        ("empty lines", "a <<E\n\n\nb\n\nE", &["a", "\n\nb\n"]),
        ("quoted words", "a <<'E F'\nb\nE F\n", &["a", "b"]),
        ("double quoted", "a <<\"E\"\nb\nE", &["a", "b"]),
        ("blanks in the quotes", "a <<'E '\nb\nE", &["a", "b"]),
        (
            "behind a quote over lines and a joined one",
            "a <<E \"b\nc\" \\\n --d\nx\nE",
            &["a", "x", "b\nc", "--d"],
        ),
        ("behind curly quotes", "a “b\nc” <<E\n”\nE", &["a", "b\nc", "”"]),
        ("behind one without a partner", "a “b <<E\nc\nE", &["a", "“b", "c"]),
        (
            "behind an equals sign, twice",
            "a --b=<<E --c=<<-'F'\n1\nE\n\t2\n\tF",
            &["a", "--b=1", "--c=2"],
        ),
        ("nothing is expanded", "a <<E\n$x \\n \"'`y`\nE", &["a", "$x \\n \"'`y`"]),
        ("tabs", "a <<-E\n\tb\n\t\tc\n\tE", &["a", "b\nc"]),
        ("tabs stay without the dash", "a <<E\n\tb\nE", &["a", "\tb"]),
        ("words behind it", "a --b <<E --c d\nx\nE", &["a", "--b", "x", "--c", "d"]),
        ("two in order", "a <<E <<F\n1\nE\n2\nF", &["a", "1", "2"]),
        ("after equals", "a --b=<<E\nx y\nE", &["a", "--b=x y"]),
        ("CRLF", "a <<E\r\nb\r\nc\r\nE\r\n", &["a", "b\nc"]),
        ("a blank before the word", "a << EOF\nb\nEOF", &["a", "b"]),
        ("blanks behind the end", "a <<E\nb\nE  ", &["a", "b"]),
        ("inside a word", "a b<<E", &["a", "b<<E"]),
        ("a number", "a 1 << 2 <<3", &["a", "1", "<<", "2", "<<3"]),
        ("quoted", "a '<<E'", &["a", "<<E"]),
    ]);
}

#[test]
fn nested_code() {
    words(&[
        (
            "quotes inside",
            "a \"x\n```py\ny(\"z\")\n```\n\" b",
            &["a", "x\n```py\ny(\"z\")\n```\n", "b"],
        ),
        (
            "escaped quotes inside",
            "a \"x\n```py\ny(\\\"z\\\")\n```\n\"",
            &["a", "x\n```py\ny(\"z\")\n```\n"],
        ),
        ("the quote right behind", "a \"```py\ny\n```\" b", &["a", "```py\ny\n```", "b"]),
        ("never closed", "a \"x\n```py\ny\" b", &["a", "x\n```py\ny", "b"]),
        ("never closed in curly quotes", "a --b=“x\n```py\ny” c", &["a", "--b=x\n```py\ny", "c"]),
        ("a bare fence is text here", "a \"x\n```\ny\"", &["a", "x\n```\ny"]),
    ]);
}

#[test]
fn spans_and_quoting() {
    let line = "a \"b c\" d\\ e —f <<E\nx\nE";
    let words = split(line).unwrap();
    let seen: Vec<_> = words
        .iter()
        .map(|word| (&line[word.span.clone()], word.value.as_ref(), word.quoted))
        .collect();
    assert_eq!(
        seen,
        [
            ("a", "a", false),
            ("\"b c\"", "b c", true),
            ("d\\ e", "d e", false),
            ("—f", "--f", false),
            ("<<E", "x", true),
        ]
    );
}

/// A command's flags and arguments as one line of text.
fn shown(line: &str) -> String {
    let command = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
    let mut parts = vec![command.name.to_string()];
    parts.extend(command.args.iter().map(|arg| format!("{arg:?}")));
    for (name, value) in &command.flags {
        parts.push(match value {
            FlagValue::True => format!("{name}:true"),
            FlagValue::One(value) => format!("{name}:{value:?}"),
            FlagValue::Many(values) => format!("{name}:{values:?}"),
            FlagValue::Json(value) => format!("{name}:{value:?}"),
        });
    }
    if command.help {
        parts.push("HELP".into());
    }
    parts.join(" ")
}

#[test]
fn flags() {
    let rows = [
        ("a", "a"),
        ("a --b", "a b:true"),
        ("a --b c", "a b:\"c\""),
        ("a --b c d", "a b:[\"c\", \"d\"]"),
        ("a --b c --b d", "a b:[\"c\", \"d\"]"),
        ("a --b --b", "a b:true"),
        ("a --b c --b", "a b:\"c\""),
        ("a --b=c", "a b:\"c\""),
        ("a --b= d", "a b:\"d\""),
        ("a --b= --c", "a b:\"\" c:true"),
        ("a --b=", "a b:\"\""),
        ("a --b = d e", "a b:[\"d\", \"e\"]"),
        ("a --b =\"d e\" --c =f", "a b:\"d e\" c:\"=f\""),
        ("a --b c = d", "a b:[\"c\", \"=\", \"d\"]"),
        ("a --b \"=\" d", "a b:[\"=\", \"d\"]"),
        ("a ––b c –-d", "a b:\"c\" d:true"),
        ("a ‑‑b −5 ‑c", "a b:[\"−5\", \"‑c\"]"),
        ("a －－b -—c", "a b:true c:true"),
        ("a --b=c d", "a b:[\"c\", \"d\"]"),
        ("a --b=c=d", "a b:\"c=d\""),
        ("a --b-c_d d", "a b-c_d:\"d\""),
        ("a --Übung x", "a Übung:\"x\""),
        ("a —b", "a b:true"),
        ("a –b=c", "a b:\"c\""),
        ("a —", "a \"—\""),
        ("a —5", "a \"—5\""),
        ("a x—b", "a \"x—b\""),
        ("a \"—b\"", "a \"—b\""),
        ("a --b \"--- signature\"", "a b:\"--- signature\""),
        ("a --b \"--c\"", "a b:\"--c\""),
        ("a --b \\--c", "a b:\"--c\""),
        ("a --b --- ----", "a b:[\"---\", \"----\"]"),
        ("a --b -5 -x - -.5", "a b:[\"-5\", \"-x\", \"-\", \"-.5\"]"),
        ("a x y --b z", "a \"x\" \"y\" b:\"z\""),
        ("a x --b z -- --c d", "a \"x\" \"--c\" \"d\" b:\"z\""),
        ("a -- --help", "a \"--help\""),
        ("a \"--\" x", "a \"--\" \"x\""),
        ("a --help", "a help:true HELP"),
        ("a --b c -h", "a b:[\"c\", \"-h\"] HELP"),
        ("a --b \"-h\" \"--help\"", "a b:[\"-h\", \"--help\"]"),
        ("get_skill", "get_skill"),
        ("get_skill: email.send", "get_skill \"email.send\""),
        ("get_skill:email.send", "get_skill \"email.send\""),
        ("get_skill email.send", "get_skill \"email.send\""),
        ("get_skills: x", "get_skills: \"x\""),
        (
            "a {\"b\": \"c d\", \"e\": [\"f\"], \"g\": true}",
            "a b:\"c d\" e:List([Str(\"f\")]) g:true",
        ),
        (
            "a {\"b\": 5, \"c\": null, \"d\": false, \"e\": 1.5}",
            "a b:Int(5) c:Null d:Bool(false) e:Float(1.5)",
        ),
        ("a {}", "a"),
        ("a {\"help\": true}", "a help:true HELP"),
        ("a {\"help\": false, \"i\": \"\"}", "a help:Bool(false) i:\"\""),
        ("$ a {\"b\": \"“x <<E |\"}", "a b:\"“x <<E |\""),
        ("a {\"b\": \"\\u0022\\u2028 \\n\"}", "a b:\"\\\"\\u{2028} \\n\""),
        ("a {\"b\": 1, \"b\": 2}", "a b:Int(2)"),
        ("get_skill: {\"name\": \"x\"}", "get_skill name:\"x\""),
        ("a —b=“c d”x –e", "a b:\"c dx\" e:true"),
        ("a —b=<<E\n—c\nE", "a b:\"—c\""),
        ("a b \u{2028}c\0d", "a \"b\" \"c\\0d\""),
        ("a {\"b\": \"it's; \\\"x\\\"\"}", "a b:\"it's; \\\"x\\\"\""),
        ("a {b}", "a \"{b}\""),
        ("a {b", "a \"{b\""),
        ("a b {", "a \"b\" \"{\""),
        ("a '{'", "a \"{\""),
        ("a '{\"b\": 1}'", "a b:Int(1)"),
        ("a '{b'", "a \"{b\""),
        ("a {\n  \"b\": [\n    1\n  ]\n}", "a b:List([Int(1)])"),
        ("a --b {\"c\": 1}", "a b:\"{\\\"c\\\": 1}\""),
        ("GET-SKILL: b", "get_skill \"b\""),
        ("get_skill：b", "get_skill \"b\""),
        ("a --b {\"c\":1}", "a b:\"{\\\"c\\\":1}\""),
    ];
    for (line, expected) in rows {
        assert_eq!(shown(line), expected, "{line}");
    }
}

#[test]
fn many_flags_are_merged_like_few() {
    let line = format!(
        "a {} --f3 x",
        (0..4_000).map(|i| format!("--f{i} v")).collect::<Vec<_>>().join(" ")
    );
    let command = parse(&line).unwrap();
    assert_eq!(command.flags.len(), 4_000);
    assert_eq!(command.flag("f3"), Some(&FlagValue::Many(vec!["v".into(), "x".into()])));
    assert_eq!(command.flag("f3999"), Some(&FlagValue::One("v".into())));
}

#[test]
fn deep_json() {
    let line = format!("a {{\"b\": {}1{}}}", "[".repeat(5_000), "]".repeat(5_000));
    assert_eq!(parse(&line).unwrap_err().kind().as_str(), "invalid_json");
    let command = parse("a {\"b\": [[{\"c\": 1}]]}").unwrap();
    let inner = Value::Map(vec![("c".into(), Value::Int(1))]);
    assert_eq!(
        command.flag("b"),
        Some(&FlagValue::Json(Value::List(vec![Value::List(vec![inner])])))
    );
}

#[test]
fn errors() {
    // The line and the whole text that the model reads.
    let rows = [
        (
            "a --b \"c d",
            concat!(
                "the double quote that opens here is never closed\n",
                "  a --b \"c d\n",
                "        ^\n",
                "hint: close the value with \", and write \\\" for a quote inside it; for a \
                 long text use a heredoc: --flag <<EOF, the text, a line EOF",
            ),
        ),
        (
            "a --b \"c:x\\\"",
            concat!(
                "the double quote that opens here is never closed\n",
                "  a --b \"c:x\\\"\n",
                "        ^\n",
                "hint: \\\" stands for a quote inside the value: write \\\\ for a backslash at \
                 its end, or use '…'; for a long text use a heredoc: --flag <<EOF, the text, a \
                 line EOF",
            ),
        ),
        (
            "a 'it",
            concat!(
                "the single quote that opens here is never closed\n",
                "  a 'it\n",
                "    ^\n",
                "hint: close the value with ', or put a value with an apostrophe in \"…\"; \
                 for a long text use a heredoc: --flag <<EOF, the text, a line EOF",
            ),
        ),
        (
            "a $'it",
            concat!(
                "the single quote that opens here is never closed\n",
                "  a $'it\n",
                "    ^^\n",
                "hint: close the value with ', and write \\' for a quote inside it; for a long \
                 text use a heredoc: --flag <<EOF, the text, a line EOF",
            ),
        ),
        (
            "a --b <<EOF --c\ntext",
            concat!(
                "the heredoc that begins here has no end line `EOF`\n",
                "  a --b <<EOF --c\n",
                "        ^^^^^\n",
                "hint: write a line with only EOF after the text, then close the block; \
                 quote it if it is part of a value",
            ),
        ),
        (
            "a <<EOF",
            concat!(
                "the heredoc that begins here has no end line `EOF`\n",
                "  a <<EOF\n",
                "    ^^^^^\n",
                "hint: write a line with only EOF after the text, then close the block; \
                 quote it if it is part of a value",
            ),
        ),
        (
            "a | b",
            concat!(
                "`|` is not supported: this is not a shell\n",
                "  a | b\n",
                "    ^\n",
                "hint: write one command per line, and use {1} as a value for the result of the \
                 first; quote it (\"|\") if it is part of a value",
            ),
        ),
        (
            "a && b",
            concat!(
                "`&&` is not supported: this is not a shell\n",
                "  a && b\n",
                "    ^^\n",
                "hint: write each command on its own line; {1} as a value is the result of the \
                 first one; quote it (\"&&\") if it is part of a value",
            ),
        ),
        (
            "a >> b",
            concat!(
                "`>>` is not supported: this is not a shell\n",
                "  a >> b\n",
                "    ^^\n",
                "hint: write one command per line; its result comes back to you; quote it \
                 (\">>\") if it is part of a value",
            ),
        ),
        (
            "a\nb c",
            concat!(
                "expected one command, but the next line begins another (line 2)\n",
                "  b c\n",
                "  ^\n",
                "hint: put each command on its own line of a cmd block; write a value of several \
                 lines in quotes or as a heredoc",
            ),
        ),
        (
            "a\n {\"b\": 1}",
            concat!(
                "expected one command, but the next line begins another (line 2)\n",
                "   {\"b\": 1}\n",
                "   ^^^^^\n",
                "hint: put each command on its own line of a cmd block; write a value of several \
                 lines in quotes or as a heredoc",
            ),
        ),
        (
            "a {",
            concat!(
                "the JSON object that opens here is never closed\n",
                "  a {\n",
                "    ^\n",
                "hint: write the whole object, up to its last }, or write flags: --name value",
            ),
        ),
        (
            "a {\"b\": \"c\",",
            concat!(
                "the JSON object that opens here is never closed\n",
                "  a {\"b\": \"c\",\n",
                "    ^\n",
                "hint: write the whole object, up to its last }, or write flags: --name value",
            ),
        ),
        (
            "a {\"b\": 1,}",
            concat!(
                "the JSON object that opens here cannot be read: trailing comma at character 9\n",
                "  a {\"b\": 1,}\n",
                "    ^\n",
                "hint: write one JSON object and nothing after it, or write flags: --name value",
            ),
        ),
        (
            "a {\"b\" c",
            concat!(
                "the JSON object that opens here is never closed\n",
                "  a {\"b\" c\n",
                "    ^\n",
                "hint: write the whole object, up to its last }, or write flags: --name value",
            ),
        ),
        (
            "a {\"b\": 1e400}",
            concat!(
                "the JSON object that opens here cannot be read: number out of range at \
                 character 11\n",
                "  a {\"b\": 1e400}\n",
                "    ^\n",
                "hint: write one JSON object and nothing after it, or write flags: --name value",
            ),
        ),
        (
            "a {\"b\": 1} --c",
            concat!(
                "more text follows the JSON object that opens here\n",
                "  a {\"b\": 1} --c\n",
                "    ^\n",
                "hint: write one JSON object and nothing after it, or write flags: --name value",
            ),
        ),
        (
            "{\"name\": \"a.b\", \"arguments\": {\"c\": 1}}",
            concat!(
                "expected a skill's name, got JSON\n",
                "  {\"name\": \"a.b\", \"arguments\": {\"c\": 1}}\n",
                "  ^\n",
                "hint: write the name, then an object with the flags: a.b {\"c\":1}",
            ),
        ),
        (
            "{\"function\": {\"name\": \"a.b\", \"arguments\": \"{\\\"c\\\": 1}\"}}",
            concat!(
                "expected a skill's name, got JSON\n",
                "  {\"function\": {\"name\": \"a.b\", \"arguments\":…\n",
                "  ^\n",
                "hint: write the name, then an object with the flags: a.b {\"c\": 1}",
            ),
        ),
        (
            "[{\"x\": 1}]",
            concat!(
                "expected a skill's name, got JSON\n",
                "  [{\"x\": 1}]\n",
                "  ^\n",
                "hint: write the name, then an object with the flags: tasks.create {\"title\": \
                 \"Call Bob\"}",
            ),
        ),
        (
            "</tool_call>",
            concat!(
                "expected a skill's name, got a tag\n",
                "  </tool_call>\n",
                "  ^^^^^^^^^^^^\n",
                "hint: write the command alone, without tags: NAME --flag value",
            ),
        ),
        (
            "``` so",
            concat!(
                "expected a skill's name, got a fence\n",
                "  ``` so\n",
                "  ^^^\n",
                "hint: close the block with a line that has only the fence, and write text \
                 after it",
            ),
        ),
        (
            "a \"The \"best\" b\"",
            concat!(
                "the value ends at this quote, but more text follows without a space\n",
                "  a \"The \"best\" b\"\n",
                "         ^\n",
                "hint: write \\\" for a quote inside the value, or '…' around it; for a long \
                 text use a heredoc: --flag <<EOF, the text, a line EOF",
            ),
        ),
        (
            "a 'the users' list'",
            concat!(
                "this quote closes nothing: the value in single quotes ended earlier\n",
                "  a 'the users' list'\n",
                "                    ^\n",
                "hint: put a value with an apostrophe in \"…\"",
            ),
        ),
        (
            "a \"b\"; c",
            concat!(
                "`;` is not supported: this is not a shell\n",
                "  a \"b\"; c\n",
                "       ^\n",
                "hint: write each command on its own line; {1} as a value is the result of the \
                 first one; quote it (\";\") if it is part of a value",
            ),
        ),
        (
            "a <<< b",
            concat!(
                "`<<<` is not supported: this is not a shell\n",
                "  a <<< b\n",
                "    ^^^\n",
                "hint: write the text itself after the flag, in quotes; quote it \
                 (\"<<<\") if it is part of a value",
            ),
        ),
        (
            "a $(cat <<EOF\nb\nEOF\nc",
            concat!(
                "the substitution that opens here is not closed: expected a line `)` after \
                 the heredoc\n",
                "  a $(cat <<EOF\n",
                "    ^^^^^^^^^^^\n",
                "hint: substitutions are not supported: write --flag <<EOF, then the text, then \
                 a line EOF",
            ),
        ),
        (
            "--title x",
            concat!(
                "expected a skill's name, got a flag\n",
                "  --title x\n",
                "  ^^^^^^^\n",
                "hint: put flags on their command's line, before the text of a heredoc; \
                 a backslash at the end continues a line",
            ),
        ),
        (
            "  ",
            concat!(
                "expected a command, got none\n",
                "  \n",
                "  ^\n",
                "hint: write a skill's name and its flags, for example: tasks.search --status todo",
            ),
        ),
        (
            "a \"x\nschöne \" | 'y",
            concat!(
                "the single quote that opens here is never closed (line 2)\n",
                "  schöne \" | 'y\n",
                "             ^\n",
                "hint: close the value with ', or put a value with an apostrophe in \"…\"; \
                 for a long text use a heredoc: --flag <<EOF, the text, a line EOF",
            ),
        ),
    ];
    for (line, expected) in rows {
        let error = parse(line).expect_err(line);
        assert_eq!(error.to_string(), expected, "{line}");
        assert!(line.get(error.span()).is_some(), "{line}");
    }
}

#[test]
fn operators() {
    for operator in ["|", "||", "&&", ";", "&", ">", ">>", "<"] {
        let error = split(&format!("a {operator} b")).expect_err(operator);
        assert_eq!(
            (error.kind().as_str(), error.span()),
            ("unsupported_operator", 2..2 + operator.len())
        );
        for fine in
            [format!("a '{operator}' b"), format!("a \\{operator} b"), format!("a x{operator} b")]
        {
            assert!(split(&fine).is_ok(), "{fine}");
        }
    }
    assert!(split("a <<<< ||| >|").is_ok());
    // A semicolon ends a command where that is certain, and is text elsewhere.
    for (line, words) in [
        ("a \"b c\";", &["a", "b c"][..]),
        ("a 'b';", &["a", "b"]),
        ("a --b=\"c\";", &["a", "--b=c"]),
        ("a b; then", &["a", "b;", "then"]),
        ("a b;", &["a", "b;"]),
        ("a \"b\"\\;", &["a", "b;"]),
        ("a \"b;\" c.d", &["a", "b;", "c.d"]),
    ] {
        let found: Vec<_> =
            split(line).unwrap().into_iter().map(|word| word.value.into_owned()).collect();
        assert_eq!(found, words, "{line}");
    }
    for line in ["a b; c.d e", "a b; get_skill: x", "a \"b\"; c"] {
        assert_eq!(split(line).expect_err(line).kind().as_str(), "unsupported_operator", "{line}");
    }
}

#[test]
fn limits() {
    let many = |count: usize| vec!["w"; count].join(" ");
    assert_eq!(split(&many(10_000)).unwrap().len(), 10_000);
    assert_eq!(split(&many(10_001)).unwrap_err().kind().as_str(), "too_many_words");
    let long = |len: usize| format!("a \"{}\"", "x".repeat(len - 4));
    assert!(split(&long(1 << 20)).is_ok());
    let error = split(&long((1 << 20) + 1)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a command may have 1048576 bytes; this one has 1048577\n\
         hint: split the text over several commands, or save it to a file and name the file"
    );
}

#[test]
fn a_long_line_is_shown_around_the_place() {
    let line = format!("a {} | {}", "x".repeat(200), "y".repeat(200));
    let text = split(&line).unwrap_err().to_string();
    let shown = text.lines().nth(1).unwrap();
    assert!(shown.starts_with("  …x") && shown.ends_with("y…"), "{shown}");
    assert!(shown.chars().count() < 120, "{shown}");
    let caret = text.lines().nth(2).unwrap();
    assert_eq!(shown.chars().nth(caret.chars().count() - 1), Some('|'));
}

/// Line; flag, position and reference.
type PlaceholderRow = (&'static str, &'static [(Option<&'static str>, usize, Reference)]);

#[test]
fn placeholders_are_whole_unquoted_values() {
    let rows: &[PlaceholderRow] = &[
        ("a {1}", &[(None, 0, Number(1))]),
        ("a {last}", &[(None, 0, Last)]),
        (
            "a x {12} --f {last} y {2}",
            &[(None, 1, Number(12)), (Some("f"), 0, Last), (Some("f"), 2, Number(2))],
        ),
        ("a --f x --g {1} --f {2}", &[(Some("g"), 0, Number(1)), (Some("f"), 1, Number(2))]),
        ("a --f x -- {1}", &[(None, 0, Number(1))]),
        ("a --f={1} {2}", &[(Some("f"), 0, Number(1)), (Some("f"), 1, Number(2))]),
        ("a --f = {1}", &[(Some("f"), 0, Number(1))]),
        ("a --f= {1}", &[(Some("f"), 0, Number(1))]),
        ("a —f={1}", &[(Some("f"), 0, Number(1))]),
        ("a \\\n{1}", &[(None, 0, Number(1))]),
        ("a {0}", &[(None, 0, Number(0))]),
        ("a {4294967295}", &[(None, 0, Number(4294967295))]),
        ("a {4294967296}", &[]),
        ("a {01} {+1} {-1} {} {1.0} {Last} {first} {{1}} {1 } {１}", &[]),
        ("a \"{1}\" '{1}' “{1}” \"\"\"{1}\"\"\" $'{1}'", &[]),
        ("a \\{1} {1\\} {\"1\"} {1\"}\"", &[]),
        ("a x{1} {1}x {1},{2} --{1}", &[]),
        ("a --f=\"{1}\" --g='{1}' --h=x{1} --i=\\{1} --j =\"{1}\"", &[]),
        ("a --f <<E\n{1}\nE", &[]),
        ("a --f=<<E\n{1}\nE", &[]),
        ("a {\"f\": \"{1}\"}", &[]),
        ("{1} x", &[]),
        ("a {1\u{200B}}", &[]),
    ];
    for (line, expected) in rows {
        let command = parse(line).unwrap_or_else(|error| panic!("{line}: {error}"));
        let found: Vec<_> = command
            .placeholders
            .iter()
            .map(|one| (one.flag.map(|flag| &*command.flags[flag].0), one.index, one.reference))
            .collect();
        assert_eq!(found, *expected, "{line}");
    }
}
