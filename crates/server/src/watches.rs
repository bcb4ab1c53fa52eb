//! The keys that one connection watches for its next EXEC.

use crate::client_info::Flag;
use crate::events::{Events, Listener};
use crate::session::Session;
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
    /// Watches `key` from now on.
    pub(crate) fn watch(&mut self, events: &Events, key: &[u8]) {
        let watches = self.watches.get_or_insert_with(|| {
            let listener = Arc::new(Listener::of_watch(Arc::clone(&self.info)));
            Box::new(Watches {
                listener,
                keys: HashSet::new(),
            })
        });
        if watches.keys.insert(key.into()) {
            events.listen(key, &watches.listener);
        }
        let watched = watches.keys.len();
        self.info.figures.watched.store(watched, Ordering::Relaxed);
    }

    /// Watches nothing any more; whether something had changed.
    pub(crate) fn unwatch(&mut self, events: &Events) -> bool {
        let Some(watches) = self.watches.take() else {
            return false;
        };
        for key in &watches.keys {
            events.unlisten(key, &watches.listener);
        }
        self.info.figures.watched.store(0, Ordering::Relaxed);
        self.info.figures.set(Flag::Dirty, false);
        watches.listener.has_changed()
    }
}
