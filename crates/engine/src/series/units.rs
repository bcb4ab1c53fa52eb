//! The units of a walk over a snapshot, and the operations over them.
//!
//! A *unit* begins with a chunk or the tail, or, between two chunks, after many
//! operations, and ends before the next unit. The operations of a *stretch* of
//! units are loaded at a time. The first stretch is one unit, so that a walk that
//! ends early reads few operations; the next stretches grow as long as they have
//! few operations.
//!
//! Invariants: units ascend and cover the span without a gap; the first begins
//! before all. A chunk belongs to one unit, and a unit to one stretch.
//!
//! Tested by the series' tests and the model test, forwards and backwards.

use crate::base::error::Result;
use crate::format::chunk::Chunk;
use crate::series::late::LateOp;
use crate::series::over::Over;
use crate::storage::block::StoredChunk;
use latewood_model::Timestamp;
use std::ops::Range;
use std::sync::Arc;

/// Operations of a stretch below which the next stretch is twice as long, and above
/// which it is half as long: 1.5 MiB.
const FEW_OPS: usize = 16 * 1024;
const MANY_OPS: usize = 64 * 1024;
/// Maximum units of a stretch: after many operations it is not known how few
/// follow.
const STRETCH_MAX: usize = 64;

/// The samples of a unit.
pub(super) enum Piece {
    /// In a block: an index of the stored chunks.
    Stored(usize),
    Held(Arc<Chunk>),
    Tail,
    /// None: the unit has operations only.
    Loose,
}

/// A part of a snapshot.
struct Unit {
    piece: Piece,
    /// No sample of it is older, except operations of the first unit.
    first: Timestamp,
}

pub(super) struct Units {
    units: Vec<Unit>,
    over: Over,
    from: Timestamp,
    to: Timestamp,
    /// The stretch whose operations are loaded.
    near: Range<usize>,
    /// These operations, sorted as in a run.
    ops: Vec<LateOp>,
    /// Where the operations of each of its units end.
    ends: Vec<usize>,
    /// Units of the next stretch.
    stretch: usize,
}

impl Units {
    /// The units of the `stored` chunks, then the `held` ones, then the tail, if it
    /// has a first sample; they all ascend. `over` are the operations in
    /// `from..=to`.
    pub(super) fn new(
        stored: &[StoredChunk],
        held: impl Iterator<Item = Arc<Chunk>>,
        tail_first: Option<Timestamp>,
        over: Over,
        from: Timestamp,
        to: Timestamp,
    ) -> Self {
        let stored = stored.iter().enumerate();
        let stored = stored.map(|(place, stored)| {
            let piece = Piece::Stored(place);
            (stored.entry.first, stored.entry.last, piece)
        });
        let held = held.map(|chunk| (chunk.first(), chunk.last(), Piece::Held(chunk)));
        let tail = tail_first.map(|first| (first, Timestamp::MAX, Piece::Tail));
        let mut boundaries = over.boundaries();
        boundaries.retain(|boundary| (from..=to).contains(boundary));
        Self {
            units: units_of(stored.chain(held).chain(tail), boundaries),
            over,
            from,
            to,
            near: 0..0,
            ops: Vec::new(),
            ends: Vec::new(),
            stretch: 1,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.units.len()
    }

    pub(super) fn piece(&self, unit: usize) -> &Piece {
        &self.units[unit].piece
    }

    /// The start of a unit; `None` after the last.
    pub(super) fn first(&self, unit: usize) -> Option<Timestamp> {
        self.units.get(unit).map(|unit| unit.first)
    }

    /// Loads the operations of `unit` and of some units after it. Replaces the
    /// loaded stretch, unless `unit` is in it.
    ///
    /// # Errors
    /// As [`Over::read`].
    pub(super) fn reach(&mut self, unit: usize, reverse: bool) -> Result<()> {
        if self.near.contains(&unit) {
            return Ok(());
        }
        let near = if reverse {
            (unit + 1).saturating_sub(self.stretch)..unit + 1
        } else {
            unit..self.len().min(unit + self.stretch)
        };
        let from = match near.start {
            0 => self.from,
            start => self.units[start].first,
        };
        let next = self.first(near.end);
        let to = next.map_or(self.to, |next| next.saturating_sub(1));
        self.ops = self.over.read(from, to)?;
        self.ends.clear();
        let mut end = 0;
        for next in near.start + 1..near.end {
            let first = self.units[next].first;
            end += self.ops[end..].partition_point(|op| op.timestamp < first);
            self.ends.push(end);
        }
        self.ends.push(self.ops.len());
        self.near = near;
        self.stretch = match self.ops.len() {
            ..FEW_OPS => (self.stretch * 2).min(STRETCH_MAX),
            FEW_OPS..=MANY_OPS => self.stretch,
            _ => (self.stretch / 2).max(1),
        };
        Ok(())
    }

    /// The operations of a unit, which must be loaded, as a range of [`Self::ops`].
    pub(super) fn ops_of(&self, unit: usize) -> Range<usize> {
        let place = unit - self.near.start;
        let start = place.checked_sub(1).map_or(0, |before| self.ends[before]);
        start..self.ends[place]
    }

    pub(super) fn ops(&self) -> &[LateOp] {
        &self.ops
    }
}

/// One unit for each piece, given with its first and last timestamp, and one for
/// each boundary outside the pieces. Returns at least one.
fn units_of(
    pieces: impl Iterator<Item = (Timestamp, Timestamp, Piece)>,
    boundaries: Vec<Timestamp>,
) -> Vec<Unit> {
    let boundaries = boundaries
        .into_iter()
        .map(|boundary| (boundary, boundary, Piece::Loose));
    let mut all: Vec<_> = pieces.chain(boundaries).collect();
    // Stable: a chunk is before a boundary if both begin at the same time.
    all.sort_by_key(|&(first, ..)| first);
    let mut covered = None;
    all.retain(|&(first, last, ref piece)| {
        let is_held = matches!(piece, Piece::Loose) && covered >= Some(first);
        covered = covered.max(Some(last));
        !is_held
    });
    let mut units: Vec<Unit> = all
        .into_iter()
        .map(|(first, _, piece)| Unit { piece, first })
        .collect();
    if units.is_empty() {
        units.push(Unit {
            piece: Piece::Loose,
            first: Timestamp::MIN,
        });
    }
    units
}
