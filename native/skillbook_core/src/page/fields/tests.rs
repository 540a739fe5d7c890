//! Values of each field that are read, converted or ignored.

use super::{metadata, Approval, Fields};
use crate::page::diagnostic::{apply, Code, Diagnostic, Severity};
use crate::page::document::Document;
use crate::source::Effects;
use crate::value::Value;

fn document(text: &str) -> Document {
    Document::parse("/r", "a/b.md", text.as_bytes())
}

fn field<T>(yaml: &str, get: impl Fn(&Fields) -> T) -> (T, Vec<&'static str>) {
    let document = document(&format!("---\n{yaml}\n---\n"));
    let codes = document.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
    (get(document.fields().expect(yaml)), codes)
}

trait MapStr {
    fn map_str(&self) -> Vec<String>;
}

impl MapStr for &[&str] {
    fn map_str(&self) -> Vec<String> {
        self.iter().map(|item| item.to_string()).collect()
    }
}

#[test]
fn reads_texts() {
    let some = |text: &str| Some(text.to_owned());
    let rows = [
        ("title: A B", some("A B"), vec![]),
        ("title: '  '", None, vec![]),
        ("title:", None, vec![]),
        ("title: 12", some("12"), vec!["field_mended"]),
        ("title: true", some("true"), vec!["field_mended"]),
        ("title: [a]", None, vec!["field_ignored"]),
        ("title: {a: b}", None, vec!["field_ignored"]),
    ];
    for (yaml, expected, codes) in rows {
        assert_eq!(field(yaml, |fields| fields.title.clone()), (expected, codes), "{yaml}");
    }
    assert_eq!(field("name: \"a\\n  b\"", |fields| fields.name.clone()), (some("a b"), vec![]));
}

#[test]
fn reads_lists() {
    let rows: [(&str, &[&str], &[&str]); 7] = [
        ("tags: [a, b c]", &["a", "b c"], &[]),
        ("tags: a, b c,", &["a", "b c"], &["field_mended"]),
        ("tags: a b", &["a", "b"], &["field_mended"]),
        ("tags: [a, 1]", &["a", "1"], &[]),
        ("tags: [a, [b]]", &["a"], &["field_mended"]),
        ("tags: {a: b}", &[], &["field_ignored"]),
        ("tags:", &[], &[]),
    ];
    for (yaml, expected, codes) in rows {
        let (list, found) = field(yaml, |fields| fields.tags.clone());
        assert_eq!(
            (list.as_slice(), found.as_slice()),
            (expected.map_str().as_slice(), codes),
            "{yaml}"
        );
    }
}

