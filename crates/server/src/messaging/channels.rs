//! Channels: who subscribes to what, and messages on their way.
//!
//! One table for all event loops. A publisher looks up the subscribers, encodes
//! the message once and leaves it in the mailbox of each loop that has some of
//! them; the loop appends it to their replies. Every byte on that way is
//! counted: a subscriber that does not read is closed once it is owed more than
//! the limit, so a message never waits for a reader and memory stays bounded.
//!
//! MONITOR is a subscription to a kind with a single channel without a name.

use super::kind::Kind;
use super::limit::BufferLimit;
use super::mailbox::{Mailboxes, Message};
use super::publication::Publication;
use crate::base::glob;
use crate::clients::ClientInfo;
use parking_lot::RwLock;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Every subscription.
#[derive(Default)]
pub(crate) struct Channels {
    tables: RwLock<[Table; 4]>,
    monitors: AtomicUsize,
    /// What a subscriber may be owed.
    pub(crate) limit: RwLock<BufferLimit>,
    /// Subscribers that were closed because they were owed too much.
    pub(crate) cut_off: AtomicU64,
    mailboxes: Arc<Mailboxes>,
}

type Table = HashMap<Arc<[u8]>, BTreeMap<u64, Arc<ClientInfo>>>;

impl Channels {
    /// No subscriptions; messages go through `mailboxes`.
    pub(crate) fn new(mailboxes: Arc<Mailboxes>) -> Self {
        Self {
            mailboxes,
            ..Self::default()
        }
    }

    /// The way to the event loops.
    pub(crate) fn mailboxes(&self) -> &Mailboxes {
        &self.mailboxes
    }

    /// Subscribes a client.
    pub(crate) fn subscribe(&self, kind: Kind, name: &Arc<[u8]>, client: &Arc<ClientInfo>) {
        let mut tables = self.tables.write();
        let subscribers = tables[kind as usize].entry(Arc::clone(name)).or_default();
        subscribers.insert(client.id, Arc::clone(client));
        let monitors = tables[Kind::Monitor as usize].values().map(BTreeMap::len);
        self.monitors.store(monitors.sum(), Ordering::Relaxed);
    }

    /// Ends a client's subscription.
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], client: u64) {
        let mut tables = self.tables.write();
        let table = &mut tables[kind as usize];
        if let Some(subscribers) = table.get_mut(name) {
            subscribers.remove(&client);
            if subscribers.is_empty() {
                table.remove(name);
            }
        }
        let monitors = tables[Kind::Monitor as usize].values().map(BTreeMap::len);
        self.monitors.store(monitors.sum(), Ordering::Relaxed);
    }

    /// Whether somebody watches every command; then the fast path steps aside.
    #[inline]
    pub(crate) fn has_monitors(&self) -> bool {
        self.monitors.load(Ordering::Relaxed) > 0
    }

    /// Sends `payload` to the subscribers of a channel and of the patterns that
    /// match it; how many they are. A client with two of these counts twice.
    pub(crate) fn publish(&self, channel: &[u8], payload: &[u8]) -> usize {
        let tables = self.tables.read();
        let mut receivers = 0;
        if let Some((name, subscribers)) = tables[Kind::Channel as usize].get_key_value(channel) {
            receivers += self.send(Publication::of_channel(name, payload), subscribers);
        }
        for (pattern, subscribers) in &tables[Kind::Pattern as usize] {
            if glob::matches(pattern, channel) {
                let message = Publication::of_pattern(pattern, channel, payload);
                receivers += self.send(message, subscribers);
            }
        }
        receivers
    }

    /// Sends `payload` to the subscribers of a shard channel; how many they are.
    pub(crate) fn publish_to_shard(&self, channel: &[u8], payload: &[u8]) -> usize {
        let tables = self.tables.read();
        match tables[Kind::Shard as usize].get_key_value(channel) {
            Some((name, subscribers)) => {
                self.send(Publication::of_shard(name, payload), subscribers)
            }
            None => 0,
        }
    }

    /// Sends a line to all who monitor.
    pub(crate) fn tell_monitors(&self, line: &str) {
        let tables = self.tables.read();
        for subscribers in tables[Kind::Monitor as usize].values() {
            self.send(Publication::of_monitor(line), subscribers);
        }
    }

    /// The names of `kind` with subscribers, those that `is_wanted` takes.
    pub(crate) fn names(&self, kind: Kind, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Arc<[u8]>> {
        let tables = self.tables.read();
        let names = tables[kind as usize].keys();
        names.filter(|name| is_wanted(name)).cloned().collect()
    }

    /// The number of subscribers of one name.
    pub(crate) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        let tables = self.tables.read();
        tables[kind as usize].get(name).map_or(0, BTreeMap::len)
    }

    /// The number of names of `kind` with subscribers.
    pub(crate) fn len(&self, kind: Kind) -> usize {
        self.tables.read()[kind as usize].len()
    }

    /// Leaves a message in the mailboxes of the subscribers' loops; how many
    /// subscribers there are.
    fn send(&self, message: Publication, subscribers: &BTreeMap<u64, Arc<ClientInfo>>) -> usize {
        let bytes = message.len_bytes();
        let hard_bytes = self.limit.read().hard_bytes;
        let mut by_loop: Vec<Vec<u64>> = Vec::new();
        by_loop.resize_with(self.mailboxes.mailboxes().len(), Vec::new);
        for (id, client) in subscribers {
            let owed = client.figures.owe(bytes);
            if hard_bytes > 0 && owed > hard_bytes {
                self.cut_off(client);
            } else if let Some(clients) = by_loop.get_mut(client.event_loop) {
                clients.push(*id);
            }
        }
        let message = Arc::new(message);
        for (event_loop, clients) in by_loop.into_iter().enumerate() {
            if !clients.is_empty() {
                let message = Message::Publish(Arc::clone(&message), clients);
                self.mailboxes.send(event_loop, message);
            }
        }
        subscribers.len()
    }

    /// Closes a subscriber that is owed too much, once.
    pub(crate) fn cut_off(&self, client: &ClientInfo) {
        if client.figures.begin_close() {
            self.cut_off.fetch_add(1, Ordering::Relaxed);
            tracing::warn!(
                peer = client.peer,
                "closed a subscriber that does not read its messages"
            );
            self.mailboxes
                .send(client.event_loop, Message::Close(client.id));
        }
    }
}
