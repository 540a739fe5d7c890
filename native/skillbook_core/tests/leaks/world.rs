//! A second implementation of visibility and precedence, to compare the code under test with.

use std::cmp::Reverse;
use std::sync::Arc;

use proptest::prelude::*;
use skillbook_core::catalog::Catalog;
use skillbook_core::glob::Globs;
use skillbook_core::source::{Source, SourceKind, Trust};
use skillbook_core::view::{CachedCatalog, View};

use crate::spec::*;

pub const NAMES: usize = 6;
pub const GLOBS: [&str; 4] = ["*", "dom.*", "skill-*", "*-*"];

/// Whether a name matches one of these globs.
pub fn matches(globs: &[&str], name: &str) -> bool {
    globs.iter().any(|glob| match *glob {
        "*" => true,
        "*-*" => name.contains('-'),
        prefix => name.starts_with(prefix.trim_end_matches('*')),
    })
}

pub fn globs() -> impl Strategy<Value = Option<Vec<&'static str>>> {
    globs_for(0.3)
}

pub fn globs_for(weight: f64) -> impl Strategy<Value = Option<Vec<&'static str>>> {
    proptest::option::weighted(weight, proptest::sample::subsequence(GLOBS.to_vec(), 1..3))
}

/// A source with the index of a domain in it.
#[derive(Debug, Clone)]
pub struct Folder {
    pub trust: Trust,
    pub kind: SourceKind,
    pub labels: Vec<&'static str>,
    /// Its tenant; an empty text for all tenants.
    pub tenant: &'static str,
    pub available: Option<Vec<&'static str>>,
    pub inline: Option<Vec<&'static str>>,
    pub index: Option<Page>,
}

/// The content of a document. It refers to others by number.
#[derive(Debug, Clone)]
pub struct Page {
    pub labels: Vec<&'static str>,
    pub in_prompt: bool,
    pub excluded: bool,
    pub proactive: bool,
    pub hidden_from_model: bool,
    /// The service that it needs. Readers have a connection to `mail`.
    pub connection: Option<&'static str>,
    pub user_invocable: bool,
    /// Whether it may take the place of others.
    pub replaces: bool,
    pub requires: Vec<usize>,
    pub links: Vec<usize>,
    pub aliases: Vec<usize>,
}

#[derive(Debug, Clone)]
pub struct Member {
    pub source: usize,
    /// The number of its name, which others may share.
    pub name: usize,
    /// The number of the name that is its title; none if there is no such name.
    pub title: Option<usize>,
    /// A record of low trust.
    pub low: bool,
    /// A note without a name, in a source of notes.
    pub bare: bool,
    /// A skill in a single file.
    pub single: bool,
    pub wrong_name: bool,
    /// The skill whose folder contains its own.
    pub inside: Option<usize>,
    pub page: Page,
}

pub fn page() -> impl Strategy<Value = Page> {
    let flag = |weight| proptest::bool::weighted(weight);
    let flags = (flag(0.7), flag(0.15), flag(0.2), flag(0.2), flag(0.8), flag(0.7));
    let others = || proptest::collection::vec(0..NAMES, 0..3);
    let aliases = proptest::collection::vec(0..=NAMES, 0..2);
    let connection =
        prop_oneof![8 => Just(None), 1 => Just(Some("mail")), 1 => Just(Some("drive"))];
    (labels(), flags, connection, others(), others(), aliases).prop_map(
        |(labels, flags, connection, requires, links, aliases)| Page {
            labels,
            in_prompt: flags.0,
            excluded: flags.1,
            proactive: flags.2,
            hidden_from_model: flags.3,
            connection,
            user_invocable: flags.4,
            replaces: flags.5,
            requires,
            links,
            aliases,
        },
    )
}

/// The tenant of a source or of a reader; an empty text for none.
fn tenant() -> impl Strategy<Value = &'static str> {
    prop_oneof![3 => Just(""), 2 => Just("near"), 1 => Just("far")]
}

