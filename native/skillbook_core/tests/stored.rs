//! Records of a database as entries.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use common::{all, doc, record, source, view};
use proptest::prelude::*;
use skillbook_core::catalog::assemble::{assemble, Assembled};
use skillbook_core::catalog::block::Opener;
use skillbook_core::catalog::changes::Changes;
use skillbook_core::catalog::entry::Entry;
use skillbook_core::catalog::records::{read, Class, Loaded, Records, Written};
use skillbook_core::catalog::Catalog;
use skillbook_core::explain::explain;
use skillbook_core::glob::Globs;
use skillbook_core::lint::lint;
use skillbook_core::page::diagnostic::{Code, Diagnostic};
use skillbook_core::page::document::Document;
use skillbook_core::page::fields::metadata;
use skillbook_core::page::record::{Access, Origin, Record};
use skillbook_core::prompt::{Format, Options};
use skillbook_core::source::{Effects, Kind, Source, SourceKind, Trust};
use skillbook_core::tenant::Tenant;
use skillbook_core::value::Value;
use skillbook_core::view::search::Query;
use skillbook_core::view::{sees, CachedCatalog, Parts, Profile, View};

fn skill(name: &str, description: &str) -> Record {
    Record { is_skill: true, description: description.into(), ..record(name, "Body") }
}

fn access(record: &Record) -> Access {
    Access {
        name: record.name.clone(),
        is_skill: record.is_skill,
        tenant: record.tenant.clone(),
        labels: record.labels.clone(),
        excluded_for: record.excluded_for.clone(),
        content: Some(record.content.to_string()),
    }
}

fn store() -> Arc<Source> {
    Arc::new(Source {
        name: "store".into(),
        root: "store".into(),
        kind: SourceKind::Stored,
        ..Source::default()
    })
}

fn documents(records: &[Record]) -> Vec<Arc<Document>> {
    records.iter().map(|record| Arc::new(Document::stored("store", record))).collect()
}

fn assembled(records: &[Record]) -> Assembled {
    assemble(&store(), documents(records), Vec::new())
}

fn only(record: Record) -> Arc<Entry> {
    let assembled = assembled(&[record]);
    assert_eq!(assembled.entries.len(), 1, "{:?}", assembled.findings);
    assembled.entries[0].clone()
}

fn codes(assembled: &Assembled) -> Vec<Code> {
    assembled.findings.iter().map(|finding| finding.diagnostic.code).collect()
}

fn texts(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| item.to_string()).collect()
}

#[test]
fn columns_are_the_fields() {
    let all = Record {
        id: 17,
        name: "milk".into(),
        is_skill: true,
        title: "Milk".into(),
        description: "What to buy".into(),
        content: concat!(
            "---\n",
            "name: other\n",
            "title: Other\n",
            "tags: [x]\n",
            "visibility_labels: [y]\n",
            "include_in_prompt: true\n",
            "---\n",
            "# Text\n",
        )
        .into(),
        tags: texts(&["a", "b, c"]),
        tenant: Tenant::Common,
        labels: texts(&["home", "family"]),
        include_in_prompt: false,
        proactive_for: texts(&["cook"]),
        excluded_for: texts(&["guest"]),
        origin: Origin::Agent,
        version: 7,
        schedule: Some("0 8 * * 1".into()),
        timezone: Some("Europe/Berlin".into()),
        writers: vec![Some("anna".into()), None],
    };
    let entry = only(all);
    let fields = entry.fields();
    assert_eq!(
        (&*entry.name, entry.kind, entry.title.as_deref()),
        ("milk", Kind::Skill, Some("Milk"))
    );
    assert_eq!((entry.description(), entry.body()), ("What to buy", "# Text\n"));
    assert_eq!(
        (&fields.tags, &entry.labels),
        (&texts(&["a", "b, c"]), &texts(&["family", "home", "y"]))
    );
    assert_eq!(
        (&fields.proactive_for, &fields.excluded_for),
        (&texts(&["cook"]), &texts(&["guest"]))
    );
    assert!(!fields.include_in_prompt);
    assert_eq!((entry.document.path.as_str(), &*entry.source.name), ("store/milk.md", "store"));
    let data = entry.document.data();
    assert_eq!(
        (data.get("version"), data.get("source")),
        (Some(&Value::Int(7)), Some(&"agent".into_value()))
    );
    assert_eq!(data.get("name"), Some(&"milk".into_value()));
    assert_eq!(
        (fields.schedule.as_deref(), fields.timezone.as_deref()),
        (Some("0 8 * * 1"), Some("Europe/Berlin"))
    );
    let stored = entry.document.of_record().unwrap();
    assert_eq!((stored.id, stored.writers.len()), (17, 2));
    let told = format!("{data:?}");
    assert!(!told.contains("17") && !told.contains("anna"), "{told}");
}

trait IntoValue {
    fn into_value(self) -> Value;
}

impl IntoValue for &str {
    fn into_value(self) -> Value {
        Value::Str(self.to_owned())
    }
}

