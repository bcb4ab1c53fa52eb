//! Series by their labels, by groups of them, and at random.
//!
//! Series in memory with the same value of a label carry the same pair, so the number of the pair tells
//! groups apart; each value is read once. Labels of parked series are in files: where an answer needs
//! some of these, they are read after the index, from which a copy of what it knows of them was taken
//! ([`crate::index::filed`]). Tested by `tests/labels_model.rs` against a scan,
//! with threads too, by `tests/query_many.rs` and through the server.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, ErrorKind, Result};
use crate::base::partition::first_of;
use crate::db::Db;
use crate::index::filed::Filed;
use crate::index::ids::Ids;
use crate::index::queue::Held;
use crate::index::{SeriesRef, order};
use crate::series::presence::BROUGHT_MAX;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, Matcher, SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hasher};
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// A value of a label, and the series that have it.
type Group = (Box<[u8]>, Vec<SeriesRef>);

/// Series looked up before the shard's lock is released.
const SERIES_PER_LOCK_MAX: usize = 256;

/// Bytes of a series found, beside those of its key, with what the allocator adds.
const SERIES_REF_BYTES: usize = size_of::<SeriesRef>() + 32;

/// Groups of series by a value of a label, in byte order of the values.
pub type Groups = Vec<(Box<[u8]>, Vec<SeriesRef>)>;

/// Series that were found, by their ids alone: a few bits for each.
pub struct SeriesSet(Ids);

impl SeriesSet {
    /// How many they are.
    pub fn len(&self) -> usize {
        self.0.len() as usize
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// What a selection depends on beside its matchers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NamesVersion {
    /// How often a series came, went, parked, woke, or got another key or other labels.
    pub changes: u64,
    /// Tells spans apart for which other parked series may be left out.
    pub reach: u64,
}

/// Series whose labels are read under one lock of the index.
const LABELS_PER_LOCK_MAX: usize = 1024;

impl Db {
    /// The version of what [`Db::select_in`] finds: with the same one, taken before each, it finds the same
    /// series with the same keys and labels. `None` while a series has a time at which it expires: that
    /// changes what is found, too. Linear in the partitions with parked series and their blocks.
    pub fn names_version(&self, span: (Timestamp, Timestamp)) -> Option<NamesVersion> {
        if self.core.shards.expiring.load(Ordering::Relaxed) > 0 {
            return None;
        }
        // Both only grow.
        let renames = self.core.keys.renames.load(Ordering::Acquire);
        let changes = self.core.index.version() + renames;
        let filed = self.core.index.current().filed.clone();
        let mut reach = DefaultHasher::new();
        let filed = self.core.filed_in(filed, Some(span));
        filed
            .partitions()
            .for_each(|partition| reach.write_u32(partition));
        Some(NamesVersion {
            changes,
            reach: reach.finish(),
        })
    }

    /// As [`Db::select_until`] and, with a span, [`Db::select_in`], without looking up their keys: for
    /// [`Db::each_of`].
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn select_set(
        &self,
        matchers: &[Matcher],
        span: Option<(Timestamp, Timestamp)>,
        cancelled: Cancelled<'_>,
    ) -> Result<SeriesSet> {
        let ids = self.core.select_ids(matchers, span, cancelled)?;
        Ok(SeriesSet(ids))
    }

    /// Hands those of a set that still exist to `take`, about a thousand at a time by their ids, until
    /// that has enough: what is read of parked ones is at hand for whoever reads them next.
    ///
    /// # Errors
    /// Those of `take`; `Corrupt`, `Io` if the row of a parked series cannot be read.
    pub fn each_of(
        &self,
        set: &SeriesSet,
        cancelled: Cancelled<'_>,
        take: &mut dyn FnMut(Vec<SeriesRef>) -> Result<ControlFlow<()>>,
    ) -> Result<()> {
        let mut left = set.0.iter().peekable();
        while left.peek().is_some() && !is_cancelled(cancelled) {
            let some = Ids::from_ascending(left.by_ref().take(BROUGHT_MAX));
            if take(self.resolve_ids(&some, cancelled)?)?.is_break() {
                break;
            }
        }
        Ok(())
    }

