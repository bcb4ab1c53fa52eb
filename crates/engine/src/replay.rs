//! Bringing a database back from its log.
//!
//! Records are applied as they were the first time: the log holds what was
//! accepted, with the policy that was in force, so replay asks no default and
//! refuses nothing. Workers apply groups of different shards side by side; a
//! group that concerns several is applied alone (see [`crate::wal::Replay`]).
//!
//! A series that came out of a series file has a position: what groups up to
//! there say of it, the files hold already, and it is passed over. So each
//! series goes on from a moment of its own, and until the end of the replay two
//! series may seem to have one key, or one destination. That is why the key map
//! and the back links of rules are made after it ([`crate::store`]).
//!
//! Tested by the restarts and crashes of the model test and by
//! `tests/db_store`.

mod room;

use crate::block::partition_of;
use crate::core::Core;
use crate::creation::series_bytes;
use crate::error::{Error, Result};
use crate::io::Env;
use crate::io::directory::DirectoryGuard;
use crate::names;
use crate::options::{Durability, LoadProgress};
use crate::quarantine::Quarantine;
use crate::series::{Fate, Series};
use crate::shard::ShardState;
use crate::store::{Directory, LogFound, LostBlock};
use crate::wal::{LogStart, Position, Record, RecordIter, RecoveryReport, Replay, Wal, WalOptions};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, SeriesOptions};
use parking_lot::{Mutex, MutexGuard};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What opening a database found in its log.
#[derive(Clone, Debug, Default)]
pub struct RecoverySummary {
    /// Samples applied.
    pub samples: u64,
    /// Series there are after it.
    pub series: u64,
    /// Samples left out because the creation of their series is lost.
    pub samples_orphaned: u64,
    /// Keys of series left out because another one took their key after what
    /// became of them was lost.
    pub series_displaced: Vec<Arc<[u8]>>,
    /// Blocks left out because they are damaged.
    pub blocks_lost: Vec<LostBlock>,
    /// What is wrong with blocks that are served but for a damaged part, which
    /// a deletion in the log led to. Queries of that part fail.
    pub blocks_damaged: Vec<String>,
    /// Files in the quarantine folder, from this start or an earlier one.
    pub quarantined: Vec<String>,
    /// Nanoseconds it took.
    pub duration_ns: u64,
    /// What the log itself reports.
    pub log: RecoveryReport,
}

/// Brings back what the directory of `core` holds, files and log.
///
/// # Errors
/// As `Db::open`.
pub(crate) fn recover(core: &mut Core, guard: &DirectoryGuard) -> Result<RecoverySummary> {
    let env = core.env.clone();
    let begun_ns = env.clock.monotonic_ns();
    let directory = Directory::find(&env, guard.path())?;
    let mut summary = RecoverySummary::default();
    let mut named = Vec::new();
    let quarantine = guard.quarantine_dir();
    if core.options.wal {
        let wal_options = WalOptions {
            segment_bytes: core.options.segment_bytes,
            synced_often: core.options.durability == Durability::Sync,
            quarantine: (!core.options.strict).then(|| quarantine.clone()),
            known_durable: Position(directory.contents.log_next_min() - 1),
        };
        let replayer = Replayer {
            core,
            directory: &directory,
            samples: AtomicU64::new(0),
            behind_hole: AtomicBool::new(false),
            orphaned: AtomicU64::new(0),
            named: Mutex::default(),
            damage: Mutex::default(),
            retry_ns: AtomicU64::new(0),
        };
        let (wal, report) = Wal::open(&env, &guard.wal_dir(), &wal_options, &replayer)?;
        summary.samples = replayer.samples.into_inner();
        summary.samples_orphaned = replayer.orphaned.into_inner();
        named = replayer.named.into_inner();
        summary.blocks_damaged = replayer.damage.into_inner();
        summary.log = report;
        core.wal = Some(wal.observed_by(core.observer.clone()));
    } else {
        core.load(&directory, log_beside(&env, &guard.wal_dir())?)?;
    }
    summary.series_displaced = core.rebuild(&named);
    core.tidy(directory.manifest)?;
    summary.blocks_lost = core.store.lost.lock().clone();
    summary.series = core.keys.len() as u64;
    let quarantine = Quarantine::new(&env, &quarantine);
    summary.quarantined = quarantine.held()?;
    core.room.note_quarantine(quarantine.len_bytes()?);
    summary.duration_ns = env.clock.monotonic_ns() - begun_ns;
    Ok(summary)
}

