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

#[cfg(test)]
mod tests {
    use std::net::TcpListener;
    use std::thread;

    use super::*;

    /// What the end of `lines` brings where a server answers them with `words`.
    fn send(lines: &'static [u8], words: &'static [u8]) -> Result<()> {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::loopback(listener.local_addr().unwrap().port());
        let server = thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut read = Vec::new();
            stream.read_to_end(&mut read).unwrap();
            assert_eq!(read, lines);
            stream.write_all(words).unwrap();
        });
        let mut stream = LineStream::connect(&address)?;
        stream.write(lines)?;
        let outcome = stream.end();
        server.join().unwrap();
        outcome
    }

    #[test]
    fn silence_is_consent_and_words_are_not() {
        assert!(send(b"put a 1 1 b=c\n", b"").is_ok());
        let error = send(b"put\n", b"put: illegal argument\n").unwrap_err();
        assert!(error.to_string().contains("illegal argument"), "{error}");
    }
}
