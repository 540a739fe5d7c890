//! The full-text index of documents in a database: packing, merging and ranking. Elixir reads and
//! writes the rows. For the entries of a view see `search`.

use rustler::{Binary, Encoder, Env, NifResult, NifTaggedEnum, ResourceArc, Term};
use skillbook_core::search::embedded::digest_of;
use skillbook_core::search::rows::{
    self, BlockRow, Meaning, Run, RunDigests, SearchDocument, StoredRun,
};
use skillbook_core::search::snippet;

use crate::encode::binary;
use crate::vectors::{numbers, VectorsResource};

/// The words of each part of a text: as written, their stems, and whether they are function words.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_words(parts: Vec<String>) -> Vec<Vec<(String, String, bool)>> {
    let words = rows::words(&parts).into_iter();
    words
        .map(|part| part.into_iter().map(|word| (word.form, word.stem, word.function)).collect())
        .collect()
}

/// A document: its id, then titles, text and fields.
type Searched = (u64, (Vec<String>, String, Vec<String>));

fn document((id, (titles, content, fields)): Searched) -> SearchDocument {
    SearchDocument { id, titles, content, fields }
}

/// Packs documents into a run: `{ids, digests, first, last, count, size, blocks}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_pack(env: Env, documents: Vec<Searched>) -> Term {
    let documents: Vec<SearchDocument> = documents.into_iter().map(document).collect();
    encode(env, &rows::pack(&documents))
}

/// The texts of documents that an embedding model reads, as `{digest, text}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_chunks<'a>(env: Env<'a>, documents: Vec<Searched>) -> Vec<(Term<'a>, String)> {
    let texts =
        documents.iter().flat_map(|(_, (titles, content, _))| rows::chunks(titles, content));
    texts.map(|text| (binary(env, digest_of(&text)), text)).collect()
}

/// The ids, removed ids and digests of a run.
type RunColumns<'a> = (Binary<'a>, Binary<'a>, Binary<'a>);

fn run_digests<'a>((ids, gone, digests): &'a RunColumns) -> RunDigests<'a> {
    RunDigests { ids: ids.as_slice(), gone: gone.as_slice(), digests: digests.as_slice() }
}

/// The texts of all documents in runs that have no vector, as `{digest, {kind, document}}`. If
/// these are all, vectors of other texts are removed.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_follow<'a>(
    env: Env<'a>,
    vectors: ResourceArc<VectorsResource>,
    runs: Vec<(Term<'a>, Vec<RunColumns<'a>>)>,
    whole: bool,
) -> Vec<(Term<'a>, (Term<'a>, u64))> {
    let texts = runs.iter().flat_map(|(kind, runs)| {
        let documents = runs.iter().flat_map(|run| run_digests(run).documents());
        documents
            .flat_map(move |(id, digests)| digests.iter().map(move |digest| (digest, (*kind, id))))
    });
    let missing = match whole {
        true => vectors.0.follow(vectors.0.version(), texts),
        false => vectors.0.missing(texts),
    };
    missing.into_iter().map(|(digest, place)| (binary(env, digest), place)).collect()
}

type RunTerms<'a> = (Binary<'a>, Binary<'a>, Binary<'a>, Vec<(Binary<'a>, Binary<'a>)>, Vec<u64>);

/// Merges runs, each given by its ids, its digests, its removed ids, its blocks and its new ids.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_merge<'a>(env: Env<'a>, runs: Vec<RunTerms<'a>>) -> Term<'a> {
    let runs: Vec<StoredRun> = runs
        .iter()
        .map(|(ids, digests, gone, blocks, numbers)| StoredRun {
            ids: ids.as_slice(),
            digests: digests.as_slice(),
            gone: gone.as_slice(),
            blocks: blocks
                .iter()
                .map(|(documents, places)| (documents.as_slice(), places.as_slice()))
                .collect(),
            numbers,
        })
        .collect();
    encode(env, &rows::merge(&runs))
}

fn encode<'a>(env: Env<'a>, run: &Run) -> Term<'a> {
    let blocks: Vec<Term> = run
        .blocks
        .iter()
        .map(|block| {
            (&block.first, binary(env, &block.documents), binary(env, &block.places)).encode(env)
        })
        .collect();
    let (first, last) = run.range;
    (binary(env, &run.ids), binary(env, &run.digests), first, last, run.count, run.size(), blocks)
        .encode(env)
}

/// Adds documents to those removed from a run: the packed ids, and how many more they are.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_without<'a>(
    env: Env<'a>,
    ids: Binary<'a>,
    gone: Binary<'a>,
    these: Vec<u64>,
) -> Term<'a> {
    let (gone, count) = rows::without(ids.as_slice(), gone.as_slice(), &these);
    (binary(env, &gone), count).encode(env)
}

