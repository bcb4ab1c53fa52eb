//! The inverted index: labels by series and series by label.
//!
//! A label pair is one interned string (the number of its name, then its value)
//! whose number leads to a posting list. A name leads to the set of series that
//! carry it and the set of its pairs. A series has the numbers of its pairs in the
//! order its client gave them, repetitions included.
//!
//! Invariants:
//! 1. A pair exists as long as a series carries it, a name as long as a pair has
//!    it; their numbers are reused afterwards.
//! 2. `series` holds exactly the ids whose labels are in memory, labelled or not, and `filed` those
//!    whose labels are in files: none is in both.
//! 3. A series is in the posting list of each of its pairs, in the set of each of
//!    its names, and in no other.

mod enter;
mod leave;

use super::filed::Filed;
use super::ids::{Ids, bitmap_bytes};
use super::packed::Packed;
use super::posting::Posting;
use super::queue::Held;
use super::symbols::Symbols;
use crate::base::slab::Slab;
use latewood_model::Labels;
use roaring::RoaringBitmap;

/// Size of a number in stored strings.
const NUMBER_BYTES: usize = 4;
/// The series and the pairs of one label name.
#[derive(Default)]
pub(crate) struct Name {
    /// The series that carry it.
    pub(crate) series: Ids,
    /// The pairs with this name.
    pub(crate) pairs: RoaringBitmap,
}

/// See the module's invariants.
pub(crate) struct Inverted {
    names: Symbols,
    named: Slab<Name>,
    pairs: Symbols,
    postings: Slab<Posting>,
    /// The numbers of each series' pairs, by shard: ids ascend within one shard,
    /// but not across shards.
    labels: Box<[Packed]>,
    series: Ids,
    /// The series whose labels are in files, and these files.
    pub(crate) filed: Filed,
    /// The names of the series inserted last, by their places: the next series
    /// often has the same. Only names that exist.
    recent: Vec<(Box<[u8]>, u32)>,
}

impl Inverted {
    /// An empty index. `shards` is a power of two; `seed` makes hashes differ from
    /// process to process.
    pub(crate) fn new(shards: usize, seed: u64) -> Self {
        Self {
            names: Symbols::new(seed),
            named: Slab::default(),
            pairs: Symbols::new(seed),
            postings: Slab::default(),
            labels: (0..shards).map(|_| Packed::default()).collect(),
            series: Ids::default(),
            filed: Filed::default(),
            recent: Vec::new(),
        }
    }

