//! A shard: the series under one lock, and the state that writes to them need.
//!
//! Lock order: a source's turn, shards in ascending order, then one shard of the
//! key map, then the index ([`crate::index`]), then the log. A thread that holds
//! several shards took them in ascending order.

use crate::base::partition::partition_of;
use crate::base::slab::Slab;
use crate::io::Env;
use crate::log::GroupBuilder;
use crate::observe::halt::Halt;
use crate::series::expiries::Times;
use crate::series::heads::Heads;
use crate::series::presence::ParkedSeries;
use crate::series::settle_queue::SettleQueue;
use crate::series::watched::Watched;
use crate::series::{Sealer, Series, SettleWork};
use latewood_model::SeriesId;
use parking_lot::{Mutex, MutexGuard};
use std::hint::{black_box, spin_loop};
use std::num::NonZeroU64;
use std::ops::{Deref, DerefMut, Range};
use std::thread::panicking;

/// Up to this many series of each shard are in the processor's cache anyway.
const CACHED_PLACES: usize = 512;

/// Distance, in samples, of the prefetch of series: few enough for the prefetched
/// memory to stay in the first-level cache.
const SERIES_AHEAD: usize = 32;
/// The same for the ends of their tails, whose address is in the series.
const TAILS_AHEAD: usize = 16;

/// Attempts at a held lock before the thread sleeps: about ten microseconds, the
/// cost of sleeping and waking.
const SPINS_MAX: usize = 1000;

/// A shard and its lock, on cache lines of its own.
#[repr(align(128))]
pub(crate) struct Shard {
    state: Mutex<ShardState>,
    halt: Halt,
}

/// The lock of a shard. If a thread that may have changed the shard panics, it stops
/// all writes: the shard may be half changed.
pub(crate) struct ShardGuard<'a> {
    state: MutexGuard<'a, ShardState>,
    halt: &'a Halt,
    is_changed: bool,
}

impl Deref for ShardGuard<'_> {
    type Target = ShardState;

    #[inline]
    fn deref(&self) -> &ShardState {
        &self.state
    }
}

impl DerefMut for ShardGuard<'_> {
    #[inline]
    fn deref_mut(&mut self) -> &mut ShardState {
        self.is_changed = true;
        &mut self.state
    }
}

impl Drop for ShardGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        if self.is_changed && panicking() {
            self.halt.stop("a thread panicked", PANICKED);
        }
    }
}

const PANICKED: &str = "a thread panicked while it changed series, which may be inconsistent";

impl Shard {
    pub(crate) fn new(state: ShardState, halt: &Halt) -> Self {
        Self {
            state: Mutex::new(state),
            halt: halt.clone(),
        }
    }

    #[inline]
    pub(crate) fn lock(&self) -> ShardGuard<'_> {
        ShardGuard {
            state: self.state.try_lock().unwrap_or_else(|| self.wait()),
            halt: &self.halt,
            is_changed: false,
        }
    }

    #[cold]
    fn wait(&self) -> MutexGuard<'_, ShardState> {
        for _ in 0..SPINS_MAX {
            spin_loop();
            if let Some(state) = self.state.try_lock() {
                return state;
            }
        }
        self.state.lock()
    }
}

#[derive(Default)]
pub(crate) struct ShardState {
    /// Ids of adjacent places differ by two to this power.
    pub(crate) stride_log2: u8,
    /// The awake series. One that is not here may be parked: see [`crate::series::presence`].
    pub(crate) slab: Slab<Series>,
    pub(crate) parked: ParkedSeries,
    pub(crate) sealer: Sealer,
    /// Records of the current batch.
    pub(crate) group: GroupBuilder,
    /// The place of the next new series.
    pub(crate) next_place: usize,
    pub(crate) queue: SettleQueue,
    /// What is in memory and not in a block.
    pub(crate) heads: Heads,
    /// The expiry times of series that expire.
    pub(crate) expiries: Times,
    /// Places of series with dirty buckets for the background thread.
    pub(crate) sources: Vec<usize>,
    /// Series that not everybody may write to at once: how many are the destination of a rule, and
    /// how many somebody owns ([`crate::keyspace::owned`]).
    pub(crate) guarded: usize,
    /// Series that are being built and have no key yet; see [`crate::db::write::copy`].
    pub(crate) unnamed: Vec<SeriesId>,
    /// Series that are gone and have a row in a series file. The next flush of their partition
    /// takes them.
    pub(crate) removed: Vec<SeriesId>,
    /// The log positions of series loaded from series files; empty after the log is
    /// replayed. In pages, since places are not used again: most places may be
    /// empty.
    pub(crate) restored: Slab<NonZeroU64>,
    /// Late samples that the log had, by series: which of them rules wrote is known once it is replayed.
    pub(crate) replayed_late: Slab<NonZeroU64>,
    /// What changed for readers of derived data.
    pub(crate) watched: Watched,
    pub(crate) counters: Counters,
    /// Those of the current batch.
    pub(crate) late: LateSamples,
}

