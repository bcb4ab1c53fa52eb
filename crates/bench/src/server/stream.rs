//! A connection of a protocol that answers nothing but mistakes: OpenTSDB's telnet, Akumuli's.
//!
//! A server that has applied everything closes the connection after its end; its words are read
//! then only, and any is an error.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use crate::base::address::Address;
use crate::base::error::{Doing, Error, Result};

/// Longer than the server may take for what is on its way.
const PATIENCE: Duration = Duration::from_secs(600);
const SHOWN_BYTES_MAX: u64 = 500;

/// A connection that only writes, until it ends.
#[derive(Debug)]
pub(crate) struct LineStream {
    stream: TcpStream,
}

impl LineStream {
    /// Connects to a server.
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let stream = address.connect()?;
        let set = stream.set_read_timeout(Some(PATIENCE));
        set.doing("set a read timeout")?;
        Ok(LineStream { stream })
    }

    /// Sends some bytes.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).doing("send lines")
    }

    /// Ends the stream and waits until the server has taken all of it.
    pub(crate) fn end(&mut self) -> Result<()> {
        let doing = "end the lines";
        self.stream.shutdown(Shutdown::Write).doing(doing)?;
        let mut said = String::new();
        let mut words = (&self.stream).take(SHOWN_BYTES_MAX);
        words.read_to_string(&mut said).doing(doing)?;
        match said.as_str() {
            "" => Ok(()),
            said => Err(Error::new(format!("the server said: {said}"))),
        }
    }
}
