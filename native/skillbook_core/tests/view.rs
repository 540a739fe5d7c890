//! Visibility: which entries a view shows, and to whom.

mod common;

use std::sync::Arc;

use common::{all, doc, names, skills, source_of, view};
use skillbook_core::catalog::Catalog;
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::view::{CachedCatalog, Profile, View};

fn catalog() -> Arc<CachedCatalog> {
    let labels = |labels: &str| format!("visibility_labels: [{labels}]\n");
    common::cached(skills(&[
        (
            "email/SKILL.md",
            concat!(
                "---\n",
                "domain: email\n",
                "description: Mail\n",
                "---\n",
                "# Email\n",
                "- email.read: read\n",
                "- email.send: send\n",
            ),
        ),
        ("email/read.md", &doc("email.read", "aliases: [mail]\n", "Read")),
        ("email/send.md", &doc("email.send", &labels("out"), "Send")),
        ("vault/open.md", &doc("vault.open", &labels("out, secret"), "Open")),
        ("a.md", &doc("a", "aliases: [mail, b]\n", "")),
        ("b.md", &doc("b", &labels("secret"), "")),
        ("c.md", &doc("c", "exclude_from_prompt_profile_ids: [guest]\n", "")),
        ("d.md", &doc("d", "include_in_prompt: false\nproactive_for_profile_ids: [guest]\n", "")),
    ]))
}

#[test]
fn labels_must_be_within_grants() {
    let catalog = catalog();
    let rows: &[(&[&str], &[&str])] = &[
        (&[], &["a", "c", "d", "email.read"]),
        (&["out"], &["a", "c", "d", "email.read", "email.send"]),
        (&["secret"], &["a", "b", "c", "d", "email.read"]),
        (&["secret", "out"], &["a", "b", "c", "d", "email.read", "email.send", "vault.open"]),
    ];
    for (grants, expected) in rows {
        let view = view(&catalog, "p", grants, None);
        assert_eq!(names(&view), *expected, "{grants:?}");
        assert_eq!(view.count(), expected.len());
    }
    assert_eq!(all(skills(&[("b.md", &doc("b", "visibility_labels: [x]\n", ""))])).count(), 1);
}

#[test]
fn names_must_be_allowed() {
    let catalog = catalog();
    let rows: &[(&[&str], &[&str])] = &[
        (&[], &[]),
        (&["*"], &["a", "b", "c", "d", "email.read", "email.send", "vault.open"]),
        (&["email.*"], &["email.read", "email.send"]),
        (&["Email.*"], &[]),
        (&["*.send", "a"], &["a", "email.send"]),
        (&["[ab]", "vault.{open,close}"], &["a", "b", "vault.open"]),
    ];
    for (skills, expected) in rows {
        assert_eq!(
            names(&view(&catalog, "p", &["out", "secret"], Some(skills))),
            *expected,
            "{skills:?}"
        );
    }
}

#[test]
fn each_list_of_globs_narrows() {
    let catalog = catalog();
    let rows: &[(&[&[&str]], &[&str])] = &[
        (&[], &["a", "b", "c", "d", "email.read", "email.send", "vault.open"]),
        (&[&["email.*"], &["*"]], &["email.read", "email.send"]),
        (&[&["*.send", "vault.*"], &["email.*", "a"]], &["email.send"]),
        (&[&["email.*"], &["vault.*"]], &[]),
        (&[&["*"], &[]], &[]),
    ];
    for (lists, expected) in rows {
        let skills =
            lists.iter().map(|globs| globs.iter().map(|glob| glob.to_string()).collect()).collect();
        let profile = Profile { id: "p".into(), skills, ..Profile::unrestricted() };
        assert_eq!(names(&View::new(catalog.clone(), &profile).unwrap()), *expected, "{lists:?}");
    }
}

#[test]
fn a_bad_glob_is_named() {
    let profile =
        Profile { skills: vec![vec!["ok".into(), "[a".into()]], ..Profile::unrestricted() };
    let bad = View::new(catalog(), &profile).unwrap_err();
    assert_eq!(
        (bad.glob.as_str(), bad.message.as_str()),
        ("[a", "unclosed character class; missing ']'")
    );
}

