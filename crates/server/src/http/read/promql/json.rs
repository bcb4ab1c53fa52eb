//! Parts of an answer as Prometheus' JSON.

use crate::http::read::series::put_labels;
use latewood_promql::column::{Column, Grid};
use latewood_promql::labels::Labels;
use latewood_promql::number::{push_json, push_seconds};
use serde_json::json;

/// Warnings, and information, that are told of.
const ANNOTATIONS_MAX: usize = 10;

pub(super) fn put_head(kind: &str, out: &mut Vec<u8>) {
    let head = format!("{{\"status\":\"success\",\"data\":{{\"resultType\":\"{kind}\",\"result\":");
    out.extend_from_slice(head.as_bytes());
}

/// Appends `,"warnings":[...]`, unless there are none.
pub(super) fn put_texts(name: &str, one: &str, mut texts: Vec<String>, out: &mut Vec<u8>) {
    if texts.is_empty() {
        return;
    }
    let omitted = texts.len().saturating_sub(ANNOTATIONS_MAX);
    if omitted > 0 {
        texts.truncate(ANNOTATIONS_MAX);
        texts.push(format!("{omitted} more {one} annotations omitted"));
    }
    out.extend_from_slice(format!(",\"{name}\":").as_bytes());
    out.extend_from_slice(json!(texts).to_string().as_bytes());
}

/// Appends `{"metric":{...}`.
pub(super) fn put_metric(labels: &Labels, out: &mut Vec<u8>) {
    out.extend_from_slice(b"{\"metric\":");
    put_labels(labels, out);
}

/// What stands before the value at each step: `[1700000000.123,"`, written once.
pub(super) struct Stamps {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Stamps {
    pub(super) fn of(grid: Grid) -> Self {
        let (mut text, mut ends) = (Vec::new(), Vec::with_capacity(grid.steps));
        for step in 0..grid.steps {
            text.push(b'[');
            push_seconds(&mut text, grid.time_ms(step));
            text.extend_from_slice(b",\"");
            ends.push(text.len());
        }
        Self { text, ends }
    }

    fn get(&self, step: usize) -> &[u8] {
        let start = step.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[step]]
    }
}

pub(super) fn put_column(labels: &Labels, column: &Column, stamps: &Stamps, out: &mut Vec<u8>) {
    put_metric(labels, out);
    out.extend_from_slice(b",\"values\":[");
    for (at, step) in column.present().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        out.extend_from_slice(stamps.get(step));
        push_json(out, column.values[step]);
        out.extend_from_slice(b"\"]");
    }
    out.extend_from_slice(b"]}");
}

/// Appends `[1700000000.123,"1.5"]`.
pub(super) fn put_sample(time_ms: i64, value: f64, out: &mut Vec<u8>) {
    out.push(b'[');
    push_seconds(out, time_ms);
    out.extend_from_slice(b",\"");
    push_json(out, value);
    out.extend_from_slice(b"\"]");
}
