//! Series that look the same to readers by label, *twins*.
//!
//! Such a reader tells twins apart by their keys, which one without a twin does not show: a series gets
//! or loses the label `__key__` where another one comes or goes. So its whole extent is marked then,
//! however new the samples of the other one are. Series that come and looks that go are noted under the
//! lock of their shard, and their twins are looked for, in the index, when changes are collected. A
//! series without the label `__name__` shows its key in its place.
//!
//! Tested by `tests/watches`.

use crate::base::error::Result;
use crate::index::filed::Filed;
use crate::index::ids::Ids;
use crate::keyspace::core::Core;
use crate::observe::notices::About;
use crate::series::watched::{Mark, NOT_LOGGED, NotedLook};
use foldhash::fast::FixedState;
use hashbrown::{HashMap, HashSet};
use latewood_model::{Labels, Matcher, SeriesId, Test};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;

const METRIC: &[u8] = b"__name__";
/// Looks for whose twins the index is held once.
const LOOKS_TOGETHER: usize = 4096;
/// Series that share one label with a look, above which the others are asked for, too.
const CANDIDATES_MAX: u64 = 16;

/// The places of looks by one of their values.
type LooksByValue = BTreeMap<Box<[u8]>, Vec<usize>>;

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
        let all: Vec<Noted> = all.into_values().collect();
        for some in all.chunks(LOOKS_TOGETHER) {
            let looks: Vec<Shown<'_>> = some
                .iter()
                .map(|noted| shown(&noted.labels, &noted.key))
                .collect();
            for ((noted, look), alike) in some.iter().zip(&looks).zip(self.alike(&looks)) {
                self.mark_twins(noted, look, alike);
            }
        }
    }

    /// What was noted, if it is there and anybody selects it.
    fn noted(&self, shard: usize, look: NotedLook) -> Option<Noted> {
        let (id, labels, key) = match look {
            NotedLook::New(place) => {
                let id = self.shards.id_of(shard, place);
                let state = self.shards[shard].lock();
                let key = self.presence(&state, id).ok()?.series()?.key.clone();
                (id, self.labels_in(&state, id).ok()?, key)
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

    /// Marks those of `alike` that look the same, but for itself if it is alone.
    fn mark_twins(&self, noted: &Noted, look: &Shown<'_>, alike: Vec<SeriesId>) {
        for twin in alike {
            if twin == noted.id && noted.is_alone {
                continue;
            }
            let mut state = self.shards.lock_of(twin);
            let whole = self.watched_whole(&mut state, twin);
            let of_twin = self.look_of(&state, twin);
            drop(state);
            if let (Some(whole), Some(of_twin)) = (whole, of_twin)
                && shown(&of_twin.labels, &of_twin.key) == *look
            {
                // Whatever was done before: nobody knows at which position this was noted.
                let mark = Mark::new(whole, NOT_LOGGED);
                self.watches.registry.write().hand_out(of_twin, &mark);
            }
        }
    }

    /// For each of `looks` the series that may look so.
    fn alike(&self, looks: &[Shown<'_>]) -> Vec<Vec<SeriesId>> {
        let index = self.index.current();
        let in_memory = looks.iter().map(|look| index.select(&matchers_of(look)));
        let mut found: Vec<Ids> = in_memory.collect();
        let filed = index.filed.clone();
        drop(index);
        if !filed.is_empty()
            && let Err(error) = add_filed(&filed, looks, &mut found)
        {
            // Those in the damaged part hear nothing, and queries that meet it fail.
            self.observe.notices.tell(About::Damage, error);
        }
        let all = looks.iter().zip(found).map(|(look, found)| {
            let mut alike: Vec<_> = found.iter().map(SeriesId).collect();
            alike.extend(look.get(METRIC).and_then(|metric| self.find(metric).ok()?));
            alike.sort_unstable();
            alike.dedup();
            alike
        });
        all.collect()
    }
}

fn matchers_of(look: &Shown<'_>) -> Vec<Matcher> {
    let pair = |(&name, &value): (&&[u8], &&[u8])| Matcher {
        name: name.into(),
        test: Test::AnyOf([value.into()].into()),
    };
    look.iter().map(pair).collect()
}

/// Adds the series whose labels are in files. Of each look one label is looked up, those of all looks
/// together: most differ from all others by one.
///
/// # Errors
/// What could not be read; the others are added.
fn add_filed(filed: &Filed, looks: &[Shown<'_>], found: &mut [Ids]) -> Result<()> {
    let mut values: HashMap<&[u8], HashSet<&[u8], FixedState>, FixedState> = HashMap::default();
    for (&name, &value) in looks.iter().flatten() {
        values.entry(name).or_default().insert(value);
    }
    let mut by_name: BTreeMap<&[u8], LooksByValue> = BTreeMap::new();
    for (at, look) in looks.iter().enumerate() {
        // The one with most values; of one look alone that with the longest.
        let telling = |(name, value): &(&&[u8], &&[u8])| (values[*name].len(), value.len());
        if let Some((&name, &value)) = look.iter().max_by_key(telling) {
            let of_value = by_name.entry(name).or_default().entry(value.into());
            of_value.or_default().push(at);
        }
    }
    let mut failure = Ok(());
    let mut candidates: BTreeMap<usize, Ids> = BTreeMap::new();
    for (name, looks) in &by_name {
        let values: Vec<Box<[u8]>> = looks.keys().cloned().collect();
        let read = filed.carrying(name, &values, &mut |partition, value, rows| {
            for &at in &looks[value] {
                candidates
                    .entry(at)
                    .or_default()
                    .add_partition(partition, rows);
            }
            ControlFlow::Continue(())
        });
        failure = failure.and(read);
    }
    for (at, ids) in candidates {
        if ids.len() <= CANDIDATES_MAX {
            found[at].add_all(&ids);
        } else {
            match filed.select(&matchers_of(&looks[at]), None) {
                Ok(ids) => found[at].add_all(&ids),
                Err(error) => failure = failure.and(Err(error)),
            }
        }
    }
    failure
}
