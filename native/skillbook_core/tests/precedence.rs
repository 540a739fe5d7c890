//! Conflicts between entries, as views resolve them. Hidden entries take no part.

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use common::{doc, narrowed, records, source_of, view};
use proptest::prelude::*;
use skillbook_core::catalog::assemble::Assembled;
use skillbook_core::catalog::entry::Entry;
use skillbook_core::catalog::Catalog;
use skillbook_core::glob::Globs;
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::{CachedCatalog, View};

/// `/SOURCE/FILE`, a name, and more lines of frontmatter.
type File<'a> = (&'a str, &'a str, &'a str);

const RED: &str = "visibility_labels: [red]\n";

/// The catalog of some files, with the sources in the order of their first mention. `store` and
/// `import` are records of one source, of medium and low trust; `low` has low trust, `notes` holds
/// notes, and `b-only` selects `b`.
fn catalog(files: &[File]) -> Arc<CachedCatalog> {
    let parts = |path: &'_ str| -> (String, String) {
        let (source, file) = path[1..].split_once('/').unwrap();
        (source.to_owned(), file.to_owned())
    };
    let group = |path: &str| match &*parts(path).0 {
        "import" => "store".to_owned(),
        other => other.to_owned(),
    };
    let mut sources: Vec<String> = Vec::new();
    for (path, ..) in files {
        if !sources.contains(&group(path)) {
            sources.push(group(path));
        }
    }
    let assembled = sources.iter().map(|name| {
        let own = files.iter().filter(|(path, ..)| group(path) == *name);
        let texts: Vec<_> = own.map(|(path, name, more)| (parts(path), text(name, more))).collect();
        let source = Source {
            name: name.clone(),
            kind: match &**name {
                "store" => SourceKind::Stored,
                "notes" => SourceKind::Notes,
                _ => SourceKind::Skills,
            },
            trust: if name == "low" { Trust::Low } else { Trust::Medium },
            available: (name == "b-only").then(|| Globs::new(&["b".to_owned()]).unwrap()),
            ..Source::default()
        };
        if source.kind == SourceKind::Stored {
            let trust = |kind: &str| if kind == "import" { Trust::Low } else { Trust::Medium };
            return records(
                &source,
                texts.iter().map(|((kind, file), text)| (trust(kind), file.clone(), text.clone())),
            );
        }
        let files: Vec<_> =
            texts.iter().map(|((_, file), text)| (file.as_str(), text.as_str())).collect();
        source_of(source, &files)
    });
    common::cached(Catalog::build(1, assembled.collect()))
}

/// Without a name it is a note.
fn text(name: &str, more: &str) -> String {
    match name {
        "" => format!("---\n{more}---\nText\n"),
        name => doc(name, more, ""),
    }
}

/// The paths that are used, then the others with the reason and the winner.
fn outcome(view: &View) -> Vec<String> {
    let used = view.entries().map(|(_, entry)| entry.document.path.clone());
    let path = |id| view.catalog().entry(id).document.path.as_str();
    let unused = view
        .unused()
        .iter()
        .map(|unused| format!("{} {:?} by {}", path(unused.id), unused.why, path(unused.by)));
    used.chain(unused).collect()
}

