//! A blocking connection for everything outside the measured load: creating series, reading
//! INFO, asking for the late samples to be settled, checking results.

use std::collections::HashMap;
use std::time::Duration;

use latewood_tls::Duplex;
use latewood_wire::resp::{Value, encode_command, parse_reply, skip_reply};

use crate::base::address::Address;
use crate::base::error::{Doing, Error, Result};
use crate::base::reply::ReplyExt;

/// Commands of one pipeline of `run_all`: enough to hide the round trip, far from any buffer.
const PIPELINE: usize = 512;
const READ_BYTES: usize = 256 * 1024;
/// Longer than any command here may take; settling a hundred million samples is the longest.
const PATIENCE: Duration = Duration::from_secs(600);
/// A series that is written to wait for the log, and gone afterwards.
const FENCE: &str = "latewood-bench:fence";

/// A connection that sends a command and waits for its reply.
#[derive(Debug)]
pub(crate) struct Control {
    stream: Box<dyn Duplex>,
    input: Vec<u8>,
    /// Bytes at the start of `input` that are read and not taken.
    held: usize,
}

/// The fields of an `INFO` answer, all sections together.
#[derive(Debug, Default)]
pub(crate) struct Info(HashMap<String, String>);

impl Control {
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        Ok(Control {
            stream: address.open(PATIENCE)?,
            input: Vec::new(),
            held: 0,
        })
    }

    /// Sends one command, words with blanks between them; returns its reply, error replies too.
    pub(crate) fn ask(&mut self, command: &str) -> Result<Value> {
        self.send(&encoded(command))?;
        self.receive()
    }

    /// Sends one command; an error reply is an error.
    pub(crate) fn run(&mut self, command: &str) -> Result<Value> {
        check(command, self.ask(command)?)
    }

    /// Runs many commands in pipelines and returns their replies in order; the first error reply
    /// is an error.
    pub(crate) fn run_all(
        &mut self,
        commands: impl IntoIterator<Item = String>,
    ) -> Result<Vec<Value>> {
        let (mut commands, mut replies) = (commands.into_iter(), Vec::new());
        loop {
            let batch: Vec<String> = commands.by_ref().take(PIPELINE).collect();
            if batch.is_empty() {
                return Ok(replies);
            }
            let out: Vec<u8> = batch.iter().flat_map(|command| encoded(command)).collect();
            self.send(&out)?;
            for command in &batch {
                replies.push(check(command, self.receive()?)?);
            }
        }
    }

    /// Sends `bytes`, which hold `commands`, and hands each reply to `take`.
    pub(crate) fn exchange(
        &mut self,
        bytes: &[u8],
        commands: usize,
        mut take: impl FnMut(Value) -> Result<()>,
    ) -> Result<()> {
        self.send(bytes)?;
        let mut outcome = Ok(());
        for _ in 0..commands {
            let reply = self.receive()?;
            outcome = outcome.and_then(|()| take(reply));
        }
        outcome
    }

    /// Sends one command and hands the bytes of its whole reply to `read`.
    pub(crate) fn ask_raw<T>(
        &mut self,
        command: &str,
        mut read: impl FnMut(&[u8]) -> T,
    ) -> Result<T> {
        self.send(&encoded(command))?;
        self.take(|input| Ok(skip_reply(input)?.map(|(len, _)| (len, read(&input[..len])))))
    }

    /// Sends one command whose reply is known to be `len` bytes long, and reads those without
    /// looking into them.
    pub(crate) fn ask_bytes(&mut self, command: &str, len: usize) -> Result<()> {
        self.send(&encoded(command))?;
        let mut read = 0;
        while read < len {
            self.held = 0;
            self.read_more()?;
            read += self.held;
        }
        let is_ended = self.input[..self.held].ends_with(b"\n");
        self.held = 0;
        if read > len || !is_ended {
            return Err(Error::new(format!("the reply is not {len} bytes long")));
        }
        Ok(())
    }

    /// `INFO [section]`. A section the server does not have gives no fields.
    pub(crate) fn info(&mut self, section: &str) -> Result<Info> {
        let reply = self.ask(&format!("INFO {section}"))?;
        match reply {
            Value::Error(_) => Ok(Info::default()),
            fields => Ok(Info::read(&fields.text())),
        }
    }

    /// Name and version of a server, as it tells them.
    pub(crate) fn version(&mut self) -> Result<String> {
        let server = self.info("server")?;
        if let Some(version) = server.text("latewood_version") {
            return Ok(format!("Latewood {version}"));
        }
        let redis = server.text("redis_version").unwrap_or("of unknown version");
        let modules = self.info("modules")?;
        // name=timeseries,ver=11202,api=1,...
        let module = modules.text("module").unwrap_or_default();
        let field = |name| module.split(',').find_map(|field| field.strip_prefix(name));
        Ok(match (field("name="), field("ver=")) {
            (Some(name), Some(version)) => format!("Redis {redis} with {name} {version}"),
            _ => format!("Redis {redis}"),
        })
    }

    /// Waits until everything acknowledged so far, on any connection, is in the log on disk.
    ///
    /// WAITAOF covers the writes of its own connection alone. The log has one order, so a write
    /// after all others covers those too. Unlike SAVE it moves no samples into blocks.
    pub(crate) fn wait_for_log(&mut self) -> Result<()> {
        self.run(&format!("TS.CREATE {FENCE}"))?;
        self.run("WAITAOF 1 0 0")?;
        self.run(&format!("DEL {FENCE}")).map(drop)
    }

    fn send(&mut self, bytes: &[u8]) -> Result<()> {
        self.stream.write_all(bytes).doing("send a command")
    }

    fn receive(&mut self) -> Result<Value> {
        self.take(|input| Ok(parse_reply(input)?))
    }

    /// What `read` finds at the start of the input, once it is whole, and how long that is.
    fn take<T>(&mut self, mut read: impl FnMut(&[u8]) -> Result<Option<(usize, T)>>) -> Result<T> {
        loop {
            if let Some((len, found)) = read(&self.input[..self.held])? {
                self.input.copy_within(len..self.held, 0);
                self.held -= len;
                return Ok(found);
            }
            self.read_more()?;
        }
    }

    fn read_more(&mut self) -> Result<()> {
        let room = self.input.len().max(self.held + READ_BYTES);
        self.input.resize(room, 0);
        let read = self.stream.read(&mut self.input[self.held..]);
        match read.doing("wait for a reply")? {
            0 => Err(Error::new("the server closed the connection")),
            got => {
                self.held += got;
                Ok(())
            }
        }
    }
}

