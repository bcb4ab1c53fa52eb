//! The tests of tablets without brokers, as one program. Those with brokers are the program
//! `broker`.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod checkpoint;
mod envelope;
mod follower;
mod hooked;
mod lease;
mod ledger;
mod living;
mod memory;
mod model;
mod owner;
mod remote;
mod scan;
mod standby;
mod tablet;
mod topic;
