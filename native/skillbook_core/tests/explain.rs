//! Explanations of a name: one row for each outcome.

mod common;

use std::sync::Arc;

use common::{doc, source, source_of, view};
use skillbook_core::catalog::Catalog;
use skillbook_core::explain::explain;
use skillbook_core::prompt::Options;
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::CachedCatalog;

/// `state path by hidden prompt codes` of each file.
fn listing(catalog: &Arc<CachedCatalog>, name: &str) -> (Vec<String>, Vec<String>) {
    let explanation = explain(
        &view(catalog, "p", &["held"], Some(&["mail.*", "a*", "n*", "family/*"])),
        &Tenant::All,
        name,
        &Options::default(),
    );
    let line = |file: &skillbook_core::explain::Explained| {
        let codes: Vec<_> =
            file.diagnostics.iter().map(|diagnostic| diagnostic.code.as_str()).collect();
        let parts = [
            file.state.as_str().to_owned(),
            file.path.clone(),
            file.by.clone().unwrap_or_default(),
            file.hidden.join(" and "),
            file.prompt.clone().unwrap_or_default(),
            codes.join(" "),
        ];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" | ")
    };
    (explanation.files.iter().map(line).collect(), explanation.close)
}

#[test]
fn hidden_entries_take_no_part() {
    let page = |name: &str, more: &str| doc(name, more, "x");
    let other = "visibility_labels: [other]\n";
    let weekly = "title: Weekly report\n";
    let index = |more: &str| format!("---\ndomain: mail\ndescription: d\n{more}---\n");
    let sources = [
        vec![
            ("ab.md", page("ab", "")),
            ("ac.md", page("ac", other)),
            ("ad.md", page("ad", "")),
            ("aweekly.md", page("aweekly", weekly)),
            ("mail/SKILL.md", index("")),
            ("mail/send.md", page("mail.send", "")),
        ],
        vec![
            ("ab.md", page("ab", other)),
            ("ac.md", page("ac", "")),
            ("ad.md", page("ad", "")),
            ("mail/SKILL.md", index(other)),
        ],
        vec![("ad.md", page("ad", "title: Weekly report\n"))],
    ];
    let mut assembled: Vec<_> = ["s", "t", "u"]
        .into_iter()
        .zip(&sources)
        .map(|(name, files)| {
            let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
            source(name, SourceKind::Skills, &[], &files)
        })
        .collect();
    let store = Source { name: "v".into(), kind: SourceKind::Stored, ..Source::default() };
    let records = [("areport", ""), ("areport", other)]
        .map(|(name, more)| page(name, &format!("{weekly}{more}")));
    let records = records.into_iter().map(|text| (Trust::Medium, "areport.md".to_owned(), text));
    assembled.push(common::records(&store, records));
    let catalog = common::cached(Catalog::build(1, assembled));
    const HELD: &str = "the profile does not have its label `other`";
    const SHOWN: &str = "in the section `skills`";
    let rows: &[(&str, &[String])] = &[
        ("ab", &[format!("used | /s/ab.md | {SHOWN}"), format!("used | /t/ab.md | {HELD}")]),
        (
            "ac",
            &[
                format!("used | /t/ac.md | {SHOWN}"),
                "shadowed | /s/ac.md | /t/ac.md | shadowed".to_owned(),
            ],
        ),
        (
            "ad",
            &[
                "shadowed | /s/ad.md | /v/areport.md | shadowed".to_owned(),
                "shadowed | /t/ad.md | /v/areport.md | shadowed".to_owned(),
                "shadowed | /u/ad.md | /v/areport.md | shadowed".to_owned(),
            ],
        ),
        ("aweekly", &["shadowed | /s/aweekly.md | /v/areport.md | shadowed".to_owned()]),
        (
            "areport",
            &[
                format!("used | /v/areport.md | {SHOWN}"),
                "duplicate | /v/areport.md | /v/areport.md | duplicate_name".to_owned(),
            ],
        ),
        (
            "mail",
            &[
                "index | /s/mail/SKILL.md | shadowed".to_owned(),
                "index | /t/mail/SKILL.md".to_owned(),
            ],
        ),
    ];
    for (name, expected) in rows {
        assert_eq!(listing(&catalog, name), (expected.to_vec(), vec![]), "{name}");
    }
}

