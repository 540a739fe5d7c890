//! Whatever the labels, grants and globs: nothing that can be read through a view tells of an entry that it does not show.

mod common;

use std::sync::Arc;

use common::{source, view};
use proptest::prelude::*;
use skillbook_core::catalog::{Catalog, EntryId};
use skillbook_core::entry::{Entry, SourceKind};
use skillbook_core::help::Help;
use skillbook_core::prompt::{Limit, Options, Placement, Reason, Section};
use skillbook_core::search::Query;
use skillbook_core::view::View;

const LABELS: [&str; 3] = ["red", "green", "blue"];

#[derive(Debug, Clone)]
struct Spec {
    kind: u8,
    domain: u8,
    labels: Vec<&'static str>,
    in_prompt: bool,
    excluded: bool,
    shares_alias: bool,
    wrong_name: bool,
    /// The number of another entry whose name this one takes, in a later source.
    replaces: Option<usize>,
}

fn labels() -> impl Strategy<Value = Vec<&'static str>> {
    proptest::sample::subsequence(LABELS.to_vec(), 0..=LABELS.len())
}

fn spec() -> impl Strategy<Value = Spec> {
    let flags = (any::<bool>(), proptest::bool::weighted(0.2), any::<bool>(), any::<bool>());
    let replaces = proptest::option::weighted(0.2, 0..6usize);
    (0..4u8, 0..2u8, labels(), flags, replaces).prop_map(|(kind, domain, labels, flags, replaces)| Spec {
        kind,
        domain,
        labels,
        in_prompt: flags.0,
        excluded: flags.1,
        shares_alias: flags.2,
        wrong_name: flags.3,
        replaces,
    })
}

/// A word that only the document of this number holds.
fn marker(number: usize) -> String {
    format!("zq{}qz", (b'a' + number as u8) as char)
}

fn name(number: usize, spec: &Spec) -> String {
    match spec.kind {
        0 | 1 => format!("dom{}.{}", spec.domain, marker(number)),
        _ => format!("skill-{}", marker(number)),
    }
}

/// The name under which a document is an entry: its own or one that it takes.
fn used_name(number: usize, specs: &[Spec]) -> String {
    let spec = &specs[number];
    let taken = spec.replaces.filter(|other| *other < specs.len() && spec.kind != 3);
    taken.map_or_else(|| name(number, spec), |other| name(other, &specs[other]))
}

fn document(number: usize, specs: &[Spec]) -> (String, String) {
    let (mark, spec) = (marker(number), &specs[number]);
    let name = used_name(number, specs);
    let mut text = format!(
        "---\ndescription: About {mark}\ntitle: Title {mark}\ntags: [{mark}]\nallowed-tools: {mark}\nhandler: {mark}\n"
    );
    if spec.kind != 3 {
        text += &format!("name: {name}\n");
    }
    text += &format!("visibility_labels: [{}]\ninclude_in_prompt: {}\n", spec.labels.join(", "), spec.in_prompt);
    if spec.excluded {
        text += "exclude_from_prompt_profile_ids: [reader]\n";
    }
    text += &format!("aliases: [alias-{mark}{}]\n", if spec.shares_alias { ", shared" } else { "" });
    text += &format!("---\n\n# {name}\n\n{mark}\n\n## Usage\n\n{name} --{mark}\n\n## Flags\n\n--{mark}  A word\n");
    let file = if spec.wrong_name { format!("other-{mark}") } else { mark.clone() };
    let path = match spec.kind {
        0 | 1 => format!("dom{}/{file}.md", spec.domain),
        2 => format!("skill-{mark}/SKILL.md"),
        _ => format!("skill-{mark}.md"),
    };
    (path, text)
}

