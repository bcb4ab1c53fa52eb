//! What waits for the thread of a log, how much may, and what is known of what it did.
//!
//! Tested with the log, by `tests/remote.rs`.

use super::Complete;
use crate::envelope::{Checkpoint, State};
use crate::kafka::Offset;
use crate::owner::Error as OwnerError;
use std::collections::VecDeque;
use std::time::Instant;

/// What a tablet may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes of groups that wait for Kafka. Default: 64 MiB.
    pub queue_bytes: u64,
    /// Bytes of groups in Kafka that no checkpoint holds. Default: 4 GiB.
    pub log_bytes: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            queue_bytes: 64 << 20,
            log_bytes: 4 << 30,
        }
    }
}

/// What waits, and what is known of what was done.
pub(super) struct Waiting {
    /// The first record that is needed beside the newest checkpoint, and the state before it.
    pub(super) begin: (Offset, State),
    /// Readers for whom the log is not trimmed.
    pub(super) pins: usize,
    pub(super) batches: VecDeque<Batch>,
    /// Bytes of `batches` and of the one that is being appended.
    pub(super) queued_bytes: u64,
    /// Since when the oldest of them waits.
    pub(super) since: Option<Instant>,
    /// A thread gives up records that are needed no more.
    pub(super) is_trimming: bool,
    /// Why the thread of the log must end: a trim showed it, or somebody gives the log up.
    pub(super) must_end: Option<OwnerError>,
    pub(super) complete: Option<Complete>,
    pub(super) checkpoints_asked: u64,
    pub(super) checkpoint: Option<(Offset, Checkpoint)>,
    /// Bytes of the groups that no checkpoint holds.
    pub(super) log_bytes: u64,
    /// Bytes of the groups that are known to be in Kafka since the start.
    pub(super) written_bytes: u64,
    /// How often the thread was asked to do all that is due, and which of them it did.
    pub(super) turns_asked: u64,
    pub(super) turns: u64,
    pub(super) ended: Option<OwnerError>,
    pub(super) is_closing: bool,
    pub(super) records: u64,
    pub(super) last_append_us: u64,
}

impl Waiting {
    pub(super) fn new(begin: (Offset, State)) -> Self {
        Self {
            begin,
            pins: 0,
            batches: VecDeque::new(),
            queued_bytes: 0,
            since: None,
            is_trimming: false,
            must_end: None,
            complete: None,
            checkpoints_asked: 0,
            checkpoint: None,
            log_bytes: 0,
            written_bytes: 0,
            turns_asked: 0,
            turns: 0,
            ended: None,
            is_closing: false,
            records: 0,
            last_append_us: 0,
        }
    }

    /// Whether the log ended otherwise than by a farewell or a stop.
    pub(super) fn has_failed(&self) -> bool {
        let ended = self.ended.as_ref();
        ended.is_some_and(|ended| *ended != OwnerError::Cancelled)
    }
}

/// Groups that become one record.
pub(super) struct Batch {
    pub(super) first: u64,
    pub(super) since: Instant,
    pub(super) groups: u32,
    pub(super) bytes: Vec<u8>,
}
