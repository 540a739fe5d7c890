//! The entries and indexes that files become, by name, frontmatter and the files around them.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{all, skills, source, source_of};
use proptest::prelude::*;
use skillbook_core::catalog::assemble::{assemble, assemble_again, Assembled};
use skillbook_core::catalog::Catalog;
use skillbook_core::glob::Globs;
use skillbook_core::page::diagnostic::{Code, Severity};
use skillbook_core::page::document::{CodeLines, Document};
use skillbook_core::source::{Kind, Source, SourceKind, Trust};

/// A skill's frontmatter: `name`, `description` and `domain`, each left out if empty.
fn matter(name: &str, description: &str, domain: &str) -> String {
    let line = |key: &str, value: &str| match value {
        "" => String::new(),
        value => format!("{key}: {value}\n"),
    };
    format!(
        "---\n{}{}{}---\nBody\n",
        line("name", name),
        line("description", description),
        line("domain", domain)
    )
}

/// `kind name`, then `index domain`, then `code path` for each finding.
fn outline(catalog: Catalog) -> Vec<String> {
    let view = all(catalog);
    let entries =
        view.entries().map(|(_, entry)| format!("{} {}", entry.kind.as_str(), entry.name));
    let indexed = view.domains().filter(|domain| domain.index().is_some());
    let indexes = indexed.map(|domain| format!("index {}", domain.name()));
    let findings = view.diagnostics().map(|found| {
        let path = found.path.as_deref().unwrap_or("-");
        format!("{} {}", found.code.as_str(), path.trim_start_matches("/s/"))
    });
    entries.chain(indexes).chain(findings).collect()
}