/// Everything that can be read through a view, in one text.
fn everything(view: &View, names: &[String]) -> String {
    let mut out = format!("{}\n", view.count());
    let mut entry = |entry: &Entry| out += &format!("{entry:?}");
    view.entries().for_each(|(_, found)| entry(found));
    for name in names {
        if let Some(found) = view.find(name).and_then(|id| view.entry(id)) {
            entry(found);
        }
    }
    let mut paths: Vec<String> = ["", "shared", "dom0", "dom1", "dom0.all", "dom1.all"].map(String::from).into();
    paths.push("both".into());
    for name in names {
        let mark = name.rsplit(['.', '-']).next().unwrap_or_default();
        paths.extend([format!("both/{mark}.md"), format!("both/other-{mark}.md")]);
        paths.extend([name.clone(), format!("{name}.all"), format!("{name}/file-{name}.txt")]);
    }
    for path in &paths {
        out += &match view.help(path) {
            Some(Help::Text(text)) => text,
            Some(Help::File { file, .. }) => file,
            None => String::new(),
        };
        let parts = [view.help_domain(path), view.help_skill(path), view.help_domain_all(path)];
        out += &parts.into_iter().flatten().collect::<String>();
        out += &view.suggest(path).join(" ");
        out += &view.suggest(&format!("{path}x")).join(" ");
    }
    let marks = names.iter().filter_map(|name| name.rsplit(['.', '-']).next());
    for query in names.iter().map(String::as_str).chain(marks).chain(["zq", "about title", "usage shared zqxqz", "dom"])
    {
        for hit in view.search(&Query { limit: 100, ..Query::new(query) }) {
            let name = view.entry(hit.id).map(|entry| &entry.name);
            out += &format!("{name:?} {} {}\n", hit.score, hit.snippet.text);
        }
    }
    for domain in view.domains() {
        out += &format!("{} {} {}", domain.name(), domain.description(), domain.body());
    }
    out += view.prompt();
    let all = Options { sections: Section::ALL.to_vec(), preloaded: names.to_vec(), limit: Limit::default() };
    for chars in [None, Some(2_500), Some(1_500), Some(150)] {
        out += &view.prompt_with(&Options { limit: Limit { chars, tokens: None }, ..all.clone() });
    }
    let nothing = common::view(&Arc::new(common::skills(&[])), "reader", &[], None);
    out += &view.news_since(&nothing);
    out += &nothing.news_since(view);
    let ids = (0..view.catalog().entries().len() as u32).map(EntryId);
    for id in ids.filter(|id| !view.shows(*id)) {
        let told = (view.placement(&all, id), view.tools(id, None), view.tools(id, Some(&["*".to_owned()])));
        assert_eq!(told, (Placement::NotInPrompt(Reason::NotShown), Some(Vec::new()), Some(Vec::new())));
        assert_eq!(view.declaration(id), None);
    }
    for name in names {
        out += &format!("{:?}", view.find(name).map(|id| (view.tools(id, None), view.declaration(id))));
    }
    out += &view.diagnostics().map(|found| format!("{found:?}")).collect::<String>();
    out
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn a_view_tells_nothing_of_what_it_hides(
        specs in proptest::collection::vec(spec(), 1..7),
        source_labels in labels(),
        index_labels in labels(),
        grants in labels(),
        allowed in proptest::option::weighted(0.3, proptest::sample::subsequence(vec!["dom0.*", "skill-*", "*a*"], 1..3)),
    ) {
        let documents: Vec<_> = (0..specs.len()).map(|at| document(at, &specs)).collect();
        let names: Vec<_> = (0..specs.len()).flat_map(|at| [used_name(at, &specs), format!("alias-{}", marker(at))]).collect();
        // The index's author lists every entry by its name and its alias; a document that lost its name has none.
        let lost = |at: usize| (0..specs.len()).any(|other| other != at && used_name(other, &specs) == used_name(at, &specs));
        let listed = names.iter().enumerate().filter(|(place, _)| place % 2 == 0 || !lost(place / 2));
        let lines: String = listed.map(|(_, name)| format!("| {name} | in the table |\n")).collect();
        let index = format!(
            "---\ndomain: dom0\ndescription: zqIqz\nvisibility_labels: [{}]\n---\n{lines}zqIqz\n",
            index_labels.join(", ")
        );
        let extra: Vec<_> = (0..specs.len()).map(|at| format!("skill-{0}/file-skill-{0}.txt", marker(at))).collect();
        let in_later = |at: usize| specs[at].replaces.is_some();
        let files = |later: bool| -> Vec<(&str, &str)> {
            let own = (0..specs.len()).filter(|at| in_later(*at) == later);
            own.flat_map(|at| [(documents[at].0.as_str(), documents[at].1.as_str()), (extra[at].as_str(), "")]).collect()
        };
        let mut first = files(false);
        first.push(("dom0/SKILL.md", &index));
        // A skill and a domain at once: its commands' pages lie beside the skill's own files.
        first.push(("dom1/SKILL.md", "---\nname: both\ndomain: dom1\ndescription: d\n---\nText.\n"));
        let later = files(true);
        let catalog = Arc::new(Catalog::build(1, vec![
            source("s", SourceKind::Skills, &[], &first),
            source("t", SourceKind::Notes, &source_labels, &later),
        ]));
        let view = view(&catalog, "reader", &grants, allowed.as_deref());
        let text = everything(&view, &names);

        for (at, spec) in specs.iter().enumerate() {
            let mut labels = spec.labels.clone();
            if in_later(at) {
                labels.extend(&source_labels);
            }
            // Decided here once more, apart from the code under test.
            let name = used_name(at, &specs);
            let is_note = spec.kind == 3 && in_later(at);
            let shown = labels.iter().all(|label| grants.contains(label))
                && (is_note || !spec.excluded)
                && allowed.as_ref().is_none_or(|globs| globs.iter().any(|glob| match *glob {
                    "dom0.*" => name.starts_with("dom0."),
                    "skill-*" => name.starts_with("skill-"),
                    _ => name.contains('a'),
                }));
            // A document's marker is also part of the name that another one may have taken from it.
            let lent = specs.iter().any(|other| other.replaces == Some(at));
            if !shown && !lent {
                let found = text.lines().find(|line| line.contains(&marker(at)));
                prop_assert_eq!(found, None);
            }
        }
        if !index_labels.iter().all(|label| grants.contains(label)) {
            prop_assert!(!text.contains("zqIqz"), "the index is shown");
        }
        // What is hidden and what was never written have the same answers.
        for name in &names {
            if view.find(name).is_none() && view.domain(name).is_none() {
                prop_assert_eq!(view.help(name), None);
            }
        }
    }
}

