//! Where a server listens.

use std::net::{TcpListener, TcpStream};

use crate::base::error::{Doing, Result};

/// Host and port of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Address(String);

impl Address {
    /// Reads `host:port`; the port of a host alone is 6379.
    pub(crate) fn new(text: &str) -> Self {
        match text.contains(':') {
            true => Address(text.to_owned()),
            false => Address(format!("{text}:6379")),
        }
    }

    /// Address of `port` on the loopback interface.
    pub(crate) fn loopback(port: u16) -> Self {
        Address(format!("127.0.0.1:{port}"))
    }

    /// Opens a blocking connection.
    pub(crate) fn connect(&self) -> Result<TcpStream> {
        let doing = format!("connect to {self}");
        let stream = TcpStream::connect(&self.0).doing(&doing)?;
        stream.set_nodelay(true).doing(&doing)?;
        Ok(stream)
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// A port nobody listens on at this moment.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).doing("find a free port")?;
    Ok(listener.local_addr().doing("find a free port")?.port())
}
