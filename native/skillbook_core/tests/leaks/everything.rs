//! Everything that can be read through a view, as one text.

use crate::spec::*;
use skillbook_core::catalog::entry::Entry;
use skillbook_core::catalog::EntryId;
use skillbook_core::lint::lint;
use skillbook_core::prompt::{Format, Limit, Options, Placement, Reason, Section};
use skillbook_core::search::embedded;
use skillbook_core::search::vectors::Vectors;
use skillbook_core::source::Kind;
use skillbook_core::view::help::Help;
use skillbook_core::view::search::{Meaning, Query};
use skillbook_core::view::tools::allows;
use skillbook_core::view::View;

/// The line before the diagnostics in [`everything`].
pub const DIAGNOSTICS: &str = "Diagnostics\n";

/// Everything that can be read through a view, in one text. Left out are functions for trusted code
/// (`catalog`, and the files of `explain`), and those that say nothing about documents (`profile`).
pub fn everything(view: &View, names: &[String]) -> String {
    let mut out = format!("{} of generation {}\n", view.count(), view.generation());
    let ids = || (0..view.catalog().entries().len() as u32 + 1).map(EntryId);
    for (id, entry) in view.entries() {
        // `digest` is in the number of the generation above.
        let Entry {
            name,
            kind,
            domain,
            title,
            labels,
            source,
            trust,
            document,
            selection,
            files,
            ..
        } = &**entry;
        out += &format!(
            "{name} {kind:?} {domain:?} {title:?} {labels:?} {} {document:?} {selection:?}",
            source.name
        );
        out += &format!("{files:?} {trust:?} {:?} {:?} ", entry.handler(), entry.schedule());
        out += &format!("{} {} {}\n", view.shows(id), view.lists(id), view.in_prompt(id));
    }
    for unused in view.unused() {
        let told = [unused.id, unused.by]
            .map(|id| view.catalog().entry(id))
            .map(|entry| (&entry.name, &entry.document));
        out += &format!("{told:?} {:?} {}\n", unused.why, view.shows(unused.id));
    }
    out += &format!("{:?}\n", view.listed().map(|(_, entry)| &entry.name).collect::<Vec<_>>());
    for (number, name) in names.iter().enumerate() {
        let ways = [view.find(name), view.find_named(name), view.find_aliased(name)];
        let found = ways.map(|id| id.and_then(|id| view.entry(id)));
        out += &format!(
            "{number}: {:?}\n",
            found.map(|entry| entry.map(|entry| (&entry.name, &entry.document.path)))
        );
        let spellings = [name.to_uppercase(), name.replace(['.', '-'], " ")];
        out += &format!("{:?}\n", spellings.each_ref().map(|text| view.spelled(text)));
    }
    helps(view, names, &mut out);
    searches(view, names, &mut out);
    reasons(view, names, &mut out);
    picks(view, names, &mut out);
    domains(view, &mut out);
    prompts(view, names, &mut out);
    for id in ids().filter(|id| !view.shows(*id)) {
        let told = (
            view.placement(&whole(names), id),
            view.tools(id, None),
            view.tools(id, Some(&["*".to_owned()])),
        );
        assert_eq!(
            told,
            (Placement::NotInPrompt(Reason::NotShown), Some(Vec::new()), Some(Vec::new()))
        );
        assert!(view.entry(id).is_none() && !view.lists(id) && !view.in_prompt(id));
        assert!(!view.may_pick(id));
    }
    for id in names.iter().filter_map(|name| view.find(name)) {
        let tools = [None, Some(&["*".to_owned()][..]), Some(&["Read".to_owned()])]
            .map(|tools| view.tools(id, tools));
        let allowed = tools
            .each_ref()
            .map(|tools| tools.as_ref().is_none_or(|tools| allows(tools, "Read", Some("x"))));
        let declared = view.entry(id).and_then(|entry| entry.declaration());
        out += &format!("{tools:?} {allowed:?} {declared:?}\n");
    }
    let told: String = view.diagnostics().map(|found| format!("{found:?}\n")).collect();
    out + DIAGNOSTICS + &told + &format!("{:?}", lint(view))
}

