//! The list of clients: every connection of the Redis port at this moment.
//!
//! Invariant: a connection is in the list from its registration to the end of
//! its event loop's work for it. Tested by `tests/resp/clients.rs`.

use super::backlog::Backlog;
use super::held::Held;
use super::info::ClientInfo;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// All connections at this moment.
#[derive(Debug)]
pub(crate) struct ClientList {
    by_id: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    last_id: AtomicU64,
    /// Clients that wait.
    pub(crate) blocked: AtomicUsize,
    /// Replies that clients leave unread.
    pub(crate) backlog: Backlog,
    /// Commands that are not whole yet.
    pub(crate) unfinished: Backlog,
    /// What clients make the server hold between their commands.
    pub(crate) held: Held,
    /// The patterns that they subscribe to.
    pub(crate) patterns: Held,
    /// Replies that wait for a lease.
    pub(crate) unproven: Arc<Held>,
}

impl Default for ClientList {
    fn default() -> Self {
        Self {
            by_id: Mutex::default(),
            last_id: AtomicU64::new(0),
            blocked: AtomicUsize::new(0),
            backlog: Backlog::default(),
            unfinished: Backlog::default(),
            held: Held::memory(),
            patterns: Held::patterns(),
            unproven: Arc::new(Held::unproven()),
        }
    }
}

impl ClientList {
    /// Enters a new connection, which gets the next id.
    pub(crate) fn register(&self, info: impl FnOnce(u64) -> ClientInfo) -> Arc<ClientInfo> {
        let id = self.last_id.fetch_add(1, Ordering::Relaxed) + 1;
        let info = Arc::new(info(id));
        self.by_id.lock().insert(id, Arc::clone(&info));
        info
    }

    /// Removes the connection with this id.
    pub(crate) fn unregister(&self, id: u64) {
        self.by_id.lock().remove(&id);
    }

    pub(crate) fn get(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.by_id.lock().get(&id).cloned()
    }

    /// Number of connections.
    pub(crate) fn count(&self) -> usize {
        self.by_id.lock().len()
    }

    /// All connections by ascending id.
    pub(crate) fn all(&self) -> Vec<Arc<ClientInfo>> {
        self.by_id.lock().values().cloned().collect()
    }
}