#[test]
fn an_excluded_skill_cannot_be_loaded() {
    let catalog = catalog();
    assert!(view(&catalog, "p", &[], None).find("c").is_some());
    assert!(view(&catalog, "guest", &[], None).find("c").is_none());
}

#[test]
fn a_profile_may_have_its_own_prompt() {
    let catalog = catalog();
    for (id, expected) in [("guest", true), ("p", false)] {
        let view = view(&catalog, id, &[], None);
        assert_eq!(view.in_prompt(view.find("d").unwrap()), expected, "{id}");
    }
}

#[test]
fn names_go_before_aliases() {
    let catalog = catalog();
    let found =
        |view: &View, name| view.find(name).map(|id| view.entry(id).unwrap().name.to_string());
    let (guest, keeper) = (view(&catalog, "p", &[], None), view(&catalog, "p", &["secret"], None));
    assert_eq!(found(&keeper, "b").as_deref(), Some("b"));
    // For a reader who may not see `b` the name is free, so the alias is found.
    assert_eq!(found(&guest, "b").as_deref(), Some("a"));
    assert_eq!(found(&guest, "mail").as_deref(), Some("a"));
    assert_eq!(
        found(&view(&catalog, "p", &[], Some(&["email.*"])), "mail").as_deref(),
        Some("email.read")
    );
    assert_eq!(found(&guest, "nothing"), None);
}

#[test]
fn a_domain_exists_if_one_of_its_commands_does() {
    let catalog = catalog();
    let domains = |view: &View| -> Vec<String> {
        view.domains().map(|domain| domain.name().to_owned()).collect()
    };
    assert_eq!(domains(&view(&catalog, "p", &[], None)), ["email"]);
    assert_eq!(domains(&view(&catalog, "p", &["out", "secret"], None)), ["email", "vault"]);
    assert!(view(&catalog, "p", &["out"], None).domain("vault").is_none());
    assert!(view(&catalog, "p", &["out"], None).domain("nothing").is_none());
}

#[test]
fn an_index_omits_hidden_commands() {
    let catalog = catalog();
    let body = |grants| view(&catalog, "p", grants, None).domain("email").unwrap().body();
    assert_eq!(body(&["out"]), "# Email\n- email.read: read\n- email.send: send\n");
    assert_eq!(body(&[]), "# Email\n- email.read: read\n");
}

#[test]
fn a_hidden_index_is_as_if_it_were_not_written() {
    let index =
        "---\ndomain: email\ndescription: Mail\nvisibility_labels: [x]\n---\n# email.read\n";
    let read = doc("email.read", "", "");
    let with = common::cached(skills(&[("email/SKILL.md", index), ("email/read.md", &read)]));
    let without = common::cached(skills(&[("email/read.md", &read)]));
    let shown = |catalog: &Arc<CachedCatalog>, grants: &[&str]| {
        let view = view(catalog, "p", grants, None);
        let domain = view.domain("email").unwrap();
        (domain.description(), domain.body(), domain.path().map(str::to_owned))
    };
    assert_eq!(shown(&with, &[]), shown(&without, &[]));
    assert_eq!(
        shown(&with, &["x"]),
        ("Mail".to_owned(), "# email.read\n".to_owned(), Some("/s/email/SKILL.md".to_owned()))
    );
    assert_eq!(
        shown(&without, &[]),
        (
            "email.read".to_owned(),
            concat!(
                "# email\n",
                "\n",
                "| Skill | Description |\n",
                "|-------|-------------|\n",
                "| email.read | About email.read |\n",
            )
            .to_owned(),
            None
        )
    );
}

#[test]
fn a_domain_without_a_description_names_its_first_commands() {
    let names = ["a", "b", "c", "d", "e", "f", "g"].map(|action| format!("x.{action}"));
    let files: Vec<_> =
        names.iter().map(|name| (name.replace('.', "/") + ".md", doc(name, "", ""))).collect();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let description = |count| all(skills(&files[..count])).domain("x").unwrap().description();
    assert_eq!(description(5), "x.a, x.b, x.c, x.d, x.e");
    assert_eq!(description(7), "x.a, x.b, x.c, x.d, x.e and 2 more");
}

