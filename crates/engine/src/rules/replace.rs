//! Replacing rows of a series that a reader of marks computes again
//! ([`crate::keyspace::watches`]).
//!
//! They are written as the rows of compaction rules are. Tested by `tests/watches`.

use super::Rules;
use super::backfill::Wanted;
use super::rows::ROWS_MAX;
use crate::base::error::{Error, ErrorKind, Result};
use crate::io::waiting::fetching;
use crate::keyspace::admission::admit_write;
use crate::log::Position;
use crate::series::Series;
use crate::series::shard::ShardState;
use latewood_model::{Sample, SeriesId, Timestamp};

/// What [`crate::Db::replace_rows`] did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Replaced {
    /// Rows that are written.
    pub written: usize,
    /// Gaps in which there were samples.
    pub deleted: usize,
    /// Rows that are not kept: older than retention, or than the floor of the disk budget.
    pub refused: usize,
    /// Where all of it is in the log.
    pub position: Position,
}

impl Rules {
    /// See [`crate::Db::replace_rows`].
    pub(crate) fn replace_rows(
        &self,
        key: &[u8],
        gaps: &[(Timestamp, Timestamp)],
        rows: &[Sample],
    ) -> Result<Replaced> {
        admit_write(&self.core)?;
        self.purge(key)?;
        // What it has written may be read again by rules of this series.
        fetching(|| self.recompute_key(key, Wanted::Nothing))?;
        let mut done = Replaced::default();
        for gaps in gaps.chunks(ROWS_MAX) {
            self.with_rows(key, &mut done, |state, id, done| {
                for &(from, to) in gaps {
                    let deleted = fetching(|| self.delete_rows(state, id, from, to))?;
                    done.deleted += usize::from(deleted.is_some());
                    self.core.log_long_group(state)?;
                }
                Ok(())
            })?;
        }
        let floor = self.core.store.blocks.floor().max(0);
        let kept = &rows[rows.partition_point(|row| row.timestamp < floor)..];
        done.refused = rows.len() - kept.len();
        for rows in kept.chunks(ROWS_MAX) {
            self.with_rows(key, &mut done, |state, id, done| {
                let refused = fetching(|| self.put_rows(state, id, rows))?;
                done.refused += refused;
                done.written += rows.len() - refused;
                Ok(())
            })?;
        }
        Ok(done)
    }

    /// Runs `write` under the lock of a series, and hands its records to the log.
    fn with_rows(
        &self,
        key: &[u8],
        done: &mut Replaced,
        write: impl FnOnce(&mut ShardState, SeriesId, &mut Replaced) -> Result<()>,
    ) -> Result<()> {
        let (mut state, id) = self.core.lock_series(key)?;
        let series = state.series(id);
        if series.and_then(Series::source).is_some() {
            let text = "a compaction rule writes this series: no other rows can be written to it";
            return Err(Error::new(ErrorKind::Invalid, text));
        }
        if series.is_some_and(Series::is_linked) {
            state.note_rules(self.core.shards.place_of(id));
        }
        let written = write(&mut state, id, done);
        // Changes applied before a failure are logged, too.
        let position = self.core.log_group(&mut state)?;
        done.position = done.position.max(position);
        written
    }
}
