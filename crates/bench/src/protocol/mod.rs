//! How the lines of a load look in each protocol that senders speak, one file each.
//!
//! The same batch means the same samples of the same series in all of them; tests read every form
//! back with the server's own decoders. Batches of one part of a load belong on one connection, in
//! their order: Akumuli's and Redis' series are made with the first line of a host.

mod akumuli;
mod common;
mod influx;
mod opentsdb;
mod otlp;
mod prometheus;
mod redis;
#[cfg(test)]
mod tests;
pub(crate) mod walk;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use self::common::metric;
pub(crate) use self::common::{Body, key};
pub(crate) use self::otlp::json_line;
pub(crate) use self::prometheus::HEADERS as PROMETHEUS_HEADERS;
use crate::base::error::Result;
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

/// A form of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Protocol {
    /// InfluxDB line protocol, by HTTP.
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
    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        const NAMES: [&str; 6] = [
            "influx",
            "opentsdb",
            "akumuli",
            "prometheus",
            "otlp",
            "redis",
        ];
        NAMES[self as usize]
    }

    /// Puts a batch into this form.
    pub(crate) fn encode(self, load: &CpuLoad, batch: &Batch) -> Result<Body> {
        let bytes = match self {
            Protocol::Influx => influx::encode(load, batch),
            Protocol::Opentsdb => opentsdb::encode(load, batch),
            Protocol::Akumuli => akumuli::encode(load, batch),
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
        let tags = TAGS.iter().copied().zip(load.tags(host));
        key(&metric(FIELDS[field]), tags)
    }
}
