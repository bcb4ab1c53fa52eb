//! Bytes that stand alone: chunks, integers, values, and what a rule does. Pure.

pub(crate) mod batches;
pub(crate) mod chunk;
pub(crate) mod expired_buckets;
pub(crate) mod parts;
pub(crate) mod rule;
pub(crate) mod value;
pub(crate) mod varint;