pub fn helps(view: &View, names: &[String], out: &mut String) {
    let mut paths: Vec<String> =
        ["", " ", "shared", "dom", "dom0", "dom1", "both", "nothing"].map(String::from).into();
    for name in names {
        let mark = name.rsplit(['.', '-']).next().unwrap_or_default();
        paths.extend([
            format!("both/{mark}.md"),
            format!("both/other-{mark}.md"),
            format!("{name}/file.txt"),
        ]);
        paths.extend([name.clone(), format!("{name}.all"), format!("{name}/file-{name}.txt")]);
    }
    *out += &view.help_top_level();
    paths.extend(["dom.all", "dom0.all", "dom1.all"].map(String::from));
    for (number, path) in paths.iter().enumerate() {
        *out += &match view.help(path) {
            Some(Help::Text(text)) => text,
            Some(Help::File { file, .. }) => file,
            None => "nothing".to_owned(),
        };
        let parts = [view.help_domain(path), view.help_skill(path), view.help_domain_all(path)];
        *out += &format!("{number}: {parts:?}\n");
        // As written, misspelt, in part, and with the words in another order.
        let turned: Vec<_> = path.split(['.', '-']).rev().collect();
        let slip: String =
            path.chars().take(1).chain("x".chars()).chain(path.chars().skip(1)).collect();
        for asked in [
            path.clone(),
            format!("{path}x"),
            slip,
            path.chars().skip(1).collect(),
            turned.join("_"),
        ] {
            *out += &format!("{:?} {:?}\n", view.suggest(&asked), view.suggest_path(&asked));
            *out += &format!("{:?}\n", view.suggest_stored(&asked));
        }
    }
}

/// The entries that the router may load, and those with a keyword in a text.
pub fn picks(view: &View, names: &[String], out: &mut String) {
    let named = |id| view.entry(id).map(|entry| &entry.name);
    let pickable = view.pickable().map(|(_, entry)| &entry.name);
    *out += &format!("{:?}\n", pickable.collect::<Vec<_>>());
    let may = view.entries().filter(|(id, _)| view.may_pick(*id));
    *out += &format!("{:?}\n", may.map(|(_, entry)| &entry.name).collect::<Vec<_>>());
    *out += &format!("{:?}\n", view.proactive().map(named).collect::<Vec<_>>());
    let marks = names.iter().filter_map(|name| name.rsplit(['.', '-']).next());
    let keywords: Vec<_> = marks.map(|mark| format!("k{mark}")).collect();
    for text in keywords.iter().cloned().chain([keywords.join(", ")]) {
        for found in view.triggered(&text) {
            *out += &format!("{:?} {}\n", named(found.id), found.keyword);
        }
    }
}

/// A vector that a text always has: most of its numbers are its own, one is common to all.
fn vector(text: &str) -> Vec<f32> {
    let digest = embedded::digest_of(text);
    let numbers: Vec<f32> =
        digest.iter().map(|byte| f32::from(*byte) / 128.0 - 1.0).chain([1.5]).collect();
    let length = numbers.iter().map(|number| number * number).sum::<f32>().sqrt();
    numbers.iter().map(|number| number / length).collect()
}

/// The vectors of a catalog's entries, hidden or not, in the order of their names; of all, or of
/// about two in three.
fn vectors(view: &View, all: bool) -> Vectors {
    let vectors = Vectors::new();
    for entry in view.catalog().entries().iter().filter(|entry| embedded::wanted(entry)) {
        let digest = embedded::digest(entry);
        if all || !digest[0].is_multiple_of(3) {
            vectors.put(&[(*digest, &vector(&embedded::text(entry)))]).unwrap();
        }
    }
    vectors
}

