//! Opening an existing log: which of its groups count.
//!
//! [`crate::log::table`] says what every state of the log means after a crash, in
//! two decision tables; a [`Walk`] along the segments carries it out.
//!
//! A crash may lose, keep or tear anything that no sync covered, so a missing
//! group means one of two things. If anything valid in the log says that this
//! group was durable once (every group and every segment header carries the
//! newest durable sequence its writer knew), the disk lost what it had
//! promised: **damage**, which is reported and kept in quarantine while the
//! rest is read ([`crate::log::holes`]), or refused where the options say so.
//! Otherwise the group was never acknowledged as durable: a **torn tail**, and
//! the log ends there, even where later groups survived.
//!
//! What is found is compared with the disk and made durable first: a sync that failed
//! before leaves pages in memory that will never be on disk.
//!
//! The log goes on in a fresh segment whose first sequence is where the old
//! one was cut. A segment ends where a later one begins, so groups behind a
//! cut can never come back. Tested by the exhaustive tests beside the tables
//! and by `tests/log_crash.rs`.

use crate::base::error::Result;
use crate::io::Env;
use crate::log::found::{FoundSegment, find, unsupported};
use crate::log::options::Position;
use crate::log::replay::{LogStart, Replay, with_workers};
use crate::log::report::{OnDamage, Recovered};
use crate::log::segment::HeaderState;
use crate::log::walk::{Begin, Walk};
use std::path::Path;

/// Replays the log in `dir` into `sink` and makes what it found durable,
/// unless it only looks. Groups up to `durable` were durable once, as the
/// manifest knows.
pub(crate) fn recover(
    env: &Env,
    dir: &Path,
    on_damage: OnDamage<'_>,
    durable: Position,
    sink: &dyn Replay,
) -> Result<Recovered> {
    let started_ns = env.clock.monotonic_ns();
    let found = find(env, dir, !matches!(on_damage, OnDamage::Look))?;
    let is_later = |segment: &&FoundSegment| matches!(segment.header, HeaderState::Unknown(_));
    if let Some(segment) = found.iter().find(is_later) {
        return Err(unsupported(segment));
    }
    let headers = || found.iter().filter_map(FoundSegment::started);
    let needed = headers().map(|header| header.start.max(1)).max();
    let begins = match needed {
        Some(start) => LogStart::At(Position(start)),
        None if durable.0 > 0 && any_holds(&found)? => LogStart::Damaged,
        None => LogStart::None,
    };
    sink.begins(begins)?;
    let start = needed.unwrap_or(durable.0.saturating_add(1));
    // The oldest segment that is needed begins at or before `start`.
    let expected = found
        .iter()
        .filter_map(|segment| Some((segment.started()?.first_sequence, segment.limit)))
        .filter(|&(first, limit)| first <= start && first < limit)
        .map(|(first, _)| first)
        .max()
        .unwrap_or(start);
    let begin = Begin {
        start,
        expected,
        durable: durable.0,
        is_headless: begins == LogStart::Damaged,
    };
    let segment_of = |position: Position| {
        let holds = |segment: &&FoundSegment| {
            let header = segment.started();
            header.is_some_and(|header| header.first_sequence <= position.0)
                && position.0 < segment.limit
        };
        let segment = found.iter().find(holds);
        segment.map_or_else(|| dir.to_owned(), |segment| segment.path.clone())
    };
    let mut recovered = with_workers(sink, &segment_of, |dispatcher| {
        Walk::along(env, on_damage, dispatcher, &found, begin)
    })?;
    recovered.report.elapsed_ns = env.clock.monotonic_ns() - started_ns;
    Ok(recovered)
}

/// Whether one of the segments, none of which has a header, holds anything.
fn any_holds(found: &[FoundSegment]) -> Result<bool> {
    for segment in found {
        let is_headless = !matches!(segment.header, HeaderState::Other);
        if is_headless && segment.holds_anything()? {
            return Ok(true);
        }
    }
    Ok(false)
}
