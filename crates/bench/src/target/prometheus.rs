//! Prometheus, which takes remote writes: protocol buffers, compressed with Snappy.
//!
//! The messages are those of its remote-write specification 1.0.

use std::collections::BTreeMap;
use std::time::Duration;

use prost::Message;

use super::store::{Body, Sender, Store};
use super::{Process, peer, promql};
use crate::address::Address;
use crate::error::{Error, Result};
use crate::http::Http;
use crate::lines::{Batch, CpuLoad, FIELDS, TAGS};

/// The script, within the project.
const SCRIPT: &str = "bench/peers/prometheus.sh";
/// What a remote write says of itself.
const HEADERS: [(&str, &str); 3] = [
    ("Content-Type", "application/x-protobuf"),
    ("Content-Encoding", "snappy"),
    ("X-Prometheus-Remote-Write-Version", "0.1.0"),
];

/// A running one.
#[derive(Debug)]
pub(crate) struct Prometheus {
    address: Address,
    http: Http,
}

#[derive(Clone, PartialEq, Message)]
struct WriteRequest {
    #[prost(message, repeated, tag = "1")]
    timeseries: Vec<TimeSeries>,
}

#[derive(Clone, PartialEq, Message)]
struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<Label>,
    #[prost(message, repeated, tag = "2")]
    samples: Vec<Sample>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    value: String,
}

#[derive(Clone, PartialEq, Message)]
struct Sample {
    #[prost(double, tag = "1")]
    value: f64,
    #[prost(int64, tag = "2")]
    timestamp_ms: i64,
}

/// Starts it; returns its settings too.
///
/// # Errors
/// When it cannot be installed or does not come up.
pub(super) fn start() -> Result<(Process, String)> {
    let process = peer::start(SCRIPT, |http| http.get("/-/ready", &[]).is_ok())?;
    let settings = "out_of_order_time_window: 1000d --storage.tsdb.retention.time=100y";
    Ok((process, settings.to_owned()))
}

impl Prometheus {
    /// The one at `address`.
    pub(super) fn at(address: &Address) -> Self {
        Prometheus {
            address: address.clone(),
            http: Http::new(address),
        }
    }
}

impl Store for Prometheus {
    fn version(&self) -> Result<String> {
        let about = self.http.get_json("/api/v1/status/buildinfo", &[])?;
        let version = about["data"]["version"].as_str().unwrap_or_default();
        Ok(format!("Prometheus {version}"))
    }

    fn encode(&self, load: &CpuLoad, batch: &Batch) -> Result<Body> {
        let request = WriteRequest {
            timeseries: timeseries(load, batch),
        };
        let bytes = snap::raw::Encoder::new()
            .compress_vec(&request.encode_to_vec())
            .map_err(|error| Error::new(format!("compress a remote write: {error}")))?;
        Ok(Body { bytes, commands: 1 })
    }

    fn sender(&self) -> Result<Box<dyn Sender>> {
        let http = Http::new(&self.address);
        Ok(Box::new(peer::Poster::new(http, "/api/v1/write", &HEADERS)))
    }

    fn drain(&self) -> Result<()> {
        Ok(())
    }

    /// It looks once a minute whether samples are to become blocks.
    fn rest(&self) -> Duration {
        Duration::from_secs(75)
    }

    fn values(&self, load: &CpuLoad) -> Result<u64> {
        promql::values(&self.http, load)
    }

    fn series(&self, load: &CpuLoad, host: u32, field: usize) -> Result<Vec<(i64, f64)>> {
        promql::series(&self.http, load, host, field)
    }
}

/// The samples of a batch, those of a series together, in the order of their lines.
fn timeseries(load: &CpuLoad, batch: &Batch) -> Vec<TimeSeries> {
    let mut by_host: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
    for &line in &batch.lines {
        by_host.entry(load.host(line)).or_default().push(line);
    }
    let mut all = Vec::with_capacity(by_host.len() * FIELDS.len());
    for (host, lines) in by_host {
        for (at, field) in FIELDS.iter().enumerate() {
            let sample = |line: &u32| Sample {
                value: f64::from(load.fields(*line)[at]),
                timestamp_ms: load.timestamp_ms(*line),
            };
            all.push(TimeSeries {
                labels: labels(load, host, field),
                samples: lines.iter().map(sample).collect(),
            });
        }
    }
    all
}

/// In the order of their names, as the specification asks.
fn labels(load: &CpuLoad, host: u32, field: &str) -> Vec<Label> {
    let label = |(name, value): (&str, &str)| Label {
        name: name.to_owned(),
        value: value.to_owned(),
    };
    let name = format!("cpu_{field}");
    let tags = TAGS
        .iter()
        .copied()
        .zip(load.tags(host).iter().map(String::as_str));
    let mut labels: Vec<Label> = tags.map(label).collect();
    labels.push(label(("__name__", &name)));
    labels.sort_by(|a, b| a.name.cmp(&b.name));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_holds_every_value_of_its_lines() {
        let load = CpuLoad::new(3, 4, 1);
        let batch = load
            .batches(&load.order(0.5, 1), 1, 100)
            .remove(0)
            .remove(0);
        let there = Prometheus::at(&Address::loopback(1));
        let body = there.encode(&load, &batch).unwrap();
        let bytes = snap::raw::Decoder::new()
            .decompress_vec(&body.bytes)
            .unwrap();
        let request = WriteRequest::decode(bytes.as_slice()).unwrap();
        assert_eq!(request.timeseries.len(), 30);
        let samples = request.timeseries.iter().map(|series| series.samples.len());
        assert_eq!(samples.sum::<usize>(), 120);
        for series in &request.timeseries {
            assert!(series.labels.is_sorted_by(|a, b| a.name < b.name));
            assert_eq!(series.labels[0].name, "__name__");
            assert_eq!(series.labels.len(), 11);
        }
    }
}
