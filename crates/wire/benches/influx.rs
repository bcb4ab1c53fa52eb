//! What InfluxDB's line protocol costs: nanoseconds per value decoded, for
//! lines of ten integers and ten tags as a server's CPU figures are sent, and
//! of long floats. The median of 15 rounds; run it on a quiet machine.
//!
//! `cargo bench -p latewood-wire --bench influx`

use latewood_wire::influx::{Decoder, Precision};
use latewood_wire::testing::Summed;
use std::hint::black_box;
use std::time::Instant;

const HOSTS: usize = 4000;
const FIELDS: usize = 10;
const TICKS: usize = 3;
const ROUNDS: usize = 15;

fn main() {
    let whole = |n: usize| format!("{}i", n * 7919 % 101);
    let long = |n: usize| ((n * 7919 % 100_003) as f64).sqrt().to_string();
    let short = |n: usize| ((n * 7919 % 100_003) as f64 / 100.0).to_string();
    for (name, is_shuffled) in [("in order", false), ("hosts shuffled each tick", true)] {
        measure(&format!("integers, {name}"), &lines(whole, is_shuffled));
        measure(&format!("2 decimals, {name}"), &lines(short, is_shuffled));
        measure(
            &format!("full precision, {name}"),
            &lines(long, is_shuffled),
        );
    }
}

/// Lines of several ticks; shuffled, hosts do not repeat their order.
fn lines(value: impl Fn(usize) -> String, is_shuffled: bool) -> String {
    let mut text = String::new();
    for tick in 0..TICKS {
        for place in 0..HOSTS {
            let stride = if is_shuffled {
                [1, 1007, 2003][tick]
            } else {
                1
            };
            let host = place * stride % HOSTS;
            text.push_str(&format!(
                "cpu,hostname=host_{host},region=eu-central-1,datacenter=eu-central-1a,rack={},\
                 os=Ubuntu16.04LTS,arch=x64,team=SF,service={},service_version=1,\
                 service_environment=production ",
                host % 100,
                host % 20
            ));
            for field in 0..FIELDS {
                let name = [
                    "user", "system", "idle", "nice", "iowait", "irq", "softirq", "steal",
                ];
                let name = name
                    .get(field)
                    .copied()
                    .unwrap_or(["guest", "guest_nice"][field % 2]);
                let comma = if field == 0 { "" } else { "," };
                let value = value(tick * 1_000_003 + host * FIELDS + field);
                text.push_str(&format!("{comma}usage_{name}={value}"));
            }
            text.push_str(&format!(
                " {}\n",
                1_700_000_000_000_000_000 + tick as u64 * 10_000_000_000
            ));
        }
    }
    text
}

fn measure(name: &str, text: &str) {
    let mut intake = Summed::default();
    let mut decoder = Decoder::new(Precision::Nanoseconds);
    decoder.decode(text.as_bytes(), true, &mut intake);
    assert_eq!(intake.refused, 0, "{name}");
    let values = intake.samples as f64;
    let mut nanoseconds: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            black_box(decoder.decode(black_box(text.as_bytes()), true, &mut intake));
            start.elapsed().as_nanos() as f64 / values
        })
        .collect();
    nanoseconds.sort_by(f64::total_cmp);
    let bytes = text.len() as f64 / values;
    println!(
        "{name:<40} {:6.1} ns per value, {bytes:.1} bytes",
        nanoseconds[ROUNDS / 2]
    );
}
