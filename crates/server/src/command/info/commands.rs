//! The sections commandstats, errorstats and latencystats of INFO.

use super::source::{Source, field};
use std::fmt::Write;

pub(super) fn commands(text: &mut String, source: &Source<'_>) {
    for row in source.shared.observe.commands.rows() {
        let figures = row.figures();
        let (calls, rejected, failed) = (figures.calls, figures.rejected, figures.failed);
        if calls + rejected + failed == 0 {
            continue;
        }
        let usec = figures.duration_ns / 1000;
        let each = figures.duration_ns as f64 / 1000.0 / calls.max(1) as f64;
        let line = format!(
            "calls={calls},usec={usec},usec_per_call={each:.2},rejected_calls={rejected},\
             failed_calls={failed}"
        );
        field(text, &format!("cmdstat_{}", row.name), line);
    }
}

pub(super) fn errors(text: &mut String, source: &Source<'_>) {
    for (code, count) in source.shared.observe.errors.by_code() {
        // A code with a separator in it would break the line for its readers.
        let code = code.replace([':', '\r', '\n'], "_");
        let line = format!("count={count}");
        field(text, &format!("errorstat_{code}"), line);
    }
}

pub(super) fn latencies(text: &mut String, source: &Source<'_>) {
    let observe = &source.shared.observe;
    let percentiles = observe.percentiles.read().clone();
    for row in observe.commands.rows() {
        let counts = row.durations.counts();
        if counts.total() == 0 {
            continue;
        }
        let mut line = String::new();
        for percent in &percentiles {
            let separator = if line.is_empty() { "" } else { "," };
            let us = counts.percentile_ns(*percent) as f64 / 1000.0;
            let _ = write!(line, "{separator}p{percent}={us:.3}");
        }
        field(
            text,
            &format!("latency_percentiles_usec_{}", row.name),
            line,
        );
    }
}