#[test]
fn empty_columns_are_no_fields() {
    let entry = only(Record { title: String::new(), ..record("milk", "Text") });
    let Value::Map(pairs) = entry.document.data().into_owned() else {
        panic!("expected a mapping")
    };
    let keys: Vec<_> = pairs.iter().map(|(key, _)| key.as_str()).collect();
    assert_eq!(keys, ["name", "include_in_prompt", "version", "source"]);
    assert_eq!(entry.title.as_deref(), Some("milk"));
}

#[test]
fn frontmatter_in_content() {
    let rows = [
        (false, "", "Text", Kind::Note, ""),
        (false, "D", "Text", Kind::Note, "D"),
        (false, "", "---\nname: a\ndescription: Own\n---\nText", Kind::Skill, "Own"),
        (false, "D", "---\nname: a\ndescription: Own\n---\nText", Kind::Skill, "D"),
        (false, " ", "---\nname: a\ndescription: Own\n---\nText", Kind::Skill, "Own"),
        // Both are needed.
        (false, "", "---\nname: a\n---\nText", Kind::Note, ""),
        (false, "", "---\ndescription: Own\n---\nText", Kind::Note, "Own"),
        (false, "", "---\nname: a\ndescription: ''\n---\nText", Kind::Note, ""),
        (true, "D", "Text", Kind::Skill, "D"),
        (true, "", "---\ndescription: Own\n---\nText", Kind::Skill, "Own"),
    ];
    for (is_skill, description, content, kind, expected) in rows {
        let entry =
            only(Record { is_skill, description: description.into(), ..record("n", content) });
        assert_eq!(
            (entry.kind, entry.description()),
            (kind, expected),
            "{is_skill} {description:?} {content:?}"
        );
        assert_eq!(entry.body(), "Text");
    }
}

#[test]
fn content_runs_nothing() {
    let content = "---\nname: email.send\ndomain: email\ndescription: D\nhandler: Mod\n\
                   schedule: '* * * * *'\ntimezone: UTC\nrun_as: root\naliases: [x]\n\
                   requires: [y]\nallowed-tools: Bash\neffects: write\ntool: x\n\
                   metadata: {a: {b: 1.0}}\nlicense: MIT\n---\nText";
    let entry = only(record("n", content));
    let fields = entry.fields();
    assert_eq!((&*entry.name, entry.kind, entry.domain.as_deref()), ("n", Kind::Skill, None));
    assert_eq!((entry.handler(), entry.schedule()), (None, None));
    let data = entry.document.data();
    for key in ["handler", "schedule", "timezone", "run_as", "tool"] {
        assert_eq!(data.get(key), None, "{key}");
    }
    // Nothing else is lost.
    assert_eq!(
        [&fields.aliases, &fields.requires, fields.allowed_tools.as_ref().unwrap()],
        [&texts(&["x"]), &texts(&["y"]), &texts(&["Bash"])]
    );
    assert_eq!((fields.effects, fields.license.as_deref()), (Some(Effects::Write), Some("MIT")));
    let b = metadata(&data).and_then(|it| it.get("a")?.get("b")?.as_str());
    assert_eq!(b, Some("1.0"));
    let lost: Vec<_> = entry.document.diagnostics.iter().collect();
    let told: Vec<_> = lost.iter().map(|it| (it.message.as_str(), it.line)).collect();
    assert_eq!(
        told,
        [
            ("the field `handler` in the text of a record is not used", Some(5)),
            ("the field `schedule` in the text of a record is not used", Some(6)),
            ("the field `timezone` in the text of a record is not used", Some(7)),
            ("the field `run_as` in the text of a record is not used", Some(8)),
            ("the field `tool` in the text of a record is not used", Some(13)),
        ]
    );
    let hints: Vec<_> = lost.iter().filter_map(|it| it.hint.as_deref()).collect();
    let page = "write the page as a file, in a source of skills";
    assert_eq!(
        hints,
        [page, "set the record's own `schedule`", "set the record's own `timezone`", page, page]
    );
}

#[test]
fn an_alias_of_a_record_takes_none_from_a_file() {
    let page = doc("z-file", "aliases: [both]\n", "File");
    let file = source("s", SourceKind::Skills, &[], &[("z-file/SKILL.md", &page)]);
    let content = "---\naliases: [both, own]\n---\nRecord";
    let record = Record { content: content.into(), ..skill("a-record", "D") };
    let view = all(Catalog::build(1, vec![file, assembled(&[record])]));
    let body = |name| view.find(name).and_then(|id| view.entry(id)).map(|it| it.body().trim());
    assert_eq!((body("both"), body("own")), (Some("File"), Some("Record")));
}

