//! `Skillbook.Declaration`: the flags that a page declares, as structs.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_core::page::declaration::{Choice, Declaration, Flag, Positional, Type, DAYS};

use crate::encode;

mod atoms {
    rustler::atoms! {
        nil,
        __struct__,
        declaration = "Elixir.Skillbook.Declaration",
        flag = "Elixir.Skillbook.Flag",
        flags,
        choices,
        words,
        name,
        names,
        description,
        required,
        default,
        several,
        positional,
        one,
        all,
        line,
        empty,
        kind = "type",
        value,
        values,
        text,
        switch,
        integer,
        number,
        date,
        one_of,
        min,
        max,
    }
}

/// The declaration in a page's text, or `nil`.
#[rustler::nif(schedule = "DirtyCpu")]
fn declaration_read<'a>(env: Env<'a>, body: Binary) -> Term<'a> {
    encode(
        env,
        std::str::from_utf8(&body).ok().and_then(skillbook_core::page::declaration::read).as_ref(),
    )
}

/// A `%Skillbook.Declaration{}`, or `nil`. Encoding fails only for a map with a key twice, and none
/// here has one.
pub fn encode<'a>(env: Env<'a>, declared: Option<&Declaration>) -> Term<'a> {
    let term = declared.and_then(|declared| declaration(env, declared).ok());
    term.unwrap_or_else(|| atoms::nil().encode(env))
}

fn declaration<'a>(env: Env<'a>, declared: &Declaration) -> NifResult<Term<'a>> {
    let flags =
        declared.flags.iter().map(|found| flag(env, found)).collect::<NifResult<Vec<_>>>()?;
    let choice = |choice: &Choice| {
        let pairs = [
            (atoms::names(), choice.names.encode(env)),
            (atoms::required(), choice.required.encode(env)),
        ];
        Term::map_from_pairs(env, &pairs)
    };
    let choices = declared.choices.iter().map(choice).collect::<NifResult<Vec<_>>>()?;
    Term::map_from_pairs(
        env,
        &[
            (atoms::__struct__(), atoms::declaration().encode(env)),
            (atoms::flags(), flags.encode(env)),
            (atoms::choices(), choices.encode(env)),
            (atoms::words(), declared.words.encode(env)),
        ],
    )
}

fn flag<'a>(env: Env<'a>, flag: &Flag) -> NifResult<Term<'a>> {
    let nil = || atoms::nil().encode(env);
    let (kind, mut values, mut min, mut max) =
        (atoms::kind(), Vec::<&str>::new().encode(env), nil(), nil());
    let called = match &flag.kind {
        Type::Unknown => nil(),
        Type::Value => atoms::value().encode(env),
        Type::Text { max: most, .. } => {
            max = encode::option(env, most);
            atoms::text().encode(env)
        }
        Type::Switch => atoms::switch().encode(env),
        Type::Integer { min: least, max: most } => {
            (min, max) = (encode::option(env, least), encode::option(env, most));
            atoms::integer().encode(env)
        }
        Type::Number { min: least, max: most } => {
            (min, max) = (encode::option(env, least), encode::option(env, most));
            atoms::number().encode(env)
        }
        Type::Date { words } => {
            values = DAYS[..if *words { DAYS.len() } else { 0 }].encode(env);
            atoms::date().encode(env)
        }
        Type::OneOf(allowed) => {
            values = allowed.encode(env);
            atoms::one_of().encode(env)
        }
    };
    let (line, empty) = match flag.kind {
        Type::Text { line, empty, .. } => (line, empty),
        _ => (false, false),
    };
    let positional = match flag.positional {
        None => nil(),
        Some(Positional::One) => atoms::one().encode(env),
        Some(Positional::All) => atoms::all().encode(env),
    };
    Term::map_from_pairs(
        env,
        &[
            (atoms::__struct__(), atoms::flag().encode(env)),
            (atoms::name(), flag.name().encode(env)),
            (atoms::names(), flag.names.encode(env)),
            (atoms::description(), flag.description.encode(env)),
            (atoms::required(), flag.required.encode(env)),
            (atoms::default(), flag.default.encode(env)),
            (atoms::several(), flag.several.encode(env)),
            (kind, called),
            (atoms::values(), values),
            (atoms::min(), min),
            (atoms::max(), max),
            (atoms::line(), line.encode(env)),
            (atoms::empty(), empty.encode(env)),
            (atoms::positional(), positional),
        ],
    )
}
