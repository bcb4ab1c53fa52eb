//! A certificate of this machine's loopback, for servers that this program starts with TLS.

use std::fs;
use std::path::{Path, PathBuf};

use latewood_tls::{ClientOptions, Connector};

use crate::base::error::{Doing, Error, Result};

/// Files of a certificate and its key, in PEM.
pub(super) struct Certificate {
    certificate: PathBuf,
    key: PathBuf,
}

impl Certificate {
    /// Makes one in the folder `dir`.
    pub(super) fn make(dir: &Path) -> Result<Self> {
        let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
        let made = rcgen::generate_simple_self_signed(names).doing("make a certificate")?;
        let (certificate, key) = (dir.join("server.crt"), dir.join("server.key"));
        fs::write(&certificate, made.cert.pem()).doing("write a certificate")?;
        fs::write(&key, made.signing_key.serialize_pem()).doing("write a key")?;
        Ok(Certificate { certificate, key })
    }

    /// Options of the server: Latewood's and Redis' are the same.
    pub(super) fn flags(&self) -> [&std::ffi::OsStr; 4] {
        [
            "--tls-cert-file".as_ref(),
            self.certificate.as_os_str(),
            "--tls-key-file".as_ref(),
            self.key.as_os_str(),
        ]
    }

    /// What connects to the server.
    pub(super) fn connector(&self) -> Result<Connector> {
        let options = ClientOptions {
            tls: true,
            cacert: Some(self.certificate.clone()),
            ..ClientOptions::default()
        };
        options.connector(true).map_err(Error::new)
    }
}
