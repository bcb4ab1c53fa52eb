//! A snapshot: what a reader takes from a series under its lock, to read without
//! it.
//!
//! Chunks and late runs are shared; staged operations and the tail of the span are
//! copied. A snapshot never changes, so a long read sees one moment.

use super::Series;
use super::late::SharedLate;
use super::stored::StoredSpan;
use crate::base::error::Result;
use crate::format::chunk::{Chunk, Held, damaged, shared};
use latewood_model::{Sample, Timestamp};
use std::cell::Cell;
use std::ops::ControlFlow;
use std::sync::Arc;

/// Takes samples, ascending in time; after a `Break` it wants no more.
pub(crate) type TakeSamples<'a> = dyn FnMut(&[Timestamp], &[f64]) -> ControlFlow<()> + 'a;

thread_local! {
    /// Memory for the samples of a frame.
    static FRAME: Cell<Tail> = const { Cell::new(Tail::EMPTY) };
}

/// The samples of one span of one series at one moment.
#[derive(Clone)]
pub(crate) struct Snapshot {
    /// Oldest and newest timestamp requested, limited by the retention.
    pub(crate) from: Timestamp,
    pub(crate) to: Timestamp,
    /// The samples in blocks, older than every chunk here.
    pub(crate) stored: Option<StoredSpan>,
    /// Chunks that reach into the span, ascending.
    pub(crate) chunks: Vec<Arc<Chunk>>,
    /// Late operations; those of the span are among them.
    pub(crate) late: SharedLate,
    /// Raw samples inside the span, newer than every chunk.
    pub(crate) tail: Tail,
}

/// Raw samples in the layout of a query: copied once, never transposed again.
#[derive(Clone, Default)]
pub(crate) struct Tail {
    pub(crate) timestamps: Vec<Timestamp>,
    pub(crate) values: Vec<f64>,
}

impl Tail {
    const EMPTY: Self = Self {
        timestamps: Vec::new(),
        values: Vec::new(),
    };

    /// The samples in `from..=to`.
    fn within(&self, from: Timestamp, to: Timestamp) -> (&[Timestamp], &[f64]) {
        // All of it, mostly.
        let ends = self.first().zip(self.last());
        if ends.is_some_and(|(first, last)| from <= first && last <= to) {
            return (&self.timestamps, &self.values);
        }
        let start = self.timestamps.partition_point(|&at| at < from);
        let rest = &self.timestamps[start..];
        let end = start + rest.partition_point(|&at| at <= to);
        (&self.timestamps[start..end], &self.values[start..end])
    }

    fn pass(&self, from: Timestamp, to: Timestamp, take: &mut TakeSamples<'_>) -> ControlFlow<()> {
        let (timestamps, values) = self.within(from, to);
        if timestamps.is_empty() {
            return ControlFlow::Continue(());
        }
        take(timestamps, values)
    }

    fn of(samples: &[Sample]) -> Self {
        Self {
            timestamps: samples.iter().map(|sample| sample.timestamp).collect(),
            values: samples.iter().map(|sample| sample.value).collect(),
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.timestamps.len()
    }

    fn memory_bytes(&self) -> usize {
        self.timestamps.capacity() * size_of::<Timestamp>()
            + self.values.capacity() * size_of::<f64>()
    }

    pub(crate) fn first(&self) -> Option<Timestamp> {
        self.timestamps.first().copied()
    }

    pub(crate) fn last(&self) -> Option<Timestamp> {
        self.timestamps.last().copied()
    }
}

/// Estimates how many of `count` samples of `first..=last` lie in `from..=to`.
fn share(count: u64, first: Timestamp, last: Timestamp, from: Timestamp, to: Timestamp) -> u64 {
    if from <= first && last <= to {
        return count;
    }
    let inside_ms = last.min(to).abs_diff(first.max(from).min(to));
    let part = inside_ms as f64 / last.abs_diff(first).max(1) as f64;
    // It is a part of them, and at least one.
    ((count as f64 * part) as u64 + 1).min(count)
}

impl Snapshot {
    /// Without samples.
    pub(crate) fn empty(from: Timestamp, to: Timestamp) -> Self {
        Self {
            from,
            to,
            stored: None,
            chunks: Vec::new(),
            late: SharedLate::default(),
            tail: Tail::default(),
        }
    }

    /// Estimated maximum of the samples.
    pub(crate) fn samples(&self) -> u64 {
        let sealed: usize = self.chunks.iter().map(|chunk| chunk.count()).sum();
        let stored = self.stored.as_ref().map_or(0, StoredSpan::samples);
        stored + (sealed + self.late.len() + self.tail.len()) as u64
    }

