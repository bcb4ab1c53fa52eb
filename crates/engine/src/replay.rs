//! Bringing a database back from its log.
//!
//! Records are applied as they were the first time: the log holds what was
//! accepted, with the policy that was in force, so replay asks no default and
//! refuses nothing. Workers apply groups of different shards side by side; a
//! group that concerns several is applied alone (see [`crate::wal::Replay`]).
//!
//! Tested by the restarts and crashes of the model test.

use crate::block::partition_of;
use crate::core::Core;
use crate::error::Result;
use crate::options::LoadProgress;
use crate::series::{Fate, Series};
use crate::shard::ShardState;
use crate::wal::{Record, RecordIter, RecoveryReport, Replay};
use latewood_model::{DuplicatePolicy, Sample, SeriesId, SeriesOptions};
use parking_lot::{Mutex, MutexGuard};
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
    /// Files in the quarantine folder, from this start or an earlier one.
    pub quarantined: Vec<String>,
    /// Nanoseconds it took.
    pub duration_ns: u64,
    /// What the log itself reports.
    pub log: RecoveryReport,
}

pub(crate) struct Replayer<'a> {
    core: &'a Core,
    samples: AtomicU64,
    /// Something before what is applied now is lost.
    behind_hole: AtomicBool,
    orphaned: AtomicU64,
    displaced: Mutex<Vec<Arc<[u8]>>>,
}

impl<'a> Replayer<'a> {
    pub(crate) fn new(core: &'a Core) -> Self {
        Self {
            core,
            samples: AtomicU64::new(0),
            behind_hole: AtomicBool::new(false),
            orphaned: AtomicU64::new(0),
            displaced: Mutex::default(),
        }
    }

    pub(crate) fn summary(&self, log: RecoveryReport, duration_ns: u64) -> RecoverySummary {
        RecoverySummary {
            samples: self.samples.load(Ordering::Relaxed),
            series: self.core.keys.len() as u64,
            samples_orphaned: self.orphaned.load(Ordering::Relaxed),
            series_displaced: std::mem::take(&mut *self.displaced.lock()),
            quarantined: Vec::new(),
            duration_ns,
            log,
        }
    }

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
            Record::Create { id, key, options } => core.replay_create(state, id, key, &options),
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
                    series.delete_range(from, to, &mut state.sealer)?;
                    core.recount(state, core.place_of(id));
                    core.note_rules(state, core.place_of(id));
                }
            }
            Record::DeleteSeries { id } => {
                if let Some(series) = core.take_out(state, id) {
                    core.keys
                        .remove(core.keys.hash(&series.key), &series.key, id);
                }
            }
            Record::Build { id, options } => {
                state.next_place = state.next_place.max(core.place_of(id) + 1);
                core.insert_unnamed(state, id, &options);
            }
            Record::Rename { id, key } => {
                state.unnamed.retain(|&unnamed| unnamed != id);
                if let Some(series) = state.slab.get_mut(core.place_of(id)) {
                    core.keys
                        .remove(core.keys.hash(&series.key), &series.key, id);
                    series.key = key.into();
                    core.keys
                        .insert(core.keys.hash(key), series.key.clone(), id);
                }
            }
            Record::Expire { id, at_ms } if state.slab.get(core.place_of(id)).is_some() => {
                core.note_expiry(state, id, at_ms);
            }
            Record::RuleTake { id, all } => core.replay_take(state, id, all),
            Record::RuleDone { id } => core.replay_done(state, id),
            // Times of series that are gone count for nothing; the others concern
            // more than one shard, and the caller sees to them.
            Record::Expire { .. }
            | Record::CreateRule { .. }
            | Record::DeleteRule { .. }
            | Record::FlushAll => {}
        }
        Ok(())
    }

    /// What a record does to rules; no lock may be held.
    fn apply_to_rules(&self, record: &Record<'_>) {
        match *record {
            Record::CreateRule {
                id,
                destination,
                spec,
            } => self.core.replay_create_rule(id, destination, spec),
            Record::DeleteRule { id, destination } => {
                self.core.replay_delete_rule(id, destination);
            }
            _ => {}
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

    /// Takes out the series that holds the key a record gives to another one:
    /// that it was deleted or renamed before is lost. No lock may be held.
    #[cold]
    fn make_way(&self, record: &Record<'_>) {
        let (Record::Create { id, key, .. } | Record::Rename { id, key }) = *record else {
            return;
        };
        let core = self.core;
        let hash = core.keys.hash(key);
        let Some(holder) = core.keys.find(hash, key).filter(|&holder| holder != id) else {
            return;
        };
        let mut state = core.shards[core.shard_of(holder)].lock();
        if let Some(series) = core.take_out(&mut state, holder) {
            core.keys.remove(hash, key, holder);
            self.displaced.lock().push(series.key);
        }
    }

    fn flush_all(&self) {
        self.core.keys.clear();
        for shard in &self.core.shards {
            let mut state = shard.lock();
            state.clear_series();
        }
        self.core.index.clear();
        self.core.expiring.store(0, Ordering::Relaxed);
    }
}

impl Core {
    fn replay_create(
        &self,
        state: &mut ShardState,
        id: SeriesId,
        key: &[u8],
        options: &SeriesOptions,
    ) {
        let place = self.place_of(id);
        state.next_place = state.next_place.max(place + 1);
        let key = Arc::<[u8]>::from(key);
        self.keys.insert(self.keys.hash(&key), key.clone(), id);
        state.slab.insert(place, Series::new(key, options));
        self.index_labels(id, Some(&options.labels));
        self.index.relieve();
    }

    /// Applies a sample; whether its series is there. What the log holds was
    /// accepted: no IGNORE rule is asked.
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
        let linked = series.links().is_some();
        if series.put(sample, policy, &mut state.sealer)? == Fate::Late {
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

/// Whether a record may tie series together or apart.
fn concerns_rules(record: &Record<'_>) -> bool {
    matches!(
        record,
        Record::CreateRule { .. } | Record::DeleteRule { .. }
    )
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

    fn apply(&self, _worker: usize, records: RecordIter<'_>) -> Result<()> {
        let mut held: Option<(usize, MutexGuard<'_, ShardState>)> = None;
        let mut samples = 0;
        for record in records {
            let record = record?;
            samples += u64::from(matches!(record, Record::Sample { .. }));
            let Some(id) = id_of(&record) else {
                held = None;
                self.flush_all();
                continue;
            };
            if self.behind_hole.load(Ordering::Relaxed) {
                held = None;
                self.make_way(&record);
            }
            if concerns_rules(&record) {
                held = None;
                self.apply_to_rules(&record);
            }
            let shard = self.core.shard_of(id);
            if held.as_ref().is_some_and(|(number, _)| *number != shard) {
                held = None;
            }
            let (_, mut state) = match held.take() {
                Some(same) => same,
                None => (shard, self.core.shards[shard].lock()),
            };
            self.apply_one(&mut state, record)?;
            held = Some((shard, state));
        }
        self.samples.fetch_add(samples, Ordering::Relaxed);
        Ok(())
    }

    fn hole(&self, _first: u64, _groups: u64) -> Result<()> {
        self.behind_hole.store(true, Ordering::Relaxed);
        Ok(())
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
