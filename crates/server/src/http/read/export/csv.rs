//! CSV with a header: the labels, `__timestamp__`, `__value__`.
//!
//! A label that a series does not have is empty. Values are numbers, `NaN`,
//! `+Inf` or `-Inf`, as in Prometheus' text format. Quotes and line ends are
//! those of RFC 4180.

use super::json::put_finite;
use super::table::{TIMESTAMP, VALUE};
use crate::http::read::walk::Part;

/// The rows under way.
pub(super) struct Writer {
    labels: Vec<String>,
    is_begun: bool,
    /// The labels of the series that is being written, as they begin a row.
    row: Vec<u8>,
}

impl Writer {
    /// Rows with these labels.
    pub(super) fn new(labels: Vec<String>) -> Self {
        Self {
            labels,
            is_begun: false,
            row: Vec::new(),
        }
    }

    /// Appends the header, once.
    pub(super) fn begin(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.is_begun, true) {
            return;
        }
        for name in &self.labels {
            put_cell(name, out);
            out.push(b',');
        }
        out.extend_from_slice(format!("{TIMESTAMP},{VALUE}\r\n").as_bytes());
    }

    /// Appends rows.
    pub(super) fn put(&mut self, part: &Part<'_>, out: &mut Vec<u8>) {
        self.begin(out);
        self.row.clear();
        let mut held = part.labels.iter().peekable();
        // Both are sorted.
        for name in &self.labels {
            if let Some((_, value)) = held.next_if(|(held, _)| held == name) {
                put_cell(value, &mut self.row);
            }
            self.row.push(b',');
        }
        let mut buffer = itoa::Buffer::new();
        for (timestamp, value) in part.timestamps.iter().zip(part.values) {
            out.extend_from_slice(&self.row);
            out.extend_from_slice(buffer.format(*timestamp).as_bytes());
            out.push(b',');
            put_value(*value, out);
            out.extend_from_slice(b"\r\n");
        }
    }
}

fn put_value(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        put_finite(value, out);
    } else if value.is_nan() {
        out.extend_from_slice(b"NaN");
    } else {
        out.extend_from_slice(if value > 0.0 { b"+Inf" } else { b"-Inf" });
    }
}

fn put_cell(text: &str, out: &mut Vec<u8>) {
    let is_plain = |byte: &u8| !matches!(byte, b'"' | b',' | b'\r' | b'\n');
    if text.as_bytes().iter().all(is_plain) {
        return out.extend_from_slice(text.as_bytes());
    }
    out.push(b'"');
    for &byte in text.as_bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}