/// The files of a source, and its outline.
type Row<'a> = (&'a [(&'a str, String)], &'a [&'a str]);

fn check(kind: SourceKind, files: &[(&str, String)], expected: &[&str]) {
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let catalog = Catalog::build(1, vec![source("s", kind, &[], &files)]);
    assert_eq!(outline(catalog), expected, "{files:?}");
}

#[test]
fn skill_files() {
    let skill = |name| matter(name, "d", "");
    let rows: &[Row] = &[
        // A name makes a skill.
        (&[("pdf/SKILL.md", skill("pdf"))], &["skill pdf"]),
        (
            &[("pdf/SKILL.md", skill("PDF"))],
            &["skill PDF", "name_differs pdf/SKILL.md", "name_characters pdf/SKILL.md"],
        ),
        (&[("SKILL.md", skill("s"))], &["skill s"]),
        (
            &[("pdf/SKILL.md", skill("node.js"))],
            &["skill node.js", "name_differs pdf/SKILL.md", "name_characters pdf/SKILL.md"],
        ),
        (&[("a-b-1/SKILL.md", skill("a-b-1"))], &["skill a-b-1"]),
        (&[("-pdf/SKILL.md", skill("-pdf"))], &["skill -pdf", "name_characters -pdf/SKILL.md"]),
        (&[("pdf-/SKILL.md", skill("pdf-"))], &["skill pdf-", "name_characters pdf-/SKILL.md"]),
        (&[("p--df/SKILL.md", skill("p--df"))], &["skill p--df", "name_characters p--df/SKILL.md"]),
        // Its other files are resources, with any content.
        (
            &[
                ("pdf/SKILL.md", skill("pdf")),
                ("pdf/a/b.md", skill("b")),
                ("pdf/c.md", skill("x.y")),
            ],
            &["skill pdf"],
        ),
        // A skill further below is one of its own.
        (
            &[("pdf/SKILL.md", skill("pdf")), ("pdf/forms/SKILL.md", skill("forms"))],
            &["skill forms", "skill pdf"],
        ),
        // Neither name nor domain: a skill named after the folder, or the index of the commands
        // beside it.
        (&[("pdf/SKILL.md", matter("", "d", ""))], &["skill pdf", "name_missing pdf/SKILL.md"]),
        (
            &[("email/SKILL.md", matter("", "d", "")), ("email/send.md", skill("email.send"))],
            &["command email.send", "index email"],
        ),
        // A domain makes an index, and both make both.
        (
            &[("email/SKILL.md", matter("", "d", "email")), ("email/send.md", skill("email.send"))],
            &["command email.send", "index email"],
        ),
        (
            &[
                ("email/SKILL.md", matter("email", "d", "email")),
                ("email/send.md", skill("email.send")),
                ("email/guide.md", skill("guide")),
            ],
            &["skill email", "command email.send", "index email"],
        ),
        (
            &[("email/SKILL.md", matter("", "d", "email"))],
            &["domain_without_commands email/SKILL.md"],
        ),
        // Without a description a skill is not used; an index is.
        (&[("pdf/SKILL.md", matter("pdf", "", ""))], &["description_missing pdf/SKILL.md"]),
        (&[("pdf/SKILL.md", "Just text".into())], &["description_missing pdf/SKILL.md"]),
        (
            &[("email/SKILL.md", matter("", "", "email")), ("email/send.md", skill("email.send"))],
            &["command email.send", "index email", "description_missing email/SKILL.md"],
        ),
        // The exact name counts.
        (&[("pdf/skill.md", skill("pdf"))], &["skill pdf", "name_differs pdf/skill.md"]),
    ];
    for (files, expected) in rows {
        check(SourceKind::Skills, files, expected);
    }
}

#[test]
fn single_files() {
    let skill = |name| matter(name, "d", "");
    let index = || ("mail/SKILL.md", matter("", "d", "email"));
    let rows: &[Row] = &[
        (&[("haiku.md", skill("haiku"))], &["skill haiku"]),
        (&[("a/b/haiku.MD", skill("haiku"))], &["skill haiku"]),
        (&[("haiku.md", skill("poem"))], &["skill poem", "name_differs haiku.md"]),
        (&[("haiku.md", matter("", "d", ""))], &["skill haiku", "name_missing haiku.md"]),
        (&[("email/send.md", skill("email.send"))], &["command email.send"]),
        (&[("email/sub/send.md", skill("email.send"))], &["command email.send"]),
        (&[("send.md", skill("email.send"))], &["command email.send"]),
        (&[("email.send.md", skill("email.send"))], &["command email.send"]),
        (&[("post.md", skill("email.send"))], &["command email.send", "name_differs post.md"]),
        // A name that disagrees with its path wins.
        (
            &[("mail/send.md", skill("email.send"))],
            &["command email.send", "name_differs mail/send.md"],
        ),
        (&[("my/email/send.md", skill("email.send"))], &["command email.send"]),
        (
            &[("my/email/post.md", skill("email.send"))],
            &["command email.send", "name_differs my/email/post.md"],
        ),
        (
            &[("email/post.md", skill("email.send"))],
            &["command email.send", "name_differs email/post.md"],
        ),
        // The domain that the folder's index declares is the path's.
        (&[index(), ("mail/send.md", skill("email.send"))], &["command email.send", "index email"]),
        (
            &[index(), ("mail/send.md", matter("", "d", ""))],
            &["command email.send", "index email", "name_missing mail/send.md"],
        ),
        (&[("email/all.md", skill("email.all"))], &["name_reserved email/all.md"]),
        (&[("email/help.md", skill("email.help"))], &["name_reserved email/help.md"]),
        (&[("email/helper.md", skill("email.helper"))], &["command email.helper"]),
        (&[("all.md", skill("all"))], &["skill all"]),
        (&[("email/x.md", matter("email.x", "", ""))], &["description_missing email/x.md"]),
        (&[("README.md", skill("readme"))], &["not_a_skill README.md"]),
        (&[("a/readme.md", "# Hello".into())], &["not_a_skill a/readme.md"]),
        (&[("plain.md", "# Hello".into())], &["not_a_skill plain.md"]),
        (&[("plain.md", "---\ntitle: Hello\n---\n".into())], &["not_a_skill plain.md"]),
        (
            &[("email/Send.md", skill("email.Send"))],
            &["command email.Send", "name_characters email/Send.md"],
        ),
        (
            &[("email/re-send.md", skill("email.re-send"))],
            &["command email.re-send", "name_characters email/re-send.md"],
        ),
        (&[("email/re_send.md", skill("email.re_send"))], &["command email.re_send"]),
        (
            &[("email/-send.md", skill("email.-send"))],
            &["command email.-send", "name_characters email/-send.md"],
        ),
        (&[("a_b.md", skill("a_b"))], &["skill a_b", "name_characters a_b.md"]),
    ];
    for (files, expected) in rows {
        check(SourceKind::Skills, files, expected);
    }
    let (longest, longer) = ("a".repeat(64), "a".repeat(65));
    check(
        SourceKind::Skills,
        &[(&format!("{longest}.md"), skill(&longest))],
        &[&format!("skill {longest}")],
    );
    let found = [format!("skill {longer}"), format!("name_too_long {longer}.md")];
    check(
        SourceKind::Skills,
        &[(&format!("{longer}.md"), skill(&longer))],
        &found.each_ref().map(String::as_str),
    );
}

#[test]
fn notes() {
    let rows: &[Row] = &[
        (&[("shopping.md", "- Bread".into())], &["note shopping"]),
        (
            &[("day/one.md", "x".into()), ("week/one.md", "y".into())],
            &["note day/one", "note week/one"],
        ),
        (&[("a.md", matter("b", "", ""))], &["note b"]),
        (&[("a.md", matter("", "d", ""))], &["note a"]),
        (&[("a.md", matter("a", "d", ""))], &["skill a"]),
        (&[("README.md", "x".into())], &["note README"]),
        (&[("a/SKILL.md", "x".into())], &["note a/SKILL"]),
        (&[("email/send.md", matter("email.send", "d", ""))], &["command email.send"]),
    ];
    for (files, expected) in rows {
        check(SourceKind::Notes, files, expected);
    }
    let titles = [("---\ntitle: T\n---\n# H", "T"), ("## Two\n# One", "One"), ("text", "a")];
    for (text, title) in titles {
        let catalog =
            Catalog::build(1, vec![source("s", SourceKind::Notes, &[], &[("a.md", text)])]);
        assert_eq!(catalog.entries()[0].title.as_deref(), Some(title), "{text}");
    }
}

#[test]
fn a_broken_skill_file_leaves_the_files_beside_it() {
    let broken = "---\nvisibility_labels: {a: b}\n---\n";
    let catalog =
        skills(&[("email/SKILL.md", broken), ("email/send.md", &matter("email.send", "d", ""))]);
    assert_eq!(outline(catalog), ["command email.send", "labels_invalid email/SKILL.md"]);
}

#[test]
fn a_skill_has_the_files_of_its_folder() {
    let pdf = matter("pdf", "d", "");
    let catalog = skills(&[
        ("pdf/SKILL.md", &pdf),
        ("pdf/scripts/fill.py", ""),
        ("pdf/references/forms.md", "x"),
        ("pdf/forms/SKILL.md", &matter("forms", "d", "")),
        ("pdf/forms/form.txt", ""),
        ("pdf-tools/tool.py", ""),
        ("pdfs.txt", ""),
    ]);
    let files = |name| catalog.entry(catalog.named(name).next().unwrap()).files.clone();
    assert_eq!(files("pdf"), ["references/forms.md", "scripts/fill.py"]);
    assert_eq!(files("forms"), ["form.txt"]);
    let root = skills(&[("SKILL.md", &pdf), ("a.txt", ""), ("b/c.txt", "")]);
    assert_eq!(root.entries()[0].files, ["a.txt", "b/c.txt"]);
}

#[test]
fn labels_are_the_documents_and_the_sources() {
    let labelled = "---\nname: a\ndescription: d\nvisibility_labels: [b, a]\n---\n";
    let source = source("s", SourceKind::Skills, &["c", "a"], &[("a.md", labelled)]);
    assert_eq!(source.entries[0].labels, ["a", "b", "c"]);
}

#[test]
fn merges_sources() {
    let a = matter("a", "one", "");
    let b = matter("a", "two", "");
    let files =
        [("1/SKILL.md", a.as_str()), ("2/SKILL.md", a.as_str()), ("3/SKILL.md", b.as_str())];
    let first = source("s", SourceKind::Skills, &[], &files);
    let later =
        source("t", SourceKind::Skills, &[], &[("a.md", &b), ("c.md", &matter("c", "d", ""))]);
    let catalog = Catalog::build(3, vec![first, later]);
    assert_eq!(catalog.generation(), 3);
    // All stay in the catalog, because some readers may not see the others.
    assert_eq!((catalog.named("a").count(), catalog.entries().len(), catalog.count()), (4, 5, 2));
    let view = all(catalog);
    assert_eq!(view.entry(view.find("a").unwrap()).unwrap().document.path, "/t/a.md");
    let code = |code: &str| -> Vec<&str> {
        view.diagnostics()
            .filter(|found| found.code.as_str() == code)
            .map(|found| found.message.as_str())
            .collect()
    };
    assert_eq!(
        code("duplicate_name"),
        [
            "`a`: this is the same document as /s/1/SKILL.md, which is used",
            "`a`: the name is already taken by /s/1/SKILL.md, which is used"
        ]
    );
    assert_eq!(code("shadowed"), ["`a` is replaced by /t/a.md from the source `t`"]);
}

#[test]
fn merges_indexes() {
    let send = matter("email.send", "d", "");
    let index = |text: &str| matter("", text, "email");
    let (one, two, three) = (index("one"), index("two"), index("three"));
    let first = [
        ("email/SKILL.md", one.as_str()),
        ("post/SKILL.md", two.as_str()),
        ("email/send.md", send.as_str()),
    ];
    let later = [("email/SKILL.md", three.as_str())];
    let description = |sources| {
        let view = all(Catalog::build(1, sources));
        view.domain("email").unwrap().description()
    };
    assert_eq!(description(vec![source("s", SourceKind::Skills, &[], &first)]), "one");
    let both = vec![
        source("s", SourceKind::Skills, &[], &first),
        source("t", SourceKind::Skills, &[], &later),
    ];
    assert_eq!(description(both), "three");
}

#[test]
fn the_order_of_the_documents_does_not_matter() {
    let texts = ["a", "b", "c"].map(|name| matter(name, "d", ""));
    let files: Vec<_> =
        ["x.md", "y.md", "z.md"].into_iter().zip(texts.iter().map(String::as_str)).collect();
    let backwards: Vec<_> = files.iter().rev().copied().collect();
    assert_eq!(outline(skills(&files)), outline(skills(&backwards)));
}

/// The findings about the name of the only file: line and hint.
#[test]
fn hints_suggest_a_name() {
    let rows: &[(&str, &str, &[&str])] = &[
        (
            "pdf/SKILL.md",
            "forms",
            &["name_differs 2 write name: pdf, or rename the folder to `forms`"],
        ),
        // Only lint says something about blanks.
        ("pdf/SKILL.md", "My Forms", &["name_differs 2 write name: pdf"]),
        ("my-forms/SKILL.md", "My Forms", &[]),
        ("My_Forms/SKILL.md", "my forms", &[]),
        ("My Forms/SKILL.md", "My Forms", &[]),
        ("my_forms.md", "My Forms", &[]),
        ("My Forms/SKILL.md", "forms", &["name_differs 2 rename the folder to `forms`"]),
        (
            "my-forms/SKILL.md",
            "My-Forms",
            &["name_differs 2 write name: my-forms", "name_characters 2 -"],
        ),
        ("My_Forms/SKILL.md", "My_Forms", &["name_characters 2 call it my-forms"]),
        ("Größe/SKILL.md", "Größe", &["name_characters 2 -"]),
        ("a--b/SKILL.md", "a--b", &["name_characters 2 call it a-b"]),
        (
            "post.md",
            "haiku",
            &["name_differs 2 write name: post, or rename the file to `haiku.md`"],
        ),
        (
            "post.md",
            "email.send",
            &["name_differs 2 write name: email.post, or move the file to `email/send.md`"],
        ),
        (
            "mail/send.md",
            "email.send",
            &["name_differs 2 write name: mail.send, or move the file to `email/send.md`"],
        ),
        ("mail/Send.md", "mail.Send", &["name_characters 2 call it mail.send"]),
        ("Mail/Send.md", "Mail.Send", &["name_characters 2 call it mail.send"]),
        ("mail/bad-name.md", "mail.bad-name", &["name_characters 2 call it mail.bad_name"]),
        ("mail/-x--y.md", "mail.-x--y", &["name_characters 2 call it mail.x_y"]),
    ];
    for (path, name, expected) in rows {
        let text = matter(name, "d", "");
        let catalog = skills(&[(path, &text)]);
        let findings = catalog.findings().iter().map(|finding| &finding.diagnostic);
        let told = findings.map(|found| {
            format!(
                "{} {} {}",
                found.code.as_str(),
                found.line.unwrap_or(0),
                found.hint.as_deref().unwrap_or("-")
            )
        });
        assert_eq!(told.collect::<Vec<_>>(), *expected, "{path} {name}");
    }
}

/// A file of a source: its path and its content.
fn file() -> impl Strategy<Value = (String, String)> {
    let path = proptest::sample::select(vec![
        "SKILL.md",
        "a/SKILL.md",
        "a/b/SKILL.md",
        "a/one.md",
        "a/b/two.md",
        "b/one.md",
        "one.md",
        "README.md",
        "a/x.txt",
        "a/b/y.txt",
    ]);
    let text = proptest::sample::select(vec![
        "---\nname: s\ndescription: d\n---\n",
        "---\nname: a.one\ndescription: d\nhandler: H\n---\n",
        "---\nname: A one\ndescription: d\n---\n",
        "---\ndomain: d\ndescription: d\n---\n",
        "---\nname: s\ndomain: d\ndescription: d\n---\n",
        "---\ndescription: d\nvisibility_labels: [l]\n---\n",
        "---\nname: s\n---\n",
        "---\nname: [\n---\n",
        "Text\n",
    ]);
    (path.prop_map(String::from), text.prop_map(String::from))
}

proptest! {
    #[test]
    fn assembling_again_equals_assembling_anew(
        edits in proptest::collection::vec((file(), any::<bool>()), 1..30),
        kind in proptest::sample::select(vec![SourceKind::Skills, SourceKind::Notes]),
        trust in proptest::sample::select(vec![Trust::Low, Trust::Medium]),
        globs in any::<bool>(),
    ) {
        let globs = globs.then(|| Globs::new(&["a*".to_owned(), "s".to_owned()]).unwrap());
        let source = Arc::new(Source {
            root: "/s".into(),
            kind,
            trust,
            available: globs,
            ..Source::default()
        });
        let mut files: BTreeMap<String, Arc<Document>> = BTreeMap::new();
        let mut earlier = Assembled::default();
        for ((path, text), there) in edits {
            match there {
                true => files
                    .insert(path.clone(), Arc::new(Document::parse("/s", &path, text.as_bytes()))),
                false => files.remove(&path),
            };
            let documents: Vec<_> =
                files.values().filter(|document| document.path.ends_with(".md")).cloned().collect();
            let paths: Vec<String> = files.keys().cloned().collect();
            let again = assemble_again(&source, documents.clone(), paths.clone(), &earlier);
            let anew = assemble(&source, documents.clone(), paths.clone());
            prop_assert_eq!(format!("{again:?}"), format!("{anew:?}"));
            let unchanged = assemble_again(&source, documents, paths, &again);
            let mut pairs = again.entries.iter().zip(&unchanged.entries);
            prop_assert!(pairs.all(|(entry, same)| Arc::ptr_eq(entry, same)));
            earlier = again;
        }
    }
}

/// A page without a text is an error, unless something else in it is of use.
#[test]
fn pages_need_a_text() {
    const HANDLER: &str = "name: a.b\nhandler: A\n";
    let flags = format!("{HANDLER}flags: {{to: {{type: string}}}}\n");
    // The path, fields besides the description, the text, the trust, and the severity.
    type Row<'a> = (&'a str, &'a str, &'a str, Trust, Option<Severity>);
    let (error, warning) = (Some(Severity::Error), Some(Severity::Warning));
    let rows: &[Row] = &[
        ("a.md", "name: a\n", "Text", Trust::Medium, None),
        ("a.md", "name: a\n", "", Trust::Medium, error),
        ("a.md", "name: a\n", " \n\t\n", Trust::Medium, error),
        ("a.md", "name: a\nrequires: [b]\n", "", Trust::Medium, warning),
        ("s/SKILL.md", "name: s\n", "", Trust::Medium, error),
        ("files/SKILL.md", "name: files\n", "", Trust::Medium, warning),
        ("a/b.md", "name: a.b\n", "", Trust::Medium, error),
        ("a/b.md", "name: a.b\nflags: {to: {type: string}}\n", "", Trust::Medium, error),
        ("a/b.md", HANDLER, "", Trust::Medium, warning),
        ("a/b.md", &flags, "", Trust::Medium, None),
        // A handler does not run at low trust.
        ("a/b.md", &flags, "", Trust::Low, error),
        // An index needs no text.
        ("a/SKILL.md", "domain: a\n", "", Trust::Medium, None),
    ];
    for (path, fields, text, trust, expected) in rows {
        let page = format!("---\n{fields}description: d\n---\n{text}");
        let source = Source { name: "s".into(), trust: *trust, ..Source::default() };
        let files = [(*path, page.as_str()), ("files/a.txt", "")];
        let made = source_of(source, &files);
        let found: Vec<_> = made.findings.iter().map(|finding| &finding.diagnostic).collect();
        let found = found.iter().find(|found| found.code == Code::BodyMissing);
        assert_eq!(found.map(|found| found.severity), *expected, "{path} {page} {trust:?}");
        assert_eq!(made.entries.len(), usize::from(!fields.starts_with("domain")), "{page}");
    }
    let note = source("s", SourceKind::Notes, &[], &[("a.md", "---\ntitle: A\n---\n")]);
    assert_eq!(note.findings.len(), 0);
}

/// The page, its body's line in the code; the outline of its source, and the lines of its findings.
type CodeRow<'a> = (&'a str, Option<u32>, &'a [&'a str], &'a [Option<u32>]);

#[test]
fn a_page_can_only_lower_its_trust() {
    let rows: &[(Trust, &str, Trust, Option<&str>)] = &[
        (Trust::Medium, "low", Trust::Low, None),
        (Trust::High, "low", Trust::Low, None),
        (Trust::Low, "low", Trust::Low, None),
        (Trust::Medium, "", Trust::Medium, None),
        (Trust::Low, "high", Trust::Low, Some("the text \"high\"")),
        (Trust::High, "medium", Trust::Low, Some("the text \"medium\"")),
        (Trust::High, "[high]", Trust::Low, Some("a list")),
    ];
    for (of_source, written, expected, got) in rows {
        let source = Arc::new(Source { root: "/s".into(), trust: *of_source, ..Source::default() });
        let page = |name: &str, field: &str| {
            let text = format!(
                "---\nname: {name}\n{field}description: d\ntrust: {written}\n---\nDo it.\n"
            );
            Arc::new(Document::parse("/s", "a/SKILL.md", text.as_bytes()))
        };
        let made = assemble(&source, vec![page("a", "")], vec![]);
        assert_eq!(made.entries[0].trust, *expected, "{written}");
        let told: Vec<_> = made.findings.iter().map(|one| one.diagnostic.message.clone()).collect();
        let message =
            got.map(|got| format!("expected `low` for `trust`, got {got}; read as `low`"));
        assert_eq!(told, Vec::from_iter(message), "{written}");
        let index = assemble(&source, vec![page("a", "domain: a\n")], vec![]);
        assert_eq!(index.indexes[0].trust(), *expected, "{written}");
        let handler = assemble(&source, vec![page("a", "handler: H\n")], vec![]);
        assert_eq!(handler.entries[0].handler().is_some(), *expected > Trust::Low, "{written}");
    }
}

#[test]
fn pages_of_a_server_keep_their_handler_at_low_trust() {
    let page = "---\nname: docs/Odd\ndescription: Odd\n---\nText\n";
    let tool = "---\nname: docs.getTea\ndescription: Tea\nhandler: mcp docs\n\
                schedule: 0 8 * * *\n---\nText\n";
    // The kind of source, its trust, the handler of the tool, and the codes of the findings.
    type Row<'a> = (SourceKind, Trust, Option<&'a str>, &'a [&'a str]);
    let rows: &[Row] = &[
        (SourceKind::Remote, Trust::Low, Some("mcp docs"), &["untrusted_field"]),
        (
            SourceKind::Code,
            Trust::Low,
            None,
            &["name_characters", "name_characters", "untrusted_field", "untrusted_field"],
        ),
        (SourceKind::Code, Trust::High, Some("mcp docs"), &["name_characters", "name_characters"]),
    ];
    for (kind, trust, handler, codes) in rows {
        let source = Arc::new(Source {
            name: "docs".into(),
            kind: *kind,
            trust: *trust,
            ..Source::default()
        });
        let documents = [("mcp:docs/a", page), ("mcp:docs/b", tool)]
            .map(|(path, text)| Arc::new(Document::of_code(path, text, None)));
        let made = assemble(&source, documents.to_vec(), Vec::new());
        let find = |name: &str| made.entries.iter().find(|entry| &*entry.name == name).unwrap();
        assert_eq!(find("docs/Odd").kind, Kind::Skill, "{kind:?}");
        assert_eq!(find("docs.getTea").kind, Kind::Command, "{kind:?}");
        assert_eq!(find("docs.getTea").handler(), *handler, "{kind:?} {trust:?}");
        let mut found: Vec<_> =
            made.findings.iter().map(|finding| finding.diagnostic.code.as_str()).collect();
        found.sort();
        assert_eq!(found, *codes, "{kind:?} {trust:?}");
    }
}

