//! Listeners for changes of a key: WATCH and blocked readers.
//!
//! A listener is notified once, and again after it has taken the news with
//! [`Listener::take`]. So a reader that is slow to look is woken once, however
//! many samples arrive meanwhile.

use super::mailbox::{Mailboxes, Message, Why};
use crate::clients::{ClientInfo, Flag};
use parking_lot::Mutex;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// A listener for changes of one or more keys.
#[derive(Debug)]
pub(crate) struct Listener {
    changed: AtomicBool,
    client: Arc<ClientInfo>,
    /// Whether its event loop is to be woken.
    wakes: bool,
}

/// The listeners of every key.
#[derive(Debug, Default)]
pub(super) struct Listeners {
    by_key: Mutex<ByKey>,
}

type ByKey = HashMap<Box<[u8]>, Vec<Arc<Listener>>>;

impl Listener {
    /// One that is asked, by EXEC.
    pub(crate) fn of_watch(client: Arc<ClientInfo>) -> Self {
        Self {
            changed: AtomicBool::new(false),
            client,
            wakes: false,
        }
    }

    /// One that is woken, by a message to its event loop.
    pub(crate) fn of_reader(client: Arc<ClientInfo>) -> Self {
        Self {
            wakes: true,
            ..Self::of_watch(client)
        }
    }

    /// Whether there was a change since the last [`Listener::take`].
    pub(crate) fn has_changed(&self) -> bool {
        self.changed.load(Ordering::Acquire)
    }

    /// The same, and asks to be told anew. What is read after this holds every
    /// change that was told before it.
    pub(crate) fn take(&self) -> bool {
        self.changed.swap(false, Ordering::AcqRel)
    }

    /// Tells of a change.
    pub(super) fn touch(&self, mailboxes: &Mailboxes) {
        if self.changed.swap(true, Ordering::AcqRel) {
            return;
        }
        if self.wakes {
            let message = Message::Resume(self.client.id, Why::News);
            mailboxes.send(self.client.event_loop, message);
        } else {
            self.client.figures.set(Flag::Dirty, true);
        }
    }
}

impl Listeners {
    pub(super) fn add(&self, key: &[u8], listener: &Arc<Listener>) {
        let mut by_key = self.by_key.lock();
        let listeners = by_key.entry(key.into()).or_default();
        listeners.push(Arc::clone(listener));
    }

    /// Whether it was there.
    pub(super) fn remove(&self, key: &[u8], listener: &Arc<Listener>) -> bool {
        let mut by_key = self.by_key.lock();
        let Some(listeners) = by_key.get_mut(key) else {
            return false;
        };
        let place = listeners
            .iter()
            .position(|each| Arc::ptr_eq(each, listener));
        if let Some(place) = place {
            listeners.swap_remove(place);
        }
        if listeners.is_empty() {
            by_key.remove(key);
        }
        place.is_some()
    }

    pub(super) fn touch(&self, key: &[u8], mailboxes: &Mailboxes) {
        if let Some(listeners) = self.by_key.lock().get(key) {
            listeners
                .iter()
                .for_each(|listener| listener.touch(mailboxes));
        }
    }

    /// The listeners of all keys that `is_wanted` takes, which is asked without
    /// a lock.
    pub(super) fn of_all(&self, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Arc<Listener>> {
        let all = self.by_key.lock().clone();
        let wanted = all.into_iter().filter(|(key, _)| is_wanted(key));
        wanted.flat_map(|(_, listeners)| listeners).collect()
    }
}
