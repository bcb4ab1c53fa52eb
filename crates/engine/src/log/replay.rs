//! Handing replayed groups to workers, in an order that keeps each series'.
//!
//! A group whose ids are alike modulo a power of two goes to the worker of
//! that residue; all groups of one series therefore meet one worker, in order.
//! Barrier groups are applied alone, and a change of how many workers share
//! the ids drains them all first. Groups travel in slabs of many; each worker
//! owns a few slabs that come home empty, which bounds memory and tells when
//! a worker is idle. With one worker nothing is handed over at all.

use crate::base::error::{Error, ErrorKind, Result};
use crate::log::group::{FLAG_BARRIER, GroupHeader, STRIDE_LOG2_MAX};
use crate::log::options::Position;
use crate::log::record::{GroupForm, RecordIter};
use parking_lot::Mutex;
use std::ops::Range;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

/// A slab is sent when it holds this many bytes of records.
const SLAB_BYTES: usize = 256 * 1024;
/// Slabs of one worker: one being filled, one waiting, one being applied.
const SLABS_PER_WORKER: usize = 3;

/// What there is of a log before it is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogStart {
    /// None.
    None,
    /// One whose oldest group still needed is this.
    At(Position),
    /// Groups were durable once, and no segment has a header that can be read.
    Damaged,
}

/// What takes the records of a log at open.
pub trait Replay: Sync {
    /// How many threads may call [`Replay::apply`] at a time; rounded down to
    /// a power of two. With 1, the opening thread applies everything itself.
    fn workers(&self) -> usize;

    /// Hears, before anything else, what there is of a log. Nothing has been
    /// changed by then.
    ///
    /// # Errors
    /// Ends the open.
    fn begins(&self, start: LogStart) -> Result<()> {
        let _ = start;
        Ok(())
    }

    /// Applies the records of the group at `position`, in order. All groups that name one
    /// series come to one `worker` (below [`Replay::workers`]) in the order of
    /// the log, except around barriers and changes of stride, which wait until
    /// every worker is idle and may then use any.
    ///
    /// # Errors
    /// Ends the replay and the open.
    fn apply(&self, worker: usize, position: Position, records: RecordIter<'_>) -> Result<()>;

    /// Hears that `groups` groups from `first` on were lost (0: some, nobody
    /// knows how many), after everything before them was applied and before
    /// anything behind them is. From then on all groups come one at a time, in
    /// order.
    ///
    /// # Errors
    /// Ends the replay and the open.
    fn hole(&self, first: u64, groups: u64) -> Result<()> {
        let _ = (first, groups);
        Ok(())
    }

    /// Whether the sink is short of replay memory and needs the replay to pause.
    /// Called every few dozen KiB.
    fn wants_memory(&self) -> bool {
        false
    }

    /// Frees replay memory. Every group up to `applied` is applied and durable, none
    /// after it was started.
    ///
    /// # Errors
    /// Ends the replay and the open.
    fn free_memory(&self, applied: Position) -> Result<()> {
        let _ = applied;
        Ok(())
    }

    /// Hears how far the replay is, every few MiB; for progress lines.
    fn progress(&self, bytes_done: u64, bytes_total: u64) {
        let _ = (bytes_done, bytes_total);
    }
}

/// The sink, whose errors name the segment of the group.
#[derive(Clone, Copy)]
struct Sink<'a> {
    replay: &'a dyn Replay,
    segment_of: &'a (dyn Fn(Position) -> PathBuf + Sync),
}

impl Sink<'_> {
    fn apply(&self, worker: usize, group: Group, payload: &[u8]) -> Result<()> {
        let records = RecordIter::new(payload, group.form);
        let applied = self.replay.apply(worker, group.position, records);
        applied.map_err(|error| error.or_at(|| (self.segment_of)(group.position)))
    }
}

/// What a worker must know of a group beside its records.
#[derive(Clone, Copy, Debug)]
struct Group {
    position: Position,
    form: GroupForm,
}

/// Groups on their way to one worker.
#[derive(Debug, Default)]
struct Slab {
    bytes: Vec<u8>,
    groups: Vec<(Group, Range<usize>)>,
}

/// Sends groups to the workers of one replay.
pub(crate) struct Dispatcher<'a> {
    sink: Sink<'a>,
    lanes: Vec<Lane>,
    failure: &'a Failure,
    workers_log2: u8,
    /// Of how many low id bits the workers currently make use.
    shared_log2: u8,
    /// Something is lost: no two groups are applied at a time.
    one_by_one: bool,
}

/// The way to one worker and back.
struct Lane {
    filling: Slab,
    out: Sender<Slab>,
    home: Receiver<Slab>,
    /// Empty slabs at hand.
    idle: Vec<Slab>,
}

/// The first error of any worker.
#[derive(Default)]
struct Failure {
    happened: AtomicBool,
    error: Mutex<Option<Error>>,
}

