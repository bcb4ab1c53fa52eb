//! The keys that one connection watches for its next EXEC.

use super::session::Session;
use crate::clients::{Flag, Over};
use crate::messaging::Listener;
use crate::state::Shared;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Keys, and whether one of them has changed.
#[derive(Debug)]
pub(crate) struct Watches {
    listener: Arc<Listener>,
    keys: HashSet<Box<[u8]>>,
}

impl Session {
    /// Watches `key` from now on; an expired one counts as missing.
    ///
    /// # Errors
    /// [`Over`]: it watches too much.
    pub(crate) fn watch(&mut self, shared: &Shared, key: &[u8]) -> Result<(), Over> {
        let watched = self.watches.as_ref();
        if watched.is_some_and(|watches| watches.keys.contains(key)) {
            return Ok(());
        }
        self.hold(shared, bytes_of(key))?;
        expire(shared, key);
        let watches = self.watches.get_or_insert_with(|| {
            let listener = Arc::new(Listener::of_watch(Arc::clone(&self.info)));
            Box::new(Watches {
                listener,
                keys: HashSet::new(),
            })
        });
        if watches.keys.insert(key.into()) {
            shared.events.listen(key, &watches.listener);
        }
        let watched = watches.keys.len();
        self.info.figures.watched.store(watched, Ordering::Relaxed);
        Ok(())
    }

    /// What WATCH named.
    pub(crate) fn watched(&self) -> impl Iterator<Item = &[u8]> {
        let watched = self.watches.iter().flat_map(|watches| &watches.keys);
        watched.map(|key| &**key)
    }

    /// Removes the watched keys whose time has come, so that it counts as the
    /// change it is.
    pub(crate) fn expire_watched(&self, shared: &Shared) {
        let watched = self.watches.iter().flat_map(|watches| &watches.keys);
        watched.for_each(|key| expire(shared, key));
    }

    /// Watches nothing any more; whether something had changed.
    pub(crate) fn unwatch(&mut self, shared: &Shared) -> bool {
        let Some(watches) = self.watches.take() else {
            return false;
        };
        for key in &watches.keys {
            shared.events.unlisten(key, &watches.listener);
            self.give_back(shared, bytes_of(key));
        }
        self.info.figures.watched.store(0, Ordering::Relaxed);
        self.info.figures.set(Flag::Dirty, false);
        watches.listener.has_changed()
    }
}

/// What watching `key` takes: its name here and in the table of listeners.
fn bytes_of(key: &[u8]) -> usize {
    2 * key.len() + 256
}

/// Removes the series under `key` if its time has come, which its watchers hear.
fn expire(shared: &Shared, key: &[u8]) {
    if let Some(db) = shared.db.opened() {
        // A log that failed lets nothing go, and tells every writer so.
        let _ = db.remove_expired(key);
    }
}
