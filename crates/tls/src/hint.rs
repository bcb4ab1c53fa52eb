//! What the errors of handshakes mean to who reads them.
//!
//! Decided by the types of the errors, which libraries wrap in errors of their own.

use rustls::{AlertDescription, CertificateError, Error, InvalidMessage, OtherError};
use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

/// What a failed handshake means to a client, where that is known.
fn hint(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    Some(match cause(error)? {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            "the server does not speak TLS there: leave out --tls"
        }
        Error::AlertReceived(AlertDescription::CertificateRequired) => {
            "the server asks for a certificate: give --cert and --key"
        }
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => {
            "--cacert names a file with the authority of the server's certificate"
        }
        Error::InvalidCertificate(CertificateError::Other(OtherError(error))) => {
            match error.downcast_ref()? {
                webpki::Error::CaUsedAsEndEntity => {
                    "the certificate must not be that of an authority (basicConstraints CA:FALSE)"
                }
                webpki::Error::UnsupportedCertVersion => "the certificate must be of version 3",
                _ => return None,
            }
        }
        _ => return None,
    })
}

/// What a failed handshake says of the client to the server, where that is known.
pub fn client_hint(error: &(dyn StdError + 'static)) -> Option<&'static str> {
    match cause(error)? {
        Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            Some("the client does not use TLS")
        }
        _ => None,
    }
}

/// The text of a failed handshake, and what it means where that is known.
pub fn with_hint(error: &(dyn StdError + 'static)) -> String {
    match hint(error) {
        Some(hint) => format!("{error}; {hint}"),
        None => error.to_string(),
    }
}

/// The error of `rustls` inside of others.
fn cause<'a>(error: &'a (dyn StdError + 'static)) -> Option<&'a Error> {
    if let Some(found) = error.downcast_ref() {
        return Some(found);
    }
    // The source of these is that of the error in them.
    if let Some(shared) = error.downcast_ref::<Arc<dyn StdError + Send + Sync>>() {
        return cause(&**shared);
    }
    match error.downcast_ref().and_then(io::Error::get_ref) {
        Some(inner) => cause(inner),
        None => cause(error.source()?),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `error` as the layers above hand it on.
    fn wrapped(error: Error) -> io::Error {
        let inner: Arc<dyn StdError + Send + Sync> =
            Arc::new(io::Error::new(io::ErrorKind::InvalidData, error));
        io::Error::other(inner)
    }

    #[test]
    fn each_known_error_has_its_hint() {
        let other = |error: webpki::Error| CertificateError::Other(OtherError(Arc::new(error)));
        for (error, told) in [
            (InvalidMessage::InvalidContentType.into(), "leave out --tls"),
            (CertificateError::UnknownIssuer.into(), "--cacert names"),
            (other(webpki::Error::CaUsedAsEndEntity).into(), "CA:FALSE"),
            (
                other(webpki::Error::UnsupportedCertVersion).into(),
                "version 3",
            ),
            (
                Error::AlertReceived(AlertDescription::CertificateRequired),
                "give --cert and --key",
            ),
        ] {
            let text = with_hint(&wrapped(error));
            assert!(text.contains(told), "{text}");
        }
    }

    #[test]
    fn other_errors_are_as_they_are() {
        let refused = io::Error::from(io::ErrorKind::ConnectionRefused);
        // A text that looks like a known error is none.
        let text = io::Error::other("received corrupt message of type InvalidContentType");
        for error in [refused, text, wrapped(CertificateError::Expired.into())] {
            assert_eq!(with_hint(&error), error.to_string());
            assert_eq!(client_hint(&error), None);
        }
    }

    #[test]
    fn a_client_without_tls_is_told_apart() {
        let error = wrapped(InvalidMessage::InvalidContentType.into());
        assert_eq!(client_hint(&error), Some("the client does not use TLS"));
    }
}
