//! The permissions of one session: its user, as the session last saw it.

use super::user::User;
use super::users::Users;
use std::sync::Arc;

/// The user of a session as the session last saw it.
#[derive(Clone, Debug)]
pub(crate) struct Permit {
    user: Arc<User>,
    epoch: u64,
}

/// What a look at a session's user finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refreshed {
    /// As it was.
    Same,
    /// It has other rules now.
    Changed,
    /// It was removed.
    Gone,
}

impl Permit {
    /// Permission as `user` has it.
    pub(crate) fn new(user: Arc<User>, users: &Users) -> Self {
        // An epoch of before the user was read would only be looked at again.
        Self {
            user,
            epoch: users.epoch().wrapping_sub(1),
        }
    }

    pub(crate) fn user(&self) -> &User {
        &self.user
    }

    /// Takes over what changed.
    #[inline]
    pub(crate) fn refresh(&mut self, users: &Users) -> Refreshed {
        if self.epoch == users.epoch() {
            return Refreshed::Same;
        }
        self.reread(users)
    }

    #[cold]
    fn reread(&mut self, users: &Users) -> Refreshed {
        let epoch = users.epoch();
        let user = users.get(&self.user.name);
        let Some(user) = user.filter(|user| user.identity == self.user.identity) else {
            return Refreshed::Gone;
        };
        self.epoch = epoch;
        if Arc::ptr_eq(&user, &self.user) {
            return Refreshed::Same;
        }
        self.user = user;
        Refreshed::Changed
    }
}