/// A document that speaks of others: its labels, and the numbers of those that it requires, links to and shares an alias with.
#[derive(Debug, Clone)]
struct Related {
    labels: Vec<&'static str>,
    requires: Vec<usize>,
    links: Vec<usize>,
    alias: Option<usize>,
    is_command: bool,
}

fn related() -> impl Strategy<Value = Related> {
    let others = || proptest::collection::vec(0..6usize, 0..3);
    (labels(), others(), others(), proptest::option::of(0..6usize), any::<bool>())
        .prop_map(|(labels, requires, links, alias, is_command)| Related { labels, requires, links, alias, is_command })
}

fn related_name(number: usize, all: &[Related]) -> String {
    match all.get(number) {
        Some(spec) if spec.is_command => format!("dom.{}", marker(number)),
        _ => format!("skill-{}", marker(number)),
    }
}

fn related_files(number: usize, all: &[Related]) -> Vec<(String, String)> {
    let (spec, name) = (&all[number], related_name(number, all));
    let requires: Vec<_> = spec.requires.iter().map(|other| related_name(*other, all)).collect();
    // The alias is a word of its own, or another entry's name.
    let alias = spec.alias.map_or_else(|| "shared".to_owned(), |other| related_name(other, all));
    let link = |other: &usize| {
        format!("[a](../skill-{0}/SKILL.md) [b](../skill-{0}/file.txt) [c](../dom/{0}.md)\n", marker(*other))
    };
    let links: String = spec.links.iter().map(link).collect();
    let text = format!(
        "---\nname: {name}\ndescription: d\nvisibility_labels: [{}]\nrequires: [{}]\naliases: [{alias}]\n---\n{links}",
        spec.labels.join(", "),
        requires.join(", ")
    );
    match spec.is_command {
        true => vec![(format!("dom/{}.md", marker(number)), text)],
        false => vec![(format!("{name}/SKILL.md"), text), (format!("{name}/file.txt"), String::new())],
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn what_is_hidden_is_as_if_it_had_never_been_written(
        specs in proptest::collection::vec(related(), 1..7),
        grants in labels(),
    ) {
        let shown = |at: &usize| specs[*at].labels.iter().all(|label| grants.contains(label));
        let read = |numbers: &mut dyn Iterator<Item = usize>| {
            let files: Vec<_> = numbers.flat_map(|at| related_files(at, &specs)).collect();
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let catalog = Arc::new(Catalog::build(1, vec![source("s", SourceKind::Skills, &[], &files)]));
            let names: Vec<_> = (0..specs.len()).map(|at| related_name(at, &specs)).collect();
            everything(&view(&catalog, "reader", &grants, None), &names)
        };
        prop_assert_eq!(read(&mut (0..specs.len())), read(&mut (0..specs.len()).filter(shown)));
    }
}
