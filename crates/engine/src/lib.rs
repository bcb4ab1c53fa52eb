//! Latewood as a library: a time-series database that ingests late samples, new
//! series and durable writes at the same speed as the rest.
//!
//! The library has no sockets and no async runtime, and uses clocks and files
//! only through [`io`]. `docs/ARCHITECTURE.md` describes the data flow; the
//! modules describe the details.
//!
//! Tested by `tests/` and by unit tests in the modules.
//!
//! ```
//! use latewood_engine::{Append, Create, Db, Defaults, Options, Scratch, io::Env};
//!
//! let dir = tempfile::tempdir()?;
//! let db = Db::open(&Env::real(), dir.path(), Options::default(), Defaults::default())?;
//! let sample = Append {
//!     key: b"sensor:1:celsius",
//!     timestamp: 1_700_000_000_000,
//!     value: 21.5,
//!     on_duplicate: None,
//!     create: Create::Defaults,
//! };
//! let mut scratch = Scratch::new();
//! let position = db.append(&[sample], &mut scratch)?;
//! db.sync_to(position)?; // durable from here on
//! assert_eq!(scratch.outcomes(), [Ok(1_700_000_000_000)]);
//! assert_eq!(db.last_sample(b"sensor:1:celsius")?.map(|s| s.value), Some(21.5));
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
mod recovery;
mod rules;
mod series;
mod storage;
pub mod tools;

pub use base::names;
pub use latewood_codec::prefetch;
pub use observe::histogram;

// The database, its options and errors.
pub use base::cancelled::{Cancel, Cancelled, is_cancelled};
pub use base::detail::Detail;
pub use base::error::{Error, ErrorKind, Result};
pub use base::options::{
    Defaults, DropEmpty, Durability, FollowHook, KeyHook, LoadProgress, NoticeHook, Options,
    ProgressHook,
};
pub use base::tally::{Tallied, Tally};
pub use base::text::shown_key;
pub use db::Db;
pub use db::resources::{External, Resources};

// Writes.
pub use base::refusal::{Excess, Refusal};
pub use db::write::append::{Append, Outcome};
pub use db::write::copy::{CopySource, Dump, DumpFault, DumpWriter, Restored};
pub use db::write::resolved::AppendTo;
pub use db::write::scratch::Scratch;
pub use format::rule::{RuleInfo, RuleSpec};
pub use index::SeriesRef;
pub use keyspace::creation::Create;
pub use keyspace::expiry::{ExpireIf, Expiry};
pub use log::{LogHole, Position, RemoteLog, RemotePin};
pub use rules::replace::Replaced;
pub use series::shard::LateSample;

// Reads.
pub use db::read::listing::{Listed, MaySee, Values};
pub use db::read::many::{Latest, SeriesView};
pub use db::read::rule_states::RuleState;
pub use db::read::select::{Groups, NamesVersion, SeriesSet};
pub use db::read::spread::Spread;
pub use db::read::view::View;
pub use query::{Aggregation, BatchStats, BucketStamp, RangeQuery, Sink};
pub use storage::metadata::Metadata;

// Changes of what was read.
pub use keyspace::watches::{
    Change, ChangedSeries, Drained, ReaderId, ReaderState, Selector, Selects, Watcher,
};

// Figures.
pub use background::{FlushStats, MergeStats};
pub use db::memory::DbMemory;
pub use db::stats::{ChunkInfo, SeriesInfo, Stats};
pub use keyspace::disk_budget::DiskBudgetStats;
pub use keyspace::limits::LimitStats;
pub use keyspace::memory_budget::BudgetStats;
pub use log::LogStats;
pub use observe::observer::Work;
pub use observe::stages::{Stage, StageFigures, Stages, Timer};
pub use recovery::RecoverySummary;
pub use series::{Extent, Memory};
pub use storage::files::{Doubt, DoubtKind, LostBlock};
pub use storage::metadata::MetadataStats;

/// Reads any bytes as a block, with every reading function; for the fuzz target.
///
/// # Errors
/// Those of reading a damaged block.
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub fn fuzz_block(bytes: &[u8]) -> Result<()> {
    storage::block::fuzz::read_any(bytes)
}

/// Reads any bytes as a manifest; for the fuzz target.
///
/// # Errors
/// Those of reading a damaged manifest.
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub fn fuzz_manifest(bytes: &[u8]) -> Result<()> {
    storage::files::fuzz::read_manifest(bytes)
}

/// Reads any bytes as a series file; for the fuzz target.
///
/// # Errors
/// Those of reading a damaged series file.
#[cfg(any(fuzzing, feature = "fuzzing"))]
pub fn fuzz_series_file(bytes: &[u8]) -> Result<()> {
    storage::files::fuzz::read_series(bytes)
}
