//! A session's share of the permissions: who it is, and what follows from it.

use super::catalogue::CATALOGUE;
use super::denied::Refusal;
use super::selector::Request;
use super::user::User;
use super::users::Users;
use crate::command::{Args, Spec};
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

    /// The user.
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

/// Whether `user` may run the command at word `name_at` of `args`, whose full
/// name is `full_name`.
///
/// Cost: nothing for a user that may do everything; else one lookup of the
/// name and, per key, the glob patterns.
///
/// # Errors
/// What is not allowed.
pub(crate) fn check(
    user: &User,
    spec: &Spec,
    full_name: &str,
    args: Args<'_>,
    name_at: usize,
) -> Result<(), Refusal> {
    if user.is_unrestricted || spec.flags.contains(&"no_auth") {
        return Ok(());
    }
    let Some(number) = CATALOGUE.number(full_name) else {
        let what = super::Denied::Command;
        let object = full_name.as_bytes().to_vec();
        return Err(Refusal { what, object });
    };
    let places = spec.keys.places(args, name_at, spec.flags);
    // A wrong number of keys is the command's own error to tell.
    let places = places.unwrap_or_default().into_iter();
    let keys = places
        .map(|(at, access)| (args.word(at), access.reads(), access.writes()))
        .collect();
    let (channels, channels_are_patterns) = match full_name {
        "publish" | "spublish" => (args.from(name_at + 1).take(1).collect(), false),
        "subscribe" | "ssubscribe" => (args.from(name_at + 1).collect(), false),
        "psubscribe" => (args.from(name_at + 1).collect(), true),
        _ => (Vec::new(), false),
    };
    user.check(&Request {
        number,
        keys,
        channels,
        channels_are_patterns,
    })
}