/// Runs `feed` with a dispatcher to the workers of `replay` and waits for them. Groups
/// lie in the file that `segment_of` names.
pub(crate) fn with_workers<T>(
    replay: &dyn Replay,
    segment_of: &(dyn Fn(Position) -> PathBuf + Sync),
    feed: impl FnOnce(&mut Dispatcher<'_>) -> Result<T>,
) -> Result<T> {
    let sink = Sink { replay, segment_of };
    let workers_log2 = replay
        .workers()
        .max(1)
        .ilog2()
        .min(u32::from(STRIDE_LOG2_MAX)) as u8;
    let failure = Failure::default();
    let outcome = thread::scope(|scope| {
        let mut lanes = Vec::new();
        let workers = if workers_log2 == 0 {
            0
        } else {
            1 << workers_log2
        };
        for worker in 0..workers {
            let (out, slabs) = channel();
            let (back, home) = channel();
            let failure = &failure;
            scope.spawn(move || work(sink, worker, &slabs, &back, failure));
            lanes.push(Lane {
                filling: Slab::default(),
                out,
                home,
                idle: (1..SLABS_PER_WORKER).map(|_| Slab::default()).collect(),
            });
        }
        let mut dispatcher = Dispatcher {
            sink,
            lanes,
            failure: &failure,
            workers_log2,
            shared_log2: workers_log2,
            one_by_one: false,
        };
        let fed = feed(&mut dispatcher)?;
        dispatcher.drain()?;
        Ok(fed)
    });
    // A worker's own words say more than "a worker failed".
    match failure.error.into_inner() {
        Some(error) => Err(error),
        None => outcome,
    }
}

impl Dispatcher<'_> {
    /// Hands on the next group of the log.
    pub(crate) fn group(&mut self, header: &GroupHeader, payload: &[u8]) -> Result<()> {
        if payload.is_empty() {
            return Ok(());
        }
        let group = Group {
            position: Position(header.sequence),
            form: header.form(),
        };
        if self.lanes.is_empty() {
            return self.sink.apply(0, group, payload);
        }
        if header.flags & FLAG_BARRIER != 0 || self.one_by_one {
            self.drain()?;
            return self.sink.apply(0, group, payload);
        }
        let shared_log2 = header.stride_log2.min(self.workers_log2);
        if shared_log2 != self.shared_log2 {
            self.drain()?;
            self.shared_log2 = shared_log2;
        }
        let worker = usize::from(header.residue) & ((1 << shared_log2) - 1);
        let lane = &mut self.lanes[worker];
        let start = lane.filling.bytes.len();
        lane.filling.bytes.extend_from_slice(payload);
        let bytes = start..lane.filling.bytes.len();
        lane.filling.groups.push((group, bytes));
        if lane.filling.bytes.len() >= SLAB_BYTES {
            lane.send()?;
            self.check()?;
        }
        Ok(())
    }

    /// Tells the sink that groups are lost.
    pub(crate) fn hole(&mut self, first: u64, groups: u64) -> Result<()> {
        self.drain()?;
        self.one_by_one = true;
        self.sink.replay.hole(first, groups)
    }

    /// Whether the sink is short of replay memory.
    pub(crate) fn wants_memory(&self) -> bool {
        self.sink.replay.wants_memory()
    }

    /// Lets the sink free memory once everything up to `applied`, the last group
    /// handed to workers, is applied.
    pub(crate) fn free_memory(&mut self, applied: Position) -> Result<()> {
        self.drain()?;
        self.sink.replay.free_memory(applied)
    }

    /// Tells the sink how far the reading is.
    pub(crate) fn progress(&self, bytes_done: u64, bytes_total: u64) {
        self.sink.replay.progress(bytes_done, bytes_total);
    }

    /// Waits until every group handed on has been applied.
    fn drain(&mut self) -> Result<()> {
        for lane in &mut self.lanes {
            lane.send()?;
        }
        for lane in &mut self.lanes {
            while lane.idle.len() < SLABS_PER_WORKER - 1 {
                lane.idle.push(lane.home.recv().map_err(|_| gone())?);
            }
        }
        self.check()
    }

    fn check(&self) -> Result<()> {
        if self.failure.happened.load(Ordering::Acquire) {
            return Err(gone());
        }
        Ok(())
    }
}

impl Lane {
    /// Sends the slab being filled and takes an empty one, waiting for it.
    fn send(&mut self) -> Result<()> {
        if self.filling.groups.is_empty() {
            return Ok(());
        }
        let empty = match self.idle.pop() {
            Some(slab) => slab,
            None => self.home.recv().map_err(|_| gone())?,
        };
        let full = std::mem::replace(&mut self.filling, empty);
        self.out.send(full).map_err(|_| gone())
    }
}

fn work(
    sink: Sink<'_>,
    worker: usize,
    slabs: &Receiver<Slab>,
    back: &Sender<Slab>,
    failure: &Failure,
) {
    for mut slab in slabs {
        // After a failure slabs only go home, so that nobody waits for them.
        for (position, group) in slab.groups.drain(..) {
            if failure.happened.load(Ordering::Acquire) {
                break;
            }
            if let Err(error) = sink.apply(worker, position, &slab.bytes[group]) {
                failure.error.lock().get_or_insert(error);
                failure.happened.store(true, Ordering::Release);
            }
        }
        slab.bytes.clear();
        if back.send(slab).is_err() {
            return;
        }
    }
}

#[cold]
fn gone() -> Error {
    Error::new(ErrorKind::Halted, "a replay worker stopped early")
}
