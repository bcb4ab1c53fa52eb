//! Files of certificates and keys, in PEM.

use rustls::RootCertStore;
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use x509_parser::parse_x509_certificate;

/// The certificates of a file, of which there is at least one.
///
/// # Errors
/// A sentence that names the file.
pub(crate) fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    let read = CertificateDer::pem_file_iter(path).and_then(Iterator::collect::<Result<Vec<_>, _>>);
    let certificates = read.map_err(|error| unreadable(path, &error))?;
    if certificates.is_empty() {
        return Err(unreadable(path, &pem::Error::NoItemsFound));
    }
    Ok(certificates)
}

/// The first private key of a file.
///
/// # Errors
/// A sentence that names the file.
pub(crate) fn private_key(path: &Path) -> Result<PrivateKeyDer<'static>, String> {
    PrivateKeyDer::from_pem_file(path).map_err(|error| match error {
        pem::Error::NoItemsFound => format!(
            "{}: no private key; a key with a passphrase is not supported",
            path.display()
        ),
        error => unreadable(path, &error),
    })
}

/// The certificates of a file as authorities.
///
/// # Errors
/// A sentence that names the file.
pub(crate) fn authorities(path: &Path) -> Result<RootCertStore, String> {
    let mut store = RootCertStore::empty();
    for certificate in certificates(path)? {
        let added = store.add(certificate);
        added.map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(store)
}

fn unreadable(path: &Path, error: &pem::Error) -> String {
    let path = path.display();
    match error {
        pem::Error::Io(error) => format!("cannot read {path}: {error}"),
        pem::Error::NoItemsFound => format!("{path}: no certificate in PEM"),
        error => format!("{path}: not valid PEM: {error}"),
    }
}

/// When the first of a file's certificates expires, in seconds since 1970.
///
/// # Errors
/// A sentence that names the file, if one is not valid now.
pub(crate) fn expiry_s(path: &Path, chain: &[CertificateDer<'_>]) -> Result<i64, String> {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH);
    let now_s = elapsed.map_or(0, |elapsed| elapsed.as_secs().cast_signed());
    let mut first_s = i64::MAX;
    for certificate in chain {
        let parsed = parse_x509_certificate(certificate);
        let (_, parsed) = parsed.map_err(|error| format!("{}: {error}", path.display()))?;
        let validity = parsed.validity();
        let problem = if now_s > validity.not_after.timestamp() {
            format!("expired on {}", validity.not_after)
        } else if now_s < validity.not_before.timestamp() {
            format!("is not valid before {}", validity.not_before)
        } else {
            first_s = first_s.min(validity.not_after.timestamp());
            continue;
        };
        let (path, subject) = (path.display(), parsed.subject());
        return Err(format!("{path}: the certificate of {subject} {problem}"));
    }
    Ok(first_s)
}

/// The common name (CN) of the subject of a peer's own certificate, the first of its chain.
pub fn common_name(chain: Option<&[CertificateDer<'_>]>) -> Option<String> {
    let (_, parsed) = parse_x509_certificate(chain?.first()?).ok()?;
    let name = parsed.subject().iter_common_name().next()?;
    name.as_str().ok().map(str::to_owned)
}
