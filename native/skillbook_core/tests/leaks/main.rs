//! Nothing that can be read through a view reveals a hidden entry, with any labels, grants, globs
//! and trust.
//!
//! One property searches everything that a view returns for words of hidden documents. The other
//! compares the view with that of a catalog without the hidden documents: both must return the
//! same.

#[path = "../common/mod.rs"]
mod common;
mod everything;
mod parts;
mod spec;
mod world;

use common::{source, view};
use proptest::prelude::*;
use skillbook_core::catalog::Catalog;
use skillbook_core::source::SourceKind;

use everything::*;
use spec::*;
use world::*;

proptest! {
    #[test]
    fn no_word_of_a_hidden_document_shows(
        specs in proptest::collection::vec(spec(), 1..7),
        source_labels in labels(),
        index_labels in labels(),
        grants in labels(),
        allowed in proptest::option::weighted(
            0.3,
            proptest::sample::subsequence(vec!["dom0.*", "skill-*", "*a*"], 1..3),
        ),
    ) {
        let documents: Vec<_> = (0..specs.len()).map(|at| document(at, &specs)).collect();
        let names: Vec<_> = (0..specs.len())
            .flat_map(|at| [used_name(at, &specs), format!("alias-{}", marker(at))])
            .collect();
        // The author of the index lists every entry by name and alias.
        let lines: String =
            names.iter().map(|name| format!("| {name} | in the table |\n")).collect();
        // The table is rendered under this heading, with the author's header or without.
        let heading =
            ["", "## Available Skills\n", "  ##  Available Skills\n\n| A | B |\n|---|---|\n"]
                [specs.len() % 3];
        let index = format!(
            "---\ndomain: dom0\ndescription: zqIqz\nvisibility_labels: \
             [{}]\n---\n{heading}{lines}zqIqz\n",
            index_labels.join(", ")
        );
        let extra: Vec<_> = (0..specs.len())
            .map(|at| format!("skill-{0}/file-skill-{0}.txt", marker(at)))
            .collect();
        let in_later = |at: usize| specs[at].replaces.is_some();
        let files = |later: bool| -> Vec<(&str, &str)> {
            let own = (0..specs.len()).filter(|at| in_later(*at) == later);
            own.flat_map(|at| {
                [(documents[at].0.as_str(), documents[at].1.as_str()), (extra[at].as_str(), "")]
            })
            .collect()
        };
        let mut first = files(false);
        first.push(("dom0/SKILL.md", &index));
        // A skill that is also a domain: pages of commands lie beside the skill's own files.
        first
            .push(("dom1/SKILL.md", "---\nname: both\ndomain: dom1\ndescription: d\n---\nText.\n"));
        let later = files(true);
        let catalog = common::cached(Catalog::build(
            1,
            vec![
                source("s", SourceKind::Skills, &[], &first),
                source("t", SourceKind::Notes, &source_labels, &later),
            ],
        ));
        let view = view(&catalog, "reader", &grants, allowed.as_deref());
        let text = everything(&view, &names);

        for (at, spec) in specs.iter().enumerate() {
            let mut labels = spec.labels.clone();
            if in_later(at) {
                labels.extend(&source_labels);
            }
            // A second implementation, independent of the code under test.
            let name = used_name(at, &specs);
            let is_note = spec.kind == 3 && in_later(at);
            let shown = labels.iter().all(|label| grants.contains(label))
                && (is_note || !spec.excluded)
                && allowed.as_ref().is_none_or(|globs| {
                    globs.iter().any(|glob| match *glob {
                        "dom0.*" => name.starts_with("dom0."),
                        "skill-*" => name.starts_with("skill-"),
                        _ => name.contains('a'),
                    })
                });
            // A document's marker is also part of the name that another document may have taken
            // from it.
            let lent = specs.iter().any(|other| other.replaces == Some(at));
            if !shown && !lent {
                let found = text.lines().find(|line| line.contains(&marker(at)));
                prop_assert_eq!(found, None);
            }
        }
        if !index_labels.iter().all(|label| grants.contains(label)) {
            prop_assert!(!text.contains("zqIqz"), "the index is shown");
        }
        // Hidden and missing entries have the same answers.
        for name in &names {
            if view.find(name).is_none() && view.domain(name).is_none() {
                prop_assert_eq!(view.help(name), None);
            }
        }
    }
}

