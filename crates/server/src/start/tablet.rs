//! A database beyond this machine: opened from Kafka and an object store, and kept there.
//!
//! One thread keeps it: it flushes and saves checkpoints, so that the log in Kafka stays short,
//! has missing blocks fetched, and looks whether the topic is still the one it was. A topic that
//! would lose records, or that is another, stops the server with the reason.
//!
//! Tested by `tests/kafka/` with brokers.

use super::downloading::downloading;
use super::waiting::{GIVEN_UP, Waiting};
use crate::state::{Remote, Settings, Shared, Stop};
use latewood_cluster::checkpoint::{CheckpointError, Objects};
use latewood_cluster::envelope::Claimant;
use latewood_cluster::kafka::client::connect;
use latewood_cluster::kafka::{Kafka, KafkaError, Partition, Topic};
use latewood_cluster::node::{Node, Role};
use latewood_cluster::remote::{Bounds, OnEnd};
use latewood_cluster::retry::{Cancel, Retry};
use latewood_cluster::tablet::{self, Place, Tablet};
use latewood_cluster::topic::{self, Replication, require_safe};
use latewood_engine::io::Env;
use latewood_engine::{Db, Options, RemoteLog};
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

/// A log that is not long is saved after this time.
const SAVE_EVERY: Duration = Duration::from_secs(600);
/// How often the topic is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// How soon blocks that could not be fetched are tried again, if nobody reads them.
const FETCH_EVERY: Duration = Duration::from_secs(60);
/// How soon a stop is noticed.
const TURN: Duration = Duration::from_millis(100);
/// How long a stop waits for Kafka.
const STOP_WAIT: Duration = Duration::from_secs(30);
/// How long the end of a stop may take, with its last checkpoint.
const SAVE_WAIT: Duration = Duration::from_secs(90);
/// How long blocks are fetched for the copy of a database whose log is lost.
const RESCUE_WAIT: Duration = Duration::from_secs(600);
/// How long a read waits for a block that must be fetched from the object store.
const READ_WAIT: Duration = Duration::from_secs(30);
/// How often a topic is looked for that is not there.
const MISSING_MAX: u32 = 6;
/// How soon what failed is tried again.
const RETRY_EVERY: Duration = Duration::from_secs(5);
/// The same of a checkpoint for which nobody waits.
const SAVE_AGAIN: Duration = Duration::from_secs(30);

/// What keeps a database beyond this machine.
pub(super) struct Keeper {
    tablet: Arc<Tablet>,
    home: Home,
    node: Option<Arc<Node>>,
    /// The topic of now has no record of the log.
    is_topic_gone: AtomicBool,
    /// It may lose some: it was changed.
    is_topic_unsafe: AtomicBool,
}

/// Where the log of a database is.
pub(super) struct Home {
    kafka: Arc<dyn Kafka>,
    name: String,
    topic: Topic,
    replication: Replication,
}

/// A topic that is not what it was.
struct Changed {
    reason: String,
    /// The records of the log are gone with it.
    is_gone: bool,
}

/// Opens the database that `settings` name, with these options. `shared` is stopped when it is
/// owned no more.
///
/// # Errors
/// Why it cannot be opened: another node may own the log by then.
pub(super) fn open(
    settings: &Settings,
    options: Options,
    shared: Weak<Shared>,
) -> Result<(Db, Keeper), Stop> {
    let (home, place) = super::alone::find(settings)?;
    tracing::info!(topic = home.name, "opening the log");
    let defaults = settings.defaults();
    let mut downloaded = downloading(Weak::clone(&shared));
    let opened = Tablet::open(place, options, defaults, &mut downloaded, stops(shared));
    let (tablet, db) = opened.map_err(|error| not_opened(&settings.dir, &error))?;
    tablet
        .cache()
        .set_bytes_max(settings.cluster.cache_bytes_max);
    Ok((db, Keeper::new(Arc::new(tablet), home, None)))
}

