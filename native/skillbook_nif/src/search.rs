//! Search over the entries of a view, with the index in memory. For documents in the database see
//! `search_rows`.

use rustler::{Encoder, Env, NifResult, ResourceArc, Term};
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
    // The score is rounded as a 32-bit number. As a 64-bit number it must be rounded again, or it
    // prints with extra digits.
    let score = (f64::from(hit.score) * 1000.0).round() / 1000.0;
    encode::map(
        env,
        [
            (atoms::__struct__(), atoms::hit().encode(env)),
            (atoms::description(), entry.description().encode(env)),
            (atoms::highlights(), hit.snippet.highlights.encode(env)),
            (atoms::kind(), encode::static_atom(env, entry.kind.as_str())),
            (atoms::name(), entry.name.encode(env)),
            (atoms::score(), score.encode(env)),
            (atoms::snippet(), hit.snippet.text.encode(env)),
            (atoms::title(), encode::option(env, &entry.title)),
        ],
    )
}
