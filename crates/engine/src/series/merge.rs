//! One stream of samples from blocks, chunks, late operations and the tail.
//!
//! The snapshot is divided into *units* ([`super::units`]): each chunk that reaches
//! into the span, stored or in memory, then the tail. A unit is opened when the
//! walk reaches it and returns its frames one by one, so a long span needs memory
//! for one stretch of chunks and overlays at a time. A late operation belongs to
//! the last frame that starts at or before it. A frame is therefore merged with its
//! own operations alone, and a frame without operations can be used by its
//! statistics, without decoding; so can a stored chunk that is not opened yet. A
//! reversed walk takes units and frames from the end.
//!
//! Tested by the series' tests and the model test, forwards and backwards.

mod ends;
mod open;

use crate::base::error::Result;
use crate::format::batches::{BatchStats, Source};
use crate::format::chunk::{Chunk, damaged};
use crate::format::parts::Parts;
use crate::series::spans::Spans;
use crate::series::stored::StoredParts;
use crate::series::units::{Piece, Units};
use crate::series::{Snapshot, Tail, merge_ops};
use crate::storage::block::{ReadAhead, StoredChunk};
use latewood_model::Timestamp;
use open::Open;
use std::ops::Range;
use std::sync::Arc;

/// The samples of a snapshot, merged, as batches.
pub(crate) struct MergeSource {
    from: Timestamp,
    to: Timestamp,
    tail: Tail,
    /// Deleted spans of the stored chunks.
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
    /// A walk over `snapshot`. Finds the chunks of its span in the blocks, but
    /// reads none of them.
    ///
    /// # Errors
    /// `Corrupt` and `Io` if a block cannot be read.
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
            from,
            to,
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

    /// Chunks in blocks that it reads, and their bytes.
    pub(crate) fn stored_len(&self) -> (u64, u64) {
        let bytes = self.stored.iter();
        let bytes = bytes.map(|chunk| u64::from(chunk.entry.len_bytes));
        (self.stored.len() as u64, bytes.sum())
    }

    /// Bounds of the next batch in a forward walk: all its samples lie inside.
    /// Decodes nothing.
    pub(crate) fn upcoming_span(&self) -> Option<(Timestamp, Timestamp)> {
        let (first, next, is_first) = match &self.open {
            Some(open) => {
                let (first, next) = open.firsts();
                let next = next.or_else(|| self.units.first(open.unit + 1));
                let is_first = open.unit == 0 && open.ops.start == 0;
                (first, next, is_first)
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

    /// The next unit to open.
    fn upcoming_unit(&self) -> Option<usize> {
        if self.reverse {
            self.rest.clone().next_back()
        } else {
            self.rest.clone().next()
        }
    }

    fn pass_unit(&mut self) {
        if self.reverse {
            self.rest.end -= 1
        } else {
            self.rest.start += 1
        }
    }

    /// Opens the next unit if it is a chunk and no chunk is open.
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

    /// Takes the next frame of the open chunk and its operations.
    fn take_frame(&mut self) -> Option<(Arc<Chunk>, usize, Range<usize>)> {
        let open = self.open.as_mut()?;
        let (frame, ops) = open.take(self.units.ops(), self.reverse);
        let chunk = open.chunk.clone();
        if open.frames.is_empty() {
            self.open = None;
        }
        Some((chunk, frame, ops))
    }

    /// The next frame of the open chunk, if it has no operations.
    fn plain_frame(&self) -> Option<(&Chunk, usize)> {
        let open = self.open.as_ref()?;
        let frame = open.plain(self.units.ops(), self.reverse)?;
        Some((&open.chunk, frame))
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
                    // The tail is read once.
                    tail = std::mem::take(&mut self.tail);
                }
                (self.units.ops_of(unit), None)
            }
        };
        let (into_timestamps, into_values) = if ops.is_empty() {
            (&mut *timestamps, &mut *values)
        } else {
            (&mut self.timestamps, &mut self.values)
        };
        match frame {
            Some((chunk, frame)) => {
                chunk
                    .frame(frame)?
                    .decode_over(into_timestamps, into_values)
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
            // The error occurs again when the samples are read.
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
            is_whole: Some(frame.is_whole().ok()?),
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

/// Removes the samples of deleted spans.
fn drop_deleted(deleted: &Spans, timestamps: &mut Vec<Timestamp>, values: &mut Vec<f64>) {
    let (Some(&first), Some(&last)) = (timestamps.first(), timestamps.last()) else {
        return;
    };
    if !deleted.meets(first, last) {
        return;
    }
    retain(timestamps, values, |timestamp| !deleted.covers(timestamp));
}

/// Keeps the samples whose timestamps stay.
#[inline]
pub(crate) fn retain(
    timestamps: &mut Vec<Timestamp>,
    values: &mut Vec<f64>,
    mut stays: impl FnMut(Timestamp) -> bool,
) {
    let mut kept = 0;
    for place in 0..timestamps.len() {
        if stays(timestamps[place]) {
            timestamps[kept] = timestamps[place];
            values[kept] = values[place];
            kept += 1;
        }
    }
    timestamps.truncate(kept);
    values.truncate(kept);
}
