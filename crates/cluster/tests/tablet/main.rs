//! Tablets over a Kafka and an object store with faults, on disks that are lost: everything
//! acknowledged is there, and every increment counts once.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod away;
mod nodes;
mod restore;
mod world;
