//! Settings that may change while the server runs, users among them.
//!
//! Tested by `tests/resp/admin.rs` and `tests/resp/limits.rs`.

use super::settings::{DumpFormat, Reads, Settings};
use crate::acl::Users;
use crate::base::descriptors::leave_room;
use latewood_model::Compatibility;
use parking_lot::Mutex;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// Settings that may change while the server runs.
#[derive(Debug)]
pub(crate) struct Runtime {
    /// Connections at a time.
    pub(crate) connections_max: AtomicUsize,
    /// Idle seconds after which a connection is closed; 0 never.
    pub(crate) idle_timeout_s: AtomicU64,
    /// Without a password only loopback peers are served.
    pub(crate) protected_mode: AtomicBool,
    /// A place in [`Reads::ALL`].
    reads: AtomicU8,
    /// A place in [`Compatibility::ALL`].
    compatibility: AtomicU8,
    /// DUMP writes in the form of Redis.
    pub(crate) dumps_for_redis: AtomicBool,
    /// Users and their permissions.
    pub(crate) users: Users,
    /// The settings as CONFIG shows them. The lock is held while a change is put
    /// in force, so that changes follow one after the other.
    pub(crate) current: Mutex<Settings>,
}

impl Runtime {
    /// The settings at start; the default one of `users` gets their password.
    pub(crate) fn new(settings: &Settings, users: Users) -> Self {
        users.set_default_password(&settings.requirepass);
        Self {
            connections_max: AtomicUsize::new(settings.connections_max as usize),
            idle_timeout_s: AtomicU64::new(settings.idle_timeout_s),
            protected_mode: AtomicBool::new(settings.protected_mode),
            reads: AtomicU8::new(settings.cluster.reads as u8),
            dumps_for_redis: AtomicBool::new(settings.dump_format == DumpFormat::Redis),
            compatibility: AtomicU8::new(settings.compatibility as u8),
            users,
            current: Mutex::new(settings.clone()),
        }
    }

    /// Whether `maxclients` or the descriptors leave no room for `socket` beside `open`
    /// connections of its kind.
    pub(crate) fn is_full(&self, open: usize, socket: &impl AsRawFd) -> bool {
        open >= self.connections_max.load(Ordering::Relaxed) || !leave_room(socket)
    }

    /// What must be proven of what a read shows.
    pub(crate) fn reads(&self) -> Reads {
        let place = usize::from(self.reads.load(Ordering::Relaxed));
        Reads::ALL.get(place).copied().unwrap_or_default()
    }

    /// Changes that for replies from now on.
    pub(crate) fn set_reads(&self, reads: Reads) {
        self.reads.store(reads as u8, Ordering::Relaxed);
    }

    /// The version of RedisTimeSeries that answers are like, unless a connection chose its own.
    pub(crate) fn compatibility(&self) -> Compatibility {
        let place = usize::from(self.compatibility.load(Ordering::Relaxed));
        Compatibility::ALL.get(place).copied().unwrap_or_default()
    }

    /// Changes that for replies from now on.
    pub(crate) fn set_compatibility(&self, version: Compatibility) {
        self.compatibility.store(version as u8, Ordering::Relaxed);
    }

    /// The password that `requirepass` gave the default user; empty without one.
    pub(crate) fn password(&self) -> String {
        self.current.lock().requirepass.clone()
    }

    /// Gives the default user this password alone; empty makes any right.
    pub(crate) fn set_password(&self, password: &str) {
        self.users.set_default_password(password);
    }
}
