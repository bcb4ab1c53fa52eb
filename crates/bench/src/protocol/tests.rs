//! Every form, read by the decoders of the server.

use latewood_wire::opentsdb::telnet::{self, Request};
use latewood_wire::testing::Collected;
use latewood_wire::{akumuli, influx, opentsdb, otlp, prometheus};

use super::*;

/// The samples of a load in some form, in the order they are read, as `key@milliseconds=value`.
fn samples(protocol: Protocol, load: &CpuLoad, batches: &[Batch]) -> Vec<String> {
    let mut intake = Collected::default();
    let mut akumuli = akumuli::Writer::new();
    let mut opentsdb = opentsdb::Writer::new();
    for batch in batches {
        let body = protocol.encode(load, batch).unwrap().bytes;
        match protocol {
            Protocol::Influx => {
                let mut decoder = influx::Decoder::new(influx::Precision::Nanoseconds);
                decoder.decode(&body, true, &mut intake);
            }
            Protocol::Opentsdb => {
                for (line, number) in lines(&body).zip(1..) {
                    match telnet::parse(line) {
                        Ok(Request::Put(put)) => opentsdb.put(&put, number, &mut intake),
                        other => panic!("{other:?}"),
                    }
                }
            }
            Protocol::Akumuli => {
                for (line, number) in lines(&body).zip(1..) {
                    akumuli.line(line, number, &mut intake);
                }
            }
            Protocol::Prometheus => {
                let message = snap::raw::Decoder::new().decompress_vec(&body).unwrap();
                let mut decoder = prometheus::write::Decoder::new();
                let version = prometheus::write::Version::V1;
                decoder.decode(version, &message, &mut intake).unwrap();
            }
            Protocol::Otlp => {
                let request = otlp::read(otlp::Encoding::Protobuf, &body).unwrap();
                let line = json_line(load, batch).unwrap();
                assert_eq!(otlp::read(otlp::Encoding::Json, &line).unwrap(), request);
                // The tags are attributes of resources.
                let naming = otlp::Naming {
                    promoted: vec!["*".to_owned()],
                    ..otlp::Naming::default()
                };
                otlp::Decoder::new(&naming).decode(&request, &mut intake);
            }
            Protocol::Redis => unreachable!("has keys, not names"),
        }
    }
    assert_eq!(intake.refused, []);
    intake.lines()
}

pub(super) fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    let body = body.strip_suffix(b"\n").unwrap();
    body.split(|byte| *byte == b'\n')
        .map(|line| line.strip_suffix(b"\r").unwrap_or(line))
}

#[test]
fn all_protocols_send_the_same_samples_of_the_same_series() {
    let load = CpuLoad::new(5, 20, 11);
    let order = load.order(0.3, 11);
    let batches = load.batches(&order, 1, 30).remove(0);
    let mut sent = Vec::new();
    for host in 0..5 {
        for (field, name) in FIELDS.iter().enumerate() {
            let key = Protocol::Influx.key(&load, host, field).unwrap();
            assert!(key.starts_with(&format!("cpu_{name}{{")), "{key}");
            let series = load.series(host, field).into_iter();
            sent.extend(series.map(|(at, value)| format!("{key}@{at}={value}")));
        }
    }
    sent.sort();
    let labelled = [
        Protocol::Influx,
        Protocol::Opentsdb,
        Protocol::Akumuli,
        Protocol::Prometheus,
        Protocol::Otlp,
    ];
    for protocol in labelled {
        let mut read = samples(protocol, &load, &batches);
        read.sort();
        assert_eq!(read.len(), 5 * 20 * 10, "{protocol:?}");
        assert!(read == sent, "{protocol:?}: {} is not {}", read[0], sent[0]);
    }
}

#[test]
fn lines_come_in_the_order_of_the_load() {
    let load = CpuLoad::new(4, 25, 3);
    let batches = load.batches(&load.order(0.5, 3), 1, 100).remove(0);
    let by_line = |protocol| samples(protocol, &load, &batches);
    let influx = by_line(Protocol::Influx);
    assert_eq!(by_line(Protocol::Opentsdb), influx);
    assert_eq!(by_line(Protocol::Akumuli), influx);
    let wanted = batches[0].lines.iter().flat_map(|line| {
        let at = load.timestamp_ms(*line);
        load.fields(*line).iter().map(move |value| (at, *value))
    });
    for (sample, (at, value)) in influx.iter().zip(wanted) {
        assert!(sample.ends_with(&format!("@{at}={value}")), "{sample}");
    }
}
