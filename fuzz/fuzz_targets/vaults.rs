//! What is in a document is found in it, snippets mark places of their text, and rows that nobody packed are no crash.
#![no_main]

use libfuzzer_sys::fuzz_target;
use skillbook_core::vault::{postings, rank, snippet, words, Document, Unit};

fuzz_target!(|input: (Vec<(String, String)>, String, Vec<(Vec<u8>, Vec<u8>)>)| {
    let (texts, query, rows) = input;
    let documents: Vec<_> = texts
        .iter()
        .zip(1..)
        .map(|((title, content), id)| Document { id, titles: vec![title.clone()], content: content.clone() })
        .collect();
    let index = postings(&documents);
    assert!(index.windows(2).all(|pair| pair[0].term < pair[1].term));

    for document in &documents {
        let own = words(&document.content);
        for pair in own.windows(2).take(20) {
            let row = |term: &str| {
                let found = index.binary_search_by(|row| row.term.as_str().cmp(term)).expect("a word of a document");
                (index[found].documents.as_slice(), index[found].places.as_slice())
            };
            let [one, other] = [row(&pair[0].stem), row(&pair[1].stem)];
            let units = [
                Unit::Any(vec![row(&format!("\u{E000}{}", pair[0].form)).0]),
                Unit::Any(vec![one.0]),
                Unit::Phrase(vec![vec![one], vec![other]]),
            ];
            let found = rank(&units, documents.len(), None, documents.len());
            let ids = found.above.iter().map(|(id, _)| *id).chain(found.level.iter().copied());
            assert!(found.all && ids.into_iter().any(|id| id == document.id));
        }
        let stems: Vec<_> = words(&query).into_iter().map(|word| word.stem).collect();
        let part = snippet(&document.content, &stems, &[query.clone()]);
        assert!(part.highlights.iter().all(|(start, length)| part.text.get(*start..start + length).is_some()));
    }

    let packed: Vec<_> = rows.iter().map(|(documents, places)| (documents.as_slice(), places.as_slice())).collect();
    let any = Unit::Any(packed.iter().map(|(documents, _)| *documents).collect());
    let found = rank(&[any, Unit::Phrase(vec![packed.clone(), packed])], usize::from(u8::MAX), None, 10);
    assert!(found.above.len() < 10 || found.level.is_empty());
});
