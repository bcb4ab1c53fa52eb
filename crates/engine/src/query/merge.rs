//! One stream of samples from blocks, chunks, late operations and the tail.
//!
//! The snapshot is cut into *units* ([`super::units`]): each chunk that reaches
//! into the span, stored or in memory, then the tail. A unit is opened when the
//! walk reaches it, so of a long span one stretch of chunks, and of what lies
//! over them, is in memory at a time, and gives its frames one by one. A late
//! operation belongs to the last frame that starts at or before it, so a frame
//! is merged with its own operations alone, and one without any can be used by
//! its statistics, not decoded at all; so can a stored chunk that is not opened
//! yet. Reading backwards takes units and frames from the end.
//!
//! Tested by the series' tests and the model test, forwards and backwards.

use super::parts::Parts;
use super::units::{Piece, Units};
use super::{BatchStats, Source};
use crate::block::{ReadAhead, StoredChunk};
use crate::error::Result;
use crate::series::chunk::{Chunk, damaged};
use crate::series::merge_ops;
use crate::series::spans::Spans;
use crate::series::stored::StoredParts;
use crate::series::{Snapshot, Tail};
use latewood_model::{Sample, Timestamp};
use std::ops::Range;
use std::sync::Arc;

/// The chunk being read.
struct Open {
    chunk: Arc<Chunk>,
    /// Frames still to come.
    frames: Range<usize>,
    /// Operations still to come, of those at hand.
    ops: Range<usize>,
    /// Its unit.
    unit: usize,
}

/// The samples of a snapshot, merged, as batches.
pub(crate) struct MergeSource {
    from: Timestamp,
    to: Timestamp,
    tail: Tail,
    /// Samples of stored chunks that do not count.
    deleted: Spans,
    stored: Vec<StoredChunk>,
    ahead: ReadAhead,
    units: Units,
    /// Units not opened yet.
    rest: Range<usize>,
    open: Option<Open>,
    reverse: bool,
    timestamps: Vec<Timestamp>,
    values: Vec<f64>,
    parts: Parts,
}

impl MergeSource {
    /// A walk over `snapshot`. Finds in the blocks what is stored of its span,
    /// and reads no chunk of it.
    ///
    /// # Errors
    /// `Corrupt` and `Io` where a block cannot be read.
    pub(crate) fn new(snapshot: Snapshot, reverse: bool) -> Result<Self> {
        let (from, to) = (snapshot.from, snapshot.to);
        let parts = match snapshot.stored {
            Some(stored) => stored.find()?,
            None => StoredParts::default(),
        };
        let units = Units::new(
            &parts.base,
            parts.held.into_iter().chain(snapshot.chunks),
            snapshot.tail.first(),
            parts.over.with_head(snapshot.late),
            (from, to),
        );
        Ok(Self {
            from,
            to,
            tail: snapshot.tail,
            deleted: parts.deleted,
            stored: parts.base,
            ahead: ReadAhead::default(),
            rest: 0..units.len(),
            units,
            open: None,
            reverse,
            timestamps: Vec::new(),
            values: Vec::new(),
            parts: Parts::default(),
        })
    }

    /// The newest sample, reading backwards until there is one.
    pub(crate) fn last_sample(mut self) -> Result<Option<Sample>> {
        self.reverse = true;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        while self.next(&mut timestamps, &mut values)? {
            let inside = timestamps.partition_point(|&at| at <= self.to);
            if let Some(place) = inside.checked_sub(1)
                && timestamps[place] >= self.from
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
            let place = timestamps.partition_point(|&at| at < self.from);
            if let Some(&at) = timestamps.get(place)
                && at <= self.to
            {
                return Ok(Some(Sample::new(at, values[place])));
            }
        }
        Ok(None)
    }

    /// How many samples there are and the oldest of them. Chunks and frames
    /// wholly inside the span are counted without being decoded.
    pub(crate) fn count(mut self) -> Result<(u64, Option<Timestamp>)> {
        self.reverse = false;
        let (mut timestamps, mut values) = (Vec::new(), Vec::new());
        let (mut count, mut first) = (0, None);
        loop {
            if let Some((low, high, samples)) = self.upcoming_count()
                && low >= self.from
                && high <= self.to
            {
                self.skip();
                count += samples;
                first = first.or(Some(low));
                continue;
            }
            if !self.next(&mut timestamps, &mut values)? {
                return Ok((count, first));
            }
            let start = timestamps.partition_point(|&at| at < self.from);
            let end = timestamps.partition_point(|&at| at <= self.to).max(start);
            count += (end - start) as u64;
            first = first.or(timestamps[start..end].first().copied());
        }
    }

