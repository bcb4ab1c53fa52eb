//! All users, and what changes them.
//!
//! Readers take a short read lock and an `Arc`. Every change raises the epoch;
//! a session compares it with the one it knows (one load) and takes over the
//! new version of its user, or ends if the user is gone.

use super::catalogue::Catalogue;
use super::log::Log;
use super::user::{BadRule, User};
use latewood_model::limits::ALL_USERS_BYTES_MAX;
use parking_lot::RwLock;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The user that connections begin as.
pub(crate) const DEFAULT: &[u8] = b"default";

#[derive(Debug)]
pub(crate) struct Users {
    catalogue: &'static Catalogue,
    by_name: RwLock<BTreeMap<Box<[u8]>, Arc<User>>>,
    epoch: AtomicU64,
    next_identity: AtomicU64,
    /// Who was refused what.
    pub(crate) log: Log,
}

impl Users {
    /// The default user alone: every command of `catalogue` is allowed, without
    /// a password.
    pub(crate) fn new(catalogue: &'static Catalogue) -> Self {
        let users = Self {
            catalogue,
            by_name: RwLock::default(),
            epoch: AtomicU64::new(1),
            next_identity: AtomicU64::new(0),
            log: Log::default(),
        };
        let default = users.default_with("");
        users
            .by_name
            .write()
            .insert(DEFAULT.into(), Arc::new(default));
        users
    }

    /// The commands that rules name.
    pub(crate) fn catalogue(&self) -> &'static Catalogue {
        self.catalogue
    }

    /// A default user with all permissions.
    fn default_with(&self, password: &str) -> User {
        let rules = ["on", "~*", "&*", "+@all"].map(|rule| rule.as_bytes().to_vec());
        let rules = [&rules[..], &password_rules(password)].concat();
        let user = User::new(DEFAULT, self.identity(), self.catalogue);
        user.with(&rules).expect("these are rules")
    }

    fn identity(&self) -> u64 {
        self.next_identity.fetch_add(1, Ordering::Relaxed)
    }

    /// Raised by every change.
    #[inline]
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch.load(Ordering::Acquire)
    }

    /// The user called `name`.
    pub(crate) fn get(&self, name: &[u8]) -> Option<Arc<User>> {
        self.by_name.read().get(name).cloned()
    }

    /// The user that connections begin as.
    pub(crate) fn default_user(&self) -> Arc<User> {
        self.get(DEFAULT)
            .expect("the default user is never removed")
    }

    /// Whether a connection may begin without logging in.
    pub(crate) fn is_open(&self) -> bool {
        let default = self.default_user();
        default.enabled && default.nopass
    }

    pub(crate) fn all(&self) -> Vec<Arc<User>> {
        self.by_name.read().values().cloned().collect()
    }

    /// Makes a user or changes it by `rules`, all or none.
    ///
    /// # Errors
    /// The first invalid rule, or a limit.
    pub(crate) fn set(&self, name: &[u8], rules: &[Vec<u8>]) -> Result<(), BadRule> {
        let mut by_name = self.by_name.write();
        let user = match by_name.get(name) {
            Some(user) => user.with(rules)?,
            None => User::new(name, self.identity(), self.catalogue).with(rules)?,
        };
        let others = by_name.iter().filter(|(other, _)| ***other != *name);
        let others = others.map(|(_, user)| &**user);
        check_all(others.chain([&user])).map_err(|text| BadRule::Over(text.into()))?;
        by_name.insert(name.into(), Arc::new(user));
        self.epoch.fetch_add(1, Ordering::Release);
        Ok(())
    }

    /// Removes a user; whether there was one. The default user stays.
    pub(crate) fn remove(&self, name: &[u8]) -> bool {
        if name == DEFAULT {
            return false;
        }
        let is_removed = self.by_name.write().remove(name).is_some();
        self.epoch.fetch_add(1, Ordering::Release);
        is_removed
    }

    /// Puts `users` in the place of all. A user whose rules are the same goes
    /// on; the sessions of one that changed or is missing end. The default
    /// user's sessions take over its new rules; where `users` has none, it has
    /// all permissions and `password`, if that is not empty.
    pub(crate) fn replace(&self, users: Vec<User>, password: &str) {
        let mut by_name = self.by_name.write();
        let old = std::mem::take(&mut *by_name);
        for mut user in users {
            let before = old.get(&user.name);
            let keeps = before
                .filter(|before| *user.name == *DEFAULT || before.describe() == user.describe());
            user.identity = keeps.map_or_else(|| self.identity(), |before| before.identity);
            by_name.insert(user.name.clone(), Arc::new(user));
        }
        if !by_name.contains_key(DEFAULT) {
            let mut user = self.default_with(password);
            user.identity = old.get(DEFAULT).map_or(user.identity, |old| old.identity);
            by_name.insert(DEFAULT.into(), Arc::new(user));
        }
        self.epoch.fetch_add(1, Ordering::Release);
    }

    /// Gives the default user this password alone; without one, any is right.
    pub(crate) fn set_default_password(&self, password: &str) {
        let set = self.set(DEFAULT, &password_rules(password));
        set.expect("these are rules");
    }
}

/// Whether all users together take no more than they may.
///
/// # Errors
/// Says the limit.
pub(super) fn check_all<'a>(users: impl Iterator<Item = &'a User>) -> Result<(), String> {
    if users.map(User::len_bytes).sum::<usize>() <= ALL_USERS_BYTES_MAX {
        Ok(())
    } else {
        Err(format!(
            "the rules of all users must take at most {ALL_USERS_BYTES_MAX} bytes"
        ))
    }
}

/// This password alone; without one, any is right.
fn password_rules(password: &str) -> [Vec<u8>; 2] {
    let second = match password {
        "" => b"nopass".to_vec(),
        password => [b">", password.as_bytes()].concat(),
    };
    [b"resetpass".to_vec(), second]
}