#[test]
fn reads_examples() {
    let rain = "Is it going to rain?";
    let at = |line, column| Some((line, column));
    // The field, the requests (with `!` those that should not lead to it), and each diagnostic.
    type Row<'a> = (String, Vec<String>, Vec<(&'a str, String, Option<(u32, u32)>)>);
    let mended = |message: &str, at| vec![("field_mended", message.to_owned(), at)];
    let ignored = |message: &str, at| vec![("field_ignored", message.to_owned(), at)];
    let all = |texts: &[&str]| texts.iter().map(|text| text.to_string()).collect::<Vec<_>>();
    let many = |count: usize| (0..count).map(|at| format!("r{at}")).collect::<Vec<_>>();
    let rows: Vec<Row> = vec![
        (format!("examples:\n  - {rain}\n  - not: A poem"), all(&[rain, "!A poem"]), vec![]),
        (format!("examples: ['{rain}', {{not: A poem}}]"), all(&[rain, "!A poem"]), vec![]),
        ("examples:\n- Is 7 odd, or?\n- 1.50".into(), all(&["Is 7 odd, or?", "1.50"]), vec![]),
        ("examples:".into(), vec![], vec![]),
        ("examples: []".into(), vec![], vec![]),
        (
            "examples: Rain, or not?".into(),
            all(&["Rain, or not?"]),
            mended(
                "expected a list for `examples`, got the text \"Rain, or not?\"; read as a list of \
                 one request",
                at(2, 1),
            ),
        ),
        (
            "a: b\nexamples:\n  not: [A poem, A song]".into(),
            all(&["!A poem", "!A song"]),
            mended(
                "expected a list for `examples`, got a mapping; read as 2 requests after `not`",
                at(3, 1),
            ),
        ),
        (
            "examples: {not: }".into(),
            vec![],
            ignored(
                "expected a list of requests for `examples`, got a mapping; the field is not used",
                at(2, 1),
            ),
        ),
        (
            "examples: {yes: [a], not: [b]}".into(),
            vec![],
            ignored(
                "expected a list of requests for `examples`, got a mapping; the field is not used",
                at(2, 1),
            ),
        ),
        (
            "examples:\n  - a\n  - NOT: A poem".into(),
            all(&["a", "!A poem"]),
            mended("expected `not` in `examples`, got `NOT`", at(4, 5)),
        ),
        (
            "examples:\n  - not: [a, b]".into(),
            all(&["!a", "!b"]),
            mended(
                "expected one request after each `not` in `examples`, got a list; read as 2 \
                 requests",
                at(3, 5),
            ),
        ),
        (
            "examples:\n  - not:\n  - a".into(),
            all(&["a"]),
            ignored(
                "expected a request after `not` in `examples`, got nothing; it is left out",
                at(3, 5),
            ),
        ),
        (
            "examples:\n  - a\n  - Say this: hello".into(),
            all(&["a", "Say this: hello"]),
            mended(
                "expected a request in `examples`, got a mapping; read as \"Say this: hello\"",
                at(4, 5),
            ),
        ),
        (
            "examples:\n  - Remind me of:".into(),
            all(&["Remind me of:"]),
            mended(
                "expected a request in `examples`, got a mapping; read as \"Remind me of:\"",
                at(3, 5),
            ),
        ),
        (
            "examples:\n  - [a, b]\n  - c\n  -\n  - {d: e, f: g}".into(),
            all(&["c"]),
            ["a list", "nothing", "a mapping"]
                .map(|got| {
                    let message = format!(
                        "expected requests in the list `examples`, got {got}; it is left out"
                    );
                    ("field_ignored", message, at(2, 1))
                })
                .to_vec(),
        ),
        (format!("examples: [{}]", "é".repeat(500)), vec!["é".repeat(500)], vec![]),
        (
            format!("examples:\n- a\n- {}", "é".repeat(501)),
            all(&["a"]),
            ignored(
                "expected at most 500 characters in a request of `examples`, got 501; it is left \
                 out",
                at(4, 3),
            ),
        ),
        (format!("examples: [{}]", many(50).join(", ")), many(50), vec![]),
        (
            format!("examples: [{}]", many(51).join(", ")),
            many(50),
            ignored(
                "expected at most 50 requests in `examples`, got 51; the last ones are left out",
                at(2, 1),
            ),
        ),
    ];
    for (yaml, expected, messages) in rows {
        let document = document(&format!("---\n{yaml}\n---\n"));
        let read: Vec<_> = document.fields().expect(&yaml).examples.iter().collect();
        let read: Vec<_> = read
            .into_iter()
            .map(|example| format!("{}{}", if example.not { "!" } else { "" }, example.text))
            .collect();
        let found: Vec<_> = document
            .diagnostics
            .iter()
            .map(|found| (found.code.as_str(), found.message.clone(), found.line.zip(found.column)))
            .collect();
        assert_eq!((read, found), (expected, messages), "{yaml}");
        // Each says what to write instead, unless it is the whole field.
        for found in &document.diagnostics {
            let whole = found.message.ends_with("the field is not used");
            assert_eq!(found.hint.is_none() && found.fix.is_none(), whole, "{yaml}");
        }
    }
}

