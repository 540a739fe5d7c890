//! Whatever the labels, grants, globs and trust: nothing that can be read through a view tells of an entry that it does not
//! show. One property looks for words of hidden documents; the other compares the view with that of a catalog of which
//! nothing hidden was ever written.

mod common;

use std::sync::Arc;

use common::{source, view};
use proptest::prelude::*;
use skillbook_core::catalog::{Catalog, EntryId};
use skillbook_core::entry::{Entry, Kind, Source, SourceKind, Trust};
use skillbook_core::glob::Globs;
use skillbook_core::help::Help;
use skillbook_core::lint::lint;
use skillbook_core::prompt::{Format, Limit, Options, Placement, Reason, Section};
use skillbook_core::search::Query;
use skillbook_core::tools::allows;
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

/// Everything that can be read through a view, in one text. Left out are what is for trusted code alone (`catalog`, what
/// `explain` says of files) and what tells of no document (`profile`).
fn everything(view: &View, names: &[String]) -> String {
    let mut out = format!("{} of generation {}\n", view.count(), view.generation());
    let ids = || (0..view.catalog().entries().len() as u32 + 1).map(EntryId);
    for (id, entry) in view.entries() {
        let Entry { name, kind, domain, title, labels, source, document, selection, files } = &**entry;
        out += &format!("{name} {kind:?} {domain:?} {title:?} {labels:?} {} {document:?} {selection:?}", source.name);
        out += &format!("{files:?} {:?} {:?} ", entry.handler(), entry.schedule());
        out += &format!("{} {} {}\n", view.shows(id), view.lists(id), view.in_prompt(id));
    }
    out += &format!("{:?}\n", view.listed().map(|(_, entry)| &entry.name).collect::<Vec<_>>());
    for (number, name) in names.iter().enumerate() {
        let ways = [view.find(name), view.find_named(name), view.find_aliased(name)];
        let found = ways.map(|id| id.and_then(|id| view.entry(id)));
        out += &format!("{number}: {:?}\n", found.map(|entry| entry.map(|entry| (&entry.name, &entry.document.path))));
    }
    helps(view, names, &mut out);
    searches(view, names, &mut out);
    domains(view, &mut out);
    prompts(view, names, &mut out);
    for id in ids().filter(|id| !view.shows(*id)) {
        let told = (view.placement(&whole(names), id), view.tools(id, None), view.tools(id, Some(&["*".to_owned()])));
        assert_eq!(told, (Placement::NotInPrompt(Reason::NotShown), Some(Vec::new()), Some(Vec::new())));
        assert!(view.entry(id).is_none() && !view.lists(id) && !view.in_prompt(id));
        assert_eq!(view.declaration(id), None);
    }
    for id in names.iter().filter_map(|name| view.find(name)) {
        let tools = [None, Some(&["*".to_owned()][..]), Some(&["Read".to_owned()])].map(|tools| view.tools(id, tools));
        let allowed = tools.each_ref().map(|tools| tools.as_ref().is_none_or(|tools| allows(tools, "Read", Some("x"))));
        out += &format!("{tools:?} {allowed:?} {:?}\n", view.declaration(id));
    }
    let told: String = view.diagnostics().map(|found| format!("{found:?}\n")).collect();
    out + &told + &format!("{:?}", lint(view))
}

fn helps(view: &View, names: &[String], out: &mut String) {
    let mut paths: Vec<String> = ["", " ", "shared", "dom", "dom0", "dom1", "both", "nothing"].map(String::from).into();
    for name in names {
        let mark = name.rsplit(['.', '-']).next().unwrap_or_default();
        paths.extend([format!("both/{mark}.md"), format!("both/other-{mark}.md"), format!("{name}/file.txt")]);
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
        let slip: String = path.chars().take(1).chain("x".chars()).chain(path.chars().skip(1)).collect();
        for asked in [path.clone(), format!("{path}x"), slip, path.chars().skip(1).collect(), turned.join("_")] {
            *out += &format!("{:?}\n", view.suggest(&asked));
        }
    }
}

