//! The verdicts of the Agent Skills format, valid or not, and our messages.

use skillbook_core::lint::spec::check;

const BASE: &str = "name: a\ndescription: d\n";

/// The messages with their positions.
fn found(folder: &str, text: &str) -> Vec<String> {
    let found = check(folder, text.as_bytes());
    found
        .iter()
        .map(|one| format!("{}:{} {}", one.line.unwrap(), one.column.unwrap(), one.message))
        .collect()
}

fn block(fields: &str) -> Vec<String> {
    found("a", &format!("---\n{fields}---\nBody.\n"))
}

#[test]
fn accepts_valid_skills() {
    let rows = [
        BASE,
        concat!(
            "name: a\n",
            "description: \"Use: it\"\n",
            "license: MIT\n",
            "compatibility: Python 3.11+\n",
            "allowed-tools: Bash(jq:*) Read\n",
            "metadata:\n",
            "  version: 1.0\n",
        ),
        "name: '  a  '\ndescription: >\n  x\n  y\n",
        "name: a\ndescription: x\n  y\n",
        "name: a # comment\ndescription: it's # comment\n",
        "name: a\ndescription: yes\ncompatibility:\n",
        "name: a\ndescription: |\n  x\ty\n",
        "name: a\ndescription: d\nallowed-tools:\n- Read\n- Write\n",
        "'name': a\n\"description\": d\n",
        "name: a\ndescription: d\nmetadata:\n  '<<': x\n",
    ];
    for fields in rows {
        assert_eq!(block(fields), Vec::<String>::new(), "{fields}");
    }
    assert!(found("a", "---\r\nname: a\r\ndescription: d\r\n---\r\n").is_empty(), "CRLF");
    assert!(
        found("a", "---name: a\ndescription: d\n---\n").is_empty(),
        "on the line of the dashes"
    );
}

#[test]
fn names() {
    let long = "a".repeat(64);
    let too_long = "a".repeat(65);
    let rows: &[(&str, &str, &[&str])] = &[
        ("my-skill", "my-skill", &[]),
        ("123", "123", &[]),
        (&long, &long, &[]),
        ("café", "cafe\u{301}", &[]),
        ("ab", "\u{ff41}b", &[]),
        ("技能", "技能", &[]),
        ("мой-навык", "мой-навык", &[]),
        ("½", "½", &["2:1 expected letters, digits and `-` in the name, got '⁄'"]),
        ("НАВЫК", "НАВЫК", &["2:1 expected lowercase letters in the name"]),
        ("MySkill", "MySkill", &["2:1 expected lowercase letters in the name"]),
        (&too_long, &too_long, &["2:1 `name` may have at most 64 characters, this one has 65"]),
        ("-a", "-a", &["2:1 a name may not begin or end with `-`"]),
        ("a-", "a-", &["2:1 a name may not begin or end with `-`"]),
        ("a--b", "a--b", &["2:1 a name may not have two `-` in a row"]),
        ("a_b", "a_b", &["2:1 expected letters, digits and `-` in the name, got '_'"]),
        ("हिन्दी", "हिन्दी", &["2:1 expected letters, digits and `-` in the name, got 'ि'"]),
        ("🅐", "🅐", &["2:1 expected letters, digits and `-` in the name, got '🅐'"]),
        ("wrong", "right", &["2:1 the name `right` differs from its folder's, `wrong`"]),
    ];
    for (folder, name, expected) in rows {
        assert_eq!(
            found(folder, &format!("---\nname: {name}\ndescription: d\n---\n")),
            *expected,
            "{name}"
        );
    }
}

