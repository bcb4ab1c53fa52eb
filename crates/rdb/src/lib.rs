//! Files (`dump.rdb`) and DUMP payloads of Redis, as far as they hold series of RedisTimeSeries.
//!
//! Reads every encoding version of the module's type `TSDB-TYPE`, 0 to 9, and writes version 8, which
//! 1.12 and all later ones load. Values of other types are passed over and named.
//!
//! Invariants: nothing read is trusted: no length leads to an allocation beyond what is there and
//! beyond what keys, labels and chunks may have, and damage is an [`Error`] that says where, never a
//! panic. Memory is the bytes of one chunk and a few thousand samples, whatever the length of the
//! file.
//!
//! The formats are those of Redis' `rdb.h` and of RedisTimeSeries' `rdb.c`, `gorilla.c` and
//! `chunk.c`. Tested against files and payloads that servers of both versions wrote
//! (`tests/golden`), by round trips of random series, and by the fuzz target `rdb`.

mod bytes;
mod chunk;
mod error;
mod file;
mod lzf;
mod module;
mod payload;
mod series;

pub use error::{Error, Result};
pub use file::{Entry, File};
pub use payload::{PayloadWriter, read_payload};
pub use series::{Rule, Series, SeriesReader};
