//! One stream of samples from chunks, late operations and the tail.
//!
//! The snapshot is cut into units: each frame that reaches into the span, then
//! the tail. A late operation belongs to the last unit that starts at or
//! before it, so a unit is merged with its own operations alone, and a frame
//! without any can be used by its statistics, not decoded at all. Reading
//! backwards takes the units from the end.
//!
//! Tested by the series' tests and the model test, forwards and backwards.

use super::{BatchStats, Source};
use crate::error::Result;
use crate::series::Snapshot;
use crate::series::chunk::damaged;
use crate::series::late::LateOp;
use crate::series::merge_ops;
use latewood_model::{Sample, Timestamp};

#[derive(Clone, Copy)]
enum Unit {
    Frame { chunk: usize, frame: usize },
    Tail,
}

/// The samples of a snapshot, merged, as batches.
pub(crate) struct MergeSource {
    snapshot: Snapshot,
    /// Late operations of the span, sorted as in a run.
    late: Vec<LateOp>,
    /// Each unit with the end of its late operations; they begin where those
    /// of the unit before end.
    units: Vec<(Unit, usize)>,
    /// Units still to come: `next..end`.
    next: usize,
    end: usize,
    reverse: bool,
    timestamps: Vec<Timestamp>,
    values: Vec<f64>,
}

impl MergeSource {
    pub(crate) fn new(mut snapshot: Snapshot, reverse: bool) -> Self {
        let late = std::mem::take(&mut snapshot.late).collect(snapshot.from, snapshot.to);
        let units = units_of(&snapshot, &late);
        Self {
            end: units.len(),
            snapshot,
            late,
            units,
            next: 0,
            reverse,
            timestamps: Vec::new(),
            values: Vec::new(),
        }
    }

    /// The newest sample, reading backwards until there is one.
    pub(crate) fn last_sample(mut self) -> Result<Option<Sample>> {
        self.reverse = true;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while self.next(&mut timestamps, &mut values)? {
            let inside = timestamps.partition_point(|&at| at <= self.snapshot.to);
            if let Some(place) = inside.checked_sub(1)
                && timestamps[place] >= self.snapshot.from
            {
                return Ok(Some(Sample::new(timestamps[place], values[place])));
            }
        }
        Ok(None)
    }

    /// The oldest sample, reading forwards until there is one.
    pub(crate) fn first_sample(mut self) -> Result<Option<Sample>> {
        self.reverse = false;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while self.next(&mut timestamps, &mut values)? {
            let place = timestamps.partition_point(|&at| at < self.snapshot.from);
            if let Some(&at) = timestamps.get(place)
                && at <= self.snapshot.to
            {
                return Ok(Some(Sample::new(at, values[place])));
            }
        }
        Ok(None)
    }

    fn upcoming(&self) -> Option<usize> {
        if self.next == self.end {
            return None;
        }
        Some(if self.reverse {
            self.end - 1
        } else {
            self.next
        })
    }

    fn advance(&mut self) {
        if self.reverse {
            self.end -= 1;
        } else {
            self.next += 1;
        }
    }

    /// Bounds of the batch that comes next in a walk forwards: none of its
    /// samples lies outside. Nothing is decoded.
    pub(crate) fn upcoming_span(&self) -> Option<(Timestamp, Timestamp)> {
        let first_of = |index: usize| match self.units.get(index)?.0 {
            Unit::Frame { chunk, frame } => Some(self.snapshot.chunks[chunk].frame_first(frame)),
            Unit::Tail => self.snapshot.tail.first(),
        };
        let index = self.upcoming()?;
        // The first unit also has the operations before it.
        let low = first_of(index).filter(|_| index > 0);
        let high = first_of(index + 1).map(|next| next.saturating_sub(1));
        Some((
            low.unwrap_or(Timestamp::MIN),
            high.unwrap_or(Timestamp::MAX),
        ))
    }

    /// Where the late operations of unit `index` stand.
    fn ops_of(&self, index: usize) -> std::ops::Range<usize> {
        let start = index
            .checked_sub(1)
            .map_or(0, |before| self.units[before].1);
        start..self.units[index].1
    }
}

/// Cuts a snapshot into units and gives each its late operations.
fn units_of(snapshot: &Snapshot, late: &[LateOp]) -> Vec<(Unit, usize)> {
    let mut starts = Vec::with_capacity(snapshot.chunks.len() + 1);
    for (chunk_index, chunk) in snapshot.chunks.iter().enumerate() {
        let first_frame = chunk.frame_at(snapshot.from).unwrap_or(0);
        for frame in first_frame..chunk.frame_count() {
            let first = chunk.frame_first(frame);
            if first > snapshot.to {
                break;
            }
            let unit = Unit::Frame {
                chunk: chunk_index,
                frame,
            };
            starts.push((unit, first));
        }
    }
    if let Some(first) = snapshot.tail.first() {
        starts.push((Unit::Tail, first));
    }
    if starts.is_empty() && !late.is_empty() {
        // No frame is near: the operations stand for themselves.
        starts.push((Unit::Tail, Timestamp::MIN));
    }
    let mut ops_end = 0;
    let mut units = Vec::with_capacity(starts.len());
    for (index, &(unit, _)) in starts.iter().enumerate() {
        ops_end += match starts.get(index + 1) {
            Some(&(_, next)) => late[ops_end..].partition_point(|op| op.timestamp < next),
            None => late.len() - ops_end,
        };
        units.push((unit, ops_end));
    }
    units
}

impl Source for MergeSource {
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        timestamps.clear();
        values.clear();
        let Some(index) = self.upcoming() else {
            return Ok(false);
        };
        let ops = self.ops_of(index);
        self.advance();
        let plain = ops.is_empty();
        let (into_timestamps, into_values) = if plain {
            (&mut *timestamps, &mut *values)
        } else {
            self.timestamps.clear();
            self.values.clear();
            (&mut self.timestamps, &mut self.values)
        };
        match self.units[index].0 {
            Unit::Frame { chunk, frame } => self.snapshot.chunks[chunk]
                .frame(frame)?
                .decode(into_timestamps, into_values)
                .map_err(damaged)?,
            Unit::Tail => {
                // It is read once.
                let tail = std::mem::take(&mut self.snapshot.tail);
                (*into_timestamps, *into_values) = (tail.timestamps, tail.values);
            }
        }
        if !plain {
            merge_ops(
                &self.timestamps,
                &self.values,
                &self.late[ops],
                timestamps,
                values,
            );
        }
        Ok(true)
    }

    fn peek_stats(&mut self) -> Option<BatchStats> {
        let index = self.upcoming()?;
        let Unit::Frame { chunk, frame } = self.units[index].0 else {
            return None;
        };
        if !self.ops_of(index).is_empty() {
            return None;
        }
        let frame = self.snapshot.chunks[chunk].frame(frame).ok()?;
        let stats = frame.stats().ok()?;
        Some(BatchStats {
            first: frame.first_timestamp(),
            last: frame.last_timestamp(),
            count: frame.count() as u64,
            nan_count: stats.nan_count as u64,
            min: stats.min,
            max: stats.max,
            sum: stats.sum,
        })
    }

    fn skip(&mut self) {
        if self.upcoming().is_some() {
            self.advance();
        }
    }
}
