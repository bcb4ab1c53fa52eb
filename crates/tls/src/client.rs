//! What a tool trusts, shows, and connects with.

use crate::files;
use crate::hint::with_hint;
use crate::provider::{install_provider, provider};
use clap::Args;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use std::fs;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Options of a tool that connects to a server.
#[derive(Args, Clone, Debug, Default, PartialEq)]
pub struct ClientOptions {
    /// Connect with TLS, unless the address begins with tcp://; one that begins with tls:// always does
    #[arg(long)]
    pub tls: bool,

    /// Authorities that the server's certificate may be of, in PEM [default: those of the system];
    /// implies --tls
    #[arg(long, value_name = "FILE")]
    pub cacert: Option<PathBuf>,

    /// Certificate to show to the server, in PEM; implies --tls
    #[arg(long, value_name = "FILE", requires = "key")]
    pub cert: Option<PathBuf>,

    /// Its private key, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

/// Makes connections, encrypted ones where the options say so.
#[derive(Clone, Debug, Default)]
pub struct Connector {
    config: Option<Arc<ClientConfig>>,
}

/// What a connection is read from and written to.
pub trait Duplex: Read + Write + Send + std::fmt::Debug {}

impl<T: Read + Write + Send + std::fmt::Debug> Duplex for T {}

impl ClientOptions {
    /// `address` without its scheme, and whether the connection is encrypted.
    ///
    /// # Errors
    /// That the scheme is unknown.
    pub fn split<'a>(&self, address: &'a str) -> Result<(&'a str, bool), String> {
        match address.split_once("://") {
            Some(("tls" | "https", rest)) => Ok((rest, true)),
            Some(("tcp" | "http", rest)) => Ok((rest, false)),
            Some(_) => Err(format!(
                "{address}: must begin with tls://, tcp:// or a host name"
            )),
            // Who names a file does not expect that nothing is encrypted.
            None => {
                let names_files = self.cacert.is_some() || self.cert.is_some();
                Ok((address, self.tls || names_files))
            }
        }
    }

    /// What connects so.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn connector(&self, is_tls: bool) -> Result<Connector, String> {
        let config = is_tls.then(|| self.config().map(Arc::new));
        Ok(Connector {
            config: config.transpose()?,
        })
    }

    /// For `rustls`.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn config(&self) -> Result<ClientConfig, String> {
        install_provider();
        let builder = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?
            .with_root_certificates(self.authorities()?);
        match (&self.cert, &self.key) {
            (Some(cert), Some(key)) => {
                let chain = files::certificates(cert)?;
                let config = builder.with_client_auth_cert(chain, files::private_key(key)?);
                config.map_err(|error| format!("{}: {error}", cert.display()))
            }
            _ => Ok(builder.with_no_client_auth()),
        }
    }

    fn authorities(&self) -> Result<RootCertStore, String> {
        if let Some(path) = &self.cacert {
            return files::authorities(path);
        }
        let mut store = RootCertStore::empty();
        // Systems keep some that are too old to be read; what is left is enough.
        store.add_parsable_certificates(self.trusted()?);
        Ok(store)
    }

    /// The certificates of the authorities to trust: those of the file, or the system's.
    ///
    /// # Errors
    /// A sentence that names the file, or that there are none.
    fn trusted(&self) -> Result<Vec<CertificateDer<'static>>, String> {
        if let Some(path) = &self.cacert {
            return files::certificates(path);
        }
        let found = rustls_native_certs::load_native_certs().certs;
        if found.is_empty() {
            return Err("the system has no certificates of authorities: give --cacert".to_owned());
        }
        Ok(found)
    }

    /// The files as they are, in PEM: authorities, certificate, key.
    ///
    /// # Errors
    /// A sentence that names the file.
    pub fn pems(&self) -> Result<[Option<Vec<u8>>; 3], String> {
        let read = |path: &Option<PathBuf>| match path {
            Some(path) => fs::read(path)
                .map(Some)
                .map_err(|error| format!("cannot read {}: {error}", path.display())),
            None => Ok(None),
        };
        Ok([read(&self.cacert)?, read(&self.cert)?, read(&self.key)?])
    }
}

/// For a client that makes no encrypted connections, but must be given something.
pub fn nothing_trusted() -> ClientConfig {
    install_provider();
    let builder = ClientConfig::builder();
    let builder = builder.with_root_certificates(RootCertStore::empty());
    builder.with_no_client_auth()
}

impl Connector {
    /// Connects to `address`, a host with a port, whose name the server's certificate must have.
    /// No read takes longer than `read_max`.
    ///
    /// # Errors
    /// Those of connecting and of the handshake.
    pub fn connect(
        &self,
        address: &str,
        read_max: Option<Duration>,
    ) -> io::Result<Box<dyn Duplex>> {
        let mut stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(read_max)?;
        let agreed = self.agree(&mut stream, address);
        let hinted = |error: io::Error| io::Error::new(error.kind(), with_hint(&error));
        Ok(match agreed.map_err(hinted)? {
            Some(session) => Box::new(StreamOwned::new(session, stream)),
            None => Box::new(stream),
        })
    }

    /// Agrees on keys with the server at `address`, over a stream that blocks; `None` where the
    /// connection is plain.
    ///
    /// # Errors
    /// Those of the handshake, and that the host is not a name that a certificate can have.
    pub fn agree(
        &self,
        stream: &mut TcpStream,
        address: &str,
    ) -> io::Result<Option<ClientConnection>> {
        let Some(config) = &self.config else {
            return Ok(None);
        };
        let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
        let host = host.trim_start_matches('[').trim_end_matches(']');
        let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
        let session = ClientConnection::new(Arc::clone(config), name);
        let mut session = session.map_err(io::Error::other)?;
        while session.is_handshaking() {
            session.complete_io(stream)?;
        }
        Ok(Some(session))
    }
}
