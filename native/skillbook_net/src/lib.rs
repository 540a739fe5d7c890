//! The same for every client with TLS, of databases, HTTP and mail: certificate authorities, and
//! the words for errors.
#![deny(missing_docs)]
#![forbid(unsafe_code)]

pub mod certificate;

use std::io;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::CertificateDer;
use rustls::RootCertStore;

/// The certificate authorities of a PEM file, or of the system, which may have none. The error is a
/// reason as text.
pub fn authorities(file: Option<&str>) -> Result<RootCertStore, String> {
    let mut roots = RootCertStore::empty();
    match file {
        Some(path) => {
            for certificate in
                CertificateDer::pem_file_iter(path).map_err(|error| error.to_string())?
            {
                let certificate = certificate.map_err(|error| error.to_string())?;
                roots.add(certificate).map_err(|error| error.to_string())?;
            }
            if roots.is_empty() {
                return Err("it contains none".to_owned());
            }
        }
        // An unreadable certificate in the system's store does not invalidate the others.
        None => {
            roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        }
    }
    Ok(roots)
}

/// The reason why a client without authorities connects to no server with TLS: every handshake
/// would fail, with a confusing error.
pub const NO_AUTHORITIES: &str =
    "the system has no certificate authorities to check the server's certificate with";

/// The operating system's text without the error number.
pub fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters.next().map(|first| first.to_lowercase().chain(letters).collect()).unwrap_or_default()
}
