//! TLS by rustls, with libpq's meanings of `sslmode`.
//!
//! rustls always verifies certificates. libpq has modes that encrypt without verifying, or verify
//! the authority but not the host, so this module brings its own verifier. It is a thin one:
//! signatures and chains are checked by rustls.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::WebPkiServerVerifier;
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, SignatureScheme};
use tokio_postgres_rustls::MakeRustlsConnect;

use super::settings::SslMode;
use crate::error::Detail;
use crate::{Error, ErrorKind};

/// The TLS connector of a mode. `authorities` is a PEM file; without it, the system's count.
pub(super) fn connector(
    mode: SslMode,
    authorities: Option<&str>,
) -> Result<MakeRustlsConnect, Error> {
    // Named explicitly: a process-wide default could be missing, or set by another library.
    let provider = Arc::new(ring::default_provider());
    // As in libpq: naming authorities means that they are to be checked.
    let mode =
        if mode == SslMode::Require && authorities.is_some() { SslMode::VerifyCa } else { mode };
    let verify = match mode {
        SslMode::Disable | SslMode::Prefer | SslMode::Require => Verify::Nothing,
        SslMode::VerifyCa => Verify::Chain(chain(authorities, &provider)?),
        SslMode::VerifyFull => Verify::All(chain(authorities, &provider)?),
    };
    let verifier = Verifier { verify, provider: Arc::clone(&provider) };
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| cannot(error.to_string()))?
        // rustls calls every custom verifier dangerous. Ours is: `require` means encryption without
        // authentication, as in libpq.
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    Ok(MakeRustlsConnect::new(config))
}

fn chain(
    authorities: Option<&str>,
    provider: &Arc<CryptoProvider>,
) -> Result<Arc<WebPkiServerVerifier>, Error> {
    let roots = skillbook_net::authorities(authorities).map_err(|reason| match authorities {
        Some(path) => {
            Error::new(ErrorKind::CannotOpen, Detail::TlsFile { path: path.to_owned(), reason })
        }
        None => cannot(reason),
    })?;
    WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(provider))
        .build()
        .map_err(|error| cannot(format!("no certificate authorities: {error}")))
}

fn cannot(reason: String) -> Error {
    Error::new(ErrorKind::CannotOpen, Detail::Engine(reason))
}

#[derive(Debug)]
enum Verify {
    Nothing,
    /// An authority has signed it; the host does not matter.
    Chain(Arc<WebPkiServerVerifier>),
    All(Arc<WebPkiServerVerifier>),
}

#[derive(Debug)]
struct Verifier {
    verify: Verify,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let (verifier, name_counts) = match &self.verify {
            // `prefer` and `require` protect against listening, not against an active attacker.
            Verify::Nothing => return Ok(ServerCertVerified::assertion()),
            Verify::Chain(verifier) => (verifier, false),
            Verify::All(verifier) => (verifier, true),
        };
        // rustls checks the host name last, so with this error the chain has already been verified.
        match verifier.verify_server_cert(certificate, intermediates, name, ocsp, now) {
            Err(rustls::Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) if !name_counts => Ok(ServerCertVerified::assertion()),
            result => result,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signed, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signed, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
