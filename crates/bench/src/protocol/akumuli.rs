//! Akumuli's protocol: a dictionary gives every host a number with its first line, and a line is
//! a row of ten values behind that number, times in nanoseconds.

use std::io::Write;

use super::common::metric;
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

/// Writing to a `Vec` cannot fail, so no outcome is looked at.
pub(super) fn encode(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    let mut text = Vec::with_capacity(batch.lines.len() * 100);
    for &host in &batch.new_hosts {
        let metrics = FIELDS.map(metric).join("|");
        let _ = write!(text, "*2\r\n+{metrics}");
        for (name, value) in TAGS.iter().zip(load.tags(host)) {
            let _ = write!(text, " {name}={value}");
        }
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