#[test]
fn lists_have_the_name_in_a_skills_text_if_it_leads_there() {
    let named = |column: &str, own: &str, labels: &[&str]| Record {
        content: format!("---\nname: {own}\ndescription: x\n---\nText").into(),
        labels: texts(labels),
        ..skill(column, "D")
    };
    let note = Record { is_skill: false, ..named("home", "Home Control", &[]) };
    let plain = Record { content: "---\nname: Only Name\n---\nText".into(), ..record("plain", "") };
    let long = "x".repeat(201);
    let secret = &["staff"][..];
    // The records, the name to ask for, and the names in the list of a profile without grants and
    // of one with all.
    type Row<'a> = (Vec<Record>, &'a str, &'a [&'a str], &'a [&'a str]);
    let rows: &[Row] = &[
        (vec![note], "Home Control", &["Home Control"], &["Home Control"]),
        (vec![named("a", "a", &[])], "a", &["a"], &["a"]),
        (vec![named("a", "  Tea \t Time", &[])], "Tea Time", &["Tea Time"], &["Tea Time"]),
        // Not a command's, and not a whole text.
        (vec![named("a", "email.send", &[])], "a", &["a"], &["a"]),
        (vec![named("a", &long, &[])], "a", &["a"], &["a"]),
        // A note needs a description too, to be a skill.
        (vec![plain], "plain", &[], &[]),
        // The name leads to another entry: a name comes before an alias, and the first of two.
        (vec![named("a", "b", &[]), named("b", "b", &[])], "b", &["a", "b"], &["a", "b"]),
        (vec![named("a", "Tea", &[]), named("b", "Tea", &[])], "Tea", &["Tea", "b"], &["Tea", "b"]),
        // One that is hidden changes nothing.
        (vec![named("a", "b", &[]), named("b", "b", secret)], "b", &["b"], &["a", "b"]),
        (vec![named("a", "Tea", secret), named("b", "Tea", &[])], "Tea", &["Tea"], &["Tea", "b"]),
    ];
    for (records, asked, few, many) in rows {
        let catalog = Arc::new(CachedCatalog::new(Catalog::build(1, vec![assembled(records)])));
        for (grants, expected) in [(Some(vec![]), few), (None, many)] {
            let profile = Profile { id: "p".into(), grants, ..Profile::unrestricted() };
            let view = View::new(catalog.clone(), &profile).unwrap();
            let help = view.help_top_level();
            let listed: Vec<_> = help
                .lines()
                .filter_map(|line| line.strip_suffix(" D").or_else(|| line.strip_suffix(" x")))
                .map(str::trim)
                .collect();
            assert_eq!(listed, *expected, "{records:?}");
            for name in *expected {
                assert!(view.find(name).is_some(), "{name}");
            }
            assert!(view.find(asked).is_some(), "{asked}");
        }
    }
}

