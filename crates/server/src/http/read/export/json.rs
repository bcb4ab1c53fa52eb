//! Lines of JSON for the samples of a series:
//! `{"metric":{"__name__":"up"},"values":[1],"timestamps":[1700000000000]}`.
//!
//! JSON has no NaN and no infinity: they are `null`, `"Infinity"` and
//! `"-Infinity"`, as in VictoriaMetrics, which reads them back.

use crate::http::read::series::put_labels;
use crate::http::read::walk::Part;
use itoa::Buffer;

/// Whole numbers up to here are written without an exponent or a point.
const WHOLE_MAX: f64 = (1u64 << 53) as f64;

/// Appends lines of at most `rows` samples.
pub(super) fn put(part: &Part<'_>, rows: usize, out: &mut Vec<u8>) {
    let mut metric = b"{\"metric\":".to_vec();
    put_labels(part.labels, &mut metric);
    let lines = part.timestamps.chunks(rows).zip(part.values.chunks(rows));
    for (timestamps, values) in lines {
        out.extend_from_slice(&metric);
        put_samples(timestamps, values, out);
    }
}

fn put_samples(timestamps: &[i64], values: &[f64], out: &mut Vec<u8>) {
    out.extend_from_slice(b",\"values\":[");
    for (index, value) in values.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        put_value(*value, out);
    }
    out.extend_from_slice(b"],\"timestamps\":[");
    let mut buffer = Buffer::new();
    for (index, timestamp) in timestamps.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.extend_from_slice(buffer.format(*timestamp).as_bytes());
    }
    out.extend_from_slice(b"]}\n");
}

fn put_value(value: f64, out: &mut Vec<u8>) {
    if value.is_finite() {
        put_finite(value, out);
    } else if value.is_nan() {
        out.extend_from_slice(b"null");
    } else {
        let text: &[u8] = if value > 0.0 {
            b"\"Infinity\""
        } else {
            b"\"-Infinity\""
        };
        out.extend_from_slice(text);
    }
}

/// Appends a finite number, in the fewest digits that read back as the same.
pub(super) fn put_finite(value: f64, out: &mut Vec<u8>) {
    let is_whole = value.trunc() == value && value.abs() < WHOLE_MAX;
    // Minus zero keeps its sign only with a point.
    if is_whole && !(value == 0.0 && value.is_sign_negative()) {
        out.extend_from_slice(Buffer::new().format(value as i64).as_bytes());
    } else {
        out.extend_from_slice(zmij::Buffer::new().format_finite(value).as_bytes());
    }
}
