//! The way in: batches by key, samples by reference, increments and copies.

pub(crate) mod append;
pub(crate) mod copy;
pub(crate) mod find;
pub(crate) mod increment;
pub(crate) mod resolved;
pub(crate) mod scratch;
