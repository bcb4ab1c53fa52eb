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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_tags_fields_and_nanoseconds() {
        let load = CpuLoad::new(2, 3, 1);
        let batch = load.batches(&load.order(0.0, 1), 1, 10).remove(0).remove(0);
        let body = String::from_utf8(encode(&load, &batch)).unwrap();
        assert_eq!(body.lines().count(), 6);
        let line = body.lines().nth(3).unwrap();
        assert!(line.starts_with("cpu,hostname=host_1,region="), "{line}");
        assert!(line.ends_with(" 1451606410000000000"), "{line}");
        let user = format!(" usage_user={}i,usage_system=", load.fields(3)[0]);
        assert!(line.contains(&user), "{line}");
        assert_eq!(line.matches('=').count(), 20);
    }
}
