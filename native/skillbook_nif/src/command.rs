//! `Skillbook.Command`: splits a line into words, and parses a command into name, flags and
//! arguments.

use rustler::{Binary, Encoder, Env, NifResult, Term};
use skillbook_bridge::twin;
use skillbook_core::text::command::{self, Command, FlagValue};
use skillbook_core::text::words::{self, Reference};

use crate::encode::{self, Bare, Bares};
use crate::text::{self, SourceText};

mod atoms {
    rustler::atoms! {
        ok,
        args,
        last,
    }
}

fn split<'a>(env: Env<'a>, line: Binary<'a>) -> NifResult<Term<'a>> {
    let source = match SourceText::new(env, line) {
        Ok(source) => source,
        Err(error) => return text::error(env, &error),
    };
    match words::split(source.text) {
        Err(error) => text::error(env, &error),
        Ok(words) => {
            let words: Bares = words.iter().map(|word| source.part(&word.value)).collect();
            Ok((atoms::ok(), Bare::list(env, &words).term(env)).encode(env))
        }
    }
}

fn read<'a>(env: Env<'a>, line: Binary<'a>) -> NifResult<Term<'a>> {
    let source = match SourceText::new(env, line) {
        Ok(source) => source,
        Err(error) => return text::error(env, &error),
    };
    match command::parse(source.text) {
        Err(error) => text::error(env, &error),
        Ok(command) => Ok(encode_command(env, &source, &command)?.term(env)),
    }
}

/// A command as the tuple that `Skillbook.Command.new/1` takes.
pub fn encode_command<'a>(
    env: Env<'a>,
    source: &SourceText<'a>,
    command: &Command<'_>,
) -> NifResult<Bare<'a>> {
    let names: Bares = command.flags.iter().map(|(name, _)| source.part(name)).collect();
    let mut values = Bares::new();
    for (_, value) in &command.flags {
        values.push(flag(env, source, value)?);
    }
    let placeholders: Vec<_> = command
        .placeholders
        .iter()
        .map(|placeholder| {
            let place = placeholder
                .flag
                .map_or_else(|| atoms::args().to_term(env), |flag| names[flag].term(env));
            let reference = match placeholder.reference {
                Reference::Number(number) => number.encode(env),
                Reference::Last => atoms::last().to_term(env),
            };
            (place, placeholder.index, reference)
        })
        .collect();
    let values = [
        source.part(&command.name),
        source.whole(),
        Bare::map(env, &names, &values).ok_or(rustler::Error::BadArg)?,
        source.parts(&command.args),
        placeholders.encode(env).into(),
        command.help.encode(env).into(),
        command
            .flags
            .iter()
            .any(|(_, value)| matches!(value, FlagValue::Json(_)))
            .encode(env)
            .into(),
    ];
    Ok(Bare::tuple(env, &values))
}

fn flag<'a>(env: Env<'a>, source: &SourceText<'a>, value: &FlagValue<'_>) -> NifResult<Bare<'a>> {
    Ok(match value {
        FlagValue::True => true.encode(env).into(),
        FlagValue::One(value) => source.part(value),
        FlagValue::Many(values) => source.parts(values),
        FlagValue::Json(value) => encode::value(env, value)?.into(),
    })
}

twin! {
    "DirtyCpu" fn tokenize_now | tokenize_dirty(env, line: Binary<'a>)
    text line.len()
    => split(env, line)
}

twin! {
    /// Quotes a word for use in a command.
    "DirtyCpu" fn quote_word_now | quote_word_dirty(env, word: &'a str)
    text word.len()
    => Ok(words::quote(word).encode(env))
}

twin! {
    "DirtyCpu" fn parse_command_now | parse_command_dirty(env, line: Binary<'a>)
    text line.len()
    => read(env, line)
}
