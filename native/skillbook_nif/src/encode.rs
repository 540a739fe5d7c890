//! Encodes values of the core as terms.

use rustler::{Binary, Decoder, Encoder, Env, Error, NifResult, Term};
use skillbook_core::page::diagnostic::{Code, Diagnostic, Fix, Severity};
use skillbook_core::value::Value;

pub use skillbook_bridge::encode::{binary, map, option, static_atom, Bare, Bares};

mod atoms {
    rustler::atoms! {
        nil,
        __struct__,
        diagnostic = "Elixir.Skillbook.Diagnostic",
        code,
        severity,
        path,
        line,
        column,
        message,
        hint,
        fix,
    }
}

/// A `%Skillbook.Diagnostic{}`.
pub fn diagnostic<'a>(env: Env<'a>, diagnostic: &Diagnostic) -> NifResult<Term<'a>> {
    let keys = [
        atoms::__struct__().encode(env),
        atoms::code().encode(env),
        atoms::severity().encode(env),
        atoms::path().encode(env),
        atoms::line().encode(env),
        atoms::column().encode(env),
        atoms::message().encode(env),
        atoms::hint().encode(env),
        atoms::fix().encode(env),
    ];
    let values = [
        atoms::diagnostic().encode(env),
        static_atom(env, diagnostic.code.as_str()),
        static_atom(env, diagnostic.severity.as_str()),
        option(env, &diagnostic.path),
        option(env, &diagnostic.line),
        option(env, &diagnostic.column),
        diagnostic.message.encode(env),
        option(env, &diagnostic.hint),
        option(
            env,
            &diagnostic
                .fix
                .as_ref()
                .map(|fix| (fix.range.start, fix.range.len(), &fix.replacement)),
        ),
    ];
    Term::map_from_term_arrays(env, &keys, &values)
}

/// The diagnostic of a `%Skillbook.Diagnostic{}`.
pub fn read_diagnostic(term: Term) -> NifResult<Diagnostic> {
    let get = |key: rustler::Atom| term.map_get(key);
    let code = get(atoms::code())?.atom_to_string()?;
    let code = Code::ALL.iter().copied().find(|known| known.as_str() == code);
    let severity = get(atoms::severity())?.atom_to_string()?;
    let severities = [Severity::Error, Severity::Warning, Severity::Info];
    let severity = severities.into_iter().find(|known| known.as_str() == severity);
    let fix: Option<(usize, usize, String)> = get(atoms::fix())?.decode()?;
    let fix = fix.map(|(start, length, replacement)| {
        Box::new(Fix { range: start..start.saturating_add(length), replacement })
    });
    Ok(Diagnostic {
        code: code.ok_or(Error::BadArg)?,
        severity: severity.ok_or(Error::BadArg)?,
        path: text(get(atoms::path())?)?,
        line: get(atoms::line())?.decode()?,
        column: get(atoms::column())?.decode()?,
        message: text(get(atoms::message())?)?.ok_or(Error::BadArg)?,
        hint: text(get(atoms::hint())?)?,
        fix,
    })
}

/// A text or `nil`. Paths may have bytes that are not UTF-8.
fn text(term: Term) -> NifResult<Option<String>> {
    let bytes = Option::<Binary>::decode(term)?;
    Ok(bytes.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()))
}

/// A JSON value. Maps have string keys, `null` is `nil`.
///
/// The core limits the nesting of what it keeps, so this recursion is bounded.
pub fn json<'a>(env: Env<'a>, item: &serde_json::Value) -> NifResult<Term<'a>> {
    use serde_json::Value as Json;
    Ok(match item {
        Json::Null => atoms::nil().encode(env),
        Json::Bool(value) => value.encode(env),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => number.encode(env),
            (None, Some(number)) => number.encode(env),
            _ => number.as_f64().unwrap_or_default().encode(env),
        },
        Json::String(text) => text.encode(env),
        Json::Array(items) => {
            items.iter().map(|item| json(env, item)).collect::<NifResult<Vec<_>>>()?.encode(env)
        }
        Json::Object(members) => {
            let keys: Vec<_> = members.keys().map(|key| key.encode(env)).collect();
            let values =
                members.values().map(|item| json(env, item)).collect::<NifResult<Vec<_>>>()?;
            Term::map_from_term_arrays(env, &keys, &values)?
        }
    })
}

/// A frontmatter or JSON value. Maps have string keys, `null` is `nil`.
///
/// The parsers limit nesting to 128 levels, so this recursion is bounded.
pub fn value<'a>(env: Env<'a>, item: &Value) -> NifResult<Term<'a>> {
    Ok(match item.typed() {
        Value::Null => atoms::nil().encode(env),
        Value::Bool(value) => value.encode(env),
        Value::Int(value) => value.encode(env),
        Value::Float(value) => value.encode(env),
        Value::Str(value) => value.encode(env),
        Value::List(values) => {
            let terms =
                values.iter().map(|item| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            terms.encode(env)
        }
        // The parser has refused duplicate keys, which a map could not hold.
        Value::Map(pairs) => {
            let keys: Vec<_> = pairs.iter().map(|(key, _)| key.encode(env)).collect();
            let values =
                pairs.iter().map(|(_, item)| value(env, item)).collect::<NifResult<Vec<_>>>()?;
            Term::map_from_term_arrays(env, &keys, &values)?
        }
        // A typed value is none.
        Value::Written(scalar) => scalar.text.encode(env),
    })
}