#[test]
fn pages_of_code_need_a_name_and_have_the_lines_of_the_code() {
    let source = Arc::new(Source {
        name: "app".into(),
        kind: SourceKind::Code,
        labels: vec!["staff".into()],
        ..Source::default()
    });
    // The frontmatter comes from line 20.
    let rows: &[CodeRow] = &[
        (
            "---\nname: tea.make\ndescription: Makes tea\n---\nBoil.\n",
            Some(4),
            &["command tea.make"],
            &[],
        ),
        (
            "---\nname: tea\ndescription: About tea\n---\n",
            None,
            &["skill tea", "body_missing lib/tea.ex (Tea)"],
            &[None],
        ),
        // Paths of code have no domain, and a file's rules for names do not apply.
        ("---\ndescription: Makes tea\n---\n", None, &["name_missing lib/tea.ex (Tea)"], &[None]),
        ("---\nname: tea.make\n---\n", None, &["description_missing lib/tea.ex (Tea)"], &[None]),
        (
            "---\nname: tea.make\ndescription: Makes tea\ntimeout: soon\n---\nBoil.\n",
            Some(4),
            &["command tea.make", "field_ignored lib/tea.ex (Tea)"],
            &[Some(20)],
        ),
        (
            "---\nname: tea.make\n x: y\n---\n",
            Some(4),
            &["frontmatter_invalid lib/tea.ex (Tea)"],
            &[Some(20)],
        ),
    ];
    for (page, body, expected, lines) in rows {
        let lines_of_code = CodeLines { head: 20, body: *body };
        let document = Document::of_code("lib/tea.ex (Tea)", page, Some(lines_of_code));
        let assembled = assemble(&source, vec![Arc::new(document)], Vec::new());
        for entry in &assembled.entries {
            assert_eq!(
                (&entry.labels[..], entry.trust),
                (&["staff".to_owned()][..], Trust::Medium)
            );
        }
        let view = all(Catalog::build(1, vec![assembled.clone()]));
        let found: Vec<_> = view.diagnostics().map(|found| (found.line, found.column)).collect();
        let lines: Vec<_> = lines.iter().map(|line| (*line, None)).collect();
        assert_eq!(found, lines, "{page}");
        assert_eq!(outline(Catalog::build(1, vec![assembled])), *expected, "{page}");
    }
}
