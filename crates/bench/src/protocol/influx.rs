//! InfluxDB line protocol: a line is a line, times in nanoseconds.

use std::io::Write;

use crate::workload::hosts::{Batch, CpuLoad, FIELDS, TAGS};

/// Writing to a `Vec` cannot fail, so no outcome is looked at.
pub(super) fn encode(load: &CpuLoad, batch: &Batch) -> Vec<u8> {
    let mut text = Vec::with_capacity(batch.lines.len() * 400);
    for &line in &batch.lines {
        text.extend_from_slice(b"cpu");
        for (name, value) in TAGS.iter().zip(load.tags(load.host(line))) {
            let _ = write!(text, ",{name}={value}");
        }
        for (at, (name, value)) in FIELDS.iter().zip(load.fields(line)).enumerate() {
            let between = if at == 0 { ' ' } else { ',' };
            let _ = write!(text, "{between}{name}={value}i");
        }
        let _ = writeln!(text, " {}000000", load.timestamp_ms(line));
    }
    text
}