fn searches(view: &View, names: &[String], out: &mut String) {
    let marks = names.iter().filter_map(|name| name.rsplit(['.', '-']).next());
    let others = ["zq", "about title", "usage shared zqxqz", "dom", "skil", "sklil", "abuot", "zqaqx zqbqz", ""];
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
        let rest = (domain.path(), domain.index().is_some(), domain.is_listed(), domain.in_prompt());
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
    let nothing = common::view(&Arc::new(common::skills(&[])), "reader", &[], None);
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
    notes: bool,
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
    let trusts = prop_oneof![Just(Trust::None), Just(Trust::Low), Just(Trust::Medium), Just(Trust::High)];
    let few = proptest::option::weighted(0.3, labels()).prop_map(Option::unwrap_or_default);
    let index = proptest::option::weighted(0.5, page());
    (trusts, proptest::bool::weighted(0.3), few, globs(), globs(), index).prop_map(
        |(trust, notes, labels, available, inline, index)| Folder { trust, notes, labels, available, inline, index },
    )
}

fn member() -> impl Strategy<Value = Member> {
    let flags = (proptest::bool::weighted(0.3), proptest::bool::weighted(0.3), proptest::bool::weighted(0.3));
    (0..4usize, 0..NAMES, flags, proptest::option::weighted(0.3, 0..NAMES), page()).prop_map(
        |(source, name, (bare, single, wrong_name), inside, page)| Member {
            source,
            name,
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

    fn is_note(&self, at: usize) -> bool {
        self.folder(at).notes && self.members[at].bare
    }

    fn name(&self, at: usize) -> String {
        match self.is_note(at) {
            true => format!("note-{}", marker(at)),
            false => numbered(self.members[at].name),
        }
    }

    fn path(&self, at: usize) -> String {
        let (member, name) = (&self.members[at], self.name(at));
        let same = |other: usize| self.members[other].source == member.source && self.name(other) == name;
        let odd = member.wrong_name || (0..at).any(same);
        let file = if odd { format!("x-{}", marker(at)) } else { name.trim_start_matches("dom.").to_owned() };
        let is_skill = |other: usize| !self.is_note(other) && self.name(other).starts_with("skill-");
        let around = member.inside.filter(|other| {
            *other < at && self.members[*other].source == member.source && !self.members[*other].single
        });
        match around.filter(|other| is_skill(*other) && self.members[*other].inside.is_none()) {
            _ if self.is_note(at) => format!("{name}.md"),
            _ if name.starts_with("dom.") => format!("dom/{file}.md"),
            Some(around) => format!("{}/{file}/SKILL.md", self.path(around).trim_end_matches("/SKILL.md")),
            None if member.single => format!("{file}.md"),
            None => format!("{file}/SKILL.md"),
        }
    }

    fn is_low(&self, at: usize) -> bool {
        self.folder(at).trust == Trust::Low
    }

    fn is_selected(&self, at: usize) -> bool {
        let (folder, name) = (self.folder(at), self.name(at));
        let selects = |globs: &Option<Vec<&str>>| globs.as_ref().is_some_and(|globs| matches(globs, &name));
        selects(&folder.inline) || selects(&folder.available) || (folder.inline.is_none() && folder.available.is_none())
    }

    fn shows(&self, at: usize, reader: &Reader) -> bool {
        let page = &self.members[at].page;
        reader.may_see(&self.folder(at).labels)
            && reader.may_see(&page.labels)
            && reader.skills.iter().all(|globs| matches(globs, &self.name(at)))
            && (self.is_note(at) || !reader.is_excluded(page))
    }

    /// The documents that are read.
    fn read(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len()).filter(|at| self.folder(*at).trust != Trust::None)
    }

    /// The document that is used for a name, before aliases are looked at.
    fn first_choice(&self, name: &str) -> Option<usize> {
        let candidates = |source| {
            let of_source = self.read().filter(move |at| self.members[*at].source == source);
            of_source.filter(|at| self.is_selected(*at) && self.name(*at) == name)
        };
        (0..self.folders.len()).fold(None, |used, source| match candidates(source).min_by_key(|at| self.path(*at)) {
            Some(at) if used.is_none() || !self.is_low(at) => Some(at),
            _ => used,
        })
    }

    fn has_alias(&self, at: usize, alias: &str) -> bool {
        self.members[at].page.aliases.iter().any(|number| numbered(*number) == alias)
    }

    /// The documents that are entries.
    fn used(&self) -> Vec<usize> {
        let first: Vec<_> = self.read().filter(|at| self.first_choice(&self.name(*at)) == Some(*at)).collect();
        let taken =
            |at: usize| first.iter().any(|other| !self.is_low(*other) && self.has_alias(*other, &self.name(at)));
        first.iter().copied().filter(|at| !self.is_low(*at) || !taken(*at)).collect()
    }

    /// The source whose index a domain has.
    fn used_index(&self) -> Option<usize> {
        let sources = (0..self.folders.len())
            .filter(|source| self.folders[*source].trust != Trust::None && self.folders[*source].index.is_some());
        let is_low = |source: usize| self.folders[source].trust == Trust::Low;
        let used =
            sources.fold(None, |used, source| if used.is_some() && is_low(source) { used } else { Some(source) })?;
        let foreign = self.used().iter().any(|at| !self.is_low(*at) && self.name(*at).starts_with("dom."));
        (!is_low(used) || !foreign).then_some(used)
    }

    /// The documents that are left of a world in which nothing that is hidden was ever written: all that the reader may
    /// see, without those whose name they do not have because of something hidden.
    fn told(&self, reader: &Reader) -> Vec<usize> {
        let used = self.used();
        let contested = |name: &str| {
            self.read().any(|at| self.is_selected(at) && self.name(at) == name && !self.shows(at, reader))
                || used.iter().any(|at| !self.is_low(*at) && self.has_alias(*at, name) && !self.shows(*at, reader))
        };
        let seen = self.read().filter(|at| self.shows(*at, reader));
        seen.filter(|at| used.contains(at) || !contested(&self.name(*at))).collect()
    }

    fn told_index(&self, reader: &Reader) -> Option<usize> {
        self.used_index().filter(|source| {
            let folder = &self.folders[*source];
            folder.index.as_ref().is_some_and(|index| reader.may_see(&index.labels) && !reader.is_excluded(index))
                && reader.may_see(&folder.labels)
        })
    }

    fn names(&self) -> Vec<String> {
        let notes = (0..self.members.len()).filter(|at| self.is_note(*at)).map(|at| self.name(at));
        (0..=NAMES).map(numbered).chain(notes).collect()
    }

    /// Of the names, those that some entry has and none that the reader may see.
    fn hidden_names(&self, reader: &Reader) -> Vec<String> {
        let used = self.used();
        let has = |at: usize, name: &str| self.name(at) == name || self.has_alias(at, name);
        let hidden = |name: &String| {
            let mut having = used.iter().filter(|at| has(**at, name)).peekable();
            having.peek().is_some() && !having.any(|at| self.shows(*at, reader))
        };
        self.names().into_iter().filter(hidden).collect()
    }

    fn front(&self, page: &Page, more: &str) -> String {
        let list = |numbers: &[usize]| numbers.iter().map(|number| numbered(*number)).collect::<Vec<_>>().join(", ");
        let ids = |given: bool| if given { "reader" } else { "" };
        format!(
            "---\n{more}visibility_labels: [{}]\ninclude_in_prompt: {}\nexclude_from_prompt_profile_ids: [{}]\n\
             proactive_for_profile_ids: [{}]\ndisable-model-invocation: {}\nuser-invocable: {}\nrequires: [{}]\n\
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
        let schedule = if at.is_multiple_of(2) { format!("0 9 * * {}", at % 7) } else { format!("every {mark}") };
        let described = format!(
            "name: {name}\ndescription: About {mark}\ntitle: Title {mark}\ntags: [{mark}]\ntrigger_keywords: [k{mark}]\n\
             allowed-tools: Read(x) {mark}\nhandler: {mark}\nschedule: {schedule}\ntimezone: Asia/Tokyo\n"
        );
        let more = if self.is_note(at) { "" } else { &described };
        let linked = member.page.links.iter().filter(|other| **other < self.members.len());
        let links: String =
            linked.map(|other| format!("[a](../{}) [b](../{0}/../file.txt)\n", self.path(*other))).collect();
        format!(
            "{}\n# {name} {mark}\n\n{mark} and words\n{links}\n## Usage\n\n{name} --{mark}\n",
            self.front(&member.page, more)
        )
    }

    /// The catalog of some of the documents and indexes, and without some names in what indexes say.
    fn catalog(&self, generation: u64, members: &[usize], indexes: &[usize], unnamed: &[String]) -> Arc<Catalog> {
        let assembled = self.folders.iter().enumerate().map(|(source, folder)| {
            let mut files: Vec<(String, String)> = Vec::new();
            let own = members.iter().filter(|at| self.members[**at].source == source);
            for at in own.filter(|_| folder.trust != Trust::None) {
                let path = self.path(*at);
                if let Some(folder) = path.strip_suffix("SKILL.md") {
                    files.push((format!("{folder}file.txt"), String::new()));
                }
                files.push((path, self.text(*at)));
            }
            let index = folder.index.as_ref().filter(|_| indexes.contains(&source) && folder.trust != Trust::None);
            if let Some(index) = index {
                let named = self.names().into_iter().filter(|name| !unnamed.contains(name));
                let rows: String = named.map(|name| format!("| {name} | in the table |\n")).collect();
                let text = self.front(index, &format!("domain: dom\ndescription: Index {source}\n"));
                files.push(("dom/SKILL.md".to_owned(), format!("{text}# Index {source}\n{rows}\nEnd\n")));
            }
            let globs = |globs: &Option<Vec<&str>>| {
                let texts = |globs: &Vec<&str>| globs.iter().map(|glob| glob.to_string()).collect::<Vec<_>>();
                globs.as_ref().map(|globs| Globs::new(&texts(globs)).unwrap())
            };
            let files: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), text.as_str())).collect();
            let source = Source {
                name: format!("s{source}"),
                kind: if folder.notes { SourceKind::Notes } else { SourceKind::Skills },
                labels: folder.labels.iter().map(|label| label.to_string()).collect(),
                trust: folder.trust,
                available: globs(&folder.available),
                inline: globs(&folder.inline),
                ..Source::default()
            };
            common::source_of(source, &files)
        });
        Arc::new(Catalog::build(generation, assembled.collect()))
    }

    /// A view of everything, and one of a catalog of which nothing hidden was ever written.
    fn views(&self, generation: u64, reader: &Reader) -> [View; 2] {
        let all: Vec<_> = (0..self.members.len()).collect();
        let sources: Vec<_> = (0..self.folders.len()).collect();
        let index: Vec<_> = self.told_index(reader).into_iter().collect();
        let whole = self.catalog(generation, &all, &sources, &[]);
        let told = self.catalog(generation, &self.told(reader), &index, &self.hidden_names(reader));
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
            (a, b) => return Some((a.unwrap_or_default().to_owned(), b.unwrap_or_default().to_owned())),
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
        for views in [&old, &new, &others] {
            same("everything", views.each_ref().map(|view| everything(view, &names)))?;
        }
        same("news", [0, 1].map(|at| new[at].news_since(&old[at])))?;
        same("news of another profile", [0, 1].map(|at| others[at].news_since(&old[at])))?;
    }
}
