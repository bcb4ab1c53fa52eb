//! Where a server listens: TCP or a unix socket.

use std::convert::Infallible;
use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::str::FromStr;

use crate::base::error::{Doing, Result};

/// An address a RESP server may be reached at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Address {
    Tcp(String),
    Unix(PathBuf),
}

/// A connected blocking stream.
#[derive(Debug)]
pub(crate) enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Address {
    /// Address of `port` on the loopback interface.
    pub(crate) fn loopback(port: u16) -> Self {
        Address::Tcp(format!("127.0.0.1:{port}"))
    }

    /// Opens a blocking connection.
    pub(crate) fn connect(&self) -> Result<Stream> {
        let doing = format!("connect to {self}");
        match self {
            Address::Tcp(host) => {
                let stream = TcpStream::connect(host).doing(&doing)?;
                stream.set_nodelay(true).doing(&doing)?;
                Ok(Stream::Tcp(stream))
            }
            Address::Unix(path) => Ok(Stream::Unix(UnixStream::connect(path).doing(&doing)?)),
        }
    }
}

/// A port nobody listens on at this moment.
pub(crate) fn free_port() -> Result<u16> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).doing("find a free port")?;
    Ok(listener.local_addr().doing("find a free port")?.port())
}

impl FromStr for Address {
    type Err = Infallible;

    fn from_str(text: &str) -> std::result::Result<Self, Infallible> {
        Ok(match text.strip_prefix("unix:") {
            Some(path) => Address::Unix(PathBuf::from(path)),
            None if text.starts_with('/') => Address::Unix(PathBuf::from(text)),
            None if text.contains(':') => Address::Tcp(text.to_owned()),
            None => Address::Tcp(format!("{text}:6379")),
        })
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Tcp(host) => f.write_str(host),
            Address::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_every_form() {
        let parse = |text: &str| text.parse::<Address>().unwrap();
        assert_eq!(parse("db:7000"), Address::Tcp("db:7000".into()));
        assert_eq!(parse("db"), Address::Tcp("db:6379".into()));
        assert_eq!(parse("/run/a.sock"), Address::Unix("/run/a.sock".into()));
        assert_eq!(parse("unix:a.sock"), Address::Unix("a.sock".into()));
        assert_eq!(parse("unix:a.sock").to_string(), "unix:a.sock");
    }
}
