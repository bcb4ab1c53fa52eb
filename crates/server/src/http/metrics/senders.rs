//! What came by which protocol, and what was read over HTTP.

use super::text::{Kind, Text};
use super::{Shared, count};
use crate::base::clock::now_ms;
use crate::observe::{
    AGE_BOUNDS_MS, AgeCounters, Endpoint, IntakeCounters, Protocol, ReadCounters, Route,
};
use latewood_wire::intake::Reason;
use std::sync::atomic::AtomicU64;

/// A counter: its name, what it counts, and where it stands.
pub(in crate::http) type Row<C> = (&'static str, &'static str, fn(&C) -> &AtomicU64);

/// Counters by their fields: `"NAME" "Help." field;`.
macro_rules! rows {
    ($($name:literal $help:literal $field:ident;)*) => {
        &[$(($name, $help, |of| &of.$field)),*]
    };
}

/// Of each protocol.
pub(in crate::http) const ROWS: &[Row<IntakeCounters>] = rows! {
    "intake_samples_total" "Samples taken." samples;
    "intake_bytes_total" "Bytes received, uncompressed." bytes;
    "intake_strings_total" "Text values, which are not stored." texts;
    "intake_merged_total" "Samples merged with the previous one by rounding to milliseconds." merged;
    "intake_failed_total" "Samples not applied because of a database error." failed;
};

/// Of each path that reads.
pub(in crate::http) const READ_ROWS: &[Row<ReadCounters>] = rows! {
    "read_requests_total" "Read requests over HTTP." requests;
    "read_failed_total" "Read requests that were refused or whose answer was aborted." failed;
    "read_cancelled_total" "Answers that the reader abandoned or did not read for a minute."
        cancelled;
    "read_items_total" "Series, names or values returned." items;
    "read_samples_total" "Samples, or buckets of samples, returned." samples;
    "read_bytes_total" "Bytes of answers to read requests." bytes;
};

/// What was read.
pub(super) fn reads(text: &mut Text, shared: &Shared) {
    let all = Endpoint::ALL.map(|endpoint| (endpoint.name(), shared.protocols.reads.of(endpoint)));
    families(text, READ_ROWS, "endpoint", &all);
}

/// What came.
pub(super) fn report(text: &mut Text, shared: &Shared) {
    let all = Protocol::ALL.map(|protocol| (protocol.name(), shared.protocols.intake.of(protocol)));
    families(text, ROWS, "protocol", &all);
    text.family(
        "intake_refused_total",
        Kind::Counter,
        "Samples and lines refused, by reason.",
    );
    for protocol in Protocol::ALL {
        for (reason, refused) in Reason::ALL
            .iter()
            .zip(&shared.protocols.intake.of(protocol).refused)
        {
            let labels = [("protocol", protocol.name()), ("reason", reason.name())];
            text.labelled(&labels, count(refused));
        }
    }
    ages(text, shared);
    late(text, shared);
}

/// A family for each row, with a figure of each of `all`, told apart by `label`.
fn families<C>(text: &mut Text, rows: &[Row<C>], label: &str, all: &[(&str, &C)]) {
    for (name, help, counter) in rows {
        text.family(name, Kind::Counter, help);
        for (of, counters) in all {
            text.labelled(&[(label, of)], count(counter(counters)));
        }
    }
}

/// How many were late, and by how much in the last hour.
fn late(text: &mut Text, shared: &Shared) {
    let lateness = &shared.observe.lateness;
    text.family(
        "late_samples_total",
        Kind::Counter,
        "Samples older than the newest of their series.",
    );
    for route in Route::ALL {
        text.labelled(&[("route", route.name())], lateness.total(route));
    }
    let sum = lateness.last_hour(now_ms());
    text.family(
        "late_delay_seconds",
        Kind::Gauge,
        "Delay after which this share of the samples of the last hour had come.",
    );
    for (share, name) in [(0.99, "0.99"), (0.999, "0.999")] {
        let delay_s = sum.delay_ms(share) as f64 / 1000.0;
        text.labelled(&[("share", name)], delay_s);
    }
    let help = "Largest age of a late sample of the last hour.";
    text.gauge("late_age_max_seconds", help, sum.max_ms as f64 / 1000.0);
}

/// How old samples were when they came.
fn ages(text: &mut Text, shared: &Shared) {
    text.family(
        "intake_age_seconds",
        Kind::Histogram,
        "Age of samples on arrival.",
    );
    histogram(text, "redis", &shared.observe.ages);
    for protocol in Protocol::ALL {
        histogram(
            text,
            protocol.name(),
            &shared.protocols.intake.of(protocol).ages,
        );
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
