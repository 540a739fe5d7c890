//! The types of values, and the parts of a document.

use super::*;

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
