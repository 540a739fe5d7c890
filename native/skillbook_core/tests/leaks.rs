//! Whatever the labels, grants, globs and trust: nothing that can be read through a view tells of an entry that it does not
//! show. One property looks for words of hidden documents; the other compares the view with that of a catalog of which
//! nothing hidden was ever written.

mod common;

use std::sync::Arc;

use common::{source, view};
use proptest::prelude::*;
use skillbook_core::catalog::entry::Entry;
use skillbook_core::catalog::{Catalog, EntryId};
use skillbook_core::glob::Globs;
use skillbook_core::lint::lint;
use skillbook_core::prompt::{Format, Limit, Options, Placement, Reason, Section};
use skillbook_core::source::{Kind, Source, SourceKind, Trust};
use skillbook_core::view::help::Help;
use skillbook_core::view::search::Query;
use skillbook_core::view::tools::allows;
use skillbook_core::view::{CachedCatalog, View};

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
    (0..4u8, 0..2u8, labels(), flags, replaces).prop_map(
        |(kind, domain, labels, flags, replaces)| Spec {
            kind,
            domain,
            labels,
            in_prompt: flags.0,
            excluded: flags.1,
            shares_alias: flags.2,
            wrong_name: flags.3,
            replaces,
        },
    )
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
        "---\ndescription: About {mark}\ntitle: Title {mark}\ntags: [{mark}]\nallowed-tools: \
         {mark}\nhandler: {mark}\n"
    );
    if spec.kind != 3 {
        text += &format!("name: {name}\n");
    }
    text += &format!(
        "visibility_labels: [{}]\ninclude_in_prompt: {}\n",
        spec.labels.join(", "),
        spec.in_prompt
    );
    if spec.excluded {
        text += "exclude_from_prompt_profile_ids: [reader]\n";
    }
    text +=
        &format!("aliases: [alias-{mark}{}]\n", if spec.shares_alias { ", shared" } else { "" });
    text += &format!(
        "---\n\n# {name}\n\n{mark}\n\n## Usage\n\n{name} --{mark}\n\n## \
         Flags\n\n--{mark}  A word\n"
    );
    let file = if spec.wrong_name { format!("other-{mark}") } else { mark.clone() };
    let path = match spec.kind {
        0 | 1 => format!("dom{}/{file}.md", spec.domain),
        2 => format!("skill-{mark}/SKILL.md"),
        _ => format!("skill-{mark}.md"),
    };
    (path, text)
}

/// Everything that can be read through a view, in one text. Left out are what is for trusted code alone (`catalog`, what
/// `explain` says of files) and what tells of no document (`profile`).
fn everything(view: &View, names: &[String]) -> String {
    let mut out = format!("{} of generation {}\n", view.count(), view.generation());
    let ids = || (0..view.catalog().entries().len() as u32 + 1).map(EntryId);
    for (id, entry) in view.entries() {
        let Entry { name, kind, domain, title, labels, source, trust, document, selection, files } =
            &**entry;
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
    }
    helps(view, names, &mut out);
    searches(view, names, &mut out);
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
    out + &told + &format!("{:?}", lint(view))
}

fn helps(view: &View, names: &[String], out: &mut String) {
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
        // As it is written, with a slip, a part of it, and words of it in another order.
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
        }
    }
}

fn searches(view: &View, names: &[String], out: &mut String) {
    let marks = names.iter().filter_map(|name| name.rsplit(['.', '-']).next());
    let others = [
        "zq",
        "about title",
        "usage shared zqxqz",
        "dom",
        "skil",
        "sklil",
        "abuot",
        "zqaqx zqbqz",
        "",
    ];
    for query in names.iter().map(String::as_str).chain(marks).chain(others) {
        let whole = Query { limit: 100, ..Query::new(query) };
        let tags = [marker(0)];
        let narrower = [
            Query { limit: 2, ..whole },
            Query { kind: Some(Kind::Skill), ..whole },
            Query { domain: Some("dom"), ..whole },
            Query { tags: &tags, ..whole },
        ];
        for query in [whole].into_iter().chain(narrower) {
            for hit in view.search(&query) {
                let name = view.entry(hit.id).map(|entry| &entry.name);
                *out += &format!("{name:?} {} {:?}\n", hit.score, hit.snippet);
            }
        }
    }
}

