//! The full-text index of documents in a database: packing, merging and ranking. Elixir reads and
//! writes the rows. For the entries of a view see `search`.

use rustler::{Binary, Encoder, Env, NewBinary, NifResult, NifTaggedEnum, Term};
use skillbook_core::search::rows::{self, BlockRow, Run, SearchDocument, StoredRun};
use skillbook_core::search::snippet;

/// The words of each text: as written, and their stems.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_words(texts: Vec<String>) -> Vec<Vec<(String, String)>> {
    let words =
        |text: &String| rows::words(text).into_iter().map(|word| (word.form, word.stem)).collect();
    texts.iter().map(words).collect()
}

/// A document: its id, then titles, text and fields.
type Searched = (u64, (Vec<String>, String, Vec<String>));

/// Packs documents into a run: `{ids, first, last, count, size, blocks}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_pack(env: Env, documents: Vec<Searched>) -> Term {
    let document = |(id, (titles, content, fields))| SearchDocument { id, titles, content, fields };
    let documents: Vec<SearchDocument> = documents.into_iter().map(document).collect();
    encode(env, &rows::pack(&documents))
}

type RunTerms<'a> = (Binary<'a>, Binary<'a>, Vec<(Binary<'a>, Binary<'a>)>, Vec<u64>);

/// Merges runs, each given by its ids, its removed ids, its blocks and its new ids.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_merge<'a>(env: Env<'a>, runs: Vec<RunTerms<'a>>) -> Term<'a> {
    let runs: Vec<StoredRun> = runs
        .iter()
        .map(|(ids, gone, blocks, numbers)| StoredRun {
            ids: ids.as_slice(),
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
    (binary(env, &run.ids), run.range.0, run.range.1, run.count, run.size(), blocks).encode(env)
}

fn binary<'a>(env: Env<'a>, bytes: &[u8]) -> Term<'a> {
    NewBinary::from_slice(env, bytes).into()
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

/// Ranks the documents that match the clauses and pass the filters: whether they match all clauses,
/// how many there are, and the best with their scores. A row is a list of the range's number, the
/// run's removed ids, and the two columns of a block.
#[rustler::nif(schedule = "DirtyCpu")]
fn search_rank<'a>(
    env: Env<'a>,
    clauses: Vec<Clause>,
    filters: Vec<rows::Range>,
    rows: Vec<Vec<Term<'a>>>,
    documents: usize,
    limit: Limit,
) -> NifResult<Term<'a>> {
    let clauses: Vec<rows::Clause> = clauses.into_iter().map(rows::Clause::from).collect();
    let decoded: Vec<_> = rows.iter().map(|row| decode(row)).collect::<NifResult<_>>()?;
    let part = |parts: &[Binary<'a>], at: usize| {
        parts.get(at).map(|part| part.as_slice()).unwrap_or_default()
    };
    let rows: Vec<_> = decoded
        .iter()
        .map(|(range, parts)| BlockRow {
            range: *range,
            gone: part(parts, 0),
            documents: part(parts, 1),
            places: part(parts, 2),
        })
        .collect();
    let found = rows::rank(&clauses, &filters, &rows, documents, limit.into());
    Ok((found.all, found.total, found.hits).encode(env))
}

fn decode<'a>(row: &[Term<'a>]) -> NifResult<(usize, Vec<Binary<'a>>)> {
    let (range, parts) = row.split_first().ok_or(rustler::Error::BadArg)?;
    let parts = parts.iter().map(|part| part.decode::<Binary>()).collect::<NifResult<_>>()?;
    Ok((range.decode::<usize>()?, parts))
}
