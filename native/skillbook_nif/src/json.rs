//! `Skillbook.Support.JSON`: reads and writes JSON.

use std::io::{self, Write};
use std::vec;

use rustler::types::tuple::get_tuple;
use rustler::{Binary, Encoder, Env, ListIterator, MapIterator, NifResult, Term, TermType};
use serde_json::ser::{CompactFormatter, Formatter};
use serde_json::{Map, Value as Json};
use skillbook_bridge::twin;
use skillbook_bridge::twin::{timed, BYTES};
use skillbook_core::json::{self, Part, Step};

use crate::encode;

mod atoms {
    rustler::atoms! { ok, error, nil, key, unknown }
}

twin! {
    /// `{:ok, value}` of at most so many keys and values, maps with string keys, or
    /// `{:error, {reason, line, column, path}}`.
    "DirtyCpu" fn json_decode_now | json_decode_dirty(env, bytes: Binary<'a>, most: usize)
    if bytes.len() <= BYTES
    => decode(env, bytes, most)
}

fn decode<'a>(env: Env<'a>, bytes: Binary<'a>, most: usize) -> NifResult<Term<'a>> {
    let text = match simdutf8::compat::from_utf8(&bytes) {
        Ok(text) => text,
        Err(error) => {
            let line =
                bytes[..error.valid_up_to()].iter().filter(|byte| **byte == b'\n').count() + 1;
            return Ok(
                (atoms::error(), ("expected UTF-8", line, 1, Vec::<Term>::new())).encode(env)
            );
        }
    };
    Ok(match json::parse(text, most) {
        Ok(value) => (atoms::ok(), encode::value(env, &value)?).encode(env),
        Err(error) => {
            let path: Vec<Term> = error.path.iter().map(|step| encode_step(env, step)).collect();
            (atoms::error(), (error.message, error.line, error.column, path)).encode(env)
        }
    })
}

fn encode_step<'a>(env: Env<'a>, step: &Step) -> Term<'a> {
    match step {
        Step::Key(key) => key.encode(env),
        Step::Index(index) => index.encode(env),
    }
}

/// The `{line, column}` of a value (with `:key`, of its key) in valid JSON text; `nil` if the path
/// does not exist. A path is a list of keys and of indexes from 0.
#[rustler::nif(schedule = "DirtyCpu")]
fn json_place<'a>(env: Env<'a>, text: &str, path: Vec<Term>, part: Term) -> NifResult<Term<'a>> {
    let step = |term: &Term| match term.decode() {
        Ok(index) => Ok(Step::Index(index)),
        Err(_) => term.decode().map(Step::Key),
    };
    let path = path.iter().map(step).collect::<NifResult<Vec<_>>>()?;
    let part = if atoms::key() == part { Part::Key } else { Part::Value };
    Ok(match json::place(text, &path, part) {
        Some(place) => place.encode(env),
        None => atoms::nil().encode(env),
    })
}

twin! {
    /// The JSON of a term, or `:unknown` if some part of it cannot be written.
    ///
    /// With `literals`, a tuple of one binary is written as it is, and keyword lists may have
    /// binaries as keys.
    "DirtyCpu" fn json_encode_now | json_encode_dirty(env, term: Term<'a>, literals: bool)
    ready match timed(env, || to_json(term, literals, BYTES)) {
        Err(Stop::Full) => None,
        result => Some(encode_json(env, result)),
    }
    => Ok(encode_json(env, to_json(term, literals, usize::MAX)))
}

fn encode_json<'a>(env: Env<'a>, result: Result<Vec<u8>, Stop>) -> Term<'a> {
    match result {
        Ok(json) => encode::binary(env, json),
        Err(_) => atoms::unknown().encode(env),
    }
}

/// The reason why writing stopped.
enum Stop {
    Unknown,
    Full,
}

impl From<io::Error> for Stop {
    fn from(_: io::Error) -> Stop {
        Stop::Unknown
    }
}

