//! A walk over a source that skips batches outside the dirty buckets and batches
//! that cannot be read.
//!
//! Damage fails only the buckets it is in: the walk notes the span of an unreadable
//! batch and continues with the next one. Tested by `tests/db_rules/damage.rs`.

use crate::base::error::{Error, Result};
use crate::base::window::Bucket;
use crate::format::batches::BatchStats;
use crate::query;
use crate::series::Snapshot;
use crate::series::merge::MergeSource;
use crate::series::rules::failed::Damage;

/// The batches of a source that overlap dirty buckets.
pub(super) struct Picked<'a> {
    source: MergeSource,
    dirty: &'a [Bucket],
    place: usize,
    /// The spans of unreadable batches.
    pub(super) damage: Option<Damage>,
}

impl<'a> Picked<'a> {
    /// Those of `snapshot`. `dirty` ascends without meeting.
    ///
    /// # Errors
    /// As [`MergeSource::new`].
    pub(super) fn new(snapshot: Snapshot, dirty: &'a [Bucket]) -> Result<Self> {
        Ok(Self {
            source: MergeSource::new(snapshot, false)?,
            dirty,
            place: 0,
            damage: None,
        })
    }

    /// Skips batches outside the dirty buckets. Returns the bounds of the next one,
    /// `None` at the end.
    fn seek(&mut self) -> Option<Bucket> {
        while let Some((low, high)) = self.source.upcoming_span() {
            while self
                .dirty
                .get(self.place)
                .is_some_and(|span| span.last < low)
            {
                self.place += 1;
            }
            match self.dirty.get(self.place) {
                None => return None,
                Some(span) if span.first <= high => {
                    return Some(Bucket {
                        first: low,
                        last: high,
                    });
                }
                Some(_) => query::Source::skip(&mut self.source),
            }
        }
        None
    }

    /// Notes that the batch in `span` cannot be read, and skips it.
    fn pass(&mut self, span: Bucket, error: Error) {
        Damage::add(&mut self.damage, [span], error);
        // A batch that was taken before it failed is behind the walk already.
        if self.source.upcoming_span() == Some((span.first, span.last)) {
            query::Source::skip(&mut self.source);
        }
    }
}

impl query::Source for Picked<'_> {
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        while let Some(span) = self.seek() {
            match self.source.next(timestamps, values) {
                Err(error) => self.pass(span, error),
                read => return read,
            }
        }
        timestamps.clear();
        values.clear();
        Ok(false)
    }

    fn peek_stats(&mut self) -> Option<BatchStats> {
        self.seek()?;
        self.source.peek_stats()
    }

    fn split(&mut self) -> Result<bool> {
        let Some(span) = self.seek() else {
            return Ok(false);
        };
        match self.source.split() {
            Err(error) => {
                self.pass(span, error);
                // What was described is gone: the next one is another.
                Ok(true)
            }
            split => split,
        }
    }

    fn skip(&mut self) {
        self.source.skip();
    }
}
