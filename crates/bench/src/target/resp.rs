//! Latewood and RedisTimeSeries: asked with TS commands, whatever protocol they are written by.

use latewood_wire::resp::Value;

use super::peer::Poster;
use super::store::{Sender, Store};
use super::stream::LineStream;
use crate::address::Address;
use crate::control::Control;
use crate::error::{Error, Result};
use crate::http::Http;
use crate::late;
use crate::lines::{CpuLoad, FIELDS};
use crate::protocol::{Body, PROMETHEUS_HEADERS, Protocol};
use crate::reply::ReplyExt;

/// Series whose TS.INFO is asked for at a time.
const KEYS_AT_ONCE: usize = 1_000;
/// What an export in protobuf says of itself.
const OTLP_HEADERS: [(&str, &str); 1] = [("Content-Type", "application/x-protobuf")];

/// A running one.
#[derive(Debug)]
pub(crate) struct Resp {
    address: Address,
    protocol: Protocol,
    /// Where that is spoken.
    senders: Address,
}

/// A connection that sends commands.
struct Commander {
    control: Control,
}

impl Resp {
    /// The one at `address`, written to there too.
    pub(super) fn at(address: &Address) -> Self {
        Resp::taking(address, Protocol::Redis, address)
    }

    /// The one at `address` that is written to by `protocol` at `senders`.
    pub(super) fn taking(address: &Address, protocol: Protocol, senders: &Address) -> Self {
        Resp {
            address: address.clone(),
            protocol,
            senders: senders.clone(),
        }
    }

    fn control(&self) -> Result<Control> {
        Control::connect(&self.address)
    }
}

impl Store for Resp {
    fn version(&self) -> Result<String> {
        late::version(&self.address)
    }

    fn protocol(&self) -> Protocol {
        self.protocol
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let http = Http::new(&self.senders);
        Ok(match self.protocol {
            Protocol::Redis => Box::new(Commander {
                control: self.control()?,
            }),
            Protocol::Influx => Box::new(Poster::new(http, "/write", &[])),
            Protocol::Prometheus => {
                Box::new(Poster::new(http, "/api/v1/write", &PROMETHEUS_HEADERS))
            }
            Protocol::Otlp => Box::new(Poster::new(http, "/v1/metrics", &OTLP_HEADERS)),
            Protocol::Opentsdb | Protocol::Akumuli => Box::new(LineStream::connect(&self.senders)?),
        })
    }

    fn drain(&self) -> Result<()> {
        late::settle(&mut self.control()?).map(drop)
    }

    fn persist(&self) -> Result<()> {
        let mut control = self.control()?;
        // Only Latewood settles; what others SAVE is no part of their taking samples.
        if late::settle(&mut control)? {
            control.run(&[b"SAVE"])?;
        }
        Ok(())
    }

    fn values(&self, load: &CpuLoad) -> Result<u64> {
        let mut control = self.control()?;
        let mut commands = Vec::new();
        for host in 0..load.hosts() {
            for field in 0..FIELDS.len() {
                let key = self.protocol.key(load, host, field)?;
                commands.push(vec![b"TS.INFO".to_vec(), key.into_bytes()]);
            }
        }
        let mut held = 0;
        for some in commands.chunks(KEYS_AT_ONCE) {
            for info in control.run_all(some)? {
                let samples = info.field("totalSamples").and_then(|value| value.number());
                let samples = samples.and_then(|samples| u64::try_from(samples).ok());
                held += samples.ok_or_else(|| Error::new("TS.INFO has no totalSamples"))?;
            }
        }
        Ok(held)
    }

    fn series(&self, load: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        let key = self.protocol.key(load, host, field)?;
        let reply = self
            .control()?
            .run(&[b"TS.RANGE", key.as_bytes(), b"-", b"+"])?;
        late::rows(&reply)
    }
}

impl Sender for Commander {
    fn send(&mut self, body: &Body) -> Result<()> {
        self.control.exchange(&body.bytes, body.commands, |reply| {
            let refused = match &reply {
                Value::Array(items) => items.iter().find(|item| matches!(item, Value::Error(_))),
                Value::Error(_) => Some(&reply),
                _ => None,
            };
            match refused {
                Some(error) => Err(Error::new(format!("the server refused: {}", error.text()))),
                None => Ok(()),
            }
        })
    }
}
