//! GROUPBY: series by the value of one of their labels.
//!
//! Series with the same value carry the same pair, so the pair's number tells them
//! apart; each value is read once. Tested by `tests/query_many.rs` and through the
//! server.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::db::Db;
use crate::index::SeriesRef;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

impl Db {
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
