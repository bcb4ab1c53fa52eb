//! GROUPBY: series by the value of one of their labels.
//!
//! Series of one value carry the same pair, so they are told apart by its
//! number; each value is read once. Tested by `tests/query_many.rs` and over
//! the wire.

use crate::db::Db;
use crate::index::SeriesRef;
use foldhash::fast::FixedState;
use hashbrown::HashMap;

impl Db {
    /// `series` by their value of the label `name`, in the order of the values'
    /// bytes; inside a group they keep their order. A series that carries the
    /// label several times goes by its first value; one without it, or gone
    /// meanwhile, is in no group. Linear in the labels of the series.
    pub fn group_by(
        &self,
        series: Vec<SeriesRef>,
        name: &[u8],
    ) -> Vec<(Box<[u8]>, Vec<SeriesRef>)> {
        let index = self.core.index.current();
        let Some(name) = index.name(name) else {
            return Vec::new();
        };
        let mut groups: HashMap<u32, Vec<SeriesRef>, FixedState> = HashMap::default();
        for one in series {
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
