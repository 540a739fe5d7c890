//! Documents that are written.

use super::*;

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