    /// Bounds of the batch that comes next in a walk forwards: none of its
    /// samples lies outside. Nothing is decoded.
    pub(crate) fn upcoming_span(&self) -> Option<(Timestamp, Timestamp)> {
        let (first, next, is_first) = match &self.open {
            Some(open) => {
                let frame = open.frames.start;
                let next = match frame + 1 < open.frames.end {
                    true => Some(open.chunk.frame_first(frame + 1)),
                    false => self.units.first(open.unit + 1),
                };
                let is_first = open.unit == 0 && open.ops.start == 0;
                (open.chunk.frame_first(frame), next, is_first)
            }
            None => {
                let unit = self.rest.clone().next()?;
                let first = self.units.first(unit)?;
                (first, self.units.first(unit + 1), unit == 0)
            }
        };
        Some((
            // The first one also has the operations before it.
            if is_first { Timestamp::MIN } else { first },
            next.map_or(Timestamp::MAX, |next| next.saturating_sub(1)),
        ))
    }

    /// The unit to be opened next.
    fn upcoming_unit(&self) -> Option<usize> {
        match self.reverse {
            true => self.rest.clone().next_back(),
            false => self.rest.clone().next(),
        }
    }

    fn pass_unit(&mut self) {
        match self.reverse {
            true => self.rest.end -= 1,
            false => self.rest.start += 1,
        }
    }

    /// Opens the next unit if it is a chunk and none is open.
    fn open_next(&mut self) -> Result<()> {
        if self.open.is_some() {
            return Ok(());
        }
        let Some(unit) = self.upcoming_unit() else {
            return Ok(());
        };
        self.units.reach(unit, self.reverse)?;
        let chunk = match self.units.piece(unit) {
            Piece::Stored(index) => self.ahead.load(&self.stored, *index, self.reverse)?,
            Piece::Held(chunk) => chunk.clone(),
            Piece::Tail | Piece::Loose => return Ok(()),
        };
        self.pass_unit();
        let start = chunk.frame_at(self.from).unwrap_or(0);
        let frames = chunk.frames_to(self.to).max(start + 1);
        self.open = Some(Open {
            frames: start..frames,
            ops: self.units.ops_of(unit),
            unit,
            chunk,
        });
        Ok(())
    }

    /// The next frame of the open chunk and its operations, which are taken.
    fn take_frame(&mut self) -> Option<(Arc<Chunk>, usize, Range<usize>)> {
        let open = self.open.as_mut()?;
        let (all, ops) = (self.units.ops(), open.ops.clone());
        let (frame, mine);
        if self.reverse {
            frame = open.frames.end - 1;
            let first = open.chunk.frame_first(frame);
            let older = match frame > open.frames.start {
                true => all[ops.clone()].partition_point(|op| op.timestamp < first),
                // What is left belongs to the last frame taken.
                false => 0,
            };
            mine = ops.start + older..ops.end;
            open.ops.end = mine.start;
            open.frames.end = frame;
        } else {
            frame = open.frames.start;
            let older = match frame + 1 < open.frames.end {
                true => {
                    let next = open.chunk.frame_first(frame + 1);
                    all[ops.clone()].partition_point(|op| op.timestamp < next)
                }
                false => ops.len(),
            };
            mine = ops.start..ops.start + older;
            open.ops.start = mine.end;
            open.frames.start = frame + 1;
        }
        let chunk = open.chunk.clone();
        if open.frames.is_empty() {
            self.open = None;
        }
        Some((chunk, frame, mine))
    }

    /// The next frame of the open chunk, if no operation falls into it.
    fn plain_frame(&self) -> Option<(&Chunk, usize)> {
        let open = self.open.as_ref()?;
        let ops = &self.units.ops()[open.ops.clone()];
        let frame = match self.reverse {
            true => open.frames.end - 1,
            false => open.frames.start,
        };
        let is_only = open.frames.len() == 1;
        let has_ops = match self.reverse {
            true => ops
                .last()
                .is_some_and(|op| is_only || op.timestamp >= open.chunk.frame_first(frame)),
            false => ops
                .first()
                .is_some_and(|op| is_only || op.timestamp < open.chunk.frame_first(frame + 1)),
        };
        (!has_ops).then_some((&*open.chunk, frame))
    }