/// Finds the log and the object store that `settings` name.
///
/// # Errors
/// Why they cannot hold a database.
pub(super) fn find(settings: &Settings) -> Result<(Home, Place), Stop> {
    let cluster = &settings.cluster;
    let (Some(log), Some(objects)) = (&cluster.log, &cluster.objects) else {
        let reason = match cluster.log {
            Some(_) => "log: needs objects, the object store of its checkpoints",
            None => "objects: needs log, the log in Kafka",
        };
        return Err(reason.to_owned().into());
    };
    if !settings.wal {
        return Err("log: cannot be used with --wal off".to_owned().into());
    }
    let env = Env::real();
    // Its log is gone: nobody is to make a new one over it.
    let rescued = tablet::require_no_rescue(&env, &settings.dir);
    rescued.map_err(|error| not_opened(&settings.dir, &error))?;
    let replication = cluster.replication();
    let (address, client) = connect(log, cluster.kafka.clone())?;
    let kafka: Arc<dyn Kafka> = Arc::new(client);
    let name = topic::log_name(&address.name);
    let topic = find_topic(&*kafka, &name, replication)?;
    let store = latewood_offsite::Place::parse(objects);
    let store = store.map_err(|error| format!("objects: {error}"))?;
    let objects = Objects::new(env.clone(), &store, &address.name, 0);
    let objects = objects.map_err(|error| error.to_string())?;
    // A store that cannot be written is noticed before anything depends on it.
    let what = "cannot write to the object store";
    patiently(what, || objects.probe(), CheckpointError::is_temporary)?;
    let place = Place {
        kafka: Arc::clone(&kafka),
        partition: Partition {
            topic: name.clone(),
            number: 0,
        },
        topic_id: Some(topic.id),
        objects,
        claimant: Claimant {
            nonce: nonce(&env),
            node: 0,
            address: settings.listen.first().cloned().unwrap_or_default(),
        },
        env,
        dir: settings.dir.clone(),
        bounds: Bounds::default(),
        retry: Retry::new(Arc::new(Cancel::default())),
        read_wait: READ_WAIT,
        read_lease: cluster.read_lease,
    };
    let home = Home {
        kafka,
        name,
        topic,
        replication,
    };
    Ok((home, place))
}

/// What stops the server when the log is owned no more.
fn stops(shared: Weak<Shared>) -> OnEnd {
    Box::new(move |error| {
        if let Some(shared) = shared.upgrade() {
            let reason = error.to_string();
            shared.lifetime.stop(if error.is_succession() {
                Stop::Deposed(reason)
            } else if error.loses_records() {
                Stop::LogLost(reason)
            } else {
                Stop::Crashed(reason)
            });
        }
    })
}

/// Asks until there is an answer that another attempt would not change; a stop ends the process
/// meanwhile.
pub(super) fn patiently<T, E: Display>(
    what: &str,
    ask: impl FnMut() -> Result<T, E>,
    is_temporary: impl Fn(&E) -> bool,
) -> Result<T, String> {
    let retry = Retry {
        longest: RETRY_EVERY,
        ..Retry::new(Arc::default())
    };
    let answer = retry.repeat(what, ask, is_temporary);
    let answer = answer.map_err(|_| format!("{what}: given up"))?;
    answer.map_err(|error| format!("{what}: {error}"))
}

/// The topic, if it can hold the log of one tablet.
fn find_topic(kafka: &dyn Kafka, name: &str, replication: Replication) -> Result<Topic, String> {
    let is_temporary =
        |error: &KafkaError| matches!(error, KafkaError::Unavailable(_) | KafkaError::Unknown(_));
    let what = format!("cannot use topic {name}");
    let topic = patiently(&what, || topic::find(kafka, name), is_temporary)?;
    require_safe(&topic, name, replication)?;
    match topic.replicas.len() {
        1 => Ok(topic),
        tablets => Err(format!(
            "topic {name} has {tablets} partitions: more than one tablet is not supported"
        )),
    }
}

pub(super) fn not_opened(dir: &Path, error: &tablet::Error) -> Stop {
    let reason = format!("cannot open {}: {error}", dir.display());
    if error.is_succession() {
        Stop::Deposed(reason)
    } else {
        Stop::NotOpened(reason)
    }
}

fn nonce(env: &Env) -> [u8; 16] {
    let [high, low] = [(); 2].map(|()| u128::from(env.random.next_u64()));
    (high << 64 | low).to_le_bytes()
}

impl Keeper {
    /// `node`: what it is in a cluster, if it is in one.
    pub(super) fn new(tablet: Arc<Tablet>, home: Home, node: Option<Arc<Node>>) -> Self {
        Self {
            tablet,
            home,
            node,
            is_topic_gone: AtomicBool::new(false),
            is_topic_unsafe: AtomicBool::new(false),
        }
    }

    /// As [`Shared::keeps`] of its tablet.
    pub(super) fn tell(&self, shared: &Shared) {
        shared.keeps(&self.tablet);
    }

