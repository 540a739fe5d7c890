//! The memory of stored entries: packed while nobody reads them, open in the catalogs of readers,
//! and how both follow a limit.
//!
//! By default with few entries, since CI has little time. SKILLBOOK_ENTRIES sets another number,
//! and then the figures are printed:
//!
//! ```sh
//! SKILLBOOK_ENTRIES=100000 cargo test --release -p skillbook_core --test memory -- --nocapture
//! ```
// The number comes from the environment, and then figures are printed.
#![allow(clippy::disallowed_methods, clippy::disallowed_macros)]

mod common;
#[path = "common/counting.rs"]
mod counting;

use std::sync::atomic::Ordering::Relaxed;
use std::sync::Arc;
use std::time::Instant;

use counting::{ALONE, USED};
use skillbook_core::page::record::Record;
use skillbook_core::source::{Source, SourceKind};
use skillbook_core::tenant::Tenant;
use skillbook_core::view::search::Query;
use skillbook_core::view::{Parts, Profile, View};

const OWN: usize = 50;
const MB: usize = 1024 * 1024;

/// 0.9 KB of words, of which some are rare.
fn content(at: usize) -> String {
    let mut number = at as u64 * 977 + 1;
    let mut next = |most: u64| {
        number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040);
        (number >> 33) % most
    };
    let word = |at: usize| format!("word{}", next(if at.is_multiple_of(4) { 20_000 } else { 300 }));
    (0..120).map(word).collect::<Vec<_>>().join(" ")
}

fn tenant(at: usize, count: usize) -> Tenant {
    Tenant::One(format!("tenant-{}", at % (count / OWN)).into())
}

fn stored(at: usize, count: usize) -> Record {
    let record = common::record(&format!("entry-{at}"), &content(at));
    Record {
        id: at as i64 + 1,
        is_skill: true,
        title: format!("Entry number {at}"),
        description: format!("Describes the work of number {at}"),
        tenant: tenant(at, count),
        writers: vec![Some("user".into())],
        ..record
    }
}

fn reader(at: usize, count: usize) -> Profile {
    Profile { tenant: tenant(at, count), grants: Some(Vec::new()), ..Profile::unrestricted() }
}

fn load(count: usize) -> (Parts, usize) {
    let (name, root, kind) = ("store".into(), "/store".into(), SourceKind::Stored);
    let parts = Parts::new(Some(Arc::new(Source { name, root, kind, ..Source::default() })));
    let (tenants, mut text) = (count / OWN, 0);
    for first in (0..tenants).step_by(40) {
        let own = |tenant: usize| (tenant..count).step_by(tenants);
        let records = (first..tenants.min(first + 40)).flat_map(own).map(|at| stored(at, count));
        let records: Vec<_> = records.collect();
        text += records.iter().map(|record| record.content.len()).sum::<usize>();
        let fetch = parts.fetch(None);
        let blocks =
            parts.fetched(&fetch, records.iter().map(|record| parts.take_in(record)).collect());
        blocks.iter().for_each(|block| block.pack());
    }
    parts.rest();
    (parts, text)
}

fn used(from: usize) -> usize {
    USED.load(Relaxed).saturating_sub(from)
}

fn turn(view: &View) {
    view.generation();
    view.search(&Query::new("word7 number"));
}

#[test]
fn entries_that_nobody_reads_take_half_of_their_text() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let given = std::env::var("SKILLBOOK_ENTRIES").ok().and_then(|count| count.parse().ok());
    let count: usize = given.unwrap_or(2_000);
    let told = |what: &str, bytes: usize, of: usize, text: usize| {
        if given.is_some() {
            let (each, ratio) = (bytes / of, bytes as f64 / text as f64);
            println!("{what}: {each} bytes an entry, {ratio:.2} of the text");
        }
    };
    let (before, began) = (USED.load(Relaxed), Instant::now());
    let (parts, text) = load(count);
    if given.is_some() {
        println!("{count} entries put in {:?}", began.elapsed());
    }
    let packed = used(before);
    told("packed", packed, count, text);
    assert!(packed < text * 65 / 100, "{packed} bytes of {text}");
    assert_eq!(parts.open_bytes(), 0);

    // Some tenants read all that they have.
    let active = (count / OWN).min(40);
    let began = Instant::now();
    let views: Vec<_> = (0..active).map(|at| parts.view(&reader(at, count)).unwrap()).collect();
    if given.is_some() {
        println!("a tenant's first view in {:?}", began.elapsed() / active as u32);
    }
    let own_text = text / (count / OWN) * active;
    let opened = used(before) - packed;
    told("open", opened, active * OWN, own_text);
    views.iter().for_each(turn);
    let searched = used(before) - packed;
    told("open and searched", searched, active * OWN, own_text);
    assert!(opened < searched * 7 / 10, "{opened} of {searched}");
    assert!(searched < own_text * 40 / 10, "{searched} of {own_text}");
    // The limit is about nearly the bytes that they take.
    let counted = parts.open_bytes();
    assert!(counted > searched * 8 / 10 && counted < searched * 12 / 10, "{counted}: {searched}");

    // Nobody has them any more, and they were not read between two rests.
    drop(views);
    parts.rest();
    parts.rest();
    assert_eq!(parts.open_bytes(), 0);
    let left = used(before) - packed;
    told("left of them", left, active * OWN, own_text);
    assert!(left < 4 * MB, "{left} bytes are left");
}

#[test]
fn open_entries_stay_below_their_limit() {
    let _alone = ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let count = 1_000;
    let (parts, _) = load(count);
    parts.limit(MB);
    for round in 0..3 {
        for at in 0..count / OWN {
            let view = parts.view(&reader(at, count)).unwrap();
            assert_eq!(view.count(), OWN, "{round} {at}");
            let id = view.find(&format!("entry-{at}")).unwrap();
            assert_eq!(view.entry(id).unwrap().body(), content(at), "its own text");
            assert!(parts.open_bytes() <= MB + MB / 4, "{} bytes", parts.open_bytes());
        }
    }
}
