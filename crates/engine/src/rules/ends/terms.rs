//! Which series have ended: what retention left nothing of, and nobody made to stay.
//!
//! | ends | when |
//! |---|---|
//! | by the floor | its newest sample is below the floor of the database: nothing of it is visible, and nothing can be written to it that brings a sample back |
//! | by its own retention | its newest sample is older than that, and by a [`slack`], at the time on which the clock and the newest samples agree |
//! | empty | it has no sample, makes no rows for others, and some retention is in force |
//!
//! Invariant: a series whose samples a sender may still want is not ended for a clock alone.
//! Tested by the table below and by `tests/ends`.

use crate::base::options::DropEmpty;
use crate::keyspace::ended::EndedBy;
use crate::series::Series;
use latewood_model::{MadeBy, Timestamp};

/// How long a series stays beyond its own retention: whoever sends a sample once in that time finds
/// it there.
const SLACK_MS_MIN: u64 = 60_000;
const SLACK_MS_MAX: u64 = 86_400_000;

/// By what series are judged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms {
    pub(super) which: DropEmpty,
    /// The oldest timestamp that the database keeps.
    pub(super) floor: Timestamp,
    /// The time by which the retention of single series counts; the smallest one ends none.
    pub(super) now_ms: i64,
}

/// How long a series stays beyond a retention of its own, milliseconds.
fn slack(retention_ms: u64) -> u64 {
    (retention_ms / 16).clamp(SLACK_MS_MIN, SLACK_MS_MAX)
}

impl Terms {
    /// Why a series has ended, if it has. Whether it has a key, or a source that is there, is not
    /// looked at.
    pub(super) fn ended(&self, series: &Series) -> Option<EndedBy> {
        let Some(newest) = series.newest() else {
            return self.is_left_empty(series).then_some(EndedBy::Floor);
        };
        if !self.may_end(series) {
            return None;
        }
        if newest < self.floor {
            return Some(EndedBy::Floor);
        }
        (own_end(series, newest)? < self.now_ms).then_some(EndedBy::Own)
    }

    /// Whether a destination has nothing left that its source would have to go on with.
    pub(super) fn is_over(&self, series: &Series) -> bool {
        match series.newest() {
            None => self.may_end(series),
            Some(_) => self.ended(series).is_some(),
        }
    }

    /// From when on a series that is not written to ends by its own retention, if it ever does.
    pub(super) fn next_own_end(&self, series: &Series) -> Option<i64> {
        let end_ms = own_end(series, series.newest()?)?;
        self.may_end(series).then_some(end_ms)
    }

    fn may_end(&self, series: &Series) -> bool {
        match self.which {
            DropEmpty::Sent => is_sent(series),
            DropEmpty::All => true,
            DropEmpty::None => false,
        }
    }

    /// Whether a series has no sample and nobody made it to be empty, such as the destination of a
    /// compaction policy whose source ended before a bucket closed.
    fn is_left_empty(&self, series: &Series) -> bool {
        let is_in_force = self.floor > Timestamp::MIN || series.retention_ms() > 0;
        self.which != DropEmpty::None && is_in_force && is_sent(series) && series.rules().is_none()
    }
}

/// Whether a sender or a rule of the server made it.
fn is_sent(series: &Series) -> bool {
    matches!(series.marks.made_by(), MadeBy::Sender | MadeBy::Rule)
}

/// When a series with a retention of its own has been past it for the slack.
fn own_end(series: &Series, newest: Timestamp) -> Option<i64> {
    let retention_ms = series.retention_ms();
    let past_ms = newest.saturating_add_unsigned(retention_ms);
    (retention_ms > 0).then(|| past_ms.saturating_add_unsigned(slack(retention_ms)))
}
