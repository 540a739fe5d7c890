//! Views of a book's parts while it changes. `leaks/parts.rs` has the property that they are right,
//! `search.rs` that searches are.

mod common;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;

use common::doc;
use skillbook_core::catalog::entry::Entry;
use skillbook_core::page::record::Record;
use skillbook_core::source::{Source, SourceKind};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::search::Query;
use skillbook_core::view::{Parts, Profile, View};

const WRITES: i64 = 1_000;
const TENANTS: [&str; 3] = ["", "near", "far"];

fn store() -> Arc<Source> {
    let (name, root, kind) = ("store".into(), "/store".into(), SourceKind::Stored);
    Arc::new(Source { name, root, kind, ..Source::default() })
}

fn tenant(at: usize) -> Tenant {
    Some(TENANTS[at].to_owned()).into()
}

fn reader(at: usize) -> Profile {
    Profile { tenant: tenant(at), grants: Some(Vec::new()), ..Profile::unrestricted() }
}

/// The number that a record or a file was written with.
fn number(entry: &Entry) -> i64 {
    entry.body().trim().trim_start_matches("number ").parse().unwrap()
}

#[test]
fn readers_see_whole_generations_during_a_thousand_writes() {
    let parts = Parts::new(Some(store()));
    let written = |at: usize, second: bool, count: i64| {
        let record = Record {
            id: 2 * at as i64 + i64::from(second),
            tenant: tenant(at),
            ..common::record(
                &format!("{}-{}", if second { "two" } else { "one" }, TENANTS[at]),
                &format!("number {count}"),
            )
        };
        parts.read(&record)
    };
    let publish = |count: i64| {
        let text = |name: &str| doc(name, "", &format!("number {count}"));
        let files = [("left.md", text("left")), ("right.md", text("right"))];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        let files = common::source("files", SourceKind::Skills, &[], &files);
        parts.publish(vec![Some(files), None], Arc::default());
    };
    publish(0);
    (0..TENANTS.len()).for_each(|at| {
        parts.put(vec![written(at, false, 0), written(at, true, 0)], &[]);
    });
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let readers: Vec<_> = (0..TENANTS.len())
            .map(|at| {
                let (parts, done) = (&parts, &done);
                scope.spawn(move || {
                    let reader = reader(at);
                    let (mut last, mut reads) = ([0, 0], 0);
                    // A last look after the last write.
                    let mut ends = false;
                    while !std::mem::replace(&mut ends, done.load(Ordering::Acquire)) || reads == 0
                    {
                        let view = parts.view(&reader).unwrap();
                        let found = |name: &str| {
                            let id = view.find(name).unwrap_or_else(|| panic!("no {name}"));
                            number(view.entry(id).unwrap())
                        };
                        let own = TENANTS[at];
                        // Two that were written together are seen together.
                        let pairs = [
                            [found(&format!("one-{own}")), found(&format!("two-{own}"))],
                            [found("left"), found("right")],
                        ];
                        for (pair, last) in pairs.iter().zip(&mut last) {
                            assert_eq!(pair[0], pair[1]);
                            assert!(pair[0] >= *last, "an older generation came back");
                            *last = pair[0];
                        }
                        for (other, name) in TENANTS.iter().enumerate() {
                            let shown = view.find(&format!("one-{name}")).is_some();
                            assert_eq!(shown, other == 0 || other == at);
                        }
                        let hits = view.search(&Query::new(&format!("one-{own}")));
                        assert_eq!(&*view.entry(hits[0].id).unwrap().name, format!("one-{own}"));
                        reads += 1;
                    }
                    last
                })
            })
            .collect();
        for count in 1..=WRITES {
            match count % 10 {
                0 => publish(count),
                of => {
                    let at = of as usize % TENANTS.len();
                    parts.put(vec![written(at, false, count), written(at, true, count)], &[]);
                }
            }
        }
        done.store(true, Ordering::Release);
        let last: Vec<_> = readers.into_iter().map(|reader| reader.join().unwrap()).collect();
        // 999, 997 and 998 were the last writes of the tenants, 1000 that of the files.
        assert_eq!(last, [[999, 1000], [997, 1000], [998, 1000]]);
    });
}

