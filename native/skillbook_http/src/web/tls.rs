//! The certificate and key of a server, from files that are read again when they change.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use arc_swap::ArcSwap;
use rustls::crypto::{ring, CryptoProvider};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls::ServerConfig;

/// How often the files' times are looked at.
pub(super) const INTERVAL: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub(super) struct Files {
    certfile: PathBuf,
    keyfile: PathBuf,
    provider: Arc<CryptoProvider>,
    key: Arc<Current>,
    config: Arc<ServerConfig>,
}

#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

/// The times and sizes of both files.
pub(super) type Stamp = [Option<(SystemTime, u64)>; 2];

impl Files {
    pub(super) fn open(certfile: PathBuf, keyfile: PathBuf, http2: bool) -> Result<Files, String> {
        let provider = Arc::new(ring::default_provider());
        let key = read(&certfile, &keyfile, &provider)?;
        let current = Arc::new(Current(ArcSwap::from_pointee(key)));
        // TLS 1.2 and 1.3.
        let mut config = ServerConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_no_client_auth()
            .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        config.alpn_protocols = match http2 {
            true => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            false => vec![b"http/1.1".to_vec()],
        };
        Ok(Files { certfile, keyfile, provider, key: current, config: Arc::new(config) })
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        Arc::clone(&self.config)
    }

    pub(super) fn stamp(&self) -> Stamp {
        [&self.certfile, &self.keyfile].map(|path| {
            let found = fs::metadata(path).ok()?;
            Some((found.modified().ok()?, found.len()))
        })
    }

    /// Reads the files again. With an error the old certificate stays.
    pub(super) fn reload(&self) -> Result<(), String> {
        let key = read(&self.certfile, &self.keyfile, &self.provider)?;
        self.key.0.store(Arc::new(key));
        Ok(())
    }
}

fn read(
    certfile: &Path,
    keyfile: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, String> {
    let certificates = CertificateDer::pem_file_iter(certfile)
        .and_then(|found| found.collect::<Result<Vec<_>, _>>())
        .map_err(|error| unreadable("certfile", certfile, &error))?;
    if certificates.is_empty() {
        return Err(format!("the certfile {} has no certificate", certfile.display()));
    }
    let key = PrivateKeyDer::from_pem_file(keyfile)
        .map_err(|error| unreadable("keyfile", keyfile, &error))?;
    CertifiedKey::from_der(certificates, key, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => format!(
            "the key of {} is not that of the certificate in {}",
            keyfile.display(),
            certfile.display()
        ),
        error => format!("the certificate cannot be used: {error}"),
    })
}

fn unreadable(name: &str, path: &Path, error: &rustls::pki_types::pem::Error) -> String {
    use rustls::pki_types::pem::Error;
    let reason = match error {
        Error::Io(error) => skillbook_net::plain(error),
        Error::NoItemsFound => "it has no such part in the PEM format".to_owned(),
        _ => "it is not valid PEM".to_owned(),
    };
    format!("the {name} {} cannot be read: {reason}", path.display())
}
