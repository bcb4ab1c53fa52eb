//! Tablets over a Kafka and an object store with faults, on disks that are lost: everything
//! acknowledged is there, and every increment counts once.

mod alone;
pub(crate) mod away;
mod begin;
mod nodes;
mod rescue;
mod restore;
mod soak;
mod starts;
mod store;
mod uploads;
pub(crate) mod world;
