//! Range queries, from outside: what a server of the same commands answered,
//! a naive twin on random data, and the ends of every range.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod limits;
mod support;
mod transcripts;
mod twin;
