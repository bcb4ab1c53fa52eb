//! One series: chunks, a raw tail, and late operations.
//!
//! A sample newer than all before goes to the *tail*, which is sealed into a frame
//! of the last chunk when it is full. A late sample that is newer than the sealed
//! ones goes into the tail too; the tail is sorted when its order matters
//! ([`tail`]). All other late samples wait as late operations ([`late`]) until a
//! settle folds them into chunks. A write decodes nothing, except one frame's
//! timestamps if BLOCK must know whether a sample exists.
//!
//! Invariants:
//! 1. Chunks ascend and do not overlap. The tail is newer than `sealed_last`; late
//!    operations are at or before it. The tail ascends unless `tail_unsorted` is
//!    set; then the last of the samples with the same timestamp counts.
//! 2. `newest` is the timestamp of the newest sample, expired or not.
//! 3. Stored samples are older than the first chunk; `sealed_last` is never before
//!    their end.
//! 4. While a settle works on chunks, nothing else changes them: any other change
//!    cancels the settle first ([`Series::cancel_settle`]).
//!
//! Tested by `series/tests.rs` against a naive map and by the model test.

pub(crate) mod expiries;
pub(crate) mod heads;
pub(crate) mod presence;
pub(crate) mod rules;
pub(crate) mod shard;
pub(crate) mod shards;

mod ahead;
mod counted;
mod delete;
mod extent;
mod fate;
mod freeze;
pub(crate) mod late;
mod look;
mod memory;
pub(crate) mod merge;
mod moment;
pub(crate) mod over;
pub(crate) mod overlay;
mod put;
mod reach;
pub(crate) mod rewrite;
mod seal;
pub(crate) mod settle;
pub(crate) mod settle_queue;
mod snapshot;
mod sort;
pub(crate) mod spans;
mod state;
pub(crate) mod stored;
mod tail;
#[cfg(test)]
mod tests;
pub(crate) mod units;
pub(crate) mod watched;

pub(crate) use delete::Deleted;
pub use extent::Extent;
pub(crate) use fate::Fate;
pub(crate) use freeze::Freezes;
pub use memory::Memory;
pub(crate) use rewrite::merge_ops;
pub(crate) use seal::Sealer;
pub(crate) use settle::{Pressure, SettleWork};
pub(crate) use snapshot::{Snapshot, Tail};
pub(crate) use state::{Facts, Marks, Series};