#[test]
fn fixes_examples_where_there_is_one_right_form() {
    let rows = [
        ("examples: Will it rain?", Some("examples:\n- Will it rain?")),
        ("examples:\n  - Say this: hello", Some("examples:\n  - 'Say this: hello'")),
        (
            "a: b\nexamples:\n  - x\n  -  It's \u{e9}: 1.50\nc: d",
            Some("a: b\nexamples:\n  - x\n  -  'It''s \u{e9}: 1.50'\nc: d"),
        ),
        // A comment, another form of the value, and a request in another field.
        ("examples:\n  - Say this: hello # here", None),
        ("examples:\n  - Say this:  hello", None),
        ("examples:\n  - {Say this: hello}\nother:\n  - Say this: hello", None),
        ("examples:\n  - NOT: a", None),
        ("examples: {not: a}", None),
    ];
    for (yaml, expected) in rows {
        let text = format!("---\n{yaml}\n---\n");
        let fixes: Vec<_> = document(&text)
            .diagnostics
            .iter()
            .filter_map(|found| found.fix.as_deref().cloned())
            .collect();
        let mended = (!fixes.is_empty()).then(|| apply(&text, &fixes));
        assert_eq!(mended, expected.map(|yaml| format!("---\n{yaml}\n---\n")), "{yaml}");
        if let Some(mended) = mended {
            assert_eq!(document(&mended).diagnostics, [], "{mended}");
        }
    }
}

