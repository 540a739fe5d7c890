//! `Skillbook.Command`: words, and a command's name, flags and arguments.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_core::text::command::{self, Command, FlagValue};
use skillbook_core::text::words::{self, Reference};

use crate::encode;
use crate::text::{self, Source};
use crate::twin::{twin, BYTES};

mod atoms {
    rustler::atoms! {
        ok,
        __struct__,
        command = "Elixir.Skillbook.Command",
        name,
        flags,
        args,
        placeholders,
        last,
        raw,
        help,
    }
}

fn split<'a>(env: Env<'a>, line: Binary<'a>) -> NifResult<Term<'a>> {
    let source = match Source::new(line) {
        Ok(source) => source,
        Err(error) => return text::error(env, &error),
    };
    match words::split(source.text) {
        Err(error) => text::error(env, &error),
        Ok(words) => {
            let mut terms = Term::list_new_empty(env);
            for word in words.iter().rev() {
                terms = terms.list_prepend(source.part(env, &word.value));
            }
            Ok((atoms::ok(), terms).encode(env))
        }
    }
}

fn read<'a>(env: Env<'a>, line: Binary<'a>) -> NifResult<Term<'a>> {
    let source = match Source::new(line) {
        Ok(source) => source,
        Err(error) => return text::error(env, &error),
    };
    match command::parse(source.text) {
        Err(error) => text::error(env, &error),
        Ok(command) => Ok((atoms::ok(), encode_command(env, &source, &command)?).encode(env)),
    }
}

/// A `%Skillbook.Command{}`.
pub fn encode_command<'a>(env: Env<'a>, source: &Source<'a>, command: &Command<'_>) -> NifResult<Term<'a>> {
    let mut names = Vec::with_capacity(command.flags.len());
    let mut values = Vec::with_capacity(command.flags.len());
    for (name, value) in &command.flags {
        names.push(source.part(env, name));
        values.push(flag(env, source, value)?);
    }
    let flags = Term::map_from_term_arrays(env, &names, &values)?;
    let placeholders: Vec<_> = command
        .placeholders
        .iter()
        .map(|placeholder| {
            let place = placeholder.flag.map_or_else(|| atoms::args().to_term(env), |flag| names[flag]);
            let reference = match placeholder.reference {
                Reference::Number(number) => number.encode(env),
                Reference::Last => atoms::last().to_term(env),
            };
            (place, placeholder.index, reference)
        })
        .collect();
    encode::map(
        env,
        [
            (atoms::__struct__(), atoms::command().to_term(env)),
            (atoms::args(), source.parts(env, &command.args)),
            (atoms::flags(), flags),
            (atoms::help(), command.help.encode(env)),
            (atoms::placeholders(), placeholders.encode(env)),
            (atoms::name(), source.part(env, &command.name)),
            (atoms::raw(), source.whole(env)),
        ],
    )
}

fn flag<'a>(env: Env<'a>, source: &Source<'a>, value: &FlagValue<'_>) -> NifResult<Term<'a>> {
    Ok(match value {
        FlagValue::True => true.encode(env),
        FlagValue::One(value) => source.part(env, value),
        FlagValue::Many(values) => source.parts(env, values),
        FlagValue::Json(value) => encode::value(env, value)?,
    })
}

twin! {
    "DirtyCpu" fn tokenize_now | tokenize_dirty(env, line: Binary<'a>)
    if line.len() <= BYTES
    => split(env, line)
}

twin! {
    /// A word as it is written in a command.
    "DirtyCpu" fn quote_word_now | quote_word_dirty(env, word: &'a str)
    if word.len() <= BYTES
    => Ok(words::quote(word).encode(env))
}

twin! {
    "DirtyCpu" fn parse_command_now | parse_command_dirty(env, line: Binary<'a>)
    if line.len() <= BYTES
    => read(env, line)
}
