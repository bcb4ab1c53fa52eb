//! The number that lies nearest to a query's span, on either side.
//!
//! What interpolates passes over NaN outside its span as it does inside: so a
//! span that is read in parts gives what it gives in one. Tested by
//! `tests/query_many.rs` and `tests/db_rules.rs`.

use super::Source;
use super::merge::MergeSource;
use crate::error::Result;
use crate::series::Snapshot;
use latewood_model::Sample;

/// The newest number of `snapshot`. Reads backwards until there is one.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn newest(snapshot: Snapshot) -> Result<Option<Sample>> {
    nearest(snapshot, true)
}

/// The oldest number of `snapshot`. Reads forwards until there is one.
///
/// # Errors
/// `Corrupt`.
pub(crate) fn oldest(snapshot: Snapshot) -> Result<Option<Sample>> {
    nearest(snapshot, false)
}

fn nearest(snapshot: Snapshot, reverse: bool) -> Result<Option<Sample>> {
    let span = snapshot.from..=snapshot.to;
    let mut source = MergeSource::new(snapshot, reverse)?;
    let (mut timestamps, mut values) = (Vec::new(), Vec::new());
    loop {
        let described = source.peek_stats();
        if described.is_some_and(|stats| stats.nan_count == stats.count) {
            source.skip();
            continue;
        }
        if !source.next(&mut timestamps, &mut values)? {
            return Ok(None);
        }
        let is_it = |at: &usize| span.contains(&timestamps[*at]) && !values[*at].is_nan();
        let found = match reverse {
            true => (0..timestamps.len()).rev().find(is_it),
            false => (0..timestamps.len()).find(is_it),
        };
        if let Some(at) = found {
            return Ok(Some(Sample::new(timestamps[at], values[at])));
        }
    }
}