#[test]
fn diagnostics_mention_only_shown_entries() {
    let files = [
        ("x/a.md".to_owned(), doc("open", "", "Text")),
        ("x/b.md".to_owned(), doc("hidden", "visibility_labels: [secret]\n", "Text")),
        ("y/open.md".to_owned(), doc("open", "visibility_labels: [secret]\n", "Text")),
        ("z.md".to_owned(), "no frontmatter".to_owned()),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let catalog = common::cached(skills(&files));
    let seen = |view: &View| -> Vec<String> {
        view.diagnostics()
            .map(|found| format!("{} {}", found.code.as_str(), found.path.as_deref().unwrap()))
            .collect()
    };
    assert_eq!(seen(&view(&catalog, "p", &[], None)), ["name_differs /s/x/a.md"]);
    assert_eq!(
        seen(&view(&catalog, "p", &["secret"], None)),
        ["name_differs /s/x/a.md", "name_differs /s/x/b.md", "duplicate_name /s/y/open.md"]
    );
    assert_eq!(seen(&View::new(catalog.clone(), &Profile::unrestricted()).unwrap()).len(), 4);
}

#[test]
fn visible_sets_are_computed_once() {
    let catalog = catalog();
    let prompt = |view: &View| Arc::as_ptr(view.prompt());
    assert_eq!(prompt(&view(&catalog, "p", &[], None)), prompt(&view(&catalog, "p", &[], None)));
    assert_ne!(prompt(&view(&catalog, "p", &[], None)), prompt(&view(&catalog, "q", &[], None)));
    // Many thousands of profiles are cached: with more, the first is forgotten, and made again.
    let first = view(&catalog, "first", &[], None);
    let others = |numbers: std::ops::Range<u32>| {
        numbers.for_each(|number| drop(view(&catalog, &number.to_string(), &[], None)));
    };
    others(0..1000);
    assert!(first.is_same(&view(&catalog, "first", &[], None)));
    others(1000..20_000);
    let again = view(&catalog, "first", &[], None);
    assert!(!first.is_same(&again) && first.prompt() == again.prompt());
}

#[test]
fn a_prompt_stays_while_its_profile_sees_the_same() {
    let generation = |open: &str, secret: &str| {
        let files = [
            ("open.md", doc("open", "", open)),
            ("a.md", doc("a", "visibility_labels: [secret]\n", secret)),
        ];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        common::cached(skills(&files))
    };
    let prompt = |catalog: &Arc<CachedCatalog>, grants: &[&str]| {
        view(catalog, "p", grants, None).prompt().clone()
    };
    let catalogs = [
        generation("Text", "Text"),
        generation("Text", "Another"),
        generation("Another", "Another"),
    ];
    let mut seen: Vec<[Arc<str>; 2]> = Vec::new();
    for (number, catalog) in catalogs.iter().enumerate() {
        if number > 0 {
            catalog.follow(&catalogs[number - 1]);
        }
        seen.push([&[][..], &["secret"]].map(|grants| prompt(catalog, grants)));
    }
    let same = |of: usize, grants: usize| Arc::ptr_eq(&seen[of][grants], &seen[of + 1][grants]);
    assert_eq!([same(0, 0), same(0, 1), same(1, 0), same(1, 1)], [true, false, false, false]);
    assert_ne!(seen[0][0], seen[0][1]);
}

#[test]
fn labels_and_grants_meet_as_sets() {
    let labels = |labels: &str| format!("visibility_labels: [{labels}]\n");
    let files = [
        ("bus", ""),
        ("journal", "private_to_ann"),
        ("family-medical", "sensitive"),
        ("ann-medical", "private_to_ann, sensitive"),
        ("stranger", "external_input"),
        ("dinner", "family_only"),
    ];
    let files: Vec<_> =
        files.map(|(name, given)| (format!("{name}.md"), doc(name, &labels(given), ""))).into();
    let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
    let catalog = common::cached(skills(&files));
    let rows: [(&[&str], &[&str]); 5] = [
        (
            &["private_to_ann", "private_to_bob", "family_only", "sensitive"],
            &["ann-medical", "bus", "dinner", "family-medical", "journal"],
        ),
        (&["private_to_bob", "family_only", "sensitive"], &["bus", "dinner", "family-medical"]),
        (&["external_input"], &["bus", "stranger"]),
        (&["family_only"], &["bus", "dinner"]),
        (&[], &["bus"]),
    ];
    for (grants, expected) in rows {
        assert_eq!(names(&view(&catalog, "p", grants, None)), expected, "{grants:?}");
    }
}

/// One row for each way through the rule: labels, excluded, proactive, default.
#[test]
fn visibility_is_decided_in_one_order() {
    const FOR: &str = "proactive_for_profile_ids: [p]\n";
    const NOT_FOR: &str = "exclude_from_prompt_profile_ids: [p]\n";
    const OUT: &str = "include_in_prompt: false\n";
    const LABEL: &str = "visibility_labels: [red]\n";
    // The fields; then for a skill and for a note whether it is shown and whether it is in the
    // prompt.
    type Row<'a> = (&'a [&'a str], [(bool, bool); 2]);
    let rows: [Row; 10] = [
        (&[], [(true, true), (true, true)]),
        (&[OUT], [(true, false), (true, false)]),
        (&["include_in_prompt_default: false\n"], [(true, false), (true, false)]),
        (
            &["include_in_prompt: true\ninclude_in_prompt_default: false\n"],
            [(true, true), (true, true)],
        ),
        (&[OUT, FOR], [(true, true), (true, true)]),
        (&[OUT, "proactive_for_profile_ids: [q]\n"], [(true, false), (true, false)]),
        (&[NOT_FOR], [(false, false), (true, false)]),
        (&[NOT_FOR, FOR], [(false, false), (true, false)]),
        (&[LABEL, FOR], [(false, false), (false, false)]),
        (&["exclude_from_prompt_profile_ids: [q]\n"], [(true, true), (true, true)]),
    ];
    for (fields, expected) in rows {
        let skill = doc("x", &fields.concat(), "");
        let note = format!(
            "---\n{}---\nText\n",
            if fields.is_empty() { "title: x\n".into() } else { fields.concat() }
        );
        for ((kind, text), (shown, in_prompt)) in
            [(SourceKind::Skills, skill), (SourceKind::Notes, note)].into_iter().zip(expected)
        {
            let source = source_of(
                Source { name: "s".into(), kind, ..Source::default() },
                &[("x.md", &text)],
            );
            let view = view(&common::cached(Catalog::build(1, vec![source])), "p", &[], None);
            let found = view.find("x");
            assert_eq!(
                (found.is_some(), found.is_some_and(|id| view.in_prompt(id))),
                (shown, in_prompt),
                "{text}"
            );
        }
    }
}

#[test]
fn tools_must_be_allowed_by_both_sides() {
    let list =
        |tools: &[&str]| -> Vec<String> { tools.iter().map(|tool| tool.to_string()).collect() };
    let files = [
        ("asks.md", doc("asks", "allowed-tools: Read Bash(git:*)\n", "")),
        ("silent.md", doc("silent", "", "")),
        ("empty.md", doc("empty", "allowed-tools: []\n", "")),
    ];
    let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
    type Tools<'a> = Option<&'a [&'a str]>;
    let rows: [(Trust, &str, Tools, Tools); 12] = [
        (Trust::Medium, "asks", None, Some(&["Read", "Bash(git:*)"])),
        (Trust::Medium, "asks", Some(&["Bash", "Write"]), Some(&["Bash(git:*)"])),
        (Trust::Medium, "asks", Some(&[]), Some(&[])),
        (Trust::Medium, "silent", None, None),
        (Trust::Medium, "silent", Some(&["Bash", "Write"]), Some(&["Bash", "Write"])),
        (Trust::Medium, "empty", None, Some(&[])),
        (Trust::Medium, "empty", Some(&["Bash"]), Some(&[])),
        (Trust::High, "asks", None, Some(&["Read", "Bash(git:*)"])),
        (Trust::Low, "asks", None, Some(&[])),
        (Trust::Low, "asks", Some(&["Bash"]), Some(&["Bash(git:*)"])),
        (Trust::Low, "silent", None, Some(&[])),
        (Trust::Low, "silent", Some(&["Bash"]), Some(&["Bash"])),
    ];
    for (trust, name, profile, expected) in rows {
        let source = source_of(Source { name: "s".into(), trust, ..Source::default() }, &files);
        let view = all(Catalog::build(1, vec![source]));
        let tools = view.tools(view.find(name).unwrap(), profile.map(list).as_deref());
        assert_eq!(tools, expected.map(list), "{trust:?} {name} {profile:?}");
    }
}
