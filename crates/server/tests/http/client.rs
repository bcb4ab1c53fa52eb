//! A client of HTTP that sends what it is told to, byte for byte.

use crate::harness::PATIENCE;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};

/// One connection.
pub(crate) struct Http(BufReader<TcpStream>);

/// An answer.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Http {
    pub(crate) fn to(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(BufReader::new(stream))
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.0.get_mut().write_all(bytes).unwrap();
    }

    /// Says that nothing more is sent.
    pub(crate) fn end(&mut self) {
        self.0.get_ref().shutdown(Shutdown::Write).unwrap();
    }

    pub(crate) fn get(&mut self, path: &str) -> Answer {
        self.send(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes());
        self.answer()
    }

    pub(crate) fn post(&mut self, path: &str, body: &[u8]) -> Answer {
        self.post_with(path, "", body)
    }

    /// Writes `rows` samples of `m_v`, whose label takes a kilobyte, so that an
    /// export as CSV is longer than what waits on its way.
    pub(crate) fn write_wide_rows(&mut self, rows: usize) {
        let padding = "x".repeat(1000);
        let lines: String = (0..rows)
            .map(|at| format!("m,pad={padding} v=1 {at}\n"))
            .collect();
        let written = self.post("/write?precision=ms", lines.as_bytes());
        assert_eq!(written.status, 204);
    }

    /// With further lines of the head, each with its line break.
    pub(crate) fn post_with(&mut self, path: &str, head: &str, body: &[u8]) -> Answer {
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n{head}\r\n");
        self.send(&[head.as_bytes(), body].concat());
        self.answer()
    }

    /// An answer without its body, of which nothing is taken beyond what came
    /// along.
    pub(crate) fn head(&mut self) -> Answer {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            let read = self.0.read_line(&mut head).unwrap();
            assert!(read > 0, "closed after {head:?}");
        }
        head.make_ascii_lowercase();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let body = Vec::new();
        Answer { status, head, body }
    }

    pub(crate) fn answer(&mut self) -> Answer {
        let Answer { status, head, .. } = self.head();
        let body = match (field(&head, "content-length"), status) {
            (_, 204) => Vec::new(),
            (Some(length), _) => {
                let mut body = vec![0; length.parse().unwrap()];
                self.0.read_exact(&mut body).unwrap();
                body
            }
            (None, _) => self.chunks(),
        };
        Answer { status, head, body }
    }

    fn chunks(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let mut line = String::new();
            self.0.read_line(&mut line).unwrap();
            let length = usize::from_str_radix(line.trim(), 16).unwrap();
            let start = body.len();
            body.resize(start + length + 2, 0);
            self.0.read_exact(&mut body[start..]).unwrap();
            body.truncate(start + length);
            if length == 0 {
                return body;
            }
        }
    }

    /// Reads on to the end of the connection.
    pub(crate) fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        self.0.read_to_end(&mut rest).unwrap();
        rest
    }

    /// Whether the server closes the connection without another byte.
    pub(crate) fn is_closed(&mut self) -> bool {
        matches!(self.0.read(&mut [0]), Ok(0) | Err(_))
    }
}

impl Answer {
    pub(crate) fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    pub(crate) fn field(&self, name: &str) -> Option<&str> {
        field(&self.head, name)
    }
}

fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines()
        .find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
}
