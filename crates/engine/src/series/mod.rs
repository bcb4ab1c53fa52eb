//! One series: chunks, a raw tail, and late operations on their way.
//!
//! A sample newer than all before goes to the *tail*, which seals into a frame
//! of the last chunk when full. A sample older than that but newer than what
//! is sealed goes into the tail, too, and that is sorted once its order counts
//! ([`tail`]). Anything else waits among the late operations ([`late`]) until a
//! settle folds it into chunks. Nothing is decoded on the way, except one
//! frame's timestamps where BLOCK must know whether a sample exists.
//!
//! Invariants:
//! 1. Chunks ascend and do not overlap; the tail lies wholly after
//!    `sealed_last`, late operations at or before it. The tail ascends unless
//!    `tail_unsorted`; then the last of the samples of a timestamp counts.
//! 2. `newest` is the timestamp of the newest sample, expired or not.
//! 3. What is stored ends before the first chunk begins; `sealed_last` is never
//!    before its end.
//! 4. Chunks a settle works on change in no other way: whatever else must
//!    change them cancels the settle first ([`Series::cancel_settle`]).
//!
//! Tested by `series/tests.rs` against a naive map and by the model test.

pub(crate) mod expiries;
pub(crate) mod heads;
pub(crate) mod rules;
pub(crate) mod shard;
pub(crate) mod shards;

mod ahead;
mod delete;
mod facts;
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
mod snapshot;
mod sort;
pub(crate) mod spans;
mod state;
pub(crate) mod stored;
mod tail;
#[cfg(test)]
mod tests;
pub(crate) mod units;

pub(crate) use delete::Deleted;
pub(crate) use facts::Facts;
pub(crate) use fate::Fate;
pub use memory::Memory;
pub(crate) use rewrite::merge_ops;
pub(crate) use seal::Sealer;
pub(crate) use settle::{Pressure, SettleWork};
pub(crate) use snapshot::{Snapshot, Tail};
pub(crate) use state::Series;
