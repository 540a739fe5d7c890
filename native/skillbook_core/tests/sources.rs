//! Sources and relations between entries: selection, trust, aliases, requires, links.

mod common;

use common::{all, names, skills, source_of, view};
use skillbook_core::catalog::assemble::Assembled;
use skillbook_core::catalog::{Catalog, Why};
use skillbook_core::glob::Globs;
use skillbook_core::source::{Selection, Source, Trust};
use skillbook_core::view::View;

fn globs(patterns: Option<&[&str]>) -> Option<Globs> {
    let patterns = patterns?.iter().map(|pattern| pattern.to_string()).collect::<Vec<_>>();
    Some(Globs::new(&patterns).unwrap())
}

fn named(name: &str) -> Source {
    Source { name: name.into(), ..Source::default() }
}

fn low(name: &str, files: &[(&str, &str)]) -> Assembled {
    source_of(Source { trust: Trust::Low, ..named(name) }, files)
}

fn medium(name: &str, files: &[(&str, &str)]) -> Assembled {
    source_of(named(name), files)
}

/// A document that always has a text.
fn doc(name: &str, more: &str, body: &str) -> String {
    common::doc(name, more, if body.is_empty() { "Text." } else { body })
}

/// `code path: message` of each finding, without the first `/` of paths.
fn found(view: &View) -> Vec<String> {
    let line = |found: &skillbook_core::page::diagnostic::Diagnostic| {
        format!(
            "{} {}: {}",
            found.code.as_str(),
            &found.path.as_deref().unwrap_or("/")[1..],
            found.message
        )
    };
    view.diagnostics().map(line).collect()
}

#[test]
fn globs_select_entries() {
    let files = ["lists", "list-old", "my-critical-one", "Lists"]
        .map(|name| (format!("{name}/SKILL.md"), doc(name, "", "")));
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    type Row<'a> =
        (Option<&'a [&'a str]>, Option<&'a [&'a str]>, &'a [&'a str], &'a [&'a str], &'a [&'a str]);
    // Globs of `available` and `inline`; then the listed entries, the inline ones, and those that
    // both select.
    let rows: &[Row] = &[
        (None, None, &["Lists", "list-old", "lists", "my-critical-one"], &[], &[]),
        (Some(&["list*"]), None, &["list-old", "lists"], &[], &[]),
        (Some(&[]), None, &[], &[], &[]),
        (None, Some(&["my-*"]), &[], &["my-critical-one"], &[]),
        (None, Some(&[]), &[], &[], &[]),
        (Some(&["list?"]), Some(&["?ists"]), &[], &["Lists", "lists"], &["lists"]),
        (
            Some(&["*"]),
            Some(&["my-critical-*"]),
            &["Lists", "list-old", "lists"],
            &["my-critical-one"],
            &["my-critical-one"],
        ),
        (Some(&["LISTS"]), None, &[], &[], &[]),
        (Some(&["Lists"]), None, &["Lists"], &[], &[]),
        (Some(&["nothing"]), Some(&["lists"]), &[], &["lists"], &[]),
    ];
    for (available, inline, listed, whole, twice) in rows {
        let source = Source { available: globs(*available), inline: globs(*inline), ..named("s") };
        let catalog = Catalog::build(1, vec![source_of(source, &files)]);
        let selected = |selection| -> Vec<&str> {
            let entries = catalog.entries().iter().filter(|entry| entry.selection == selection);
            entries.map(|entry| &*entry.name).collect()
        };
        assert_eq!(selected(Selection::Available), *listed, "{available:?} {inline:?}");
        assert_eq!(selected(Selection::Inline), *whole, "{available:?} {inline:?}");
        assert!(catalog.unused().is_empty());
        assert_eq!(catalog.unselected().len(), 4 - listed.len() - whole.len());
        let codes = |code: &str| -> Vec<String> {
            let found = catalog
                .findings()
                .iter()
                .filter(|finding| finding.diagnostic.code.as_str() == code);
            found.map(|finding| finding.about[0].name.to_string()).collect()
        };
        assert_eq!(codes("inline_wins"), *twice, "{available:?} {inline:?}");
        assert_eq!(codes("not_selected").len(), catalog.unselected().len());
    }
}

#[test]
fn says_how_globs_select() {
    let source =
        Source { available: globs(Some(&["a*"])), inline: globs(Some(&["ab"])), ..named("s") };
    let files = [("ab.md", &*doc("ab", "", "")), ("b.md", &*doc("b", "", ""))];
    assert_eq!(
        found(&all(Catalog::build(1, vec![source_of(source, &files)]))),
        [
            "inline_wins s/ab.md: `ab` matches globs of both `available` and `inline` of \
             the source `s`; `inline` wins",
            "not_selected s/b.md: `b` matches no glob of the source `s`, so it is not used"
        ]
    );
}

