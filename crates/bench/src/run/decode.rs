//! What it costs to decode a sample, protocol by protocol: no sockets, no engine.
//!
//! The lines are those of the lines benchmark, read by the server's decoders into an intake that
//! adds everything up. Bodies are uncompressed within the time, as the server does it. The first
//! reading, which learns all series, is not timed.

use std::hint::black_box;

use clap::Args;
use latewood_wire::lines::{Lines, Step};
use latewood_wire::opentsdb::telnet::{self, Request};
use latewood_wire::testing::Summed;
use latewood_wire::{akumuli, influx, opentsdb, otlp, prometheus};

use crate::base::error::{Error, Result};
use crate::measure::machine::own_cpu_seconds;
use crate::measure::statistics::median;
use crate::protocol::{Body, Protocol};
use crate::workload::hosts::{Batch, CpuLoad};

/// Protocols whose decoders end at an intake; Redis' commands end elsewhere.
const PROTOCOLS: [Protocol; 5] = [
    Protocol::Influx,
    Protocol::Opentsdb,
    Protocol::Akumuli,
    Protocol::Prometheus,
    Protocol::Otlp,
];
/// Bytes of the longest line.
const LINE_BYTES_MAX: usize = 1 << 20;

/// Hosts, each with ten tags and ten fields, and lines of each.
const HOSTS: u32 = 4_000;
const ROWS: u32 = 10;
/// Late lines of a hundred.
const LATE_PERCENT: [f64; 2] = [0.0, 99.0];
/// Seed of everything random.
const SEED: u64 = 12_345;

/// Measure the decoders of labelled protocols alone: nanoseconds and bytes a value.
#[derive(Clone, Debug, Args)]
pub(crate) struct DecodeArgs {
    /// Readings of everything, of which the median counts; protocols take turns
    #[arg(long, default_value_t = 9, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    repeats: u32,
}

/// A protocol that has learnt all series.
struct Reader {
    protocol: Protocol,
    bodies: Vec<Body>,
    intake: Summed,
    akumuli: akumuli::Writer,
    opentsdb: opentsdb::Writer,
    nanoseconds: Vec<f64>,
}

/// Runs the subcommand.
pub(crate) fn run(args: &DecodeArgs) -> Result<()> {
    let load = CpuLoad::new(HOSTS, ROWS, SEED);
    println!("| protocol | late | ns/value | bytes/value |\n|---|--:|--:|--:|");
    for late in LATE_PERCENT {
        let order = load.order(late / 100.0, SEED);
        let batches = load.batches(&order, 1, 1_000).concat();
        let readers = PROTOCOLS.map(|protocol| Reader::new(protocol, &load, &batches));
        let mut readers = readers.into_iter().collect::<Result<Vec<_>>>()?;
        for _ in 0..args.repeats {
            for reader in &mut readers {
                reader.measure(load.values())?;
            }
        }
        for reader in readers {
            println!("{}", reader.row(late, load.values()));
        }
    }
    Ok(())
}

impl Reader {
    fn new(protocol: Protocol, load: &CpuLoad, batches: &[Batch]) -> Result<Self> {
        let encode = |batch| protocol.encode(load, batch);
        let mut reader = Reader {
            protocol,
            bodies: batches.iter().map(encode).collect::<Result<_>>()?,
            intake: Summed::default(),
            akumuli: akumuli::Writer::new(),
            opentsdb: opentsdb::Writer::new(),
            nanoseconds: Vec::new(),
        };
        reader.measure(load.values())?;
        reader.nanoseconds.clear();
        Ok(reader)
    }

    fn measure(&mut self, values: u64) -> Result<()> {
        let (before, began) = (self.intake.samples, own_cpu_seconds());
        let bodies = std::mem::take(&mut self.bodies);
        for body in &bodies {
            self.read(black_box(&body.bytes))?;
        }
        self.bodies = bodies;
        let seconds = own_cpu_seconds() - began;
        self.nanoseconds.push(seconds * 1e9 / values as f64);
        let read = self.intake.samples - before;
        if read != values || self.intake.refused > 0 {
            let (name, refused) = (self.protocol.name(), self.intake.refused);
            let text = format!("{name}: {read} of {values} values were read, {refused} refused");
            return Err(Error::new(text));
        }
        Ok(())
    }

    fn read(&mut self, bytes: &[u8]) -> Result<()> {
        let intake = &mut self.intake;
        match self.protocol {
            Protocol::Influx => {
                let mut decoder = influx::Decoder::new(influx::Precision::Nanoseconds);
                decoder.decode(bytes, true, intake);
            }
            Protocol::Opentsdb => {
                let writer = &mut self.opentsdb;
                each_line(bytes, |line, number| match telnet::parse(line) {
                    Ok(Request::Put(put)) => writer.put(&put, number, intake),
                    Ok(_) => {}
                    Err(error) => opentsdb::refuse(intake, number, &error),
                });
            }
            Protocol::Akumuli => {
                let writer = &mut self.akumuli;
                each_line(bytes, |line, number| writer.line(line, number, intake));
            }
            Protocol::Prometheus => {
                let message = snap::raw::Decoder::new().decompress_vec(bytes);
                let message = message.map_err(|error| Error::new(error.to_string()))?;
                let version = prometheus::write::Version::V1;
                let read = prometheus::write::Decoder::new().decode(version, &message, intake);
                read.map_err(|error| Error::new(error.to_string()))?;
            }
            Protocol::Otlp => {
                let request = otlp::read(otlp::Encoding::Protobuf, bytes).map_err(Error::new)?;
                otlp::Decoder::new().decode(&request, intake);
            }
            Protocol::Redis => return Err(Error::new("Redis has no decoder of lines")),
        }
        Ok(())
    }

    fn row(self, late: f64, values: u64) -> String {
        let bytes: usize = self.bodies.iter().map(|body| body.bytes.len()).sum();
        let (name, each) = (self.protocol.name(), bytes as f64 / values as f64);
        let nanoseconds = median(self.nanoseconds);
        format!("| {name} | {late} % | {nanoseconds:.1} | {each:.1} |")
    }
}

/// The lines of `bytes` as the server cuts them, with their numbers.
fn each_line(bytes: &[u8], mut take: impl FnMut(&[u8], u32)) {
    let (mut lines, mut at) = (Lines::new(LINE_BYTES_MAX), 0);
    loop {
        let (step, taken) = lines.step(&bytes[at..]);
        at += taken;
        match step {
            Step::Line(line) => take(line, lines.number() as u32),
            Step::TooLong => {}
            Step::More => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_decoder_reads_every_value_again_and_again() {
        let load = CpuLoad::new(3, 5, 1);
        let batches = load.batches(&load.order(0.5, 1), 1, 4).concat();
        for protocol in PROTOCOLS {
            let mut reader = Reader::new(protocol, &load, &batches).unwrap();
            reader.measure(load.values()).unwrap();
            assert_eq!(reader.nanoseconds.len(), 1);
            assert!(reader.measure(load.values() + 1).is_err());
        }
    }
}
