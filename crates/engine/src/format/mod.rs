//! Formats without a file of their own: chunks, integers, values, and the
//! definition of a rule. Pure.

pub(crate) mod batches;
pub(crate) mod chunk;
pub(crate) mod expired_buckets;
pub(crate) mod parts;
pub(crate) mod rule;
pub(crate) mod value;
pub(crate) mod varint;