#[test]
fn each_record_runs_by_its_schedule_and_files_where_no_record_is() {
    let daily = |id: i64, name: &str, labels: &[&str]| Record {
        id,
        labels: texts(labels),
        schedule: Some("@daily".into()),
        ..skill(name, "D")
    };
    let file = |name: &str| doc(name, "schedule: '@daily'\n", "File");
    let files = [
        ("n/SKILL.md", file("n")),
        ("o/SKILL.md", file("o")),
        ("p/SKILL.md", doc("p", "", "File")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let earlier = source("early", SourceKind::Skills, &[], &files[..2]);
    let later = source("late", SourceKind::Skills, &[], &files);
    let records =
        [daily(1, "n", &["a"]), daily(2, "n", &["b"]), skill("q", "D"), daily(4, "r", &[])];
    let parts = Parts::new(Some(store()));
    parts.publish(vec![Some(earlier), Some(later), None], Arc::default());
    parts.put(records.iter().map(|record| parts.read(record)).collect(), &[]);
    let found = |name| {
        let told = |entry: &Arc<Entry>| {
            (entry.document.path.clone(), entry.document.of_record().map(|record| record.id))
        };
        parts.scheduled(name).iter().map(told).collect::<Vec<_>>()
    };
    let n = [("/late/n/SKILL.md", None), ("store/n.md", Some(1)), ("store/n.md", Some(2))];
    let all = [&n[..], &[("/late/o/SKILL.md", None), ("store/r.md", Some(4))]].concat();
    let owned = |rows: &[(&str, Option<i64>)]| {
        rows.iter().map(|(path, id)| (path.to_string(), *id)).collect::<Vec<_>>()
    };
    assert_eq!(
        (found(None), found(Some("n")), found(Some("q")), found(Some("x"))),
        (owned(&all), owned(&n), vec![], vec![])
    );
}

#[test]
fn trust_is_the_writers() {
    let rows = [
        (Origin::User, Trust::Medium),
        (Origin::Agent, Trust::Medium),
        (Origin::Import, Trust::Low),
    ];
    for (origin, trust) in rows {
        let entry = only(Record { origin, ..skill("n", "D") });
        assert_eq!((entry.trust, entry.source.trust), (trust, Trust::Medium));
        assert_eq!(entry.document.data().get("source"), Some(&origin.as_str().into_value()));
    }
    // An imported record replaces nothing of another source.
    let file = || source("s", SourceKind::Skills, &[], &[("n/SKILL.md", &doc("n", "", "File"))]);
    for (origin, body) in [(Origin::User, "Body"), (Origin::Import, "File")] {
        let view = all(Catalog::build(
            1,
            vec![file(), assembled(&[Record { origin, ..skill("n", "D") }])],
        ));
        let used: Vec<_> = view.entries().map(|(_, entry)| entry.body().trim()).collect();
        assert_eq!(used, [body]);
        let refused = view.diagnostics().find(|found| found.code == Code::ReplacementRefused);
        let told = refused.map(|found| (found.message.as_str(), found.hint.as_deref()));
        let text = "`n` is the name of /s/n/SKILL.md, and it was imported with low trust, so this \
             one is not used";
        assert_eq!(
            told,
            (origin == Origin::Import).then_some((text, Some("give it another name")))
        );
    }
}

#[test]
fn names_that_cannot_be_entries() {
    let rows = [
        ("", 0, vec![Code::NameMissing], "expected a name, got none; the record is not used"),
        (" \n", 0, vec![Code::NameMissing], "expected a name, got none; the record is not used"),
        (
            "email.send",
            0,
            vec![Code::NameReserved],
            "the name `email.send` has the form of a command's, and a record cannot be a \
             command; it is not used",
        ),
        ("node.", 1, vec![], ""),
        ("SKILL", 1, vec![], ""),
        ("über-größe", 1, vec![], ""),
    ];
    for (name, count, expected, message) in rows {
        let assembled = assembled(&[record(name, "Text")]);
        assert_eq!((assembled.entries.len(), codes(&assembled)), (count, expected), "{name:?}");
        let told = assembled.findings.first().map_or("", |found| found.diagnostic.message.as_str());
        assert_eq!(told, message);
    }
    // Its labels are unknown.
    let blank = assembled(&[Record { labels: texts(&["a", " "]), ..record("n", "Text") }]);
    assert_eq!((blank.entries.len(), codes(&blank)), (0, vec![Code::LabelsInvalid]));
    let undescribed = assembled(&[skill("n", "")]);
    assert_eq!(
        (undescribed.entries.len(), codes(&undescribed)),
        (1, vec![Code::DescriptionMissing])
    );
}

#[test]
fn content_that_cannot_be_taken_apart_is_the_body() {
    let content = "---\nname: [\nText";
    let assembled = assembled(&[record("n", content)]);
    assert_eq!((assembled.entries[0].body(), assembled.entries[0].kind), (content, Kind::Note));
    let found = &assembled.findings[0].diagnostic;
    assert_eq!(
        (found.code, found.path.as_deref()),
        (Code::FrontmatterUnclosed, Some("store/n.md"))
    );
}

#[test]
fn records_of_one_name_are_entries_each() {
    let labelled =
        |label: &str, text: &str| Record { labels: texts(&[label]), ..record("n", text) };
    let first = [labelled("a", "one"), labelled("b", "two"), labelled("c", "three")];
    let mut records = Records::new(Opener::new(store()));
    let written = |id: i64, record: Record| Written::new(&store(), &Record { id, ..record });
    records.put((1..).zip(first).map(|(id, record)| written(id, record)), &[], 1);
    let (before, _open) = read(&records.blocks(0..3), records.opener());
    let bodies = |assembled: &Assembled| {
        assembled.entries.iter().map(|e| e.body().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(bodies(&before), ["one", "two", "three"]);
    // The others are unchanged.
    let changes = records.put([written(2, labelled("b", "2"))], &[], 2);
    assert!(changes.len() == 1 && changes[0].before.is_some() && changes[0].after.is_some());
    let (after, _) = read(&records.blocks([2, 1, 0].into_iter()), records.opener());
    assert_eq!(bodies(&after), ["one", "2", "three"], "by id, not by class");
    assert_eq!(records.classes().iter().map(|class| class.changed).collect::<Vec<_>>(), [1, 2, 1]);
    let kept = |at: usize| Arc::ptr_eq(&before.entries[at], &after.entries[at]);
    assert_eq!([kept(0), kept(1), kept(2)], [true, false, true]);
    assert!(records.put([written(2, labelled("b", "2"))], &[7], 3).is_empty());
}

#[test]
fn a_column_makes_a_change() {
    let old = Catalog::build(1, vec![assembled(&[record("n", "Text")])]);
    let rows = [
        (record("n", "Text"), false),
        (record("n", "Other"), true),
        (Record { tags: texts(&["t"]), ..record("n", "Text") }, true),
        (Record { title: "T".into(), ..record("n", "Text") }, true),
        (Record { include_in_prompt: false, ..record("n", "Text") }, true),
        (Record { excluded_for: texts(&["p"]), ..record("n", "Text") }, true),
        (Record { origin: Origin::Import, ..record("n", "Text") }, true),
        (Record { version: 2, ..record("n", "Text") }, true),
        (Record { is_skill: true, ..record("n", "Text") }, true),
        (Record { schedule: Some("@daily".into()), ..record("n", "Text") }, true),
        (Record { writers: vec![None], ..record("n", "Text") }, true),
    ];
    for (record, differs) in rows {
        let new = Catalog::build(2, vec![assembled(std::slice::from_ref(&record))]);
        let changes = Changes::between(old.entries(), new.entries());
        assert_eq!(changes.changed.len() == 1, differs, "{record:?}");
    }
}

#[test]
fn visibility_of_records() {
    let record =
        Record { labels: texts(&["home"]), excluded_for: texts(&["guest"]), ..skill("milk", "D") };
    type Row<'a> = (&'a str, Option<&'a [&'a str]>, &'a [&'a [&'a str]], bool);
    let rows: [Row; 7] = [
        ("p", None, &[], true),
        ("p", Some(&["home"]), &[], true),
        ("p", Some(&["work"]), &[], false),
        ("p", Some(&[]), &[], false),
        ("guest", Some(&["home"]), &[], false),
        ("p", Some(&["home"]), &[&["m*"]], true),
        ("p", Some(&["home"]), &[&["m*"], &["x*"]], false),
    ];
    let catalog = common::cached(Catalog::build(1, vec![assembled(std::slice::from_ref(&record))]));
    let columns = access(&record);
    for (id, grants, skills, expected) in rows {
        let skills = skills.iter().map(|globs| texts(globs)).collect();
        let profile =
            Profile { id: id.into(), grants: grants.map(texts), skills, ..Profile::unrestricted() };
        assert_eq!(sees(&profile).unwrap()(&columns), expected, "{profile:?}");
        assert_eq!(
            View::new(catalog.clone(), &profile).unwrap().count() == 1,
            expected,
            "{profile:?}"
        );
    }
    let bad = Profile { skills: vec![texts(&["["])], ..Profile::unrestricted() };
    assert!(sees(&bad).is_err());
}

/// Texts made of pieces that could be mistaken for parts of a prompt or for frontmatter.
fn hostile() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "---\n",
        "name: a\n",
        "description: d\n",
        "visibility_labels: []\n",
        "</skill>",
        "<available_skills>",
        "\n## Notes\n",
        "- **x**: y",
        "\n",
        "\r\n",
        "\u{85}",
        "\u{2028}",
        "\u{0}",
        "/",
        "../",
        "SKILL",
        ".",
        "ö",
        " ",
        "[",
        "\"",
        "a",
    ]);
    prop_oneof![
        proptest::collection::vec(piece, 0..6).prop_map(|pieces| pieces.concat()),
        any::<String>(),
    ]
}

fn records() -> impl Strategy<Value = Record> {
    let list = || proptest::collection::vec(hostile(), 0..3);
    let flags = (any::<bool>(), any::<bool>(), any::<i64>());
    let origin = prop::sample::select(vec![Origin::User, Origin::Agent, Origin::Import]);
    ((hostile(), hostile(), hostile(), hostile()), (list(), list(), list(), list()), flags, origin)
        .prop_map(
            |(
                (name, title, description, content),
                (tags, labels, proactive_for, excluded_for),
                flags,
                origin,
            )| Record {
                id: 0,
                name,
                is_skill: flags.0,
                title,
                description,
                content: content.into(),
                tags,
                tenant: Tenant::Common,
                labels,
                include_in_prompt: flags.1,
                proactive_for,
                excluded_for,
                origin,
                version: flags.2,
                schedule: flags.0.then(|| "@daily".into()),
                timezone: None,
                writers: vec![None],
            },
        )
}

/// Frontmatter with labels, with slips in them, or without any.
fn head() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec![
        "",
        "---\nlabels: [SKILL, home]\n---\n",
        "---\nname: own\ndescription: d\nvisibility_labels: home\nschedule: '@daily'\n---\n",
        "---\nvisibility-label: [home]\n---\n",
        "---\nlabels: [home\n---\n",
        "---\nlicense: [MIT\n---\n",
        "---\nlabels: [' ']\n---\n",
    ])
}

