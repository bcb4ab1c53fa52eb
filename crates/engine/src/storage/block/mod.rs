//! Block files: immutable files with the chunks of many series of one partition.
//!
//! A *partition* is a range of 65,536 series ids. Its *base* blocks hold resolved
//! samples: over all of them, in list order, the chunks of a series ascend and
//! never overlap. Its *late* blocks hold *overlays* in arrival order: chunks whose
//! samples are operations under one duplicate policy, and tombstones. All overlays
//! of a series arrived after every base sample at the same timestamp.
//!
//! A block is written once, front to back, and is part of the database when the
//! manifest names it. A checksum covers every byte; no bytes make a reader panic.
//! The format is described in `docs/format/block.md`. Tested by `block/tests.rs` on
//! the simulated disk and by the fuzz target `block`.

mod ahead;
mod cache;
mod current;
mod entry;
mod exists;
mod format;
#[cfg(any(test, fuzzing, feature = "fuzzing"))]
pub(crate) mod fuzz;
mod overlap;
mod page;
mod reader;
mod scan;
mod set;
mod stats;
mod stretch;
mod window;
mod writer;

pub(crate) use ahead::ReadAhead;
pub(crate) use cache::Cache;
pub(crate) use current::CurrentBlocks;
pub(crate) use entry::{BlockMeta, Entry, Family, Kind};
pub(crate) use reader::Block;
pub(crate) use scan::Scan;
pub(crate) use set::{BlockSet, Overlay, PartitionBlocks, StoredChunk};
pub(crate) use writer::BlockWriter;

#[cfg(test)]
mod tests;
