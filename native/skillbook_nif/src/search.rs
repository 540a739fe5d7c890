//! Search over the entries of a view, with the index in memory. For documents in the database see
//! `search_rows`.

use rustler::{Binary, Encoder, Env, NifMap, NifResult, ResourceArc, Term};
use skillbook_core::view::pick::{self, Retrieved};
use skillbook_core::view::search::{decimals, Candidate, Hit, Meaning, Query};

use crate::encode;
use crate::vectors::{numbers, VectorsResource};
use crate::view::{EntryKind, ViewResource};

mod atoms {
    rustler::atoms! {
        __struct__,
        hit = "Elixir.Skillbook.Hit",
        description,
        highlights,
        kind,
        name,
        score,
        snippet,
        title,
    }
}

/// The vector of a query, with the store of the entries' vectors.
pub type MeaningTerm<'a> = Option<(ResourceArc<VectorsResource>, Binary<'a>)>;

/// The matching entries as `%Skillbook.Hit{}`, best first. With `meaning` also those that are
/// similar.
#[rustler::nif(schedule = "DirtyCpu")]
#[expect(clippy::too_many_arguments, reason = "the options of a search")]
fn view_search<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    text: &str,
    limit: usize,
    kind: Option<EntryKind>,
    domain: Option<String>,
    tags: Vec<String>,
    meaning: MeaningTerm<'a>,
) -> NifResult<Vec<Term<'a>>> {
    let query = Query {
        limit,
        kind: kind.map(EntryKind::kind),
        domain: domain.as_deref(),
        tags: &tags,
        ..Query::new(text)
    };
    let hits = with_meaning(query, &meaning, |query| view.core().search(query))?;
    hits.iter().map(|hit| encode_hit(env, &view, hit)).collect()
}

/// A candidate: name, score, score by words, similarity.
type CandidateTerm = (String, f64, f64, Option<f64>);

/// The same entries as `{name, score, score by words, similarity or nil}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_candidates<'a>(
    view: ResourceArc<ViewResource>,
    text: &str,
    limit: usize,
    meaning: MeaningTerm<'a>,
) -> NifResult<Vec<CandidateTerm>> {
    let query = Query { limit, ..Query::new(text) };
    let found = with_meaning(query, &meaning, |query| view.core().candidates(query))?;
    let candidate = |found: &Candidate| {
        let entry = view.core().entry(found.id)?;
        let (words, similarity) = found.scores();
        Some((entry.name.to_string(), decimals(found.score, 3), words, similarity))
    };
    Ok(found.iter().filter_map(candidate).collect())
}

/// An entry that the router's search found.
#[derive(NifMap)]
struct RetrievedTerm {
    name: String,
    score: f64,
    words: f64,
    similarity: Option<f64>,
    confidence: f64,
    reason: String,
}

/// The entries that a search finds for a request and that may be picked, the most confident first.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_retrieve<'a>(
    view: ResourceArc<ViewResource>,
    text: &str,
    meaning: MeaningTerm<'a>,
) -> NifResult<Vec<RetrievedTerm>> {
    let found = with_meaning(Query::new(text), &meaning, |query| {
        view.core().retrieve(text, query.meaning)
    })?;
    let term = |Retrieved { found, score, words, similarity }: Retrieved| {
        Some(RetrievedTerm {
            name: view.core().entry(found.id)?.name.to_string(),
            score,
            words,
            similarity,
            confidence: found.confidence,
            reason: found.reason,
        })
    };
    Ok(found.into_iter().filter_map(term).collect())
}

/// The features of the first candidates for a request, for `bench/preflight.exs`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_features<'a>(
    view: ResourceArc<ViewResource>,
    text: &str,
    limit: usize,
    meaning: MeaningTerm<'a>,
) -> NifResult<Vec<Vec<f64>>> {
    with_meaning(Query::new(text), &meaning, |query| {
        view.core().features(text, query.meaning, limit)
    })
}

/// The places of the names that are picked; see [`pick::picks`].
#[rustler::nif(schedule = "DirtyCpu")]
fn route_picks(found: Vec<(String, f64)>, threshold: f64, max: usize) -> Vec<usize> {
    let found: Vec<_> = found.iter().map(|(name, confidence)| (&**name, *confidence)).collect();
    pick::picks(&found, threshold, max)
}

pub fn with_meaning<T>(
    query: Query,
    meaning: &MeaningTerm,
    search: impl FnOnce(&Query) -> T,
) -> NifResult<T> {
    let Some((vectors, vector)) = meaning else { return Ok(search(&query)) };
    let vector = numbers(vector).ok_or(rustler::Error::BadArg)?;
    let meaning = Meaning { vector: &vector, vectors: &vectors.0 };
    Ok(search(&Query { meaning: Some(meaning), ..query }))
}

fn encode_hit<'a>(env: Env<'a>, view: &ViewResource, hit: &Hit) -> NifResult<Term<'a>> {
    let entry = view.core().entry(hit.id).ok_or(rustler::Error::BadArg)?;
    encode::map(
        env,
        [
            (atoms::__struct__(), atoms::hit().encode(env)),
            (atoms::description(), entry.description().encode(env)),
            (atoms::highlights(), hit.snippet.highlights.encode(env)),
            (atoms::kind(), encode::static_atom(env, entry.kind.as_str())),
            (atoms::name(), entry.name.encode(env)),
            (atoms::score(), decimals(hit.score, 3).encode(env)),
            (atoms::snippet(), hit.snippet.text.encode(env)),
            (atoms::title(), encode::option(env, &entry.title)),
        ],
    )
}
