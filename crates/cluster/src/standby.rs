//! A node of a tablet, from its start on: it follows the log, and owns it when nobody else does.
//!
//! ```text
//! open       the newest checkpoint, without its blocks; the database follows from there
//! follow     groups are applied; a checkpoint that counts is loaded beside the files (loader), and
//!            taken over between two groups
//! claim      when the log is new, was given up, or is silent (crate::follower)
//! own        what is loaded is taken over, the log runs, the database is that of its owner
//! ended      deposed, fallen behind, out of memory: the node loads anew, with another Standby
//! ```
//! Every start follows first: one that cannot succeed deposes nobody.
//!
//! Invariants: the database holds a beginning of what counts in the log, in its order. It answers
//! nothing before all that its files need is applied. It owns the log only once all before its EPOCH
//! is applied. What its newest checkpoint has is in the store, so that the first one behind a
//! take-over uploads what is new, and no more. A node that cannot load that checkpoint lets others own
//! the log; if there is none, it saves a checkpoint of its own at once, or loads anew.
//!
//! Tested by `tests/standby/`: three nodes under faults, in simulated time.

mod ended;
mod loader;

use crate::checkpoint::{ListingRef, Progress};
use crate::envelope::Claimant;
use crate::follower::{Event, Follower, Speaker};
use crate::node::{Node, Role};
use crate::owner::{self, Claimed};
use crate::tablet::{Begun, Cache, Error, Files, Newer, Place, Tablet, begin};
pub use ended::Ended;
use ended::leave;
use latewood_engine::{Db, Defaults, ErrorKind, Options};
use loader::Loader;
use parking_lot::Mutex;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// How long a new owner waits for the files of a checkpoint that is being loaded. Its claim counts
/// already: others must hear of it before they claim the log themselves.
const LOAD_WAIT: Duration = Duration::from_secs(1);

/// How soon groups are applied again that could not be.
const AWAY_REST: Duration = Duration::from_millis(100);
/// How soon blocks are fetched again that could not be, where groups need one.
const FETCH_AGAIN: Duration = Duration::from_secs(5);

/// What becomes of a node.
#[derive(Clone)]
pub enum Change {
    /// It follows, and its reads are right. Not told again.
    Follows,
    /// It owns the log: checkpoints of the tablet must be saved from now on. Told before the node
    /// has the role.
    Owns(Arc<Tablet>),
    /// It neither follows nor owns the log any more. The last change.
    Ended(Ended),
}

/// Told what becomes of a node, on a thread of its own or one of the log.
pub type OnChange = Box<dyn Fn(Change) + Send + Sync>;

/// What a turn found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Something was done.
    Went,
    /// There is nothing to do for now.
    Idle,
    /// The log is followed no more: the node owns it, or it ended.
    Over,
}

