//! From a key to its series, awake or parked.
//!
//! The map of keys has those that are awake. If it has none, and the fingerprint of the key is among
//! the parked ones ([`super::parked_keys`]), the row is read and the series wakes: then its key says
//! whether it is the one. So whoever works by key works on an awake series.
//!
//! Invariant: a key that goes from one map to the other meanwhile is in the new one before it leaves
//! the old one, and parking is counted, so a look at both misses none.
//!
//! Tested by `recovery/tests/parked.rs` and `tests/db_rows.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::keyspace::core::Core;
use crate::series::presence::BROUGHT_MAX;
use crate::series::shard::ShardState;
use latewood_model::SeriesId;

impl Core {
    /// The series under `key`, whose hash this is, expired or not. It is awake; if it was parked, it
    /// wakes. No lock may be held.
    ///
    /// # Errors
    /// `Io`, `Corrupt` if the row of a parked series cannot be read that may have the key, or is not known
    /// which may.
    #[inline]
    pub(crate) fn locate(&self, hash: u64, key: &[u8]) -> Result<Option<SeriesId>> {
        match self.keys.find(hash, key) {
            // Even if none is parked any more: it may have woken between the two looks.
            None if self.parked_keys.came() > 0 => self.locate_parked(hash, key),
            found => Ok(found),
        }
    }

    #[cold]
    fn locate_parked(&self, hash: u64, key: &[u8]) -> Result<Option<SeriesId>> {
        loop {
            let came = self.parked_keys.came();
            if let Some(id) = self.parked_keys.find(key)? {
                // One with another key of the same fingerprint wakes, too: then it is in the way no
                // more.
                self.bring(&[id])?;
                self.wake_found(&mut self.shards.lock_of(id), key, id)?;
            } else if let Some(id) = self.keys.find(hash, key) {
                return Ok(Some(id));
            } else if self.parked_keys.came() == came {
                return Ok(None);
            }
        }
    }

    /// Wakes a series that was found by the fingerprint of `key`: that is gone then.
    ///
    /// # Errors
    /// `Corrupt` if its file has the hash of another key for it; those of [`Core::wake`].
    pub(crate) fn wake_found(
        &self,
        state: &mut ShardState,
        key: &[u8],
        id: SeriesId,
    ) -> Result<()> {
        if !self.wake(state, id)? && self.parked_keys.find(key)? == Some(id) {
            let text = format!("series {} has not the key whose hash its file has", id.0);
            return Err(Error::new(ErrorKind::Corrupt, text));
        }
        Ok(())
    }

    /// Wakes the parked series among those under `keys`, whose hashes these are, and puts those
    /// that were not found into `ids`. What cannot be read is left out. No lock may be held.
    #[cold]
    pub(crate) fn wake_all<'a>(
        &self,
        hashes: &[u64],
        keys: impl Iterator<Item = &'a [u8]>,
        ids: &mut [Option<SeriesId>],
    ) {
        let all = ids.iter_mut().zip(hashes).zip(keys);
        let mut found = all.filter_map(|((id, &hash), key)| {
            let parked = match id {
                Some(_) => None,
                None => self.parked_keys.find(key).ok()?,
            };
            Some((id, hash, key, parked?))
        });
        loop {
            let some: Vec<_> = found.by_ref().take(BROUGHT_MAX).collect();
            if some.is_empty() {
                return;
            }
            let parked: Vec<SeriesId> = some.iter().map(|(.., parked)| *parked).collect();
            // Whoever takes such a sample alone gets the error.
            let _ = self.bring(&parked);
            for (id, hash, key, _) in some {
                *id = self.locate(hash, key).ok().flatten();
            }
        }
    }

    /// The awake series under a key, and whether a parked one may be: then [`Core::find`] says. Under
    /// the lock of the shard that the key names.
    pub(crate) fn names(&self, key: &[u8]) -> (Option<SeriesId>, bool) {
        self.names_hashed(self.keys.hash(key), key)
    }

    /// The same of a key with this hash.
    #[inline]
    pub(crate) fn names_hashed(&self, hash: u64, key: &[u8]) -> (Option<SeriesId>, bool) {
        match self.keys.find(hash, key) {
            None if self.parked_keys.came() > 0 => {
                // One that was renamed is in another shard, and may wake or park between the looks.
                let came = self.parked_keys.came();
                let may_be_parked = self.may_be_parked(key);
                let awake = self.keys.find(hash, key);
                (awake, may_be_parked || self.parked_keys.came() != came)
            }
            awake => (awake, false),
        }
    }

    /// Whether a parked series may have a key that the map of keys lacks: then [`Core::locate`]
    /// says, without locks.
    #[inline]
    pub(crate) fn may_be_parked(&self, key: &[u8]) -> bool {
        !matches!(self.parked_keys.find(key), Ok(None))
    }

    /// Series that are awake or parked and have a key.
    pub(crate) fn series_count(&self) -> usize {
        self.keys.len() + self.parked_keys.len()
    }
}
