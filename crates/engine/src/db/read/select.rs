//! Series by their labels.
//!
//! Tested by `tests/labels_model.rs` against a scan, with threads too.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::db::Db;
use crate::index::{SeriesRef, order};
use latewood_model::{Labels, Matcher, SeriesId};
use roaring::RoaringBitmap;

/// Series looked up before the shard's lock is released.
const SERIES_PER_LOCK_MAX: usize = 256;

impl Db {
    /// The series of `ids` that still exist, with their keys.
    pub(super) fn resolve_ids(
        &self,
        ids: &RoaringBitmap,
        cancelled: Cancelled<'_>,
    ) -> Vec<SeriesRef> {
        let mut by_shard = vec![Vec::new(); self.core.shards.len()];
        for id in ids {
            by_shard[self.core.shards.shard_of(SeriesId(id))].push(SeriesId(id));
        }
        let mut found = Vec::with_capacity(ids.len() as usize);
        for (shard, ids) in self.core.shards.iter().zip(by_shard) {
            for some in ids.chunks(SERIES_PER_LOCK_MAX) {
                if is_cancelled(cancelled) {
                    return found;
                }
                let state = shard.lock();
                let overdue_ms = self.core.overdue_ms(&state);
                state.touch_keys(some.iter().map(|&id| self.core.shards.place_of(id)));
                found.extend(some.iter().filter_map(|&id| {
                    let place = self.core.shards.place_of(id);
                    if overdue_ms.is_some_and(|now_ms| state.expiries.is_due(place, now_ms)) {
                        return None;
                    }
                    let series = state.slab.get(place)?;
                    let key = series.key.clone();
                    Some(SeriesRef { id, key })
                }));
            }
        }
        found
    }

    /// The series that match all `matchers`, in byte order of their keys; all
    /// series if there is no matcher. Includes everything acknowledged before the
    /// call. Linear in the series selected and the label values tested.
    pub fn select(&self, matchers: &[Matcher]) -> Vec<SeriesRef> {
        self.select_until(matchers, None)
    }

    /// As [`Db::select`]. Once `cancelled` is true, it returns early, with any series.
    pub fn select_until(&self, matchers: &[Matcher], cancelled: Cancelled<'_>) -> Vec<SeriesRef> {
        let ids = self.core.index.current().select(matchers);
        let mut found = self.resolve_ids(&ids, cancelled);
        if !is_cancelled(cancelled) {
            order::sort_by_key(&mut found);
        }
        found
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
}
