//! Where a server is, how TLS is used, and how long things may take.

use std::time::Duration;

/// What `sslmode` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SslMode {
    /// No TLS.
    Disable,
    /// TLS where it works, else none.
    Prefer,
    /// TLS, with whomever. With a file of authorities, as [`SslMode::VerifyCa`].
    Require,
    /// TLS with a server whose certificate an authority signed.
    VerifyCa,
    /// The same, and the certificate is for the host.
    VerifyFull,
}

impl SslMode {
    /// By the names of libpq.
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

/// Where a server is, and who asks it.
#[derive(Clone)]
pub struct Address {
    /// A name, an address, or the folder of a socket.
    pub host: String,
    /// The port.
    pub port: u16,
    /// The role.
    pub user: String,
    /// Its password.
    pub password: Option<String>,
    /// The database.
    pub database: String,
    /// What the server's list of connections says of them.
    pub application_name: String,
    /// Whether and how TLS is used.
    pub ssl_mode: SslMode,
    /// A file of certificates in PEM; `None` for those of the system.
    pub authorities: Option<String>,
}

/// How long things may take.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// A statement.
    pub statement: Duration,
    /// The wait for another one that writes.
    pub lock: Duration,
    /// Opening a connection.
    pub connect: Duration,
}
