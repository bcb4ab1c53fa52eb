//! Bytes to typed requests and back: the protocols Latewood speaks, without sockets.
//!
//! Every decoder here is sans I/O: it is given the bytes that have arrived so
//! far and answers with what they hold or with "not yet". Nothing in this
//! crate opens a connection, knows the engine or allocates on the hot path.
//! All bytes come from outside, so no input may panic, loop for long or make
//! memory grow beyond the limits that the caller passes in. Each decoder has
//! a fuzz target in `fuzz/`.

pub mod akumuli;
pub mod filter;
pub mod influx;
pub mod intake;
pub mod lines;
pub mod number;
pub mod opentsdb;
pub mod otlp;
pub mod prometheus;
pub mod protobuf;
pub mod resp;
pub mod selector;
pub mod series_cache;
pub mod series_name;
pub mod testing;
