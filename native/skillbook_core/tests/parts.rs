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
use skillbook_core::view::{Parts, Profile};

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
