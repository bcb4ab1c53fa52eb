//! How many samples of a series came late, and when the last one did.
//!
//! Part of its row; the bytes are described in `docs/format/series.md`. Tested with the files that hold
//! rows and by `tests/db_late.rs`.

use crate::storage::files::bytes::{Put, Take};

/// The samples of a series that came late, merged long ago or not.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LateTally {
    /// Accepted samples that were older than the newest one.
    pub(crate) count: u64,
    /// The newest arrival that is known: the log does not say when a sample came, so one that was replayed
    /// counts alone. Milliseconds since the Unix epoch, above 0.
    pub(crate) arrived_ms: Option<i64>,
}

impl LateTally {
    /// Whether nothing came late.
    pub(crate) fn is_none(&self) -> bool {
        *self == Self::default()
    }

    /// Writes it, unless nothing came late: the row says so.
    pub(super) fn put(&self, out: &mut Put) {
        if !self.is_none() {
            out.number(self.count);
            out.signed(self.arrived_ms.unwrap_or(0));
        }
    }

    pub(super) fn take(bytes: &mut Take<'_>) -> Option<Self> {
        let count = bytes.number().filter(|&count| count > 0)?;
        let at_ms = bytes.signed().filter(|&at_ms| at_ms >= 0)?;
        let arrived_ms = (at_ms > 0).then_some(at_ms);
        Some(Self { count, arrived_ms })
    }
}
