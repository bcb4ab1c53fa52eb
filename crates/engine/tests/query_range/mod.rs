//! Range queries, from outside: what a server of the same commands answered,
//! a naive twin on random data, and the ends of every range.

mod limits;
mod support;
mod transcripts;
mod twin;