    /// Estimated number of the samples: of the chunks at the ends of the span, the
    /// part that lies in it.
    pub(crate) fn samples_about(&self) -> u64 {
        let outside = |chunk: &Arc<Chunk>| {
            let count = chunk.count() as u64;
            count - share(count, chunk.first(), chunk.last(), self.from, self.to)
        };
        let ends = match &self.chunks[..] {
            [] => 0,
            [one] => outside(one),
            [first, .., last] => outside(first) + outside(last),
        };
        self.samples() - ends
    }

    /// Bytes of memory that it holds beside what it shares with the series.
    pub(crate) fn memory_bytes(&self) -> usize {
        size_of::<Self>()
            + self.stored.as_ref().map_or(0, StoredSpan::memory_bytes)
            + self.chunks.capacity() * size_of::<Arc<Chunk>>()
            + self.late.memory_bytes()
            + self.tail.memory_bytes()
    }

    /// Bounds of the oldest and newest timestamp, if there are samples; reads no
    /// file.
    pub(crate) fn reach(&self) -> Option<(Timestamp, Timestamp)> {
        let chunks = [self.chunks.first(), self.chunks.last()].into_iter();
        let chunks = chunks.flatten();
        let spans = chunks
            .map(|chunk| (chunk.first(), chunk.last()))
            .chain(self.tail.first().zip(self.tail.last()))
            .chain(self.late.spans())
            .chain(self.stored.iter().flat_map(StoredSpan::spans));
        let spans = spans.filter(|&(first, last)| first <= self.to && last >= self.from);
        let ends = spans.flat_map(|(first, last)| [first, last]);
        let within = ends.map(|at| at.clamp(self.from, self.to.max(self.from)));
        within.fold(None, |reach, at| {
            let (first, last) = reach.unwrap_or((at, at));
            Some((first.min(at), last.max(at)))
        })
    }

    /// A snapshot of the stored part alone.
    pub(crate) fn of_stored(stored: StoredSpan) -> Self {
        let (from, to) = stored.span();
        Self {
            stored: Some(stored),
            ..Self::empty(from, to)
        }
    }
}

impl Series {
    /// Estimated number of the samples in a snapshot of `from..=to`.
    pub(crate) fn samples_about(&self, from: Timestamp, to: Timestamp) -> u64 {
        let sealed = self.chunks_in(from, to).iter().map(|held| {
            let chunk = &held.chunk;
            share(chunk.count() as u64, chunk.first(), chunk.last(), from, to)
        });
        let sealed: u64 = sealed.sum();
        let stored = self
            .stored
            .as_ref()
            .and_then(|stored| stored.span(from, to));
        stored.map_or(0, |span| span.samples()) + sealed + self.unsealed() as u64
    }

    /// Samples that [`Series::samples_about`] counts in every span: the tail and late ones.
    pub(crate) fn unsealed(&self) -> usize {
        self.late_pending() + self.tail.len()
    }

    /// Takes a snapshot of `from..=to`. Logarithmic in the series, linear in the
    /// chunks of the span, the runs, the staged operations and the tail, which is
    /// sorted first if necessary.
    pub(crate) fn snapshot(&mut self, from: Timestamp, to: Timestamp) -> Snapshot {
        self.snapshot_held(from.max(self.retention_floor()), to)
    }

    /// The same, including expired samples that are still held.
    pub(crate) fn snapshot_held(&mut self, from: Timestamp, to: Timestamp) -> Snapshot {
        self.sort_tail();
        let late = match &self.late {
            Some(late) => late.share(from, to),
            None => SharedLate::default(),
        };
        Snapshot {
            from,
            to,
            stored: self
                .stored
                .as_ref()
                .and_then(|stored| stored.span(from, to)),
            chunks: shared(self.chunks_in(from, to)),
            late,
            tail: Tail::of(self.tail_of(from, to)),
        }
    }

    /// The late operations of `from..=to` and perhaps others: those that wait for a settle, and
    /// those that wait for a flush.
    pub(crate) fn late_in(&self, from: Timestamp, to: Timestamp) -> Vec<SharedLate> {
        let deep = self.stored.as_ref().and_then(|stored| stored.deep.as_ref());
        let all = self.late.iter().chain(deep);
        all.map(|late| late.share(from, to)).collect()
    }

    /// The chunks that reach into `from..=to`. Looks into one of them at most, since each
    /// look fetches memory; into none where the span lies in the sorted tail.
    fn chunks_in(&self, from: Timestamp, to: Timestamp) -> &[Held] {
        if !self.tail_unsorted
            && self
                .tail
                .first()
                .is_some_and(|oldest| oldest.timestamp <= from)
        {
            return &[];
        }
        let behind = self.chunks.partition_point(|held| held.first <= from);
        // Of those that begin before the span the newest may reach into it.
        let start = match behind.checked_sub(1) {
            Some(before) if self.chunks[before].chunk.last() >= from => before,
            _ => behind,
        };
        let end = self.chunks.partition_point(|held| held.first <= to);
        &self.chunks[start..end.max(start)]
    }