    /// First and last timestamp and number of samples of the next chunk or
    /// frame, where that is known without decoding it.
    fn upcoming_count(&mut self) -> Option<(Timestamp, Timestamp, u64)> {
        if self.open.is_none() {
            let unit = self.upcoming_unit()?;
            let (first, last, count) = match self.units.piece(unit) {
                Piece::Stored(index) => {
                    let entry = &self.stored[*index].entry;
                    (entry.first, entry.last, u64::from(entry.count))
                }
                Piece::Held(chunk) => (chunk.first(), chunk.last(), chunk.count() as u64),
                Piece::Tail | Piece::Loose => return None,
            };
            self.units.reach(unit, self.reverse).ok()?;
            if self.units.ops_of(unit).is_empty() && !self.deleted.meets(first, last) {
                return Some((first, last, count));
            }
            self.open_next().ok()?;
        }
        let (chunk, frame) = self.plain_frame()?;
        let frame = chunk.frame(frame).ok()?;
        let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
        (!self.deleted.meets(first, last)).then_some((first, last, frame.count() as u64))
    }
}

impl Source for MergeSource {
    fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        timestamps.clear();
        values.clear();
        self.open_next()?;
        let mut tail = Tail::default();
        let (ops, frame) = match self.take_frame() {
            Some((chunk, frame, ops)) => (ops, Some((chunk, frame))),
            None => {
                let Some(unit) = self.upcoming_unit() else {
                    return Ok(false);
                };
                self.pass_unit();
                if let Piece::Tail = self.units.piece(unit) {
                    // It is read once.
                    tail = std::mem::take(&mut self.tail);
                }
                (self.units.ops_of(unit), None)
            }
        };
        let (into_timestamps, into_values) = match ops.is_empty() {
            true => (&mut *timestamps, &mut *values),
            false => (&mut self.timestamps, &mut self.values),
        };
        into_timestamps.clear();
        into_values.clear();
        match frame {
            Some((chunk, frame)) => {
                chunk
                    .frame(frame)?
                    .decode(into_timestamps, into_values)
                    .map_err(damaged)?;
                drop_deleted(&self.deleted, into_timestamps, into_values);
            }
            None => (*into_timestamps, *into_values) = (tail.timestamps, tail.values),
        }
        if !ops.is_empty() {
            merge_ops(
                &self.timestamps,
                &self.values,
                &self.units.ops()[ops],
                timestamps,
                values,
            );
        }
        Ok(true)
    }

    fn peek_stats(&mut self) -> Option<BatchStats> {
        if self.open.is_none() {
            let unit = self.upcoming_unit()?;
            // Errors come again where the samples are asked for.
            self.units.reach(unit, self.reverse).ok()?;
            if let Piece::Stored(index) = *self.units.piece(unit)
                && self.units.ops_of(unit).is_empty()
                && let Some(stats) = self.stored[index].entry.stats()
                && !self.deleted.meets(stats.first, stats.last)
            {
                return Some(stats);
            }
            self.open_next().ok()?;
        }
        let (chunk, frame) = self.plain_frame()?;
        let frame = chunk.frame(frame).ok()?;
        let (first, last) = (frame.first_timestamp(), frame.last_timestamp());
        if self.deleted.meets(first, last) {
            return None;
        }
        let stats = frame.stats().ok()?;
        Some(BatchStats {
            first,
            last,
            count: frame.count() as u64,
            nan_count: stats.nan_count as u64,
            min: stats.min,
            max: stats.max,
            sum: stats.sum,
            lost: 0.0,
        })
    }

    fn parts(&mut self, last_of: &dyn Fn(i64) -> i64, out: &mut Vec<BatchStats>) -> Result<bool> {
        let mut parts = std::mem::take(&mut self.parts);
        let found = match self.plain_frame() {
            Some((chunk, frame)) => {
                let frame = chunk.frame(frame)?;
                parts.of(&frame, last_of, out)
            }
            None => Ok(false),
        };
        self.parts = parts;
        found
    }

    fn split(&mut self) -> Result<bool> {
        let was_open = self.open.is_some();
        self.open_next()?;
        Ok(!was_open && self.open.is_some())
    }

    fn skip(&mut self) {
        if self.take_frame().is_none() && self.upcoming_unit().is_some() {
            self.pass_unit();
        }
    }
}

/// Takes out the samples of deleted spans.
fn drop_deleted(deleted: &Spans, timestamps: &mut Vec<Timestamp>, values: &mut Vec<f64>) {
    let (Some(&first), Some(&last)) = (timestamps.first(), timestamps.last()) else {
        return;
    };
    if !deleted.meets(first, last) {
        return;
    }
    let mut kept = 0;
    for place in 0..timestamps.len() {
        if !deleted.covers(timestamps[place]) {
            timestamps[kept] = timestamps[place];
            values[kept] = values[place];
            kept += 1;
        }
    }
    timestamps.truncate(kept);
    values.truncate(kept);
}