    /// Applies changes in order: a series and where its labels are; those in memory as
    /// [`Labels::as_bytes`] has them.
    pub(crate) fn apply<'a>(&mut self, changes: impl Iterator<Item = (u64, Held<&'a [u8]>)>) {
        let mut come = Vec::with_capacity(changes.size_hint().0);
        let mut gone = Vec::new();
        for (id, held) in changes {
            match held {
                Held::Filed => self.filed.insert(id),
                Held::Here(_) | Held::Gone => self.filed.remove(id),
            }
            match held {
                Held::Here(labels) if self.series.insert(id) => {
                    if !gone.is_empty() {
                        self.unlink_all(&mut gone);
                    }
                    come.push((id, labels));
                }
                _ => {
                    // A removal may remove names, and with them what `link_all` has
                    // looked up.
                    self.link_all(&come);
                    come.clear();
                    match held {
                        Held::Here(labels) => {
                            self.unlink_all(&mut gone);
                            self.change(id, labels);
                        }
                        Held::Filed | Held::Gone if self.series.remove(id) => gone.push(id),
                        Held::Filed | Held::Gone => {}
                    }
                }
            }
        }
        if !gone.is_empty() {
            self.unlink_all(&mut gone);
        }
        self.link_all(&come);
    }

    /// Changes the labels of a series in the index.
    #[cold]
    fn change(&mut self, id: u64, labels: &[u8]) {
        if !self.has(id, labels) {
            self.unlink_all(&mut vec![id]);
            self.link_all(&[(id, labels)]);
        }
    }

    /// The labels of a series, in the order its client gave them.
    pub(crate) fn labels(&self, id: u64) -> Held<Labels> {
        if !self.series.contains(id) {
            let is_filed = self.filed.contains(id);
            return if is_filed { Held::Filed } else { Held::Gone };
        }
        let pairs = self.pairs_of(id).map(|pair| self.pair(pair));
        // They were valid labels before, so they are within the limits.
        Held::Here(Labels::new(pairs).unwrap_or_default())
    }

    /// Puts the labels of a series into `bytes`, as [`Labels::as_bytes`] has them.
    pub(crate) fn labels_into(&self, id: u64, bytes: &mut Vec<u8>) -> Held<()> {
        bytes.clear();
        if !self.series.contains(id) {
            let is_filed = self.filed.contains(id);
            return if is_filed { Held::Filed } else { Held::Gone };
        }
        for (name, value) in self.pairs_of(id).map(|pair| self.pair(pair)) {
            for part in [name, value] {
                // They are within the limits of labels.
                bytes.extend_from_slice(&(part.len() as u32).to_le_bytes());
                bytes.extend_from_slice(part);
            }
        }
        Held::Here(())
    }

    /// The series whose labels are in memory.
    pub(crate) fn series(&self) -> &Ids {
        &self.series
    }

    /// The series and pairs of a label name.
    pub(crate) fn name(&self, name: &[u8]) -> Option<&Name> {
        let number = self.names.find(0, name)?;
        self.named.get(number as usize)
    }

    /// All names with their series and pairs.
    pub(crate) fn names(&self) -> impl Iterator<Item = (&[u8], &Name)> {
        (0..self.named.places()).filter_map(|number| {
            let name = self.named.get(number)?;
            Some((self.names.string(number as u32)?.1, name))
        })
    }

    /// The series that carry a pair.
    pub(crate) fn posting(&self, name: &[u8], value: &[u8]) -> Option<&Posting> {
        let pair = self.pairs.find(self.names.find(0, name)?, value)?;
        self.postings.get(pair as usize)
    }

    /// The series that carry pair `number`.
    pub(crate) fn posting_of(&self, number: u32) -> Option<&Posting> {
        self.postings.get(number as usize)
    }

    /// The numbers of a series' pairs, in their order.
    pub(crate) fn pairs_of(&self, id: u64) -> impl Iterator<Item = u32> {
        let (shard, place) = self.place_of(id);
        let (numbers, _) = self.labels[shard].get(place).as_chunks::<NUMBER_BYTES>();
        numbers.iter().map(|number| u32::from_le_bytes(*number))
    }

    /// Name and value of pair `number`; both empty if it does not exist.
    pub(crate) fn pair(&self, number: u32) -> (&[u8], &[u8]) {
        let pair = self.pairs.string(number);
        let named = pair.and_then(|(name, value)| Some((self.names.string(name)?.1, value)));
        named.unwrap_or_default()
    }

    /// The number of label pairs, each counted once.
    pub(crate) fn pair_count(&self) -> usize {
        self.pairs.len()
    }

    /// Bytes of memory it holds. Linear in the pairs.
    pub(crate) fn memory_bytes(&self) -> usize {
        let name_sets = |name: &Name| name.series.memory_bytes() + bitmap_bytes(&name.pairs);
        self.names.memory_bytes()
            + self.named.memory_bytes()
            + self.named.values().map(name_sets).sum::<usize>()
            + self.pairs.memory_bytes()
            + self.postings.memory_bytes()
            + self
                .postings
                .values()
                .map(Posting::memory_bytes)
                .sum::<usize>()
            + self.labels.iter().map(Packed::memory_bytes).sum::<usize>()
            + self.series.memory_bytes()
            + self.filed.memory_bytes()
    }

    /// The shard of a series, and its place there.
    fn place_of(&self, id: u64) -> (usize, usize) {
        let shards = self.labels.len();
        let id = id as usize;
        (id & (shards - 1), id >> shards.trailing_zeros())
    }

    fn set_pairs(&mut self, id: u64, numbers: &[u8]) {
        let (shard, place) = self.place_of(id);
        self.labels[shard].set(place, numbers);
    }

    /// Whether a series has exactly these labels.
    fn has(&self, id: u64, labels: &[u8]) -> bool {
        let held = self.pairs_of(id).map(|pair| self.pair(pair));
        held.eq(Labels::pairs_in(labels))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(index: &mut Inverted, id: u64, labels: &[u8]) {
        index.apply([(id, Held::Here(labels))].into_iter());
    }

    fn remove(index: &mut Inverted, ids: impl Iterator<Item = u64>) {
        index.apply(ids.map(|id| (id, Held::Gone)));
    }

    fn labels(pairs: &[(&str, &str)]) -> Labels {
        Labels::new(pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()))).unwrap()
    }

    #[test]
    fn symbols_live_as_long_as_a_series_carries_them() {
        let mut index = Inverted::new(2, 1);
        let twice = labels(&[("x", "1"), ("x", "1"), ("x", "2")]);
        put(&mut index, 7, twice.as_bytes());
        put(&mut index, 9, labels(&[("y", "1"), ("x", "2")]).as_bytes());
        assert_eq!(index.labels(7), Held::Here(twice));
        assert_eq!(index.pair_count(), 3);
        assert_eq!(index.names().count(), 2);
        assert_eq!(index.posting(b"x", b"2").map(Posting::len), Some(2));
        put(&mut index, 7, &[]);
        assert_eq!(index.labels(7), Held::Here(Labels::default()));
        assert!(index.posting(b"x", b"1").is_none());
        assert_eq!(index.name(b"x").map(|name| name.series.len()), Some(1));
        remove(&mut index, [9].into_iter());
        assert_eq!((index.pair_count(), index.names().count()), (0, 0));
        assert_eq!(index.labels(9), Held::Gone);
        assert!(index.series().iter().eq([7]));
    }

    #[test]
    fn churn_leaves_no_memory_behind() {
        let mut index = Inverted::new(2, 1);
        let mut first_bytes = 0;
        for round in 0..20u64 {
            for id in 0..1_000 {
                let host = format!("host-{round}-{id}");
                let labels = labels(&[("host", &host), ("region", "eu"), (&host, "x")]);
                put(&mut index, round * 1_000 + id, labels.as_bytes());
            }
            let bytes = index.memory_bytes();
            match round {
                0 => first_bytes = bytes,
                _ => assert!(bytes < first_bytes * 3 / 2, "{bytes} in round {round}"),
            }
            // One by one, and many at once in any order.
            let ids = (0..1_000).map(|id| round * 1_000 + id * 7 % 1_000);
            match round % 2 {
                0 => ids.for_each(|id| remove(&mut index, [id].into_iter())),
                _ => remove(&mut index, ids),
            }
        }
        assert_eq!(index.pair_count(), 0);
    }
}
