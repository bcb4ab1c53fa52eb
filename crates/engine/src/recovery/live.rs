//! Applying the log of another while readers look.
//!
//! From the moment at which the files and the log agree, key map, links of rules, expiry times and
//! index change with each record, as they do where it was written. A group is applied under the
//! locks that its owner held: that of one shard, or all. So a reader sees a group whole or not at
//! all, but where a block that a record needs is not on this machine: then the locks are given
//! back meanwhile.
//!
//! Who waits for a change of a series is told of it ([`Changes`]), as of a write where it was made.
//!
//! Lock order: that of the manifest, then shards. Tested by `tests/follow`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::base::options::FollowHook;
use crate::base::partition::partition_of;
use crate::format::rule::RuleSpec;
use crate::io::waiting::{fetching, no_wait};
use crate::keyspace::core::Core;
use crate::keyspace::store::Published;
use crate::log::group::{FLAG_BARRIER, GroupHeader};
use crate::log::record::{Ended, Record, RecordIter};
use crate::log::{Cut, Position};
use crate::recovery::Replayer;
use crate::recovery::apply::id_of;
use crate::series::shard::{ShardGuard, ShardState};
use crate::series::shards::AllShards;
use crate::series::{Freezes, Series};
use latewood_model::SeriesId;
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

/// Keys whose series are gone once the group is applied, unless another one has them by then.
type GoneKeys = Vec<(Arc<[u8]>, SeriesId)>;

/// Which series a group changed, for those who wait for that. Gathered only while somebody does. Who
/// began to wait meanwhile, and may have looked before the group was applied, is told to look again.
struct Changes<'a> {
    core: &'a Core,
    hook: Option<&'a FollowHook>,
    are_gathered: bool,
    keys: Vec<Arc<[u8]>>,
    are_all_gone: bool,
}

impl<'a> Changes<'a> {
    /// None yet. The caller holds the locks under which the group is applied.
    fn new(core: &'a Core) -> Self {
        let hook = core.options.on_follow.as_ref();
        Self {
            core,
            hook,
            are_gathered: hook.is_some_and(FollowHook::is_wanted),
            keys: Vec::new(),
            are_all_gone: false,
        }
    }

    /// Notes the key that a series of a record has now: before and after it is applied.
    fn note(&mut self, state: &ShardState, id: Option<SeriesId>) {
        let id = id.filter(|_| self.are_gathered);
        let Some(Ok(presence)) = id.map(|id| self.core.presence(state, id)) else {
            return;
        };
        let Some(series) = presence.series() else {
            return;
        };
        let is_last = |last: &Arc<[u8]>| Arc::ptr_eq(last, &series.key);
        if !self.keys.last().is_some_and(is_last) {
            self.keys.push(series.key.clone());
        }
    }

    /// Notes the keys of series that a record ends, before it is applied.
    fn note_ended<'s>(
        &mut self,
        ended: &Ended<'_>,
        state_of: impl Fn(SeriesId) -> Option<&'s ShardState>,
    ) {
        for id in ended.ids() {
            if let Some(state) = state_of(id) {
                self.note(state, Some(id));
            }
        }
    }

    /// Tells of them. The caller holds no lock.
    fn tell(self) {
        let Some(hook) = self.hook else { return };
        self.keys.iter().for_each(|key| hook.tell(Some(key)));
        // What was applied is seen by who asks from here on to be told.
        fence(Ordering::SeqCst);
        if self.are_all_gone || !self.are_gathered && hook.is_wanted() {
            hook.tell(None);
        }
    }
}

/// All that a group may change which concerns more than one shard.
struct Everything<'a> {
    published: parking_lot::MutexGuard<'a, Published>,
    states: AllShards<'a>,
}