pub fn searches(view: &View, names: &[String], out: &mut String) {
    let marks = names.iter().filter_map(|name| name.rsplit(['.', '-']).next());
    let others = [
        "zq",
        "about title",
        "usage shared zqxqz",
        "a longer request about all of this",
        "dom",
        "skil",
        "sklil",
        "abuot",
        "zqaqx zqbqz",
        "",
    ];
    let stores = [vectors(view, true), vectors(view, false)];
    for query in names.iter().map(String::as_str).chain(marks).chain(others) {
        let vector = vector(query);
        let meanings = stores.iter().map(|vectors| Some(Meaning { vector: &vector, vectors }));
        let whole = Query { limit: 100, ..Query::new(query) };
        let tags = [marker(0)];
        let narrower = [
            Query { limit: 2, ..whole },
            Query { kind: Some(Kind::Skill), ..whole },
            Query { domain: Some("dom"), ..whole },
            Query { tags: &tags, ..whole },
        ];
        for query in [whole].into_iter().chain(narrower) {
            for meaning in meanings.clone().chain([None]) {
                let query = Query { meaning, ..query };
                for hit in view.search(&query) {
                    let name = view.entry(hit.id).map(|entry| &entry.name);
                    *out += &format!("{name:?} {} {:?}\n", hit.score, hit.snippet);
                }
                for found in view.candidates(&query) {
                    let name = view.entry(found.id).map(|entry| &entry.name);
                    let parts = (found.score, found.words, found.similarity);
                    *out += &format!("{name:?} {parts:?}\n");
                }
            }
        }
    }
    *out += &format!("{:?}\n", stores.each_ref().map(|vectors| view.embedded(vectors)));
}

pub fn reasons(view: &View, names: &[String], out: &mut String) {
    let ids: Vec<EntryId> = names.iter().filter_map(|name| view.find(name)).collect();
    for request in names.iter().map(String::as_str).chain(["about words", "usage shared title"]) {
        for pulls in view.why(request, &ids) {
            // A word is the caller's own, at its place in the request.
            let parts = pulls.iter().map(|pull| (request.find(&pull.word), pull.part));
            *out += &format!("{:?}\n", parts.collect::<Vec<_>>());
        }
    }
    for (pair, cosine) in view.alike(&vectors(view, false), -1.0, 100) {
        let pair = pair.map(|id| view.entry(id).map(|entry| &entry.name));
        *out += &format!("{pair:?} {cosine}\n");
    }
    for rivals in view.rivals(0.0, 100) {
        let pair = rivals.pair.map(|id| view.entry(id).map(|entry| &entry.name));
        *out += &format!("{pair:?} {} {:?}\n", rivals.similarity, rivals.words);
    }
}

pub fn domains(view: &View, out: &mut String) {
    let named = ["dom", "dom0", "dom1", "nothing"].into_iter().filter_map(|name| view.domain(name));
    for domain in view.domains().chain(named) {
        let entries: Vec<_> = domain.entries().map(|(_, entry)| &entry.name).collect();
        let listed: Vec<_> = domain.listed().map(|(_, entry)| &entry.name).collect();
        let rest =
            (domain.path(), domain.index().is_some(), domain.is_listed(), domain.in_prompt());
        *out += &format!("{} {} {} ", domain.name(), domain.description(), domain.body());
        *out += &format!("{entries:?} {listed:?} {rest:?}\n");
    }
}

pub fn whole(names: &[String]) -> Options {
    Options {
        sections: Section::ALL.to_vec(),
        preloaded: names.iter().take(2).cloned().collect(),
        nearest: names.iter().rev().cloned().collect(),
        used: names.iter().skip(1).cloned().collect(),
        limit: Limit::default(),
    }
}

pub fn prompts(view: &View, names: &[String], out: &mut String) {
    *out += view.prompt();
    let sections = Section::ALL.map(|section| Options { sections: vec![section], ..whole(names) });
    let formats = Format::ALL.map(Options::of);
    let cut = [(Some(2_500), None), (None, Some(500)), (Some(1_500), Some(350)), (Some(150), None)]
        .map(|(chars, tokens)| Options { limit: Limit { chars, tokens }, ..whole(names) });
    let unsorted = cut.clone().map(|options| Options { nearest: Vec::new(), ..options });
    let limited = cut.iter().chain(&unsorted);
    for options in [whole(names)].iter().chain(&sections).chain(&formats).chain(limited) {
        *out += &view.prompt_with(options);
    }
    for options in [&whole(names), &cut[1], &Options::of(Format::Xml)] {
        let ids = names.iter().filter_map(|name| view.find(name));
        *out += &format!("{:?}\n", ids.map(|id| view.placement(options, id)).collect::<Vec<_>>());
    }
    let nothing = crate::common::view(
        &crate::common::cached(crate::common::skills(&[])),
        "reader",
        &[],
        None,
    );
    *out += &view.news_since(&nothing);
    *out += &nothing.news_since(view);
}