impl ShardState {
    /// The series `id`, which belongs to this shard, if it is awake.
    pub(crate) fn series(&self, id: SeriesId) -> Option<&Series> {
        self.slab.get(id.0 as usize >> self.stride_log2)
    }

    /// The same, to change it.
    pub(crate) fn series_mut(&mut self, id: SeriesId) -> Option<&mut Series> {
        self.slab.get_mut(id.0 as usize >> self.stride_log2)
    }

    /// Whether the files hold everything that the log says of the series at `place`
    /// up to here.
    #[inline]
    pub(crate) fn restored_position(&self, place: usize) -> u64 {
        self.restored
            .get(place)
            .map_or(0, |position| position.get())
    }

    /// Prefetches the memory of series that are about to be written to: independent
    /// reads overlap, writes do not.
    #[inline]
    pub(crate) fn touch(&self, places: impl Iterator<Item = usize> + Clone) {
        if self.slab.places() <= CACHED_PLACES {
            return;
        }
        let series = || places.clone().filter_map(|place| self.slab.get(place));
        black_box(series().fold(0, |all, series| all ^ series.touch()));
        black_box(series().fold(0, |all, series| all ^ series.touch_tail()));
    }

    /// The same for what [`ShardState::restored_position`] tells.
    pub(crate) fn touch_restored(&self, places: impl Iterator<Item = usize>) {
        if self.restored.places() > CACHED_PLACES {
            black_box(places.fold(0, |all, place| all ^ self.restored_position(place)));
        }
    }

    /// Prefetches the memory of series that a batch writes to soon, so that the
    /// waits overlap with work; called before each of its samples. `place_of`
    /// returns the place of the series of the n-th sample, if there is one.
    #[inline]
    pub(crate) fn prefetch(&self, n: usize, place_of: impl Fn(usize) -> Option<usize> + Copy) {
        if self.slab.places() <= CACHED_PLACES {
            return;
        }
        if n == 0 {
            self.touch((0..SERIES_AHEAD).map_while(place_of));
        }
        if let Some(place) = place_of(n + SERIES_AHEAD) {
            self.slab.prefetch(place);
        }
        if let Some(series) = place_of(n + TAILS_AHEAD).and_then(|place| self.slab.get(place)) {
            series.prefetch_tail();
        }
    }

    /// Prefetches the start of the samples of series that are about to be read;
    /// call [`ShardState::touch`] first.
    pub(crate) fn touch_samples(&self, places: &[usize]) {
        if self.slab.places() <= CACHED_PLACES {
            return;
        }
        let series = || places.iter().filter_map(|&place| self.slab.get(place));
        black_box(series().fold(0, |all, series| all ^ series.touch_chunk()));
        black_box(series().fold(0, |all, series| all ^ series.touch_frames()));
    }

    /// Prefetches the keys of series that are about to be returned.
    pub(crate) fn touch_keys(&self, places: impl Iterator<Item = usize> + Clone) {
        if self.slab.places() <= CACHED_PLACES {
            return;
        }
        let series = || places.clone().filter_map(|place| self.slab.get(place));
        black_box(series().fold(0, |all, series| all ^ series.key.len()));
        let first = |series: &Series| series.key.first().copied().unwrap_or(0);
        black_box(series().fold(0, |all, series| all ^ first(series)));
    }

    /// Updates the counted bytes of the series at `place`; call it after any change
    /// of the series.
    pub(crate) fn recount(&mut self, place: usize) {
        let partition = partition_of(SeriesId((place << self.stride_log2) as u64));
        if let Some(series) = self.slab.get_mut(place) {
            self.queue.note(series);
            self.heads.note(series, partition);
        }
    }

    /// Adds a series to those with work for the background thread.
    pub(crate) fn note_rules(&mut self, place: usize) {
        if let Some(series) = self.slab.get_mut(place) {
            note_source(series, place, &mut self.sources);
        }
    }

    /// Notes a source whose buckets in flight could not be recomputed yet.
    #[cold]
    pub(crate) fn note_rules_again(&mut self, place: usize) {
        let series = self.slab.get_mut(place);
        if let Some(source) = series.and_then(Series::source_mut)
            && !source.queued
        {
            source.queued = true;
            self.sources.push(place);
        }
    }

    /// Notes that a series that belongs to this shard is no more what its row in a series file
    /// says.
    pub(crate) fn note_changed(&mut self, id: SeriesId) {
        if let Some(series) = self.series_mut(id) {
            series.marks.note_changed();
        }
    }

    /// Takes the removed series of a partition.
    pub(crate) fn take_removed(&mut self, partition: u32) -> Vec<SeriesId> {
        let of_partition = move |id: &mut SeriesId| partition_of(*id) == partition;
        let removed: Vec<SeriesId> = self.removed.extract_if(.., of_partition).collect();
        for id in &removed {
            self.parked.forget_gone(id.0 as usize >> self.stride_log2);
        }
        removed
    }

