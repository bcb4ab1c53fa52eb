//! All readers and their selectors, found by the labels of a series.

use super::reader::{Change, ChangedSeries, Pair, Reader, ReaderId, STEPS_MAX, Watcher};
use crate::series::watched::{Mark, WatchSet};
use foldhash::fast::FixedState;
use hashbrown::HashMap;
use latewood_model::{Labels, Timestamp};
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Watch sets. Series beyond them count as watched by all.
const SETS_MAX: usize = 64 * 1024;

/// What is pending of all readers together, above which the most are joined, to what is enough. One
/// takes about 150 bytes, beside what the series looked like.
const PENDING_ALL_MAX: usize = 512 * 1024;
const PENDING_ALL_ENOUGH: usize = PENDING_ALL_MAX / 4 * 3;

/// See the module.
#[derive(Default)]
pub(super) struct Registry {
    /// Counts the changes of readers.
    pub(super) generation: u64,
    pub(super) readers: BTreeMap<ReaderId, Reader>,
    /// What is pending of all of them is no more than this.
    pending: usize,
    /// What drains returned and nobody has done is too much by itself.
    is_tight: bool,
    /// Selectors by a pair of theirs; the pair of each name apart, and those without one.
    by_pair: HashMap<Pair, Vec<Entry>, FixedState>,
    without_pair: Vec<Entry>,
    /// Names of pairs, with all selectors that have one.
    by_name: BTreeMap<Box<[u8]>, Vec<Entry>>,
    /// The selectors of watch sets, by their numbers, and the numbers.
    sets: Vec<Arc<[Entry]>>,
    numbers: HashMap<Arc<[Entry]>, WatchSet, FixedState>,
}

/// A selector of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Entry {
    reader: ReaderId,
    selector: u32,
}

impl Registry {
    /// These are the readers from now on.
    pub(super) fn set(&mut self, watchers: Vec<Watcher>) {
        let mut before = std::mem::take(&mut self.readers);
        *self = Self {
            generation: self.generation + 1,
            ..Self::default()
        };
        let nobody: Arc<[Entry]> = Arc::default();
        self.sets = vec![Arc::clone(&nobody); 2];
        self.numbers.insert(nobody, WatchSet::NOBODY);
        for Watcher { reader, selectors } in watchers {
            for (selector, given) in (0..).zip(&selectors) {
                let entry = Entry { reader, selector };
                let Some((name, value)) = &given.pair else {
                    self.without_pair.push(entry);
                    continue;
                };
                let pair = (name.clone(), value.clone());
                self.by_pair.entry(pair).or_default().push(entry);
                self.by_name.entry(name.clone()).or_default().push(entry);
            }
            let mut held = before.remove(&reader).unwrap_or_else(Reader::new);
            held.set_selectors(selectors);
            self.readers.insert(reader, held);
        }
        self.bound();
    }

    /// Changes a reader, known or not.
    pub(super) fn change<T>(
        &mut self,
        reader: ReaderId,
        change: impl FnOnce(&mut Reader) -> T,
    ) -> T {
        let held = self.readers.entry(reader).or_insert_with(Reader::new);
        let before = held.pending().len();
        let changed = change(held);
        self.pending += held.pending().len().saturating_sub(before);
        if self.pending > PENDING_ALL_MAX {
            self.bound();
        }
        changed
    }

    /// Counts what is pending, and joins it if that is too much, of those with the most first.
    fn bound(&mut self) {
        let pending = self.readers.values().map(|held| held.pending().len());
        let mut pending: usize = pending.sum();
        let is_over = pending > PENDING_ALL_MAX;
        if is_over {
            let steps_max = (PENDING_ALL_ENOUGH / 2 / self.readers.len()).min(STEPS_MAX);
            let mut readers: Vec<_> = self.readers.values_mut().collect();
            readers.sort_by_key(|held| Reverse(held.fresh()));
            for held in readers {
                if pending <= PENDING_ALL_ENOUGH {
                    break;
                }
                pending -= held.pending().len();
                held.join_fresh(steps_max);
                pending += held.pending().len();
            }
        }
        self.is_tight = is_over && pending > PENDING_ALL_ENOUGH;
        // If it is too much still, it is not counted again at each change.
        self.pending = if self.is_tight {
            PENDING_ALL_ENOUGH
        } else {
            pending
        };
    }

