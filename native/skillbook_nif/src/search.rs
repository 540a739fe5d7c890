//! Search over the entries of a view, with the index in memory. For documents in the database see
//! `search_rows`.

use rustler::{Encoder, Env, NifResult, ResourceArc, Term};
use skillbook_core::catalog::EntryId;
use skillbook_core::search::explain::Pull;
use skillbook_core::search::rivals::Rivals;
use skillbook_core::view::search::{Hit, Query};

use crate::encode;
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
        names,
        part,
        similarity,
        word,
        words,
    }
}

/// The matching entries as `%Skillbook.Hit{}`, best first.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_search<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    text: &str,
    limit: usize,
    kind: Option<EntryKind>,
    domain: Option<String>,
    tags: Vec<String>,
) -> NifResult<Vec<Term<'a>>> {
    let query = Query {
        text,
        limit,
        kind: kind.map(EntryKind::kind),
        domain: domain.as_deref(),
        tags: &tags,
    };
    view.core().search(&query).iter().map(|hit| encode_hit(env, &view, hit)).collect()
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
            (atoms::score(), rounded(hit.score).encode(env)),
            (atoms::snippet(), hit.snippet.text.encode(env)),
            (atoms::title(), encode::option(env, &entry.title)),
        ],
    )
}

/// A number in thousandths. It is rounded as a 32-bit number already. As a 64-bit number it must be
/// rounded again, or it prints with extra digits.
fn rounded(number: f32) -> f64 {
    (f64::from(number) * 1000.0).round() / 1000.0
}

/// For each of these names the words of a request that raise its score, the strongest first, as
/// `%{word: text, part: number}`. A name that the view does not show has none.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_why<'a>(
    env: Env<'a>,
    view: ResourceArc<ViewResource>,
    text: &str,
    names: Vec<String>,
) -> NifResult<Vec<Vec<Term<'a>>>> {
    let found: Vec<Option<EntryId>> = names.iter().map(|name| view.find(name)).collect();
    let ids: Vec<EntryId> = found.iter().flatten().copied().collect();
    let mut pulls = view.core().why(text, &ids).into_iter();
    let own = |id: Option<EntryId>| id.and_then(|_| pulls.next()).unwrap_or_default();
    let own: Vec<Vec<Pull>> = found.into_iter().map(own).collect();
    own.iter().map(|own| own.iter().map(|pull| encode_pull(env, pull)).collect()).collect()
}

fn encode_pull<'a>(env: Env<'a>, pull: &Pull) -> NifResult<Term<'a>> {
    encode::map(
        env,
        [(atoms::word(), pull.word.encode(env)), (atoms::part(), rounded(pull.part).encode(env))],
    )
}

/// The pairs of entries that are described most alike, the closest first, as
/// `%{names: [one, other], similarity: number, words: texts}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_rivals(
    env: Env<'_>,
    view: ResourceArc<ViewResource>,
    least: f64,
    limit: usize,
) -> NifResult<Vec<Term<'_>>> {
    let pair = |rivals: &Rivals<EntryId>| {
        let names = rivals.pair.map(|id| view.core().entry(id).map(|entry| &*entry.name));
        encode::map(
            env,
            [
                (atoms::names(), names.into_iter().flatten().collect::<Vec<_>>().encode(env)),
                (atoms::similarity(), rounded(rivals.similarity).encode(env)),
                (atoms::words(), rivals.words.encode(env)),
            ],
        )
    };
    view.core().rivals(least as f32, limit).iter().map(pair).collect()
}
