//! What one connection subscribes to.
//!
//! The table of `messaging/channels.rs` holds the same for all connections; a message
//! is delivered only while the subscription is here too, so that none follows the
//! reply to UNSUBSCRIBE.

use super::session::Session;
use crate::base::glob::TooLong;
use crate::clients::{Flag, Over};
use crate::messaging::{Kind, Subscription};
use crate::state::Shared;
use std::collections::BTreeMap;
use std::sync::Arc;

/// The names a connection subscribes to.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions {
    /// The names, and the memory granted for each.
    by_kind: [BTreeMap<Arc<[u8]>, usize>; 4],
}

/// Why a subscription is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Refused {
    /// It is a pattern that is too long.
    #[error(transparent)]
    TooLong(#[from] TooLong),
    /// The connection, or all of them, hold too much.
    #[error(transparent)]
    Over(#[from] Over),
}

/// What a pattern takes of the time of those who publish.
fn pattern_bytes(pattern: &[u8]) -> usize {
    64 + pattern.len()
}

impl Subscriptions {
    pub(crate) fn has(&self, kind: Kind, name: &[u8]) -> bool {
        self.by_kind[kind as usize].contains_key(name)
    }

    pub(crate) fn names(&self, kind: Kind) -> Vec<Arc<[u8]>> {
        self.by_kind[kind as usize].keys().cloned().collect()
    }

    /// How many names of `kind` there are.
    pub(crate) fn len(&self, kind: Kind) -> usize {
        self.by_kind[kind as usize].len()
    }
}

impl Session {
    /// What it subscribes to, if it ever did.
    #[inline]
    pub(crate) fn subscriptions(&self) -> Option<&Subscriptions> {
        self.subscriptions.as_deref()
    }

    /// Whether it subscribes to a channel of any kind.
    #[inline]
    pub(crate) fn is_subscriber(&self) -> bool {
        let kinds = [Kind::Channel, Kind::Pattern, Kind::Shard];
        let subscriptions = self.subscriptions.as_ref();
        subscriptions.is_some_and(|own| kinds.iter().any(|kind| own.len(*kind) > 0))
    }

    /// Whether it sees every command.
    pub(crate) fn is_monitor(&self) -> bool {
        let subscriptions = self.subscriptions.as_ref();
        subscriptions.is_some_and(|own| own.len(Kind::Monitor) > 0)
    }

    /// Subscribes to `name`.
    ///
    /// # Errors
    /// [`Refused`].
    pub(crate) fn subscribe(
        &mut self,
        shared: &Shared,
        kind: Kind,
        name: &[u8],
    ) -> Result<(), Refused> {
        let own = self.subscriptions.get_or_insert_default();
        if !own.has(kind, name) {
            let subscription = Subscription::new(kind, name)?;
            let bytes = subscription.len_bytes();
            self.hold(shared, bytes)?;
            if kind == Kind::Pattern
                && let Err(over) = self.hold_pattern(shared, pattern_bytes(name))
            {
                self.give_back(shared, bytes);
                return Err(over.into());
            }
            let name = subscription.name();
            shared.channels().subscribe(subscription, &self.info);
            let own = self.subscriptions.get_or_insert_default();
            own.by_kind[kind as usize].insert(name, bytes);
        }
        self.show_subscriptions();
        Ok(())
    }

    /// Ends a subscription.
    pub(crate) fn unsubscribe(&mut self, shared: &Shared, kind: Kind, name: &[u8]) {
        if let Some(own) = &mut self.subscriptions
            && let Some(bytes) = own.by_kind[kind as usize].remove(name)
        {
            self.give_back(shared, bytes);
            if kind == Kind::Pattern {
                self.give_back_pattern(shared, pattern_bytes(name));
            }
            shared.channels().unsubscribe(kind, name, self.info.id);
        }
        self.show_subscriptions();
    }

    /// Whether its user may listen to all that it subscribes to.
    pub(crate) fn may_keep_subscriptions(&self) -> bool {
        let Some(own) = &self.subscriptions else {
            return true;
        };
        let kinds = [Kind::Channel, Kind::Pattern, Kind::Shard];
        kinds.into_iter().all(|kind| {
            let mut names = own.by_kind[kind as usize].keys();
            let user = self.user();
            names.all(|name| user.may_listen(name, kind == Kind::Pattern))
        })
    }

    /// Ends every subscription.
    pub(crate) fn unsubscribe_all(&mut self, shared: &Shared) {
        for kind in [Kind::Channel, Kind::Pattern, Kind::Shard, Kind::Monitor] {
            let own = self.subscriptions.as_ref();
            for name in own.map(|own| own.names(kind)).unwrap_or_default() {
                self.unsubscribe(shared, kind, &name);
            }
        }
        self.subscriptions = None;
    }

    fn show_subscriptions(&self) {
        let (own, figures) = (self.subscriptions.as_ref(), &self.info.figures);
        for (kind, shown) in [Kind::Channel, Kind::Pattern, Kind::Shard]
            .into_iter()
            .zip(&figures.subscriptions)
        {
            let names = own.map_or(0, |own| own.len(kind));
            shown.store(names, std::sync::atomic::Ordering::Relaxed);
        }
        figures.set(Flag::Subscriber, self.is_subscriber());
        figures.set(Flag::Monitor, self.is_monitor());
    }
}
