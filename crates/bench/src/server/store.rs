//! What the lines report needs of a server, whatever protocol it speaks.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use latewood_wire::resp::Value;

use super::systems::Spec;
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Doing, Error, Result};
use crate::base::http::Http;
use crate::base::reply::{ReplyExt, count, rows};
use crate::protocol::{Body, Protocol};
use crate::workload::hosts::CpuLoad;

/// Longest time a server may take for what is on its way, and how often to ask whether its log has got
/// into its table.
const PATIENCE: Duration = Duration::from_secs(600);
const ASK_AGAIN: Duration = Duration::from_millis(50);
const SHOWN_BYTES_MAX: u64 = 500;

/// A running server that takes lines.
pub(crate) struct Store {
    pub(super) spec: &'static Spec,
    /// Where it is asked, and where it is written to.
    pub(super) address: Address,
    pub(super) senders: Address,
    /// The form in which it takes batches.
    pub(crate) protocol: Protocol,
}

/// One connection of a load.
pub(crate) enum Sender {
    Post(Http, &'static str, Protocol),
    Stream(LineStream),
    Commands(Control),
}

impl Store {
    /// Where it is asked and written to by HTTP.
    pub(crate) fn http(&self) -> Http {
        Http::new(&self.senders)
    }

    /// A connection for commands, where it takes some.
    pub(crate) fn control(&self) -> Result<Option<Control>> {
        let connect = || Control::connect(&self.address);
        self.spec.speaks_resp().then(connect).transpose()
    }

    /// Its name and version, as it tells them.
    pub(super) fn version(&self) -> Result<String> {
        match self.control()? {
            Some(mut control) => control.version(),
            None => Ok(self.spec.version(&self.http())),
        }
    }

    /// Makes ready for a load: a database, where one is needed.
    pub(crate) fn prepare(&self) -> Result<()> {
        match self.spec.prepare.as_str() {
            "" => Ok(()),
            path => self.http().post(path, &[], &[]),
        }
    }

    pub(crate) fn sender(&self) -> Result<Sender> {
        let path = match self.protocol {
            Protocol::Redis => return Ok(Sender::Commands(Control::connect(&self.address)?)),
            Protocol::Opentsdb | Protocol::Akumuli => {
                return Ok(Sender::Stream(LineStream::connect(&self.senders)?));
            }
            _ if !self.spec.write.is_empty() => &self.spec.write,
            Protocol::Influx => "/write",
            Protocol::Prometheus => "/api/v1/write",
            Protocol::Otlp => "/v1/metrics",
        };
        Ok(Sender::Post(self.http(), path, self.protocol))
    }

    /// Waits until a peer can give everything that was sent to it.
    pub(crate) fn drain(&self) -> Result<()> {
        let (http, began) = (self.http(), Instant::now());
        while !self.spec.is_drained(&http)? {
            if began.elapsed() > PATIENCE {
                let name = &self.spec.name;
                return Err(Error::new(format!("{name} does not apply its log")));
            }
            thread::sleep(ASK_AGAIN);
        }
        Ok(())
    }

    /// How long after a load the server may still begin work of its own.
    pub(crate) fn rest(&self) -> Duration {
        Duration::from_secs(self.spec.rest_seconds.unwrap_or(2))
    }

    /// Values it holds.
    pub(crate) fn values(&self, load: &CpuLoad) -> Result<u64> {
        if let Some(questions) = &self.spec.questions {
            return questions.values(&self.http(), load);
        }
        let mut commands = Vec::new();
        for (host, field) in load.all_series() {
            commands.push(format!("TS.INFO {}", self.protocol.key(load, host, field)?));
        }
        let infos = Control::connect(&self.address)?.run_all(commands)?;
        infos.iter().map(|info| count(info, "totalSamples")).sum()
    }

    /// All samples of a field of a host, by time.
    pub(crate) fn series(
        &self,
        load: &CpuLoad,
        host: u32,
        field: usize,
    ) -> Result<Vec<(i64, f64)>> {
        if let Some(questions) = &self.spec.questions {
            return questions.series(&self.http(), load, host, field);
        }
        let key = self.protocol.key(load, host, field)?;
        rows(&Control::connect(&self.address)?.run(&format!("TS.RANGE {key} - +"))?)
    }
}

impl Sender {
    /// Sends a batch and waits until all of it is acknowledged, where the protocol does that.
    pub(crate) fn send(&mut self, body: &Body) -> Result<()> {
        match self {
            Sender::Post(http, path, of) => http.post(path, of.headers(), &body.bytes),
            Sender::Stream(stream) => stream.write(&body.bytes),
            Sender::Commands(control) => control.exchange(&body.bytes, body.commands, |reply| {
                let items = match &reply {
                    Value::Array(items) => items,
                    reply => std::slice::from_ref(reply),
                };
                let refused = |item: &&Value| matches!(item, Value::Error(_));
                match items.iter().find(refused) {
                    Some(error) => Err(Error::new(format!("refused: {}", error.text()))),
                    None => Ok(()),
                }
            }),
        }
    }

    /// Ends the load: waits until all of it is acknowledged, where the protocol tells only then.
    pub(crate) fn finish(&mut self) -> Result<()> {
        match self {
            Sender::Stream(stream) => stream.end(),
            _ => Ok(()),
        }
    }
}

/// A connection of a protocol that answers nothing but mistakes: OpenTSDB's telnet, Akumuli's. A
/// server that has applied everything closes it after its end; its words are read then only, and
/// any is an error.
#[derive(Debug)]
pub(crate) struct LineStream(TcpStream);

impl LineStream {
    pub(crate) fn connect(address: &Address) -> Result<Self> {
        let stream = address.connect()?;
        let set = stream.set_read_timeout(Some(PATIENCE));
        set.doing("set a read timeout")?;
        Ok(LineStream(stream))
    }

    pub(crate) fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.0.write_all(bytes).doing("send lines")
    }

    /// Ends the stream and waits until the server has taken all of it.
    pub(crate) fn end(&mut self) -> Result<()> {
        let doing = "end the lines";
        self.0.shutdown(Shutdown::Write).doing(doing)?;
        let mut said = String::new();
        let mut words = (&self.0).take(SHOWN_BYTES_MAX);
        words.read_to_string(&mut said).doing(doing)?;
        match said.as_str() {
            "" => Ok(()),
            said => Err(Error::new(format!("the server said: {said}"))),
        }
    }
}
