//! Compaction: fewer, longer blocks with nothing of no use in them.
//!
//! One job at a time, chosen by [`plan`] from what the manifest and the indexes
//! say: merge a stretch of base blocks, merge a stretch of late blocks, fold
//! late blocks into the base blocks they lie over, forget or rewrite blocks of
//! series that are gone and of time that is. Inputs are immutable and outputs
//! new, so nobody waits for it: readers keep what they hold, writers and
//! flushes go on, and what they add stays behind in the lists. A job that
//! fails leaves everything as it was.
//!
//! Invariants: a compaction changes nothing a reader can see. Base blocks stay
//! in order of time series by series, late blocks in order of arrival. Nothing
//! is dropped before the log that makes it useless is on disk.
//!
//! Tested by table, by random partitions against maps, and through the
//! database on the simulated disk (`tests/compact_*.rs`).

#[cfg(test)]
mod chance;
mod cursor;
mod fold;
mod join;
mod living;
mod output;
mod overlays;
mod plan;
mod regions;
mod rewrite;
mod survey;
