//! The state that all threads share: keys, series under their locks, creation,
//! removal, expiry, memory and disk budgets, publication of files.

pub(crate) mod admission;
pub(crate) mod clear;
pub(crate) mod core;
pub(crate) mod creation;
pub(crate) mod crowd;
pub(crate) mod defaults;
mod dense;
pub(crate) mod disk_budget;
pub(crate) mod ended;
pub(crate) mod expiry;
pub(crate) mod flush_state;
pub(crate) mod keys;
mod labels;
pub(crate) mod limits;
mod locate;
pub(crate) mod log_group;
pub(crate) mod memory_budget;
pub(crate) mod memory_member;
mod memory_use;
pub(crate) mod metadata;
pub(crate) mod owned;
pub(crate) mod park;
pub(crate) mod parked_keys;
pub(crate) mod pin;
pub(crate) mod publish;
mod rows;
mod series;
pub(crate) mod settle;
pub(crate) mod store;
pub(crate) mod watches;
