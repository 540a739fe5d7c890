//! Tests of descriptions: where requests lead, and the entries that compete.

use rustler::{NifMap, NifResult, ResourceArc};
use skillbook_core::catalog::EntryId;
use skillbook_core::report::ranking;
use skillbook_core::search::explain::Pull;
use skillbook_core::view::examples::{shares, Asked, Hit, Pair, Ranked};
use skillbook_core::view::search::Query;

use crate::search::{with_meaning, MeaningTerm};
use crate::vectors::VectorsResource;
use crate::view::ViewResource;

/// A word of a request, and its part in a score.
#[derive(NifMap)]
struct PullTerm {
    word: String,
    part: f64,
}

/// An entry that a request leads to, a `t:Skillbook.Test.ranked/0`.
#[derive(NifMap)]
struct RankedTerm {
    name: String,
    rank: usize,
    score: f64,
    similarity: Option<f64>,
    words: Vec<PullTerm>,
    sentence: Option<String>,
}

/// Two entries that compete, a `t:Skillbook.Test.pair/0`.
#[derive(NifMap)]
struct PairTerm {
    names: Vec<String>,
    similarity: f64,
    words: Vec<String>,
    meaning: Option<f64>,
    taken: Vec<usize>,
}

impl From<Pull> for PullTerm {
    fn from(Pull { word, part }: Pull) -> PullTerm {
        PullTerm { word, part }
    }
}

impl From<Ranked> for RankedTerm {
    fn from(entry: Ranked) -> RankedTerm {
        let Ranked { name, rank, score, similarity, words, sentence } = entry;
        let words = words.into_iter().map(PullTerm::from).collect();
        RankedTerm { name, rank, score, similarity, words, sentence }
    }
}

impl From<RankedTerm> for Ranked {
    fn from(term: RankedTerm) -> Ranked {
        let RankedTerm { name, rank, score, similarity, words, sentence } = term;
        let words = words.into_iter().map(|PullTerm { word, part }| Pull { word, part }).collect();
        Ranked { name, rank, score, similarity, words, sentence }
    }
}

/// A request of `examples`: the name of its entry, the request, and whether it should not lead to
/// the entry.
type AskedTerm = (String, String, bool);

/// The requests of the listed entries, or of those with these names: `{requests, entries,
/// unlisted}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_plan(
    view: ResourceArc<ViewResource>,
    only: Option<Vec<String>>,
) -> (Vec<AskedTerm>, usize, Vec<String>) {
    let plan = view.core().examples(only.as_deref());
    let asked = plan.asked.into_iter().map(|asked| (asked.name, asked.request, asked.not));
    (asked.collect(), plan.entries, plan.unlisted)
}

/// The entries of the first places for a request, and the one of this name.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_ranking<'a>(
    view: ResourceArc<ViewResource>,
    request: &str,
    meaning: MeaningTerm<'a>,
    name: Option<String>,
    count: usize,
) -> NifResult<Vec<RankedTerm>> {
    let found = with_meaning(Query::new(request), &meaning, |query| {
        view.core().ranking(request, query.meaning, name.as_deref(), count)
    })?;
    Ok(found.into_iter().map(RankedTerm::from).collect())
}

/// Where a request leads: `{passed, rank, ranking}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_outcome<'a>(
    view: ResourceArc<ViewResource>,
    (name, request, not): AskedTerm,
    meaning: MeaningTerm<'a>,
    picked: bool,
    router: bool,
) -> NifResult<(bool, Option<usize>, Vec<RankedTerm>)> {
    let asked = Asked { name, request: request.clone(), not };
    let found = with_meaning(Query::new(&request), &meaning, |query| {
        view.core().outcome(asked, query.meaning, picked, router)
    })?;
    let ranking = found.ranking.into_iter().map(RankedTerm::from).collect();
    Ok((found.passed, found.rank, ranking))
}

/// The pairs of entries that compete. `taken` are the names of entries, each with one before it.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_competitors(
    view: ResourceArc<ViewResource>,
    taken: Vec<(String, String)>,
    vectors: Option<ResourceArc<VectorsResource>>,
    only: Option<Vec<String>>,
) -> Vec<PairTerm> {
    let taken: Vec<_> = taken.iter().map(|(name, other)| [&**name, &**other]).collect();
    let vectors = vectors.as_ref().map(|vectors| &vectors.0);
    let term = |pair: Pair| {
        let Pair { names, similarity, words, meaning, taken } = pair;
        PairTerm { names: names.into(), similarity, words, meaning, taken: taken.into() }
    };
    view.core().competitors(&taken, vectors, only.as_deref()).into_iter().map(term).collect()
}

/// The shares of requests that have their entry first, among the first three, and picked, from
/// `{not, rank, picked}` of each.
#[rustler::nif(schedule = "DirtyCpu")]
fn examples_shares(
    hits: Vec<(bool, Option<usize>, bool)>,
) -> (Option<f64>, Option<f64>, Option<f64>) {
    let hit =
        |(not, rank, picked): (bool, Option<usize>, bool)| (!not).then_some(Hit { rank, picked });
    let shares = shares(&hits.into_iter().filter_map(hit).collect::<Vec<_>>());
    (shares.hit1, shares.hit3, shares.picked)
}

/// A ranking as a table.
#[rustler::nif(schedule = "DirtyCpu")]
fn ranking_lines(entries: Vec<RankedTerm>) -> Vec<String> {
    ranking::lines(&entries.into_iter().map(Ranked::from).collect::<Vec<_>>())
}

/// For each of these names the words of a request that raise its score, the strongest first. A name
/// that the view does not show has none.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_why(view: ResourceArc<ViewResource>, text: &str, names: Vec<String>) -> Vec<Vec<PullTerm>> {
    let found: Vec<Option<EntryId>> = names.iter().map(|name| view.find(name)).collect();
    let ids: Vec<EntryId> = found.iter().flatten().copied().collect();
    let mut pulls = view.core().why(text, &ids).into_iter();
    let own = |id: Option<EntryId>| id.and_then(|_| pulls.next()).unwrap_or_default();
    let terms = |own: Vec<Pull>| own.into_iter().map(PullTerm::from).collect();
    found.into_iter().map(own).map(terms).collect()
}