#[test]
fn a_write_leaves_the_views_of_others_as_they_are() {
    let parts = Parts::new(Some(store()));
    parts.publish(
        vec![Some(common::source("files", SourceKind::Skills, &[], &[])), None],
        Arc::default(),
    );
    let write = |id: i64, at: usize, labels: &[&str], text: &str| {
        let labels = labels.iter().map(|label| label.to_string()).collect();
        let record = common::record(&format!("note-{id}"), text);
        let record = Record { id, tenant: tenant(at), labels, ..record };
        parts.put(vec![parts.read(&record)], &[])
    };
    let staff = Profile { grants: Some(vec!["staff".into()]), ..reader(1) };
    let all = Profile { tenant: Tenant::All, ..Profile::unrestricted() };
    let readers = [reader(0), reader(1), reader(2), staff, all];
    // Who sees a write of a tenant with labels: all others keep the view that they have.
    for (id, (at, labels, seen)) in [
        (0, &[][..], [true, true, true, true, true]),
        (1, &[][..], [false, true, false, true, true]),
        (1, &["staff"][..], [false, false, false, true, true]),
        (2, &["staff"][..], [false, false, false, false, true]),
    ]
    .into_iter()
    .enumerate()
    {
        for text in ["first", "second"] {
            let before: Vec<_> = readers.iter().map(|reader| parts.view(reader).unwrap()).collect();
            let change = write(id as i64, at, labels, text);
            let names = if text == "first" { &change.added } else { &change.changed };
            assert_eq!(
                names.iter().map(|name| &**name).collect::<Vec<_>>(),
                [format!("note-{id}")]
            );
            let differ = readers.iter().zip(&before);
            let differ =
                differ.map(|(reader, before)| !parts.view(reader).unwrap().is_same(before));
            assert_eq!(differ.collect::<Vec<_>>(), seen, "{id} {text}");
        }
        // The same again is no change.
        let number = parts.number();
        assert_eq!(write(id as i64, at, labels, "second").number, number);
    }
}

#[test]
fn problems_of_records_are_news_once_somebody_reads_them() {
    let parts = Parts::new(Some(store()));
    let files = |text: &str| {
        let files = [("tea.md", doc("tea", "requires: [milk]\n", text))];
        let files: Vec<_> = files.iter().map(|(path, text)| (*path, text.as_str())).collect();
        vec![Some(common::source("files", SourceKind::Skills, &[], &files)), None]
    };
    parts.publish(files("Drink."), Arc::default());
    let note = |id: i64, at: usize, text: &str| {
        let text = format!("---\nrequires: [none]\n---\n{text}");
        Record { id, tenant: tenant(at), ..common::record(&format!("note-{id}"), &text) }
    };
    let fetched = [note(1, 1, "One"), note(2, 2, "Two")];
    parts.fetched(&parts.fetch(None), fetched.iter().map(|record| parts.take_in(record)).collect());
    parts.rest();
    // The paths of problems, and whether the files are looked at.
    let news = |all: bool| {
        let (catalogs, next) = parts.news(all, 0);
        assert_eq!(next, None);
        let everything = Profile::unrestricted();
        let views = catalogs.into_iter().map(|catalog| View::new(catalog, &everything).unwrap());
        let mut paths: Vec<_> = views
            .flat_map(|view| view.problems().map(|p| p.path.clone().unwrap()).collect::<Vec<_>>())
            .collect();
        paths.sort();
        paths.dedup();
        paths
    };
    let write = |record: &Record| parts.put(vec![parts.read(record)], &[]);
    assert_eq!(news(true), ["/files/tea.md"], "nobody reads a record");
    assert_eq!(news(false), [""; 0]);
    let view = parts.view(&reader(1)).unwrap();
    assert_eq!(news(false), ["/files/tea.md", "/store/note-1.md"]);
    assert_eq!(news(false), [""; 0], "once");
    write(&note(2, 2, "Nobody reads it."));
    assert_eq!(news(false), [""; 0]);
    write(&note(1, 1, "Somebody does."));
    assert_eq!(news(false), ["/files/tea.md", "/store/note-1.md"]);
    parts.publish(files("Drink it hot."), Arc::default());
    assert_eq!(news(true), ["/files/tea.md", "/store/note-1.md"]);
    assert_eq!(news(true), ["/files/tea.md", "/store/note-1.md"], "also those that were looked at");
    let _other = parts.view(&reader(2)).unwrap();
    assert_eq!(news(false), ["/files/tea.md", "/store/note-2.md"]);
    drop(view);
}

#[test]
fn only_records_that_differ_are_read() {
    let parts = Parts::new(Some(store()));
    let all: Vec<Record> = (1..100)
        .map(|id| Record {
            id,
            tenant: tenant(id as usize % 3),
            labels: if id % 4 == 0 { vec!["staff".into()] } else { Vec::new() },
            ..common::record(&format!("note-{id}"), &format!("Text {id} {}", "more ".repeat(200)))
        })
        .collect();
    let ids =
        |records: Vec<Record>| -> Vec<i64> { records.iter().map(|record| record.id).collect() };
    assert_eq!(parts.differing(all.clone()), all);
    parts.put(all.iter().map(|record| parts.read(record)).collect(), &[]);
    let changed = |id: usize, change: &dyn Fn(&mut Record)| {
        let mut all = all.clone();
        change(&mut all[id - 1]);
        ids(parts.differing(all))
    };
    for packed in [false, true] {
        if packed {
            parts.rest();
        }
        assert_eq!(changed(1, &|_| ()), [0; 0]);
        assert_eq!(changed(7, &|record| record.content = "other".into()), [7]);
        assert_eq!(changed(8, &|record| record.labels = Vec::new()), [8]);
        assert_eq!(changed(9, &|record| record.tenant = tenant(1)), [9]);
        assert_eq!(changed(99, &|record| record.id = 0), [0]);
        assert_eq!(changed(99, &|record| record.id = 100), [100]);
    }
}
