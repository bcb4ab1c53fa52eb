//! Latewood as a library: a time-series database whose ingest does not care
//! whether a sample is late, its series new or its write durable.
//!
//! No sockets, no async runtime, no clock and no file but through [`io`].
//! `docs/ARCHITECTURE.md` shows the way of the data; the modules say the rest.
//!
//! ```
//! use latewood_engine::{Append, Create, Db, Defaults, Options, Scratch, io::Env};
//!
//! let dir = tempfile::tempdir()?;
//! let db = Db::open(&Env::real(), dir.path(), Options::default(), Defaults::default())?;
//! let sample = Append {
//!     key: b"room:1:celsius",
//!     timestamp: 1_700_000_000_000,
//!     value: 21.5,
//!     on_duplicate: None,
//!     create: Create::Defaults,
//! };
//! let mut scratch = Scratch::new();
//! let position = db.append(&[sample], &mut scratch)?;
//! db.sync_to(position)?; // on disk now
//! assert_eq!(scratch.outcomes(), [Ok(1_700_000_000_000)]);
//! assert_eq!(db.last_sample(b"room:1:celsius")?.map(|s| s.value), Some(21.5));
//! db.close()?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod append;
mod block;
mod copy;
mod core;
mod creation;
mod db;
mod error;
mod expiry;
pub mod histogram;
mod increment;
mod index;
pub mod io;
mod keys;
mod limits;
mod log_group;
mod maintain;
mod memory;
pub mod names;
mod notices;
mod observe;
mod options;
mod quarantine;
pub mod query;
mod random_key;
mod refusal;
mod removal;
mod rename;
mod replay;
mod resolved;
mod room;
mod rules;
mod series;
mod shard;
mod slab;
mod stages;
mod stats;
mod store;
mod table;
pub mod tools;
pub mod wal;

pub use append::{Append, Create, Outcome, Scratch};
pub use copy::{Dump, DumpFault, Restored};
pub use db::Db;
pub use error::{Error, ErrorKind, Result};
pub use expiry::{ExpireIf, Expiry};
pub use index::{Listed, MaySee, SeriesRef, Values};
pub use keys::shown_key;
pub use latewood_codec::prefetch;
pub use limits::LimitStats;
pub use maintain::{CompactionStats, FlushStats};
pub use memory::{BudgetStats, DbMemory};
pub use observe::Work;
pub use options::{Defaults, Durability, KeyHook, LoadProgress, NoticeHook, Options, ProgressHook};
pub use query::{Aggregation, BucketStamp, RangeQuery, Sink};
pub use refusal::{Excess, Refusal};
pub use replay::RecoverySummary;
pub use resolved::AppendTo;
pub use room::RoomStats;
pub use rules::{RuleInfo, RuleSpec};
pub use series::Memory;
pub use stages::{Stage, StageFigures, Stages, Timed};
pub use stats::{ChunkInfo, SeriesInfo, Stats};
pub use store::LostBlock;
pub use wal::{LogHole, Position, WalStats};

/// Reads any bytes as a block, in every way there is; for the fuzz target.
///
/// # Errors
/// What reading a damaged block answers.
#[cfg(fuzzing)]
pub fn fuzz_block(bytes: &[u8]) -> Result<()> {
    block::fuzz::read_any(bytes)
}

/// Reads any bytes as a manifest; for the fuzz target.
///
/// # Errors
/// What reading a damaged manifest answers.
#[cfg(fuzzing)]
pub fn fuzz_manifest(bytes: &[u8]) -> Result<()> {
    store::fuzz::read_manifest(bytes)
}

/// Reads any bytes as a series file; for the fuzz target.
///
/// # Errors
/// What reading a damaged series file answers.
#[cfg(fuzzing)]
pub fn fuzz_series_file(bytes: &[u8]) -> Result<()> {
    store::fuzz::read_series(bytes)
}
