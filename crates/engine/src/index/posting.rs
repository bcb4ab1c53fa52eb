//! A posting list: the series that carry one label pair.
//!
//! Most pairs of a real database are carried by one series (a host, a serial
//! number) or by few; a compressed bitmap for each would cost more than the
//! series. So a list is one id in place, then a sorted array, then a bitmap.

use roaring::RoaringBitmap;

/// Ids of an array; a longer list becomes a bitmap. At this length a bitmap
/// over a million series takes about as much memory.
const ARRAY_MAX: usize = 512;

/// At least one series id, each once.
#[expect(clippy::box_collection, reason = "a list of one takes two words so")]
pub(crate) enum Posting {
    One(u32),
    /// Ascending.
    Array(Box<Vec<u32>>),
    Bitmap(Box<RoaringBitmap>),
}

impl Posting {
    /// Adds a series; constant time for ids that ascend, or nearly do.
    pub(crate) fn insert(&mut self, id: u32) {
        match self {
            Self::One(only) if *only == id => {}
            Self::One(only) => {
                let both = vec![(*only).min(id), (*only).max(id)];
                *self = Self::Array(Box::new(both));
            }
            Self::Array(ids) => {
                // Ids of one shard ascend, those of two nearly do: the place
                // is near the end.
                let before = ids.iter().rposition(|&held| held <= id);
                if before.is_none_or(|before| ids[before] != id) {
                    ids.insert(before.map_or(0, |before| before + 1), id);
                }
                if ids.len() > ARRAY_MAX {
                    *self = Self::Bitmap(Box::new(ids.iter().copied().collect()));
                }
            }
            Self::Bitmap(ids) => {
                ids.insert(id);
            }
        }
    }

    /// Takes a series away; true when none is left, and the list must go.
    pub(crate) fn remove(&mut self, id: u32) -> bool {
        match self {
            Self::One(only) => return *only == id,
            Self::Array(ids) => {
                if let Ok(place) = ids.binary_search(&id) {
                    ids.remove(place);
                }
                if let [only] = ids[..] {
                    *self = Self::One(only);
                } else if ids.capacity() > 4 * ids.len() {
                    ids.shrink_to_fit();
                }
            }
            Self::Bitmap(ids) => {
                // Only half way back, or a list at the limit would go to and fro.
                if ids.remove(id) && ids.len() <= (ARRAY_MAX / 2) as u64 {
                    *self = Self::Array(Box::new(ids.iter().collect()));
                }
            }
        }
        false
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        match self {
            Self::One(only) => *only == id,
            Self::Array(ids) => ids.binary_search(&id).is_ok(),
            Self::Bitmap(ids) => ids.contains(id),
        }
    }

    /// The number of series.
    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Array(ids) => ids.len() as u64,
            Self::Bitmap(ids) => ids.len(),
        }
    }

    /// Adds all its series to `set`.
    pub(crate) fn add_to(&self, set: &mut RoaringBitmap) {
        match self {
            Self::One(only) => {
                set.insert(*only);
            }
            Self::Array(ids) => set.extend(ids.iter().copied()),
            Self::Bitmap(ids) => *set |= &**ids,
        }
    }

    /// Takes all its series from `set`.
    pub(crate) fn take_from(&self, set: &mut RoaringBitmap) {
        match self {
            Self::One(only) => {
                set.remove(*only);
            }
            Self::Array(ids) => ids.iter().for_each(|&id| {
                set.remove(id);
            }),
            Self::Bitmap(ids) => *set -= &**ids,
        }
    }

    /// Whether one of its series is in `set`.
    pub(crate) fn meets(&self, set: &RoaringBitmap) -> bool {
        match self {
            Self::One(only) => set.contains(*only),
            Self::Array(ids) => ids.iter().any(|&id| set.contains(id)),
            Self::Bitmap(ids) => !ids.is_disjoint(set),
        }
    }

    /// Bytes of memory it owns, its own place aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Array(ids) => size_of::<Vec<u32>>() + ids.capacity() * 4,
            Self::Bitmap(ids) => size_of::<RoaringBitmap>() + bitmap_bytes(ids),
        }
    }
}

/// About how many bytes of memory a bitmap owns.
pub(crate) fn bitmap_bytes(ids: &RoaringBitmap) -> usize {
    // The stored form has the same arrays; a container's head is 40 bytes.
    let containers = ids.statistics().n_containers as usize;
    ids.serialized_size() + containers * 40
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimRandom;
    use std::collections::BTreeSet;

    #[test]
    fn every_form_holds_what_a_set_holds() {
        let random = SimRandom::new(3);
        let (mut posting, mut set) = (Posting::One(5), BTreeSet::from([5]));
        for step in 0..12_000 {
            let mut id = random.below(2_000) as u32;
            // Grows far beyond an array, then shrinks to one and grows again.
            let grows = step % 6_000 < 3_000;
            if grows == (random.below(10) > 0) {
                posting.insert(id);
                set.insert(id);
            } else {
                id = set.range(id..).next().copied().unwrap_or(id);
                let last = set.len() == 1 && set.contains(&id);
                assert_eq!(posting.remove(id), last);
                if !last {
                    set.remove(&id);
                }
            }
            assert_eq!(posting.len(), set.len() as u64);
            assert_eq!(posting.contains(id), set.contains(&id));
        }
        let mut all = RoaringBitmap::new();
        posting.add_to(&mut all);
        assert!(all.iter().eq(set.iter().copied()));
        assert!(posting.meets(&all));
        posting.take_from(&mut all);
        assert!(all.is_empty() && !posting.meets(&all));
    }

    #[test]
    fn a_list_of_one_takes_two_words() {
        // The figure of memory per series counts on it.
        assert_eq!(size_of::<Option<Posting>>(), 16);
    }
}
