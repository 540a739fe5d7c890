//! The words of documents in vaults.

use rustler::{Binary, Encoder, Env, NewBinary, NifTaggedEnum, Term};
use skillbook_core::vault::{self, Document};

/// The words of each text: as written, and their stems.
#[rustler::nif(schedule = "DirtyCpu")]
fn vault_words(texts: Vec<String>) -> Vec<Vec<(String, String)>> {
    let words = |text: &String| vault::words(text).into_iter().map(|word| (word.form, word.stem)).collect();
    texts.iter().map(words).collect()
}

/// Of documents as id, titles and text: each term with the documents that have it and its places in them, packed.
#[rustler::nif(schedule = "DirtyCpu")]
fn vault_postings<'a>(env: Env<'a>, documents: Vec<(u64, Vec<String>, String)>) -> Vec<(String, Term<'a>, Term<'a>)> {
    let documents: Vec<Document> =
        documents.into_iter().map(|(id, titles, content)| Document { id, titles, content }).collect();
    let pack = |bytes: &[u8]| NewBinary::from_slice(env, bytes).into();
    let terms = vault::postings(&documents).into_iter();
    terms.map(|one| (one.term, pack(&one.documents), pack(&one.places))).collect()
}

/// Of each text the part that shows why it was found, and where the matches stand in it.
#[rustler::nif(schedule = "DirtyCpu")]
fn vault_snippets<'a>(env: Env<'a>, texts: Vec<&str>, stems: Vec<String>, prefixes: Vec<String>) -> Vec<Term<'a>> {
    let snippet = |text: &&str| {
        let found = vault::snippet(text, &stems, &prefixes);
        (found.text, found.highlights).encode(env)
    };
    texts.iter().map(snippet).collect()
}

/// What a query asks for, with the rows of the index that have it.
#[derive(NifTaggedEnum)]
enum Unit<'a> {
    Any(Vec<Binary<'a>>),
    Phrase(Vec<Vec<(Binary<'a>, Binary<'a>)>>),
}

/// The documents that have the units: whether all of them, how many, those above the last score that is shown, and that
/// score with those that have it.
#[rustler::nif(schedule = "DirtyCpu")]
fn vault_rank<'a>(
    env: Env<'a>,
    units: Vec<Unit<'a>>,
    documents: usize,
    within: Option<Vec<u64>>,
    limit: usize,
) -> Term<'a> {
    let units: Vec<_> = units
        .iter()
        .map(|unit| match unit {
            Unit::Any(rows) => vault::Unit::Any(rows.iter().map(Binary::as_slice).collect()),
            Unit::Phrase(words) => vault::Unit::Phrase(
                words
                    .iter()
                    .map(|rows| rows.iter().map(|(ids, places)| (ids.as_slice(), places.as_slice())).collect())
                    .collect(),
            ),
        })
        .collect();
    let found = vault::rank(&units, documents, within.as_deref(), limit);
    (found.all, found.total, found.above, found.score, found.level).encode(env)
}
