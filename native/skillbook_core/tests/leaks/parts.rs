//! A view of a book's parts is the view of one catalog of everything.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use proptest::prelude::*;
use skillbook_core::catalog::assemble::{assemble, Assembled};
use skillbook_core::catalog::Catalog;
use skillbook_core::page::document::Document;
use skillbook_core::page::record::{Origin, Record};
use skillbook_core::search::embedded;
use skillbook_core::source::{Source, SourceKind};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::{Parts, Profile, View};

use crate::common::{self, doc};

const NAMES: [&str; 5] = ["tea", "milk", "rice-pudding", "skill-zqaqz", "plan"];
const LABELS: [&str; 2] = ["staff", "boss"];

/// A change of a book.
#[derive(Debug, Clone)]
enum Step {
    /// Records that are written, and ids of those that go.
    Write(Vec<Record>, Vec<i64>),
    /// Records of another database, after a failover.
    Replace(Vec<Record>),
    /// The files of the base: names, with the label of each and an alias.
    Files(Vec<(usize, Option<usize>, usize)>),
}

fn labels() -> impl Strategy<Value = Vec<String>> {
    proptest::sample::subsequence(LABELS.map(String::from).to_vec(), 0..=2)
}

fn tenant() -> impl Strategy<Value = Tenant> {
    let one = |name: &str| Tenant::One(name.into());
    prop_oneof![2 => Just(Tenant::Common), 2 => Just(one("near")), 1 => Just(one("far"))]
}

fn written() -> impl Strategy<Value = Record> {
    let names = (0..NAMES.len(), 0..NAMES.len(), proptest::option::of(0..NAMES.len()));
    (1..7i64, names, tenant(), labels(), 0..4usize, any::<[bool; 4]>()).prop_map(
        |(id, (name, title, alias), tenant, labels, word, [is_skill, low, excluded, timed])| {
            Record {
                id,
                is_skill,
                title: NAMES[title].into(),
                description: format!("About zq{word}qz"),
                content: match alias {
                    Some(alias) => {
                        format!("---\naliases: [{}]\n---\nzq{word}qz", NAMES[alias]).into()
                    }
                    None => format!("Text zq{word}qz").into(),
                },
                tenant,
                labels,
                excluded_for: excluded.then(|| "reader".to_owned()).into_iter().collect(),
                origin: if low { Origin::Import } else { Origin::User },
                schedule: timed.then(|| "0 9 * * *".to_owned()),
                ..common::record(NAMES[name], "")
            }
        },
    )
}

fn step() -> impl Strategy<Value = Step> {
    let write =
        (proptest::collection::vec(written(), 0..3), proptest::collection::vec(1..7i64, 0..2));
    let file = (0..NAMES.len(), proptest::option::of(0..LABELS.len()), 0..NAMES.len());
    prop_oneof![
        4 => write.prop_map(|(mut put, mut gone)| {
            put.sort_by_key(|record| record.id);
            put.dedup_by_key(|record| record.id);
            gone.retain(|id| put.iter().all(|record| record.id != *id));
            Step::Write(put, gone)
        }),
        1 => proptest::collection::vec(written(), 0..6).prop_map(Step::Replace),
        1 => proptest::collection::vec(file, 0..4).prop_map(Step::Files),
    ]
}

fn reader() -> impl Strategy<Value = Profile> {
    let tenants = prop_oneof![4 => tenant(), 1 => Just(Tenant::All)];
    let globs = proptest::option::weighted(0.2, Just(vec!["*a*".to_owned()]));
    (tenants, proptest::option::weighted(0.8, labels()), globs).prop_map(
        |(tenant, grants, globs)| {
            let (id, skills) = ("reader".into(), globs.into_iter().collect());
            Profile { id, tenant, grants, skills, ..Profile::unrestricted() }
        },
    )
}

fn store() -> Arc<Source> {
    let (name, root, kind) = ("store".into(), "/store".into(), SourceKind::Stored);
    Arc::new(Source { name, root, kind, ..Source::default() })
}

