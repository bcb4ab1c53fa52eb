//! OpenTSDB's telnet protocol: a `put` for each value, times in seconds.

use std::io::Write;

use super::common::metric;
use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

/// Writing to a `Vec` cannot fail, so no outcome is looked at.
pub(super) fn encode(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    let mut text = Vec::with_capacity(batch.lines.len() * 2_000);
    for &line in &batch.lines {
        let seconds = load.timestamp_ms(line) / 1_000;
        for (field, value) in FIELDS.iter().zip(load.fields(line)) {
            let _ = write!(text, "put {} {seconds} {value}", metric(field));
            for (name, value) in TAGS.iter().zip(load.tags(load.host(line))) {
                let _ = write!(text, " {name}={value}");
            }
            text.push(b'\n');
        }
    }
    text
}
