//! A catalog of any three files: everything read from it succeeds or is refused, and is the same
//! each time.
#![no_main]

use std::sync::Arc;

use libfuzzer_sys::fuzz_target;
use skillbook_core::catalog::assemble::assemble;
use skillbook_core::catalog::Catalog;
use skillbook_core::lint::lint;
use skillbook_core::page::diagnostic::apply;
use skillbook_core::page::document::Document;
use skillbook_core::prompt::{Limit, Options, Section};
use skillbook_core::source::{Source, SourceKind};
use skillbook_core::view::search::Query;
use skillbook_core::view::{CachedCatalog, Profile, View};

const PATHS: [&str; 3] = ["mail/SKILL.md", "mail/send.md", "tool/SKILL.md"];

fn catalog(kind: SourceKind, files: &[Vec<u8>; 3]) -> Arc<CachedCatalog> {
    let source =
        Arc::new(Source { name: "s".into(), root: "/s".into(), kind, ..Source::default() });
    let read =
        |(path, bytes): (&&str, &Vec<u8>)| Arc::new(Document::parse(&source.root, path, bytes));
    let documents = PATHS.iter().zip(files).map(read).collect();
    let paths = PATHS.iter().chain(&["tool/x.txt"]).map(|path| path.to_string()).collect();
    Arc::new(CachedCatalog::new(Catalog::build(1, vec![assemble(&source, documents, paths)])))
}

fn read(catalog: &Arc<CachedCatalog>, profile: &Profile) -> String {
    let view = View::new(catalog.clone(), profile).expect("no globs");
    let mut out = String::from(&**view.prompt());
    let names = view.entries().map(|(_, entry)| entry.name.to_string()).collect::<Vec<_>>();
    for chars in [None, Some(700)] {
        let limit = Limit { chars, tokens: None };
        let text = view.prompt_with(&Options {
            sections: Section::ALL.to_vec(),
            preloaded: names.clone(),
            nearest: names.iter().rev().cloned().collect(),
            used: names.iter().rev().cloned().collect(),
            limit,
        });
        assert!(chars.is_none_or(|most| text.chars().count() <= most));
        out += &text;
    }
    for name in names.iter().map(String::as_str).chain(["", "mail", "mail.all", "tool"]) {
        out += &format!("{:?} {:?}", view.help(name), view.suggest(name));
        for hit in view.search(&Query::new(name)) {
            assert!(hit.score.is_finite());
            let text = &hit.snippet.text;
            assert!(hit
                .snippet
                .highlights
                .iter()
                .all(|(start, length)| text.get(*start..start + length).is_some()));
        }
    }
    for (id, _) in view.entries() {
        let declared = view.entry(id).and_then(|entry| entry.declaration());
        out += &format!("{:?} {declared:?}", view.tools(id, Some(&["Read".to_owned()])));
    }
    out + &view.diagnostics().map(|found| format!("{found:?}")).collect::<String>()
}

fuzz_target!(|input: (bool, [Vec<u8>; 3])| {
    let (notes, files) = input;
    let kind = if notes { SourceKind::Notes } else { SourceKind::Skills };
    let reader =
        Profile { id: "reader".into(), grants: Some(Vec::new()), ..Profile::unrestricted() };
    let (one, other) = (catalog(kind, &files), catalog(kind, &files));
    for profile in [&Profile::unrestricted(), &reader] {
        assert_eq!(read(&one, profile), read(&other, profile));
    }
    let view = View::new(one, &Profile::unrestricted()).unwrap();
    for found in lint(&view) {
        let file = PATHS
            .iter()
            .position(|path| found.path.as_deref().is_some_and(|found| found.ends_with(path)));
        if let Some(Ok(text)) = file.map(|at| std::str::from_utf8(&files[at])) {
            let _ = apply(text, &found.fix.map(|fix| vec![*fix]).unwrap_or_default());
        }
    }
});
