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
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, Matcher, SeriesId, Test};
use std::collections::BTreeMap;
use std::sync::Arc;

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

/// The same as bytes, which no other look has.
fn bytes_of(shown: &Shown<'_>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for part in shown.iter().flat_map(|(&name, &value)| [name, value]) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
    bytes
}

/// A series that has come or a look that has gone.
struct Noted {
    id: SeriesId,
    labels: Labels,
    key: Arc<[u8]>,
    /// Whether no other one in its shard looks the same.
    is_alone: bool,
}

impl Core {
    /// Marks the twins of series that have come or gone in a shard. No shard may be locked.
    pub(super) fn collect_twins(&self, shard: usize, looks: Vec<NotedLook>) {
        // Very many may look the same.
        let mut all: HashMap<Vec<u8>, Noted, FixedState> = HashMap::default();
        for look in looks {
            let Some(noted) = self.noted(shard, look) else {
                continue;
            };
            let same = all.entry(bytes_of(&shown(&noted.labels, &noted.key)));
            same.and_modify(|held| held.is_alone = false)
                .or_insert(noted);
        }
        all.values().for_each(|noted| self.mark_twins(noted));
    }

    /// What was noted, if it is there and anybody selects it.
    fn noted(&self, shard: usize, look: NotedLook) -> Option<Noted> {
        let (id, labels, key) = match look {
            NotedLook::New(place) => {
                let id = self.shards.id_of(shard, place);
                let state = self.shards[shard].lock();
                let key = self.presence(&state, id).ok()?.series()?.key.clone();
                drop(state);
                (id, self.labels_of(id), key)
            }
            NotedLook::Gone { id, labels, key } => (id, labels, key),
        };
        let registry = self.watches.registry.read();
        let is_selected = !registry.matching(&labels, &key).is_empty();
        is_selected.then_some(Noted {
            id,
            labels,
            key,
            is_alone: true,
        })
    }

    /// Marks those that look the same, but for itself if it is alone.
    fn mark_twins(&self, noted: &Noted) {
        let look = shown(&noted.labels, &noted.key);
        for twin in self.alike(&look) {
            if twin == noted.id && noted.is_alone {
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
        alike.extend(look.get(METRIC).and_then(|metric| self.find(metric).ok()?));
        alike.sort_unstable();
        alike.dedup();
        alike
    }
}
