//! What happens to keys, told to those who asked for it: subscribers of keyspace
//! notifications, WATCH and blocked readers.
//!
//! Every command that changes a key says so with [`Events::changed`], after the
//! change and before its reply. While nobody asks, that is one load of an
//! atomic. Somebody who registers and then reads the key misses nothing: a
//! writer whose change that read did not see takes the key's lock later, and so
//! sees the registration.
//!
//! Tested by `tests/resp/events.rs`.

use super::channels::Channels;
use super::class::{Class, Notify};
use super::listeners::{Listener, Listeners};
use latewood_engine::FollowHook;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// The subscribers and listeners of changes.
#[derive(Default)]
pub(crate) struct Events {
    /// The letters of `notify-keyspace-events` below, the number of listeners above
    /// [`LISTENER`]. 0: nobody asks.
    interest: AtomicU64,
    listeners: Listeners,
    /// Where notifications go.
    pub(crate) channels: Channels,
}

/// One listener in [`Events::interest`].
const LISTENER: u64 = 1 << 32;

impl Events {
    /// Nobody asks for anything yet; notifications go through `channels`.
    pub(crate) fn new(channels: Channels) -> Self {
        Self {
            channels,
            ..Self::default()
        }
    }

    /// Tells everyone who asked that `event` happened to `key`.
    #[inline]
    pub(crate) fn changed(&self, class: Class, event: &'static str, key: &[u8]) {
        let interest = self.interest.load(Ordering::Relaxed);
        if interest != 0 {
            self.tell(interest, class, event, key);
        }
    }

    /// Tells subscribers of new keys that `key` is one. The command says as
    /// well what it did.
    #[inline]
    pub(crate) fn created(&self, key: &[u8]) {
        self.notify_only(Class::New, "new", key);
    }

    /// Tells everyone who asked that `key` is there now, where no command is
    /// about to say what it did to it.
    pub(crate) fn came_along(&self, key: &[u8]) {
        if self.interest.load(Ordering::Relaxed) >= LISTENER {
            self.listeners.touch(key, self.channels.mailboxes());
        }
        self.created(key);
    }

    /// Tells subscribers of missed keys that `key` was read and not there.
    #[inline]
    pub(crate) fn missed(&self, key: &[u8]) {
        self.notify_only(Class::Miss, "keymiss", key);
    }

    /// Whether anybody asks for anything.
    #[inline]
    pub(crate) fn is_listening(&self) -> bool {
        self.interest.load(Ordering::Relaxed) != 0
    }

    /// Whether somebody asks for events of `class`.
    #[inline]
    pub(crate) fn wants(&self, class: Class) -> bool {
        Notify::from_bits(self.interest.load(Ordering::Relaxed)).has(class)
    }

    /// The letters of `notify-keyspace-events`.
    pub(crate) fn notify(&self) -> Notify {
        Notify::from_bits(self.interest.load(Ordering::Relaxed))
    }

    /// Sets the letters of `notify-keyspace-events`.
    pub(crate) fn set_notify(&self, notify: Notify) {
        let set = |interest: u64| Some(interest & !(LISTENER - 1) | u64::from(notify.bits()));
        // The closure always has a value, so this cannot fail.
        let _ = self
            .interest
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, set);
    }

    /// Tells `listener` of every change of `key` from now on.
    pub(crate) fn listen(&self, key: &[u8], listener: &Arc<Listener>) {
        self.interest.fetch_add(LISTENER, Ordering::Relaxed);
        self.listeners.add(key, listener);
        // What is looked at from here on is as new as what was told before.
        fence(Ordering::SeqCst);
    }

    /// Ends what [`Events::listen`] began for the same key and listener.
    pub(crate) fn unlisten(&self, key: &[u8], listener: &Arc<Listener>) {
        if self.listeners.remove(key, listener) {
            self.interest.fetch_sub(LISTENER, Ordering::Relaxed);
        }
    }

    /// Tells the listeners of all keys that `is_there` says are there that they
    /// are about to go. For FLUSHALL, which names no keys.
    pub(crate) fn flushing(&self, is_there: impl Fn(&[u8]) -> bool) -> Vec<Arc<Listener>> {
        if self.interest.load(Ordering::Relaxed) < LISTENER {
            return Vec::new();
        }
        self.listeners.of_all(is_there)
    }

    /// Tells of the end of every key that had one of these listeners.
    pub(crate) fn flushed(&self, listeners: &[Arc<Listener>]) {
        for listener in listeners {
            listener.touch(self.channels.mailboxes());
        }
    }

    /// Wakes who waits for a change of a key, as a database that follows the log of another applies
    /// it. Nothing is published: what happened is told where it did.
    pub(crate) fn of_follower(self: &Arc<Self>) -> FollowHook {
        let [asking, telling] = [(); 2].map(|()| Arc::clone(self));
        let is_wanted = move || asking.interest.load(Ordering::Relaxed) >= LISTENER;
        FollowHook::new(is_wanted, move |key| match key {
            Some(key) => telling.listeners.touch(key, telling.channels.mailboxes()),
            None => telling.flushed(&telling.listeners.of_all(|_| true)),
        })
    }

    #[cold]
    fn tell(&self, interest: u64, class: Class, event: &'static str, key: &[u8]) {
        if interest >= LISTENER {
            self.listeners.touch(key, self.channels.mailboxes());
        }
        self.notify_only(class, event, key);
    }

    #[inline]
    fn notify_only(&self, class: Class, event: &'static str, key: &[u8]) {
        let notify = self.notify();
        if notify.has(class) {
            self.publish(notify, event, key);
        }
    }

    #[cold]
    fn publish(&self, notify: Notify, event: &'static str, key: &[u8]) {
        if notify.by_key() {
            let channel = [b"__keyspace@0__:", key].concat();
            self.channels.publish(&channel, event.as_bytes());
        }
        if notify.by_event() {
            let channel = format!("__keyevent@0__:{event}");
            self.channels.publish(channel.as_bytes(), key);
        }
    }
}
