//! A connection to one of the ports, plain or with TLS, that may be cut.

use crate::harness::{PATIENCE, Server};
use crate::tls::certificates::Authority;
use latewood_tls::{Connector, Duplex};
use latewood_wire::resp::skip_reply;
use std::io::{self, Read, Write};

/// A protocol that writers speak.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Protocol {
    Resp,
    Influx,
    OpenTsdb,
    RemoteWrite,
}

impl Protocol {
    /// The names of its ports in the server's log: plain, with TLS.
    fn ports(self) -> [&'static str; 2] {
        match self {
            Self::Resp => ["listen", "tls"],
            Self::Influx | Self::RemoteWrite => ["http", "https"],
            Self::OpenTsdb => ["opentsdb", "opentsdb-tls"],
        }
    }
}

/// How the ports of one life of a server are reached.
pub(crate) struct Ports {
    connectors: [Connector; 2],
    addresses: Vec<(&'static str, String)>,
}

impl Ports {
    pub(crate) fn of(server: &Server, authority: &Authority) -> Self {
        let all = [Protocol::Resp, Protocol::Influx, Protocol::OpenTsdb];
        let names = all.into_iter().flat_map(Protocol::ports);
        let options = authority.client(None);
        Self {
            connectors: [false, true].map(|is_tls| options.connector(is_tls).unwrap()),
            addresses: names.map(|name| (name, server.told(name))).collect(),
        }
    }

    pub(crate) fn connect(&self, protocol: Protocol, is_tls: bool) -> io::Result<Connection> {
        let name = protocol.ports()[usize::from(is_tls)];
        let (_, address) = self.addresses.iter().find(|port| port.0 == name).unwrap();
        let stream = self.connectors[usize::from(is_tls)].connect(address, Some(PATIENCE))?;
        let received = Vec::new();
        Ok(Connection { stream, received })
    }
}

/// One connection.
pub(crate) struct Connection {
    stream: Box<dyn Duplex>,
    received: Vec<u8>,
}

impl Connection {
    pub(crate) fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes)?;
        self.stream.flush()
    }

    /// The next reply of the Redis protocol.
    pub(crate) fn reply(&mut self) -> io::Result<String> {
        loop {
            if let Some((len, _)) = skip_reply(&self.received).unwrap() {
                return Ok(self.take(len));
            }
            self.read()?;
        }
    }

    /// The next line, with its ending.
    pub(crate) fn line(&mut self) -> io::Result<String> {
        self.until("\n")
    }

    /// The status and the body of an answer of HTTP.
    pub(crate) fn answer(&mut self) -> io::Result<(u16, String)> {
        let head = self.until("\r\n\r\n")?.to_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let length = head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.lines().next());
        let length = length.map_or(0, |length| length.parse().unwrap());
        while self.received.len() < length {
            self.read()?;
        }
        Ok((status, self.take(length)))
    }

    fn until(&mut self, end: &str) -> io::Result<String> {
        loop {
            let mut windows = self.received.windows(end.len());
            if let Some(at) = windows.position(|window| window == end.as_bytes()) {
                return Ok(self.take(at + end.len()));
            }
            self.read()?;
        }
    }

    fn take(&mut self, len: usize) -> String {
        String::from_utf8(self.received.drain(..len).collect()).unwrap()
    }

    fn read(&mut self) -> io::Result<()> {
        let mut buffer = [0; 16 * 1024];
        match self.stream.read(&mut buffer)? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            read => {
                self.received.extend_from_slice(&buffer[..read]);
                Ok(())
            }
        }
    }
}