/// A node of a tablet.
pub struct Standby {
    shared: Arc<Shared>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

struct Shared {
    db: Arc<Db>,
    files: Arc<Files>,
    node: Arc<Node>,
    place: Place,
    /// None once the log is followed no more.
    following: Mutex<Option<Following>>,
    speaker: Speaker,
    loader: Arc<Loader>,
    /// What was asked of the follower, and is told to it at the next turn.
    asked: Mutex<Asked>,
    tablet: OnceLock<Arc<Tablet>>,
    has_ended: AtomicBool,
    on_change: OnChange,
}

struct Following {
    follower: Follower,
    /// Groups that were read and are not applied: a block does not come, or memory is short.
    unapplied: Vec<u8>,
    /// When blocks were last fetched for them.
    fetched_ns: Option<u64>,
}

#[derive(Default)]
struct Asked {
    stands: Option<bool>,
    forces: bool,
}

impl Standby {
    /// Makes the directory of `place` the newest checkpoint that counts, without its blocks, and
    /// opens it as a follower of the log. Nothing goes on before [`Standby::start`] or turns.
    /// Tells `tell` how far the files are, and `on_change` what becomes of the node. `node` is
    /// loading. Calls that the object store or Kafka cannot answer now are repeated for as long as
    /// it takes.
    ///
    /// # Errors
    /// Those of [`Tablet::open`]. The log is as it was.
    pub fn open(
        place: Place,
        options: Options,
        defaults: Defaults,
        node: Arc<Node>,
        tell: &mut dyn FnMut(Progress),
        on_change: OnChange,
    ) -> Result<Self, Error> {
        let Begun { look, files, db } = begin(&place, tell, |files| {
            let (options, defaults) = (options.clone(), defaults.clone());
            Ok(Db::open_follower(
                &files.env, &place.dir, options, defaults,
            )?)
        })?;
        files.disk.limit_waits(place.read_wait);
        let (claimant, clock) = (place.claimant.clone(), Arc::clone(&place.env.clock));
        let loader = Loader::new(place.retry.clone(), Arc::clone(&clock));
        let (follower, speaker) = Follower::start(look, claimant, Arc::clone(&node), clock)?;
        let shared = Shared {
            db: Arc::new(db),
            files,
            node,
            loader: Arc::new(loader),
            place,
            following: Mutex::new(Some(Following {
                follower,
                unapplied: Vec::new(),
                fetched_ns: None,
            })),
            speaker,
            asked: Mutex::default(),
            tablet: OnceLock::new(),
            has_ended: AtomicBool::new(false),
            on_change,
        };
        Ok(Self {
            shared: Arc::new(shared),
            threads: Mutex::default(),
        })
    }

    /// Has threads do all turns, until the log is followed no more.
    ///
    /// # Errors
    /// `Engine` if they cannot be started.
    pub fn start(&self) -> Result<(), Error> {
        let shared = Arc::clone(&self.shared);
        self.spawn("follow", move || shared.follow())?;
        // The others may hang in a call to Kafka or the store, and keep the database from nobody.
        let speaker = self.shared.speaker.clone();
        self.spawn("speak", move || speaker.run())?;
        let (loader, files) = (self.shared.loader.clone(), self.shared.files.clone());
        self.spawn("load", move || loader.run(&files))
    }

    /// Starts a thread whose panic ends the node.
    fn spawn(&self, name: &'static str, job: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let shared = Arc::downgrade(&self.shared);
        let guarded = move || {
            if catch_unwind(AssertUnwindSafe(job)).is_err()
                && let Some(shared) = shared.upgrade()
            {
                let text = format!("the thread {name:?} panicked");
                shared.end(Ended::Failed(text));
            }
        };
        let thread = thread::Builder::new().name(name.to_owned()).spawn(guarded);
        let thread = thread.map_err(|error| {
            latewood_engine::Error::io("cannot start a thread", Path::new(name), error)
        })?;
        self.threads.lock().push(thread);
        Ok(())
    }

    /// The database.
    pub fn db(&self) -> &Arc<Db> {
        &self.shared.db
    }

    /// The tablet, once this node owns it.
    pub fn tablet(&self) -> Option<&Arc<Tablet>> {
        self.shared.tablet.get()
    }

    /// What the node is to the tablet.
    pub fn node(&self) -> &Arc<Node> {
        &self.shared.node
    }

    /// Has all blocks fetched in the background, those with the newest samples first.
    pub fn fetch_all(&self) {
        self.shared.fetch_all();
    }

    /// Bytes of blocks that are not on this machine.
    pub fn away_bytes(&self) -> u64 {
        self.shared.files.disk.away_bytes()
    }

    /// The blocks on this machine and their limit, which is none at first.
    pub fn cache(&self) -> Cache {
        self.shared.files.disk.cache()
    }

    /// Whether the node may become the owner by itself: by default it may.
    pub fn stand(&self, stands: bool) {
        self.shared.asked.lock().stands = Some(stands);
    }

    /// Has the node claim the log whatever its owner does, once: for an operator.
    pub fn force(&self) {
        self.shared.asked.lock().forces = true;
    }

    /// Reads on once: for who does without [`Standby::start`].
    pub fn turn(&self) -> Turn {
        self.shared.turn()
    }

    /// Says and claims what is due, and loads a checkpoint that waits: the same.
    pub fn turn_beside(&self) {
        self.shared.speaker.step();
        self.shared.loader.turn(&self.shared.files);
    }

