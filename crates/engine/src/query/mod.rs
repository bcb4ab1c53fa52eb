//! The evaluation of range queries: samples in, rows out.
//!
//! Pure: no lock, no clock, no I/O. A [`Source`] returns batches of merged samples
//! (one value per timestamp). [`run()`] filters them, folds them into time buckets
//! and passes rows to a [`Sink`] as they are made.
//!
//! Invariants: rows are strictly ascending in time, strictly descending in a
//! reversed query; memory is one batch, one block of rows and one fold, whatever
//! the number of samples and buckets; no timestamp or bucket size overflows.
//! Samples are reduced a slice at a time, never one by one behind a `dyn` call.
//!
//! Tested by transcripts of a RedisTimeSeries server, by a naive twin on random
//! data, and at the ends of `i64` (`tests/query_*.rs`).

mod buckets;
mod columns;
mod cut;
mod filter;
mod fold;
mod join;
pub(crate) mod nearest;
mod range;
pub(crate) mod reduce;
mod rows;
mod run;
mod silent;
mod sums;
mod twa;

pub use crate::base::window::BucketStamp;
pub use crate::format::batches::{BatchStats, Source};
pub use columns::Columns;
pub use join::join;
pub use range::{Aggregation, Neighbours, RangeQuery, Sink};
pub use run::run;
