//! Errors of the server and of the driver, and the [`ErrorKind`] of each SQLSTATE.

use std::error::Error as StdError;

use tokio_postgres::error::{ErrorPosition, SqlState};

use super::settings::Timeouts;
use crate::error::Detail;
use crate::{Constraint, Error, ErrorKind};

pub(super) enum Failure {
    Driver(tokio_postgres::Error),
    Known(Error),
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Failure::Driver(error)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Known(error)
    }
}

pub(super) fn is_code(error: &tokio_postgres::Error, code: &SqlState) -> bool {
    error.code() == Some(code)
}

/// The text of the server or the operating system, without the driver's prefix.
pub(super) fn reason(error: &tokio_postgres::Error) -> String {
    match (error.as_db_error(), error.source()) {
        (Some(db_error), _) => db_error.message().to_owned(),
        (None, Some(source)) => tls(source).unwrap_or_else(|| source.to_string()),
        (None, None) => error.to_string(),
    }
}

fn tls(source: &(dyn std::error::Error + 'static)) -> Option<String> {
    let inner = source.downcast_ref::<std::io::Error>()?.get_ref()?;
    Some(skillbook_net::certificate::describe(inner.downcast_ref::<rustls::Error>()?).0)
}

pub(super) fn describe(error: &tokio_postgres::Error, timeouts: Timeouts) -> Error {
    let Some(db_error) = error.as_db_error() else {
        return Error::new(ErrorKind::Other, Detail::Engine(reason(error)));
    };
    let code = db_error.code().code();
    let kind = match code {
        "23505" => ErrorKind::Constraint(Constraint::Unique),
        "23503" | "23001" => ErrorKind::Constraint(Constraint::ForeignKey),
        "23502" => ErrorKind::Constraint(Constraint::NotNull),
        "23514" => ErrorKind::Constraint(Constraint::Check),
        // An exclusion constraint, or a trigger's `raise`.
        "P0001" => ErrorKind::Constraint(Constraint::Other),
        // Serialization failure and deadlock: the transaction can be tried again.
        "40001" | "40P01" => ErrorKind::Busy,
        "55P03" => return Error::new(ErrorKind::Busy, Detail::Locked(timeouts.lock)),
        "42P01" => ErrorKind::NoSuchTable,
        "42P02" | "42P18" => ErrorKind::Params,
        "42501" | "0A000" => ErrorKind::Other,
        "25P02" => return Error::rolled_back(),
        "25006" => ErrorKind::ReadOnly,
        // Statements that are not allowed in a transaction, such as `vacuum`.
        "25001" | "2D000" => ErrorKind::Refused,
        "57P01" | "57P02" | "57P03" | "57P05" | "25P03" => ErrorKind::Closed,
        // The server could not parse a parameter as its type.
        "22P02" | "22007" | "22008" | "22003"
            if db_error.where_().is_some_and(|mode| mode.contains('$')) =>
        {
            ErrorKind::Params
        }
        // The classes of SQLSTATE, for codes that are not listed above.
        _ if code.starts_with("23") => ErrorKind::Constraint(Constraint::Other),
        _ if code.starts_with("42") => ErrorKind::Syntax,
        _ if code.starts_with("XX") => ErrorKind::Corrupt,
        _ => ErrorKind::Other,
    };
    let position = match db_error.position() {
        Some(ErrorPosition::Original(position)) => Some(*position),
        _ => None,
    };
    let detail = Detail::Server {
        message: db_error.message().to_owned(),
        hint: db_error.hint().map(str::to_owned),
        position,
    };
    Error::new(kind, detail)
}