    /// Tells the others that the node leaves, if it follows the log, as a node does that is stopped in
    /// order; waits up to `limit` for Kafka. Then [`Standby::abandon`].
    pub fn leave(&self, limit: Duration) {
        let speaker = self.shared.speaker.clone();
        let (tell, told) = channel();
        let said = thread::Builder::new().spawn(move || {
            speaker.leave();
            // Who does not wait any more is gone.
            let _ = tell.send(());
        });
        if said.is_ok() {
            let _ = told.recv_timeout(limit);
        }
    }

    /// Follows no more, and gives an owned log up without a farewell, as a killed process does.
    pub fn abandon(&self) {
        self.shared.place.retry.cancel.cancel();
        self.shared.loader.stop();
        self.shared.files.disk.stop();
        for thread in self.threads.lock().drain(..) {
            // A panic in it was told where it happened. A change may be the one who calls.
            if thread.thread().id() != thread::current().id() {
                let _ = thread.join();
            }
        }
    }
}

impl Drop for Standby {
    fn drop(&mut self) {
        if self.tablet().is_none() {
            self.abandon();
        }
    }
}

impl Shared {
    fn follow(self: &Arc<Self>) {
        while self.turn() != Turn::Over {}
    }

    fn turn(self: &Arc<Self>) -> Turn {
        let mut held = self.following.lock();
        let Some(following) = &mut *held else {
            return Turn::Over;
        };
        let asked = std::mem::take(&mut *self.asked.lock());
        if let Some(stands) = asked.stands {
            following.follower.stand(stands);
        }
        if asked.forces {
            following.follower.force();
        }
        let adopted = self.adopt_loaded();
        following.follower.lack_files(self.loader.is_late());
        let turned = adopted.and_then(|()| self.go_on(following));
        let turned = turned.unwrap_or_else(|ended| {
            self.end(ended);
            Turn::Over
        });
        if turned == Turn::Over {
            *held = None;
            self.loader.stop();
        }
        turned
    }

    fn go_on(self: &Arc<Self>, following: &mut Following) -> Result<Turn, Ended> {
        // By the next call the follower takes what it handed over for applied.
        if !self.apply(following)? {
            return Ok(Turn::Idle);
        }
        match following.follower.next().map_err(Ended::of_followed)? {
            Event::Groups(groups) => {
                following.unapplied = groups.bytes;
                self.apply(following)?;
            }
            Event::Checkpoint { checkpoint, .. } => {
                self.loader.want(ListingRef::from(&checkpoint));
            }
            Event::Claimed(claimed) => {
                self.own(*claimed)?;
                return Ok(Turn::Over);
            }
            Event::Epoch { .. } | Event::Farewell => {}
            Event::Idle => {
                self.note_loaded();
                return Ok(Turn::Idle);
            }
        }
        Ok(Turn::Went)
    }

    /// Applies groups, which are gone then. Returns false if it is to be tried again.
    fn apply(&self, following: &mut Following) -> Result<bool, Ended> {
        let groups = &mut following.unapplied;
        if groups.is_empty() {
            return Ok(true);
        }
        match self.db.follow(groups) {
            Ok(()) => {
                groups.clear();
                following.fetched_ns = None;
                self.note_loaded();
                Ok(true)
            }
            Err(error) if self.may_go_on(&error) => {
                self.fetch_again(&mut following.fetched_ns, &error);
                let rested = self.place.retry.rest(AWAY_REST);
                rested.map_err(|_| Ended::Stopped)?;
                Ok(false)
            }
            Err(error) => Err(Ended::of_applying(&error)),
        }
    }

    /// Has blocks fetched that could not be: a disk that was full may have room by now.
    fn fetch_again(&self, fetched_ns: &mut Option<u64>, error: &latewood_engine::Error) {
        let now_ns = self.place.env.clock.monotonic_ns();
        let is_recent =
            |at_ns: u64| u128::from(now_ns.saturating_sub(at_ns)) < FETCH_AGAIN.as_nanos();
        if !fetched_ns.is_some_and(is_recent) {
            tracing::warn!(%error, "the log is not applied on for now");
            *fetched_ns = Some(now_ns);
            self.fetch_all();
        }
    }

