//! How the lines of a load look in each protocol that senders speak, one file each.
//!
//! The same batch means the same samples of the same series in all of them, but for Redis, whose
//! series have keys instead of names: tests read every form back with the server's own decoders.
//! Akumuli's numbers for series and Redis' commands that make them come with the first line of a
//! host, so batches of one part of a load belong on one connection, in their order.

mod akumuli;
mod influx;
mod opentsdb;
mod otlp;
mod prometheus;
mod redis;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use clap::ValueEnum;
use latewood_wire::series_name::SeriesName;
use serde::{Deserialize, Serialize};

pub(crate) use self::otlp::json_line;
pub(crate) use self::prometheus::HEADERS as PROMETHEUS_HEADERS;
use crate::error::{Error, Result};
use crate::lines::{Batch, CpuLoad, FIELDS, TAGS};

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

/// A batch as it goes over the wire.
#[derive(Clone, Debug, Default)]
pub(crate) struct Body {
    /// The bytes of the request.
    pub(crate) bytes: Vec<u8>,
    /// Commands in it; 1 where a batch is one request.
    pub(crate) commands: usize,
}

impl Protocol {
    /// Its name in reports.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Protocol::Influx => "influx",
            Protocol::Opentsdb => "opentsdb",
            Protocol::Akumuli => "akumuli",
            Protocol::Prometheus => "prometheus",
            Protocol::Otlp => "otlp",
            Protocol::Redis => "redis",
        }
    }

    /// Puts a batch into this form.
    ///
    /// # Errors
    /// When the form cannot hold it.
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
    ///
    /// # Errors
    /// When its name is none.
    pub(crate) fn key(self, load: &CpuLoad, host: u32, field: usize) -> Result<String> {
        if self == Protocol::Redis {
            return Ok(redis::key(host, FIELDS[field]));
        }
        let tags = TAGS.iter().copied().zip(load.tags(host));
        key(&metric(FIELDS[field]), tags)
    }
}

/// The key of the series with a metric and labels.
///
/// # Errors
/// When they are no name.
pub(crate) fn key<'a>(
    metric: &str,
    labels: impl Iterator<Item = (&'a str, &'a String)>,
) -> Result<String> {
    let mut name = SeriesName::new();
    name.begin(metric.as_bytes());
    for (label, value) in labels {
        name.label(label.as_bytes(), value.as_bytes());
    }
    name.finish()
        .map_err(|error| Error::new(format!("{metric} is no name of a series: {error}")))?;
    Ok(String::from_utf8_lossy(name.key()).into_owned())
}

/// The name of a field where a measurement is no thing of its own: as line protocol makes it.
fn metric(field: &str) -> String {
    format!("cpu_{field}")
}

/// The lines of each host in a batch, in the order of their lines.
fn by_host(load: &CpuLoad, batch: &Batch) -> BTreeMap<u32, Vec<u32>> {
    let mut by_host: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &line in &batch.lines {
        by_host.entry(load.host(line)).or_default().push(line);
    }
    by_host
}
