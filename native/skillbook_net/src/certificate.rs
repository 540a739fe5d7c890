//! The words for errors of TLS.

use rustls::{CertificateError, Error};

/// The text of an error of TLS, and whether the server's certificate was refused.
pub fn describe(error: &Error) -> (String, bool) {
    match error {
        Error::InvalidCertificate(reason) => match text(reason) {
            Some(text) => (format!("TLS: {text}"), true),
            None => (format!("TLS: {error}"), true),
        },
        _ => (format!("TLS: {error}"), false),
    }
}

fn text(reason: &CertificateError) -> Option<&'static str> {
    Some(match reason {
        // A bad signature means that a trusted authority has the same name as the one that signed.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => {
            "the authority of its certificate is not trusted"
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired"
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            "its certificate is for another host"
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its certificate is not one for servers"
        }
        CertificateError::UnsupportedSignatureAlgorithmContext { .. } => {
            "its certificate uses an unknown signature algorithm"
        }
        CertificateError::UnhandledCriticalExtension => EXTENSION,
        CertificateError::BadEncoding => "its certificate cannot be read",
        // rustls has no names for these errors of its verifier.
        CertificateError::Other(other) => {
            let name = format!("{:?}", other.0);
            *OTHERS.iter().find_map(|(start, text)| name.starts_with(start).then_some(text))?
        }
        _ => return None,
    })
}

const EXTENSION: &str = "its certificate has a critical extension that is not known";
const LENGTH: &str = "its chain of certificates is longer than allowed";

const OTHERS: [(&str, &str); 7] = [
    ("CaUsedAsEndEntity", "its certificate is that of an authority"),
    ("EndEntityUsedAsCa", "its certificate is signed by a server, which is no authority"),
    ("NameConstraintViolation", "the authority of its certificate may not sign for this host"),
    ("UnsupportedCriticalExtension", EXTENSION),
    ("MaximumPathDepthExceeded", LENGTH),
    ("PathLenConstraintViolated", LENGTH),
    ("Maximum", "its chain of certificates takes too many steps to check"),
];