/// The rest of a list or object that has been opened.
enum Open<'a> {
    List(ListIterator<'a>),
    Object(vec::IntoIter<(String, Term<'a>)>),
}

/// Writes a term with a stack of its own: serde_json's serializer recurses, and terms nest without
/// limit. Strings, numbers and punctuation are still serde_json's.
fn to_json(term: Term, literals: bool, most: usize) -> Result<Vec<u8>, Stop> {
    let mut out = Vec::with_capacity(256);
    let mut signs = CompactFormatter;
    let mut open = Vec::new();
    begin(term, literals, most, &mut out, &mut open)?;
    while let Some(innermost) = open.last_mut() {
        // An opening bracket at the end means that no value has been written yet; strings end with
        // a quote.
        let first = matches!(out.last(), Some(b'[' | b'{'));
        let next = match innermost {
            Open::List(items) => match items.next() {
                Some(item) => {
                    signs.begin_array_value(&mut out, first)?;
                    item
                }
                None => {
                    signs.end_array(&mut out)?;
                    open.pop();
                    continue;
                }
            },
            Open::Object(members) => match members.next() {
                Some((key, value)) => {
                    signs.begin_object_key(&mut out, first)?;
                    write_text(&mut out, &key)?;
                    signs.begin_object_value(&mut out)?;
                    value
                }
                None => {
                    signs.end_object(&mut out)?;
                    open.pop();
                    continue;
                }
            },
        };
        begin(next, literals, most, &mut out, &mut open)?;
    }
    Ok(out)
}

/// Writes a scalar, or opens a list or object.
fn begin<'a>(
    term: Term<'a>,
    literals: bool,
    most: usize,
    out: &mut Vec<u8>,
    open: &mut Vec<Open<'a>>,
) -> Result<(), Stop> {
    // Elixir encodes everything that this function does not, and reports invalid terms.
    let unknown = |_: rustler::Error| Stop::Unknown;
    let room = |more: usize| if out.len() + more > most { Err(Stop::Full) } else { Ok(()) };
    let mut signs = CompactFormatter;
    match term.get_type() {
        TermType::Binary => {
            let text: Binary = term.decode().map_err(unknown)?;
            room(text.len())?;
            write_text(out, simdutf8::basic::from_utf8(&text).map_err(|_| Stop::Unknown)?)?;
        }
        TermType::Integer => match term.decode::<i64>() {
            Ok(number) => signs.write_i64(out, number)?,
            // Larger integers are left to Elixir.
            Err(_) => signs.write_u64(out, term.decode().map_err(unknown)?)?,
        },
        TermType::Float => signs.write_f64(out, term.decode().map_err(unknown)?)?,
        TermType::Atom if atoms::nil() == term => signs.write_null(out)?,
        TermType::Atom => match term.decode() {
            Ok(value) => signs.write_bool(out, value)?,
            Err(_) => write_text(out, &term.atom_to_string().map_err(unknown)?)?,
        },
        TermType::List => {
            room(term.list_length().map_err(unknown)?)?;
            // A keyword list is an object; an empty list is an array.
            match pairs(term, literals) {
                Some(pairs) if !pairs.is_empty() => {
                    signs.begin_object(out)?;
                    open.push(Open::Object(pairs.into_iter()));
                }
                _ => {
                    signs.begin_array(out)?;
                    open.push(Open::List(term.decode().map_err(unknown)?));
                }
            }
        }
        TermType::Map => {
            room(term.map_size().map_err(unknown)?)?;
            let members = MapIterator::new(term).ok_or(Stop::Unknown)?;
            let members = members.map(|(name, value)| Ok((key(name).ok_or(Stop::Unknown)?, value)));
            let mut members = members.collect::<Result<Vec<_>, Stop>>()?;
            // Elixir encodes structs, each by its own rule.
            if members.iter().any(|(name, _)| name == "__struct__") {
                return Err(Stop::Unknown);
            }
            // Maps have no order, and the same map must give the same JSON.
            members.sort_by(|(one, _), (other, _)| one.cmp(other));
            signs.begin_object(out)?;
            open.push(Open::Object(members.into_iter()));
        }
        TermType::Tuple if literals => {
            let [text] = get_tuple(term).map_err(unknown)?[..] else { return Err(Stop::Unknown) };
            out.write_all(text.decode::<Binary>().map_err(unknown)?.as_slice())?;
        }
        _ => return Err(Stop::Unknown),
    }
    Ok(())
}

fn write_text(out: &mut Vec<u8>, text: &str) -> io::Result<()> {
    serde_json::to_writer(out, text).map_err(io::Error::from)
}

/// The members of a keyword list. With `literals`, keys may be binaries.
fn pairs<'a>(list: Term<'a>, literals: bool) -> Option<Vec<(String, Term<'a>)>> {
    let pair = |item: Term<'a>| match get_tuple(item).ok()?[..] {
        [name, value] if literals || name.is_atom() => Some((key(name)?, value)),
        _ => None,
    };
    list.decode::<ListIterator>().ok()?.map(pair).collect()
}

/// An object of JSON values that nest at most so deep; `None` for any other term.
pub fn read_object(term: Term, deepest: usize) -> Option<Map<String, Json>> {
    let members = MapIterator::new(term)?;
    members.map(|(name, value)| Some((key(name)?, read(value, deepest.checked_sub(1)?)?))).collect()
}

fn read(term: Term, deepest: usize) -> Option<Json> {
    Some(match term.get_type() {
        TermType::Binary => term.decode::<String>().ok()?.into(),
        TermType::Integer => match term.decode::<i64>() {
            Ok(number) => number.into(),
            Err(_) => term.decode::<u64>().ok()?.into(),
        },
        TermType::Float => term.decode::<f64>().ok()?.into(),
        TermType::Atom if atoms::nil() == term => Json::Null,
        TermType::Atom => match term.decode::<bool>() {
            Ok(value) => value.into(),
            Err(_) => term.atom_to_string().ok()?.into(),
        },
        TermType::List => {
            let deepest = deepest.checked_sub(1)?;
            let items = term.decode::<ListIterator>().ok()?;
            items.map(|item| read(item, deepest)).collect::<Option<Vec<Json>>>()?.into()
        }
        TermType::Map => read_object(term, deepest)?.into(),
        _ => return None,
    })
}

fn key(term: Term) -> Option<String> {
    match term.get_type() {
        TermType::Binary => term.decode().ok(),
        TermType::Atom => term.atom_to_string().ok(),
        TermType::Integer => term.decode::<i64>().ok().map(|number| number.to_string()),
        _ => None,
    }
}