fn files(files: &[(usize, Option<usize>, usize)]) -> Assembled {
    let source = Source { name: "files".into(), root: "/files".into(), ..Source::default() };
    let document = |(name, label, alias): &(usize, Option<usize>, usize)| {
        let label =
            label.map_or(String::new(), |at| format!("visibility_labels: {}\n", LABELS[at]));
        let more = format!("{label}title: {}\naliases: [{}]\n", NAMES[*alias], NAMES[*alias]);
        let text = doc(NAMES[*name], &more, "zq1qz");
        Arc::new(Document::parse("/files", &format!("{}.md", NAMES[*name]), text.as_bytes()))
    };
    let documents: BTreeMap<usize, _> = files.iter().map(|file| (file.0, document(file))).collect();
    assemble(&Arc::new(source), documents.into_values().collect(), Vec::new())
}

/// Everything of a view, but for whether somebody asked for a declaration before.
fn everything(view: &View, names: &[String]) -> String {
    crate::everything::everything(view, names).replace("OnceLock(<uninit>)", "OnceLock(None)")
}

/// The view of one catalog of everything.
fn of_everything(base: &Assembled, records: &BTreeMap<i64, Record>, reader: &Profile) -> View {
    let records = assembled(records.values());
    View::new(common::cached(Catalog::build(1, vec![base.clone(), records])), reader).unwrap()
}

fn assembled<'a>(records: impl Iterator<Item = &'a Record>) -> Assembled {
    let document = |record: &Record| Arc::new(Document::stored("/store", record));
    assemble(&store(), records.map(document).collect(), Vec::new())
}