impl Replayer<'_> {
    /// Applies a group while readers look. The first `done` of its records are applied already;
    /// those that are are counted there, also if one fails.
    ///
    /// # Errors
    /// `Corrupt`: nothing is applied; those of reading blocks.
    pub(super) fn apply_live(
        &self,
        header: &GroupHeader,
        payload: &[u8],
        done: &mut usize,
    ) -> Result<()> {
        let records = RecordIter::new(payload, header.form()).collect::<Result<Vec<_>>>()?;
        let shards = &self.recovery.core.shards;
        let at = Position(header.sequence);
        let is_of_one =
            header.flags & FLAG_BARRIER == 0 && header.stride_log2 >= shards.stride_log2();
        let shard = usize::from(header.residue) & (shards.len() - 1);
        self.bring_all(&records);
        fetching(|| {
            let _locked = no_wait();
            if is_of_one {
                let state = shards[shard].lock();
                self.apply_in_shard(at, shard, state, &records, done)
            } else {
                let published = self.recovery.core.store.published.lock();
                let states = shards.lock_all();
                let all = Everything { published, states };
                self.apply_alone(at, all, &records, done)
            }
        })
    }

    /// Brings the rows of parked series to hand that records are about. What cannot be read is met again.
    fn bring_all(&self, records: &[Record<'_>]) {
        let core = self.recovery.core;
        if core.parked_keys.is_empty() {
            return;
        }
        let mut ids: Vec<SeriesId> = Vec::new();
        for record in records {
            match record {
                Record::Ended(ended) => ids.extend(ended.ids()),
                Record::CreateRule {
                    id, destination, ..
                } => ids.extend([*id, *destination]),
                record => ids.extend(id_of(record)),
            }
        }
        let _ = core.bring(&ids);
    }

    /// Applies the records of a group that is about series of one shard.
    fn apply_in_shard(
        &self,
        at: Position,
        shard: usize,
        mut state: ShardGuard<'_>,
        records: &[Record<'_>],
        done: &mut usize,
    ) -> Result<()> {
        let core = self.recovery.core;
        let places = records.iter().filter_map(id_of);
        state.touch(places.map(|id| core.shards.place_of(id)));
        let mut changes = Changes::new(core);
        let mut applied = Ok(());
        for record in &records[*done..] {
            let id = id_of(record).filter(|&id| core.shards.shard_of(id) == shard);
            changes.note(&state, id);
            applied = match record {
                Record::Cut(cut) => self.cut_in(at, shard, &mut state, *cut),
                Record::Ended(ended) => {
                    changes.note_ended(ended, |id| {
                        (core.shards.shard_of(id) == shard).then_some(&*state)
                    });
                    self.end_in(at, shard, &mut state, ended)?;
                    Ok(())
                }
                record => self.apply_to(at, shard, &mut state, record),
            };
            if applied.is_err() {
                break;
            }
            changes.note(&state, id);
            *done += 1;
        }
        core.tell_budget(&mut state);
        drop(state);
        changes.tell();
        applied
    }

    /// Applies a record to the series it is about, which lies in this shard.
    fn apply_to(
        &self,
        at: Position,
        shard: usize,
        state: &mut ShardState,
        record: &Record<'_>,
    ) -> Result<()> {
        let core = self.recovery.core;
        let Some(id) = id_of(record).filter(|&id| core.shards.shard_of(id) == shard) else {
            let message = format!("group {} of the log is about series of other shards", at.0);
            return Err(Error::new(ErrorKind::Corrupt, message));
        };
        let now_ns = || core.env.clock.monotonic_ns();
        state.heads.owe(partition_of(id), at.0, now_ns);
        state.watched.replays = Some(at.0);
        self.apply_one(state, record.clone())
    }

    /// Applies the records of a group that nothing may be beside.
    fn apply_alone(
        &self,
        at: Position,
        mut all: Everything<'_>,
        records: &[Record<'_>],
        done: &mut usize,
    ) -> Result<()> {
        let core = self.recovery.core;
        let (mut gone, mut changes) = (GoneKeys::new(), Changes::new(core));
        let mut applied = Ok(());
        for record in &records[*done..] {
            if let Record::Ended(ended) = record {
                changes.note_ended(ended, |id| Some(&all.states[core.shards.shard_of(id)]));
            }
            let of = id_of(record).map(|id| (core.shards.shard_of(id), id));
            let mut note = |all: &Everything<'_>| {
                of.inspect(|&(shard, id)| changes.note(&all.states[shard], Some(id)));
            };
            note(&all);
            applied = self.apply_beside(at, &mut all, record, &mut gone);
            if applied.is_err() {
                break;
            }
            note(&all);
            changes.are_all_gone |= matches!(record, Record::FlushAll);
            *done += 1;
        }
        for (key, id) in gone {
            core.keys.remove(core.keys.hash(&key), &key, id);
        }
        for state in &mut all.states {
            core.tell_budget(state);
        }
        drop(all);
        changes.tell();
        applied
    }

    fn apply_beside(
        &self,
        at: Position,
        all: &mut Everything<'_>,
        record: &Record<'_>,
        gone: &mut GoneKeys,
    ) -> Result<()> {
        let (core, rules) = (self.recovery.core, self.recovery.rules);
        match *record {
            Record::FlushAll => {
                for state in &mut all.states {
                    state.watched.replays = Some(at.0);
                }
                core.clear_series(&mut all.states);
                core.metadata.clear();
                all.published.forget(core.store.dir(), at);
                return Ok(());
            }
            Record::Cut(cut) => {
                let mut states = all.states.iter_mut().enumerate();
                return states.try_for_each(|(shard, state)| self.cut_in(at, shard, state, cut));
            }
            Record::Ended(ref ended) => {
                for (shard, state) in all.states.iter_mut().enumerate() {
                    self.end_in(at, shard, state, ended)?;
                }
                return Ok(());
            }
            Record::Floor { floor } => {
                core.store.apply_floor(&mut all.published, floor);
                return Ok(());
            }
            Record::Horizon { .. }
            | Record::Done { .. }
            | Record::Pending { .. }
            | Record::Steps { .. }
            | Record::Since { .. } => return core.follow_reader(&mut all.states, at, record),
            Record::CreateRule {
                id,
                destination,
                spec,
            } => self.link_live(all, [id, destination], spec)?,
            Record::DeleteRule { id, destination } => {
                rules.unlink_pair(&mut all.states, id, destination)?;
            }
            Record::DeleteSeries { id } => {
                let state = &all.states[core.shards.shard_of(id)];
                let presence = core.presence(state, id)?;
                let series = presence.series();
                gone.extend(series.map(|series| (series.key.clone(), id)));
                // Its owner does so later, and says nothing of it.
                if let Some(source) = series.and_then(Series::source) {
                    let state = &mut all.states[core.shards.shard_of(source)];
                    core.wake_linked(state, source)?;
                    let source = state.series_mut(source);
                    source.into_iter().for_each(|source| source.remove_rule(id));
                }
            }
            _ => {}
        }
        let Some(id) = id_of(record) else {
            return Ok(());
        };
        let shard = core.shards.shard_of(id);
        self.apply_to(at, shard, &mut all.states[shard], record)
    }

    /// Makes a rule between two series, which are awake then, as they were at their owner.
    fn link_live(
        &self,
        all: &mut Everything<'_>,
        ends: [SeriesId; 2],
        spec: RuleSpec,
    ) -> Result<()> {
        let core = self.recovery.core;
        for id in ends {
            core.wake(&mut all.states[core.shards.shard_of(id)], id)?;
        }
        let [source, destination] = ends;
        let rules = self.recovery.rules;
        rules.link(&mut all.states, source, destination, spec)
    }

    /// Gives a series another key, for readers too.
    pub(super) fn rename_live(&self, state: &mut ShardState, id: SeriesId, key: &[u8]) {
        let keys = &self.recovery.core.keys;
        // awake: `apply_one` woke it.
        let Some(series) = state.series_mut(id) else {
            return;
        };
        let key = Arc::<[u8]>::from(key);
        let before = std::mem::replace(&mut series.key, key.clone());
        // A series that had none is not under it.
        keys.remove(keys.hash(&before), &before, id);
        keys.insert(keys.hash(&key), key, id);
        // After the change: a reader of the new count finds the new keys.
        keys.renames.fetch_add(1, Ordering::Release);
    }

    /// Freezes the series of a cut, where they are, under the locks of their shards.
    pub(super) fn cut(&self, at: Position, cut: Cut) -> Result<()> {
        let core = self.recovery.core;
        if !self.follows() {
            // The owner before is gone, and what it froze is in the heads again: the next flush
            // has a number of its own.
            let is_open = cut.flush > core.store.blocks.get().flush;
            core.store.carries_cuts.fetch_or(is_open, Ordering::Relaxed);
            return Ok(());
        }
        for shard in self.shards_of(cut.first, cut.stride_log2) {
            self.cut_in(at, shard, &mut core.shards[shard].lock(), cut)?;
        }
        Ok(())
    }

    /// The shards of ids that are two to the power `stride_log2` apart.
    pub(super) fn shards_of(
        &self,
        first: SeriesId,
        stride_log2: u8,
    ) -> impl Iterator<Item = usize> + use<> {
        let shards = &self.recovery.core.shards;
        let step = 1usize << stride_log2.min(shards.stride_log2());
        (shards.shard_of(first) % step..shards.len()).step_by(step)
    }

    /// The same for the series of one shard.
    fn cut_in(&self, at: Position, shard: usize, state: &mut ShardState, cut: Cut) -> Result<()> {
        let core = self.recovery.core;
        let blocks = &core.store.blocks;
        if cut.flush <= blocks.get().flush {
            // The files are newer than the place where the log is read.
            return Ok(());
        }
        if cut.count == 0 {
            let untold = &core.store.untold_from;
            untold.fetch_min(cut.flush, Ordering::Relaxed);
            return Ok(());
        }
        let mut unknown = core.store.rows_unknown.lock();
        let newest = unknown.entry(partition_of(cut.first)).or_default();
        *newest = cut.flush.max(*newest);
        drop(unknown);
        for id in cut.ids().filter(|&id| core.shards.shard_of(id) == shard) {
            let place = core.shards.place_of(id);
            if state.restored_position(place) >= at.0 {
                continue;
            }
            // awake: only these have heads.
            let Some(series) = state.slab.get_mut(place) else {
                continue;
            };
            let had_head = series.has_head();
            series.freeze(id, cut.flush, &mut state.sealer, blocks, Freezes::Follower)?;
            // That of the owner, which the files get.
            series.marks.note_filed();
            if had_head {
                state.recount(place);
                state.note_rules(place);
            }
        }
        Ok(())
    }
}