    /// All that is pending of a reader, which counts as returned from here on.
    pub(super) fn drain(&mut self, reader: ReaderId) -> Option<Vec<Change>> {
        if self.is_tight {
            self.bound();
        }
        let held = self.readers.get_mut(&reader)?;
        held.drain(self.is_tight);
        Some(held.changes())
    }

    /// The newest horizon.
    pub(super) fn top(&self) -> Timestamp {
        let horizons = self.readers.values().map(|reader| reader.horizon);
        horizons.max().unwrap_or(Timestamp::MIN)
    }

    /// Whether the readers were said since the start.
    pub(super) fn is_known(&self) -> bool {
        self.generation > 0
    }

    /// The selectors that match a series, ascending.
    pub(super) fn matching(&self, labels: &Labels, key: &[u8]) -> Vec<Entry> {
        let mut entries = self.without_pair.clone();
        for (name, value) in labels.iter() {
            if self.by_name.contains_key(name) {
                let found = self.by_pair.get(&(name.into(), value.into()));
                entries.extend(found.into_iter().flatten());
            }
        }
        for (name, all) in &self.by_name {
            if labels.iter().all(|(held, _)| *held != **name) {
                entries.extend(all);
            }
        }
        entries.sort_unstable();
        entries.dedup();
        entries.retain(|entry| {
            let reader = self.readers.get(&entry.reader);
            let selector = reader.and_then(|it| it.selectors.get(entry.selector as usize));
            selector.is_some_and(|selector| (selector.selects)(labels, key))
        });
        entries
    }

    /// The number of a watch set, and its horizon.
    pub(super) fn intern(&mut self, entries: Vec<Entry>) -> Option<(WatchSet, Timestamp)> {
        let horizons = entries.iter().map(|entry| self.readers.get(&entry.reader));
        let horizons = horizons.flatten().map(|reader| reader.horizon);
        let horizon = horizons.max().unwrap_or(Timestamp::MIN);
        let entries: Arc<[Entry]> = entries.into();
        if let Some(&set) = self.numbers.get(&entries) {
            return Some((set, horizon));
        }
        if self.sets.len() >= SETS_MAX {
            return None;
        }
        let set = WatchSet(self.sets.len() as u32);
        for entry in &*entries {
            if let Some(reader) = self.readers.get_mut(&entry.reader)
                && reader.sets.last() != Some(&set)
            {
                reader.sets.push(set);
            }
        }
        self.sets.push(Arc::clone(&entries));
        self.numbers.insert(entries, set);
        Some((set, horizon))
    }

    /// Hands a mark to the readers of the series.
    pub(super) fn hand_out(&mut self, series: ChangedSeries, mark: &Mark) {
        let entries = self.matching(&series.labels, &series.key);
        let series = Arc::new(series);
        for Entry { reader, selector } in entries {
            self.change(reader, |held| held.take(selector, Some(&series), mark));
        }
    }

    /// Hands out that series ended, and what is marked with them.
    pub(super) fn hand_out_ended(&mut self, entries: &[Entry], mark: &Mark) {
        let series = Arc::new(ChangedSeries::ended());
        for &Entry { reader, selector } in entries {
            self.change(reader, |held| held.take(selector, Some(&series), mark));
        }
    }

    /// The selectors of all readers.
    pub(super) fn all_entries(&self) -> Arc<[Entry]> {
        let entries = self.readers.iter().flat_map(|(&reader, held)| {
            let selectors = 0..held.selectors.len() as u32;
            selectors.map(move |selector| Entry { reader, selector })
        });
        entries.collect()
    }

    /// Hands out a mark of any series of a watch set.
    pub(super) fn hand_out_hull(&mut self, set: WatchSet, mark: &Mark) {
        let entries = match set {
            WatchSet::UNKNOWN => self.all_entries(),
            WatchSet(number) => match self.sets.get(number as usize) {
                Some(entries) => Arc::clone(entries),
                None => self.all_entries(),
            },
        };
        for &Entry { reader, selector } in &*entries {
            self.change(reader, |held| held.take(selector, None, mark));
        }
    }
}
