//! Rows of parked series, for threads that must not read them from their files themselves.
//!
//! An event loop asks before a command which of its keys may be those of parked series
//! ([`Db::rows_away`]), and has another thread wake these ([`Db::wake_parked`]). That changes nothing
//! that a command shows. Tested by `tests/db_rows.rs` and through the server.

use crate::base::error::Result;
use crate::db::Db;
use latewood_model::SeriesId;

impl Db {
    /// The number of parked series. Costs one load.
    #[inline]
    pub fn parked_len(&self) -> usize {
        self.core.parked_keys.len()
    }

    /// The parked series that may be under `keys`, and whose rows would have to be read first. Where
    /// none is parked, no key is looked at.
    pub fn rows_away<'a>(&self, keys: impl Iterator<Item = &'a [u8]>) -> Vec<SeriesId> {
        if self.parked_len() == 0 {
            return Vec::new();
        }
        let core = &self.core;
        core.away(keys.filter(|key| core.keys.find(core.keys.hash(key), key).is_none()))
    }

    /// Wakes those of the series that are parked. Reads their rows, many at a time.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if rows cannot be read: these series stay parked, and whoever needs one gets
    /// the error again.
    pub fn wake_parked(&self, ids: &[SeriesId]) -> Result<()> {
        self.core.wake_some(ids)
    }

    /// How often a thread for which others wait, as an event loop, read rows of parked series.
    pub fn rows_waited_for(&self) -> u64 {
        self.core.store.parked.waited_for()
    }
}