/// Whether there is a log that an opening without one would pass over.
fn log_beside(env: &Env, dir: &Path) -> Result<LogFound> {
    let listed = env.disk.list(dir);
    let names = listed.map_err(|error| Error::io("cannot list the log", dir, error))?;
    let mut segments = names.iter().filter_map(|name| names::parse_segment(name));
    Ok(match segments.next() {
        Some(_) => LogFound::Unwanted,
        None => LogFound::None,
    })
}

struct Replayer<'a> {
    core: &'a Core,
    directory: &'a Directory,
    samples: AtomicU64,
    /// Something before what is applied now is lost.
    behind_hole: AtomicBool,
    orphaned: AtomicU64,
    /// The series that got a key behind it, in order.
    named: Mutex<Vec<SeriesId>>,
    /// What is wrong with blocks that had to be read.
    damage: Mutex<Vec<String>>,
    /// No flush before this, by the monotonic clock.
    retry_ns: AtomicU64,
}

impl Replayer<'_> {
    fn apply_one(&self, state: &mut ShardState, record: Record<'_>) -> Result<()> {
        let core = self.core;
        match record {
            Record::Sample {
                id,
                timestamp,
                value,
                policy,
            } => {
                let sample = Sample::new(timestamp, value);
                if !core.replay_sample(state, id, sample, policy)? {
                    self.note_orphan(state, id);
                }
            }
            Record::Create { id, key, options } => self.create(state, id, key, &options),
            Record::Alter { id, options } => {
                if let Some(series) = state.slab.get_mut(core.place_of(id)) {
                    series.set_options(&options, &mut state.sealer)?;
                    core.recount(state, core.place_of(id));
                    core.index_labels(id, Some(&options.labels));
                    core.note_rules(state, core.place_of(id));
                }
            }
            Record::DeleteRange { id, from, to } => {
                if let Some(series) = state.slab.get_mut(core.place_of(id)) {
                    self.note_damage(series.delete_logged(from, to, &mut state.sealer)?)?;
                    core.recount(state, core.place_of(id));
                    core.note_rules(state, core.place_of(id));
                }
            }
            Record::DeleteSeries { id } => {
                core.take_out(state, id);
            }
            Record::Build { id, options } => {
                state.next_place = state.next_place.max(core.place_of(id) + 1);
                core.insert_unnamed(state, id, &options);
            }
            Record::Rename { id, key } => {
                state.unnamed.retain(|&unnamed| unnamed != id);
                if let Some(series) = state.slab.get_mut(core.place_of(id)) {
                    self.note_named(id);
                    series.key = key.into();
                }
            }
            Record::Expire { id, at_ms } if state.slab.get(core.place_of(id)).is_some() => {
                core.note_expiry(state, id, at_ms);
            }
            Record::RuleTake { id, all } => core.replay_take(state, id, all),
            Record::RuleDone { id } => core.replay_done(state, id),
            Record::CreateRule {
                id,
                destination,
                spec,
            } => core.replay_create_rule(state, id, destination, spec),
            Record::DeleteRule { id, destination } => {
                core.replay_delete_rule(state, id, destination);
            }
            // Times of series that are gone count for nothing; the other one
            // concerns all shards, and the caller sees to it.
            Record::Expire { .. } | Record::FlushAll => {}
        }
        Ok(())
    }

    /// Damage of a block that a record of the log led to.
    fn note_damage(&self, met: Option<Error>) -> Result<()> {
        match met {
            Some(error) if self.core.options.strict => Err(error),
            met => {
                self.damage
                    .lock()
                    .extend(met.map(|error| error.to_string()));
                Ok(())
            }
        }
    }

    fn create(&self, state: &mut ShardState, id: SeriesId, key: &[u8], options: &SeriesOptions) {
        let place = self.core.place_of(id);
        state.next_place = state.next_place.max(place + 1);
        self.note_named(id);
        state.heads.grew(series_bytes(key, options));
        state.slab.insert(place, Series::new(key.into(), options));
        self.core.index_labels(id, Some(&options.labels));
        self.core.index.relieve();
    }

    /// A series got a key. Behind a hole another one may have it, whose end is
    /// lost.
    fn note_named(&self, id: SeriesId) {
        if self.behind_hole.load(Ordering::Relaxed) {
            self.named.lock().push(id);
        }
    }

    /// A sample whose series is not there. Behind a hole that means that its
    /// creation is lost; its number stays taken, or a new series would get
    /// what is still in the log.
    #[cold]
    fn note_orphan(&self, state: &mut ShardState, id: SeriesId) {
        if !self.behind_hole.load(Ordering::Relaxed) {
            return;
        }
        self.orphaned.fetch_add(1, Ordering::Relaxed);
        state.next_place = state.next_place.max(self.core.place_of(id) + 1);
    }

    /// Removes every series that was there at `position`.
    fn flush_all(&self, position: Position) {
        let came_later = |at: &u64| *at > position.0;
        let shards = self.core.shards.iter();
        let any_later = shards
            .clone()
            .any(|shard| shard.lock().restored.iter().any(came_later));
        for (number, shard) in shards.enumerate() {
            let mut state = shard.lock();
            if !any_later {
                state.clear_series();
                continue;
            }
            for place in 0..state.slab.places() {
                if state.restored_position(place) <= position.0 {
                    self.core
                        .take_out(&mut state, self.core.id_of(number, place));
                }
            }
        }
        if !any_later {
            self.core.index.clear();
            self.core.expiring.store(0, Ordering::Relaxed);
        }
        // Until they are written anew, the files of these partitions still name
        // the series: the log must not forget that they are gone.
        let now_ns = self.core.env.clock.monotonic_ns();
        let manifest = self.core.manifest();
        let mut state = self.core.shards[0].lock();
        for &partition in manifest.partitions.keys() {
            state.heads.owe(partition, position.0, || now_ns);
        }
    }
}

