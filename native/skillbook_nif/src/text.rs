//! Text of binaries without copying: extractor and command return parts of the binary that they
//! were given.

use std::borrow::Cow;

use rustler::{Binary, Encoder, Env, NewBinary, NifResult, Term};
use skillbook_core::text::error::Error;
use skillbook_core::text::extract::invalid_utf8;

use crate::encode::{self, static_atom, Bare, Bares};

mod atoms {
    rustler::atoms! {
        __struct__,
        __exception__,
        command_error = "Elixir.Skillbook.CommandError",
        kind,
        problem,
        hint,
        offset,
        length,
        line,
        column,
        message,
        error,
    }
}

/// A binary with its text, to return parts of it without a copy.
pub struct SourceText<'a> {
    env: Env<'a>,
    binary: Binary<'a>,
    pub text: &'a str,
}

impl<'a> SourceText<'a> {
    #[inline]
    pub fn new(env: Env<'a>, binary: Binary<'a>) -> Result<Self, Error> {
        let text = simdutf8::compat::from_utf8(binary.as_slice())
            .map_err(|error| invalid_utf8(error.valid_up_to()))?;
        Ok(SourceText { env, binary, text })
    }

    /// The whole binary.
    pub fn whole(&self) -> Bare<'a> {
        self.binary.to_term(self.env).into()
    }

    /// A text as a binary. If the text is borrowed from this binary, as its address shows, the
    /// result is a part of it.
    #[inline]
    pub fn part(&self, text: &str) -> Bare<'a> {
        let offset = (text.as_ptr() as usize).wrapping_sub(self.text.as_ptr() as usize);
        Bare::part(self.env, &self.binary, offset, text.len())
            .unwrap_or_else(|| encode::binary(self.env, text).into())
    }

    pub fn parts(&self, list: &[Cow<'_, str>]) -> Bare<'a> {
        let parts: Bares = list.iter().map(|part| self.part(part)).collect();
        Bare::list(self.env, &parts)
    }

    /// Joins pieces of text. If they are adjacent in this binary, the result is a part of it.
    pub fn joined(&self, pieces: &[Cow<'_, str>]) -> Bare<'a> {
        match pieces {
            [] => encode::binary(self.env, "").into(),
            [piece] => self.part(piece),
            pieces => {
                let mut joined =
                    NewBinary::new(self.env, pieces.iter().map(|piece| piece.len()).sum());
                let mut rest = joined.as_mut_slice();
                for piece in pieces {
                    let (part, tail) = rest.split_at_mut(piece.len());
                    part.copy_from_slice(piece.as_bytes());
                    rest = tail;
                }
                Term::from(joined).into()
            }
        }
    }
}

/// `{:error, %Skillbook.CommandError{}}`.
pub fn error<'a>(env: Env<'a>, error: &Error) -> NifResult<Term<'a>> {
    let span = error.span();
    let pairs = [
        (atoms::__struct__(), atoms::command_error().encode(env)),
        (atoms::__exception__(), true.encode(env)),
        (atoms::kind(), static_atom(env, error.kind().as_str())),
        (atoms::problem(), error.message().encode(env)),
        (atoms::hint(), error.hint().encode(env)),
        (atoms::offset(), span.start.encode(env)),
        (atoms::length(), span.len().encode(env)),
        (atoms::line(), error.line().encode(env)),
        (atoms::column(), error.column().encode(env)),
        (atoms::message(), error.to_string().encode(env)),
    ];
    let exception = Term::map_from_pairs(env, &pairs)?;
    Ok((atoms::error(), exception).encode(env))
}
