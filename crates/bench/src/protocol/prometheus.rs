//! Prometheus remote write 1.0: protocol buffers, compressed with Snappy. Samples of a series
//! within a batch stand together.

use prost::Message;

use super::common::{by_host, metric};
use crate::base::error::{Doing, Result};
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

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

/// The samples of a batch, those of a series together, in the order of their lines.
pub(super) fn encode(load: &CpuLoad, batch: &Batch) -> Result<Vec<u8>> {
    let mut timeseries = Vec::new();
    for (host, lines) in by_host(load, batch) {
        for (at, field) in FIELDS.iter().enumerate() {
            let sample = |line: &u32| Sample {
                value: f64::from(load.fields(*line)[at]),
                timestamp_ms: load.timestamp_ms(*line),
            };
            timeseries.push(TimeSeries {
                labels: labels(load, host, field),
                samples: lines.iter().map(sample).collect(),
            });
        }
    }
    snap::raw::Encoder::new()
        .compress_vec(&WriteRequest { timeseries }.encode_to_vec())
        .doing("compress a remote write")
}

/// In the order of their names, as the specification asks.
fn labels(load: &CpuLoad, host: u32, field: &str) -> Vec<Label> {
    let label = |name: &str, value: &String| Label {
        name: name.to_owned(),
        value: value.clone(),
    };
    let tags = TAGS.iter().zip(load.tags(host));
    let mut labels: Vec<Label> = tags.map(|(name, value)| label(name, value)).collect();
    labels.push(label("__name__", &metric(field)));
    labels.sort_by(|a, b| a.name.cmp(&b.name));
    labels
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_in_the_order_of_their_names() {
        let labels = labels(&CpuLoad::new(1, 1, 1), 0, FIELDS[0]);
        assert!(labels.len() == 11 && labels.is_sorted_by(|a, b| a.name < b.name));
        assert_eq!(labels[0].name, "__name__");
    }
}
