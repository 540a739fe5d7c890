//! `Skillbook.Declaration`: the flags that a page declares, as structs.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_core::page::declaration::{
    Choice, Declaration, Flag, Pattern, Positional, Type, DAYS,
};
use skillbook_core::page::document::Document;
use skillbook_core::schema::Schema;

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
        error,
        given,
        pattern,
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
        datetime,
        email,
        url,
        one_of,
        json,
        min,
        max,
        schema,
        property,
        structure,
    }
}

/// The declaration in a page's text, with or without frontmatter, or `nil`.
#[rustler::nif(schedule = "DirtyCpu")]
fn declaration_read<'a>(env: Env<'a>, text: Binary) -> Term<'a> {
    encode(env, Document::parse("", "", &text).declaration())
}

/// `true` if all values match a flag's pattern, else an example of one that does, empty if there is
/// no short one.
#[rustler::nif(schedule = "DirtyCpu")]
fn pattern_check<'a>(env: Env<'a>, pattern: &str, values: Vec<&str>) -> Term<'a> {
    match Pattern::read(pattern) {
        Ok(read) if values.iter().all(|value| read.matches(value)) => true.encode(env),
        Ok(read) => read.example().encode(env),
        Err(_) => "".encode(env),
    }
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
            (atoms::given(), declared.given.encode(env)),
            (atoms::error(), encode::option(env, &declared.error)),
            (atoms::schema(), schema(env, &declared.schema)?),
        ],
    )
}

fn flag<'a>(env: Env<'a>, flag: &Flag) -> NifResult<Term<'a>> {
    let nil = || atoms::nil().encode(env);
    let (kind, mut values, mut min, mut max) =
        (atoms::kind(), Vec::<&str>::new().encode(env), nil(), nil());
    let mut structure = nil();
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
            (min, max) = (number(env, least), number(env, most));
            atoms::number().encode(env)
        }
        Type::Datetime => atoms::datetime().encode(env),
        Type::Email => atoms::email().encode(env),
        Type::Url => atoms::url().encode(env),
        Type::Date { words } => {
            values = DAYS[..if *words { DAYS.len() } else { 0 }].encode(env);
            atoms::date().encode(env)
        }
        Type::Json(short) => {
            structure = short.encode(env);
            atoms::json().encode(env)
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
            (atoms::pattern(), encode::option(env, &flag.pattern.as_ref().map(Pattern::as_str))),
            (atoms::schema(), schema(env, &flag.schema)?),
            (atoms::property(), encode::option(env, &flag.property)),
            (atoms::structure(), structure),
        ],
    )
}

/// A bound, as an integer if it is whole, so that messages show it as its author wrote it.
fn number<'a>(env: Env<'a>, bound: &Option<f64>) -> Term<'a> {
    match bound {
        Some(bound) if bound.fract() == 0.0 && bound.abs() < 1e15 => (*bound as i64).encode(env),
        bound => encode::option(env, bound),
    }
}

/// A schema as a map, or `nil`.
fn schema<'a>(env: Env<'a>, schema: &Option<Schema>) -> NifResult<Term<'a>> {
    match schema {
        Some(schema) => encode::json(env, schema.as_json()),
        None => Ok(atoms::nil().encode(env)),
    }
}