pub fn folder() -> impl Strategy<Value = Folder> {
    let trusts =
        prop_oneof![Just(Trust::None), Just(Trust::Low), Just(Trust::Medium), Just(Trust::High)];
    let few = proptest::option::weighted(0.3, labels()).prop_map(Option::unwrap_or_default);
    let index = proptest::option::weighted(0.5, page());
    let kinds = prop_oneof![
        3 => Just(SourceKind::Skills),
        2 => Just(SourceKind::Notes),
        2 => Just(SourceKind::Stored),
        2 => Just(SourceKind::Code),
        1 => Just(SourceKind::Remote),
    ];
    (trusts, kinds, few, tenant(), globs(), globs(), index).prop_map(
        |(trust, kind, labels, tenant, available, inline, index)| {
            // The store has no commands, and so no domain. Code has commands, but no index.
            let has_files = kind != SourceKind::Stored && !kind.has_pages();
            let index = index.filter(|_| has_files);
            Folder { trust, kind, labels, tenant, available, inline, index }
        },
    )
}

pub fn member() -> impl Strategy<Value = Member> {
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

pub fn numbered(number: usize) -> String {
    let letter = (b'a' + number as u8) as char;
    match number {
        NAMES => "shared".to_owned(),
        number if number % 2 == 0 => format!("dom.name{letter}"),
        _ => format!("skill-name{letter}"),
    }
}

#[derive(Debug, Clone)]
pub struct Reader {
    pub id: &'static str,
    pub tenant: &'static str,
    pub grants: Vec<&'static str>,
    /// The lists of globs that a name must match: the reader's own, and those that narrow its
    /// rights.
    pub skills: Vec<Vec<&'static str>>,
}

impl Reader {
    pub fn is_excluded(&self, page: &Page) -> bool {
        page.excluded && self.id == "reader"
    }

    pub fn may_see_all_of(&self, folder: &Folder) -> bool {
        ["", self.tenant].contains(&folder.tenant) && self.may_see(&folder.labels)
    }

    pub fn may_see(&self, labels: &[&str]) -> bool {
        labels.iter().all(|label| self.grants.iter().any(|grant| grant == label))
    }
}

/// Sources and documents.
#[derive(Debug, Clone)]
pub struct World {
    pub folders: Vec<Folder>,
    pub members: Vec<Member>,
}

impl World {
    pub fn folder(&self, at: usize) -> &Folder {
        &self.folders[self.members[at].source]
    }

    pub fn is_stored(&self, at: usize) -> bool {
        self.folder(at).kind == SourceKind::Stored
    }

    pub fn is_code(&self, at: usize) -> bool {
        self.folder(at).kind.has_pages()
    }

    pub fn is_note(&self, at: usize) -> bool {
        self.folder(at).kind == SourceKind::Notes && self.members[at].bare
    }

    pub fn name(&self, at: usize) -> String {
        match self.members[at].name {
            _ if self.is_note(at) => format!("note-{}", marker(at)),
            // The store has no commands.
            name if self.is_stored(at) => numbered(name | 1),
            name => numbered(name),
        }
    }

    pub fn title(&self, at: usize) -> String {
        self.members[at].title.map_or_else(|| format!("Title {}", marker(at)), numbered)
    }

    pub fn path(&self, at: usize) -> String {
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
        if self.is_code(at) {
            return format!("lib/{file}.ex (Module.{})", marker(at));
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

    pub fn is_low(&self, at: usize) -> bool {
        self.folder(at).trust == Trust::Low || (self.is_stored(at) && self.members[at].low)
    }

    /// The claim of a document to its name, the weakest first. Records have no such field.
    pub fn claim(&self, at: usize) -> u8 {
        match (self.is_low(at), self.members[at].page.replaces) {
            (true, _) => 0,
            (false, false) => 1,
            (false, true) => 2,
        }
    }

    pub fn is_selected(&self, at: usize) -> bool {
        let (folder, name) = (self.folder(at), self.name(at));
        let selects =
            |globs: &Option<Vec<&str>>| globs.as_ref().is_some_and(|globs| matches(globs, &name));
        selects(&folder.inline)
            || selects(&folder.available)
            || (folder.inline.is_none() && folder.available.is_none())
    }

    pub fn shows(&self, at: usize, reader: &Reader) -> bool {
        let page = &self.members[at].page;
        reader.may_see_all_of(self.folder(at))
            && reader.may_see(&page.labels)
            && reader.skills.iter().all(|globs| matches(globs, &self.name(at)))
            && (self.is_note(at) || !reader.is_excluded(page))
    }

    /// The documents that are entries of the catalog, used or not.
    pub fn candidates(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.members.len())
            .filter(|at| self.folder(*at).trust != Trust::None && self.is_selected(*at))
    }

    pub fn has_alias(&self, at: usize, alias: &str) -> bool {
        self.members[at].page.aliases.iter().any(|number| numbered(*number) == alias)
    }

    /// The document that a name resolves to among those the reader may see, before titles and
    /// aliases are considered.
    pub fn first_choice(&self, name: &str, reader: &Reader) -> Option<usize> {
        let candidates =
            self.candidates().filter(|at| self.name(*at) == name && self.shows(*at, reader));
        let candidates: Vec<_> = candidates.collect();
        let best = |source: &usize| {
            let own = candidates.iter().copied().filter(|at| self.members[*at].source == *source);
            match self.folders[*source].kind {
                SourceKind::Stored => own.min_by_key(|at| (Reverse(self.claim(*at)), *at)),
                _ => own.min_by_key(|at| (Reverse(self.claim(*at)), self.path(*at))),
            }
        };
        let best: Vec<_> = (0..self.folders.len()).filter_map(|source| best(&source)).collect();
        let with = |claim| best.iter().rfind(move |at| self.claim(**at) == claim);
        with(2).or(with(1)).or(best.first()).copied()
    }

    /// The documents that a reader is shown.
    pub fn used(&self, reader: &Reader) -> Vec<usize> {
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
        for claim in [1, 0] {
            let before = used.clone();
            used.retain(|at| {
                let takes = |other: &usize| {
                    // An alias of a record takes no name from a file.
                    self.claim(*other) > claim
                        && (self.is_stored(*at) || !self.is_stored(*other))
                        && self.has_alias(*other, &self.name(*at))
                };
                self.claim(*at) != claim || !before.iter().any(takes)
            });
        }
        used
    }

    /// The sources whose indexes the reader may see.
    pub fn shown_indexes(&self, reader: &Reader) -> Vec<usize> {
        let shown = |folder: &Folder| {
            let index = folder.index.as_ref();
            reader.may_see_all_of(folder)
                && index.is_some_and(|index| {
                    reader.may_see(&index.labels) && !reader.is_excluded(index)
                })
        };
        (0..self.folders.len()).filter(|source| shown(&self.folders[*source])).collect()
    }

    pub fn names(&self) -> Vec<String> {
        let notes = (0..self.members.len()).filter(|at| self.is_note(*at)).map(|at| self.name(at));
        (0..=NAMES).map(numbered).chain(notes).collect()
    }

    /// The names that only hidden documents have.
    pub fn hidden_names(&self, reader: &Reader) -> Vec<String> {
        let has = |at: usize, name: &str| self.name(at) == name || self.has_alias(at, name);
        let hidden = |name: &String| {
            let mut having = self.candidates().filter(|at| has(*at, name)).peekable();
            having.peek().is_some() && !having.any(|at| self.shows(at, reader))
        };
        self.names().into_iter().filter(hidden).collect()
    }

    pub fn front(&self, page: &Page, more: &str) -> String {
        let list = |numbers: &[usize]| {
            numbers.iter().map(|number| numbered(*number)).collect::<Vec<_>>().join(", ")
        };
        let ids = |given: bool| if given { "reader" } else { "" };
        format!(
            "---\n{more}visibility_labels: [{}]\ninclude_in_prompt: {}\n\
             exclude_from_prompt_profile_ids: [{}]\n\
             proactive_for_profile_ids: [{}]\ndisable-model-invocation: {}\n\
             user-invocable: {}\nreplaces: {}\nrequires: [{}]\n\
             aliases: [{}]\nconnection: {}\n---\n",
            page.labels.join(", "),
            page.in_prompt,
            ids(page.excluded),
            ids(page.proactive),
            page.hidden_from_model,
            page.user_invocable,
            page.replaces,
            list(&page.requires),
            list(&page.aliases),
            page.connection.unwrap_or("~"),
        )
    }

    pub fn text(&self, at: usize) -> String {
        let (member, mark, name) = (&self.members[at], marker(at), self.name(at));
        let schedule = if at.is_multiple_of(2) {
            format!("0 9 * * {}", at % 7)
        } else {
            format!("every {mark}")
        };
        let described = format!(
            "name: {name}\ndescription: About {mark}\ntitle: {}\ntags: [{mark}]\n\
             trigger_keywords: [k{mark}]\n\
             examples: [words about {mark}, {{not: {name} with words}}]\n\
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

    /// The catalog of some documents and indexes. Some names are left out of the text of the
    /// indexes.
    pub fn catalog(
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
                tenant: Some(folder.tenant.to_owned()).into(),
                trust: folder.trust,
                available: globs(&folder.available),
                inline: globs(&folder.inline),
                ..Source::default()
            };
            let own = members.iter().copied().filter(|member| self.members[*member].source == at);
            let own = own.filter(|_| folder.trust != Trust::None);
            if folder.kind == SourceKind::Stored {
                let trust = |at| if self.is_low(at) { Trust::Low } else { folder.trust };
                return crate::common::records(
                    &source,
                    own.map(|at| (trust(at), self.path(at), self.text(at))),
                );
            }
            if folder.kind.has_pages() {
                return crate::common::code(
                    source,
                    own.map(|at| (self.path(at), self.text(at), at.is_multiple_of(2))),
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
                // With a table of skills, with a page that is only a table, and with a list.
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
            crate::common::source_of(source, &files)
        });
        crate::common::cached(Catalog::build(generation, assembled.collect()))
    }

    /// A view of the whole catalog, and one of a catalog without the hidden documents.
    pub fn views(&self, generation: u64, reader: &Reader) -> [View; 2] {
        let all: Vec<_> = (0..self.members.len()).collect();
        let sources: Vec<_> = (0..self.folders.len()).collect();
        let shown: Vec<_> = all.iter().copied().filter(|at| self.shows(*at, reader)).collect();
        let whole = self.catalog(generation, &all, &sources, &[]);
        // The catalog's own number counts hidden changes, and no view may show it.
        let told = self.catalog(
            generation + 10,
            &shown,
            &self.shown_indexes(reader),
            &self.hidden_names(reader),
        );
        let lists = || reader.skills.iter().map(Vec::as_slice);
        let tenant = Some(reader.tenant.to_owned()).into();
        [whole, told].map(|catalog| {
            crate::common::of_tenant(&catalog, &tenant, reader.id, &reader.grants, lists())
        })
    }
}

pub fn reader(id: &'static str) -> impl Strategy<Value = Reader> {
    let lists = [0.3, 0.4, 0.2].map(globs_for);
    (labels(), tenant(), lists).prop_map(move |(grants, tenant, lists)| Reader {
        id,
        tenant,
        grants,
        skills: lists.into_iter().flatten().collect(),
    })
}

/// The change of a document in the next generation: other labels, another text, or removal.
pub fn edit() -> impl Strategy<Value = Option<(Vec<&'static str>, bool)>> {
    proptest::option::weighted(0.8, (labels(), any::<bool>()))
}