    /// The part of the tail in `from..=to`. Almost always it reaches to the end of the tail, so
    /// that is looked at first, then whether all of it is wanted, and then the samples that are
    /// copied anyway: a search would fetch memory piece by piece.
    fn tail_of(&self, from: Timestamp, to: Timestamp) -> &[Sample] {
        let mut tail = &self.tail[..];
        if tail.last().is_some_and(|sample| sample.timestamp > to) {
            let end = tail.partition_point(|sample| sample.timestamp <= to);
            tail = &tail[..end];
        }
        if tail.first().is_some_and(|oldest| oldest.timestamp >= from) {
            return tail;
        }
        let before = tail.iter().rposition(|sample| sample.timestamp < from);
        &tail[before.map_or(0, |before| before + 1)..]
    }
}

impl Snapshot {
    /// The part of the snapshot in `from..=to`.
    pub(crate) fn narrow(&self, from: Timestamp, to: Timestamp) -> Self {
        let (from, to) = (from.max(self.from), to.min(self.to));
        let (timestamps, values) = self.tail.within(from, to);
        Self {
            from,
            to,
            stored: self
                .stored
                .as_ref()
                .and_then(|stored| stored.narrow(from, to)),
            chunks: self.chunks_within(from, to).to_vec(),
            late: self.late.clone(),
            tail: Tail {
                timestamps: timestamps.to_vec(),
                values: values.to_vec(),
            },
        }
    }

    /// Whether its samples are those of its chunks and then of its tail, with nothing to merge.
    pub(crate) fn is_plain(&self) -> bool {
        self.stored.is_none() && self.late.is_empty()
    }

    /// Reads spans of a plain snapshot.
    pub(crate) fn passage(&self) -> Passage<'_> {
        Passage {
            snapshot: self,
            frame: FRAME.take(),
            held: None,
        }
    }

    /// The chunks that reach into `from..=to`, and the place of the first.
    fn chunks_of(&self, from: Timestamp, to: Timestamp) -> (usize, &[Arc<Chunk>]) {
        let start = self.chunks.partition_point(|chunk| chunk.last() < from);
        let end = self.chunks.partition_point(|chunk| chunk.first() <= to);
        (start, &self.chunks[start..end.max(start)])
    }

    fn chunks_within(&self, from: Timestamp, to: Timestamp) -> &[Arc<Chunk>] {
        self.chunks_of(from, to).1
    }

    /// Whether a frame of a plain snapshot lies in `from..=to` with all its samples.
    pub(crate) fn has_frame_within(&self, from: Timestamp, to: Timestamp) -> bool {
        self.chunks_within(from, to).iter().any(|chunk| {
            let begins = |index| chunk.frame_first(index) >= from;
            // The end of the last of them is not known before it is parsed.
            let end = if chunk.last() <= to {
                chunk.frame_count()
            } else {
                chunk.frames_to(to).saturating_sub(1)
            };
            end > 0 && begins(end - 1)
        })
    }
}

/// Reads spans of a plain snapshot, one after another.
pub(crate) struct Passage<'a> {
    snapshot: &'a Snapshot,
    /// The samples of the frame that is `held`: what the next span begins with, often.
    frame: Tail,
    /// Its chunk, and its number there.
    held: Option<(usize, usize)>,
}

impl Drop for Passage<'_> {
    fn drop(&mut self) {
        FRAME.set(std::mem::take(&mut self.frame));
    }
}

impl Passage<'_> {
    /// Hands the samples of `from..=to` to `take`, the oldest first.
    ///
    /// # Errors
    /// `Corrupt`.
    pub(crate) fn pass(
        &mut self,
        from: Timestamp,
        to: Timestamp,
        take: &mut TakeSamples<'_>,
    ) -> Result<ControlFlow<()>> {
        let snapshot = self.snapshot;
        let (from, to) = (from.max(snapshot.from), to.min(snapshot.to));
        let (start, chunks) = snapshot.chunks_of(from, to);
        for (chunk, at) in chunks.iter().zip(start..) {
            for index in chunk.frame_at(from).unwrap_or(0)..chunk.frames_to(to) {
                if self.held != Some((at, index)) {
                    self.decode(chunk, index)?;
                    self.held = Some((at, index));
                }
                if self.frame.pass(from, to, take).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
        }
        Ok(snapshot.tail.pass(from, to, take))
    }

    fn decode(&mut self, chunk: &Chunk, index: usize) -> Result<()> {
        self.held = None;
        let Tail { timestamps, values } = &mut self.frame;
        let decoded = chunk.frame(index)?.decode_over(timestamps, values);
        decoded.map_err(damaged)
    }
}
