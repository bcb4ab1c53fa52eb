//! Tablets over a Kafka and an object store with faults, on disks that are lost: everything
//! acknowledged is there, and every increment counts once.

mod away;
mod nodes;
mod restore;
mod store;
mod world;
