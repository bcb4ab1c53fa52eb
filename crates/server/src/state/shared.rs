//! The list of what all threads share, and the few questions that concern
//! several of its parts.
//!
//! Nothing here is locked on the path of a sample: counters are atomics that
//! a loop adds to once per round, and the locks guard what changes rarely.

use super::database::Database;
use super::exec_lock::ExecLock;
use super::jobs::Jobs;
use super::lifetime::Lifetime;
use super::pause::Pause;
use super::protocols::Protocols;
use super::readers::Readers;
use super::recent::Recent;
use super::remote::{Remote, RemoteFigures};
use super::runtime::Runtime;
use super::settings::{Settings, cores};
use crate::acl::{User, Users};
use crate::clients::ClientList;
use crate::messaging::{Channels, Class, Events};
use crate::observe::{Counters, Event, Observe};
use latewood_cluster::node::Node;
use latewood_cluster::remote::Lease;
use latewood_cluster::tablet::{Cache, Tablet};
use latewood_engine::Db;
use latewood_tls::ServerTls;
use std::fmt::Display;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};

/// The stages of one batch in this many are timed, unless CONFIG says otherwise.
const STAGE_SAMPLING: u32 = 256;

/// Shared by every thread of the server.
pub(crate) struct Shared {
    /// The database; an empty one until it is open.
    pub(crate) db: Database,
    /// Where its log is in Kafka; set before it is open.
    pub(crate) remote: OnceLock<Remote>,
    /// The blocks on this machine, where the log is in Kafka; set before it is open.
    pub(crate) cache: OnceLock<Cache>,
    /// What reads are answered under, if they need a lease; set before it is open.
    pub(crate) lease: OnceLock<Arc<Lease>>,
    /// What it is to the others, if there are others; set before it is open.
    pub(crate) node: OnceLock<Arc<Node>>,
    /// What the server was started with.
    pub(crate) settings: Settings,
    /// What CONFIG SET may change.
    pub(crate) runtime: Runtime,
    /// What the ports with TLS speak it with.
    pub(crate) tls: Arc<ServerTls>,
    /// Counters of INFO stats.
    pub(crate) counters: Counters,
    /// Figures of commands, errors and delays.
    pub(crate) observe: Observe,
    /// The protocols beside Redis'.
    pub(crate) protocols: Protocols,
    /// Connections of the Redis port.
    pub(crate) clients: ClientList,
    /// Channels, and listeners for changes of keys.
    pub(crate) events: Arc<Events>,
    /// Excludes other commands while EXEC runs.
    pub(crate) exec_lock: ExecLock,
    /// CLIENT PAUSE.
    pub(crate) pause: Pause,
    /// Backups and other work on a thread of its own.
    pub(crate) jobs: Jobs,
    /// What selectors of PromQL found.
    pub(crate) recent: Recent,
    /// Long reads.
    pub(crate) readers: Arc<Readers>,
    /// Start and end of the process.
    pub(crate) lifetime: Lifetime,
}

impl Shared {
    /// The state at start.
    pub(crate) fn new(
        db: Database,
        settings: Settings,
        (users, observe): (Users, Observe),
        tls: Arc<ServerTls>,
        events: Arc<Events>,
        jobs: Jobs,
        lifetime: Lifetime,
    ) -> Self {
        let senders = &settings.senders;
        observe.lateness.choose_label(&senders.lateness_label);
        Self {
            db,
            remote: OnceLock::new(),
            cache: OnceLock::new(),
            lease: OnceLock::new(),
            node: OnceLock::new(),
            runtime: Runtime::new(&settings, users),
            exec_lock: ExecLock::new(settings.threads),
            settings,
            tls,
            counters: Counters::default(),
            observe,
            protocols: Protocols::default(),
            clients: ClientList::default(),
            events,
            pause: Pause::default(),
            jobs,
            recent: Recent::default(),
            // One more than there are cores: one is kept free.
            readers: Arc::new(Readers::new(cores() + 1)),
            lifetime,
        }
    }

    /// Serves `db` from now on; once.
    pub(crate) fn opened(&self, db: Arc<Db>) {
        let latency = Arc::clone(&self.observe.latency);
        db.observe(move |work, duration_ns| latency.note(Event::Engine(work), duration_ns));
        let events = Arc::clone(&self.events);
        db.on_durable(move || events.channels.mailboxes().tell_durable());
        db.stages().set_sampling(STAGE_SAMPLING);
        if !self.db.fill(db) {
            tracing::error!("the database was opened twice; the second is not used");
        }
    }

    /// Shows the log and the checkpoints of the database, and has reads wait for a lease if they need
    /// one; once.
    pub(crate) fn keeps(&self, tablet: &Tablet) {
        self.cache.get_or_init(|| tablet.cache());
        self.remote.get_or_init(|| Remote::new(tablet));
        if let Some(lease) = tablet.log().lease() {
            self.lease.get_or_init(|| Arc::clone(lease));
        }
    }

    /// How the log in Kafka and the checkpoints are; `None` where the log is local.
    pub(crate) fn remote(&self) -> Option<RemoteFigures> {
        self.remote.get().map(Remote::figures)
    }

    /// Blocks that neither this machine nor the object store has, of those that were asked for.
    pub(crate) fn lost_blocks(&self) -> u64 {
        self.cache.get().map_or(0, |cache| cache.figures().lost)
    }

    /// Counts a failed handshake with a peer on the runtime, and tells why.
    pub(crate) fn handshake_failed(&self, peer: SocketAddr, error: &io::Error) {
        self.tls.failed.fetch_add(1, Ordering::Relaxed);
        self.tell_handshake(peer, error);
    }

    /// Tells why a handshake failed: aloud once in a while, else to who debugs. A peer that
    /// leaves or stalls has no reason that is worth it.
    pub(crate) fn tell_handshake(&self, peer: impl Display, error: &io::Error) {
        let hint = latewood_tls::client_hint(error).unwrap_or_default();
        let reason = error.to_string();
        if error.kind() == io::ErrorKind::InvalidData && self.tls.tells() {
            tracing::warn!(%peer, reason, hint, "a TLS handshake failed");
        } else {
            tracing::debug!(%peer, reason, hint, "a TLS handshake failed");
        }
    }

    /// The user that the name in a client's certificate stands for, if that one
    /// is on.
    pub(crate) fn user_of(&self, name: &str) -> Option<Arc<User>> {
        let user = self.runtime.users.get(name.as_bytes());
        user.filter(|user| user.enabled)
    }

    /// Tells everyone who asked that `event` happened to `key`. Every command
    /// that writes says this for each key it changed, after the change.
    #[inline]
    pub(crate) fn changed(&self, class: Class, event: &'static str, key: &[u8]) {
        self.events.changed(class, event, key);
    }

    /// Subscriptions.
    pub(crate) fn channels(&self) -> &Channels {
        &self.events.channels
    }

    /// Whether samples may go past the dispatcher: the data is there and this node's, nobody
    /// monitors, there is no pause, nobody asks which keys are new, and memory is left.
    #[inline]
    pub(crate) fn allows_fast_path(&self) -> bool {
        !self.db.is_loading()
            && self.is_owner()
            && !self.pause.is_on()
            && !self.channels().has_monitors()
            && !self.events.wants(Class::New)
            && !self.db.is_out_of_memory()
    }
}