fn domains(view: &View, out: &mut String) {
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

fn whole(names: &[String]) -> Options {
    Options { sections: Section::ALL.to_vec(), preloaded: names.to_vec(), limit: Limit::default() }
}

fn prompts(view: &View, names: &[String], out: &mut String) {
    *out += view.prompt();
    let sections = Section::ALL.map(|section| Options { sections: vec![section], ..whole(names) });
    let formats = Format::ALL.map(Options::of);
    let cut = [(Some(2_500), None), (None, Some(500)), (Some(1_500), Some(350)), (Some(150), None)]
        .map(|(chars, tokens)| Options { limit: Limit { chars, tokens }, ..whole(names) });
    for options in [whole(names)].iter().chain(&sections).chain(&formats).chain(&cut) {
        *out += &view.prompt_with(options);
    }
    for options in [&whole(names), &cut[1], &Options::of(Format::Xml)] {
        let ids = names.iter().filter_map(|name| view.find(name));
        *out += &format!("{:?}\n", ids.map(|id| view.placement(options, id)).collect::<Vec<_>>());
    }
    let nothing = common::view(&common::cached(common::skills(&[])), "reader", &[], None);
    *out += &view.news_since(&nothing);
    *out += &nothing.news_since(view);
}

proptest! {
    #[test]
    fn a_view_tells_nothing_of_what_it_hides(
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
        // The index's author lists every entry by its name and its alias.
        let lines: String =
            names.iter().map(|name| format!("| {name} | in the table |\n")).collect();
        // Under this heading the table is rendered, with a head of the author's or without.
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
        // A skill and a domain at once: its commands' pages lie beside the skill's own files.
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
            // Decided here once more, apart from the code under test.
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

const NAMES: usize = 6;
const GLOBS: [&str; 4] = ["*", "dom.*", "skill-*", "*-*"];

/// Whether a name matches one of these globs; decided here once more, apart from the code under test.
fn matches(globs: &[&str], name: &str) -> bool {
    globs.iter().any(|glob| match *glob {
        "*" => true,
        "*-*" => name.contains('-'),
        prefix => name.starts_with(prefix.trim_end_matches('*')),
    })
}

fn globs() -> impl Strategy<Value = Option<Vec<&'static str>>> {
    globs_for(0.3)
}

fn globs_for(weight: f64) -> impl Strategy<Value = Option<Vec<&'static str>>> {
    proptest::option::weighted(weight, proptest::sample::subsequence(GLOBS.to_vec(), 1..3))
}

/// A source, and the index of a domain in it.
#[derive(Debug, Clone)]
struct Folder {
    trust: Trust,
    kind: SourceKind,
    labels: Vec<&'static str>,
    available: Option<Vec<&'static str>>,
    inline: Option<Vec<&'static str>>,
    index: Option<Page>,
}

/// What a document says of itself and of others, which it names by their numbers.
#[derive(Debug, Clone)]
struct Page {
    labels: Vec<&'static str>,
    in_prompt: bool,
    excluded: bool,
    proactive: bool,
    hidden_from_model: bool,
    user_invocable: bool,
    requires: Vec<usize>,
    links: Vec<usize>,
    aliases: Vec<usize>,
}

#[derive(Debug, Clone)]
struct Member {
    source: usize,
    /// The number of its name, which others may have too.
    name: usize,
    /// The number of the name that is its title, or of no name.
    title: Option<usize>,
    /// A record of low trust.
    low: bool,
    /// In a source of notes: without a name.
    bare: bool,
    /// A skill that is one file.
    single: bool,
    wrong_name: bool,
    /// The skill in whose folder it has its own.
    inside: Option<usize>,
    page: Page,
}

fn page() -> impl Strategy<Value = Page> {
    let flag = |weight| proptest::bool::weighted(weight);
    let flags = (flag(0.7), flag(0.15), flag(0.2), flag(0.2), flag(0.8));
    let others = || proptest::collection::vec(0..NAMES, 0..3);
    (labels(), flags, others(), others(), proptest::collection::vec(0..=NAMES, 0..2)).prop_map(
        |(labels, flags, requires, links, aliases)| Page {
            labels,
            in_prompt: flags.0,
            excluded: flags.1,
            proactive: flags.2,
            hidden_from_model: flags.3,
            user_invocable: flags.4,
            requires,
            links,
            aliases,
        },
    )
}

fn folder() -> impl Strategy<Value = Folder> {
    let trusts =
        prop_oneof![Just(Trust::None), Just(Trust::Low), Just(Trust::Medium), Just(Trust::High)];
    let few = proptest::option::weighted(0.3, labels()).prop_map(Option::unwrap_or_default);
    let index = proptest::option::weighted(0.5, page());
    let kinds = prop_oneof![
        3 => Just(SourceKind::Skills),
        2 => Just(SourceKind::Notes),
        2 => Just(SourceKind::Stored),
    ];
    (trusts, kinds, few, globs(), globs(), index).prop_map(
        |(trust, kind, labels, available, inline, index)| {
            // The store has no commands, so no domain.
            let index = index.filter(|_| kind != SourceKind::Stored);
            Folder { trust, kind, labels, available, inline, index }
        },
    )
}

fn member() -> impl Strategy<Value = Member> {
    let flag = || proptest::bool::weighted(0.3);
    let inside = proptest::option::weighted(0.3, 0..NAMES);
    let title = proptest::option::weighted(0.5, 0..NAMES + 2);
    (0..4usize, 0..NAMES, title, (flag(), flag(), flag(), flag()), inside, page()).prop_map(
        |(source, name, title, (bare, single, wrong_name, low), inside, page)| Member {
            source,
            name,
            title,
            low,
            bare,
            single,
            wrong_name,
            inside,
            page,
        },
    )
}

fn numbered(number: usize) -> String {
    let letter = (b'a' + number as u8) as char;
    match number {
        NAMES => "shared".to_owned(),
        number if number % 2 == 0 => format!("dom.name{letter}"),
        _ => format!("skill-name{letter}"),
    }
}

#[derive(Debug, Clone)]
struct Reader {
    id: &'static str,
    grants: Vec<&'static str>,
    /// The lists of globs of which its names have to match one each: its own, and what its rights were narrowed by.
    skills: Vec<Vec<&'static str>>,
}

impl Reader {
    fn is_excluded(&self, page: &Page) -> bool {
        page.excluded && self.id == "reader"
    }

    fn may_see(&self, labels: &[&str]) -> bool {
        labels.iter().all(|label| self.grants.iter().any(|grant| grant == label))
    }
}

/// Sources and documents, and, decided here once more, what becomes of them.
#[derive(Debug, Clone)]
struct World {
    folders: Vec<Folder>,
    members: Vec<Member>,
}

impl World {
    fn folder(&self, at: usize) -> &Folder {
        &self.folders[self.members[at].source]
    }

    fn is_stored(&self, at: usize) -> bool {
        self.folder(at).kind == SourceKind::Stored
    }

    fn is_note(&self, at: usize) -> bool {
        self.folder(at).kind == SourceKind::Notes && self.members[at].bare
    }

    fn name(&self, at: usize) -> String {
        match self.members[at].name {
            _ if self.is_note(at) => format!("note-{}", marker(at)),
            // The store has no commands.
            name if self.is_stored(at) => numbered(name | 1),
            name => numbered(name),
        }
    }

    fn title(&self, at: usize) -> String {
        self.members[at].title.map_or_else(|| format!("Title {}", marker(at)), numbered)
    }

    fn path(&self, at: usize) -> String {
        let (member, name) = (&self.members[at], self.name(at));
        let same =
            |other: usize| self.members[other].source == member.source && self.name(other) == name;
        let odd = member.wrong_name || (0..at).any(same);
        let file = if odd {
            format!("x-{}", marker(at))
        } else {
            name.trim_start_matches("dom.").to_owned()
        };
        let is_skill =
            |other: usize| !self.is_note(other) && self.name(other).starts_with("skill-");
        let around = member.inside.filter(|other| {
            *other < at
                && self.members[*other].source == member.source
                && !self.members[*other].single
        });
        if self.is_stored(at) {
            return format!("{name}.md");
        }
        match around.filter(|other| is_skill(*other) && self.members[*other].inside.is_none()) {
            _ if self.is_note(at) => format!("{name}.md"),
            _ if name.starts_with("dom.") => format!("dom/{file}.md"),
            Some(around) => {
                format!("{}/{file}/SKILL.md", self.path(around).trim_end_matches("/SKILL.md"))
            }
            None if member.single => format!("{file}.md"),
            None => format!("{file}/SKILL.md"),
        }
    }

    fn is_low(&self, at: usize) -> bool {
        self.folder(at).trust == Trust::Low || (self.is_stored(at) && self.members[at].low)
    }

    fn is_selected(&self, at: usize) -> bool {
        let (folder, name) = (self.folder(at), self.name(at));
        let selects =
            |globs: &Option<Vec<&str>>| globs.as_ref().is_some_and(|globs| matches(globs, &name));
        selects(&folder.inline)
            || selects(&folder.available)
            || (folder.inline.is_none() && folder.available.is_none())
    }

    fn shows(&self, at: usize, reader: &Reader) -> bool {
        let page = &self.members[at].page;
        reader.may_see(&self.folder(at).labels)
            && reader.may_see(&page.labels)
            && reader.skills.iter().all(|globs| matches(globs, &self.name(at)))
            && (self.is_note(at) || !reader.is_excluded(page))
    }

    /// The documents that a catalog has as entries, used or not.
    fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len())
            .filter(|at| self.folder(*at).trust != Trust::None && self.is_selected(*at))
    }

    fn has_alias(&self, at: usize, alias: &str) -> bool {
        // What is stored has none.
        !self.is_stored(at)
            && self.members[at].page.aliases.iter().any(|number| numbered(*number) == alias)
    }

    /// Of the documents that the reader may see, the one that is used for a name, before titles and aliases are looked at.
    fn first_choice(&self, name: &str, reader: &Reader) -> Option<usize> {
        let candidates =
            self.candidates().filter(|at| self.name(*at) == name && self.shows(*at, reader));
        let candidates: Vec<_> = candidates.collect();
        let best = |source: &usize| {
            let own = candidates.iter().copied().filter(|at| self.members[*at].source == *source);
            match self.folders[*source].kind {
                SourceKind::Stored => own.min_by_key(|at| (self.is_low(*at), *at)),
                _ => own.min_by_key(|at| self.path(*at)),
            }
        };
        let best: Vec<_> = (0..self.folders.len()).filter_map(|source| best(&source)).collect();
        best.iter().rfind(|at| !self.is_low(**at)).or(best.first()).copied()
    }

    /// The documents that a reader is shown.
    fn used(&self, reader: &Reader) -> Vec<usize> {
        let mut used: Vec<_> = self
            .candidates()
            .filter(|at| self.first_choice(&self.name(*at), reader) == Some(*at))
            .collect();
        let called = |at: usize| {
            let title = if self.is_note(at) { self.name(at) } else { self.title(at) };
            [self.name(at), title]
        };
        let stored: Vec<_> =
            used.iter().copied().filter(|at| self.is_stored(*at) && !self.is_low(*at)).collect();
        used.retain(|at| {
            let replaces = |other: &usize| {
                let same = called(*other).iter().any(|text| called(*at).contains(text));
                same && self.members[*other].source > self.members[*at].source
            };
            self.is_stored(*at)
                || self.name(*at).starts_with("dom.")
                || !stored.iter().any(replaces)
        });
        let trusted: Vec<_> = used.iter().copied().filter(|at| !self.is_low(*at)).collect();
        used.retain(|at| {
            !self.is_low(*at)
                || !trusted.iter().any(|other| self.has_alias(*other, &self.name(*at)))
        });
        used
    }

    /// The sources whose indexes the reader may see.
    fn shown_indexes(&self, reader: &Reader) -> Vec<usize> {
        let shown = |folder: &Folder| {
            let index = folder.index.as_ref();
            reader.may_see(&folder.labels)
                && index.is_some_and(|index| {
                    reader.may_see(&index.labels) && !reader.is_excluded(index)
                })
        };
        (0..self.folders.len()).filter(|source| shown(&self.folders[*source])).collect()
    }

    fn names(&self) -> Vec<String> {
        let notes = (0..self.members.len()).filter(|at| self.is_note(*at)).map(|at| self.name(at));
        (0..=NAMES).map(numbered).chain(notes).collect()
    }

    /// Of the names, those that only documents have which the reader may not see.
    fn hidden_names(&self, reader: &Reader) -> Vec<String> {
        let has = |at: usize, name: &str| self.name(at) == name || self.has_alias(at, name);
        let hidden = |name: &String| {
            let mut having = self.candidates().filter(|at| has(*at, name)).peekable();
            having.peek().is_some() && !having.any(|at| self.shows(at, reader))
        };
        self.names().into_iter().filter(hidden).collect()
    }

    fn front(&self, page: &Page, more: &str) -> String {
        let list = |numbers: &[usize]| {
            numbers.iter().map(|number| numbered(*number)).collect::<Vec<_>>().join(", ")
        };
        let ids = |given: bool| if given { "reader" } else { "" };
        format!(
            "---\n{more}visibility_labels: [{}]\ninclude_in_prompt: {}\n\
             exclude_from_prompt_profile_ids: [{}]\n\
             proactive_for_profile_ids: [{}]\ndisable-model-invocation: {}\n\
             user-invocable: {}\nrequires: [{}]\n\
             aliases: [{}]\n---\n",
            page.labels.join(", "),
            page.in_prompt,
            ids(page.excluded),
            ids(page.proactive),
            page.hidden_from_model,
            page.user_invocable,
            list(&page.requires),
            list(&page.aliases),
        )
    }

    fn text(&self, at: usize) -> String {
        let (member, mark, name) = (&self.members[at], marker(at), self.name(at));
        let schedule = if at.is_multiple_of(2) {
            format!("0 9 * * {}", at % 7)
        } else {
            format!("every {mark}")
        };
        let described = format!(
            "name: {name}\ndescription: About {mark}\ntitle: {}\ntags: [{mark}]\n\
             trigger_keywords: [k{mark}]\n\
             allowed-tools: Read(x) {mark}\nhandler: {mark}\nschedule: {schedule}\n\
             timezone: Asia/Tokyo\n",
            self.title(at)
        );
        let more = if self.is_note(at) { "" } else { &described };
        let linked = member.page.links.iter().filter(|other| **other < self.members.len());
        let links: String = linked
            .map(|other| format!("[a](../{}) [b](../{0}/../file.txt)\n", self.path(*other)))
            .collect();
        format!(
            "{}\n# {name} {mark}\n\n{mark} and words\n{links}\n## Usage\n\n{name} --{mark}\n",
            self.front(&member.page, more)
        )
    }

    /// The catalog of some of the documents and indexes, and without some names in what indexes say.
    fn catalog(
        &self,
        generation: u64,
        members: &[usize],
        indexes: &[usize],
        unnamed: &[String],
    ) -> Arc<CachedCatalog> {
        let globs = |globs: &Option<Vec<&str>>| {
            let texts =
                |globs: &Vec<&str>| globs.iter().map(|glob| glob.to_string()).collect::<Vec<_>>();
            globs.as_ref().map(|globs| Globs::new(&texts(globs)).unwrap())
        };
        let assembled = self.folders.iter().enumerate().map(|(at, folder)| {
            let source = Source {
                name: format!("s{at}"),
                kind: folder.kind,
                labels: folder.labels.iter().map(|label| label.to_string()).collect(),
                trust: folder.trust,
                available: globs(&folder.available),
                inline: globs(&folder.inline),
                ..Source::default()
            };
            let own = members.iter().copied().filter(|member| self.members[*member].source == at);
            let own = own.filter(|_| folder.trust != Trust::None);
            if folder.kind == SourceKind::Stored {
                let trust = |at| if self.is_low(at) { Trust::Low } else { folder.trust };
                return common::records(
                    &source,
                    own.map(|at| (trust(at), self.path(at), self.text(at))),
                );
            }
            let mut files: Vec<(String, String)> = Vec::new();
            for member in own {
                let path = self.path(member);
                if let Some(folder) = path.strip_suffix("SKILL.md") {
                    files.push((format!("{folder}file.txt"), String::new()));
                }
                files.push((path, self.text(member)));
            }
            let index = folder
                .index
                .as_ref()
                .filter(|_| indexes.contains(&at) && folder.trust != Trust::None);
            if let Some(index) = index {
                let named = self.names().into_iter().filter(|name| !unnamed.contains(name));
                let rows: String =
                    named.map(|name| format!("| {name} | in the table |\n")).collect();
                let text = self.front(index, &format!("domain: dom\ndescription: Index {at}\n"));
                // With a table of skills, with one that is nothing but a table, and with a list.
                let page = match at % 3 {
                    0 => format!("## Available Skills\n| A | B |\n|---|---|\n{rows}"),
                    1 => rows,
                    _ => rows
                        .lines()
                        .filter_map(|row| Some(format!("- dom{}\n", row.strip_prefix("| dom")?)))
                        .collect(),
                };
                files.push((
                    "dom/SKILL.md".to_owned(),
                    format!("{text}# Index {at}\n{page}\nEnd\n"),
                ));
            }
            let files: Vec<_> =
                files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            common::source_of(source, &files)
        });
        common::cached(Catalog::build(generation, assembled.collect()))
    }

    /// A view of everything, and one of a catalog of which nothing hidden was ever written.
    fn views(&self, generation: u64, reader: &Reader) -> [View; 2] {
        let all: Vec<_> = (0..self.members.len()).collect();
        let sources: Vec<_> = (0..self.folders.len()).collect();
        let shown: Vec<_> = all.iter().copied().filter(|at| self.shows(*at, reader)).collect();
        let whole = self.catalog(generation, &all, &sources, &[]);
        let told = self.catalog(
            generation,
            &shown,
            &self.shown_indexes(reader),
            &self.hidden_names(reader),
        );
        let lists = || reader.skills.iter().map(Vec::as_slice);
        [whole, told].map(|catalog| common::narrowed(&catalog, reader.id, &reader.grants, lists()))
    }
}

