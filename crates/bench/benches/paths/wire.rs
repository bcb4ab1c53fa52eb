//! Commands and lines in, replies out.

use latewood_wire::influx::{Decoder, Precision};
use latewood_wire::resp::{Limits, Parsed, Parser, Protocol, Reply, encode_command, number};
use latewood_wire::testing::Summed;

use super::{Anything, Path};

/// Commands of a run.
pub(super) const ITEMS: u64 = 1_000;
const LIMITS: Limits = Limits {
    arguments_max: 1024 * 1024,
    argument_bytes_max: 16 * 1024 * 1024,
    command_bytes_max: 64 * 1024 * 1024,
    inline_bytes_max: 64 * 1024,
    authenticated: true,
};

struct Parse(Vec<u8>, Parser);

/// TS.ADD: its words, its timestamp and its value.
pub(super) fn parse() -> Anything<Box<dyn Path>> {
    let mut bytes = Vec::new();
    for at in 0..ITEMS {
        let key = format!("sensor:{:04}", at % 100);
        let timestamp = (1_700_000_000_000 + at).to_string();
        let value = (((at * 7919) % 100_003) as f64 / 100.0).to_string();
        encode_command(&mut bytes, &["TS.ADD", &key, &timestamp, &value]);
    }
    Ok(Box::new(Parse(bytes, Parser::new())))
}

impl Path for Parse {
    fn run(&mut self) -> Anything<u64> {
        let (mut rest, mut sum) = (self.0.as_slice(), 0u64);
        while let Parsed::Command { consumed } = self.1.parse(rest, &LIMITS)? {
            let command = self.1.command();
            let timestamp = number::parse_timestamp(command.arg(rest, 2)).unwrap_or(-1);
            let value = number::parse_value(command.arg(rest, 3)).unwrap_or(f64::NAN);
            sum = sum.wrapping_add(timestamp as u64 ^ value.to_bits());
            rest = &rest[consumed..];
        }
        Ok(sum + rest.len() as u64)
    }
}

struct ParseMany(Vec<u8>, Parser);

/// Samples of a TS.MADD.
const MADD_SAMPLES: usize = 10;

/// TS.MADD of ten samples: its words, timestamps and values.
pub(super) fn parse_many() -> Anything<Box<dyn Path>> {
    let mut bytes = Vec::new();
    for first in (0..ITEMS).step_by(MADD_SAMPLES) {
        let mut words = vec!["TS.MADD".to_owned()];
        for at in first..first + MADD_SAMPLES as u64 {
            words.push(format!("sensor:{:04}", at % 100));
            words.push((1_700_000_000_000 + at).to_string());
            words.push((((at * 7919) % 100_003) as f64 / 100.0).to_string());
        }
        encode_command(&mut bytes, &words);
    }
    Ok(Box::new(ParseMany(bytes, Parser::new())))
}

impl Path for ParseMany {
    fn run(&mut self) -> Anything<u64> {
        let (mut rest, mut sum) = (self.0.as_slice(), 0u64);
        while let Parsed::Command { consumed } = self.1.parse(rest, &LIMITS)? {
            let command = self.1.command();
            for at in 0..MADD_SAMPLES {
                let timestamp = number::parse_timestamp(command.arg(rest, 3 * at + 2));
                let value = number::parse_value(command.arg(rest, 3 * at + 3));
                let bits = value.unwrap_or(f64::NAN).to_bits();
                sum = sum.wrapping_add(timestamp.unwrap_or(-1) as u64 ^ bits);
            }
            rest = &rest[consumed..];
        }
        Ok(sum + rest.len() as u64)
    }
}

struct Lines(String, Decoder, Summed);

/// Lines of InfluxDB's protocol with four tags and ten fields, of series that are known.
pub(super) fn lines() -> Anything<Box<dyn Path>> {
    const FIELDS: u64 = 10;
    let mut text = String::new();
    for line in 0..ITEMS / FIELDS {
        text += &format!("cpu,hostname=host_{line},region=eu-central-1,rack={line},os=linux ");
        let fields = (0..FIELDS).map(|field| {
            let value = ((line * FIELDS + field) * 7919 % 100_003) as f64 / 100.0;
            format!("usage_{field}={value}")
        });
        text += &fields.collect::<Vec<_>>().join(",");
        text += &format!(" {}\n", 1_700_000_000_000_000_000 + line);
    }
    let decoder = Decoder::new(Precision::Nanoseconds);
    Ok(Box::new(Lines(text, decoder, Summed::default())))
}

impl Path for Lines {
    fn run(&mut self) -> Anything<u64> {
        // Its rows are known after the first run, as those of a sender are.
        let (samples, intake) = (self.2.samples, &mut self.2);
        self.1.decode(self.0.as_bytes(), true, intake);
        match (intake.samples - samples, intake.refused) {
            (ITEMS, 0) => Ok(intake.samples),
            _ => Err("a line was refused".into()),
        }
    }
}

struct Replies(Vec<u8>);

/// The timestamp that TS.ADD answers with.
pub(super) fn reply() -> Anything<Box<dyn Path>> {
    Ok(Box::new(Replies(Vec::new())))
}

impl Path for Replies {
    fn run(&mut self) -> Anything<u64> {
        self.0.clear();
        let mut reply = Reply::new(&mut self.0, Protocol::Resp2);
        for at in 0..ITEMS as i64 {
            reply.integer(1_700_000_000_000 + at);
        }
        Ok(self.0.len() as u64)
    }
}