    /// The series of `ids` that still exist, with their keys. None wakes.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if the row of a parked series cannot be read.
    pub(super) fn resolve_ids(
        &self,
        ids: &Ids,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<SeriesRef>> {
        let mut by_shard = vec![Vec::new(); self.core.shards.len()];
        for id in ids.iter() {
            by_shard[self.core.shards.shard_of(SeriesId(id))].push(SeriesId(id));
        }
        let (mut found, mut parked) = (Vec::with_capacity(ids.len() as usize), Vec::new());
        for (shard, ids) in self.core.shards.iter().zip(by_shard) {
            for some in ids.chunks(SERIES_PER_LOCK_MAX) {
                if is_cancelled(cancelled) {
                    return Ok(found);
                }
                let state = shard.lock();
                let overdue_ms = self.core.overdue_ms(&state);
                state.touch_keys(some.iter().map(|&id| self.core.shards.place_of(id)));
                found.extend(some.iter().filter_map(|&id| {
                    let place = self.core.shards.place_of(id);
                    if overdue_ms.is_some_and(|now_ms| state.expiries.is_due(place, now_ms)) {
                        return None;
                    }
                    // awake: the others follow.
                    let Some(series) = state.slab.get(place) else {
                        parked.extend(self.core.is_there(&state, id).then_some(id));
                        return None;
                    };
                    let key = series.key.clone();
                    Some(SeriesRef { id, key })
                }));
            }
        }
        self.resolve_parked(parked, &mut found, cancelled)?;
        Ok(found)
    }

    /// Adds those of `ids`, which were parked, that still exist. By their ids over all shards, so
    /// that no page of a file is read for each of its rows. Their keys are not in memory otherwise.
    ///
    /// # Errors
    /// `Limit` if the keys take more than a reply may.
    fn resolve_parked(
        &self,
        mut ids: Vec<SeriesId>,
        found: &mut Vec<SeriesRef>,
        cancelled: Cancelled<'_>,
    ) -> Result<()> {
        ids.sort_unstable();
        let (mut held_bytes, bytes_max) = (0, self.reply_bytes_max());
        for some in ids.chunks(BROUGHT_MAX) {
            if is_cancelled(cancelled) {
                break;
            }
            self.core.bring_or_leave(some)?;
            for &id in some {
                let state = self.core.shards.lock_of(id);
                if !self.core.is_expired(&state, self.core.shards.place_of(id)) {
                    let key = self.core.key_in(&state, id)?;
                    held_bytes += key.as_ref().map_or(0, |key| key.len() + SERIES_REF_BYTES);
                    found.extend(key.map(|key| SeriesRef { id, key }));
                }
            }
            if held_bytes > bytes_max {
                let text = format!(
                    "the keys of the {} matching series that are parked take more than {bytes_max} \
                     bytes, which is the most for a reply",
                    ids.len()
                );
                return Err(Error::new(ErrorKind::Limit, text));
            }
        }
        Ok(())
    }

    /// The series that match all `matchers`, in byte order of their keys; all
    /// series if there is no matcher. Includes everything acknowledged before the
    /// call. Linear in the series selected and the label values tested.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if what is kept in files of one of them cannot be read.
    pub fn select(&self, matchers: &[Matcher]) -> Result<Vec<SeriesRef>> {
        self.select_until(matchers, None)
    }

    /// As [`Db::select`]. Once `cancelled` is true, it returns early, with any series.
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn select_until(
        &self,
        matchers: &[Matcher],
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<SeriesRef>> {
        self.selected(matchers, None, cancelled)
    }

    /// As [`Db::select_until`], for whoever reads samples between `span.0` and `span.1` alone, both
    /// included: parked series that have none there may be left out. While blocks are missing or
    /// damage is not accepted, none is.
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn select_in(
        &self,
        matchers: &[Matcher],
        span: (Timestamp, Timestamp),
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<SeriesRef>> {
        self.selected(matchers, Some(span), cancelled)
    }

    fn selected(
        &self,
        matchers: &[Matcher],
        span: Option<(Timestamp, Timestamp)>,
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<SeriesRef>> {
        let ids = self.core.select_ids(matchers, span, cancelled)?;
        let mut found = self.resolve_ids(&ids, cancelled)?;
        if !is_cancelled(cancelled) {
            order::sort_by_key(&mut found);
        }
        Ok(found)
    }

    /// About the maximum number of series that match all `matchers`, by the lists of
    /// the matchers alone; the number of all series if there is no matcher. Every parked series whose
    /// labels are in a file counts as if it matched. Changes that
    /// the index has not taken up yet do not count.
    pub fn series_about(&self, matchers: &[Matcher]) -> u64 {
        self.core.index.inverted.read().select_max(matchers)
    }

    /// The labels of a series, in the order the client gave them; `None` if the
    /// series was removed. Those of a parked series are read from its file, unless its row is at hand.
    ///
    /// # Errors
    /// `Corrupt`, `Io` if they cannot be read.
    pub fn labels(&self, series: &SeriesRef) -> Result<Option<Labels>> {
        self.core.find_labels(series.id)
    }

    /// Calls `each` with the labels of these series that are there, as [`Labels::as_bytes`] has them, and
    /// the place of the series among them, in any order, until that has enough. Each part of a file is
    /// read once for some of them. `each` is quick, and asks nothing of the database.
    ///
    /// # Errors
    /// As [`Db::labels`].
    pub fn labels_of_all(
        &self,
        series: &[SeriesRef],
        each: &mut dyn FnMut(usize, &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        let (mut filed, mut bytes) = (Vec::new(), Vec::new());
        for (number, some) in series.chunks(LABELS_PER_LOCK_MAX).enumerate() {
            let index = self.core.index.current();
            for (at, one) in some.iter().enumerate() {
                let at = number * LABELS_PER_LOCK_MAX + at;
                match index.labels_into(one.id.0, &mut bytes) {
                    Held::Here(()) if each(at, &bytes).is_break() => return Ok(()),
                    Held::Filed => filed.push((one.id, at)),
                    Held::Here(()) | Held::Gone => {}
                }
            }
        }
        filed.sort_unstable();
        for some in filed.chunks(BROUGHT_MAX) {
            let ids: Vec<SeriesId> = some.iter().map(|one| one.0).collect();
            self.core.bring_or_leave(&ids)?;
            for &(id, at) in some {
                let labels = self.core.find_labels(id)?;
                if labels.is_some_and(|labels| each(at, labels.as_bytes()).is_break()) {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// The number of label pairs: each counts once in memory, and once in each file of parked series
    /// that has it.
    pub fn label_pairs(&self) -> usize {
        let index = self.core.index.current();
        let (held, filed) = (index.pair_count(), index.filed.clone());
        drop(index);
        held + filed.pair_count() as usize
    }

    /// Groups `series` by their value of the label `name`. Groups are in byte
    /// order of the values; within a group the series keep their order. A series
    /// that has the label several times is grouped by the first value. Series
    /// without the label and removed series are left out. Linear in the labels of
    /// the series, and in the values that the files have of those in files. Once `cancelled` is true,
    /// it returns early, with any groups.
    ///
    /// # Errors
    /// As [`Db::labels`].
    pub fn group_by(
        &self,
        series: Vec<SeriesRef>,
        name: &[u8],
        cancelled: Cancelled<'_>,
    ) -> Result<Vec<Group>> {
        let index = self.core.whole_index()?;
        let pairs = index.name(name).map(|name| &name.pairs);
        let mut by_pair: HashMap<u32, Vec<(usize, SeriesRef)>, FixedState> = HashMap::default();
        let mut parked = Vec::new();
        for one in series.into_iter().enumerate() {
            if is_cancelled(cancelled) {
                break;
            }
            let id = one.1.id.0;
            if index.filed.contains(id) {
                parked.push(one);
            } else if let Some(known) = pairs
                && let Some(pair) = index.pairs_of(id).find(|&pair| known.contains(pair))
            {
                by_pair.entry(pair).or_default().push(one);
            }
        }
        let named = by_pair.into_iter();
        let named = named.map(|(pair, group)| (Box::from(index.pair(pair).1), group));
        let mut groups: BTreeMap<Box<[u8]>, Vec<(usize, SeriesRef)>> = named.collect();
        let filed = index.filed.clone();
        drop(index);
        if !parked.is_empty() {
            let ids = parked.iter().map(|one| one.1.id.0).collect();
            let values = self.values_of(&filed, &ids, name, cancelled)?;
            for one in parked {
                if let Some(value) = values.get(&one.1.id.0) {
                    match groups.get_mut(&**value) {
                        Some(group) => group.push(one),
                        None => drop(groups.insert((**value).into(), vec![one])),
                    }
                }
            }
            groups
                .values_mut()
                .for_each(|group| group.sort_unstable_by_key(|one| one.0));
        }
        let groups = groups.into_iter();
        let series = |group: Vec<(usize, SeriesRef)>| group.into_iter().map(|one| one.1).collect();
        Ok(groups
            .map(|(value, group)| (value, series(group)))
            .collect())
    }

    /// The first value of the label `name` of each of the series `ids` whose labels are in files.
    fn values_of(
        &self,
        filed: &Filed,
        ids: &Ids,
        name: &[u8],
        cancelled: Cancelled<'_>,
    ) -> Result<BTreeMap<u64, Arc<[u8]>>> {
        let (mut values, mut several) = (BTreeMap::new(), Ids::default());
        filed.values(name, Some(ids), cancelled, &mut |partition, value, rows| {
            let value: Arc<[u8]> = value.into();
            for low in rows {
                let id = first_of(partition).0 + u64::from(low);
                if values.insert(id, value.clone()).is_some() {
                    several.insert(id);
                }
            }
            ControlFlow::Continue(())
        })?;
        // Which of its values is the first, only its row tells.
        for id in several.iter().take_while(|_| !is_cancelled(cancelled)) {
            let labels = self.core.find_labels(SeriesId(id))?.unwrap_or_default();
            if let Some((_, value)) = labels.iter().find(|label| label.0 == name) {
                values.insert(id, value.into());
            }
        }
        Ok(values)
    }
}

/// Random places tried before the linear walk. With a quarter of the places in use,
/// all but one call in ten thousand end before the walk.
const TRIES: usize = 32;

impl Db {
    /// The key of a random series, all about equally likely; `None` if there are
    /// no series. Constant time unless most series ever created were removed.
    ///
    /// # Errors
    /// As [`Db::select`].
    pub fn random_key(&self) -> Result<Option<Box<[u8]>>> {
        let random = || self.core.env.random.next_u64() as usize;
        let shards = self.core.shards.len();
        let mut cursor = 0;
        for _ in 0..TRIES {
            let shard = random() % shards;
            let next_place = self.core.shards[shard].lock().next_place;
            let place = random() % next_place.max(1);
            cursor = self.core.shards.cursor_of(shard, place);
            let mut found = None;
            self.visit_keys(&[SeriesId(cursor)], &mut |key| found = Some(key.into()))?;
            if found.is_some() {
                return Ok(found);
            }
        }
        // Few series are left: take the next one from here, or from the start.
        let mut found = None;
        for cursor in [cursor, 0] {
            if found.is_none() {
                self.scan(cursor, 1, &mut |key| found = Some(key.into()))?;
            }
        }
        Ok(found)
    }
}