    /// Keeps the database until the server stops; then saves it. A panic stops the server.
    pub(super) fn run(&self, shared: &Shared) {
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| self.end_waiting(shared, &ended));
            scope.spawn(|| self.watch_topic(shared));
            let kept = catch_unwind(AssertUnwindSafe(|| self.keep(shared)));
            ended.store(true, Ordering::Release);
            if let Some(remote) = shared.remote.get() {
                remote.end();
            }
            if kept.is_err() {
                let what = "the thread that saves checkpoints panicked";
                shared.lifetime.stop(Stop::Crashed(what.to_owned()));
            }
        });
    }

    fn keep(&self, shared: &Shared) {
        let (mut saved, mut failed) = (Instant::now(), None);
        let (mut position, mut fetched) = (shared.db.position(), Instant::now());
        self.tablet.fetch_all(&shared.db);
        let mut waiting = Waiting::default();
        while !is_stopping(shared) {
            thread::sleep(TURN);
            waiting.tell(shared);
            if let Some(why) = self.halted_beside_heirs(shared) {
                return self.leave(shared, why);
            }
            if fetched.elapsed() >= FETCH_EVERY && self.tablet.away_bytes() > 0 {
                fetched = Instant::now();
                self.tablet.fetch_all(&shared.db);
            }
            let is_new = shared.db.position() != position;
            let is_long = self.tablet.is_log_long();
            let is_wanted = shared.remote.get().and_then(Remote::wanted).is_some();
            let is_old = is_new && (is_long || saved.elapsed() >= SAVE_EVERY);
            let is_due = is_wanted || is_old || self.tablet.lacks_checkpoint() || failed.is_some();
            let rest = if is_wanted { RETRY_EVERY } else { SAVE_AGAIN };
            let waits = failed.is_some_and(|at: Instant| at.elapsed() < rest);
            if is_due && !waits {
                let begun = shared.db.position();
                match self.save(shared) {
                    Ok(()) => (saved, position, failed) = (Instant::now(), begun, None),
                    Err(()) => failed = Some(Instant::now()),
                }
            }
        }
        // Makes the next start quick; the log has it all. What a thread left that panicked is
        // not saved: the log mends it.
        let is_trusted = !shared.lifetime.failed.load(Ordering::Acquire);
        if is_trusted && self.is_lost() {
            return self.rescue(shared);
        }
        let is_unsafe = self.is_topic_unsafe.load(Ordering::Acquire);
        if !is_unsafe && self.has_heir() {
            // It takes over as soon as the log is given up.
            return;
        }
        let saves = is_trusted && (failed.is_none() || is_unsafe);
        let is_saved = saves && self.tablet.log().drain(STOP_WAIT) && self.save(shared).is_ok();
        if is_trusted && is_unsafe && !is_saved {
            self.rescue(shared);
        }
    }

    /// Ends this life as the owner, with a farewell: who owns the log next need not wait. Clients try
    /// again elsewhere.
    fn leave(&self, shared: &Shared, why: String) {
        if let Some(node) = &self.node {
            node.change(|standing| standing.role = Role::Loading);
        }
        if let Err(error) = RemoteLog::close(&**self.tablet.log()) {
            tracing::error!(%error, "{GIVEN_UP}");
        }
        shared.lifetime.stop(Stop::Anew(why));
    }

    /// Why nothing can be written, or will be before long because the disk is full, if another
    /// node can: it takes over once this process has ended.
    fn halted_beside_heirs(&self, shared: &Shared) -> Option<String> {
        let stats = shared.db.stats();
        let why = stats.halted.or(stats.flush.disk_full)?;
        let says = || format!("this node cannot write, and another one takes over: {why}");
        self.has_heir().then(says)
    }

    fn has_heir(&self) -> bool {
        self.node.as_ref().is_some_and(|node| node.has_heir())
    }

    /// Whether the log lacks acknowledged records: what is in memory is all that is left of them.
    fn is_lost(&self) -> bool {
        self.is_topic_gone.load(Ordering::Acquire) || self.tablet.log().has_lost_records()
    }

    /// Saves all that this process has where no log has it any more.
    fn rescue(&self, shared: &Shared) {
        tracing::error!("records of the log are gone; saving a local copy of the database");
        match self.tablet.rescue(&shared.db) {
            Ok(dir) => {
                let dir = dir.display();
                tracing::error!(
                    "{dir} is a local database of everything that this server had, also of writes \
                     that were not acknowledged. Begin a log with a new name on top of it with \
                     `latewood cluster init --from {dir}`, or serve it with `latewood serve --dir \
                     {dir}`"
                );
            }
            Err(error) => tracing::error!(
                %error,
                "cannot save a local copy; what was written since the newest checkpoint is lost. \
                 `latewood cluster restore --without-log` restores the checkpoint"
            ),
        }
    }

    /// Gives the log up where a stop would wait for Kafka or the store for too long: whoever
    /// waits for them hears that it is in vain.
    fn end_waiting(&self, shared: &Shared, ended: &AtomicBool) {
        while !is_stopping(shared) {
            thread::sleep(TURN);
        }
        let begun = Instant::now();
        if self.is_lost() {
            while !ended.load(Ordering::Acquire) && begun.elapsed() < RESCUE_WAIT {
                thread::sleep(TURN);
            }
            return self.tablet.stop_fetching();
        }
        self.tablet.stop_fetching();
        if !self.tablet.log().drain(STOP_WAIT) {
            let bytes = self.tablet.log().queued_bytes();
            if bytes > 0 {
                tracing::error!(bytes, "{GIVEN_UP}");
            }
            self.tablet.abandon();
        }
        while !ended.load(Ordering::Acquire) {
            if begun.elapsed() >= SAVE_WAIT {
                tracing::error!(
                    "the last checkpoint takes too long and is not saved: nothing is lost, the next \
                     start reads more of the log"
                );
                return self.tablet.abandon();
            }
            thread::sleep(TURN);
        }
    }

    fn save(&self, shared: &Shared) -> Result<(), ()> {
        let remote = shared.remote.get();
        let asked = remote.and_then(Remote::wanted);
        let begun = Instant::now();
        let saved = match shared.db.flush() {
            Ok(()) => self.tablet.checkpoint(&shared.db).map_err(|error| {
                tracing::error!(%error, is_temporary = error.is_temporary(), "cannot save a checkpoint; it is tried again within 30 s");
                if matches!(error, tablet::Error::Overtaken { .. }) {
                    self.leave(shared, error.to_string());
                }
                error.to_string()
            }),
            Err(error) => {
                tracing::error!(%error, "cannot write blocks for a checkpoint");
                Err(error.to_string())
            }
        };
        let (took, ended) = (begun.elapsed(), saved.as_ref().map(drop).map_err(drop));
        if ended.is_ok() {
            tracing::info!(duration_ms = took.as_millis() as u64, "checkpoint saved");
        }
        if let Some(remote) = remote {
            remote.note(asked, took, saved);
        }
        ended
    }

    /// Looks at the topic until the server stops, which a topic that was changed makes it. On a
    /// thread of its own: a checkpoint may wait for a topic that is gone.
    fn watch_topic(&self, shared: &Shared) {
        let (mut looked, mut missing) = (Instant::now(), 0);
        while !is_stopping(shared) {
            thread::sleep(TURN);
            if looked.elapsed() < LOOK_EVERY {
                continue;
            }
            looked = Instant::now();
            let checked = self.check_topic(&mut missing);
            if let Err(Changed { reason, is_gone }) = checked {
                self.is_topic_gone.store(is_gone, Ordering::Release);
                self.is_topic_unsafe.store(true, Ordering::Release);
                return shared.lifetime.stop(Stop::LogLost(reason));
            }
            self.check_begin(shared);
        }
    }

    /// Whether the log has all that is needed beside the newest checkpoint. What is missing in it
    /// was deleted by hand: this process still has it, and saves it.
    fn check_begin(&self, shared: &Shared) {
        let needed = self.tablet.log().begin();
        let partition = Partition {
            topic: self.home.name.clone(),
            number: 0,
        };
        match self.home.kafka.bounds(&partition) {
            Ok((begin, _)) if begin > needed && self.tablet.log().begin() == needed => {
                tracing::error!(
                    needed,
                    begin,
                    "records that are needed were deleted from the log; saving a checkpoint, \
                     without which a restart loses writes"
                );
                if let Some(remote) = shared.remote.get() {
                    remote.ask();
                }
            }
            _ => {}
        }
    }

    /// Whether the topic still is what it was. `missing`: how often it was not there.
    fn check_topic(&self, missing: &mut u32) -> Result<(), Changed> {
        let Home {
            kafka,
            name,
            topic,
            replication,
        } = &self.home;
        let now = match kafka.describe(name) {
            Ok(now) => now,
            Err(error) => {
                tracing::warn!(%error, "cannot look at topic {name}");
                let is_missing = matches!(error, KafkaError::NoSuchTopic(_));
                *missing = if is_missing { *missing + 1 } else { 0 };
                // A broker that starts may not know its topics yet; one that is away says
                // nothing about them.
                if *missing >= MISSING_MAX {
                    let reason = format!("topic {name} was deleted");
                    let is_gone = true;
                    return Err(Changed { reason, is_gone });
                }
                return Ok(());
            }
        };
        *missing = 0;
        let changes = topic::changed(topic, &now, *replication);
        if changes.is_empty() {
            return Ok(());
        }
        Err(Changed {
            reason: format!("topic {name} was changed: {}", changes.join("; ")),
            is_gone: now.id != topic.id,
        })
    }
}

pub(super) fn is_stopping(shared: &Shared) -> bool {
    shared.lifetime.stopping.load(Ordering::Acquire)
}