#[test]
fn a_name_chosen_from_two_sources_is_a_warning() {
    let text = doc("a", "", "");
    let some: Option<&[&str]> = Some(&["*"]);
    for (first, second, severity) in
        [(some, some, "warning"), (some, None, "info"), (None, some, "info"), (None, None, "info")]
    {
        let source = |name, available| {
            source_of(Source { available: globs(available), ..named(name) }, &[("a.md", &text)])
        };
        let view = all(Catalog::build(1, vec![source("s", first), source("t", second)]));
        let told: Vec<_> = view
            .diagnostics()
            .map(|found| (found.code.as_str(), found.severity.as_str()))
            .collect();
        assert_eq!(told, [("shadowed", severity)]);
    }
}

#[test]
fn low_trust_replaces_nothing() {
    let (mine, theirs) = (doc("a", "title: Mine\n", ""), doc("a", "title: Theirs\n", ""));
    type Trusted = fn(&str, &[(&str, &str)]) -> Assembled;
    let (low, medium): (Trusted, Trusted) = (low, medium);
    // The two sources, the title that is used, and the reason why the other is not.
    let rows = [
        (medium, medium, "Theirs", Why::Shadowed),
        (medium, low, "Mine", Why::Refused),
        (low, medium, "Theirs", Why::Shadowed),
        (low, low, "Mine", Why::Refused),
    ];
    for (first, second, title, why) in rows {
        let catalog = Catalog::build(
            1,
            vec![first("s", &[("a.md", &mine)]), second("t", &[("a.md", &theirs)])],
        );
        assert_eq!(catalog.used().next().unwrap().title.as_deref(), Some(title));
        assert_eq!(catalog.unused()[0].why, why);
    }
    let catalog =
        Catalog::build(1, vec![medium("s", &[("a.md", &mine)]), low("t", &[("a.md", &theirs)])]);
    assert_eq!(
        found(&all(catalog)),
        ["replacement_refused t/a.md: `a` is the name of /s/a.md, and the source `t` has low \
          trust, so this one is not used"]
    );
}

#[test]
fn low_trust_takes_no_alias() {
    let (owner, thief, other) = (
        doc("owner", "aliases: [post]\n", ""),
        doc("post", "", ""),
        doc("a", "aliases: [post]\n", ""),
    );
    let reached = |sources| {
        let view = all(Catalog::build(1, sources));
        let id = view.find("post").unwrap();
        (view.entry(id).unwrap().name.to_string(), view.count(), found(&view))
    };
    let by_name =
        reached(vec![low("t", &[("post.md", &thief)]), medium("s", &[("owner.md", &owner)])]);
    assert_eq!(
        by_name,
        (
            "owner".to_owned(),
            1,
            vec![
                "replacement_refused t/post.md: `post` is an alias of /s/owner.md, and the source \
                 `t` has low trust, so this \
                 one is not used"
                    .to_owned()
            ]
        )
    );
    let by_alias =
        reached(vec![medium("s", &[("owner.md", &owner)]), low("t", &[("a.md", &other)])]);
    assert_eq!(
        by_alias,
        (
            "owner".to_owned(),
            2,
            vec!["alias_taken t/a.md: the alias `post` is also an alias of /s/owner.md, which \
                 is found first"
                .to_owned()]
        )
    );
    // A source of medium trust may do it.
    let allowed =
        reached(vec![medium("t", &[("post.md", &thief)]), medium("s", &[("owner.md", &owner)])]);
    assert_eq!((allowed.0.as_str(), allowed.1), ("post", 2));
    // Among sources of low trust a name comes before an alias, as elsewhere.
    let both_low =
        reached(vec![low("t", &[("post.md", &thief)]), low("s", &[("owner.md", &owner)])]);
    assert_eq!((both_low.0.as_str(), both_low.1), ("post", 2));
}

#[test]
fn low_trust_speaks_for_no_domain_of_others() {
    let index = "---\ndomain: email\ndescription: Theirs\n---\n";
    let (send, mine) = (doc("email.send", "", ""), index.replace("Theirs", "Mine"));
    let described = |sources| {
        let view = all(Catalog::build(1, sources));
        let domain = view.domain("email").unwrap();
        (domain.description(), found(&view).len())
    };
    let theirs = || low("t", &[("email/SKILL.md", index), ("email/send.md", &send)]);
    assert_eq!(described(vec![theirs()]), ("Theirs".to_owned(), 0));
    // The index and the command, both refused.
    let files = [("email/SKILL.md", mine.as_str()), ("email/send.md", send.as_str())];
    assert_eq!(described(vec![medium("s", &files), theirs()]), ("Mine".to_owned(), 2));
    assert_eq!(described(vec![medium("s", &files[1..]), theirs()]), ("email.send".to_owned(), 2));
}

