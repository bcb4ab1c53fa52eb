//! What the lines report needs of a server, whatever protocol it speaks.

use std::thread;
use std::time::{Duration, Instant};

use latewood_wire::resp::Value;

use super::peer::Peer;
use super::stream::LineStream;
use crate::base::address::Address;
use crate::base::control::Control;
use crate::base::error::{Error, Result};
use crate::base::http::Http;
use crate::base::reply::{ReplyExt, count, rows};
use crate::protocol::{Body, PROMETHEUS_HEADERS, Protocol};
use crate::workload::hosts::CpuLoad;

const OTLP_HEADERS: [(&str, &str); 1] = [("Content-Type", "application/x-protobuf")];
/// Longest time a log may take to get into its table, and how often to ask whether it has.
const PATIENCE: Duration = Duration::from_secs(600);
const ASK_AGAIN: Duration = Duration::from_millis(50);

/// A running server that takes lines.
pub(crate) struct Store {
    /// Where it is asked, and where it is written to.
    address: Address,
    senders: Address,
    /// Servers without one are asked with TS commands, whatever protocol they are written by.
    peer: Option<&'static Peer>,
    /// The form in which it takes batches.
    pub(crate) protocol: Protocol,
}

/// One connection of a load.
pub(crate) enum Sender {
    Post(Http, &'static str, &'static [(&'static str, &'static str)]),
    Stream(LineStream),
    Commands(Control),
}

impl Store {
    /// A peer at `address`.
    pub(super) fn peer(address: &Address, peer: &'static Peer) -> Self {
        Store {
            peer: Some(peer),
            ..Store::resp(address, peer.protocol, address)
        }
    }

    /// A server of TS commands at `address` that is written to by `protocol` at `senders`.
    pub(super) fn resp(address: &Address, protocol: Protocol, senders: &Address) -> Self {
        Store {
            address: address.clone(),
            senders: senders.clone(),
            peer: None,
            protocol,
        }
    }

    /// Where it is asked and written to by HTTP.
    pub(crate) fn http(&self) -> Http {
        Http::new(&self.senders)
    }

    /// A connection for commands.
    pub(crate) fn control(&self) -> Result<Option<Control>> {
        match self.peer {
            Some(_) => Ok(None),
            None => Control::connect(&self.address).map(Some),
        }
    }

    /// Its name and version, as it tells them.
    pub(super) fn version(&self) -> Result<String> {
        match (self.peer, self.control()?) {
            (Some(peer), _) => Ok(peer.version(&self.http())),
            (None, Some(mut control)) => control.version(),
            (None, None) => Ok(String::new()),
        }
    }

    /// Makes ready for a load: a database, where one is needed.
    pub(crate) fn prepare(&self) -> Result<()> {
        match self.peer.and_then(|peer| peer.prepare) {
            Some(path) => self.http().post(path, &[], &[]),
            None => Ok(()),
        }
    }

    /// Opens a connection.
    pub(crate) fn sender(&self) -> Result<Sender> {
        let http = self.http();
        if let Some(peer) = self.peer {
            return Ok(Sender::Post(http, peer.write, peer.headers));
        }
        Ok(match self.protocol {
            Protocol::Redis => Sender::Commands(Control::connect(&self.address)?),
            Protocol::Influx => Sender::Post(http, "/write", &[]),
            Protocol::Prometheus => Sender::Post(http, "/api/v1/write", &PROMETHEUS_HEADERS),
            Protocol::Otlp => Sender::Post(http, "/v1/metrics", &OTLP_HEADERS),
            Protocol::Opentsdb | Protocol::Akumuli => {
                Sender::Stream(LineStream::connect(&self.senders)?)
            }
        })
    }

    /// Waits until a peer can give everything that was sent to it.
    pub(crate) fn drain(&self) -> Result<()> {
        let Some(peer) = self.peer else {
            return Ok(());
        };
        let (http, began) = (self.http(), Instant::now());
        while !(peer.is_drained)(&http)? {
            if began.elapsed() > PATIENCE {
                return Err(Error::new(format!("{} does not apply its log", peer.name)));
            }
            thread::sleep(ASK_AGAIN);
        }
        Ok(())
    }

    /// How long after a load the server may still begin work of its own.
    pub(crate) fn rest(&self) -> Duration {
        self.peer.map_or(Duration::from_secs(2), |peer| peer.rest)
    }

    /// Values it holds.
    pub(crate) fn values(&self, load: &CpuLoad) -> Result<u64> {
        if let Some(peer) = self.peer {
            return peer.values(&self.http(), load);
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
        if let Some(peer) = self.peer {
            return peer.series(&self.http(), load, host, field);
        }
        let key = self.protocol.key(load, host, field)?;
        rows(&Control::connect(&self.address)?.run(&format!("TS.RANGE {key} - +"))?)
    }
}

impl Sender {
    /// Sends a batch and waits until all of it is acknowledged, where the protocol does that.
    pub(crate) fn send(&mut self, body: &Body) -> Result<()> {
        match self {
            Sender::Post(http, path, headers) => http.post(path, headers, &body.bytes),
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
