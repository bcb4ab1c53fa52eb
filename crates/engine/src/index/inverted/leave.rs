//! Removing series from the lists and sets of their labels.
//!
//! Series end by the thousand, and mostly share labels. A list of many ids in order is gone through
//! once for all that leave it: one by one, each would move what is behind it.
//!
//! Invariant: the result is that of removing one series after the other. Tested with the index and by
//! `tests/labels_model.rs`.

use super::Inverted;
use crate::index::ids::Ids;

/// A series in the list of a pair.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Entry {
    pair: u32,
    id: u64,
}

impl Inverted {
    /// Removes series that are no longer in [`Inverted::series`], or get other labels, from the lists
    /// and sets of their labels, and empties the list of them.
    #[cold]
    #[inline(never)]
    pub(super) fn unlink_all(&mut self, gone: &mut Vec<u64>) {
        let entries = gone.iter().flat_map(|&id| {
            let pairs = self.pairs_of(id);
            pairs.map(move |pair| Entry { pair, id })
        });
        let mut entries: Vec<Entry> = entries.collect();
        entries.sort_unstable();
        entries.dedup();
        let mut ids = Vec::new();
        // The highest numbers first: of packed strings the last ones leave without moving others.
        for of_pair in entries.chunk_by(|one, other| one.pair == other.pair).rev() {
            ids.clear();
            ids.extend(of_pair.iter().map(|entry| entry.id));
            self.unlink_pair(of_pair[0].pair, &ids);
        }
        gone.sort_unstable();
        for id in gone.drain(..).rev() {
            self.set_pairs(id, &[]);
        }
    }

    /// Removes series that carry a pair, by their ids, which ascend, from its list and from the set
    /// of its name.
    fn unlink_pair(&mut self, pair: u32, ids: &[u64]) {
        let Some((name_number, _)) = self.pairs.string(pair) else {
            return;
        };
        let posting = self.postings.get_mut(pair as usize);
        let pair_empty = posting.is_some_and(|posting| posting.remove_all(ids));
        if pair_empty {
            self.postings.remove(pair as usize);
            self.pairs.release(pair);
        }
        let Some(name) = self.named.get_mut(name_number as usize) else {
            return;
        };
        match ids {
            [id] => drop(name.series.remove(*id)),
            _ => name
                .series
                .remove_all(&Ids::from_ascending(ids.iter().copied())),
        }
        if pair_empty {
            name.pairs.remove(pair);
        }
        if name.pairs.is_empty() {
            self.named.remove(name_number as usize);
            self.names.release(name_number);
            self.recent.clear();
        }
    }
}
