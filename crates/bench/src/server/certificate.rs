//! A certificate of this machine's loopback, for servers that this program starts with TLS.

use std::fs;
use std::path::Path;
use std::process::Command;

use latewood_tls::{ClientOptions, Connector};

use crate::base::error::{Doing, Error, Result};

/// Makes a certificate in the folder `dir` and names it to a server by options that are the same
/// for Latewood and Redis. Returns what connects to that server.
pub(super) fn encrypt(dir: &Path, server: &mut Command) -> Result<Connector> {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).doing("make a certificate")?;
    let (certificate, key) = (dir.join("server.crt"), dir.join("server.key"));
    fs::write(&certificate, made.cert.pem()).doing("write a certificate")?;
    fs::write(&key, made.signing_key.serialize_pem()).doing("write a key")?;
    server.arg("--tls-cert-file").arg(&certificate);
    server.arg("--tls-key-file").arg(key);
    let options = ClientOptions {
        cacert: Some(certificate),
        ..ClientOptions::default()
    };
    options.connector(true).map_err(Error::new)
}
