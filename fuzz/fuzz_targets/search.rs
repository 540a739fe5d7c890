//! Any query: no panic, and the highlights are in the snippet and in order.
#![no_main]

use std::sync::{Arc, OnceLock};

use libfuzzer_sys::fuzz_target;
use skillbook_core::catalog::assemble::assemble;
use skillbook_core::catalog::Catalog;
use skillbook_core::page::document::Document;
use skillbook_core::source::Source;
use skillbook_core::view::search::Query;
use skillbook_core::view::{CachedCatalog, Profile, View};

const FILES: [(&str, &str); 3] = [
    (
        "email/send.md",
        concat!(
            "---\n",
            "name: email.send\n",
            "description: Sends a mêssage\n",
            "aliases: [sendMail]\n",
            "---\n",
            "# Üsage\n",
            "\n",
            "email.send --to ADDR\n",
        ),
    ),
    (
        "größe.md",
        concat!(
            "---\n",
            "name: größe\n",
            "description: ﬁnds the size, 日本語\n",
            "---\n",
            "a\u{301}b ＡＢＣ \u{345}x queries, boxes\n",
        ),
    ),
    (
        "long.md",
        concat!(
            "---\n",
            "name: long\n",
            "description: d\n",
            "---\n",
            "abcdefghijklmnopqrstuvwxyz \
             abcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyzabcdefghijklmnopqrstuvwxyz\n",
        ),
    ),
];

fn view() -> &'static View {
    static VIEW: OnceLock<View> = OnceLock::new();
    VIEW.get_or_init(|| {
        let source = Arc::new(Source { name: "s".into(), root: "/s".into(), ..Source::default() });
        let parse = |(path, text): &(&str, &str)| {
            Arc::new(Document::parse(&source.root, path, text.as_bytes()))
        };
        let documents = FILES.iter().map(parse).collect();
        let paths = FILES.iter().map(|(path, _)| path.to_string()).collect();
        let catalog = Catalog::build(1, vec![assemble(&source, documents, paths)]);
        View::new(Arc::new(CachedCatalog::new(catalog)), &Profile::unrestricted())
            .expect("no globs")
    })
}

fuzz_target!(|text: &str| {
    let hits = view().search(&Query::new(text));
    assert!(hits.len() <= FILES.len());
    assert!(hits.iter().all(|hit| hit.score.is_finite()));
    for hit in hits {
        let mut end = 0;
        for (start, length) in hit.snippet.highlights {
            assert!(start >= end && length > 0);
            end = start + length;
            assert!(hit.snippet.text.get(start..end).is_some());
        }
    }
});
