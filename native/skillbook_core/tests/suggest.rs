//! The names that are suggested for one that does not exist.

mod common;

use common::{all, doc, records, skills, source, view};
use skillbook_core::catalog::Catalog;
use skillbook_core::source::{Source, SourceKind, Trust};

const NAMES: [&str; 9] = [
    "email.draft",
    "email.read",
    "email.send",
    "calendar.list",
    "tasks.create",
    "tasks.list",
    "pdf",
    "daily-news-report",
    "CodeReview",
];

fn catalog() -> skillbook_core::catalog::Catalog {
    let files = NAMES.map(|name| (format!("{name}.md"), doc(name, "", "")));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    skills(&files)
}

#[test]
fn offers_close_names() {
    let view = all(catalog());
    let rows: &[(&str, &[&str])] = &[
        ("emial.send", &["email.send", "email.read"]),
        ("email.sned", &["email.send", "email.read", "email.draft"]),
        ("email.delete", &["email.draft", "email.read", "email.send"]),
        ("EMAIL.SEND", &["email.send", "email.read", "email.draft"]),
        ("task.create", &["tasks.create"]),
        ("list", &["calendar.list", "tasks.list"]),
        ("pfd", &["pdf"]),
        ("code_review", &["CodeReview"]),
        ("news", &["daily-news-report"]),
        ("emails", &[]),
        ("email", &["email.draft", "email.read", "email.send"]),
        ("zzz", &[]),
        ("x", &[]),
        ("", &[]),
    ];
    for (name, expected) in rows {
        assert_eq!(view.suggest(name), *expected, "{name}");
    }
}

#[test]
fn offers_entries_of_the_store_alone() {
    let store = Source { name: "store".into(), kind: SourceKind::Stored, ..Source::default() };
    let record = |name: &str| (Trust::Medium, format!("{name}.md"), doc(name, "", ""));
    let stored = records(&store, ["milk", "milks"].map(record).into_iter());
    let files = source("s", SourceKind::Skills, &[], &[("milky.md", &doc("milky", "", ""))]);
    let view = all(Catalog::build(1, vec![files, stored]));
    assert_eq!(view.suggest("milkx"), ["milk", "milks", "milky"]);
    assert_eq!(view.suggest_stored("milkx"), ["milk", "milks"]);
    assert_eq!(view.suggest_stored("zzz"), [""; 0]);
}

#[test]
fn offers_domains_where_they_may_be_meant() {
    let view = all(catalog());
    let rows: &[(&str, &[&str])] = &[
        ("email.sned", &["email.send", "email.read", "email"]),
        ("email.delete", &["email.draft", "email", "email.read"]),
        ("emails", &["email"]),
        ("pfd", &["pdf"]),
        ("zzz", &[]),
    ];
    for (name, expected) in rows {
        assert_eq!(view.suggest_path(name), *expected, "{name}");
    }
}

#[test]
fn suggests_nothing_for_impossible_names() {
    let view = all(catalog());
    assert!(!view.suggest(&format!("email.send{}", ".x".repeat(123))).is_empty());
    assert!(view.suggest(&format!("email.send{}", ".x".repeat(124))).is_empty());
}

#[test]
fn suggests_only_shown_names() {
    let catalog = common::cached(catalog());
    let limited = view(&catalog, "p", &[], Some(&["email.read", "tasks.*"]));
    assert_eq!(limited.suggest("email.sned"), ["email.read"]);
    assert_eq!(limited.suggest_path("email.sned"), ["email.read", "email"]);
    assert_eq!(limited.suggest_path("calendar"), Vec::<&str>::new());
}

#[test]
fn other_spellings_of_a_name_a_title_or_an_alias() {
    let titled = |name: &str, title: &str| doc(name, &format!("title: {title}\n"), "");
    let files = [
        ("a.md", titled("weekly-report", "The Week")),
        ("b.md", titled("left_twin", "One")),
        ("c.md", titled("left-twin", "Two")),
        ("d.md", doc("Skilled One", "aliases: [master.piece]\n", "")),
        ("e.md", titled("the.week", "Other")),
        ("f.md", doc("secret twin", "visibility_labels: [secret]\ntitle: Left Twin\n", "")),
        ("g.md", doc("unlisted", "disable-model-invocation: true\n", "")),
        ("mail/send.md", doc("mail.send", "", "")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    let catalog = common::cached(skills(&files));
    let rows: [(&str, &[&str]); 15] = [
        ("Weekly Report", &["weekly-report"]),
        ("WEEKLY_REPORT", &["weekly-report"]),
        (" weekly report ", &["weekly-report"]),
        // The exact title wins over another spelling of a name.
        ("The Week", &["weekly-report"]),
        ("the week", &["the.week", "weekly-report"]),
        ("Left Twin", &["left-twin", "left_twin"]),
        ("skilled-one", &["Skilled One"]),
        ("Master Piece", &["Skilled One"]),
        ("MAIL", &["mail"]),
        ("mail send", &["mail.send"]),
        ("Unlisted", &[]),
        ("weeklyreport", &[]),
        ("", &[]),
        ("--", &[]),
        (&"x ".repeat(200), &[]),
    ];
    let guest = view(&catalog, "p", &[], None);
    for (text, expected) in rows {
        assert_eq!(guest.spelled(text), expected, "{text}");
    }
    let all = view(&catalog, "p", &["secret"], None);
    assert_eq!(all.spelled("Left Twin"), ["secret twin"]);
    assert_eq!(all.spelled("left twin"), ["left-twin", "left_twin", "secret twin"]);
}
