//! The vectors of a book's entries behind a reference, for searches by meaning. Elixir makes them
//! with an embedding model, as binaries of 32-bit floats, little-endian.

use rustler::{Binary, Encoder, Env, NifResult, Resource, ResourceArc, Term};
use skillbook_bridge::twin;
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

fn all(digests: &[Binary]) -> NifResult<Vec<Digest>> {
    digests.iter().map(digest).collect()
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

/// Notes that the vectors of these texts are in a database.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_know(
    vectors: ResourceArc<VectorsResource>,
    digests: Vec<Binary>,
) -> NifResult<rustler::Atom> {
    vectors.0.know(all(&digests)?.into_iter());
    Ok(atoms::ok())
}

/// Notes that the vectors of these texts are in no database.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_lost(
    vectors: ResourceArc<VectorsResource>,
    digests: Vec<Binary>,
) -> NifResult<rustler::Atom> {
    vectors.0.lost(all(&digests)?.into_iter());
    Ok(atoms::ok())
}

/// If the vectors in memory take more bytes than this, only knows of those that were not used since
/// the last time. Returns how many stay in memory.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_forget(vectors: ResourceArc<VectorsResource>, bytes: usize) -> usize {
    vectors.0.forget(bytes)
}

/// The number of texts with a vector, in memory or not.
#[rustler::nif]
fn vectors_count(vectors: ResourceArc<VectorsResource>) -> usize {
    vectors.0.count()
}

/// The texts among these that have a vector, in memory or not.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_having<'a>(
    env: Env<'a>,
    vectors: ResourceArc<VectorsResource>,
    digests: Vec<Binary>,
) -> NifResult<Vec<Term<'a>>> {
    let digests = all(&digests)?;
    Ok(vectors.0.having(digests.iter()).into_iter().map(|digest| binary(env, digest)).collect())
}

/// The digests of the texts of a catalog's entries that have no vector. Vectors of other texts are
/// removed.
#[rustler::nif(schedule = "DirtyCpu")]
fn vectors_follow(
    env: Env<'_>,
    vectors: ResourceArc<VectorsResource>,
    catalog: ResourceArc<CatalogResource>,
) -> Vec<Term<'_>> {
    let version = vectors.0.version();
    let texts = catalog.parts.texts();
    let missing = vectors.0.follow(version, texts.digests().map(|digest| (digest, ())));
    missing.into_iter().map(|(digest, ())| binary(env, digest)).collect()
}

/// The texts of these digests as `{digest, text}`, without those that no entry has any more.
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
    Ok(catalog.parts.texts().read(wanted))
}

twin! {
    /// The digests of the texts in a view's catalog that have no vector, for the first one who asks
    /// for those of the catalog.
    "DirtyCpu" fn view_unembedded_now | view_unembedded_dirty(
        env, view: ResourceArc<ViewResource>, vectors: ResourceArc<VectorsResource>
    )
    if view.core().catalog().is_asked()
    => {
        let missing = view.core().catalog().missing(&vectors.0);
        let missing: Vec<_> = missing.iter().map(|digest| binary(env, digest)).collect();
        Ok(missing.encode(env))
    }
}

/// The number of entries that a view lists and that have a vector, and of those that can have one.
#[rustler::nif(schedule = "DirtyCpu")]
fn view_embedded(
    view: ResourceArc<ViewResource>,
    vectors: ResourceArc<VectorsResource>,
) -> (usize, usize) {
    view.core().embedded(&vectors.0)
}
