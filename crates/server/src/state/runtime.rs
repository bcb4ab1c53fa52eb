//! Settings that may change while the server runs, users among them.
//!
//! Tested by `tests/resp/admin.rs` and `tests/resp/limits.rs`.

use crate::acl::Users;
use crate::base::descriptors::leave_room;
use parking_lot::RwLock;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Settings that may change while the server runs.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// Connections at a time.
    pub(crate) connections_max: AtomicUsize,
    /// Idle seconds after which a connection is closed; 0 never.
    pub(crate) idle_timeout_s: AtomicU64,
    /// Without a password only loopback peers are served.
    pub(crate) protected_mode: AtomicBool,
    /// Who may do what.
    pub(crate) users: Users,
    password: RwLock<String>,
}

impl Runtime {
    /// The settings at start, and `users`, of whom the default one gets `password`.
    pub(crate) fn new(
        connections_max: usize,
        idle_timeout_s: u64,
        protected_mode: bool,
        password: String,
        users: Users,
    ) -> Self {
        users.set_default_password(&password);
        Self {
            connections_max: AtomicUsize::new(connections_max),
            idle_timeout_s: AtomicU64::new(idle_timeout_s),
            protected_mode: AtomicBool::new(protected_mode),
            users,
            password: RwLock::new(password),
        }
    }

    /// Whether there are too many connections where so many of a kind are open
    /// and `socket` comes: by `maxclients`, or by descriptors.
    pub(crate) fn is_full(&self, open: usize, socket: &impl AsRawFd) -> bool {
        open >= self.connections_max.load(Ordering::Relaxed) || !leave_room(socket)
    }

    /// The password that `requirepass` gave the default user; empty without one.
    pub(crate) fn password(&self) -> String {
        self.password.read().clone()
    }

    /// Gives the default user this password alone; empty makes any right.
    pub(crate) fn set_password(&self, password: String) {
        let mut current = self.password.write();
        self.users.set_default_password(&password);
        *current = password;
    }
}
