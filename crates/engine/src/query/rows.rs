//! The buffer of rows before the sink, one block at a time.
//!
//! It enforces the query's limit of rows. Memory is one block, whatever the number
//! of rows.

use super::Sink;
use crate::format::batches::BatchStats;
use std::ops::ControlFlow;

/// Values of one block; a row has at most 16.
const BLOCK_VALUES: usize = 2048;
/// Initial capacity in rows.
const FEW_ROWS: usize = 256;

pub(super) struct Rows<'a> {
    sink: &'a mut dyn Sink,
    width: usize,
    remaining: u64,
    timestamps: Vec<i64>,
    values: Vec<f64>,
}

impl<'a> Rows<'a> {
    /// A buffer for rows of `width` values, at most `count` of them.
    pub(super) fn new(sink: &'a mut dyn Sink, width: usize, count: Option<u64>) -> Self {
        Self {
            sink,
            width,
            remaining: count.unwrap_or(u64::MAX),
            timestamps: Vec::with_capacity(FEW_ROWS),
            values: Vec::with_capacity(FEW_ROWS * width),
        }
    }

    pub(super) fn full(&self) -> bool {
        self.remaining == 0
    }

    /// Whether nobody wants the rows any more.
    pub(super) fn is_cancelled(&self) -> bool {
        self.sink.is_cancelled()
    }

    /// The number of rows until the limit.
    pub(super) fn remaining(&self) -> u64 {
        self.remaining
    }

    /// Adds a row; `Break` if no more are needed. The caller must not add rows
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

    /// Announces that at least `count` more rows follow, or as many as the limit
    /// allows.
    pub(super) fn announce(&mut self, count: u64) -> ControlFlow<()> {
        let count = count
            .min(self.remaining)
            .saturating_add(self.timestamps.len() as u64);
        self.sink.announce(count, self.width)
    }

    /// Passes on a slice of rows of one value, bypassing the buffer.
    pub(super) fn pass(&mut self, timestamps: &[i64], values: &[f64]) -> ControlFlow<()> {
        let remaining = usize::try_from(self.remaining).unwrap_or(usize::MAX);
        let len = timestamps.len().min(remaining);
        if len > 0 {
            self.remaining -= len as u64;
            self.sink.rows(&timestamps[..len], &values[..len], 1)?;
        }
        self.more()
    }

    /// Passes on rows of one value by what is known of them together; `None` if each is needed.
    pub(super) fn pass_stats(&mut self, stats: &BatchStats) -> Option<ControlFlow<()>> {
        let left = self.remaining.checked_sub(stats.count)?;
        let flow = self.sink.stats(stats)?;
        self.remaining = left;
        Some(if flow.is_break() { flow } else { self.more() })
    }

    /// Passes on the buffered rows.
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
