//! How the lines of a load look in each protocol that senders speak.
//!
//! The same batch means the same samples of the same series in all of them; tests read every form
//! back with the server's own decoders. Batches of one part of a load belong on one connection, in
//! their order: Akumuli's and Redis' series are made with the first line of a host.

mod common;
mod otlp;
mod prometheus;
mod redis;
#[cfg(test)]
mod tests;
mod text;
pub(crate) mod walk;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use self::common::{key, metric};
pub(crate) use self::{common::Body, otlp::json_line};
use crate::base::error::Result;
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

/// A form of lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    /// InfluxDB line protocol, by HTTP.
    #[default]
    Influx,
    /// OpenTSDB `put`, by telnet.
    Opentsdb,
    /// Akumuli's own, bulk rows with a dictionary.
    Akumuli,
    /// Prometheus remote write 1.0.
    Prometheus,
    /// OpenTelemetry: OTLP by HTTP.
    Otlp,
    /// TS.CREATE and TS.MADD.
    Redis,
}

impl Protocol {
    /// Its name in reports and options.
    pub(crate) fn name(self) -> String {
        format!("{self:?}").to_lowercase()
    }

    /// What a batch that is posted says of itself.
    pub(crate) fn headers(self) -> &'static [(&'static str, &'static str)] {
        const PROTOBUF: (&str, &str) = ("Content-Type", "application/x-protobuf");
        match self {
            Protocol::Prometheus => &[
                PROTOBUF,
                ("Content-Encoding", "snappy"),
                ("X-Prometheus-Remote-Write-Version", "0.1.0"),
            ],
            Protocol::Otlp => &[PROTOBUF],
            _ => &[],
        }
    }

    /// Puts a batch into this form.
    pub(crate) fn encode(self, load: &CpuLoad, batch: &Batch) -> Result<Body> {
        let bytes = match self {
            Protocol::Influx => text::influx(load, batch),
            Protocol::Opentsdb => text::opentsdb(load, batch),
            Protocol::Akumuli => text::akumuli(load, batch),
            Protocol::Prometheus => prometheus::encode(load, batch)?,
            Protocol::Otlp => otlp::encode(load, batch),
            Protocol::Redis => return Ok(redis::encode(load, batch)),
        };
        Ok(Body { bytes, commands: 1 })
    }

    /// The key under which Latewood keeps a field of a host.
    pub(crate) fn key(self, load: &CpuLoad, host: u32, field: usize) -> Result<String> {
        if self == Protocol::Redis {
            return Ok(redis::key(host, FIELDS[field]));
        }
        key(&metric(FIELDS[field]), TAGS.iter().zip(load.tags(host)))
    }
}
