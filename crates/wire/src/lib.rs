//! Bytes to typed requests and back: the protocols Latewood speaks, without sockets.
//!
//! Every decoder is sans I/O: it takes the bytes received so far and returns
//! their content or "incomplete". Nothing in this crate opens a connection,
//! depends on the engine or allocates on the hot path. All bytes are untrusted:
//! no input may panic, loop for long or use more memory than the caller's limits
//! allow. Each decoder has a fuzz target in `fuzz/`.

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

pub use latewood_model::named;