#[test]
fn low_trust_runs_nothing() {
    let text = doc("a.b", "handler: H\nschedule: 0 9 * * 1\n", "");
    for (trust, used) in [
        (Trust::Low, None),
        (Trust::Medium, Some(("H", "0 9 * * 1"))),
        (Trust::High, Some(("H", "0 9 * * 1"))),
    ] {
        let catalog = Catalog::build(
            1,
            vec![source_of(Source { trust, ..named("s") }, &[("a/b.md", &text)])],
        );
        let entry = &catalog.entries()[0];
        assert_eq!(entry.handler().zip(entry.schedule()), used);
        let fields = match used {
            Some(_) => vec![],
            None => vec![
                (
                    "the source `s` has low trust, so the field `handler` is not used".to_owned(),
                    Some(4),
                ),
                (
                    "the source `s` has low trust, so the field `schedule` is not used".to_owned(),
                    Some(5),
                ),
            ],
        };
        let view = all(catalog);
        let messages: Vec<_> =
            view.diagnostics().map(|found| (found.message.clone(), found.line)).collect();
        assert_eq!(messages, fields);
    }
}

#[test]
fn an_alias_that_another_entry_has_is_reported() {
    let catalog = common::cached(skills(&[
        ("a.md", &doc("a", "aliases: [b, c, a, x]\n", "")),
        ("b.md", &doc("b", "aliases: [x]\nvisibility_labels: [secret]\n", "")),
        ("d.md", &doc("d", "aliases: [x]\n", "")),
    ]));
    let taken = "alias_taken s/a.md: the alias `b` is the name of /s/b.md, which is found first";
    let shared = |name| {
        format!(
            "alias_taken s/{name}.md: the alias `x` is also an alias of /s/a.md, which is \
             found first"
        )
    };
    assert_eq!(
        found(&view(&catalog, "p", &["secret"], None)),
        [taken.to_owned(), shared("b"), shared("d")]
    );
    assert_eq!(found(&view(&catalog, "p", &[], None)), [shared("d")]);
    assert_eq!(found(&view(&catalog, "p", &[], Some(&["d"]))), [""; 0]);
}

#[test]
fn missing_requirements_are_reported() {
    let requires = |names: &str| format!("requires: [{names}]\n");
    let catalog = common::cached(skills(&[
        ("a.md", &doc("a", &requires("b, other, email, email.send"), "")),
        (
            "b.md",
            &doc("b", &(requires("c") + "aliases: [other]\nvisibility_labels: [secret]\n"), ""),
        ),
        ("c.md", &doc("c", &requires("a"), "")),
        ("email/send.md", &doc("email.send", "", "")),
        ("f.md", &doc("f", &requires("f, gone"), "")),
    ]));
    let missing = |path: &str, name: &str| {
        format!("requires_missing s/{path}: it requires `{name}`, which does not exist")
    };
    let itself = "requires_cycle s/f.md: `f` requires itself: f → f".to_owned();
    assert_eq!(
        found(&view(&catalog, "p", &["secret"], None)),
        [
            "requires_cycle s/a.md: `a` requires itself: a → b → c → a".to_owned(),
            missing("f.md", "gone"),
            itself.clone()
        ]
    );
    // A reader who may not see `b` gets the same messages as if it did not exist.
    assert_eq!(
        found(&view(&catalog, "p", &[], None)),
        [missing("a.md", "b"), missing("a.md", "other"), missing("f.md", "gone"), itself]
    );
}

#[test]
fn links_lead_to_readable_files() {
    let body = "[1](references/forms.md#two) [2](scripts/) [3](./references) \
                [4](SKILL.md) [5](https://x.y/z)\n\
                [6](references/gone.md) [7](send.md) [8](../other/SKILL.md) [9](../other/data.csv) \
                [10](../../etc/passwd)\n";
    let catalog = common::cached(skills(&[
        (
            "email/SKILL.md",
            &format!("---\nname: email\ndomain: email\ndescription: d\n---\n{body}"),
        ),
        ("email/references/forms.md", "x"),
        ("email/scripts/fill.py", ""),
        ("email/send.md", &doc("email.send", "visibility_labels: [secret]\n", "")),
        ("other/SKILL.md", &doc("other", "visibility_labels: [secret]\n", "")),
        ("other/data.csv", ""),
        // Links of entries without a folder are for people.
        ("single.md", &doc("single", "", "[x](y.md)")),
    ]));
    let dangling = |view: &View| -> Vec<(String, Option<u32>, Option<u32>)> {
        view.diagnostics().map(|found| (found.message.clone(), found.line, found.column)).collect()
    };
    let message =
        |target: &str| format!("the link leads to `{target}`, but the skill has no such file");
    let (gone, away) = (
        (message("references/gone.md"), Some(7), Some(5)),
        (message("../../etc/passwd"), Some(7), Some(89)),
    );
    assert_eq!(dangling(&view(&catalog, "p", &["secret"], None)), [gone.clone(), away.clone()]);
    let hidden = [
        gone,
        (message("send.md"), Some(7), Some(29)),
        (message("../other/SKILL.md"), Some(7), Some(42)),
        (message("../other/data.csv"), Some(7), Some(65)),
        away,
    ];
    assert_eq!(dangling(&view(&catalog, "p", &[], None)), hidden);
    assert_eq!(names(&view(&catalog, "p", &[], None)), ["email", "single"]);
}