#[test]
fn reads_tools_as_text_or_list() {
    type Row = (&'static str, Option<&'static [&'static str]>, &'static [&'static str]);
    let rows: [Row; 6] = [
        ("allowed-tools: Bash(git add:*) Read", Some(&["Bash(git add:*)", "Read"]), &[]),
        ("allowed-tools: \"Read, Write(a, b)\"", Some(&["Read", "Write(a, b)"]), &[]),
        ("allowed-tools: [Read]", Some(&["Read"]), &[]),
        ("allowed-tools: 3", Some(&["3"]), &["field_mended"]),
        ("allowed-tools: []", Some(&[]), &[]),
        ("name: x", None, &[]),
    ];
    for (yaml, expected, codes) in rows {
        let (list, found) = field(yaml, |fields| fields.allowed_tools.clone());
        assert_eq!(
            (list, found.as_slice()),
            (expected.map(|expected| expected.map_str()), codes),
            "{yaml}"
        );
    }
}

#[test]
fn reads_flags_and_effects() {
    let rows = [
        ("x: 1", true, vec![]),
        ("include_in_prompt: false", false, vec![]),
        ("include_in_prompt: 'no'", false, vec!["field_mended"]),
        ("include_in_prompt_default: false", false, vec![]),
        ("include_in_prompt: true\ninclude_in_prompt_default: false", true, vec![]),
    ];
    for (yaml, expected, codes) in rows {
        assert_eq!(field(yaml, |fields| fields.include_in_prompt), (expected, codes), "{yaml}");
    }
    assert_eq!(field("effects: read", |fields| fields.effects), (Some(Effects::Read), vec![]));
    assert_eq!(field("effects: write", |fields| fields.effects), (Some(Effects::Write), vec![]));
    assert_eq!(field("effects: both", |fields| fields.effects), (None, vec!["field_ignored"]));
}

#[test]
fn only_true_means_idempotent() {
    for (value, expected, codes) in [
        ("true", true, vec![]),
        ("false", false, vec![]),
        ("yes", true, vec!["field_mended"]),
        ("sometimes", false, vec!["field_ignored"]),
        ("", false, vec![]),
    ] {
        let yaml = format!("idempotent: {value}");
        assert_eq!(field(&yaml, |fields| fields.idempotent), (expected, codes), "{yaml}");
    }
    assert_eq!(field("title: A", |fields| fields.idempotent), (false, vec![]));
}

#[test]
fn reads_limits() {
    let ignored = || vec!["field_ignored"];
    let rows = [
        ("30", Some(30_000), vec![]),
        ("0.25", Some(250), vec![]),
        ("'30'", Some(30_000), vec![]),
        ("500ms", Some(500), vec![]),
        ("90 s", Some(90_000), vec![]),
        ("1.5m", Some(90_000), vec![]),
        ("5M", Some(300_000), vec![]),
        ("1h", Some(3_600_000), vec![]),
        ("3600", Some(3_600_000), vec![]),
        ("3601", None, ignored()),
        ("2h", None, ignored()),
        ("1ms", Some(1), vec![]),
        ("0.5ms", None, ignored()),
        ("0", None, ignored()),
        ("-5", None, ignored()),
        (".inf", None, ignored()),
        (".nan", None, ignored()),
        ("5 minutes", None, ignored()),
        ("1h30m", None, ignored()),
        ("soon", None, ignored()),
        ("m", None, ignored()),
        ("''", None, ignored()),
        ("true", None, ignored()),
        ("[5]", None, ignored()),
        ("", None, vec![]),
    ];
    for (yaml, expected, codes) in rows {
        let read = field(&format!("timeout: {yaml}"), |fields| fields.timeout);
        assert_eq!(read, (expected, codes), "{yaml}");
    }
    let rows = [
        ("1", Some(1), vec![]),
        ("1000000", Some(1_000_000), vec![]),
        ("1000001", None, ignored()),
        ("0", None, ignored()),
        ("'2'", None, ignored()),
        ("2.0", None, ignored()),
        ("", None, vec![]),
    ];
    for (yaml, expected, codes) in rows {
        let read = field(&format!("max_running: {yaml}"), |fields| fields.max_running);
        assert_eq!(read, (expected, codes), "{yaml}");
    }
    assert_eq!(
        document("---\ntimeout: soon\n---\n").diagnostics[0].message,
        "expected seconds, or a duration such as 500ms, 30s or 5m, of at most 1h for `timeout`, \
         got the text \"soon\"; the field is not used"
    );
}

#[test]
fn an_approval_that_cannot_be_read_is_required() {
    let mended = || vec!["field_mended"];
    let flags =
        |names: &[&str]| Approval::Flags(names.iter().map(|name| (*name).to_owned()).collect());
    let rows = [
        ("title: A", Approval::None, vec![]),
        ("approval: required", Approval::Required, vec![]),
        ("approval: 'required'", Approval::Required, vec![]),
        ("approval: none", Approval::None, vec![]),
        ("approval: Required", Approval::Required, mended()),
        ("approval: None", Approval::Required, mended()),
        ("approval: false", Approval::Required, mended()),
        ("approval: no", Approval::Required, mended()),
        ("approval: true", Approval::Required, mended()),
        ("approval: 0", Approval::Required, mended()),
        ("approval: ''", Approval::Required, mended()),
        ("approval:", Approval::Required, mended()),
        ("approval: [--to]", flags(&["to"]), vec![]),
        ("approval: ['--to', \"--cc\"]", flags(&["to", "cc"]), vec![]),
        ("approval:\n- --to", flags(&["to"]), vec![]),
        ("approval: [--to]\ndescription: 'approval: x'", Approval::Required, mended()),
        ("approval: []", Approval::Required, mended()),
        ("approval: [--]", Approval::Required, mended()),
        ("approval: [--to, none]", Approval::Required, mended()),
        ("approval: [to]", Approval::Required, mended()),
        ("approval: --to", Approval::Required, mended()),
        ("approval: [none]", Approval::Required, mended()),
        ("approval: {by: ann}", Approval::Required, mended()),
        ("Approval: none", Approval::Required, mended()),
        ("aproval: none", Approval::Required, mended()),
        ("approvals: none", Approval::Required, mended()),
        ("needs_approval: true", Approval::Required, mended()),
        ("requires-approval: false", Approval::Required, mended()),
        ("approval_required: false", Approval::Required, mended()),
        ("approved: true", Approval::None, vec![]),
        ("approver: ann", Approval::None, vec![]),
        ("description: 'Ask for approval: always'", Approval::None, vec![]),
        ("metadata:\n  approval: none", Approval::Required, mended()),
        ("metadata:\n  team: a\nhooks:\n  approval: none", Approval::None, vec![]),
        ("description: |\n  Approval: by Ann", Approval::None, vec![]),
        ("metadata:\n  approval: x\napproval: none", Approval::Required, mended()),
        ("approval: none\ndescription: 'approval: x'", Approval::Required, mended()),
    ];
    for (yaml, expected, codes) in rows {
        assert_eq!(field(yaml, |fields| fields.approval.clone()), (expected, codes), "{yaml}");
    }
    let message = |yaml: &str| {
        let diagnostic = document(&format!("---\n{yaml}\n---\n")).diagnostics.remove(0);
        (diagnostic.message, diagnostic.line, diagnostic.fix.map(|fix| fix.replacement))
    };
    assert_eq!(
        message("title: A\napproval: false"),
        (
            "expected `required`, `none` or a list of flags such as `[--to]` for `approval`, got \
             the boolean false; read as `required`"
                .to_owned(),
            Some(3),
            Some("approval: required".to_owned())
        )
    );
    assert_eq!(
        message("aproval: none"),
        (
            "expected `approval`, got `aproval`; read as `approval: required`".to_owned(),
            Some(2),
            None
        )
    );
    // A second one, and one that a repair made part of a text.
    let swallowed = "title: a: b\napproval: required";
    let twice = "approval: required\napproval: none";
    for yaml in [twice, "approval: none\napproval: required", swallowed] {
        let (approval, _) = field(yaml, |fields| fields.approval.clone());
        assert_eq!(approval, Approval::Required, "{yaml}");
    }
}

#[test]
fn says_which_names_of_tools_are_not_used() {
    let form = |got: &str| {
        format!(
            "expected up to 64 letters, digits, `-` and single `_`, other than get_skill, for \
             `tool`, got {got}; the field is not used"
        )
    };
    let long = "a".repeat(65);
    let rows = [
        ("tool: get_note\naliases: [get_note]".to_owned(), None),
        ("tool: Get-Note2\naliases: [other, Get-Note2]".to_owned(), None),
        (format!("tool: {0}\naliases: [{0}]", &long[1..]), None),
        ("tool:".to_owned(), None),
        (
            "tool: get_note\naliases: [note]".to_owned(),
            Some(
                "expected `tool` among the aliases, got \"get_note\"; the field is not used"
                    .to_owned(),
            ),
        ),
        ("tool: get.note\naliases: [get.note]".to_owned(), Some(form("the text \"get.note\""))),
        ("tool: get__note\naliases: [get__note]".to_owned(), Some(form("the text \"get__note\""))),
        ("tool: get_skill\naliases: [get_skill]".to_owned(), Some(form("the text \"get_skill\""))),
        (
            "tool: a-0123456789abcdef\naliases: [a-0123456789abcdef]".to_owned(),
            Some(form("the text \"a-0123456789abcdef\"")),
        ),
        (
            format!("tool: {long}\naliases: [{long}]"),
            Some(form(&format!("the text \"{}\"", &long[..60]))),
        ),
        ("tool: ''".to_owned(), Some(form("the text \"\""))),
        ("tool: 7".to_owned(), Some(form("the number 7"))),
        ("tool: [get_note]\naliases: [get_note]".to_owned(), Some(form("a list"))),
    ];
    for (yaml, expected) in rows {
        let found = document(&format!("---\n{yaml}\n---\n")).diagnostics;
        assert_eq!(found.first().map(|one| one.message.clone()), expected, "{yaml}");
    }
    let hint = document("---\ntool: get_note\n---\n").diagnostics[0].hint.clone();
    assert_eq!(hint.as_deref(), Some("also write aliases: [get_note]"));
}

#[test]
fn reads_schedules() {
    let some = |text: Option<&str>| text.map(str::to_owned);
    type Row<'a> = (&'a str, Option<&'a str>, Option<&'a str>, &'a [&'a str]);
    let rows: [Row; 8] = [
        ("schedule: 0 9 * * 1", Some("0 9 * * 1"), None, &[]),
        ("schedule: '@daily'\ntimezone: Europe/Berlin", Some("@daily"), Some("Europe/Berlin"), &[]),
        ("timezone: Europe/Berlin", None, Some("Europe/Berlin"), &[]),
        ("schedule:", None, None, &[]),
        ("schedule: daily\ntimezone: UTC", None, Some("UTC"), &["schedule_invalid"]),
        ("schedule: '@daily'\ntimezone: Berlin", None, None, &["schedule_invalid"]),
        (
            "schedule: daily\ntimezone: Berlin",
            None,
            None,
            &["schedule_invalid", "schedule_invalid"],
        ),
        ("schedule: [5]", None, None, &["field_ignored"]),
    ];
    for (yaml, schedule, timezone, codes) in rows {
        let (read, found) =
            field(yaml, |fields| (fields.schedule.clone(), fields.timezone.clone()));
        let expected = (some(schedule), some(timezone));
        assert_eq!((read, found.as_slice()), (expected, codes), "{yaml}");
    }
}

#[test]
fn says_what_is_wrong_with_a_schedule_and_where() {
    let lost = "the field is not used";
    let number = "write a number such as 0, a list (1,3), a range (1-3), a step (*/2) or *";
    let hour =
        format!("`schedule`: expected a number from 0 to 23 in the hour, got \"25\"; {lost}");
    let zone = "`timezone`: expected the name of a time zone, got \"Berlin\"";
    let rows = [
        ("schedule: 0 25 * * 1", hour.clone(), number, (2, 13)),
        ("schedule:  \"0 25 * * 1\"", hour.clone(), number, (2, 15)),
        ("a: b\nschedule: |\n  0 25 * * 1", hour, number, (3, 1)),
        ("timezone: Berlin", format!("{zone}; {lost}"), "write Europe/Berlin", (2, 11)),
        (
            "timezone: Berlin\nschedule: 0 9 * * 1",
            format!("{zone}; {lost}, and neither is `schedule`, which would run at the wrong time"),
            "write Europe/Berlin",
            (2, 11),
        ),
        (
            "schedule: 0 0 30 feb ?",
            format!("`schedule`: expected a day that exists, got \"30 feb ?\"; {lost}"),
            "no year has such a day; write another day of month, month or day of week",
            (2, 15),
        ),
    ];
    for (yaml, message, hint, (line, column)) in rows {
        let document = document(&format!("---\n{yaml}\n---\n"));
        let expected =
            Diagnostic::new(Code::ScheduleInvalid, Severity::Warning, message).hint(hint);
        assert_eq!(
            document.diagnostics,
            [expected.at(line, column).in_file("/r/a/b.md")],
            "{yaml}"
        );
    }
}

#[test]
fn metadata_is_kept() {
    let text = |text: &str| Value::Str(text.into());
    let map = |pairs: &[(&str, Value)]| {
        Some(Value::Map(pairs.iter().map(|(key, value)| ((*key).into(), value.clone())).collect()))
    };
    let nested = map(&[("bins", Value::List(vec![text("jq"), text("2.0")])), ("on", text("yes"))]);
    let rows: [(&str, Option<Value>, &[&str]); 9] = [
        (
            "version: 9.9\nmetadata:\n  version: 1.10 # beta\n  other: 2.0",
            map(&[("version", text("1.10")), ("other", text("2.0"))]),
            &[],
        ),
        ("metadata: {version: 1.0}", map(&[("version", text("1.0"))]), &[]),
        (
            "metadata: {a: 0x1F, b: true, c: True, d: 1e3, e: -0, f: 12, g: 'x'}",
            map(&[
                ("a", text("0x1F")),
                ("b", text("true")),
                ("c", text("True")),
                ("d", text("1e3")),
                ("e", text("-0")),
                ("f", text("12")),
                ("g", text("x")),
            ]),
            &[],
        ),
        (
            "metadata: {a: [b], c: {bins: [jq, 2.0], on: yes}, f: g}",
            map(&[
                ("a", Value::List(vec![text("b")])),
                ("c", nested.clone().unwrap()),
                ("f", text("g")),
            ]),
            &[],
        ),
        (
            "metadata:\n  c:\n    bins:\n    - jq\n    - 2.0\n    on: yes\n",
            map(&[("c", nested.unwrap())]),
            &[],
        ),
        ("metadata: {a: }", map(&[("a", Value::Null)]), &[]),
        ("metadata:", None, &[]),
        ("metadata: text", None, &["field_ignored"]),
        ("x: y", None, &[]),
    ];
    for (yaml, expected, codes) in rows {
        let (_, got) = field(yaml, |_| ());
        let document = document(&format!("---\n{yaml}\n---\n"));
        let found = metadata(&document.data()).cloned();
        assert_eq!((found, got.as_slice()), (expected, codes), "{yaml}");
    }
}

#[test]
fn text_fields_keep_the_text_of_their_author() {
    let rows = [
        ("1.10", "1.10"),
        ("1.0", "1.0"),
        ("0x1F", "0x1F"),
        ("0o17", "0o17"),
        ("1e3", "1e3"),
        ("12", "12"),
        ("True", "True"),
        ("'1.10'", "1.10"),
        ("!!float 1.50", "1.50"),
        ("&a 1.50", "1.50"),
        ("1.2.3", "1.2.3"),
    ];
    for (written, expected) in rows {
        for key in ["version", "license", "author", "title", "compatibility"] {
            // The second line needs the YAML library, the first alone does not.
            for more in ["", "\nmore: {a: 1.10}"] {
                let document = document(&format!("---\n{key}: {written}{more}\n---\n"));
                assert_eq!(
                    document.data().get(key).and_then(Value::as_str),
                    Some(expected),
                    "{key}: {written}"
                );
            }
        }
        let (license, _) = field(&format!("license: {written}"), |it| it.license.clone());
        assert_eq!(license.as_deref(), Some(expected), "{written}");
    }
    // Other fields have the types of YAML.
    let document = document("---\npriority: 1.0\nsize: 0x1F\n---\n");
    let data = document.data();
    assert_eq!(data.get("priority"), Some(&Value::Float(1.0)));
    assert_eq!(data.get("size"), Some(&Value::Int(31)));
}

#[test]
fn long_texts_are_reported_in_characters() {
    let rows = [
        ("description", 1024, None),
        (
            "description",
            1025,
            Some("`description` has 1025 characters; other readers of skills accept at most 1024"),
        ),
        ("compatibility", 500, None),
        (
            "compatibility",
            501,
            Some("`compatibility` has 501 characters; other readers of skills accept at most 500"),
        ),
    ];
    for (key, length, expected) in rows {
        let found = document(&format!("---\n{key}: {}\n---\n", "é".repeat(length)));
        let messages = found.diagnostics.first().map(|found| (found.message.as_str(), found.line));
        assert_eq!(messages, expected.map(|message| (message, Some(2))), "{key} {length}");
    }
}

#[test]
fn says_what_is_wrong_and_where() {
    let wrong = document("---\nname: a\ntags: {a: b}\n---\n");
    assert_eq!(
        wrong.diagnostics,
        [Diagnostic::new(
            Code::FieldIgnored,
            Severity::Warning,
            "expected a list of texts for `tags`, got a mapping; the field is not used"
        )
        .at(3, 1)
        .in_file("/r/a/b.md")]
    );
}

#[test]
fn each_single_slip_means_approval() {
    let meant = super::run::means_approval;
    let word: Vec<char> = "approval".chars().collect();
    for at in 0..word.len() {
        let edited = |range: std::ops::Range<usize>, with: &[char]| -> String {
            [&word[..range.start], with, &word[range.end..]].concat().into_iter().collect()
        };
        let mut slips = vec![
            edited(at..at + 1, &[]),
            edited(at..at + 1, &['x']),
            edited(at..at, &['x']),
            edited(at + 1..at + 1, &['x']),
        ];
        if let [first, second] = word[at..(at + 2).min(word.len())] {
            slips.push(edited(at..at + 2, &[second, first]));
        }
        for slip in slips {
            assert!(meant(&slip) && meant(&slip.to_uppercase()), "{slip}");
        }
    }
    for other in ["proactive", "interval", "app", "apple", "val", "appvoral"] {
        assert!(!meant(other), "{other}");
    }
}
