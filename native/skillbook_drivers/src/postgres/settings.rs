//! The settings of a connection: where the server is, how TLS is used, and time limits.

use std::time::Duration;

/// The values of `sslmode`, with libpq's meanings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS if the server supports it, otherwise none.
    Prefer,
    /// TLS without checking the certificate; with a file of authorities, the same as
    /// [`SslMode::VerifyCa`].
    Require,
    /// TLS with a certificate that is signed by a known authority.
    VerifyCa,
    /// The same, and the certificate must name the host.
    VerifyFull,
}

impl SslMode {
    /// Parses libpq's name of a mode.
    pub fn from_name(name: &str) -> Option<SslMode> {
        Some(match name {
            "disable" => SslMode::Disable,
            "prefer" => SslMode::Prefer,
            "require" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" => SslMode::VerifyFull,
            _ => return None,
        })
    }
}

/// The address of a database, and the credentials for it.
#[derive(Clone)]
pub struct Address {
    /// A host name, an IP address, or the folder of a Unix socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// The role's password.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// The name of this client in `pg_stat_activity`.
    pub application_name: String,
    /// Whether and how TLS is used.
    pub ssl_mode: SslMode,
    /// A PEM file of certificate authorities; `None` for the system's.
    pub authorities: Option<String>,
}

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// For a statement.
    pub statement: Duration,
    /// For the wait until another writer has finished.
    pub lock: Duration,
    /// For opening a connection.
    pub connect: Duration,
}
