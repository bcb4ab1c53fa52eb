//! Explicit-state checks of the protocol of a tablet, with the product's own decoder and judge
//! (`envelope.rs`, `scan.rs`) as the reader of every record of an owner:
//!
//! - [`owners`]: who may append, what is proven, what counts. No time.
//! - [`follow`]: followers that apply the log, HELLO and freshness, leases, claims with `n`,
//!   FAREWELL. Time is ages in ticks.
//! - [`silence`]: when a follower claims, while Kafka stalls or the owner is dead.
//! - [`adopt`]: CUT, checkpoints, adopting them, their names in the store.
//!
//! Each has faults that are planted one at a time, and each of them must be found ([`explore`]).
//! `silence` and what `follow` says of followers is what `follower` does; `tests/follower/` checks that
//! code against a clock. `adopt` is ahead of the code.

mod adopt;
mod explore;
mod follow;
mod owners;
mod record;
mod silence;