    /// Forgets the removed series of these places, but for those that files of parked series still
    /// have.
    pub(crate) fn forget_removed(
        &mut self,
        places: &Range<usize>,
        is_still_held: impl Fn(SeriesId) -> bool,
    ) {
        let (stride_log2, parked) = (self.stride_log2, &mut self.parked);
        self.removed.retain(|&id| {
            let place = id.0 as usize >> stride_log2;
            if !places.contains(&place) {
                return true;
            }
            let is_held = is_still_held(id);
            if is_held {
                parked.note_gone(place);
            } else {
                // It went while the flush began, and the whole file says so.
                parked.forget_gone(place);
            }
            is_held
        });
    }

    pub(crate) fn clear_series(&mut self) {
        self.slab.clear();
        self.parked.clear();
        self.queue.clear();
        self.heads.clear();
        self.expiries.clear();
        self.unnamed.clear();
        self.removed.clear();
        self.restored.clear();
        self.replayed_late.clear();
        self.sources.clear();
        self.watched.note_all_gone();
        self.guarded = 0;
    }
}

/// Adds a series to `sources`, if it is one that has work for the background thread.
#[inline]
pub(crate) fn note_source(series: &mut Series, place: usize, sources: &mut Vec<usize>) {
    if let Some(source) = series.source_mut()
        && !source.queued
        && source.has_prompt_work()
    {
        source.queued = true;
        sources.push(place);
    }
}

/// A sample of a batch that was accepted and is older than the newest of its series.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LateSample {
    /// Its index in the batch.
    pub index: u32,
    /// Milliseconds by which the newest sample of its series is newer.
    pub age_ms: u64,
}

/// The late samples of a batch in a shard. Kept here, those that are not late cost one store.
#[derive(Default)]
pub(crate) struct LateSamples {
    /// The index in the batch of the sample that is taken now.
    index: u32,
    noted: Vec<LateSample>,
    /// When the batch came, once that was asked for.
    arrived_ms: Option<i64>,
}

impl LateSamples {
    /// Forgets what a batch left that failed.
    #[inline]
    pub(crate) fn clear(&mut self) {
        self.noted.clear();
        self.arrived_ms = None;
    }

    /// The same, and begins a sample that is taken alone.
    pub(crate) fn begin_alone(&mut self, index: usize) {
        self.clear();
        self.begin(index);
    }

    /// Begins the sample with this index in a batch, which is counted in u32.
    #[inline]
    pub(crate) fn begin(&mut self, index: usize) {
        self.index = index as u32;
    }

    /// Notes that this sample is late; when its batch came, milliseconds since the Unix epoch.
    #[inline]
    pub(crate) fn note(&mut self, age_ms: u64, env: &Env) -> i64 {
        let index = self.index;
        self.noted.push(LateSample { index, age_ms });
        *self.arrived_ms.get_or_insert_with(|| env.clock.now_ms())
    }

    /// Hands over what was noted.
    #[inline]
    pub(crate) fn move_to(&mut self, all: &mut Vec<LateSample>) {
        if !self.noted.is_empty() {
            all.append(&mut self.noted);
        }
    }
}

/// Counters of a shard since the start.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counters {
    /// Accepted: newer than the newest of the series, older, and of its timestamp.
    pub(crate) in_order: u64,
    pub(crate) late: u64,
    pub(crate) duplicate: u64,
    pub(crate) ignored: u64,
    pub(crate) refused: u64,
    pub(crate) created: u64,
    pub(crate) expired: u64,
    /// Past retention, with their samples.
    pub(crate) ended: u64,
    pub(crate) settles: u64,
    pub(crate) settles_failed: u64,
    pub(crate) settled: u64,
    pub(crate) rewritten: u64,
}

impl Counters {
    pub(crate) fn note_settle(&mut self, work: SettleWork) {
        if work.operations > 0 {
            self.settles += 1;
            self.settled += work.operations as u64;
            self.rewritten += work.rewritten as u64;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn a_panic_stops_writes_only_where_the_shard_may_have_changed() {
        let halt = Halt::default();
        let shard = Shard::new(ShardState::default(), &halt);
        let panicked = |uses: &dyn Fn(&mut ShardGuard<'_>)| {
            let with_lock = AssertUnwindSafe(|| {
                let mut state = shard.lock();
                uses(&mut state);
                panic!("as a bug does");
            });
            assert!(catch_unwind(with_lock).is_err());
            halt.reason()
        };
        assert_eq!(panicked(&|state| assert_eq!(state.next_place, 0)), None);
        assert_eq!(
            panicked(&|state| state.next_place = 1).as_deref(),
            Some(PANICKED)
        );
        // The lock is free: readers go on.
        assert_eq!(shard.lock().next_place, 1);
    }
}
