//! `Skillbook.Flags.Structured`: reads the values of JSON Schemas.

use rustler::{Encoder, Env, NifResult, Term};
use serde_json::Value as Json;
use skillbook_core::schema::{arguments, value, Given, Mistake, Schema, Wrong};

mod atoms {
    rustler::atoms! { ok, error, absent, missing, unknown, invalid, form, no_value, costly }
}

/// The value of a schema: `{:ok, json}`, `:absent`, or `{:error, mistakes}`. With `whole`, `given`
/// has the arguments by their properties. In a line, texts are words. Mistakes are
/// `{path, kind, expected, got}`.
#[rustler::nif(schedule = "DirtyCpu")]
fn schema_read<'a>(
    env: Env<'a>,
    schema: &str,
    given: &str,
    in_line: bool,
    whole: bool,
) -> NifResult<Term<'a>> {
    let read = |text: &str| serde_json::from_str::<Json>(text).map_err(|_| rustler::Error::BadArg);
    // It comes from the declaration of a page.
    let schema = Schema::known(read(schema)?);
    let given = read(given)?;
    let value = match given {
        Json::Object(members) if whole => {
            let given = members.into_iter().map(|(name, value)| (name, meant(value, in_line)));
            arguments(&schema, given.collect()).map(|arguments| Some(Json::Object(arguments)))
        }
        given => value(&schema, meant(given, in_line)),
    };
    Ok(match value {
        Ok(Some(value)) => (atoms::ok(), value.to_string()).encode(env),
        Ok(None) => atoms::absent().encode(env),
        Err(mistakes) => {
            let mistakes: Vec<_> = mistakes.iter().map(|found| mistake(env, found)).collect();
            (atoms::error(), mistakes).encode(env)
        }
    })
}

fn meant(value: Json, in_line: bool) -> Given {
    match value {
        Json::Bool(true) if in_line => Given::Words(Vec::new()),
        Json::String(word) if in_line => Given::Words(vec![word]),
        Json::Array(items) if in_line && items.iter().all(Json::is_string) => {
            let words = items.iter().filter_map(Json::as_str).map(str::to_owned);
            Given::Words(words.collect())
        }
        value => Given::Json(value),
    }
}

fn mistake<'a>(env: Env<'a>, found: &Mistake) -> Term<'a> {
    let path = found.path.as_str();
    match &found.wrong {
        Wrong::Missing => (path, atoms::missing(), "", "").encode(env),
        Wrong::Unknown(known) => (path, atoms::unknown(), known, "").encode(env),
        Wrong::Value { expected, got } => {
            (path, atoms::invalid(), expected, got.as_str()).encode(env)
        }
        Wrong::Form { expected, got } => (path, atoms::form(), expected, got.as_str()).encode(env),
        Wrong::NoValue => (path, atoms::no_value(), "", "").encode(env),
        Wrong::Costly => (path, atoms::costly(), "", "").encode(env),
    }
}
