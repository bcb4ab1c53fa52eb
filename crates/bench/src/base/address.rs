//! Where a server listens.

use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use latewood_tls::rustls::ClientConnection;
use latewood_tls::{Connector, Duplex};

use crate::base::error::{Doing, Result};

/// Host and port of a server, and how to connect to it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    text: String,
    connector: Connector,
}

impl Address {
    /// Reads `host:port`; the port of a host alone is 6379.
    pub(crate) fn new(text: &str) -> Self {
        Address {
            text: if text.contains(':') {
                text.to_owned()
            } else {
                format!("{text}:6379")
            },
            connector: Connector::default(),
        }
    }

    /// The same, connected to by `connector`.
    pub(crate) fn by(self, connector: Connector) -> Self {
        Address { connector, ..self }
    }

    pub(crate) fn loopback(port: u16) -> Self {
        Address::new(&format!("127.0.0.1:{port}"))
    }

    /// Opens a blocking connection whose reads take at most `read_max`.
    pub(crate) fn open(&self, read_max: Duration) -> Result<Box<dyn Duplex>> {
        let opened = self.connector.connect(&self.text, Some(read_max));
        opened.doing(format!("connect to {self}"))
    }

    /// Opens a blocking connection, and agrees on keys where it is encrypted.
    pub(crate) fn agree(&self) -> Result<(TcpStream, Option<ClientConnection>)> {
        let mut stream = self.connect()?;
        let session = self.connector.agree(&mut stream, &self.text);
        Ok((stream, session.doing(format!("connect to {self}"))?))
    }

    /// Opens a blocking connection that is not encrypted.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        let doing = format!("connect to {self}");
        let stream = TcpStream::connect(&self.text).doing(&doing)?;
        stream.set_nodelay(true).doing(&doing)?;
        Ok(stream)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// A port nobody listens on at this moment.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).doing("find a free port")?;
    Ok(listener.local_addr().doing("find a free port")?.port())
}
