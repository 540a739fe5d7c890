//! Every word of a document is found, however its runs were merged. Snippets mark positions in
//! their text. Malformed rows do not crash.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::search::rows::{
    merge, pack, rank, without, words, BlockRow, Clause, Limit, Meaning, Run, SearchDocument,
    StoredRun,
};
use skillbook_core::search::snippet;

fn kept<'a>(run: &'a Run, gone: &'a [u8]) -> StoredRun<'a> {
    let blocks = run.blocks.iter().map(|block| (&block.documents[..], &block.places[..])).collect();
    StoredRun { ids: &run.ids, digests: &run.digests, gone, blocks, numbers: &[] }
}

fn term(text: &str) -> (String, String) {
    (text.to_owned(), text.to_owned())
}

fuzz_target!(|input: (Vec<(String, String)>, String, Vec<(Vec<u8>, Vec<u8>)>)| {
    let (texts, query, rows) = input;
    let documents: Vec<_> = texts
        .iter()
        .zip(1..)
        .map(|((title, content), id)| SearchDocument {
            id,
            titles: vec![title.clone()],
            content: content.clone(),
            fields: vec![format!("\u{E001}{title}")],
        })
        .collect();
    let index = pack(&documents);
    assert!(index.blocks.windows(2).all(|pair| pair[0].first < pair[1].first));

    // Every other document is removed from the first run and added to a second one.
    let (moved, kept_in): (Vec<_>, Vec<_>) =
        documents.iter().cloned().partition(|document| document.id % 2 == 0);
    let ids: Vec<u64> = moved.iter().map(|document| document.id).collect();
    let (gone, count) = without(&index.ids, &[], &ids);
    assert_eq!(count, moved.len());
    let again = pack(&moved);
    assert_eq!(merge(&[kept(&index, &gone), kept(&again, &[])]), index);
    assert_eq!(merge(&[kept(&index, &gone)]), pack(&kept_in));

    for document in &documents {
        let own = words(&[&document.content]).concat();
        for pair in own.windows(2).take(20) {
            let clauses = [
                Clause::With(vec![vec![term(&format!("\u{E000}{}", pair[0].form))]]),
                Clause::With(vec![vec![term(&pair[0].stem)]]),
                Clause::With(vec![vec![term(&pair[0].stem), term(&pair[1].stem)]]),
            ];
            let filters = [term(&document.fields[0])];
            let ranges = 0..5;
            let row = |range| {
                let blocks = index.blocks.iter();
                blocks.map(move |block| BlockRow {
                    range,
                    gone: &[],
                    documents: &block.documents,
                    places: &block.places,
                })
            };
            let rows: Vec<_> = ranges.flat_map(row).collect();
            let limit = Limit::Level(documents.len());
            let found = rank(&clauses, &filters, &rows, documents.len(), None, limit);
            assert!(found.all && found.hits.iter().any(|(id, _)| *id == document.id));
        }
        let stems: Vec<_> = words(&[&query]).concat().into_iter().map(|word| word.stem).collect();
        let part = snippet(&document.content, &stems, std::slice::from_ref(&query));
        assert!(part
            .highlights
            .iter()
            .all(|(start, length)| part.text.get(*start..start + length).is_some()));
    }

    let wide = || (String::new(), "\u{10FFFF}".to_owned());
    let row = |(range, (documents, places)): (usize, &(Vec<u8>, Vec<u8>))| {
        (range % 4, documents.clone(), places.clone())
    };
    let packed: Vec<_> = rows.iter().enumerate().map(row).collect();
    let read = packed.iter().map(|(range, documents, places)| BlockRow {
        range: *range,
        gone: places,
        documents,
        places,
    });
    let clauses = [Clause::With(vec![vec![wide()]]), Clause::Without(vec![vec![wide(), wide()]])];
    let found = rank(
        &clauses,
        &[wide()],
        &read.collect::<Vec<_>>(),
        usize::from(u8::MAX),
        Some(Meaning { similar: &[(0, 0.5), (1, -1.0)], extends: true }),
        Limit::Newest(10),
    );
    assert!(found.hits.len() <= found.total.min(10));
    let blocks = rows.iter().map(|(documents, places)| (&documents[..], &places[..])).collect();
    let gone = rows.first().map(|(_, places)| &places[..]).unwrap_or_default();
    merge(&[StoredRun { ids: gone, digests: gone, gone, blocks, numbers: &[] }]);
});