    /// Whether groups that are not applied may be later: a block may come, and what a checkpoint
    /// holds that is being loaded need not be in memory.
    fn may_go_on(&self, error: &latewood_engine::Error) -> bool {
        let is_short = error.kind() == ErrorKind::OutOfMemory;
        error.is_away() || is_short && self.loader.is_busy()
    }

    fn note_loaded(&self) {
        if self.node.role() == Role::Loading && self.db.is_loaded() {
            self.node.change(|standing| standing.role = Role::Follower);
            (self.on_change)(Change::Follows);
        }
    }

    /// Takes over what the loader has, if there is something.
    fn adopt_loaded(&self) -> Result<(), Ended> {
        let Some(newer) = self.loader.take() else {
            return Ok(());
        };
        let adopted = self.files.adopt(&self.db, &newer);
        let is_new = adopted.map_err(|error| Ended::of_adopting(&error))?;
        let Newer { checkpoint } = newer;
        if is_new {
            let object = &checkpoint.at.object;
            tracing::info!(object, "took over the files of a checkpoint of the owner");
            self.fetch_all();
        }
        self.loader.go_on(&checkpoint.at);
        Ok(())
    }

    /// The claim counts, and all before it is applied.
    fn own(self: &Arc<Self>, claimed: Claimed) -> Result<(), Ended> {
        self.loader.finish(LOAD_WAIT);
        self.adopt_loaded()?;
        let missing = self.loader.missing();
        if let Some(ListingRef { object, .. }) = &missing {
            tracing::warn!(
                object,
                "this node takes the log over without the newest checkpoint, which does not come: \
                 it saves another one as soon as the object store can be used"
            );
        }
        let epoch = claimed.owner.epoch();
        let weak = Arc::downgrade(self);
        let on_end = Box::new(move |error: &owner::Error| {
            if let Some(shared) = weak.upgrade()
                && shared.tablet.get().is_some()
            {
                shared.end_owner(error);
            }
        });
        let files = Arc::clone(&self.files);
        let started = Tablet::start(claimed, &self.place, files, missing, on_end);
        let tablet = started.map_err(|error| Ended::Failed(error.to_string()))?;
        let promoted = self.db.promote(Arc::clone(tablet.log()) as _);
        let saved = promoted.map_err(Error::Engine);
        let saved = saved.and_then(|()| tablet.save_first(&self.db, &self.place.retry));
        saved.map_err(|error| {
            tablet.log().give_up();
            let successor = tablet.log().ended().filter(owner::Error::is_succession);
            successor.map_or(Ended::Failed(error.to_string()), Ended::of_owned)
        })?;
        let tablet = Arc::new(tablet);
        let _ = self.tablet.set(Arc::clone(&tablet));
        // Before the node has the role, so that all that it needs is in its place.
        (self.on_change)(Change::Owns(Arc::clone(&tablet)));
        self.node.change(|standing| {
            if !self.has_ended.load(Ordering::Acquire) {
                standing.role = Role::Owner;
                standing.epoch = Some(epoch);
                standing.owner = standing.members.first().map(|me| me.id);
            }
        });
        if let Some(error) = tablet.log().ended() {
            // Before the tablet was in its place.
            self.end_owner(&error);
        }
        Ok(())
    }

    /// The log is owned no more.
    fn end_owner(&self, error: &owner::Error) {
        let by = match error {
            owner::Error::Deposed { by, .. } => Some(by),
            _ => None,
        };
        self.leave(Ended::of_owned(error.clone()), by);
    }

    fn end(&self, ended: Ended) {
        self.leave(ended, None);
    }

    fn leave(&self, ended: Ended, by: Option<&Claimant>) {
        if !self.has_ended.swap(true, Ordering::AcqRel) {
            self.node.change(|standing| leave(standing, by));
            (self.on_change)(Change::Ended(ended));
        }
    }

    fn fetch_all(&self) {
        self.files.disk.fetch_all(&self.db.blocks());
    }
}
