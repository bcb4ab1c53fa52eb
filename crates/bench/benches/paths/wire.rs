//! Commands in, replies out.

use latewood_wire::resp::{Limits, Parsed, Parser, Protocol, Reply, encode_command, number};

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
