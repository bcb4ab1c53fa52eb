//! What all event loops share: the database, the settings that may change
//! while the server runs, counters and the list of clients.
//!
//! Nothing here is locked on the path of a sample: counters are atomics that
//! a loop adds to once per round, and the locks guard what changes rarely.

use crate::acl::Users;
use crate::channels::Channels;
use crate::client_info::ClientInfo;
use crate::config::Settings;
use crate::descriptors::leave_room;
use crate::errands::{Backups, Errand};
use crate::events::{Class, Events};
use crate::gate::Gate;
use crate::http::{Connections, Reads};
use crate::intake::{Figures, Remembered};
use crate::lines::Listeners;
use crate::loading::Database;
use crate::net::Backlog;
use crate::observe::{Event, Observe, Reading};
use crate::pause::Pause;
use latewood_engine::Db;
use parking_lot::{Mutex, RwLock};
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// One batch in so many has its stages timed, unless CONFIG says otherwise.
const STAGE_SAMPLING: u32 = 256;

/// Why the server stops.
#[derive(Debug)]
pub(crate) enum Stop {
    /// A signal or SHUTDOWN asked for it.
    Asked(&'static str),
    /// A thread panicked; its state cannot be trusted.
    Crashed(String),
    /// The database could not be opened, for this reason.
    NotOpened(String),
}

/// Shared by every thread of the server.
pub(crate) struct Shared {
    /// The database; an empty one until it is open.
    pub(crate) db: Database,
    /// What the server was started with.
    pub(crate) settings: Settings,
    /// What CONFIG SET may change.
    pub(crate) runtime: Runtime,
    /// Counters of INFO stats.
    pub(crate) counters: Counters,
    /// What came by the protocols beside Redis'.
    pub(crate) intake: Figures,
    /// The memory that their senders take.
    pub(crate) remembered: Remembered,
    /// Connections over HTTP.
    pub(crate) http: Connections,
    /// What is read over HTTP.
    pub(crate) reads: Reads,
    /// Connections of line protocols.
    pub(crate) lines: Listeners,
    /// Who wants to know what happens to keys.
    pub(crate) events: Arc<Events>,
    /// Figures of commands, errors and delays.
    pub(crate) observe: Observe,
    /// What keeps EXEC to itself.
    pub(crate) gate: Gate,
    /// CLIENT PAUSE.
    pub(crate) pause: Pause,
    /// Clients that wait.
    pub(crate) blocked: AtomicUsize,
    /// When the process began.
    pub(crate) started: Instant,
    /// Seconds since the epoch of the last SAVE, or of the start.
    pub(crate) last_save_s: AtomicI64,
    /// Set once: loops finish their round and return.
    pub(crate) stopping: AtomicBool,
    clients: Mutex<BTreeMap<u64, Arc<ClientInfo>>>,
    next_client: AtomicU64,
    stop: Sender<Stop>,
    errands: Sender<Errand>,
    /// Backups of this run.
    pub(crate) backups: Backups,
    /// Replies that clients leave unread.
    pub(crate) backlog: Backlog,
}

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

/// Counters since the start or CONFIG RESETSTAT.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Commands executed, refused ones too.
    pub(crate) commands: AtomicU64,
    /// Connections accepted.
    pub(crate) connections: AtomicU64,
    /// Connections refused by a limit or by protected mode.
    pub(crate) connections_rejected: AtomicU64,
    /// Bytes read from sockets.
    pub(crate) bytes_in: AtomicU64,
    /// Bytes written to sockets.
    pub(crate) bytes_out: AtomicU64,
    /// Connections closed for idling or for a command that never ended.
    pub(crate) timeouts: AtomicU64,
}

impl Shared {
    /// The state at start.
    pub(crate) fn new(
        db: Database,
        settings: Settings,
        events: Arc<Events>,
        stop: Sender<Stop>,
        errands: Sender<Errand>,
    ) -> Self {
        Self {
            db,
            observe: Observe::new(),
            runtime: Runtime::new(
                settings.connections_max,
                settings.idle_timeout_s,
                settings.protected_mode,
                settings.requirepass.clone(),
            ),
            gate: Gate::new(settings.threads),
            pause: Pause::default(),
            blocked: AtomicUsize::new(0),
            settings,
            counters: Counters::default(),
            intake: Figures::default(),
            remembered: Remembered::default(),
            http: Connections::default(),
            reads: Reads::default(),
            lines: Listeners::default(),
            events,
            started: Instant::now(),
            last_save_s: AtomicI64::new(now_ms() / 1000),
            stopping: AtomicBool::new(false),
            clients: Mutex::default(),
            next_client: AtomicU64::new(1),
            stop,
            errands,
            backups: Backups::default(),
            backlog: Backlog::default(),
        }
    }