proptest! {
    #[test]
    fn any_record_equals_its_columns(
        records in proptest::collection::vec(records(), 1..4),
    ) {
        for record in &records {
            let document = Document::stored("store", record);
            prop_assert!(record.content.ends_with(document.body()));
            let Some(fields) = document.fields() else {
                let hides = |it: &&Diagnostic| it.code == Code::LabelsInvalid;
                prop_assert!(document.diagnostics.iter().find(hides).is_some());
                continue;
            };
            let sorted = |items: Vec<String>| {
                items.into_iter().collect::<BTreeSet<_>>().into_iter().collect::<Vec<_>>()
            };
            let trimmed = |items: &[String]| -> Vec<String> {
                items
                    .iter()
                    .map(|item| item.trim().to_owned())
                    .filter(|item| !item.is_empty())
                    .collect()
            };
            let text = |text: &str| Some(text.trim().to_owned()).filter(|text| !text.is_empty());
            prop_assert_eq!(
                fields.name.as_deref().unwrap_or(""),
                record.name.split_whitespace().collect::<Vec<_>>().join(" ")
            );
            prop_assert_eq!(&fields.title, &text(&record.title));
            prop_assert_eq!(&fields.tags, &trimmed(&record.tags));
            prop_assert_eq!(&fields.labels, &sorted(trimmed(&record.labels)));
            prop_assert_eq!(&fields.proactive_for, &trimmed(&record.proactive_for));
            prop_assert_eq!(&fields.excluded_for, &sorted(trimmed(&record.excluded_for)));
            prop_assert_eq!(fields.include_in_prompt, record.include_in_prompt);
            if let Some(description) = text(&record.description) {
                prop_assert_eq!(fields.description.as_deref(), Some(description.as_str()));
            }
        }
        let catalog = common::cached(Catalog::build(1, vec![assembled(&records)]));
        let labels: Vec<&str> =
            records.iter().flat_map(|record| &record.labels).map(|label| label.trim()).collect();
        let reader = view(&catalog, "reader", &labels, None);
        lint(&reader);
        for record in &records {
            explain(&reader, &Tenant::All, &record.name, &Options::default());
            reader.help(&record.name);
            reader.search(&Query::new(&record.title));
        }
    }

    #[test]
    fn changing_records_equals_loading_them(
        started in proptest::collection::vec((0..4usize, records()), 0..6),
        changes in proptest::collection::vec(
            (
                proptest::collection::vec(
                    (1..6i64, prop::option::of((0..4usize, records()))),
                    0..4,
                ),
                any::<[bool; 2]>(),
            ),
            1..6,
        ),
    ) {
        // The names are few, so that several records share one.
        let named = |id: i64, (name, record): (usize, Record)| {
            let name = ["a", "b", "b-c"].get(name).map_or(record.name.clone(), ToString::to_string);
            Record { id, name, ..record }
        };
        let started: Vec<_> = (1..).zip(started).map(|(id, record)| named(id, record)).collect();
        let mut kept = Records::new(Opener::new(store()));
        // In two times, the newer ones first.
        let (first, second) = started.split_at(started.len() / 2);
        for records in [second, first] {
            kept.add(records.iter().map(|record| Loaded::new(&store(), record)), 1);
        }
        let mut _held = None;
        let mut there: BTreeMap<i64, Record> =
            started.into_iter().map(|record| (record.id, record)).collect();
        // The first is no change, so that what was loaded is looked at too.
        let changes = std::iter::once(Default::default()).chain(changes);
        for (change, [packs, holds]) in changes {
            let before = there.clone();
            let mut removed = Vec::new();
            let mut put = Vec::new();
            for (id, record) in change {
                there.remove(&id);
                removed.push(id);
                if let Some(record) = record {
                    put.retain(|other: &Record| other.id != id);
                    put.push(named(id, record));
                }
            }
            there.extend(put.iter().map(|record| (record.id, record.clone())));
            removed.retain(|id| !there.contains_key(id));
            let put = put.iter().map(|record| Written::new(&store(), record));
            let changes = kept.put(put, &removed, 1);
            prop_assert_eq!(!changes.is_empty(), before != there);
            let all: Vec<Record> = there.values().cloned().collect();
            let anew = assembled(&all);
            let shown = |assembled: &Assembled| {
                let mut findings: Vec<_> =
                    assembled.findings.iter().map(|found| format!("{found:?}")).collect();
                findings.sort();
                let mut entries: Vec<_> =
                    assembled.entries.iter().map(|entry| format!("{entry:?}")).collect();
                entries.sort();
                (entries, findings)
            };
            let classes = 0..kept.classes().len() as u32;
            for block in kept.settle(if packs { 0 } else { usize::MAX }) {
                block.pack();
            }
            let (read, opened) = read(&kept.blocks(classes), kept.opener());
            prop_assert_eq!(shown(&read), shown(&anew));
            _held = holds.then_some(opened);
            for name in ["a", "b", "b-c"] {
                let named = anew.entries.iter().filter(|entry| &*entry.name == name).count();
                prop_assert_eq!(kept.named(name).count(), named);
            }
            prop_assert!(kept.ids().eq(there.keys().copied()));
            let scheduled = anew.entries.iter().filter(|entry| entry.fields().schedule.is_some());
            prop_assert_eq!(kept.scheduled(None).len(), scheduled.count());
        }
    }

    #[test]
    fn records_that_nobody_has_read_are_of_the_same_classes(
        records in proptest::collection::vec((records(), head(), 0..3usize, any::<bool>()), 0..8),
        restricted in any::<bool>(),
        globs in prop::sample::select(vec![None, Some("*a*")]),
    ) {
        let source = Arc::new(Source {
            labels: texts(if restricted { &["SKILL", "x"] } else { &[] }),
            available: globs.map(|glob| Globs::new(&texts(&[glob])).unwrap()),
            ..(*store()).clone()
        });
        let written = |(id, (record, head, tenant, timed)): (i64, (Record, &str, usize, bool))| {
            Record {
                id,
                content: format!("{head}{}", record.content).into(),
                tenant: Some(["", "near", "far"][tenant].to_owned()).into(),
                schedule: record.schedule.clone().filter(|_| timed),
                ..record
            }
        };
        let records: Vec<_> = (1..).zip(records).map(written).collect();
        let mut loaded = Records::new(Opener::new(source.clone()));
        loaded.add(records.iter().map(|record| Loaded::new(&source, record)), 1);
        let mut put = Records::new(Opener::new(source.clone()));
        put.put(records.iter().map(|record| Written::new(&source, record)), &[], 1);
        let classes = |records: &Records| {
            let class = |class: &Class| {
                (class.tenant.name().map(str::to_owned), class.labels.clone(), class.count())
            };
            let mut classes: Vec<_> = records.classes().iter().map(class).collect();
            classes.sort();
            classes
        };
        prop_assert_eq!(classes(&loaded), classes(&put));
        prop_assert!(loaded.ids().eq(put.ids()));
        for record in &records {
            let name = record.name.split_whitespace().collect::<Vec<_>>().join(" ");
            prop_assert!(loaded.named(&name).eq(put.named(&name)));
        }
        let scheduled = |records: &Records| -> Vec<i64> {
            records.scheduled(None).iter().map(|(id, _)| *id).collect()
        };
        prop_assert_eq!(scheduled(&loaded), scheduled(&put));
    }

    #[test]
    fn columns_alone_decide_visibility(
        record in records(),
        id in prop::sample::select(vec!["a", "reader"]),
        grants in prop::option::of(prop::sample::subsequence(vec!["a", "ö", "[", "SKILL"], 0..4)),
        globs in prop::sample::select(vec![None, Some("*a*"), Some("SKILL")]),
    ) {
        let skills = globs.map(|glob| texts(&[glob])).into_iter().collect();
        let profile = Profile {
            id: id.into(),
            grants: grants.map(|grants| texts(&grants)),
            skills,
            ..Profile::unrestricted()
        };
        let catalog =
            common::cached(Catalog::build(1, vec![assembled(std::slice::from_ref(&record))]));
        let shown = View::new(catalog, &profile).unwrap().count() == 1;
        prop_assert_eq!(sees(&profile).unwrap()(&access(&record)), shown);
    }

    #[test]
    fn its_text_in_a_prompt_is_on_lines_of_its_own(
        record in records(),
        format in prop::sample::select(Format::ALL.to_vec()),
    ) {
        let plain =
            Record { name: "plain".into(), is_skill: record.is_skill, ..skill("plain", "D") };
        // Texts of low trust have a line that says so.
        let plain = Record { origin: record.origin, ..plain };
        let lines = |record: &Record| {
            let record = Record {
                content: "Body".into(),
                labels: vec![],
                include_in_prompt: true,
                excluded_for: vec![],
                ..record.clone()
            };
            let catalog = common::cached(Catalog::build(1, vec![assembled(&[record])]));
            let reader = view(&catalog, "reader", &[], None);
            let options = Options { sections: format.sections().to_vec(), ..Options::default() };
            (reader.count(), reader.prompt_with(&options).lines().count())
        };
        let (count, found) = lines(&record);
        let usual = Record {
            title: if record.title.trim().is_empty() { String::new() } else { "T".into() },
            description: if record.description.trim().is_empty() {
                String::new()
            } else {
                "D".into()
            },
            ..plain
        };
        if count == 1 {
            prop_assert_eq!(found, lines(&usual).1);
        }
    }
}

