//! From label matchers to series.
//!
//! A query sees every series whose creation was acknowledged before it began,
//! with the labels it has at one moment during the query.

use crate::db::Db;
use latewood_model::{Labels, Matcher, SeriesId};
use std::sync::Arc;

/// A series a query found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeriesRef {
    /// Its number, which outlives a change of its key.
    pub id: SeriesId,
    /// Its key at the moment it was found.
    pub key: Arc<[u8]>,
}

impl Db {
    /// The series that pass all `matchers`, in the order of their keys' bytes.
    /// Without a matcher, all series.
    pub fn select(&self, matchers: &[Matcher]) -> Vec<SeriesRef> {
        let core = &self.core;
        let mut found = Vec::new();
        for (shard, state) in core.shards.iter().enumerate() {
            let places = state.lock().slab.places();
            for place in 0..places {
                let state = state.lock();
                let Some(series) = state.slab.get(place) else {
                    continue;
                };
                let labels = series.labels();
                if matchers.iter().all(|matcher| matcher.matches(&labels)) {
                    let number = place * core.shards.len() + shard;
                    found.push(SeriesRef {
                        // Ids were checked to fit when the series was created.
                        id: SeriesId(number as u32),
                        key: series.key.clone(),
                    });
                }
            }
        }
        found.sort_unstable_by(|a, b| a.key.cmp(&b.key));
        found
    }

    /// The labels of a series, in the order the client gave them; `None` once
    /// it is gone.
    pub fn labels(&self, series: &SeriesRef) -> Option<Labels> {
        let state = self.core.shards[self.core.shard_of(series.id)].lock();
        let series = state.slab.get(self.core.place_of(series.id))?;
        Some(series.labels())
    }
}
