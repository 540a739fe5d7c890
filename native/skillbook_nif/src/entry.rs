//! An entry as `Skillbook.Entry.new/1` takes it.

use rustler::types::tuple::make_tuple;
use rustler::{Encoder, Env, NifResult, Term};
use skillbook_core::document::Fields;
use skillbook_core::entry::Entry;

use crate::encode;
use crate::shared::{binary, TextResource};

mod atoms {
    rustler::atoms! { timeout, max_running }
}

/// Fails never in fact: a map cannot be made of keys that occur twice, and those of a mapping do not.
pub fn encode<'a>(env: Env<'a>, entry: &Entry) -> Term<'a> {
    tuple(env, entry).unwrap_or_else(|_| encode::option(env, &None::<bool>))
}

/// The values without their keys: a copy's time grows with its words, and the keys are the same for all entries.
fn tuple<'a>(env: Env<'a>, entry: &Entry) -> NifResult<Term<'a>> {
    let fields = entry.fields();
    let text = TextResource::new(entry.document.text.clone());
    let values = [
        entry.name.encode(env),
        encode::own_atom(env, entry.kind.as_str()),
        encode::option(env, &entry.domain),
        encode::option(env, &entry.title),
        entry.description().encode(env),
        encode::option(env, &entry.handler()),
        effects(env, entry),
        encode::option(env, &fields.usage),
        binary(env, &text, entry.document.body_range()),
        entry.document.path.encode(env),
        entry.source.name.encode(env),
        fields.tags.encode(env),
        entry.labels.encode(env),
        encode::own_atom(env, entry.selection.as_str()),
        encode::own_atom(env, entry.trust.as_str()),
        entry.files.encode(env),
        encode::value(env, &fields.data)?,
        rare(env, entry)?,
    ];
    Ok(make_tuple(env, &values))
}

/// The values of fields that few authors write; `nil` if each has the default that `Skillbook.Entry` has too.
fn rare<'a>(env: Env<'a>, entry: &Entry) -> NifResult<Term<'a>> {
    let fields = entry.fields();
    let nil = encode::option(env, &None::<bool>);
    let (empty, map) = (Term::list_new_empty(env), Term::map_new(env));
    let values_and_defaults = [
        (encode::option(env, &entry.schedule()), nil),
        (encode::option(env, &fields.timezone), nil),
        (encode::option(env, &fields.license), nil),
        (encode::option(env, &fields.compatibility), nil),
        (fields.aliases.encode(env), empty),
        (fields.requires.encode(env), empty),
        (limits(env, fields)?, map),
        (fields.strict.encode(env), false.encode(env)),
        (fields.allowed_tools.encode(env), empty),
        (fields.include_in_prompt.encode(env), true.encode(env)),
        (fields.hidden_from_model.encode(env), false.encode(env)),
        (fields.user_invocable.encode(env), true.encode(env)),
        (fields.triggers.encode(env), empty),
        (metadata(env, &fields.metadata)?, map),
    ];
    if values_and_defaults.iter().all(|(value, default)| value == default) {
        return Ok(nil);
    }
    Ok(make_tuple(env, &values_and_defaults.map(|(value, _)| value)))
}

fn metadata<'a>(env: Env<'a>, pairs: &[(String, String)]) -> NifResult<Term<'a>> {
    let (keys, values): (Vec<_>, Vec<_>) =
        pairs.iter().map(|(key, value)| (key.encode(env), value.encode(env))).unzip();
    Term::map_from_term_arrays(env, &keys, &values)
}

fn limits<'a>(env: Env<'a>, fields: &Fields) -> NifResult<Term<'a>> {
    let limits = [(atoms::timeout(), fields.timeout), (atoms::max_running(), fields.max_running)];
    let pairs: Vec<_> = limits.into_iter().filter_map(|(name, limit)| Some((name, limit?))).collect();
    Term::map_from_pairs(env, &pairs)
}

fn effects<'a>(env: Env<'a>, entry: &Entry) -> Term<'a> {
    match entry.fields().effects {
        Some(effects) => encode::own_atom(env, effects.as_str()),
        None => encode::option(env, &None::<bool>),
    }
}
