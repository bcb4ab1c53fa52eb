//! What the protocol costs: nanoseconds per command parsed, number read or
//! written, reply skipped. The median of 15 rounds; run it on a quiet machine.
//!
//! `cargo bench -p latewood-wire`

use latewood_wire::resp::{
    Limits, Parsed, Parser, Protocol, Reply, double, encode_command, number, skip_reply,
};
use std::hint::black_box;
use std::time::Instant;

const ITEMS: usize = 50_000;
const ROUNDS: usize = 15;
const LIMITS: Limits = Limits {
    arguments_max: 1024 * 1024,
    argument_bytes_max: 16 * 1024 * 1024,
    command_bytes_max: 64 * 1024 * 1024,
    inline_bytes_max: 64 * 1024,
    authenticated: true,
};

fn main() {
    let values: Vec<f64> = (0..ITEMS)
        .map(|i| ((i * 7919) % 100_003) as f64 / 100.0)
        .collect();
    let noisy: Vec<f64> = values.iter().map(|value| (value + 1.0).sqrt()).collect();
    let texts: Vec<String> = values.iter().map(f64::to_string).collect();
    let noisy_texts: Vec<String> = noisy.iter().map(f64::to_string).collect();

    let commands = commands(&texts);
    measure("parse TS.ADD, 4 arguments", || parse(&commands, |_, _| 0));
    measure("  and its timestamp and value", || {
        parse(&commands, read_sample)
    });
    measure("parse value, 2 decimals", || read(&texts));
    measure("parse value, full precision", || read(&noisy_texts));
    for (name, values) in [("2 decimals", &values), ("full precision", &noisy)] {
        measure(&format!("write value, {name}, RESP2"), || {
            write(values, double::append_resp2)
        });
        measure(&format!("write value, {name}, RESP3"), || {
            write(values, double::append_resp3)
        });
    }
    let replies = replies();
    measure("write integer reply, 13 digits", || {
        replies_bytes(&mut Vec::new())
    });
    measure("skip integer reply", || skip(&replies));
}

/// Runs `work`, which processes [`ITEMS`] items, and prints the median time per item.
fn measure(name: &str, mut work: impl FnMut() -> u64) {
    let mut nanoseconds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            black_box(work());
            start.elapsed().as_nanos() as f64 / ITEMS as f64
        })
        .collect();
    nanoseconds.sort_by(f64::total_cmp);
    println!("{name:<36} {:>6.1} ns", nanoseconds[ROUNDS / 2]);
}

fn commands(values: &[String]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (i, value) in values.iter().enumerate() {
        let key = format!("sensor:{:04}", i % 1000);
        let timestamp = (1_700_000_000_000 + i).to_string();
        encode_command(&mut bytes, &["TS.ADD", &key, &timestamp, value]);
    }
    bytes
}

fn parse(bytes: &[u8], read: impl Fn(&Parser, &[u8]) -> u64) -> u64 {
    let (mut parser, mut rest, mut sum) = (Parser::new(), bytes, 0u64);
    while let Ok(Parsed::Command { consumed }) = parser.parse(rest, &LIMITS) {
        sum = sum.wrapping_add(parser.command().len() as u64 + read(&parser, rest));
        rest = &rest[consumed..];
    }
    assert!(rest.is_empty());
    sum
}

fn read_sample(parser: &Parser, bytes: &[u8]) -> u64 {
    let command = parser.command();
    let timestamp = number::parse_timestamp(command.arg(bytes, 2)).expect("written above");
    let value = number::parse_value(command.arg(bytes, 3)).expect("written above");
    timestamp as u64 ^ value.to_bits()
}

fn read(texts: &[String]) -> u64 {
    let values = texts
        .iter()
        .map(|text| number::parse_value(text.as_bytes()));
    values.fold(0, |sum, value| sum ^ value.map_or(0, f64::to_bits))
}

fn write(values: &[f64], append: fn(&mut Vec<u8>, f64)) -> u64 {
    let mut out = Vec::with_capacity(64);
    let mut bytes = 0;
    for value in values {
        out.clear();
        append(&mut out, *value);
        bytes += out.len() as u64;
    }
    bytes
}

fn replies() -> Vec<u8> {
    let mut out = Vec::new();
    replies_bytes(&mut out);
    out
}

fn replies_bytes(out: &mut Vec<u8>) -> u64 {
    out.reserve(ITEMS * 16);
    let mut reply = Reply::new(out, Protocol::Resp2);
    for i in 0..ITEMS as i64 {
        reply.integer(1_700_000_000_000 + i);
    }
    out.len() as u64
}

fn skip(bytes: &[u8]) -> u64 {
    let (mut rest, mut count) = (bytes, 0);
    while let Ok(Some((reply_bytes, kind))) = skip_reply(rest) {
        count += kind as u64 + 1;
        rest = &rest[reply_bytes..];
    }
    count
}
