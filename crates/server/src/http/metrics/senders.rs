//! What came by which protocol, and what was read over HTTP.

use super::text::{Kind, Text};
use super::{Shared, count};
use crate::http::{Endpoint, ReadCounters};
use crate::intake::{AGE_BOUNDS_MS, AgeCounters, Counters, Protocol};
use latewood_wire::intake::Reason;

/// A family with one figure of each protocol.
type Row = (&'static str, &'static str, fn(&Counters) -> u64);

const ROWS: &[Row] = &[
    ("intake_samples_total", "Samples taken.", |counters| {
        count(&counters.samples)
    }),
    (
        "intake_bytes_total",
        "Bytes received, uncompressed.",
        |counters| count(&counters.bytes),
    ),
    (
        "intake_strings_total",
        "Values that are texts, which are not stored.",
        |counters| count(&counters.texts),
    ),
    (
        "intake_merged_total",
        "Samples that rounding down to milliseconds merged with the one before.",
        |counters| count(&counters.merged),
    ),
    (
        "intake_failed_total",
        "Samples not applied because the database could not take them.",
        |counters| count(&counters.failed),
    ),
];

/// A family with one figure of each path that reads.
type ReadRow = (&'static str, &'static str, fn(&ReadCounters) -> u64);

const READ_ROWS: &[ReadRow] = &[
    (
        "read_requests_total",
        "Requests to read over HTTP.",
        |counters| count(&counters.requests),
    ),
    (
        "read_failed_total",
        "Requests to read that were refused, or whose answer broke off.",
        |counters| count(&counters.failed),
    ),
    (
        "read_cancelled_total",
        "Answers whose reader left, or took nothing for a minute.",
        |counters| count(&counters.cancelled),
    ),
    (
        "read_items_total",
        "Series, names or values answered.",
        |counters| count(&counters.items),
    ),
    (
        "read_samples_total",
        "Samples, or buckets of samples, answered.",
        |counters| count(&counters.samples),
    ),
    (
        "read_bytes_total",
        "Bytes of answers to requests to read.",
        |counters| count(&counters.bytes),
    ),
];

/// What was read.
pub(super) fn reads(text: &mut Text, shared: &Shared) {
    for (name, help, figure) in READ_ROWS {
        text.family(name, Kind::Counter, help);
        for endpoint in Endpoint::ALL {
            let counters = shared.reads.of(endpoint);
            text.labelled(&[("endpoint", endpoint.name())], figure(counters));
        }
    }
}

pub(super) fn report(text: &mut Text, shared: &Shared) {
    for (name, help, figure) in ROWS {
        text.family(name, Kind::Counter, help);
        for protocol in Protocol::ALL {
            let counters = shared.intake.of(protocol);
            text.labelled(&[("protocol", protocol.name())], figure(counters));
        }
    }
    text.family(
        "intake_refused_total",
        Kind::Counter,
        "Samples and lines refused, by reason.",
    );
    for protocol in Protocol::ALL {
        for (reason, refused) in Reason::ALL.iter().zip(&shared.intake.of(protocol).refused) {
            let labels = [("protocol", protocol.name()), ("reason", reason.name())];
            text.labelled(&labels, count(refused));
        }
    }
    ages(text, shared);
}

/// How old samples were when they came.
fn ages(text: &mut Text, shared: &Shared) {
    text.family(
        "intake_age_seconds",
        Kind::Histogram,
        "How far behind the clock the timestamps of samples were.",
    );
    histogram(text, "redis", &shared.observe.ages);
    for protocol in Protocol::ALL {
        histogram(text, protocol.name(), &shared.intake.of(protocol).ages);
    }
}

fn histogram(text: &mut Text, protocol: &str, ages: &AgeCounters) {
    let protocol = ("protocol", protocol);
    let (counts, sum_ms) = ages.read();
    let mut total = 0;
    for (index, samples) in counts.enumerate() {
        total += samples;
        let bound = AGE_BOUNDS_MS.get(index);
        let le = bound.map_or_else(
            || "+Inf".to_owned(),
            |bound_ms| (*bound_ms as f64 / 1000.0).to_string(),
        );
        text.part("_bucket", &[protocol, ("le", &le)], total);
    }
    text.part("_sum", &[protocol], sum_ms as f64 / 1000.0);
    text.part("_count", &[protocol], total);
}
