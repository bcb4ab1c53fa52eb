//! Rows on their way to the sink, a block at a time.
//!
//! Counts them against the query's limit, so that nobody else must. Memory is
//! one block, however many rows a query makes.

use super::Sink;
use std::ops::ControlFlow;

/// Values of one block; a row is at most 16 of them.
const BLOCK_VALUES: usize = 2048;
/// Rows that there is room for from the start.
const FEW_ROWS: usize = 32;

pub(super) struct Rows<'a> {
    sink: &'a mut dyn Sink,
    width: usize,
    remaining: u64,
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

impl<'a> Rows<'a> {
    /// Rows of `width` values, at most `count` of them.
    pub(super) fn new(sink: &'a mut dyn Sink, width: usize, count: Option<u64>) -> Self {
        Self {
            sink,
            width,
            remaining: count.unwrap_or(u64::MAX),
            timestamps: Vec::with_capacity(FEW_ROWS),
            values: Vec::with_capacity(FEW_ROWS * width),
        }
    }

    /// Whether the limit is reached.
    pub(super) fn full(&self) -> bool {
        self.remaining == 0
    }

    /// How many rows are still wanted.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Adds a row; `Break` where no more are wanted. The caller adds none
    /// after that.
    pub(super) fn push(
        &mut self,
        timestamp: i64,
        row: impl Iterator<Item = f64>,
    ) -> ControlFlow<()> {
        self.timestamps.push(timestamp);
        self.values.extend(row);
        self.remaining -= 1;
        if self.full() || self.values.len() >= BLOCK_VALUES {
            self.flush()?;
        }
        self.more()
    }

    /// Says that at least `count` rows more are to come, or as many as are wanted.
    pub(super) fn announce(&mut self, count: u64) -> ControlFlow<()> {
        let count = count
            .min(self.remaining)
            .saturating_add(self.timestamps.len() as u64);
        self.sink.announce(count, self.width)
    }

    /// Passes on a slice of rows of one value, past the buffer.
    pub(super) fn pass(&mut self, timestamps: &[i64], values: &[f64]) -> ControlFlow<()> {
        let remaining = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let len = timestamps.len().min(remaining);
        if len > 0 {
            self.remaining -= len as u64;
            self.sink.rows(&timestamps[..len], &values[..len], 1)?;
        }
        self.more()
    }

    /// Hands over what is buffered.
    pub(super) fn flush(&mut self) -> ControlFlow<()> {
        if !self.timestamps.is_empty() {
            self.sink.rows(&self.timestamps, &self.values, self.width)?;
            self.timestamps.clear();
            self.values.clear();
        }
        ControlFlow::Continue(())
    }

    fn more(&self) -> ControlFlow<()> {
        if self.full() {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }
}
