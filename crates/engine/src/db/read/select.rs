//! Series by their labels, by groups of them, and at random.
//!
//! Series with the same value of a label carry the same pair, so the number of the pair tells
//! groups apart; each value is read once. Tested by `tests/labels_model.rs` against a scan,
//! with threads too, by `tests/query_many.rs` and through the server.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::Result;
use crate::db::Db;
use crate::index::ids::Ids;
use crate::index::{SeriesRef, order};
use crate::series::presence::BROUGHT_MAX;
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, Matcher, SeriesId};

/// Series looked up before the shard's lock is released.
const SERIES_PER_LOCK_MAX: usize = 256;

impl Db {
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
    /// that no page of a file is read for each of its rows.
    fn resolve_parked(
        &self,
        mut ids: Vec<SeriesId>,
        found: &mut Vec<SeriesRef>,
        cancelled: Cancelled<'_>,
    ) -> Result<()> {
        ids.sort_unstable();
        for some in ids.chunks(BROUGHT_MAX) {
            if is_cancelled(cancelled) {
                break;
            }
            self.core.bring_or_leave(some)?;
            for &id in some {
                let state = self.core.shards.lock_of(id);
                if !self.core.is_expired(&state, self.core.shards.place_of(id)) {
                    let key = self.core.key_in(&state, id)?;
                    found.extend(key.map(|key| SeriesRef { id, key }));
                }
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
        let ids = self.core.index.current().select(matchers);
        let mut found = self.resolve_ids(&ids, cancelled)?;
        if !is_cancelled(cancelled) {
            order::sort_by_key(&mut found);
        }
        Ok(found)
    }

    /// About the maximum number of series that match all `matchers`, by the lists of
    /// the matchers alone; the number of all series if there is no matcher. Changes that
    /// the index has not taken up yet do not count.
    pub fn series_about(&self, matchers: &[Matcher]) -> u64 {
        self.core.index.inverted.read().select_max(matchers)
    }

    /// The labels of a series, in the order the client gave them; `None` if the
    /// series was removed.
    pub fn labels(&self, series: &SeriesRef) -> Option<Labels> {
        let shard = self.core.shards.shard_of(series.id);
        self.core.index.labels(shard, series.id)
    }

    /// The number of distinct label pairs.
    pub fn label_pairs(&self) -> usize {
        self.core.index.pair_count()
    }

    /// Groups `series` by their value of the label `name`. Groups are in byte
    /// order of the values; within a group the series keep their order. A series
    /// that has the label several times is grouped by the first value. Series
    /// without the label and removed series are left out. Linear in the labels of
    /// the series. Once `cancelled` is true, it returns early, with any groups.
    pub fn group_by(
        &self,
        series: Vec<SeriesRef>,
        name: &[u8],
        cancelled: Cancelled<'_>,
    ) -> Vec<(Box<[u8]>, Vec<SeriesRef>)> {
        let index = self.core.index.current();
        let Some(name) = index.name(name) else {
            return Vec::new();
        };
        let mut groups: HashMap<u32, Vec<SeriesRef>, FixedState> = HashMap::default();
        for one in series {
            if is_cancelled(cancelled) {
                break;
            }
            let mut pairs = index.pairs_of(one.id.0);
            if let Some(pair) = pairs.find(|&pair| name.pairs.contains(pair)) {
                groups.entry(pair).or_default().push(one);
            }
        }
        let named = groups.into_iter();
        let named = named.map(|(pair, group)| (index.pair(pair).1.into(), group));
        let mut groups: Vec<(Box<[u8]>, Vec<SeriesRef>)> = named.collect();
        groups.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        groups
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
