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
use super::subscription::Subscription;
use crate::base::glob::Glob;
use crate::clients::ClientInfo;
use latewood_model::limits::CHANNEL_BYTES_MAX;
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

type Table = HashMap<Arc<[u8]>, Entry>;

type Subscribers = BTreeMap<u64, Arc<ClientInfo>>;

/// A name that somebody subscribes to.
#[derive(Default)]
struct Entry {
    /// Of a pattern.
    glob: Option<Arc<Glob>>,
    subscribers: Subscribers,
}

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

    pub(crate) fn subscribe(&self, subscription: Subscription, client: &Arc<ClientInfo>) {
        let mut tables = self.tables.write();
        let table = &mut tables[subscription.kind as usize];
        let entry = table.entry(subscription.name()).or_default();
        entry.glob = entry.glob.take().or(subscription.glob);
        entry.subscribers.insert(client.id, Arc::clone(client));
        self.count_monitors(&tables);
    }

    fn count_monitors(&self, tables: &[Table; 4]) {
        let entries = tables[Kind::Monitor as usize].values();
        let monitors = entries.map(|entry| entry.subscribers.len()).sum();
        self.monitors.store(monitors, Ordering::Relaxed);
    }

    /// Ends a client's subscription.
    pub(crate) fn unsubscribe(&self, kind: Kind, name: &[u8], client: u64) {
        let mut tables = self.tables.write();
        let table = &mut tables[kind as usize];
        if let Some(entry) = table.get_mut(name) {
            entry.subscribers.remove(&client);
            if entry.subscribers.is_empty() {
                table.remove(name);
            }
        }
        self.count_monitors(&tables);
    }

    /// Whether somebody watches every command; then the fast path steps aside.
    #[inline]
    pub(crate) fn has_monitors(&self) -> bool {
        self.monitors.load(Ordering::Relaxed) > 0
    }

    /// Sends `payload` to the subscribers of a channel and of the patterns that
    /// match it; how many they are. A client with two of these counts twice.
    pub(crate) fn publish(&self, channel: &[u8], payload: &[u8]) -> usize {
        let matching = self.patterns_of(channel);
        let tables = self.tables.read();
        let mut receivers = 0;
        if let Some((name, entry)) = tables[Kind::Channel as usize].get_key_value(channel) {
            receivers += self.send(Publication::of_channel(name, payload), &entry.subscribers);
        }
        for pattern in &matching {
            if let Some(entry) = tables[Kind::Pattern as usize].get(pattern) {
                let message = Publication::of_pattern(pattern, channel, payload);
                receivers += self.send(message, &entry.subscribers);
            }
        }
        receivers
    }

    /// The patterns that match `channel`; none do where it is longer than
    /// [`CHANNEL_BYTES_MAX`], as that of an event of a long key may be. They are matched without the lock: many
    /// of them take a while, and nobody who subscribes or publishes may wait for it.
    fn patterns_of(&self, channel: &[u8]) -> Vec<Arc<[u8]>> {
        if channel.len() > CHANNEL_BYTES_MAX {
            return Vec::new();
        }
        let tables = self.tables.read();
        let entries = tables[Kind::Pattern as usize].iter();
        let globs = entries.map(|(name, entry)| (Arc::clone(name), entry.glob.clone()));
        let globs: Vec<_> = globs.collect();
        drop(tables);
        let matches = |glob: Option<Arc<Glob>>| glob.is_some_and(|glob| glob.matches(channel));
        let globs = globs.into_iter();
        globs
            .filter_map(|(name, glob)| matches(glob).then_some(name))
            .collect()
    }

    /// Sends `payload` to the subscribers of a shard channel; how many they are.
    pub(crate) fn publish_to_shard(&self, channel: &[u8], payload: &[u8]) -> usize {
        let tables = self.tables.read();
        match tables[Kind::Shard as usize].get_key_value(channel) {
            Some((name, entry)) => {
                self.send(Publication::of_shard(name, payload), &entry.subscribers)
            }
            None => 0,
        }
    }

    /// Sends a line to all who monitor.
    pub(crate) fn tell_monitors(&self, line: &str) {
        let tables = self.tables.read();
        for entry in tables[Kind::Monitor as usize].values() {
            self.send(Publication::of_monitor(line), &entry.subscribers);
        }
    }

    /// The names of `kind` with subscribers, those that `is_wanted` takes; it is asked
    /// without a lock.
    pub(crate) fn names(&self, kind: Kind, is_wanted: impl Fn(&[u8]) -> bool) -> Vec<Arc<[u8]>> {
        let mut names: Vec<_> = self.tables.read()[kind as usize].keys().cloned().collect();
        names.retain(|name| is_wanted(name));
        names
    }

    /// The number of subscribers of one name.
    pub(crate) fn subscribers(&self, kind: Kind, name: &[u8]) -> usize {
        let tables = self.tables.read();
        let entry = tables[kind as usize].get(name);
        entry.map_or(0, |entry| entry.subscribers.len())
    }

    /// The number of names of `kind` with subscribers.
    pub(crate) fn len(&self, kind: Kind) -> usize {
        self.tables.read()[kind as usize].len()
    }

    /// Leaves a message in the mailboxes of the subscribers' loops; how many
    /// subscribers there are.
    fn send(&self, message: Publication, subscribers: &Subscribers) -> usize {
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
