//! `Skillbook.Frontmatter`: reads and writes YAML frontmatter.

use crate::encode;
use rustler::{Binary, Encoder, Env, Error, ListIterator, NifResult, Term, TermType};
use skillbook_bridge::twin;
use skillbook_bridge::twin::{timed, BYTES};
use skillbook_core::page::fields::restrictions;
use skillbook_core::page::frontmatter::{self, MAX_DEPTH};
use skillbook_core::page::record::Own;
use skillbook_core::value::Value;

mod atoms {
    rustler::atoms! {
        ok, error, nil, data, body, present, diagnostics, unsupported,
        makes_skill, is_described, labels, excluded_for,
    }
}

twin! {
    /// `{:ok, %{data:, body:, present:, diagnostics:}}` or
    /// `{:error, {kind, message, line, column, offset, hint}}`.
    "DirtyCpu" fn frontmatter_parse_now | frontmatter_parse_dirty(env, text: Binary<'a>)
    ready if text.len() > BYTES { None } else { timed(env, || parse_quick(env, text)).transpose()? }
    => encode_parsed(env, text, frontmatter::decode(text.as_slice()).and_then(frontmatter::parse))
}

/// `None` if the YAML library has to read the block: its time does not depend on the length.
fn parse_quick<'a>(env: Env<'a>, text: Binary<'a>) -> Option<NifResult<Term<'a>>> {
    let parsed = match frontmatter::decode(text.as_slice()) {
        Ok(document) => frontmatter::parse_quick(document)?,
        Err(error) => Err(error),
    };
    Some(encode_parsed(env, text, parsed))
}

/// The parts of a text's frontmatter that decide who may read it and whether it is a skill:
/// `{:ok, %{makes_skill:, is_described:, labels:, excluded_for:, data:}}`, or `{:error, message}`
/// if a restriction cannot be read. `data` is that of an entry.
#[rustler::nif(schedule = "DirtyCpu")]
fn frontmatter_access<'a>(env: Env<'a>, text: Binary<'a>) -> NifResult<Term<'a>> {
    access(env, text)
}

/// The name of the restriction that a key is or nearly is, or `nil`.
#[rustler::nif]
fn frontmatter_restriction(key: &str) -> Option<&'static str> {
    restrictions::meant(key)
}

/// `{:ok, binary}`, or `{:error, {:unsupported, term}}` with the term that cannot be written as
/// YAML.
///
/// Always on a dirty scheduler: writing is rare, and its cost is not known before the terms are
/// decoded.
#[rustler::nif(schedule = "DirtyCpu")]
fn frontmatter_write<'a>(env: Env<'a>, pairs: Term<'a>, body: Term<'a>) -> Term<'a> {
    let yaml =
        decode_pairs(pairs, 1).and_then(|pairs| Ok(frontmatter::write(&pairs, decode_text(body)?)));
    match yaml {
        Ok(document) => (atoms::ok(), document).encode(env),
        Err(term) => (atoms::error(), (atoms::unsupported(), term)).encode(env),
    }
}

fn encode_parsed<'a>(
    env: Env<'a>,
    text: Binary<'a>,
    parsed: Result<frontmatter::Document, frontmatter::Error>,
) -> NifResult<Term<'a>> {
    let document = match parsed {
        Ok(document) => document,
        Err(error) => return Ok((atoms::error(), error_fields(env, &error)).encode(env)),
    };
    let diagnostics = document
        .diagnostics
        .iter()
        .map(|found| encode::diagnostic(env, found))
        .collect::<NifResult<Vec<_>>>()?;
    let body = text.make_subbinary(document.body_offset, document.body.len())?;
    let keys = [atoms::data(), atoms::body(), atoms::present(), atoms::diagnostics()]
        .map(|key| key.encode(env));
    let values = [
        encode::value(env, &document.data)?,
        body.encode(env),
        document.present.encode(env),
        diagnostics.encode(env),
    ];
    Ok((atoms::ok(), Term::map_from_term_arrays(env, &keys, &values)?).encode(env))
}

fn access<'a>(env: Env<'a>, text: Binary<'a>) -> NifResult<Term<'a>> {
    let text = frontmatter::decode(text.as_slice()).map_err(|error| error.to_string());
    let own = match text.and_then(Own::read) {
        Ok(own) => own,
        Err(reason) => return Ok((atoms::error(), reason).encode(env)),
    };
    let pairs = [
        (atoms::makes_skill(), own.makes_skill.encode(env)),
        (atoms::is_described(), own.is_described.encode(env)),
        (atoms::labels(), own.labels.encode(env)),
        (atoms::excluded_for(), own.excluded_for.encode(env)),
        (atoms::data(), encode::value(env, &own.data)?),
    ];
    Ok((atoms::ok(), Term::map_from_pairs(env, &pairs)?).encode(env))
}

fn error_fields<'a>(env: Env<'a>, error: &frontmatter::Error) -> Term<'a> {
    let kind = encode::static_atom(env, error.kind.as_str());
    (kind, &error.message, error.line, error.column, error.offset, encode::option(env, &error.hint))
        .encode(env)
}

/// Decodes a term; the error is the part that has no value. Nesting is limited as for reading.
fn decode<'a>(term: Term<'a>, depth: usize) -> Result<Value, Term<'a>> {
    let unsupported = |_: Error| term;
    match term.get_type() {
        TermType::Atom if atoms::nil() == term => Ok(Value::Null),
        TermType::Atom => term.decode().map(Value::Bool).map_err(unsupported),
        TermType::Integer => term.decode().map(Value::Int).map_err(unsupported),
        TermType::Float => term.decode().map(Value::Float).map_err(unsupported),
        TermType::Binary => term.decode().map(Value::Str).map_err(unsupported),
        TermType::List if depth < MAX_DEPTH && is_pairs(term)? => {
            decode_pairs(term, depth + 1).map(Value::Map)
        }
        TermType::List if depth < MAX_DEPTH => list(term)?
            .map(|item| decode(item, depth + 1))
            .collect::<Result<_, _>>()
            .map(Value::List),
        TermType::Map if depth < MAX_DEPTH => {
            let entries = rustler::MapIterator::new(term).ok_or(term)?;
            let pairs = entries
                .map(|(key, value)| Ok((decode_text(key)?.to_owned(), decode(value, depth + 1)?)));
            let mut pairs = pairs.collect::<Result<Vec<_>, Term<'a>>>()?;
            // Maps have no order, and the same map must give the same YAML.
            pairs.sort_by(|(one, _), (other, _)| one.cmp(other));
            Ok(Value::Map(pairs))
        }
        _ => Err(term),
    }
}

/// Whether a list begins with a pair. An empty one is a list.
fn is_pairs(term: Term<'_>) -> Result<bool, Term<'_>> {
    Ok(list(term)?.next().is_some_and(|item| item.get_type() == TermType::Tuple))
}

fn decode_pairs(term: Term<'_>, depth: usize) -> Result<Vec<(String, Value)>, Term<'_>> {
    list(term)?
        .map(|pair| {
            let (key, value): (Term<'_>, Term<'_>) = pair.decode().map_err(|_| pair)?;
            Ok((decode_text(key)?.to_owned(), decode(value, depth)?))
        })
        .collect()
}

/// Rustler's iterator panics at the end of an improper list, so its length is asked for first.
fn list(term: Term<'_>) -> Result<ListIterator<'_>, Term<'_>> {
    term.list_length().and_then(|_| term.decode()).map_err(|_| term)
}

fn decode_text(term: Term<'_>) -> Result<&str, Term<'_>> {
    term.decode().map_err(|_| term)
}