fn first_difference(a: &str, b: &str) -> Option<(String, String)> {
    let (mut a, mut b) = (a.lines(), b.lines());
    loop {
        match (a.next(), b.next()) {
            (None, None) => return None,
            (a, b) if a == b => {}
            (a, b) => {
                return Some((a.unwrap_or_default().to_owned(), b.unwrap_or_default().to_owned()))
            }
        }
    }
}

proptest! {
    // Each case reads six whole catalogs. PROPTEST_CASES counts here too, for a long run.
    #![proptest_config({
        let default = ProptestConfig::default();
        ProptestConfig { cases: default.cases.div_ceil(8), ..default }
    })]

    #[test]
    fn hidden_entries_equal_missing_ones(
        folders in proptest::collection::vec(folder(), 4),
        members in proptest::collection::vec(member(), 1..9),
        edits in proptest::collection::vec(edit(), 9),
        reader in reader("reader"),
        other in reader("other"),
    ) {
        let before = World { folders, members };
        let mut after = before.clone();
        // A deleted document keeps its number, so that markers and paths stay the same.
        for (member, edit) in after.members.iter_mut().zip(&edits) {
            match edit {
                Some((labels, in_prompt)) => {
                    member.page.labels = labels.clone();
                    member.page.in_prompt = *in_prompt;
                }
                None => member.page.labels = vec!["nobody's"],
            }
        }
        for (folder, edit) in after.folders.iter_mut().zip(edits.iter().rev()) {
            match (&mut folder.index, edit) {
                (Some(index), Some((labels, _))) => index.labels = labels.clone(),
                _ => folder.index = None,
            }
        }
        let names = before.names();
        let same = |what: &str, texts: [String; 2]| {
            let difference = first_difference(&texts[0], &texts[1]);
            prop_assert_eq!(difference, None, "{}", what);
            Ok(())
        };
        let old = before.views(1, &reader);
        let new = after.views(2, &reader);
        let others = after.views(2, &other);
        for (old, new) in old.iter().zip(&new) {
            new.catalog().follow(old.catalog());
        }
        for (world, reader, [view, _]) in
            [(&before, &reader, &old), (&after, &reader, &new), (&after, &other, &others)]
        {
            let used = world.used(reader).into_iter().filter(|at| !world.is_note(*at));
            let mut used: Vec<_> = used.map(|at| format!("About {}", marker(at))).collect();
            let shown = view.entries().filter(|(_, entry)| !entry.name.starts_with("note-"));
            let mut shown: Vec<_> =
                shown.map(|(_, entry)| entry.description().to_owned()).collect();
            used.sort();
            shown.sort();
            prop_assert_eq!(shown, used);
        }
        for views in [&old, &new, &others] {
            same("everything", views.each_ref().map(|view| everything(view, &names)))?;
        }
        // A view's number changes exactly if something that it shows has changed: all between the
        // first line, which is the number, and the diagnostics, which are also about files that no
        // glob selects.
        let texts = [&old[0], &new[0]].map(|view| everything(view, &names));
        let shown = texts.each_ref().map(|text| {
            let end = text.rfind(DIAGNOSTICS).unwrap_or(text.len());
            text[..end].split_once('\n').map(|(_, rest)| rest.to_owned())
        });
        prop_assert_eq!(old[0].generation() == new[0].generation(), shown[0] == shown[1]);
        same("news", [0, 1].map(|at| new[at].news_since(&old[at])))?;
        same("news of another profile", [0, 1].map(|at| others[at].news_since(&old[at])))?;
    }
}