/// The snippet of each text, with the positions of the matches in it.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_snippets<'a>(
    env: Env<'a>,
    texts: Vec<&str>,
    stems: Vec<String>,
    prefixes: Vec<String>,
) -> Vec<Term<'a>> {
    let snippet = |text: &&str| {
        let found = snippet(text, &stems, &prefixes);
        (found.text, found.highlights).encode(env)
    };
    texts.iter().map(snippet).collect()
}

/// The number of hits to return.
#[derive(NifTaggedEnum)]
enum Limit {
    Level(usize),
    Newest(usize),
}

impl From<Limit> for rows::Limit {
    fn from(limit: Limit) -> rows::Limit {
        match limit {
            Limit::Level(count) => rows::Limit::Level(count),
            Limit::Newest(count) => rows::Limit::Newest(count),
        }
    }
}

/// A part of a query.
#[derive(NifTaggedEnum)]
enum Clause {
    With(Vec<rows::Alternative>),
    Without(Vec<rows::Alternative>),
}

impl From<Clause> for rows::Clause {
    fn from(clause: Clause) -> rows::Clause {
        match clause {
            Clause::With(alternatives) => rows::Clause::With(alternatives),
            Clause::Without(alternatives) => rows::Clause::Without(alternatives),
        }
    }
}

/// The texts of runs whose vectors are in a database alone. The rows are those of `search_rank`.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_absent<'a>(
    env: Env<'a>,
    vectors: ResourceArc<VectorsResource>,
    rows: Vec<Vec<Term<'a>>>,
) -> NifResult<Vec<Term<'a>>> {
    let rows: Vec<_> = rows.iter().map(|row| decode(row)).collect::<NifResult<_>>()?;
    let (_, runs) = split(&rows);
    let texts = runs.iter().flat_map(RunDigests::documents).flat_map(|(_, digests)| digests);
    Ok(vectors.0.absent(texts).into_iter().map(|digest| binary(env, digest)).collect())
}

/// Ranks the documents that match the clauses and pass the filters: whether they match all clauses,
/// how many there are only by meaning, how many in all, and the best with their scores. A row is a
/// list of the range's number, the run's removed ids, and the two columns of a block; or, with the
/// number -1, of the run's ids and digests. The meaning is a store of vectors, the vector of the
/// query, and whether documents that do not match are found too.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_rank<'a>(
    env: Env<'a>,
    clauses: Vec<Clause>,
    filters: Vec<rows::Range>,
    rows: Vec<Vec<Term<'a>>>,
    documents: usize,
    meaning: Option<(ResourceArc<VectorsResource>, Binary<'a>, bool)>,
    limit: Limit,
) -> NifResult<Term<'a>> {
    let clauses: Vec<rows::Clause> = clauses.into_iter().map(rows::Clause::from).collect();
    let rows: Vec<_> = rows.iter().map(|row| decode(row)).collect::<NifResult<_>>()?;
    let (blocks, runs) = split(&rows);
    let similar = match &meaning {
        Some((vectors, vector, _)) => {
            let vector = numbers(vector).ok_or(rustler::Error::BadArg)?;
            rows::similar(&runs, &vectors.0, &vector)
        }
        None => Vec::new(),
    };
    let meaning = meaning.map(|(_, _, extends)| Meaning { similar: &similar, extends });
    let found = rows::rank(&clauses, &filters, &blocks, documents, meaning, limit.into());
    Ok((found.all, found.by_meaning, found.total, found.hits).encode(env))
}

/// The blocks and the runs of rows.
fn split<'r>(rows: &'r [(i64, Vec<Binary<'_>>)]) -> (Vec<BlockRow<'r>>, Vec<RunDigests<'r>>) {
    fn part<'r>(parts: &'r [Binary<'_>], at: usize) -> &'r [u8] {
        parts.get(at).map(|part| part.as_slice()).unwrap_or_default()
    }
    let (mut blocks, mut runs) = (Vec::new(), Vec::new());
    for (range, parts) in rows {
        let (gone, documents, places) = (part(parts, 0), part(parts, 1), part(parts, 2));
        match usize::try_from(*range) {
            Ok(range) => blocks.push(BlockRow { range, gone, documents, places }),
            Err(_) => runs.push(RunDigests { ids: documents, gone, digests: places }),
        }
    }
    (blocks, runs)
}

fn decode<'a>(row: &[Term<'a>]) -> NifResult<(i64, Vec<Binary<'a>>)> {
    let (range, parts) = row.split_first().ok_or(rustler::Error::BadArg)?;
    let parts = parts.iter().map(|part| part.decode::<Binary>()).collect::<NifResult<_>>()?;
    Ok((range.decode::<i64>()?, parts))
}