impl Core {
    /// Applies a sample; whether its series is there. What the log holds was
    /// accepted: no IGNORE rule is asked, and one accepted under BLOCK had no
    /// sample in its place.
    #[inline]
    fn replay_sample(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        sample: Sample,
        policy: DuplicatePolicy,
    ) -> Result<bool> {
        let place = self.place_of(id);
        let Some(series) = state.slab.get_mut(place) else {
            return Ok(false);
        };
        let policy = match policy {
            // So that nobody looks for a sample among what is on disk.
            DuplicatePolicy::Block => DuplicatePolicy::Last,
            other => other,
        };
        let linked = series.links().is_some();
        if series.put_logged(sample, policy, &mut state.sealer)? == Fate::Late {
            self.after_late(state, place);
        } else if series.memory_moved() {
            state.heads.note(series, partition_of(id));
        }
        if linked {
            self.note_rules(state, place);
        }
        Ok(true)
    }
}

fn id_of(record: &Record<'_>) -> Option<SeriesId> {
    match *record {
        Record::Sample { id, .. }
        | Record::Create { id, .. }
        | Record::Alter { id, .. }
        | Record::DeleteRange { id, .. }
        | Record::DeleteSeries { id }
        | Record::CreateRule { id, .. }
        | Record::DeleteRule { id, .. }
        | Record::RuleTake { id, .. }
        | Record::RuleDone { id }
        | Record::Rename { id, .. }
        | Record::Build { id, .. }
        | Record::Expire { id, .. } => Some(id),
        Record::FlushAll => None,
    }
}

impl Replay for Replayer<'_> {
    fn workers(&self) -> usize {
        self.core.shards.len()
    }

    fn begins(&self, start: LogStart) -> Result<()> {
        self.core.load(self.directory, start.into())
    }

    fn apply(&self, _worker: usize, at: Position, records: RecordIter<'_>) -> Result<()> {
        let mut held: Option<(usize, MutexGuard<'_, ShardState>)> = None;
        let mut samples = 0;
        if at.0 < self.directory.contents.log_start {
            // The files hold all of it; the log had no time to forget it.
            return Ok(());
        }
        for record in records {
            let record = record?;
            samples += u64::from(matches!(record, Record::Sample { .. }));
            let Some(id) = id_of(&record) else {
                held = None;
                self.flush_all(at);
                continue;
            };
            let shard = self.core.shard_of(id);
            if held.as_ref().is_some_and(|(number, _)| *number != shard) {
                held = None;
            }
            let (_, mut state) = match held.take() {
                Some(same) => same,
                None => (shard, self.core.shards[shard].lock()),
            };
            if state.restored_position(self.core.place_of(id)) < at.0 {
                let clock = &self.core.env.clock;
                state
                    .heads
                    .owe(partition_of(id), at.0, || clock.monotonic_ns());
                self.apply_one(&mut state, record)?;
            }
            held = Some((shard, state));
        }
        if let Some((_, mut state)) = held {
            self.core.tell_budget(&mut state);
        }
        self.samples.fetch_add(samples, Ordering::Relaxed);
        Ok(())
    }

    fn hole(&self, _first: u64, _groups: u64) -> Result<()> {
        self.behind_hole.store(true, Ordering::Relaxed);
        Ok(())
    }

    fn wants_room(&self) -> bool {
        self.is_short()
    }

    fn make_room(&self, applied: Position) -> Result<()> {
        self.flush_heads(applied)
    }

    fn progress(&self, bytes_done: u64, bytes_total: u64) {
        if let Some(hook) = &self.core.options.on_progress {
            hook.tell(LoadProgress {
                bytes_done,
                bytes_total,
                samples: self.samples.load(Ordering::Relaxed),
            });
        }
    }
}
