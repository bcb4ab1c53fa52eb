//! The way in: batches by key, samples by reference, increments and copies.

pub(crate) mod append;
mod batch;
pub(crate) mod copy;
mod expire;
pub(crate) mod find;
pub(crate) mod increment;
mod rename;
pub(crate) mod resolved;
pub(crate) mod scratch;
mod series;