impl Info {
    pub(crate) fn read(text: &str) -> Self {
        let fields = text.lines().filter_map(|line| line.split_once(':'));
        Info(fields.map(|(k, v)| (k.to_owned(), v.to_owned())).collect())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// A field as a number, which must be there.
    pub(crate) fn required(&self, name: &str) -> Result<f64> {
        self.number(name)
            .ok_or_else(|| Error::new(format!("INFO has no {name}")))
    }

    /// A field as a number.
    pub(crate) fn number(&self, name: &str) -> Option<f64> {
        self.text(name)?.parse().ok()
    }
}

/// A command of words with blanks between them, as it goes over the wire.
pub(crate) fn encoded(command: &str) -> Vec<u8> {
    let words: Vec<&[u8]> = command.split(' ').map(str::as_bytes).collect();
    let mut out = Vec::new();
    encode_command(&mut out, &words);
    out
}

fn check(command: &str, reply: Value) -> Result<Value> {
    if !matches!(reply, Value::Error(_)) {
        return Ok(reply);
    }
    let command: String = command.chars().take(200).collect();
    Err(Error::new(format!(
        "{command} was answered: {}",
        reply.text()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_info_fields() {
        let info = Info::read("# CPU\r\nused_cpu_sys:1.25\r\n\r\nrole:master\r\n");
        assert_eq!(info.number("used_cpu_sys"), Some(1.25));
        assert_eq!(info.text("role"), Some("master"));
        assert_eq!((info.number("role"), info.text("# CPU")), (None, None));
    }
}