#[test]
fn fields() {
    let description = |length: usize| format!("name: a\ndescription: {}\n", "x".repeat(length));
    let compatibility = |length: usize| format!("{BASE}compatibility: {}\n", "x".repeat(length));
    let rows: &[(&str, &[&str])] = &[
        ("description: d\n", &["1:1 expected the field `name`"]),
        ("name: a\n", &["1:1 expected the field `description`"]),
        ("name: a\ndescription:\n", &["3:1 expected text for `description`, got nothing"]),
        ("name: a\ndescription: '  '\n", &["3:1 expected text for `description`, got nothing"]),
        (
            "name: a\ndescription:\n- x\n",
            &["3:1 expected text for `description`, got a list or a mapping"],
        ),
        (
            "name: a\ndescription: d\ncompatibility:\n  x: y\n",
            &["4:1 expected text for `compatibility`, got a list or a mapping"],
        ),
        (
            "name: a\ndescription: d\nversion: 1\ntags: x\n",
            &["4:1 the format has no field `version`", "5:1 the format has no field `tags`"],
        ),
        (&description(1024), &[]),
        (
            &description(1025),
            &["3:1 `description` may have at most 1024 characters, this one has 1025"],
        ),
        (&compatibility(500), &[]),
        (
            &compatibility(501),
            &["4:1 `compatibility` may have at most 500 characters, this one has 501"],
        ),
    ];
    for (fields, expected) in rows {
        assert_eq!(block(fields), *expected, "{fields}");
    }
}

#[test]
fn yaml_is_refused() {
    let rows = [
        (
            "name: a\ndescription: [d]\n",
            "3:14 expected block style, got a list or mapping in brackets",
        ),
        (
            "name: a\ndescription: d\nmetadata: {a: b}\n",
            "4:11 expected block style, got a list or mapping in brackets",
        ),
        ("name: a\nname: a\n", "3:1 the key `name` is written twice"),
        (
            "name: a\ndescription: d\nmetadata:\n  b: 1\n  b: 2\n",
            "6:3 the key `b` is written twice",
        ),
        ("name: !!str a\n", "2:7 expected no tag"),
        ("name: &x a\n", "2:7 expected no anchor"),
        ("- just\n- a list\n", "2:1 expected `key: value` lines"),
        ("just text\n", "2:1 expected `key: value` lines"),
        ("", "1:1 expected `key: value` lines between the `---`"),
        ("# nothing\n", "1:1 expected `key: value` lines between the `---`"),
        ("name: a\ndescription: x\ty\n", "3:15 expected spaces, got a tab outside of quotes"),
        ("name: a\ndescription: 'd'\t\n", "3:17 expected spaces, got a tab outside of quotes"),
        ("name: a\ndescription: x\u{7}y\n", "3:15 YAML does not allow the character U+0007"),
        (
            "name: a\ndescription: d\nmetadata:\n  <<: x\n",
            "5:7 expected a mapping after the key `<<`, got text",
        ),
        (
            "name: a\ndescription: d\nmetadata:\n  a:\n    b: 1\n  c:\n      d: 1\n",
            "8:7 expected the same indentation as the mapping before",
        ),
        ("? - x\n: y\n", "2:3 expected text as a key"),
    ];
    for (fields, expected) in rows {
        assert_eq!(block(fields), [expected], "{fields}");
    }
    let deep: String = (0..70).map(|depth| format!("{}a:\n", " ".repeat(depth))).collect();
    assert_eq!(block(&deep), ["66:65 values may be nested at most 64 deep"]);
    for broken in [
        "name: a\ndescription: Use: it\n",
        "name: a\ndescription: \"x\n",
        "name: a\ndescription: x\ny\n",
        "name: [open\n",
    ] {
        let found = block(broken);
        assert_eq!(found.len(), 1, "{broken}");
    }
}

#[test]
fn the_block_is_between_the_first_dashes() {
    let rows = [
        ("# No frontmatter\n", "1:1 expected `---` as the first characters"),
        (
            "\u{feff}---\nname: a\ndescription: d\n---\n",
            "1:1 expected `---` as the first characters, got a byte order mark",
        ),
        ("---\nname: a\ndescription: d\n", "1:1 expected a second `---`, got the end of the file"),
        ("---\ndescription: x --- y\nname: a\n---\n", "1:1 expected the field `name`"),
        // The parser's place is on a line after the last.
        ("---%-%\t-\t\t---", "1:11 expected YAML: did not find expected <document start>"),
        ("---\n%-%\t-\t\t---", "2:8 expected YAML: did not find expected <document start>"),
    ];
    for (text, expected) in rows {
        assert_eq!(found("a", text), [expected], "{text}");
    }
    let found = check("a", b"---\nname: a\ndescription: \xff\n---\n");
    assert_eq!(found[0].message, "expected UTF-8, got the byte 0xFF at offset 25");
}
