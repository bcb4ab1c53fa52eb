//! The overlays of one series in late blocks, read window by window.

use crate::base::error::Result;
use crate::series::late::LateOp;
use crate::series::overlay::Overlays;
use crate::series::spans::Spans;
use crate::storage::block::{Block, Entry, Kind};
use latewood_model::Timestamp;
use std::sync::Arc;

/// Operations decoded at a time, about: 12 MiB.
const WINDOW_OPS: u64 = 512 * 1024;

/// What late blocks have of one series, in arrival order.
#[derive(Default)]
pub(crate) struct SeriesOverlays(Vec<(Arc<Block>, Entry)>);

impl SeriesOverlays {
    /// Adds what the next late block has.
    pub(crate) fn add(&mut self, block: &Arc<Block>, entries: Vec<Entry>) {
        let entries = entries.into_iter();
        self.0.extend(entries.map(|entry| (block.clone(), entry)));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.0.iter().map(|(_, entry)| entry)
    }

    /// The windows of `from..=to`, by their last timestamps: each has not many
    /// more operations than fit into memory.
    pub(crate) fn windows(&self, from: Timestamp, to: Timestamp) -> Vec<Timestamp> {
        let touching = self.entries().filter(|entry| entry.touches(from, to));
        let mut starts: Vec<_> = touching.map(|entry| (entry.first, entry.count)).collect();
        starts.sort_unstable();
        let (mut windows, mut ops) = (Vec::new(), 0);
        for (first, count) in starts {
            ops += u64::from(count);
            if ops > WINDOW_OPS && first > from {
                // `first` is not the smallest timestamp there is.
                windows.push(first - 1);
                ops = u64::from(count);
            }
        }
        windows.dedup();
        windows.push(to);
        windows
    }

    /// The operations of `from..=to`, sorted, and the spans of it in which
    /// base samples are deleted.
    ///
    /// # Errors
    /// `Io` and `Corrupt` where a chunk cannot be read.
    pub(crate) fn read(&self, from: Timestamp, to: Timestamp) -> Result<(Vec<LateOp>, Spans)> {
        let mut overlays = Overlays::default();
        for (block, entry) in &self.0 {
            if !entry.touches(from, to) {
                continue;
            }
            match entry.kind {
                Kind::Overlay(policy) => {
                    overlays.chunk(&*block.read(entry)?, policy, from, to)?;
                }
                // A late block has no base chunks.
                Kind::Tombstone | Kind::Base => {
                    overlays.delete(entry.first.max(from), entry.last.min(to));
                }
            }
        }
        Ok(overlays.finish())
    }
}
