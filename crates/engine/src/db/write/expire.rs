//! Expiry times: EXPIRE, PERSIST and their like.

use crate::base::error::Result;
use crate::db::Db;
use crate::keyspace::expiry::{ExpireIf, Expiry};
use crate::log::Position;

impl Db {
    /// Sets the expiry of the series under `key` to `at_ms`, milliseconds since
    /// the Unix epoch. A time in the past removes the series at once.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` if somebody owns the series, errors of the log.
    pub fn expire(&self, key: &[u8], at_ms: i64, only: ExpireIf) -> Result<(Expiry, Position)> {
        let core = &self.core;
        core.check_writable()?;
        core.check_not_owned(key)?;
        if at_ms <= core.time.now_ms() {
            // Closed buckets reach the destinations before the source is removed.
            self.rules.recompute_key_for_removal(key)?;
        }
        let (mut state, id) = core.lock_series(key)?;
        let place = core.shards.place_of(id);
        if !only.allows(state.expiries.get(place), at_ms) {
            return Ok((Expiry::Kept, Position::default()));
        }
        if at_ms <= core.time.now_ms() {
            let position = core.remove_in(&mut state, key, id)?;
            return Ok((Expiry::Removed, position));
        }
        core.set_expiry(&mut state, id, Some(at_ms));
        Ok((Expiry::Set, core.log_group(&mut state)?))
    }

    /// Removes the expiry of a series. Returns whether it had one.
    ///
    /// # Errors
    /// `NoSuchKey`, `Invalid` if somebody owns the series, errors of the log.
    pub fn persist(&self, key: &[u8]) -> Result<(bool, Position)> {
        let core = &self.core;
        core.check_writable()?;
        core.check_not_owned(key)?;
        let (mut state, id) = core.lock_series(key)?;
        if state.expiries.get(core.shards.place_of(id)).is_none() {
            return Ok((false, Position::default()));
        }
        core.set_expiry(&mut state, id, None);
        Ok((true, core.log_group(&mut state)?))
    }

    /// Removes the series under `key` and reports the expiry, if the series has
    /// expired and is not yet removed.
    ///
    /// # Errors
    /// Errors of the log.
    pub fn remove_expired(&self, key: &[u8]) -> Result<()> {
        self.core.check_writable()?;
        self.rules.purge(key)
    }

    /// The expiry of a series, in milliseconds since the Unix epoch; `None` if it
    /// does not expire.
    ///
    /// # Errors
    /// `NoSuchKey`.
    pub fn expires_at(&self, key: &[u8]) -> Result<Option<i64>> {
        let (state, id) = self.core.lock_series(key)?;
        Ok(state.expiries.get(self.core.shards.place_of(id)))
    }
}
