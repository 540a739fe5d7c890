//! Restrictions of files and of records: a slip opens nothing, and a harmless field hides nothing.

mod common;

use std::sync::Arc;

use common::{source, view};
use proptest::prelude::*;
use skillbook_core::catalog::assemble::assemble;
use skillbook_core::catalog::last_good::keep;
use skillbook_core::catalog::Catalog;
use skillbook_core::page::diagnostic::{Code, Diagnostic, Severity};
use skillbook_core::page::document::Document;
use skillbook_core::page::fields::metadata;
use skillbook_core::page::fields::restrictions::meant;
use skillbook_core::page::record::{Access, Record};
use skillbook_core::source::{Source, SourceKind};
use skillbook_core::value::Value;
use skillbook_core::view::{sees, Profile, View};

const CLOSED: &str =
    "; the document is not used, because it might be open to more than its author meant";

fn record(content: &str) -> Record {
    Record {
        id: 1,
        is_skill: true,
        title: "A".into(),
        description: "d".into(),
        ..common::record("a", content)
    }
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

fn page(yaml: &str) -> String {
    format!("---\nname: a\ndescription: d\n{yaml}\n---\nText\n")
}

/// The view of a profile on a folder with this skill.
fn folder(text: &str, profile: &Profile) -> View {
    let assembled = source("s", SourceKind::Skills, &[], &[("a/SKILL.md", text)]);
    View::new(common::cached(Catalog::build(1, vec![assembled])), profile).unwrap()
}

/// The view of a profile on a store with this record.
fn store(record: &Record, profile: &Profile) -> View {
    let source = Arc::new(Source {
        name: "store".into(),
        root: "store".into(),
        kind: SourceKind::Stored,
        ..Source::default()
    });
    let assembled = assemble(&source, vec![Arc::new(Document::stored("store", record))], vec![]);
    View::new(common::cached(Catalog::build(1, vec![assembled])), profile).unwrap()
}

fn errors(document: &Document) -> Vec<Diagnostic> {
    let errors = document.diagnostics.iter().filter(|found| found.severity == Severity::Error);
    errors.cloned().collect()
}

fn reader(id: &str, grants: &[&str]) -> Profile {
    Profile {
        id: id.into(),
        grants: Some(grants.iter().map(|label| label.to_string()).collect()),
        ..Profile::unrestricted()
    }
}

/// Whether anybody sees the page, as a file and as a record. The two must agree.
fn is_open(yaml: &str) -> bool {
    let (text, everybody) = (page(yaml), Profile::unrestricted());
    let record = record(&text);
    let file = folder(&text, &everybody).count() == 1;
    assert_eq!(store(&record, &everybody).count() == 1, file, "{yaml}");
    assert_eq!(sees(&everybody).unwrap()(&access(&record)), file, "{yaml}");
    file
}

#[test]
fn a_key_is_near_a_restriction_or_not() {
    let labels = "visibility_labels";
    let excluded = "exclude_from_prompt_profile_ids";
    let (tools, model, people) = ("allowed-tools", "disable-model-invocation", "user-invocable");
    let prompt = "include_in_prompt";
    // Each on its side of the line.
    let rows: &[(&[&str], Option<&str>)] = &[
        (
            &[
                "visibility-labels",
                "Visibility_Labels",
                "visibilityLabels",
                "visibility labels",
                "VISIBILITY_LABELS",
                "visibility_label",
                "visability_labels",
                "visibilty_lables",
                "visibilitylabels",
                "visibility.labels",
                "visibility_labels_",
                " visibility_labels",
                "visibility_labels\u{200B}",
                "visible_labels",
                "visibility_labelss",
            ],
            Some(labels),
        ),
        (&["label", "Labels", "LABEL", "lables", "labels ", "lebels", "label-s"], Some("labels")),
        (
            &[
                "exclude-from-prompt-profile-ids",
                "exclude_from_prompt_profile_id",
                "exclude_from_prompt_profiles",
                "excluded_from_prompt_profile_ids",
                "exclude_from_prompt",
                "exclude_profile_ids",
                "excluded_for",
                "excludeFor",
            ],
            Some(excluded),
        ),
        (
            &["allowed_tools", "allowedTools", "Allowed-Tools", "allowed-tool", "allow-tools"],
            Some(tools),
        ),
        (
            &[
                "disable_model_invocation",
                "disable-model-invocations",
                "disableModelInvocation",
                "hidden_from_model",
            ],
            Some(model),
        ),
        (&["user_invocable", "user-invokable", "userInvocable", "user-invocabel"], Some(people)),
        (&["include-in-prompt", "includeInPrompt", "include_in_prompts"], Some(prompt)),
        (&["include-in-prompt-default"], Some("include_in_prompt_default")),
        (&[labels], Some(labels)),
        (&["labels"], Some("labels")),
        (&[excluded], Some(excluded)),
        (&[tools], Some(tools)),
        (&[model], Some(model)),
        (&[people], Some(people)),
        (&[prompt], Some(prompt)),
        // Fields of this format, of other programs and of public skills.
        (
            &[
                "name",
                "domain",
                "title",
                "description",
                "handler",
                "tags",
                "aliases",
                "alias",
                "tool",
                "proactive_for_profile_ids",
                "effects",
                "timeout",
                "max_running",
                "strict",
                "trigger_keywords",
                "triggers",
                "examples",
                "requires",
                "license",
                "compatibility",
                "metadata",
                "schedule",
                "timezone",
                "run_as",
                "on_error",
                "author",
                "created",
                "version",
                "source",
                "tools",
                "disallowed-tools",
                "argument-hint",
                "category",
                "displayName",
                "display_name",
                "color",
                "priority",
                "context",
                "agent",
                "hooks",
                "risk",
                "bundle",
                "model",
                "language",
                "languages",
                "visibility",
                "private",
                "public",
                "draft",
                "date",
                "date_added",
                "updated",
                "table",
                "tables",
                "levels",
                "level",
                "layout",
                "slug",
                "related",
                "permissions",
                "user",
                "users",
                "user_interface",
                "user-involvement",
                "allowed-paths",
                "allowed-hosts",
                "allowed-models",
                "tool_names",
                "mcp-servers",
                "homepage",
                "repository",
                "keywords",
                "summary",
                "icon",
                "order",
                "weight",
                "sidebar_label",
                "include",
                "exclude",
                "includes",
                "prompt",
                "prompts",
                "profile",
                "globs",
                "alwaysApply",
                "when_to_use",
                "dependencies",
                "status",
                "id",
                "type",
                "kind",
                "",
            ],
            None,
        ),
    ];
    for (keys, expected) in rows {
        for key in *keys {
            assert_eq!(meant(key), *expected, "{key:?}");
        }
    }
    for keys in ["visibility_labels ".repeat(4), "l".repeat(1 << 20), "-".repeat(1 << 20)] {
        assert_eq!(meant(&keys), None);
    }
}

#[test]
fn a_slip_in_a_restriction_hides_the_document() {
    let hidden = [
        // Misspelt.
        "visibility-labels: [x]",
        "visibility_label: x",
        "Labels: [x]",
        "label: x",
        "exclude-from-prompt-profile-ids: [x]",
        "excluded_for: [x]",
        "allowed_tools: Read",
        "allowedTools: [Read]",
        "disable_model_invocation: true",
        "user_invocable: false",
        "include-in-prompt: false",
        "\"visibility_labels \": [x]",
        // A right one beside a wrong one.
        "visibility_labels: [x]\nvisibility-labels: [y]",
        // Twice.
        "visibility_labels: [x]\nvisibility_labels: []",
        "labels: [x]\ntags: [a]\n\"labels\": [y]",
        "allowed-tools: Read\nallowed-tools: Bash",
        "exclude_from_prompt_profile_ids: [x]\nexclude_from_prompt_profile_ids: [y]",
        "a: 1\na: 2\nb: 1\nb: 2\nc: 1\nc: 2\nd: 1\nd: 2\ne: 1\ne: 2\nf: 1\nf: 2\n\
         user-invocable: false\nuser-invocable: true",
        // Empty, or of another type.
        "visibility_labels:",
        "visibility_labels: null",
        "visibility_labels: # [x]",
        "visibility_labels: ''",
        "visibility_labels: ' , '",
        "visibility_labels: {a: b}",
        "visibility_labels: {}",
        "visibility_labels: [[a]]",
        "visibility_labels: [a, null]",
        "visibility_labels: ['']",
        "visibility_labels: [a, {b: c}]",
        "labels:",
        "labels: {a: b}",
        "exclude_from_prompt_profile_ids:",
        "exclude_from_prompt_profile_ids: {a: 1}",
        "exclude_from_prompt_profile_ids: [a, [b]]",
        "allowed-tools:",
        "allowed-tools: ''",
        "allowed-tools: {Read: true}",
        "allowed-tools: [Read, [Bash]]",
        "disable-model-invocation:",
        "disable-model-invocation: maybe",
        "disable-model-invocation: [true]",
        "user-invocable: never",
        "user-invocable: {a: b}",
        "include_in_prompt: maybe",
        "include_in_prompt:",
        "include_in_prompt_default: [false]",
        // Where it has no effect.
        "metadata:\n  visibility_labels: [x]",
        "metadata: {skillbook: [{visibility-label: x}]}",
        "metadata: {exclude_from_prompt_profile_ids: [x]}",
        "base: &base {labels: [x]}\n<<: *base",
        "<<: {allowed-tools: Read}",
        // In a block that is repaired, where the line would become text.
        "other: a: b\n  Visibility_Labels: [x]",
        "other: a: b\n  more\n  Allowed-Tools: Read",
        "other: @a\n  Labels: [x]\nmore: text",
        "other: a: b\n  visibility_labels:[x]",
        "other: a\nvisibility_labels [x]",
        "other: a\nvisibility_labels = [x]",
    ];
    for yaml in hidden {
        assert!(!is_open(yaml), "{yaml}");
        for document in [
            Document::parse("/s", "a.md", page(yaml).as_bytes()),
            Document::stored("store", &record(&page(yaml))),
        ] {
            let errors = errors(&document);
            assert!(!errors.is_empty(), "{yaml}");
            for error in errors {
                assert!(
                    matches!(error.code, Code::LabelsInvalid | Code::RestrictionInvalid)
                        && error.message.ends_with(CLOSED)
                        && error.hint.is_some(),
                    "{yaml}: {error:?}"
                );
            }
        }
    }
    let open = [
        "visibility_labels: []",
        "visibility_labels: [a, 1, true]",
        "visibility_labels: a b",
        "visibility_labels: [x]\nlabels: [y]",
        "labels: x",
        "exclude_from_prompt_profile_ids: []",
        "exclude_from_prompt_profile_ids: x, y",
        "allowed-tools: []",
        "allowed-tools: Read, Bash(git:*)",
        "allowed-tools: 3",
        "disable-model-invocation: true",
        "user-invocable: 'no'",
        "include_in_prompt: 0",
        "tags: [a]\ntags: [b]",
        "metadata: {labels: [bug], tools: [x], allowed: yes, user_invocable: true}",
        "metadata:\n  label: Text\n  visible: true",
        "title: |\n  visibility-labels: [x] is misspelt\n  visibility_label",
        "title: 'visibility_label: x'",
        "# visibility-labels: [x]",
        "other: a: b\nvisibility_labels: [x]",
        "other: a: b\nmetadata:\n  labels: [x]",
    ];
    for yaml in open {
        assert!(is_open(yaml), "{yaml}");
    }
}

#[test]
fn says_what_is_wrong_where_and_what_to_write() {
    let example = "write for example visibility_labels: [private, family]";
    let none = format!("{example}, or an empty list [] for none");
    let tools = "write for example allowed-tools: Read Bash(git:*)";
    let tools_near = "expected `allowed-tools`, got `allowed_tools`";
    let guest = "write for example exclude_from_prompt_profile_ids: [guest], or an empty list [] \
                 for none";
    let moved = "write it on a line of its own, without indentation: \
                 visibility_labels: [private, family]";
    let rows = [
        (
            "visibility-labels: [x]",
            Code::LabelsInvalid,
            "expected `visibility_labels`, got `visibility-labels`",
            example,
        ),
        (
            "label: x",
            Code::LabelsInvalid,
            "expected `labels`, got `label`",
            "write for example labels: [private, family]",
        ),
        ("allowed_tools: x", Code::RestrictionInvalid, tools_near, tools),
        (
            "visibility_labels:",
            Code::LabelsInvalid,
            "expected a list of texts for `visibility_labels`, got nothing",
            &none,
        ),
        (
            "visibility_labels: [a, [b]]",
            Code::LabelsInvalid,
            "expected a list of texts for `visibility_labels`, got a list with other values",
            &none,
        ),
        (
            "exclude_from_prompt_profile_ids: {a: 1}",
            Code::RestrictionInvalid,
            "expected a list of texts for `exclude_from_prompt_profile_ids`, got a mapping",
            guest,
        ),
        (
            "allowed-tools: {a: 1}",
            Code::RestrictionInvalid,
            "expected tools, as a text or a list for `allowed-tools`, got a mapping",
            "write for example allowed-tools: Read Bash(git:*), or an empty list [] for none",
        ),
        (
            "user-invocable: never",
            Code::RestrictionInvalid,
            "expected true or false for `user-invocable`, got the text \"never\"",
            "write for example user-invocable: false",
        ),
        (
            "labels: [x]\nlabels: [y]",
            Code::LabelsInvalid,
            "expected `labels` once, got it more than once",
            "keep one of them",
        ),
        (
            "metadata:\n  visibility_labels: [x]",
            Code::LabelsInvalid,
            "expected `visibility_labels` at the top of the frontmatter, got it in `metadata`",
            moved,
        ),
    ];
    for (yaml, code, message, hint) in rows {
        let document = Document::parse("/s", "a.md", page(yaml).as_bytes());
        let expected = Diagnostic::new(code, Severity::Error, format!("{message}{CLOSED}"))
            .hint(hint)
            .at(4, 1)
            .in_file("/s/a.md");
        assert_eq!(errors(&document), [expected], "{yaml}");
    }
    let swallowed = page("other: a: b\n  Visibility_Labels: [x]");
    let document = Document::parse("/s", "a.md", swallowed.as_bytes());
    let message =
        format!("expected `visibility_labels` as a field, got it inside of another value{CLOSED}");
    let expected = Diagnostic::new(Code::LabelsInvalid, Severity::Error, message)
        .hint(moved)
        .at(5, 1)
        .in_file("/s/a.md");
    assert_eq!(errors(&document), [expected]);
    let unclosed = "---\nname: a\nvisibility-labels: [x]\nText";
    let document = Document::stored("store", &record(unclosed));
    let message = format!(
        "expected frontmatter that can be read, since a line of it looks like \
         `visibility_labels`{CLOSED}"
    );
    let expected = Diagnostic::new(Code::LabelsInvalid, Severity::Error, message)
        .hint("mend the frontmatter")
        .at(3, 1)
        .in_file("store/a.md");
    assert!(errors(&document).contains(&expected), "{:?}", document.diagnostics);
}

#[test]
fn a_record_whose_frontmatter_cannot_be_read_is_text_unless_it_may_be_restricted() {
    let rows = [
        ("---\nA line, then text", true),
        ("---\nname: [\n---\nText", true),
        ("---\nname: [\nlabels: [x]\n---\nText", false),
        ("---\nname: a\nvisibility_labels: [x]\nText", false),
        ("---\n{name: a, visibility_labels: [x]\n---\n", false),
        ("---\nname: a\nallowed_tools: Read\n", false),
        // After the block it is text.
        ("---\nname: [\n---\nlabels: [x]", true),
    ];
    let everybody = Profile::unrestricted();
    for (content, open) in rows {
        let record = record(content);
        assert_eq!(store(&record, &everybody).count() == 1, open, "{content}");
        assert_eq!(sees(&everybody).unwrap()(&access(&record)), open, "{content}");
    }
}

#[test]
fn labels_of_both_names_add_up() {
    let text = page("visibility_labels: [x]\nlabels: [y]");
    let columns = Record { labels: vec!["z".into()], ..record(&text) };
    for (grants, file, stored) in [
        (&["x", "y", "z"][..], true, true),
        (&["x", "y"], true, false),
        (&["x", "z"], false, false),
        (&["y", "z"], false, false),
    ] {
        let profile = reader("p", grants);
        assert_eq!(folder(&text, &profile).count() == 1, file, "{grants:?}");
        assert_eq!(store(&columns, &profile).count() == 1, stored, "{grants:?}");
        assert_eq!(sees(&profile).unwrap()(&access(&columns)), stored, "{grants:?}");
    }
}

#[test]
fn a_hidden_skill_keeps_its_files_hidden() {
    let files = [
        ("a/SKILL.md", "---\nname: a\ndescription: d\nvisibility-labels: [x]\n---\nText"),
        ("a/references/more.md", "---\nname: more\ndescription: d\n---\nText"),
    ];
    let assembled = source("s", SourceKind::Skills, &[], &files);
    let view = common::all(Catalog::build(1, vec![assembled]));
    assert_eq!(view.count(), 0);
}

#[test]
fn an_older_version_does_not_undo_a_restriction() {
    let good = Document::parse("/s", "a.md", page("tags: [a]").as_bytes());
    for edit in [
        "visibility_labels: [x]",
        "visibility-labels: [x]",
        "labels: [x]",
        "label:",
        "allowed-tools: Read",
        "allowed_tools: Read",
        "exclude_from_prompt_profile_ids: {a: 1}",
        "disable-model-invocation: true",
        "user-invocable: maybe",
    ] {
        // Readable but for the restriction, and broken for another reason too.
        for text in [page(edit), format!("---\nname: a\n{edit}\n"), format!("---\n{edit}\n---\n")] {
            let again = Document::parse("/s", "a.md", text.as_bytes());
            let kept = keep(&good, Ok(&again), text.as_bytes(), true);
            assert!(kept.is_none(), "{text}");
        }
    }
    // An edit that does not touch the restriction leaves the version with it in use.
    let good = Document::parse("/s", "a.md", page("labels: [x]").as_bytes());
    let half = b"---\nname: a\nlabels: [x]\n";
    let again = Document::parse("/s", "a.md", half);
    assert_eq!(keep(&good, Ok(&again), half, true).unwrap().fields().unwrap().labels, ["x"]);
}

/// The fields that a record has like a file: all but those that only columns set.
fn alike(document: &Document) -> Option<impl PartialEq + std::fmt::Debug> {
    let fields = document.fields()?;
    let sorted = |texts: &[String]| {
        let mut texts = texts.to_vec();
        texts.sort();
        texts.dedup();
        texts
    };
    let columns = [
        "name",
        "title",
        "description",
        "version",
        "source",
        "visibility_labels",
        "labels",
        "include_in_prompt",
        "include_in_prompt_default",
        "exclude_from_prompt_profile_ids",
        "handler",
        "schedule",
        "timezone",
        "run_as",
        "tool",
    ];
    let metadata = metadata(&document.data()).cloned();
    let data = match document.data().into_owned() {
        Value::Map(mut pairs) => {
            pairs.retain(|(key, _)| !columns.contains(&key.as_str()));
            pairs
        }
        _ => Vec::new(),
    };
    Some((
        (fields.description.clone(), fields.tags.clone(), sorted(&fields.labels)),
        (fields.aliases.clone(), fields.requires.clone(), fields.effects),
        (fields.timeout, fields.max_running, fields.strict, fields.allowed_tools.clone()),
        (fields.include_in_prompt, fields.proactive_for.clone(), sorted(&fields.excluded_for)),
        (fields.hidden_from_model, fields.user_invocable, fields.triggers.clone()),
        fields.examples.clone(),
        (fields.license.clone(), fields.compatibility.clone(), metadata, data),
    ))
}

fn lines() -> impl Strategy<Value = String> {
    let line = prop::sample::select(vec![
        "visibility_labels: [x]",
        "visibility_labels: [y, x]",
        "visibility_labels: []",
        "visibility_labels:",
        "visibility-labels: [x]",
        "labels: y",
        "labels: {a: b}",
        "exclude_from_prompt_profile_ids: [p]",
        "exclude_from_prompt_profile_ids: {p: 1}",
        "proactive_for_profile_ids: [p, q]",
        "allowed-tools: Read Bash(git:*)",
        "allowed-tools: []",
        "allowed_tools: Read",
        "requires: [b]",
        "trigger_keywords: [one, two]",
        "examples: [one two, {not: three}]",
        "examples: [one: two, {not: [three, four]}]",
        "disable-model-invocation: true",
        "disable-model-invocation: 'no'",
        "user-invocable: false",
        "include_in_prompt: false",
        "include_in_prompt_default: false",
        "tags: [a, b]",
        "tags: a b",
        "aliases: [other]",
        "effects: write",
        "timeout: 5m",
        "max_running: 2",
        "strict: true",
        "license: 1.0",
        "compatibility: x",
        "metadata: {a: {b: [1.10, 0x1F]}, c: d}",
        "metadata:\n  visibility_labels: [x]",
        "version: 1.10",
        "other: {a: 1.50}",
        "broken: a: b",
    ]);
    proptest::collection::vec(line, 0..6).prop_map(|lines| lines.join("\n"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// A document in a folder and the same document in the store have the same fields, tools and
    /// readers.
    #[test]
    fn a_record_is_like_a_file(
        yaml in lines(),
        id in prop::sample::select(vec!["p", "q"]),
        grants in proptest::sample::subsequence(vec!["x", "y"], 0..=2),
        tools in prop::sample::select(vec![None, Some(["Bash".to_owned(), "Write".to_owned()])]),
    ) {
        let text = page(&yaml);
        let record = record(&text);
        let profile = reader(id, &grants);
        let file = Document::parse("/s", "a/SKILL.md", text.as_bytes());
        let stored = Document::stored("store", &record);
        prop_assert_eq!(alike(&file), alike(&stored));
        let (one, other) = (folder(&text, &profile), store(&record, &profile));
        prop_assert_eq!(one.count(), other.count());
        prop_assert_eq!(sees(&profile).unwrap()(&access(&record)), one.count() == 1);
        let tools = tools.as_ref().map(|tools| &tools[..]);
        let may = |view: &View| view.find("a").map(|id| view.tools(id, tools));
        prop_assert_eq!(may(&one), may(&other));
        let prompt = |view: &View| ["Text", "**a**"].map(|text| view.prompt().contains(text));
        prop_assert_eq!(prompt(&one), prompt(&other));
    }
}

#[test]
fn a_view_of_labels_is_closed_without_grants() {
    let catalog = common::cached(Catalog::build(
        1,
        vec![source("s", SourceKind::Skills, &[], &[("a/SKILL.md", &page("labels: [x]"))])],
    ));
    assert_eq!(view(&catalog, "p", &[], None).count(), 0);
    assert_eq!(view(&catalog, "p", &["x"], None).count(), 1);
}