#[test]
fn explains_each_outcome() {
    let usage = "## Usage\n\nmail.send --to <a>\n";
    let files = [
        ("mail/send.md", doc("mail.send", "", usage)),
        ("mail/plain.md", doc("mail.plain", "aliases: [nickname]\n", "x")),
        ("mail/quiet.md", doc("mail.quiet", "include_in_prompt: false\n", usage)),
        ("mail/secret.md", doc("mail.secret", "visibility_labels: [held, other]\n", usage)),
        ("mail/SKILL.md", "---\ndomain: mail\ndescription: d\n---\n# Mail\n".to_owned()),
        ("another.md", doc("another", "", "x")),
        ("apart.md", doc("apart", "exclude_from_prompt_profile_ids: [p]\n", "x")),
        ("zebra.md", doc("zebra", "", "x")),
        ("amber.md", doc("amber", "aliases: [ambergris]\n", "x")),
        ("twice/a.md", doc("atwice", "", "x")),
        ("twice/b.md", doc("atwice", "", "y")),
        ("nothing.md", "---\nname: nothing\n---\n".to_owned()),
    ];
    let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (*path, &**text)).collect();
    let over = doc("another", "", "z");
    let notes = [("family/note.md", "# Note\n")];
    let low = [("amber.md", doc("amber", "", "y")), ("ambergris.md", doc("ambergris", "", "y"))];
    let low: Vec<(&str, &str)> = low.iter().map(|(path, text)| (*path, &**text)).collect();
    let catalog = common::cached(Catalog::build(
        1,
        vec![
            source("s", SourceKind::Skills, &[], &files),
            source("t", SourceKind::Skills, &[], &[("another.md", &over)]),
            source("u", SourceKind::Notes, &[], &notes),
            source_of(Source { name: "v".into(), trust: Trust::Low, ..Source::default() }, &low),
        ],
    ));
    let rows: &[(&str, &[&str])] = &[
        ("mail.send", &["used | /s/mail/send.md | in the section `quick_reference`"]),
        ("send", &["used | /s/mail/send.md | in the section `quick_reference`"]),
        ("nickname", &["used | /s/mail/plain.md | only with its domain"]),
        ("mail.quiet", &["used | /s/mail/quiet.md | nowhere: include_in_prompt is false"]),
        (
            "mail.secret",
            &["used | /s/mail/secret.md | the profile does not have its label `other`"],
        ),
        ("mail", &["index | /s/mail/SKILL.md"]),
        (
            "another",
            &[
                "used | /t/another.md | in the section `skills`",
                "shadowed | /s/another.md | /t/another.md | shadowed",
            ],
        ),
        ("apart", &["used | /s/apart.md | its exclude_from_prompt_profile_ids names the profile"]),
        ("zebra", &["used | /s/zebra.md | no glob of the profile's skills matches its name"]),
        (
            "atwice",
            &[
                "used | /s/twice/a.md | in the section `skills` | name_differs",
                "duplicate | /s/twice/b.md | /s/twice/a.md | duplicate_name name_differs",
            ],
        ),
        (
            "amber",
            &[
                "used | /s/amber.md | in the section `skills`",
                "refused | /v/amber.md | /s/amber.md | replacement_refused",
            ],
        ),
        (
            "ambergris",
            &[
                "used | /s/amber.md | in the section `skills`",
                "refused | /v/ambergris.md | replacement_refused",
            ],
        ),
        ("nothing", &["no_entry | /s/nothing.md | description_missing"]),
        ("mail/send.md", &["used | /s/mail/send.md | in the section `quick_reference`"]),
        ("/s/mail/send.md", &["used | /s/mail/send.md | in the section `quick_reference`"]),
        ("s/mail/send", &["used | /s/mail/send.md | in the section `quick_reference`"]),
        ("mail/SKILL.md", &["index | /s/mail/SKILL.md"]),
        ("/s/mail/", &["index | /s/mail/SKILL.md"]),
        ("", &[]),
        ("/", &[]),
        ("family/note", &["used | /u/family/note.md | in the section `notes`"]),
    ];
    for (name, expected) in rows {
        assert_eq!(
            listing(&catalog, name),
            (expected.iter().map(|line| line.to_string()).collect(), vec![]),
            "{name}"
        );
    }
    assert_eq!(
        listing(&catalog, "zebr"),
        (vec![], vec!["zebra".to_owned()]),
        "unknown, with a close name though it is hidden"
    );
    assert_eq!(
        listing(&catalog, "ail/send.md"),
        (vec![], vec!["mail.send".to_owned()]),
        "not a whole folder"
    );
    assert_eq!(listing(&catalog, "qqqqqq"), (vec![], vec![]));
}
