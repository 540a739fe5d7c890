//! A fix removes its diagnostic and changes no other field; all fixes together leave nothing to
//! fix.

use std::sync::Arc;

use proptest::prelude::*;
use skillbook_core::catalog::assemble::assemble;
use skillbook_core::page::diagnostic::{apply, Code, Diagnostic, Fix};
use skillbook_core::page::document::Document;
use skillbook_core::source::Source;
use skillbook_core::value::Value;

const PATH: &str = "mail/send.md";

/// The fields and diagnostics of a text that is the only file of a source.
fn read(text: &str) -> (Value, Vec<Diagnostic>) {
    let document = Arc::new(Document::parse("/s", PATH, text.as_bytes()));
    let data = document.fields().map_or(Value::Null, |_| document.data().into_owned());
    let source = Arc::new(Source { root: "/s".into(), ..Source::default() });
    let assembled = assemble(&source, vec![document], vec![PATH.into()]);
    (data, assembled.findings.iter().map(|finding| finding.diagnostic.clone()).collect())
}

fn codes(diagnostics: &[Diagnostic]) -> Vec<Code> {
    diagnostics.iter().map(|diagnostic| diagnostic.code).collect()
}

/// The fields without the one that the fix is about, which becomes the value that was read.
fn other_fields(data: &Value, code: Code, message: &str) -> Vec<(String, Value)> {
    let Value::Map(pairs) = data else { return Vec::new() };
    let about = |key: &str| match code {
        Code::NameMissing => key == "name",
        Code::FieldMended => message.contains(&format!("`{key}`")),
        _ => false,
    };
    pairs.iter().filter(|(key, _)| !about(key)).cloned().collect()
}

fn check(text: &str) {
    let (data, diagnostics) = read(text);
    let mut all = Vec::new();
    for diagnostic in &diagnostics {
        let Some(fix) = &diagnostic.fix else { continue };
        all.push(Fix::clone(fix));
        let mended = apply(text, std::slice::from_ref(&**fix));
        let (after, left) = read(&mended);
        let fields = |data| other_fields(data, diagnostic.code, &diagnostic.message);
        assert_eq!(fields(&after), fields(&data), "{text:?} became {mended:?}");
        let same = |other: &&Diagnostic| {
            (other.code, &other.message) == (diagnostic.code, &diagnostic.message)
        };
        let (before, now) =
            (diagnostics.iter().filter(same).count(), left.iter().filter(same).count());
        assert!(now < before, "{diagnostic:?} is still there in {mended:?}");
    }
    // A fixed line can reveal another problem in it.
    let mut text = apply(text, &all);
    for _ in 0..3 {
        text = apply(&text, &fixes(&read(&text).1));
    }
    assert_eq!(fixes(&read(&text).1), [], "{text:?}");
}

fn fixes(diagnostics: &[Diagnostic]) -> Vec<Fix> {
    diagnostics.iter().filter_map(|diagnostic| diagnostic.fix.as_deref().cloned()).collect()
}

#[test]
fn fixes_unambiguous_mistakes() {
    let rows = [
        ("a colon", "name: send\ndescription: Send: now", "name: send\ndescription: \"Send: now\""),
        (
            "CRLF",
            "name: send\r\ndescription: Send: now\r",
            "name: send\r\ndescription: \"Send: now\"\r",
        ),
        (
            "a wrapped value",
            "name: send\ndescription: Send: a\n  b\ntitle: x",
            "name: send\ndescription: \"Send: a b\"\ntitle: x",
        ),
        (
            "a comment stays",
            "name: send\ndescription: Send: a\n# c\n  b",
            "name: send\ndescription: \"Send: a b\"\n# c",
        ),
        (
            "a tab",
            "name: send\ndescription: d\nmetadata:\n\ta: b",
            "name: send\ndescription: d\nmetadata:\n  a: b",
        ),
        (
            "two tabs",
            "name: send\ndescription: d\nmetadata:\n\ta: b\n\tc: d",
            "name: send\ndescription: d\nmetadata:\n  a: b\n  c: d",
        ),
        (
            "a tab in a wrapped value",
            "name: send\ndescription: Send: a\n\tb",
            "name: send\ndescription: \"Send: a b\"",
        ),
        ("a missing blank", "name:send\ndescription: d", "name: send\ndescription: d"),
        ("a control character", "name: send\ndescription: d\u{7}e", "name: send\ndescription: de"),
        (
            "two lines",
            "name: send\ntitle: a: b\ndescription: c: d",
            "name: send\ntitle: \"a: b\"\ndescription: \"c: d\"",
        ),
        ("no name", "description: d", "name: send\ndescription: d"),
        ("no name, CRLF", "description: d\r", "name: send\r\ndescription: d\r"),
        (
            "a number for text",
            "name: send\ndescription: d\ntitle: 12",
            "name: send\ndescription: d\ntitle: '12'",
        ),
        (
            "text for a list",
            "name: send\ndescription: d\ntags: a, b",
            "name: send\ndescription: d\ntags:\n- a\n- b",
        ),
        (
            "text for a boolean",
            "name: send\ndescription: d\ninclude_in_prompt: no",
            "name: send\ndescription: d\ninclude_in_prompt: false",
        ),
        // Without a fix: the value is lost or ambiguous.
        (
            "a list with other values",
            "name: send\ndescription: d\ntags: [a, [b]]",
            "name: send\ndescription: d\ntags: [a, [b]]",
        ),
        (
            "a comment on the line",
            "name: send\ndescription: d\ntags: a, b # c",
            "name: send\ndescription: d\ntags: a, b # c",
        ),
        ("only a glued field", "description:glued", "name: send\ndescription: glued"),
        (
            "a glued field and a tab",
            "description:glued\n# comment\n\t",
            "name: send\ndescription: glued\n# comment\n",
        ),
        ("a name in a flow mapping", "{description: d}", "{description: d}"),
        ("an empty name", "name:\ndescription: d", "name:\ndescription: d"),
        ("another name", "name: other\ndescription: d", "name: other\ndescription: d"),
        (
            "a key twice",
            "name: send\ndescription: d\ntitle: a\ntitle: b",
            "name: send\ndescription: d\ntitle: a\ntitle: b",
        ),
    ];
    for (case, block, mended) in rows {
        let document = |block: &str| {
            let first = if block.ends_with('\r') { "---\r\n" } else { "---\n" };
            format!("{first}{block}\n---\nBody.\n")
        };
        let text = document(block);
        let (_, diagnostics) = read(&text);
        assert_eq!(
            apply(&text, &fixes(&diagnostics)),
            document(mended),
            "{case}: {:?}",
            codes(&diagnostics)
        );
        check(&text);
    }
}

proptest! {
    #[test]
    fn any_fix_takes_its_diagnostic_away(
        lines in prop::collection::vec(
            prop::sample::select(vec![
                "name: send", "description: a: b", "description:glued", "title: 12", "tags: a, b",
                "\tindented: x", "  more text", "metadata:", "  key: it's: so", "# comment",
                "include_in_prompt: yes", "aliases: [a: b, c]", "requires:", "  - x: y: z",
                "- 'open", "user-invocable: 'off'", "", "license: \u{1}MIT", "\t",
                "compatibility: \"a \"b\" c\"",
            ]),
            0..9,
        ),
        crlf in any::<bool>(),
    ) {
        let end = if crlf { "\r\n" } else { "\n" };
        check(&["---", &lines.join(end), "---", "Body."].join(end));
    }
}
