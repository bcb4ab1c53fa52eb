//! The log: the write-ahead log, which holds acknowledged writes in order until
//! files hold them.
//!
//! ```text
//! segment = header, groups        (segment.rs)      group = header, records   (group.rs)
//! record  = sample | control      (record.rs)       integers, values          (varint.rs, value.rs)
//! ```
//! Writers encode a batch into a [`GroupBuilder`] and [`Log::append`] it: the
//! group gets the next sequence number and is in the kernel at return.
//! [`Log::sync_to`] makes everything up to a position durable; all who wait
//! share one sync. [`Log::trim`] gives up what is no longer needed, and
//! [`Log::open`] reads the rest back. Nothing in that contract is about files:
//! a log kept elsewhere ([`RemoteLog`]) has the same four verbs.
//!
//! Invariants: sequences have no gaps; a segment is written front to back
//! once and never appended to after a restart; whatever `sync_to` answered Ok
//! for is replayed by every later `open`; the first failed write, sync, create
//! or rename halts the log for good. There are no threads in here but the
//! replay workers: the engine calls [`Log::background_tick`].
//!
//! Tested by `tests/log_*.rs`, mostly on the simulated disk.

mod copy;
mod created;
mod form;
mod found;
pub(crate) mod group;
mod holes;
mod inspect;
mod latch;
mod options;
mod pin;
mod reader;
pub(crate) mod record;
mod recover;
mod remote;
pub(crate) mod replay;
mod report;
mod segment;
mod store;
mod table;
mod tail;
mod walk;
mod writer;

use crate::base::error::Result;
use crate::io::Env;
use report::OnDamage;
use std::path::Path;

pub(crate) use copy::missing_remote;
pub use copy::{CopiedLog, LogCopy, count_samples};
pub use form::Log;
pub(crate) use form::Pinned;
pub use group::GroupBuilder;
pub(crate) use inspect::segment_facts;
pub(crate) use latch::LOG_FAILED;
pub use options::{LogOptions, LogStats, Position};
pub(crate) use pin::LogPin;
pub use record::{Cut, Ended, GroupForm, Record, RecordIter};
pub use remote::{RemoteLog, RemotePin};
pub use replay::{LogStart, Replay};
pub use report::{LogHole, RecoveryReport};

/// Reads the log in `dir` into `sink` as [`Log::open`] would, and changes
/// nothing: damage is reported and passed over, a torn end stays. Groups up to
/// `durable` were durable once, as somebody else than the log knows.
///
/// # Errors
/// `Io`, `Unsupported` for a later version, and whatever `sink` answers.
pub fn look(env: &Env, dir: &Path, durable: Position, sink: &dyn Replay) -> Result<RecoveryReport> {
    Ok(recover::recover(env, dir, OnDamage::Look, durable, sink)?.report)
}
