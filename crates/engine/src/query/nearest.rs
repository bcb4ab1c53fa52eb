//! The number nearest to a query's span, on either side, that passes its filters.
//!
//! Interpolation skips NaN and filtered samples outside its span as it does inside,
//! so a span that is read in parts gives the same result as one read. Batches whose
//! statistics exclude such a number are not decoded.
//!
//! Tested by `tests/query_outside.rs` and `tests/db_rules`.

use super::filter::Filter;
use super::{RangeQuery, Source};
use crate::base::error::Result;
use crate::series::Snapshot;
use crate::series::merge::MergeSource;
use latewood_model::Sample;

/// Maximum number of samples decoded for one whose value passes: if almost none do,
/// a query reads this much of the history and no more.
const DECODED_MAX: usize = 64 * 1024;

/// The newest number of `snapshot` that passes the filters of `query`, whose span
/// is ignored. Reads backwards until it is found.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn newest(snapshot: Snapshot, query: &RangeQuery) -> Result<Option<Sample>> {
    nearest(snapshot, query, true)
}

/// The oldest such number. Reads forwards until it is found.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn oldest(snapshot: Snapshot, query: &RangeQuery) -> Result<Option<Sample>> {
    nearest(snapshot, query, false)
}

fn nearest(snapshot: Snapshot, query: &RangeQuery, reverse: bool) -> Result<Option<Sample>> {
    let filter = Filter::within(query, snapshot.from, snapshot.to);
    if filter.passes_nothing() {
        return Ok(None);
    }
    let mut left = match query.filter_by_value {
        Some(_) => DECODED_MAX,
        None => usize::MAX,
    };
    let mut source = MergeSource::new(snapshot, reverse)?;
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    while left > 0 {
        if let Some(stats) = source.peek_stats() {
            if filter.is_past(stats.first, stats.last, reverse) {
                break;
            }
            if stats.nan_count == stats.count || filter.drops(&stats) {
                source.skip();
                continue;
            }
            if source.split()? {
                continue;
            }
        }
        if !source.next(&mut timestamps, &mut values)? {
            break;
        }
        left = left.saturating_sub(timestamps.len());
        let (Some(&first), Some(&last)) = (timestamps.first(), timestamps.last()) else {
            continue;
        };
        if filter.is_past(first, last, reverse) {
            break;
        }
        let mut kept = filter.apply(&mut timestamps, &mut values);
        let is_number = |at: &usize| !values[*at].is_nan();
        let found = if reverse {
            kept.rev().find(is_number)
        } else {
            kept.find(is_number)
        };
        if let Some(at) = found {
            return Ok(Some(Sample::new(timestamps[at], values[at])));
        }
    }
    Ok(None)
}