fn reader(id: &'static str) -> impl Strategy<Value = Reader> {
    let lists = [0.3, 0.4, 0.2].map(globs_for);
    (labels(), lists).prop_map(move |(grants, lists)| Reader {
        id,
        grants,
        skills: lists.into_iter().flatten().collect(),
    })
}

/// What the next generation has of a document: other labels, another text, or nothing.
fn edit() -> impl Strategy<Value = Option<(Vec<&'static str>, bool)>> {
    proptest::option::weighted(0.8, (labels(), any::<bool>()))
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
    // Each reads six catalogs as a whole; for a long run, PROPTEST_CASES counts here too.
    #![proptest_config({
        let default = ProptestConfig::default();
        ProptestConfig { cases: default.cases.div_ceil(8), ..default }
    })]

    #[test]
    fn what_is_hidden_is_as_if_it_had_never_been_written(
        folders in proptest::collection::vec(folder(), 4),
        members in proptest::collection::vec(member(), 1..9),
        edits in proptest::collection::vec(edit(), 9),
        reader in reader("reader"),
        other in reader("other"),
    ) {
        let before = World { folders, members };
        let mut after = before.clone();
        // A document that is deleted leaves its number, so that markers and paths stay.
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
            new.catalog().search_from(old.catalog());
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
        same("news", [0, 1].map(|at| new[at].news_since(&old[at])))?;
        same("news of another profile", [0, 1].map(|at| others[at].news_since(&old[at])))?;
    }
}
