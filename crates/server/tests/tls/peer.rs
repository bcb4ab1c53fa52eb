//! A client that speaks TLS, and says what it got.

use crate::harness::{PATIENCE, Server};
use latewood_tls::{ClientOptions, Duplex};
use latewood_wire::resp::{encode_command, skip_reply};
use std::io::{self, Read, Write};

/// A connection.
pub(crate) struct Peer {
    stream: Box<dyn Duplex>,
    received: Vec<u8>,
}

impl Peer {
    /// Connects to `address`, which may refuse.
    pub(crate) fn try_to(address: &str, options: &ClientOptions) -> io::Result<Self> {
        let connector = options.connector(options.tls).unwrap();
        let stream = connector.connect(address, Some(PATIENCE))?;
        let received = Vec::new();
        Ok(Self { stream, received })
    }

    /// Connects to the TLS port of `server`.
    pub(crate) fn to(server: &Server, options: &ClientOptions) -> Self {
        Self::try_to(&tls_address(server, "tls"), options).unwrap()
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// What a command is answered; an error of the connection where it is cut.
    pub(crate) fn try_ask(&mut self, command: &str) -> io::Result<String> {
        let mut bytes = Vec::new();
        encode_command(&mut bytes, &command.split(' ').collect::<Vec<_>>());
        self.stream.write_all(&bytes)?;
        self.reply()
    }

    pub(crate) fn ask(&mut self, command: &str) -> String {
        self.try_ask(command).unwrap()
    }

    /// The next reply.
    pub(crate) fn reply(&mut self) -> io::Result<String> {
        loop {
            if let Some((len, _)) = skip_reply(&self.received).unwrap() {
                let reply: Vec<u8> = self.received.drain(..len).collect();
                return Ok(String::from_utf8(reply).unwrap());
            }
            self.read()?;
        }
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

    /// All that comes until the end.
    pub(crate) fn rest(mut self) -> String {
        while self.read().is_ok() {}
        String::from_utf8(self.received).unwrap()
    }
}

/// The address that the server told of the port called `name`.
pub(crate) fn tls_address(server: &Server, name: &str) -> String {
    server.told(name)
}
