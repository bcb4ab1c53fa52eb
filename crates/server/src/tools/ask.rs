//! A tool as a client of the running server.

use super::backup::Backup;
use latewood_tls::{Duplex, with_hint};
use latewood_wire::resp::{Value, encode_command, parse_reply};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::Duration;

/// How often a running server is asked how far it is.
const ASK_EVERY: Duration = Duration::from_millis(100);

/// A connection to the server that is to be backed up.
pub(super) struct Server {
    stream: Box<dyn Duplex>,
    received: Vec<u8>,
}

impl Server {
    /// Connects, and logs in where a user or a password is given.
    pub(super) fn connect(options: &Backup) -> Result<Self, String> {
        let (server, is_tls) = options.tls.split(&options.server)?;
        let stream = options.tls.connector(is_tls)?.connect(server, None)
            .map_err(|error| {
                let server = &options.server;
                format!("cannot connect to {server}: {error}; --server ADDR:PORT sets the server, --dir backs up a directory without one")
            })?;
        let mut server = Self {
            stream,
            received: Vec::new(),
        };
        match (&options.user, &options.password) {
            // A user with `nopass` is let in with any password.
            (Some(user), password) => {
                server.ask(&["AUTH", user, password.as_deref().unwrap_or_default()])?;
            }
            (None, Some(password)) => drop(server.ask(&["AUTH", password])?),
            (None, None) => {}
        }
        Ok(server)
    }

    /// Has the server copy its data into a folder and waits for the end.
    pub(super) fn back_up(&mut self, to: &Path) -> Result<(), String> {
        let path = to.to_str().ok_or("the path is not UTF-8")?;
        // Who may not ask how it goes starts none that nobody waits for.
        self.ask(&["INFO", "latewood"])?;
        self.ask(&["LATEWOOD", "BACKUP", path])?;
        loop {
            let info = text(&self.ask(&["INFO", "latewood"])?)?;
            let field = |name: &str| {
                let mut lines = info.lines();
                lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
            };
            if field("backup_in_progress") == Some("0") {
                return match field("backup_last_status").unwrap_or("unknown") {
                    "ok" => Ok(()),
                    reason => Err(format!("the backup failed: {reason}")),
                };
            }
            sleep(ASK_EVERY);
        }
    }

    /// The directory of its data, as it calls it.
    pub(super) fn directory(&mut self) -> Result<PathBuf, String> {
        match self.ask(&["CONFIG", "GET", "dir"])? {
            Value::Array(pair) if pair.len() == 2 => Ok(PathBuf::from(text(&pair[1])?)),
            _ => Err("the server does not report its data directory; is it Latewood?".to_owned()),
        }
    }

    /// The reply to a command.
    fn ask(&mut self, words: &[&str]) -> Result<Value, String> {
        let lost = |error: std::io::Error| {
            let reason = with_hint(&error);
            format!("lost the connection to the server: {reason}")
        };
        let mut bytes = Vec::new();
        encode_command(&mut bytes, words);
        self.stream.write_all(&bytes).map_err(lost)?;
        loop {
            if self.received.starts_with(b"HTTP/") {
                return Err(
                    "the server speaks HTTP, not RESP: is this its --http address?".to_owned(),
                );
            }
            if self.received.starts_with(b"\x15\x03") {
                return Err("the server speaks TLS: connect with --tls".to_owned());
            }
            let parsed = parse_reply(&self.received).map_err(|error| error.to_string())?;
            if let Some((len, reply)) = parsed {
                self.received.drain(..len);
                return match reply {
                    Value::Error(error) => Err(String::from_utf8_lossy(&error).into_owned()),
                    reply => Ok(reply),
                };
            }
            let mut buffer = [0; 16 * 1024];
            match self.stream.read(&mut buffer).map_err(lost)? {
                0 => return Err("the server closed the connection".to_owned()),
                read => self.received.extend_from_slice(&buffer[..read]),
            }
        }
    }
}

fn text(reply: &Value) -> Result<String, String> {
    match reply {
        Value::Bulk(bytes) | Value::Simple(bytes) | Value::Verbatim(_, bytes) => {
            let text = String::from_utf8(bytes.clone());
            text.map_err(|_| "the server's answer is not UTF-8".to_owned())
        }
        _ => Err("unexpected reply from the server; is it Latewood?".to_owned()),
    }
}
