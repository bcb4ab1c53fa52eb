//! A posting list: the series that carry one label pair.
//!
//! Most pairs of a real database are carried by one series (a host, a serial
//! number) or by few; a compressed bitmap for each would cost more than the series.
//! So a list is one inline id, then a sorted array, then a bitmap.
//!
//! New ids are nearly the largest, but not always: each shard numbers its series
//! separately. An array appends them. A compressed bitmap of a sparse set consists
//! of short arrays, each searched from its middle, at five times the cost: so a
//! long list stays an array while it is sparse.

use latewood_codec::prefetch;
use roaring::RoaringBitmap;

/// Maximum length of an array; a longer list becomes a bitmap, unless it is sparse.
/// At this length a bitmap over a million series takes about as much memory.
const ARRAY_MAX: usize = 512;
/// Maximum length of a sparse array: an insertion in its middle moves half of it.
const SPARSE_MAX: usize = 64 * 1024;
/// A list is sparse if it has fewer than one of this many ids: the bitmap of a
/// denser one consists of bits.
const SPARSE: usize = 16;

/// At least one series id, without duplicates.
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
                insert_near_end(ids, id);
                if ids.len() > ARRAY_MAX && !is_sparse(ids) {
                    *self = Self::Bitmap(Box::new(to_bitmap(ids)));
                }
            }
            Self::Bitmap(ids) => {
                ids.insert(id);
            }
        }
    }

    /// Removes a series; returns `true` if none is left, and the list must be
    /// removed.
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
                // At half the limit, so that a list near the limit does not alternate.
                if ids.remove(id) && ids.len() <= (ARRAY_MAX / 2) as u64 {
                    *self = Self::Array(Box::new(ids.iter().collect()));
                }
            }
        }
        false
    }

    /// Prefetches the memory where a new id is most likely inserted.
    #[inline]
    pub(crate) fn prefetch_end(&self) {
        if let Self::Array(ids) = self {
            prefetch(ids.as_ptr().wrapping_add(ids.len().saturating_sub(1)));
        }
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        match self {
            Self::One(only) => *only == id,
            Self::Array(ids) => ids.binary_search(&id).is_ok(),
            Self::Bitmap(ids) => ids.contains(id),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Array(ids) => ids.len() as u64,
            Self::Bitmap(ids) => ids.len(),
        }
    }

    pub(crate) fn add_to(&self, set: &mut RoaringBitmap) {
        match self {
            Self::One(only) => {
                set.insert(*only);
            }
            Self::Array(ids) => *set |= to_bitmap(ids),
            Self::Bitmap(ids) => *set |= &**ids,
        }
    }

    /// Removes all its series from `set`.
    pub(crate) fn take_from(&self, set: &mut RoaringBitmap) {
        match self {
            Self::One(only) => {
                set.remove(*only);
            }
            Self::Array(ids) => *set -= to_bitmap(ids),
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

    /// Bytes of memory it owns, without its own size.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Array(ids) => size_of::<Vec<u32>>() + ids.capacity() * 4,
            Self::Bitmap(ids) => size_of::<RoaringBitmap>() + bitmap_bytes(ids),
        }
    }
}

/// Inserts an id into ascending ones, unless it exists.
fn insert_near_end(ids: &mut Vec<u32>, id: u32) {
    // Searches backwards in steps that double, to the first smaller id.
    let (mut end, mut step) = (ids.len(), 1);
    while let Some(start) = end.checked_sub(step)
        && ids[start] >= id
    {
        (end, step) = (start, 2 * step);
    }
    let start = end.saturating_sub(step);
    let place = start + ids[start..end].partition_point(|&held| held < id);
    if ids.get(place) != Some(&id) {
        ids.insert(place, id);
    }
}

/// Whether a list above the maximum length should stay an array.
fn is_sparse(ids: &[u32]) -> bool {
    let most = ids.last().map_or(0, |&last| last as usize);
    ids.len() <= SPARSE_MAX && ids.len() < most / SPARSE
}

fn to_bitmap(ids: &[u32]) -> RoaringBitmap {
    // They ascend.
    RoaringBitmap::from_sorted_iter(ids.iter().copied()).unwrap_or_default()
}

/// Estimated bytes of memory that a bitmap owns.
pub(crate) fn bitmap_bytes(ids: &RoaringBitmap) -> usize {
    // The serialized form has the same arrays; the header of a container is 40
    // bytes.
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
    fn a_sparse_list_stays_an_array_until_it_is_long() {
        let random = SimRandom::new(4);
        let (mut posting, mut set) = (Posting::One(0), BTreeSet::from([0]));
        for at in 1..SPARSE_MAX as u32 + 10 {
            // Two shards, one ahead of the other.
            let id = at * 40 + u32::from(at % 2 == 0) * 2_000 + random.below(20) as u32;
            posting.insert(id);
            set.insert(id);
            let is_array = matches!(posting, Posting::Array(_));
            assert_eq!(is_array, set.len() <= SPARSE_MAX, "{} ids", set.len());
        }
        let mut all = RoaringBitmap::new();
        posting.add_to(&mut all);
        assert!(all.iter().eq(set.iter().copied()));
    }

    #[test]
    fn a_list_of_one_takes_two_words() {
        // The documented memory per series depends on this size.
        assert_eq!(size_of::<Option<Posting>>(), 16);
    }
}
