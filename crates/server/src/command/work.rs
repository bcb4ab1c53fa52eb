//! How much work a read is, before it is done: in samples that are read, or in as many
//! as take the time.
//!
//! The numbers are about right on any machine; they decide what an event loop does
//! itself, and nothing else. Tested by `tests/resp/long_reads.rs`.

use super::call::Call;
use latewood_engine::{RangeQuery, View};
use latewood_model::Matcher;

/// The work that an event loop does for one command while its other connections
/// wait. What has more runs on a reader thread.
pub(crate) const LOOP_SAMPLES_MAX: u64 = 128 * 1024;
/// The work of a read that others of the same user may have to wait for.
const BRIEF_SAMPLES_MAX: u64 = 16 * LOOP_SAMPLES_MAX;
/// The work of a read of which only a part is known.
pub(crate) const UNKNOWN: u64 = u64::MAX;
/// Samples that are read in the time that a row takes: those that become
/// buckets make few.
const SAMPLES_PER_ROW: u64 = 8;
/// The same of a series that is found and looked at.
pub(crate) const SAMPLES_PER_SERIES: u64 = 64;
/// The same of a sample that is copied.
pub(crate) const SAMPLES_PER_COPIED: u64 = 2;
/// The same of a key, a name or a value that is compared or written.
const SAMPLES_PER_NAME: u64 = 16;

/// The work of a series, or of a group, of which `samples` samples are read: these,
/// or as many as its rows are worth, `filled` at most where empty buckets are rows.
pub(crate) fn of_rows(query: &RangeQuery, samples: u64, filled: u64) -> u64 {
    let rows = match query.aggregation {
        Some(_) => filled,
        None => samples,
    };
    samples.max(rows.saturating_mul(SAMPLES_PER_ROW))
}

/// The work of a query of one series.
pub(crate) fn of_view(query: &RangeQuery, view: &View) -> u64 {
    if view.is_away() {
        return UNKNOWN;
    }
    let filled = match query.aggregation {
        Some(_) => view.filled_rows_max(query),
        None => 0,
    };
    of_rows(query, view.samples_about(query), filled)
}

/// The work of a query of `series` series with about `samples` samples in its span.
pub(crate) fn of_series(query: &RangeQuery, series: usize, samples: u64) -> u64 {
    let series = series as u64;
    let count = query.count.filter(|_| {
        // For other queries, the samples needed for `count` rows are unknown.
        query.aggregation.is_none() && query.filter_by_value.is_none()
    });
    let samples = count.map_or(samples, |count| samples.min(count.saturating_mul(series)));
    let filled = query.filled_rows_max().saturating_mul(series);
    of_rows(query, samples, filled).saturating_add(series * SAMPLES_PER_SERIES)
}

/// The work of looking at `names` keys, names or values.
pub(crate) fn of_names(names: usize) -> u64 {
    names as u64 * SAMPLES_PER_NAME
}

/// Whether a read of this work, in samples, ends soon.
pub(crate) fn is_brief(samples: u64) -> bool {
    samples <= BRIEF_SAMPLES_MAX
}

/// The span that a query of many series reads.
pub(crate) fn span_of(query: &RangeQuery) -> (i64, i64) {
    if query.latest || query.needs_neighbours() {
        (i64::MIN, i64::MAX)
    } else {
        (query.from, query.to)
    }
}

impl Call<'_> {
    /// The work of a read in the span `from..=to` that is `samples` where all of its blocks are
    /// on this machine.
    pub(crate) fn work_in(&self, span: (i64, i64), samples: u64) -> u64 {
        if self.shared.db.is_away(span.0, span.1) {
            UNKNOWN
        } else {
            samples
        }
    }

    /// The work of finding the series that pass `matchers`.
    pub(crate) fn work_of_finding(&self, matchers: &[Matcher]) -> u64 {
        self.shared.db.series_about(matchers) * SAMPLES_PER_SERIES
    }
}

#[cfg(test)]
mod tests {
    use crate::client::Session;
    use crate::clients::ClientInfo;
    use crate::command::args::Args;
    use crate::command::call::Call;
    use crate::command::registry::COMMANDS;
    use crate::command::{dispatch, transaction};
    use crate::options::testing;
    use crate::state::Shared;
    use latewood_engine::{Cancelled, Durability};
    use latewood_wire::resp::Parser;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The length of the reply to `line`.
    fn reply_bytes(shared: &Shared, line: &str, cancelled: Cancelled<'_>) -> usize {
        let info = Arc::new(ClientInfo::new(1, String::new(), String::new()));
        let mut session = Session::new(info, &shared.runtime.users, Durability::Interval);
        let (mut parser, mut out, line) = (Parser::new(), Vec::new(), format!("{line}\r\n"));
        parser.parse(line.as_bytes(), &transaction::LIMITS).unwrap();
        dispatch::execute(&mut Call {
            commands: &COMMANDS,
            args: Args::new(parser.command(), line.as_bytes()),
            out: &mut out,
            session: &mut session,
            shared,
            cancelled,
            rest: None,
        });
        out.len()
    }

    /// Has the read `line` cancelled at one of its looks: it replies with more than where nobody
    /// wants it from the start, and less than the whole.
    fn end_within(shared: &Shared, line: &str) {
        let looks = AtomicU64::new(0);
        let cancelled_at = |look| {
            looks.store(0, Ordering::Relaxed);
            let is_cancelled = || looks.fetch_add(1, Ordering::Relaxed) >= look;
            reply_bytes(shared, line, Some(&is_cancelled))
        };
        let nothing = cancelled_at(0);
        let whole = cancelled_at(u64::MAX);
        let all = looks.load(Ordering::Relaxed);
        let is_within = |bytes: usize| nothing < bytes && bytes < whole;
        // The first and the last looks one by one, since some do most of their work there.
        let (first, last) = (1..64.min(all), all.saturating_sub(64)..all);
        let mut places = first.chain(last).chain((1..64).map(|part| all * part / 64));
        assert!(
            places.any(|look| is_within(cancelled_at(look))),
            "{line} has no middle: {nothing} and {whole} bytes at {all} looks"
        );
    }

    #[test]
    fn a_read_that_nobody_wants_ends_early() {
        let shared = testing::shared();
        for key in 0..3000 {
            for at in 1000..1003 {
                let add = format!("TS.ADD {key} {at} {at} LABELS all x one {key} name{key} x");
                assert_eq!(reply_bytes(&shared, &add, None), 7);
            }
        }
        // Late ones have each chunk decoded to count the samples.
        let late = (100_000..220_000).step_by(60);
        for at in (100_000..220_000).chain(late) {
            let add = format!("TS.ADD 0 {at} {at} ON_DUPLICATE LAST");
            assert_eq!(reply_bytes(&shared, &add, None), 9);
        }
        for line in [
            "DUMP 0",
            "TS.INFO 0",
            "TS.RANGE 0 - +",
            "TS.MGET FILTER all=x",
            "TS.QUERYINDEX all=x",
            "TS.QUERYLABELS LABELS",
            "TS.QUERYLABELS VALUES one FILTER all=x",
            "TS.MRANGE - + FILTER all=x",
            "TS.MRANGE - + FILTER all=x GROUPBY one REDUCE sum",
            "TS.NRANGE 2 0 1 - +",
        ] {
            end_within(&shared, line);
        }
    }
}
