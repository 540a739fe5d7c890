//! Parameters, rows and errors as terms, the same for all databases.

use rustler::{Binary, Encoder, Env, Error as NifError, NifResult, Term};
use skillbook_bridge::encode::{binary, option, static_atom};

use crate::{Error, ErrorKind, Rows, Value};

mod atoms {
    rustler::atoms! { ok, error, nil, blob }
}

/// `:ok` or `{:error, error}`.
pub fn done<'a>(env: Env<'a>, result: Result<(), Error>) -> Term<'a> {
    match result {
        Ok(()) => atoms::ok().encode(env),
        Err(error) => (atoms::error(), encode_error(env, &error)).encode(env),
    }
}

/// `{:ok, value}` or `{:error, error}`.
pub fn reply<'a>(env: Env<'a>, result: Result<impl Encoder, Error>) -> Term<'a> {
    match result {
        Ok(value) => (atoms::ok(), value).encode(env),
        Err(error) => (atoms::error(), encode_error(env, &error)).encode(env),
    }
}

/// `{kind, constraint, message, sql}`.
pub fn encode_error<'a>(env: Env<'a>, error: &Error) -> Term<'a> {
    let constraint = match error.kind() {
        ErrorKind::Constraint(constraint) => static_atom(env, constraint.as_str()),
        _ => atoms::nil().encode(env),
    };
    let kind = static_atom(env, error.kind().as_str());
    (kind, constraint, error.to_string(), option(env, &error.sql())).encode(env)
}

/// `{columns, rows, count}`.
pub fn encode_rows<'a>(env: Env<'a>, found: &Rows) -> Term<'a> {
    let rows: Vec<Term> = found
        .rows
        .iter()
        .map(|row| row.iter().map(|value| encode_value(env, value)).collect::<Vec<_>>().encode(env))
        .collect();
    (&found.columns, rows, found.count).encode(env)
}

/// The rows of each statement.
pub fn encode_all<'a>(env: Env<'a>, found: &[Rows]) -> Vec<Term<'a>> {
    found.iter().map(|found| encode_rows(env, found)).collect()
}

fn encode_value<'a>(env: Env<'a>, value: &Value) -> Term<'a> {
    match value {
        Value::Null => atoms::nil().encode(env),
        Value::Int(value) => value.encode(env),
        Value::Float(value) => value.encode(env),
        Value::Text(text) => text.encode(env),
        Value::Blob(bytes) => binary(env, bytes),
    }
}

/// Decodes statements with their parameters.
pub fn decode_statements(
    statements: &[(String, Vec<Term>)],
) -> NifResult<Vec<(String, Vec<Value>)>> {
    statements.iter().map(|(sql, params)| Ok((sql.clone(), decode_params(params)?))).collect()
}

/// Decodes parameters. `Skillbook.SQL` passes only nil, 64-bit integers, floats, UTF-8 binaries and
/// `{:blob, binary}`.
pub fn decode_params(params: &[Term]) -> NifResult<Vec<Value>> {
    params
        .iter()
        .map(|param| {
            if let Ok(text) = param.decode::<&str>() {
                Ok(Value::Text(text.to_owned()))
            } else if let Ok(value) = param.decode::<i64>() {
                Ok(Value::Int(value))
            } else if let Ok(value) = param.decode::<f64>() {
                Ok(Value::Float(value))
            } else if let Ok((tag, bytes)) = param.decode::<(rustler::Atom, Binary)>() {
                if tag == atoms::blob() {
                    Ok(Value::Blob(bytes.as_slice().to_vec()))
                } else {
                    Err(NifError::BadArg)
                }
            } else if *param == atoms::nil().encode(param.get_env()) {
                Ok(Value::Null)
            } else {
                Err(NifError::BadArg)
            }
        })
        .collect()
}