#[test]
fn lists_the_differences_between_generations() {
    // Each file is a source of its own: kind of record, name, title and text.
    type File<'a> = (SourceKind, &'a str, &'a str, &'a str);
    let names = |entries: &[&Arc<Entry>]| {
        entries.iter().map(|entry| entry.name.to_string()).collect::<Vec<_>>()
    };
    let build = |files: &[File]| {
        let source = |(at, (kind, name, title, body)): (usize, &File)| {
            let source =
                Arc::new(Source { root: format!("/{at}"), kind: *kind, ..Source::default() });
            let document = Arc::new(match kind {
                SourceKind::Stored => Document::stored(
                    &source.root,
                    &Record {
                        title: title.to_string(),
                        content: (*body).into(),
                        ..skill(name, "d")
                    },
                ),
                _ => {
                    let text =
                        format!("---\nname: {name}\ndescription: d\ntitle: {title}\n---\n{body}");
                    Document::parse(&source.root, &format!("{name}.md"), text.as_bytes())
                }
            });
            assemble(&source, vec![document], vec![format!("{name}.md")])
        };
        Catalog::build(1, files.iter().enumerate().map(source).collect())
    };
    let (file, stored) = (SourceKind::Skills, SourceKind::Stored);
    let old = [(file, "a", "A", "1"), (file, "a", "A", "2"), (file, "b", "B", "1")];
    type Row<'a> = (&'a [File<'a>], [&'a [&'a str]; 3]);
    let rows: [Row; 6] = [
        (&old, [&[], &[], &[]]),
        // A replaced entry may be the one that another reader uses.
        (&[(file, "a", "A", "3"), old[1], old[2]], [&[], &["a"], &[]]),
        (&[old[0], (file, "c", "C", "1"), old[2]], [&["c"], &["a"], &[]]),
        (&[(file, "c", "C", "1"), (file, "d", "D", "1"), old[2]], [&["c", "d"], &[], &["a"]]),
        (&[old[0], old[1], old[2], (stored, "b", "E", "1")], [&[], &["b"], &[]]),
        (&[old[0], old[1], old[2], (stored, "e", "B", "1")], [&["e"], &[], &["b"]]),
    ];
    let before = build(&old);
    for (files, [added, changed, removed]) in rows {
        let after = build(files);
        let changes = Changes::between_generations(&before, &after);
        let told =
            [&changes.added, &changes.changed, &changes.removed].map(|entries| names(entries));
        assert_eq!(told, [added, changed, removed], "{files:?}");
    }
}

/// Each side of the rule of tenants: the tenant of the record and of the reader, and whether the
/// reader sees it, whatever its grants are.
#[test]
fn tenants_see_their_own_records_and_common_ones() {
    let one = |name: &str| Tenant::One(name.into());
    let rows = [
        (Tenant::Common, Tenant::Common, true),
        (Tenant::Common, one("a"), true),
        (Tenant::Common, Tenant::All, true),
        (one("a"), Tenant::Common, false),
        (one("a"), one("a"), true),
        (one("a"), one("b"), false),
        (one("a"), one("A"), false),
        (one("a"), Tenant::All, true),
        (one(" "), Tenant::Common, false),
        (Tenant::All, Tenant::Common, false),
        (Tenant::All, one("a"), false),
    ];
    for (tenant, reader, expected) in rows {
        let record = Record { tenant: tenant.clone(), ..skill("n", "D") };
        let catalog =
            common::cached(Catalog::build(1, vec![assembled(std::slice::from_ref(&record))]));
        let profile = Profile { tenant: reader.clone(), ..Profile::unrestricted() };
        let view = View::new(catalog, &profile).unwrap();
        assert_eq!(view.find("n").is_some(), expected, "{tenant:?} {reader:?}");
        assert_eq!(sees(&profile).unwrap()(&access(&record)), expected, "{tenant:?} {reader:?}");
    }
}

/// The records of a name, by their tenants in the order of their ids, the reader, and the
/// description of the one that it uses.
#[test]
fn a_tenant_uses_its_own_record_before_a_common_one() {
    let one = |name: &str| Tenant::One(name.into());
    let rows: [(&[Tenant], Tenant, &str); 7] = [
        (&[Tenant::Common, one("a")], one("a"), "1"),
        (&[one("a"), Tenant::Common], one("a"), "0"),
        (&[one("b"), Tenant::Common, one("a")], one("a"), "2"),
        (&[one("b"), Tenant::Common], one("a"), "1"),
        (&[one("a"), Tenant::Common], Tenant::All, "1"),
        (&[one("b"), one("a")], Tenant::All, "0"),
        (&[one("a"), Tenant::Common], Tenant::Common, "1"),
    ];
    for (tenants, reader, expected) in rows {
        let record = |(id, tenant): (usize, &Tenant)| Record {
            id: id as i64 + 1,
            tenant: tenant.clone(),
            ..skill("n", &id.to_string())
        };
        let records: Vec<_> = tenants.iter().enumerate().map(record).collect();
        let catalog = common::cached(Catalog::build(1, vec![assembled(&records)]));
        let profile = Profile { tenant: reader.clone(), ..Profile::unrestricted() };
        let view = View::new(catalog, &profile).unwrap();
        let used = view.entry(view.find("n").unwrap()).unwrap().description().to_owned();
        assert_eq!(used, expected, "{tenants:?} {reader:?}");
    }
}

proptest! {
    // Each of them reads all records after each change.
    #![proptest_config({
        let default = ProptestConfig::default();
        ProptestConfig { cases: default.cases.div_ceil(16), ..default }
    })]

    #[test]
    fn blocks_hold_what_was_put(
        changes in proptest::collection::vec(
            (1..60i64, prop::option::weighted(0.7, 0..12_000usize), any::<[bool; 2]>()),
            1..120,
        ),
    ) {
        let mut kept = Records::new(Opener::new(store()));
        let mut there: BTreeMap<i64, String> = BTreeMap::new();
        let mut held = None;
        for (id, size, [packs, holds]) in changes {
            let text = size.map(|size| format!("{id} {}", "x\n".repeat(size / 2)));
            let record = text.as_ref().map(|text| Record {
                id,
                schedule: (id % 2 == 0).then(|| "@daily".to_owned()),
                ..record(&format!("n{}", id % 7), text)
            });
            let removed: Vec<i64> = record.is_none().then_some(id).into_iter().collect();
            let put = record.iter().map(|new| Written::new(&store(), new));
            let changes = kept.put(put, &removed, 1);
            let before = match text {
                Some(text) => there.insert(id, text),
                None => there.remove(&id),
            };
            let was = changes.first().and_then(|change| change.before.as_ref());
            if let Some(was) = was {
                prop_assert_eq!(Some(was.body()), before.as_deref());
            }
            for block in kept.settle(if packs { 0 } else { 64 * 1024 }) {
                block.pack();
            }
            let classes = 0..kept.classes().len() as u32;
            let (read, opened) = read(&kept.blocks(classes), kept.opener());
            let bodies: Vec<_> = read.entries.iter().map(|entry| entry.body()).collect();
            prop_assert_eq!(bodies, there.values().map(String::as_str).collect::<Vec<_>>());
            held = holds.then_some(opened);
            let scheduled: Vec<i64> = kept.scheduled(None).iter().map(|(id, _)| *id).collect();
            let even: Vec<i64> = there.keys().copied().filter(|id| id % 2 == 0).collect();
            prop_assert_eq!(scheduled, even);
            for (id, block) in kept.scheduled(Some("n2")) {
                let entry = block.entry(id, kept.opener()).unwrap();
                prop_assert_eq!(entry.body(), there[&id].as_str());
            }
        }
        drop(held);
        kept.settle(0);
        prop_assert_eq!(kept.opener().bytes(), 0);
    }
}
