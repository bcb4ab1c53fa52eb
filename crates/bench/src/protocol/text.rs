//! The forms of text: InfluxDB's line protocol, a line for a line; OpenTSDB's telnet, a `put` for each
//! value; Akumuli's, where a dictionary gives each host a number with its first line, and a line is a
//! row of ten values behind that number. Writing to a `Vec` cannot fail, so no outcome is looked at.

use std::io::Write;

use super::common::metric;
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

pub(super) fn influx(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    let mut text = Vec::with_capacity(batch.lines.len() * 400);
    for &line in &batch.lines {
        text.extend_from_slice(b"cpu");
        tags(&mut text, load, load.host(line), ',');
        for (at, (name, value)) in FIELDS.iter().zip(load.fields(line)).enumerate() {
            let between = if at == 0 { ' ' } else { ',' };
            let _ = write!(text, "{between}{name}={value}i");
        }
        let _ = writeln!(text, " {}000000", load.timestamp_ms(line));
    }
    text
}

pub(super) fn opentsdb(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    let mut text = Vec::with_capacity(batch.lines.len() * 2_000);
    for &line in &batch.lines {
        let seconds = load.timestamp_ms(line) / 1_000;
        for (field, value) in FIELDS.iter().zip(load.fields(line)) {
            let _ = write!(text, "put {} {seconds} {value}", metric(field));
            tags(&mut text, load, load.host(line), ' ');
            text.push(b'\n');
        }
    }
    text
}

pub(super) fn akumuli(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    let mut text = Vec::with_capacity(batch.lines.len() * 100);
    for &host in &batch.new_hosts {
        let _ = write!(text, "*2\r\n+{}", FIELDS.map(metric).join("|"));
        tags(&mut text, load, host, ' ');
        let _ = write!(text, "\r\n:{host}\r\n");
    }
    for &line in &batch.lines {
        let (host, ms) = (load.host(line), load.timestamp_ms(line));
        let _ = write!(text, ":{host}\r\n:{ms}000000\r\n*{}\r\n", FIELDS.len());
        for value in load.fields(line) {
            let _ = write!(text, ":{value}\r\n");
        }
    }
    text
}

fn tags(text: &mut Vec<u8>, load: &CpuLoad, host: u32, before: char) {
    for (name, value) in TAGS.iter().zip(load.tags(host)) {
        let _ = write!(text, "{before}{name}={value}");
    }
}
