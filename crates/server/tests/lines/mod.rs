//! Protocols of lines on plain sockets against a running server.

mod akumuli;
mod influx;
mod opentsdb;

use crate::harness::{PATIENCE, Server, eventually};
use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::process::Stdio;

/// A connection that speaks in lines.
struct Lines {
    reader: BufReader<TcpStream>,
}

impl Lines {
    fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            reader: BufReader::new(stream),
        }
    }

    fn send(&mut self, text: &str) {
        self.reader.get_mut().write_all(text.as_bytes()).unwrap();
    }

    /// Waits until the server has read what was sent: nothing is left in its socket.
    fn wait_until_read(&self) {
        let stream = self.reader.get_ref();
        let [here, there] = [stream.local_addr(), stream.peer_addr()].map(|address| {
            let port = address.unwrap().port();
            format!("0100007F:{port:04X}")
        });
        let empty = format!(" {there} {here} 01 00000000:00000000 ");
        eventually("the server's read", || {
            let sockets = std::fs::read_to_string("/proc/net/tcp").unwrap();
            sockets.contains(&empty)
        });
    }

    /// The next line of the answer, without its ending.
    fn answer(&mut self) -> String {
        let mut line = String::new();
        self.reader.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    /// Ends the sending side; everything that was not read yet.
    fn finish(mut self) -> String {
        self.reader.get_mut().shutdown(Shutdown::Write).unwrap();
        let mut rest = String::new();
        self.reader.read_to_string(&mut rest).unwrap();
        rest
    }
}

/// A server and the line of its log that names its addresses.
struct Served {
    server: Server,
    ready: String,
}

impl Served {
    fn address_of(&self, protocol: &str) -> &str {
        let marked = self.ready.split(&format!("{protocol}=")).nth(1);
        let address = marked.and_then(|rest| rest.split(['"', ' ']).next());
        address.expect("the protocol is not served")
    }
}

/// A server that speaks them all, with its log on.
fn serve() -> Served {
    serve_with(&[])
}

fn serve_with(options: &[&str]) -> Served {
    let dir = tempfile::tempdir().unwrap();
    let child = crate::harness::command(dir.path())
        .args(["--listen", "127.0.0.1:0"])
        .args(["--listen-lines", "opentsdb=127.0.0.1:0"])
        .args(["--listen-lines", "akumuli=127.0.0.1:0"])
        .args(["--listen-lines", "influx-tcp=127.0.0.1:0"])
        .args(["--listen-lines", "influx-udp=127.0.0.1:0,precision=s"])
        .args(options)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let ready = RefCell::new(String::new());
    let server = Server::adopt_after(child, dir, |line| {
        ready.replace(line.to_owned());
        line.contains("ready")
    });
    let ready = ready.into_inner();
    Served { server, ready }
}

/// The samples of one key, as `timestamp value` of RESP2.
fn samples(server: &Server, key: &str) -> Vec<String> {
    let reply = server.client().ask_words(&["TS.RANGE", key, "-", "+"]);
    assert!(reply.starts_with('*'), "{key}: {reply}");
    let parts = reply
        .split("\r\n")
        .filter_map(|part| part.strip_prefix([':', '+']));
    let parts: Vec<_> = parts.collect();
    parts.chunks(2).map(|pair| pair.join(" ")).collect()
}