proptest! {
    #![proptest_config({
        let default = ProptestConfig::default();
        ProptestConfig { cases: default.cases.div_ceil(16), ..default }
    })]

    #[test]
    fn views_of_parts_equal_those_of_everything(
        steps in proptest::collection::vec((step(), 0..3usize, 0..3usize), 1..6),
        readers in proptest::collection::vec(reader(), 3),
        limit in prop_oneof![Just(0), Just(10_000), Just(usize::MAX)],
        mut by_tenant in any::<bool>(),
    ) {
        let parts = Parts::new(Some(store()));
        parts.limit(limit);
        if by_tenant {
            parts.hold(0);
        }
        let mut base = Assembled::default();
        let mut records: BTreeMap<i64, Record> = BTreeMap::new();
        let names = NAMES.map(String::from);
        let mut number = parts.number();
        for (step, at, rests) in steps {
            // Parts that nobody reads are packed, and read again when somebody comes.
            (0..rests).for_each(|_| parts.rest());
            // Those of tenants that nobody reads are forgotten, and fetched again.
            parts.forget();
            // One whose records are fetched while they change.
            let slow = &readers[(at + 1) % readers.len()].tenant;
            let slow = (by_tenant && rests > 0 && !parts.has(slow)).then(|| {
                (parts.fetch(Some(slow.clone())), common::rows(&records, slow))
            });
            // Who reads before a change has a catalog that the change makes stale.
            let held = common::view_of(&parts, &records, &readers[at]);
            let before = everything(&held, &names);
            let named: Vec<String> = existing(&base, &records);
            let mut went: Vec<(i64, Arc<str>)> = Vec::new();
            // Nobody looks at the records of another database for the names that differ.
            let mut is_told = true;
            let change = match step {
                Step::Write(put, gone) => {
                    let name = |id: &i64| {
                        let before = records.get(id).map_or("", |record| &record.name);
                        (*id, before.into())
                    };
                    went = gone.iter().map(name).collect();
                    records.retain(|id, _| !gone.contains(id));
                    records.extend(put.iter().map(|record| (record.id, record.clone())));
                    // Those that are here already change nothing.
                    let put = if rests == 1 { parts.differing(put) } else { put };
                    parts.put(put.iter().map(|record| parts.read(record)).collect(), &went)
                }
                Step::Replace(others) => {
                    (is_told, by_tenant) = (false, true);
                    records = others.into_iter().map(|record| (record.id, record)).collect();
                    let stays = |record: &&Record| {
                        record.tenant == Tenant::Common || record.schedule.is_some()
                    };
                    let stay: Vec<Record> = records.values().filter(stays).cloned().collect();
                    let there = stay.iter().map(|record| record.id).collect();
                    let differing = parts.differing(stay);
                    parts.replace(differing.iter().map(|one| parts.read(one)).collect(), &there)
                }
                Step::Files(list) => {
                    base = files(&list);
                    parts.publish(vec![Some(base.clone()), None], Arc::default())
                }
            };
            prop_assert!(change.number == parts.number() && change.number >= number);
            number = change.number;
            if let Some((fetch, rows)) = slow {
                common::fetched(&parts, &fetch, &rows);
            }
            prop_assert_eq!(everything(&held, &names), before, "a view keeps its generation");
            for reader in &readers {
                let whole = of_everything(&base, &records, reader);
                let part = common::view_of(&parts, &records, reader);
                prop_assert_eq!(everything(&part, &names), everything(&whole, &names));
                // A limit forgets those that were read before.
                let again = parts.cached(reader);
                prop_assert!(again.is_some_and(|again| again.is_same(&part)));
                // A record that the reader does not see is not even in its catalog.
                let own = part.catalog().entries().iter();
                let mut stored = own.filter(|entry| entry.document.of_record().is_some());
                prop_assert!(stored.all(|entry| reader.tenant.reads(entry.tenant())));
            }
            // The texts of everything in memory are embedded, and of nothing else.
            let ids: BTreeSet<i64> = parts.record_ids().into_iter().collect();
            let there = ids.iter().filter_map(|id| records.get(id));
            let there = assembled(there).entries.into_iter().chain(base.entries.clone());
            let digests: BTreeSet<_> = there.map(|entry| *embedded::digest(&entry)).collect();
            let texts = parts.texts();
            prop_assert_eq!(texts.digests().copied().collect::<BTreeSet<_>>(), digests.clone());
            let wanted = texts.digests().map(|digest| (*digest, *digest)).collect();
            let read = texts.read(wanted).into_iter();
            let read = read.filter(|(digest, text)| *digest == embedded::digest_of(text));
            prop_assert_eq!(read.map(|(digest, _)| digest).collect::<BTreeSet<_>>(), digests);
            // The names that came and went, where a change of files says so only of files.
            let now = existing(&base, &records);
            let new = |name: &&String| !named.contains(name);
            let gone = |name: &&String| !now.contains(name);
            let has = |names: &[Arc<str>], name: &str| names.iter().any(|other| **other == *name);
            // Of records that are not there nobody knows whether they are the only ones of a name.
            let told = |names: &[Arc<str>], name: &str| {
                let all = [&change.added, &change.changed, &change.removed];
                has(names, name) || by_tenant && all.iter().any(|names| has(names, name))
            };
            if change.number > 1 && is_told {
                for name in now.iter().filter(new) {
                    prop_assert!(told(&change.added, name), "{name}");
                }
                // A record of the database keeps its name. Here it may get another.
                let known = |name: &&String| {
                    !by_tenant || went.iter().any(|(_, other)| **other == ***name)
                };
                for name in named.iter().filter(gone).filter(known) {
                    prop_assert!(told(&change.removed, name), "{name}");
                }
            }
        }
        // Those with a schedule are there, whoever reads.
        let scheduled = parts.scheduled(None);
        let ids = scheduled.iter().filter_map(|entry| Some(entry.document.of_record()?.id));
        let timed = records.values().filter(|record| record.schedule.is_some());
        prop_assert_eq!(ids.collect::<BTreeSet<_>>(), timed.map(|one| one.id).collect());
        let whole = of_everything(&base, &records, &Profile::unrestricted());
        common::view_of(&parts, &records, &Profile::unrestricted());
        let all = parts.whole();
        let paths = |catalog: &Catalog| {
            catalog.entries().iter().map(|entry| entry.document.path.clone()).collect::<Vec<_>>()
        };
        prop_assert_eq!(paths(&all), paths(whole.catalog()));
    }
}

/// The names that an entry has, of files and of records.
fn existing(base: &Assembled, records: &BTreeMap<i64, Record>) -> Vec<String> {
    let whole = of_everything(base, records, &Profile::unrestricted());
    let mut names: Vec<_> =
        whole.catalog().entries().iter().map(|entry| entry.name.to_string()).collect();
    names.dedup();
    names
}
