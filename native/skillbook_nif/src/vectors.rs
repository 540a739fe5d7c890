//! The vectors of a book's entries behind a reference, for searches by meaning. Elixir makes them
//! with an embedding model, as binaries of 32-bit floats, little-endian.

use rustc_hash::FxHashSet;
use rustler::{Binary, Encoder, Env, NifResult, Resource, ResourceArc, Term};
use skillbook_core::catalog::entry::Entry;
use skillbook_core::search::embedded;
use skillbook_core::search::vectors::{Digest, Vectors};

use crate::catalog::CatalogResource;
use crate::encode::binary;
use crate::view::ViewResource;

mod atoms {
    rustler::atoms! { ok, error }
}

/// The vectors of one model.
pub struct VectorsResource(pub Vectors);

#[rustler::resource_impl]
impl Resource for VectorsResource {}

/// The numbers of a vector; `None` if its length is not a multiple of four.
pub fn numbers(vector: &[u8]) -> Option<Vec<f32>> {
    let (numbers, rest) = vector.as_chunks::<4>();
    rest.is_empty().then(|| numbers.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}

fn digest(bytes: &Binary) -> NifResult<Digest> {
    Digest::try_from(bytes.as_slice()).map_err(|_| rustler::Error::BadArg)
}

/// A store without vectors.
#[rustler::nif]
fn vectors_new() -> ResourceArc<VectorsResource> {
    ResourceArc::new(VectorsResource(Vectors::new()))
}

/// Adds vectors by digest: `:ok`, or `{:error, {expected, got}}` if the size of one differs. Then
/// none is added.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_put<'a>(
    env: Env<'a>,
    vectors: ResourceArc<VectorsResource>,
    rows: Vec<(Binary, Binary)>,
) -> NifResult<Term<'a>> {
    let row = |(key, vector): &(Binary, Binary)| {
        Ok((digest(key)?, numbers(vector).ok_or(rustler::Error::BadArg)?))
    };
    let rows = rows.iter().map(row).collect::<NifResult<Vec<(Digest, Vec<f32>)>>>()?;
    let rows: Vec<_> = rows.iter().map(|(digest, vector)| (*digest, vector.as_slice())).collect();
    Ok(match vectors.0.put(&rows) {
        Ok(()) => atoms::ok().encode(env),
        Err(wrong) => (atoms::error(), (wrong.expected, wrong.got)).encode(env),
    })
}

/// Removes all vectors. The next one may have another size.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_clear(vectors: ResourceArc<VectorsResource>) -> rustler::Atom {
    vectors.0.clear();
    atoms::ok()
}

/// The number of vectors.
#[rustler::nif]
fn vectors_count(vectors: ResourceArc<VectorsResource>) -> usize {
    vectors.0.count()
}

/// The entries that are embedded, each text once, in the order of their names.
fn embedded_entries(entries: &[std::sync::Arc<Entry>]) -> impl Iterator<Item = (&Digest, &Entry)> {
    let mut seen = FxHashSet::default();
    let wanted = entries.iter().map(|entry| &**entry).filter(|entry| embedded::wanted(entry));
    wanted
        .map(|entry| (embedded::digest(entry), entry))
        .filter(move |(digest, _)| seen.insert(**digest))
}

/// The digests of all texts of a catalog's entries: `{with a vector, without}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_digests<'a>(
    env: Env<'a>,
    vectors: ResourceArc<VectorsResource>,
    catalog: ResourceArc<CatalogResource>,
) -> (Vec<Term<'a>>, Vec<Term<'a>>) {
    let whole = catalog.parts.whole();
    let digests: Vec<_> = embedded_entries(whole.entries()).map(|(digest, _)| digest).collect();
    let missing = vectors.0.missing(digests.iter().copied());
    let (mut with, mut without) = (Vec::new(), Vec::new());
    for (digest, missing) in digests.into_iter().zip(missing) {
        if missing { &mut without } else { &mut with }.push(binary(env, digest));
    }
    (with, without)
}

/// The texts of these digests as `{digest, text}`, in the order of the catalog, without those that
/// no entry has any more.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_texts<'a>(
    env: Env<'a>,
    catalog: ResourceArc<CatalogResource>,
    digests: Vec<Binary<'a>>,
) -> NifResult<Vec<(Term<'a>, String)>> {
    let wanted = digests
        .iter()
        .map(|binary| Ok((digest(binary)?, binary.to_term(env))))
        .collect::<NifResult<rustc_hash::FxHashMap<_, _>>>()?;
    let whole = catalog.parts.whole();
    let texts = embedded_entries(whole.entries())
        .filter_map(|(digest, entry)| Some((*wanted.get(digest)?, embedded::text(entry))));
    Ok(texts.collect())
}

/// Removes the vectors that no entry of a catalog needs.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_retain(
    vectors: ResourceArc<VectorsResource>,
    catalog: ResourceArc<CatalogResource>,
) -> rustler::Atom {
    let whole = catalog.parts.whole();
    let wanted = embedded_entries(whole.entries()).map(|(digest, _)| *digest).collect();
    vectors.0.retain(&wanted);
    atoms::ok()
}

/// The number of entries that a view lists and that have a vector, and of those that can have one.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_embedded(
    view: ResourceArc<ViewResource>,
    vectors: ResourceArc<VectorsResource>,
) -> (usize, usize) {
    view.core().embedded(&vectors.0)
}
