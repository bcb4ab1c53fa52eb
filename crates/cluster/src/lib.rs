//! A database whose log is in Kafka and whose files are in an object store.
//!
//! The Kafka partition is the only arbiter of who may write: whoever reads it decides in the
//! same way which of its records count.

pub mod begin;
pub mod checkpoint;
pub mod envelope;
pub mod follower;
pub mod kafka;
pub mod living;
pub mod node;
pub mod owner;
pub mod presence;
pub mod remote;
pub mod restore;
pub mod retry;
pub mod scan;
pub mod standby;
pub mod survey;
pub mod tablet;
mod tiered;
pub mod topic;