    /// Serves `db` from now on; once.
    pub(crate) fn opened(&self, db: Db) {
        let latency = Arc::clone(&self.observe.latency);
        db.observe(move |work, duration_ns| latency.note(Event::Engine(work), duration_ns));
        db.stages().set_sampling(STAGE_SAMPLING);
        if !self.db.fill(db) {
            tracing::error!("the database was opened twice; the second is not used");
        }
    }

    /// Tells everyone who asked that `event` happened to `key`. Every command
    /// that writes says this for each key it changed, after the change.
    #[inline]
    pub(crate) fn changed(&self, class: Class, event: &'static str, key: &[u8]) {
        self.events.changed(class, event, key);
    }

    /// The counters that rates are made of, now.
    pub(crate) fn reading(&self) -> Reading {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Reading {
            commands: count(&self.counters.commands),
            bytes_in: count(&self.counters.bytes_in),
            bytes_out: count(&self.counters.bytes_out),
        }
    }

    /// Subscriptions.
    pub(crate) fn channels(&self) -> &Channels {
        &self.events.channels
    }

    /// Whether samples may go past the dispatcher: the data is there, nobody
    /// monitors, there is no pause, nobody asks which keys are new, and memory is left.
    #[inline]
    pub(crate) fn allows_fast_path(&self) -> bool {
        !self.db.is_loading()
            && !self.pause.is_on()
            && !self.channels().has_monitors()
            && !self.events.wants(Class::New)
            && !self.db.is_out_of_memory()
    }

    /// Asks the main thread to stop the server.
    pub(crate) fn stop(&self, why: Stop) {
        // The receiver is gone only when the server is stopping already.
        let _ = self.stop.send(why);
    }

    /// Has work done on the thread for it, one piece after the other.
    pub(crate) fn errand(&self, errand: Errand) {
        // The receiver is gone only when the server is stopping already.
        let _ = self.errands.send(errand);
    }

    /// Enters a new connection in the list of clients.
    pub(crate) fn register(&self, info: impl FnOnce(u64) -> ClientInfo) -> Arc<ClientInfo> {
        let id = self.next_client.fetch_add(1, Ordering::Relaxed);
        let info = Arc::new(info(id));
        self.clients.lock().insert(id, Arc::clone(&info));
        info
    }

    /// The connection with this number.
    pub(crate) fn client(&self, id: u64) -> Option<Arc<ClientInfo>> {
        self.clients.lock().get(&id).cloned()
    }

    /// Takes a connection out of the list of clients.
    pub(crate) fn unregister(&self, id: u64) {
        self.clients.lock().remove(&id);
    }

    /// Connections at this moment.
    pub(crate) fn connected(&self) -> usize {
        self.clients.lock().len()
    }

    /// All connections at this moment, by ascending id.
    pub(crate) fn clients(&self) -> Vec<Arc<ClientInfo>> {
        self.clients.lock().values().cloned().collect()
    }
}

impl Runtime {
    /// The settings at start.
    pub(crate) fn new(
        connections_max: usize,
        idle_timeout_s: u64,
        protected_mode: bool,
        password: String,
    ) -> Self {
        let users = Users::new();
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

impl Counters {
    /// Sets every counter to zero.
    pub(crate) fn reset(&self) {
        for counter in [
            &self.commands,
            &self.connections,
            &self.connections_rejected,
            &self.bytes_in,
            &self.bytes_out,
            &self.timeouts,
        ] {
            counter.store(0, Ordering::Relaxed);
        }
    }
}

/// Milliseconds since the Unix epoch, never negative.
pub(crate) fn now_ms() -> i64 {
    let elapsed = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    i64::try_from(elapsed.as_millis()).unwrap_or(i64::MAX)
}