#[test]
fn each_view_uses_one_of_those_that_it_shows() {
    const WEEKLY: &str = "title: Weekly report\n";
    let red_weekly = format!("{RED}{WEEKLY}");
    // The files; the used ones without grants; the used ones with the label of the red ones.
    type Row<'a> = (&'a [File<'a>], &'a [&'a str], &'a [&'a str]);
    let rows: &[Row] = &[
        // A later source wins.
        (
            &[("/s/a.md", "a", ""), ("/t/a.md", "a", RED)],
            &["/s/a.md"],
            &["/t/a.md", "/s/a.md Shadowed by /t/a.md"],
        ),
        (
            &[("/s/a.md", "a", RED), ("/t/a.md", "a", "")],
            &["/t/a.md"],
            &["/t/a.md", "/s/a.md Shadowed by /t/a.md"],
        ),
        (
            &[("/s/a.md", "a", ""), ("/t/a.md", "a", RED), ("/u/a.md", "a", "")],
            &["/u/a.md", "/s/a.md Shadowed by /u/a.md"],
            &["/u/a.md", "/s/a.md Shadowed by /t/a.md", "/t/a.md Shadowed by /u/a.md"],
        ),
        // An entry that yields replaces nothing that has a better claim, in the same source and in
        // an earlier one.
        (
            &[("/s/a.md", "a", RED), ("/t/a.md", "a", "replaces: false\n")],
            &["/t/a.md"],
            &["/s/a.md", "/t/a.md Refused by /s/a.md"],
        ),
        (
            &[("/s/a.md", "a", "replaces: false\n"), ("/s/b.md", "a", RED)],
            &["/s/a.md"],
            &["/s/b.md", "/s/a.md Duplicate by /s/b.md"],
        ),
        (
            &[
                ("/s/z.md", "z", &format!("{RED}aliases: [a]\n")),
                ("/t/a.md", "a", "replaces: false\n"),
            ],
            &["/t/a.md"],
            &["/s/z.md", "/t/a.md Refused by /s/z.md"],
        ),
        // Among those that yield, the usual rules hold; one of low trust does not win.
        (
            &[
                ("/s/a.md", "a", &format!("{RED}replaces: false\n")),
                ("/s/b.md", "a", "replaces: false\n"),
            ],
            &["/s/b.md"],
            &["/s/a.md", "/s/b.md Duplicate by /s/a.md"],
        ),
        (
            &[
                ("/s/a.md", "a", &format!("{RED}replaces: false\n")),
                ("/t/a.md", "a", "replaces: false\n"),
            ],
            &["/t/a.md"],
            &["/t/a.md", "/s/a.md Shadowed by /t/a.md"],
        ),
        (
            &[("/s/a.md", "a", &format!("{RED}replaces: false\n")), ("/low/a.md", "a", "")],
            &["/low/a.md"],
            &["/s/a.md", "/low/a.md Refused by /s/a.md"],
        ),
        // Within a source the first by path wins.
        (
            &[("/s/1.md", "a", RED), ("/s/2.md", "a", "")],
            &["/s/2.md"],
            &["/s/1.md", "/s/2.md Duplicate by /s/1.md"],
        ),
        (
            &[("/s/1.md", "a", ""), ("/s/2.md", "a", RED)],
            &["/s/1.md"],
            &["/s/1.md", "/s/2.md Duplicate by /s/1.md"],
        ),
        // Low trust replaces nothing.
        (
            &[("/s/a.md", "a", RED), ("/low/a.md", "a", "")],
            &["/low/a.md"],
            &["/s/a.md", "/low/a.md Refused by /s/a.md"],
        ),
        (
            &[("/low/a.md", "a", ""), ("/s/a.md", "a", RED)],
            &["/low/a.md"],
            &["/s/a.md", "/low/a.md Shadowed by /s/a.md"],
        ),
        (
            &[("/s/a.md", "a", ""), ("/low/a.md", "a", ""), ("/t/a.md", "a", RED)],
            &["/s/a.md", "/low/a.md Refused by /s/a.md"],
            &["/t/a.md", "/s/a.md Shadowed by /t/a.md", "/low/a.md Refused by /s/a.md"],
        ),
        // It does not take an alias either, if the alias is visible.
        (
            &[
                ("/s/o.md", "o", "visibility_labels: [red]\naliases: [post]\n"),
                ("/low/post.md", "post", ""),
            ],
            &["/low/post.md"],
            &["/s/o.md", "/low/post.md Refused by /s/o.md"],
        ),
        (
            &[("/s/o.md", "o", "aliases: [post]\n"), ("/low/post.md", "post", "")],
            &["/s/o.md", "/low/post.md Refused by /s/o.md"],
            &["/s/o.md", "/low/post.md Refused by /s/o.md"],
        ),
        (
            &[
                ("/s/o.md", "o", "aliases: [post]\n"),
                ("/t/o.md", "o", RED),
                ("/low/post.md", "post", ""),
            ],
            &["/s/o.md", "/low/post.md Refused by /s/o.md"],
            &["/t/o.md", "/low/post.md", "/s/o.md Shadowed by /t/o.md"],
        ),
        // An entry that no glob selects is not used.
        (&[("/s/a.md", "a", RED), ("/b-only/a.md", "a", "")], &[], &["/s/a.md"]),
        (
            &[("/s/b.md", "b", RED), ("/b-only/b.md", "b", "")],
            &["/b-only/b.md"],
            &["/b-only/b.md", "/s/b.md Shadowed by /b-only/b.md"],
        ),
        // Of records the oldest wins.
        (
            &[("/s/a.md", "a", ""), ("/store/1.md", "a", ""), ("/store/2.md", "a", RED)],
            &["/store/1.md", "/s/a.md Shadowed by /store/1.md"],
            &[
                "/store/1.md",
                "/s/a.md Shadowed by /store/1.md",
                "/store/2.md Duplicate by /store/1.md",
            ],
        ),
        (
            &[("/s/a.md", "a", ""), ("/store/1.md", "a", RED), ("/store/2.md", "a", "")],
            &["/store/2.md", "/s/a.md Shadowed by /store/2.md"],
            &[
                "/store/1.md",
                "/s/a.md Shadowed by /store/1.md",
                "/store/2.md Duplicate by /store/1.md",
            ],
        ),
        (
            &[("/store/1.md", "a", RED), ("/import/2.md", "a", "")],
            &["/store/2.md"],
            &["/store/1.md", "/store/2.md Duplicate by /store/1.md"],
        ),
        (
            &[("/import/1.md", "a", ""), ("/store/2.md", "a", RED)],
            &["/store/1.md"],
            &["/store/2.md", "/store/1.md Duplicate by /store/2.md"],
        ),
        (
            &[("/import/1.md", "a", RED), ("/import/2.md", "a", "")],
            &["/store/2.md"],
            &["/store/1.md", "/store/2.md Duplicate by /store/1.md"],
        ),
        (
            &[("/s/a.md", "a", RED), ("/import/1.md", "a", "")],
            &["/store/1.md"],
            &["/s/a.md", "/store/1.md Refused by /s/a.md"],
        ),
        // A record replaces skills and notes that have its name or title.
        (
            &[("/s/weekly.md", "weekly", WEEKLY), ("/store/1.md", "report", &red_weekly)],
            &["/s/weekly.md"],
            &["/store/1.md", "/s/weekly.md Shadowed by /store/1.md"],
        ),
        (
            &[
                ("/s/plan.md", "plan", ""),
                ("/store/1.md", "x", "title: plan\nvisibility_labels: [red]\n"),
            ],
            &["/s/plan.md"],
            &["/store/1.md", "/s/plan.md Shadowed by /store/1.md"],
        ),
        (
            &[("/s/x.md", "x", "title: plan\n"), ("/store/1.md", "plan", RED)],
            &["/s/x.md"],
            &["/store/1.md", "/s/x.md Shadowed by /store/1.md"],
        ),
        (
            &[("/notes/x.md", "", WEEKLY), ("/store/1.md", "report", &red_weekly)],
            &["/notes/x.md"],
            &["/store/1.md", "/notes/x.md Shadowed by /store/1.md"],
        ),
        (
            &[
                ("/s/a.md", "a", WEEKLY),
                ("/t/a.md", "a", &red_weekly),
                ("/store/1.md", "report", WEEKLY),
            ],
            &["/store/1.md", "/s/a.md Shadowed by /store/1.md"],
            &["/store/1.md", "/s/a.md Shadowed by /t/a.md", "/t/a.md Shadowed by /store/1.md"],
        ),
        // Of two such records the first by name is reported.
        (
            &[
                ("/s/weekly.md", "weekly", WEEKLY),
                ("/store/1.md", "a", &red_weekly),
                ("/store/2.md", "b", WEEKLY),
            ],
            &["/store/2.md", "/s/weekly.md Shadowed by /store/2.md"],
            &["/store/1.md", "/store/2.md", "/s/weekly.md Shadowed by /store/1.md"],
        ),
        // But only if it is used itself.
        (
            &[
                ("/s/weekly.md", "weekly", WEEKLY),
                ("/store/1.md", "a", RED),
                ("/store/2.md", "a", WEEKLY),
            ],
            &["/store/2.md", "/s/weekly.md Shadowed by /store/2.md"],
            &["/store/1.md", "/s/weekly.md", "/store/2.md Duplicate by /store/1.md"],
        ),
        // A replaced entry has no aliases.
        (
            &[
                ("/s/x.md", "x", "title: plan\naliases: [post]\n"),
                ("/low/post.md", "post", ""),
                ("/store/1.md", "plan", RED),
            ],
            &["/s/x.md", "/low/post.md Refused by /s/x.md"],
            &["/store/1.md", "/low/post.md", "/s/x.md Shadowed by /store/1.md"],
        ),
        // Texts are compared exactly, and a missing title equals nothing.
        (
            &[("/s/x.md", "x", "title: Plan\n"), ("/store/1.md", "plan", "")],
            &["/store/1.md", "/s/x.md"],
            &["/store/1.md", "/s/x.md"],
        ),
        (
            &[("/s/x.md", "x", "title: ''\n"), ("/store/1.md", "y", "title: ''\n")],
            &["/s/x.md", "/store/1.md"],
            &["/s/x.md", "/store/1.md"],
        ),
        // Commands, other records, later sources, and names that records of low trust have, stay.
        (
            &[("/s/mail/send.md", "mail.send", WEEKLY), ("/store/1.md", "a", WEEKLY)],
            &["/store/1.md", "/s/mail/send.md"],
            &["/store/1.md", "/s/mail/send.md"],
        ),
        (
            &[("/store/1.md", "a", WEEKLY), ("/store/2.md", "b", WEEKLY)],
            &["/store/1.md", "/store/2.md"],
            &["/store/1.md", "/store/2.md"],
        ),
        (
            &[("/store/1.md", "a", WEEKLY), ("/s/weekly.md", "weekly", WEEKLY)],
            &["/store/1.md", "/s/weekly.md"],
            &["/store/1.md", "/s/weekly.md"],
        ),
        (
            &[("/s/weekly.md", "weekly", WEEKLY), ("/import/1.md", "a", WEEKLY)],
            &["/store/1.md", "/s/weekly.md"],
            &["/store/1.md", "/s/weekly.md"],
        ),
        (
            &[("/low/weekly.md", "weekly", WEEKLY), ("/store/1.md", "a", WEEKLY)],
            &["/store/1.md", "/low/weekly.md Shadowed by /store/1.md"],
            &["/store/1.md", "/low/weekly.md Shadowed by /store/1.md"],
        ),
    ];
    for (files, without, with) in rows {
        let catalog = catalog(files);
        assert_eq!(outcome(&view(&catalog, "p", &[], None)), *without, "{files:?}");
        let seeing = view(&catalog, "p", &["red"], None);
        assert_eq!(outcome(&seeing), *with, "{files:?}");
        assert_eq!(catalog.count(), seeing.count());
        assert_eq!(catalog.unused(), seeing.unused());
        let used: Vec<_> = catalog.used().map(|entry| &entry.document.path).collect();
        assert_eq!(
            used,
            seeing.entries().map(|(_, entry)| &entry.document.path).collect::<Vec<_>>()
        );
    }
}

#[test]
fn two_profiles_may_each_have_an_entry_of_one_name() {
    let labelled = |label: &str| format!("visibility_labels: [{label}]\n");
    let (red, blue) = (labelled("red"), labelled("blue"));
    let catalog = catalog(&[("/store/1.md", "a", &red), ("/store/2.md", "a", &blue)]);
    let found = |grants: &[&str]| {
        let view = view(&catalog, "p", grants, None);
        (view.find("a").map(|id| view.entry(id).unwrap().document.path.clone()), view.count())
    };
    assert_eq!(found(&["red"]), (Some("/store/1.md".to_owned()), 1));
    assert_eq!(found(&["blue"]), (Some("/store/2.md".to_owned()), 1));
    assert_eq!(found(&["red", "blue"]), (Some("/store/1.md".to_owned()), 1));
    assert_eq!(found(&[]), (None, 0));
}

#[test]
fn globs_and_exclusion_hide_as_labels_do() {
    let excluded = "exclude_from_prompt_profile_ids: [p]\n";
    let catalog = catalog(&[
        ("/s/a.md", "a", ""),
        ("/t/a.md", "a", excluded),
        ("/store/1.md", "b", "title: a\n"),
    ]);
    let used =
        |id: &str, globs: &[&str]| outcome(&narrowed(&catalog, id, &[], [globs].into_iter()));
    assert_eq!(used("p", &["a"]), ["/s/a.md"]);
    assert_eq!(used("q", &["a"]), ["/t/a.md", "/s/a.md Shadowed by /t/a.md"]);
    assert_eq!(used("p", &["*"]), ["/store/1.md", "/s/a.md Shadowed by /store/1.md"]);
}

#[test]
fn diagnostics_of_unused_entries() {
    let files = [
        ("/s/weekly.md", "weekly", "title: Weekly report\n"),
        ("/s/post.md", "post", ""),
        ("/s/tardy.md", "tardy", "aliases: [late]\n"),
        ("/low/late.md", "late", ""),
        ("/low/post.md", "post", ""),
        ("/store/1.md", "report", "title: Weekly report\n"),
        ("/store/2.md", "post", ""),
        ("/store/3.md", "post", RED),
        ("/import/4.md", "weekly", ""),
    ];
    let catalog = catalog(&files);
    let told = |grants: &[&str]| -> Vec<String> {
        let view = view(&catalog, "p", grants, None);
        let about_names =
            |code: &str| ["shadowed", "duplicate_name", "replacement_refused"].contains(&code);
        let found = view.diagnostics().filter(|found| about_names(found.code.as_str()));
        found
            .map(|found| format!("{}: {}", found.path.as_deref().unwrap(), found.message))
            .collect()
    };
    let always = [
        "/low/late.md: `late` is an alias of /s/tardy.md, and the source `low` has low trust, \
         so this one is not used"
            .to_owned(),
        "/low/post.md: `post` is the name of /s/post.md, and the source `low` has low trust, so \
         this one is not used"
            .to_owned(),
        "/s/post.md: `post` is replaced by /store/2.md from the source `store`".to_owned(),
        "/s/weekly.md: `weekly` is replaced by /store/1.md from the source `store`: both are \
         called `Weekly report`"
            .to_owned(),
    ];
    let refused =
        "/store/4.md: `weekly` is the name of /s/weekly.md, and it was imported with low trust, so \
         this one is not used";
    assert_eq!(told(&[]), [&always[..], &[refused.to_owned()]].concat());
    let twice = "/store/3.md: `post`: another record has this name too, and is used".to_owned();
    assert_eq!(told(&["red"]), [&always[..], &[twice, refused.to_owned()]].concat());
}

#[test]
fn entries_of_two_tenants_do_not_disturb_each_other() {
    let one = |name: &str| Tenant::One(name.into());
    let told = |tenants: [Tenant; 2]| -> Vec<&'static str> {
        let source = |(name, tenant): (&str, Tenant)| {
            let source = Source { name: name.into(), tenant, ..Source::default() };
            source_of(source, &[("digest.md", &doc("digest", "", "Text"))])
        };
        let assembled = ["a", "b"].into_iter().zip(tenants).map(source).collect();
        let catalog = common::cached(Catalog::build(1, assembled));
        let none = std::iter::empty();
        let view = common::of_tenant(&catalog, &Tenant::All, "p", &[], none);
        view.diagnostics().map(|found| found.code.as_str()).collect()
    };
    for (tenants, expected) in [
        ([one("acme"), one("globex")], &[][..]),
        ([one("acme"), one("acme")], &["shadowed"]),
        ([Tenant::Common, one("acme")], &["shadowed"]),
        ([Tenant::Common, Tenant::Common], &["shadowed"]),
    ] {
        assert_eq!(told(tenants.clone()), expected, "{tenants:?}");
    }
}

#[test]
fn a_domain_has_the_last_index_that_is_shown() {
    let index =
        |text: &str, more: &str| format!("---\ndomain: email\ndescription: {text}\n{more}---\n");
    let source = |name: &str, trust: Trust, files: &[(&str, String)]| {
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        source_of(Source { name: name.into(), trust, ..Source::default() }, &files)
    };
    let (open, red) = (|text: &str| index(text, ""), |text: &str| index(text, RED));
    let (read, secret) = (doc("email.read", "", ""), doc("email.send", RED, ""));
    let (medium, low) = (Trust::Medium, Trust::Low);
    const INDEX: &str = "email/SKILL.md";
    let command = || ("email/read.md", read.clone());
    let rows = [
        (
            vec![
                source("s", medium, &[(INDEX, open("One")), command()]),
                source("t", medium, &[(INDEX, red("Two"))]),
            ],
            "One",
            "Two",
        ),
        (
            vec![
                source("s", medium, &[(INDEX, red("One")), command()]),
                source("t", medium, &[(INDEX, open("Two"))]),
            ],
            "Two",
            "Two",
        ),
        (
            vec![source(
                "s",
                medium,
                &[(INDEX, red("One")), ("post/SKILL.md", open("Two")), command()],
            )],
            "Two",
            "One",
        ),
        (
            vec![source(
                "s",
                medium,
                &[(INDEX, open("One")), ("post/SKILL.md", red("Two")), command()],
            )],
            "One",
            "One",
        ),
        // Of low trust, and alone; beside an index; beside a command.
        (vec![source("l", low, &[(INDEX, open("Low")), command()])], "Low", "Low"),
        (
            vec![
                source("s", medium, &[(INDEX, red("One"))]),
                source("l", low, &[(INDEX, open("Low")), command()]),
            ],
            "Low",
            "One",
        ),
        (
            vec![
                source("s", medium, &[("email/send.md", secret)]),
                source("l", low, &[(INDEX, open("Low")), command()]),
            ],
            "Low",
            "email.read, email.send",
        ),
    ];
    for (number, (sources, without, with)) in rows.into_iter().enumerate() {
        let catalog = common::cached(Catalog::build(1, sources));
        let description = |grants: &[&str]| {
            view(&catalog, "p", grants, None).domain("email").unwrap().description()
        };
        assert_eq!([description(&[]), description(&["red"])], [without, with], "{number}");
    }
}

/// A domain's index, and the parts of an entry: name, title, alias, trust and text.
type Page = (u8, usize, Option<usize>, Option<usize>, bool, u8);

fn page() -> impl Strategy<Value = Page> {
    let some = || proptest::option::weighted(0.4, 0..3usize);
    (0..5u8, 0..3usize, some(), some(), proptest::bool::weighted(0.3), 0..2u8)
}

fn pages(kind: SourceKind, name: &str, pages: &[Page]) -> Assembled {
    let page = |(at, (form, name, title, alias, low, body)): (usize, &Page)| {
        let called = ["a", "b", "c"][*name];
        let title =
            title.map_or_else(String::new, |title| format!("title: {}\n", ["a", "b", "T"][title]));
        let alias = alias
            .map_or_else(String::new, |alias| format!("aliases: [{}]\n", ["a", "b", "d.a"][alias]));
        let more = format!("{title}{alias}");
        let body = body.to_string();
        let (path, text) = match (kind, form) {
            (SourceKind::Stored, _) => (format!("{called}.md"), doc(called, &more, &body)),
            (_, 0) => {
                ("d/SKILL.md".to_owned(), format!("---\ndomain: d\ndescription: {body}\n---\n"))
            }
            (_, 1) => (format!("d/{at}.md"), doc(&format!("d.{called}"), &more, &body)),
            _ => (format!("{at}.md"), doc(called, &more, &body)),
        };
        (if *low { Trust::Low } else { Trust::Medium }, path, text)
    };
    let made: Vec<_> = pages.iter().enumerate().map(page).collect();
    let source = Source { name: name.into(), kind, ..Source::default() };
    if kind == SourceKind::Stored {
        return records(&source, made.into_iter());
    }
    let files: BTreeMap<&str, &str> =
        made.iter().map(|(_, path, text)| (path.as_str(), text.as_str())).collect();
    source_of(source, &files.into_iter().collect::<Vec<_>>())
}

/// Takes over unchanged entries, as a reload does.
fn taken_over(before: &Assembled, mut after: Assembled) -> Assembled {
    for entry in &mut after.entries {
        let is_it = |old: &&Arc<Entry>| format!("{old:?}") == format!("{entry:?}");
        if let Some(old) = before.entries.iter().find(is_it) {
            *entry = old.clone();
        }
    }
    after
}

proptest! {
    #[test]
    fn the_next_generation_equals_one_built_anew(
        first in proptest::collection::vec(proptest::collection::vec(page(), 0..5), 3),
        edits in proptest::collection::vec((0..3usize, 0..5usize, page(), 0..4u8), 1..12),
    ) {
        const KINDS: [(SourceKind, &str); 3] = [
            (SourceKind::Skills, "one"),
            (SourceKind::Skills, "two"),
            (SourceKind::Stored, "store"),
        ];
        let assembled = |at: usize, of: &[Page]| pages(KINDS[at].0, KINDS[at].1, of);
        let mut texts = first;
        let mut sources: Vec<Assembled> =
            texts.iter().enumerate().map(|(at, of)| assembled(at, of)).collect();
        let mut before = Catalog::build(1, sources.clone());
        for (generation, (source, at, page, what)) in (2..).zip(edits) {
            let of = &mut texts[source];
            match (of.get_mut(at), what) {
                // In most cases only the text differs.
                (Some(old), 0 | 1) => old.5 = 1 - old.5,
                (Some(old), 2) => *old = page,
                (Some(_), _) => drop(of.remove(at)),
                (None, _) => of.push(page),
            }
            sources[source] = taken_over(&sources[source], assembled(source, of));
            let after = Catalog::build_after(Some(&before), generation, sources.iter());
            let anew = Catalog::build(generation, sources.clone());
            prop_assert_eq!(format!("{after:?}"), format!("{anew:?}"));
            before = after;
        }
    }
}
