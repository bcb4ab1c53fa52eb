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

mod background;
mod base;
mod db;
mod format;
mod index;
pub mod io;
mod keyspace;
pub mod log;
mod observe;
pub mod query;
mod read;
mod recovery;
mod rules;
mod series;
mod storage;
pub mod tools;
mod write;

pub use base::names;
pub use observe::histogram;

pub use background::{FlushStats, MergeStats};
pub use base::detail::Detail;
pub use base::error::{Error, ErrorKind, Result};
pub use base::options::{
    Defaults, Durability, KeyHook, LoadProgress, NoticeHook, Options, ProgressHook,
};
pub use base::refusal::{Excess, Refusal};
pub use base::text::shown_key;
pub use db::Db;
pub use db::memory::DbMemory;
pub use db::stats::{ChunkInfo, SeriesInfo, Stats};
pub use format::rule::{RuleInfo, RuleSpec};
pub use index::SeriesRef;
pub use keyspace::creation::Create;
pub use keyspace::disk_budget::DiskBudgetStats;
pub use keyspace::expiry::{ExpireIf, Expiry};
pub use keyspace::limits::LimitStats;
pub use keyspace::memory_budget::BudgetStats;
pub use latewood_codec::prefetch;
pub use log::{LogHole, LogStats, Position};
pub use observe::observer::Work;
pub use observe::stages::{Stage, StageFigures, Stages, Timed};
pub use query::{Aggregation, BucketStamp, RangeQuery, Sink};
pub use read::listing::{Listed, MaySee, Values};
pub use read::many::{Latest, SeriesView, View};
pub use read::spread::Spread;
pub use recovery::RecoverySummary;
pub use series::Memory;
pub use storage::files::LostBlock;
pub use write::append::{Append, Outcome};
pub use write::copy::{Dump, DumpFault, Restored};
pub use write::resolved::AppendTo;
pub use write::scratch::Scratch;

/// Reads any bytes as a block, in every way there is; for the fuzz target.
///
/// # Errors
/// What reading a damaged block answers.
#[cfg(fuzzing)]
pub fn fuzz_block(bytes: &[u8]) -> Result<()> {
    storage::block::fuzz::read_any(bytes)
}

/// Reads any bytes as a manifest; for the fuzz target.
///
/// # Errors
/// What reading a damaged manifest answers.
#[cfg(fuzzing)]
pub fn fuzz_manifest(bytes: &[u8]) -> Result<()> {
    storage::files::fuzz::read_manifest(bytes)
}

/// Reads any bytes as a series file; for the fuzz target.
///
/// # Errors
/// What reading a damaged series file answers.
#[cfg(fuzzing)]
pub fn fuzz_series_file(bytes: &[u8]) -> Result<()> {
    storage::files::fuzz::read_series(bytes)
}
