//! The functions of `Skillbook.Embedder.Library`.

use std::time::Instant;

use rustler::{Atom, Env, NewBinary, Resource, ResourceArc, Term};
use skillbook_bridge::time::limit;

use crate::model::{Failure, Model};

mod atoms {
    rustler::atoms! { timeout }
}

struct ModelResource(Model);

#[rustler::resource_impl]
impl Resource for ModelResource {}

/// The model, the size of its vectors, its maximum of tokens and its fingerprint.
type Opened = (ResourceArc<ModelResource>, usize, usize, u64);

/// Reads the model in a folder. The error is text.
#[rustler::nif(schedule = "DirtyCpu")]
fn open(folder: &str) -> Result<Opened, String> {
    let model = Model::open(folder).map_err(|error| error.to_string())?;
    let (size, max_tokens, fingerprint) = (model.size(), model.max_tokens(), model.fingerprint);
    Ok((ResourceArc::new(ModelResource(model)), size, max_tokens, fingerprint))
}

/// The vectors of texts, as binaries of 32-bit floats.
#[rustler::nif(schedule = "DirtyCpu")]
fn embed<'a>(
    env: Env<'a>,
    model: ResourceArc<ModelResource>,
    texts: Vec<&str>,
    threads: usize,
    milliseconds: u64,
) -> Result<Vec<Term<'a>>, EmbedFailure> {
    let until = Instant::now() + limit(milliseconds);
    let vectors = model.0.embed(&texts, threads, until)?;
    Ok(vectors.iter().map(|vector| binary(env, vector)).collect())
}

fn binary<'a>(env: Env<'a>, vector: &[f32]) -> Term<'a> {
    let mut binary = NewBinary::new(env, vector.len() * 4);
    for (bytes, number) in binary.as_mut_slice().chunks_exact_mut(4).zip(vector) {
        bytes.copy_from_slice(&number.to_le_bytes());
    }
    binary.into()
}

/// `:timeout` or a text.
#[derive(rustler::NifUntaggedEnum)]
enum EmbedFailure {
    Timeout(Atom),
    Failed(String),
}

impl From<Failure> for EmbedFailure {
    fn from(failure: Failure) -> EmbedFailure {
        match failure {
            Failure::Timeout => EmbedFailure::Timeout(atoms::timeout()),
            Failure::Failed(reason) => EmbedFailure::Failed(reason),
        }
    }
}

skillbook_bridge::library!("Elixir.Skillbook.Embedder.Library");
