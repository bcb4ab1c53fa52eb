//! Series that look the same to readers by label, *twins*.
//!
//! Such a reader tells twins apart by their keys, which one without a twin does not show: a series gets
//! or loses the label `__key__` where another one comes or goes. So its whole extent is marked then,
//! however new the samples of the other one are. Series that come and looks that go are noted under the
//! lock of their shard, and their twins are looked for, in the index, when changes are collected. A
//! series without the label `__name__` shows its key in its place.
//!
//! Tested by `tests/watches`.

use crate::keyspace::core::Core;
use crate::series::watched::{Mark, NOT_LOGGED, NotedLook};
use latewood_model::{Labels, Matcher, SeriesId, Test};
use std::collections::BTreeMap;

const METRIC: &[u8] = b"__name__";

/// What a series shows: one value for each name.
type Shown<'a> = BTreeMap<&'a [u8], &'a [u8]>;

fn shown<'a>(labels: &'a Labels, key: &'a [u8]) -> Shown<'a> {
    let mut shown = Shown::new();
    for (name, value) in labels.iter() {
        shown.entry(name).or_insert(value);
    }
    shown.entry(METRIC).or_insert(key);
    shown
}

impl Core {
    /// Marks the twins of series that have come or gone in a shard. No shard may be locked.
    pub(super) fn collect_twins(&self, shard: usize, looks: Vec<NotedLook>) {
        for look in looks {
            match look {
                NotedLook::New(place) => {
                    let id = self.shards.id_of(shard, place);
                    let state = self.shards[shard].lock();
                    let key = state.series(id).map(|series| series.key.clone());
                    drop(state);
                    if let Some(key) = key {
                        self.mark_twins(id, &self.labels_of(id), &key);
                    }
                }
                NotedLook::Gone { id, labels, key } => self.mark_twins(id, &labels, &key),
            }
        }
    }

    /// Marks those that look like a series with these labels under `key`, but for itself.
    fn mark_twins(&self, id: SeriesId, labels: &Labels, key: &[u8]) {
        if self
            .watches
            .registry
            .read()
            .matching(labels, key)
            .is_empty()
        {
            return;
        }
        let look = shown(labels, key);
        for twin in self.alike(&look) {
            if twin == id {
                continue;
            }
            let mut state = self.shards.lock_of(twin);
            let whole = self.watched_whole(&mut state, twin);
            let of_twin = self.look_of(&state, twin);
            drop(state);
            if let (Some(whole), Some(of_twin)) = (whole, of_twin)
                && shown(&of_twin.labels, &of_twin.key) == look
            {
                // Whatever was done before: nobody knows at which position this was noted.
                let mark = Mark::new(whole, NOT_LOGGED);
                self.watches.registry.write().hand_out(of_twin, &mark);
            }
        }
    }

    /// Series that may look so.
    fn alike(&self, look: &Shown<'_>) -> Vec<SeriesId> {
        let pair = |(&name, &value): (&&[u8], &&[u8])| Matcher {
            name: name.into(),
            test: Test::AnyOf([value.into()].into()),
        };
        let matchers: Vec<_> = look.iter().map(pair).collect();
        let named = self.index.current().select(&matchers);
        let mut alike: Vec<_> = named.iter().map(SeriesId).collect();
        alike.extend(look.get(METRIC).and_then(|metric| self.find(metric)));
        alike.sort_unstable();
        alike.dedup();
        alike
    }
}
