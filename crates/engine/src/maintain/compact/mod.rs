//! Compaction: fewer, longer blocks with nothing of no use in them.

mod join;
mod plan;
