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

use super::ids::Ids;
use latewood_codec::prefetch;

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
    One(u64),
    /// Below 2^32, ascending.
    Array(Box<Vec<u32>>),
    /// Ascending.
    Wide(Box<Vec<u64>>),
    Bitmap(Box<Ids>),
}

impl Posting {
    /// Adds a series; constant time for ids that ascend, or nearly do.
    pub(crate) fn insert(&mut self, id: u64) {
        match self {
            Self::One(only) if *only == id => {}
            Self::One(only) => *self = of_ascending(&[(*only).min(id), (*only).max(id)]),
            Self::Array(ids) => {
                let Ok(id) = u32::try_from(id) else {
                    let mut wide: Vec<u64> = ids.iter().map(|&id| u64::from(id)).collect();
                    wide.push(id);
                    *self = Self::Wide(Box::new(wide));
                    return;
                };
                insert_near_end(ids, id);
                if ids.len() > ARRAY_MAX && !is_sparse(ids) {
                    *self = Self::Bitmap(Box::new(to_set(ids)));
                }
            }
            Self::Wide(ids) => {
                insert_near_end(ids, id);
                if ids.len() > ARRAY_MAX && !is_sparse(ids) {
                    *self = Self::Bitmap(Box::new(to_set(ids)));
                }
            }
            Self::Bitmap(ids) => {
                ids.insert(id);
            }
        }
    }

    /// Removes series, whose ids ascend; returns `true` if none is left, and the list
    /// must be removed.
    pub(crate) fn remove_all(&mut self, gone: &[u64]) -> bool {
        match self {
            Self::One(only) => return gone.binary_search(only).is_ok(),
            Self::Array(ids) => {
                let near = gone.iter().filter_map(|&id| u32::try_from(id).ok());
                match remove_ascending(ids, near) {
                    Left::None => return true,
                    Left::One(only) => *self = Self::One(u64::from(only)),
                    Left::More => {}
                }
            }
            Self::Wide(ids) => match remove_ascending(ids, gone.iter().copied()) {
                Left::None => return true,
                Left::One(only) => *self = Self::One(only),
                Left::More => {}
            },
            Self::Bitmap(ids) => {
                for &id in gone {
                    ids.remove(id);
                }
                // At half the limit, so that a list near the limit does not alternate.
                if ids.len() <= (ARRAY_MAX / 2) as u64 {
                    let left: Vec<u64> = ids.iter().collect();
                    match left[..] {
                        [] => return true,
                        [only] => *self = Self::One(only),
                        _ => *self = of_ascending(&left),
                    }
                }
            }
        }
        false
    }

    /// Prefetches the memory where a new id is most likely inserted.
    #[inline]
    pub(crate) fn prefetch_end(&self) {
        match self {
            Self::Array(ids) => prefetch(ids.as_ptr().wrapping_add(ids.len().saturating_sub(1))),
            Self::Wide(ids) => prefetch(ids.as_ptr().wrapping_add(ids.len().saturating_sub(1))),
            Self::One(_) | Self::Bitmap(_) => {}
        }
    }

    pub(crate) fn contains(&self, id: u64) -> bool {
        match self {
            Self::One(only) => *only == id,
            Self::Array(ids) => u32::try_from(id).is_ok_and(|id| ids.binary_search(&id).is_ok()),
            Self::Wide(ids) => ids.binary_search(&id).is_ok(),
            Self::Bitmap(ids) => ids.contains(id),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        match self {
            Self::One(_) => 1,
            Self::Array(ids) => ids.len() as u64,
            Self::Wide(ids) => ids.len() as u64,
            Self::Bitmap(ids) => ids.len(),
        }
    }

    pub(crate) fn add_to(&self, set: &mut Ids) {
        match self {
            Self::One(only) => {
                set.insert(*only);
            }
            Self::Array(ids) => set.add_all(&to_set(ids)),
            Self::Wide(ids) => set.add_all(&to_set(ids)),
            Self::Bitmap(ids) => set.add_all(ids),
        }
    }

    /// Removes all its series from `set`.
    pub(crate) fn take_from(&self, set: &mut Ids) {
        match self {
            Self::One(only) => {
                set.remove(*only);
            }
            Self::Array(ids) => set.remove_all(&to_set(ids)),
            Self::Wide(ids) => set.remove_all(&to_set(ids)),
            Self::Bitmap(ids) => set.remove_all(ids),
        }
    }

    /// Whether one of its series is in `set`.
    pub(crate) fn meets(&self, set: &Ids) -> bool {
        match self {
            Self::One(only) => set.contains(*only),
            Self::Array(ids) => ids.iter().any(|&id| set.contains(u64::from(id))),
            Self::Wide(ids) => ids.iter().any(|&id| set.contains(id)),
            Self::Bitmap(ids) => !ids.is_disjoint(set),
        }
    }

    /// Bytes of memory it owns, without its own size.
    pub(crate) fn memory_bytes(&self) -> usize {
        match self {
            Self::One(_) => 0,
            Self::Array(ids) => size_of::<Vec<u32>>() + ids.capacity() * 4,
            Self::Wide(ids) => size_of::<Vec<u64>>() + ids.capacity() * 8,
            Self::Bitmap(ids) => size_of::<Ids>() + ids.memory_bytes(),
        }
    }
}

/// The list of these ids, at least two, which ascend.
fn of_ascending(ids: &[u64]) -> Posting {
    let near: std::result::Result<Vec<u32>, _> = ids.iter().map(|&id| id.try_into()).collect();
    match near {
        Ok(near) => Posting::Array(Box::new(near)),
        Err(_) => Posting::Wide(Box::new(ids.to_vec())),
    }
}

/// Inserts an id into ascending ones, unless it exists.
fn insert_near_end<T: Copy + Ord>(ids: &mut Vec<T>, id: T) {
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

/// What is left of some ids.
enum Left<T> {
    None,
    One(T),
    More,
}

/// Removes ids from others; both ascend. What stays is moved once.
fn remove_ascending<T: Copy + Ord>(ids: &mut Vec<T>, gone: impl Iterator<Item = T>) -> Left<T> {
    let (mut kept, mut from) = (0, 0);
    for id in gone {
        let place = from + ids[from..].partition_point(|&held| held < id);
        if ids.get(place) == Some(&id) {
            if kept < from {
                ids.copy_within(from..place, kept);
            }
            kept += place - from;
            from = place + 1;
        }
    }
    ids.drain(kept..from);
    match ids[..] {
        [] => return Left::None,
        [only] => return Left::One(only),
        _ => {}
    }
    if ids.capacity() > 4 * ids.len() {
        ids.shrink_to_fit();
    }
    Left::More
}

/// Whether a list above the maximum length should stay an array.
fn is_sparse<T: Copy + Into<u64>>(ids: &[T]) -> bool {
    let most = ids.last().map_or(0, |&last| last.into() as usize);
    ids.len() <= SPARSE_MAX && ids.len() < most / SPARSE
}

fn to_set<T: Copy + Into<u64>>(ids: &[T]) -> Ids {
    Ids::from_ascending(ids.iter().map(|&id| id.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimRandom;
    use std::collections::BTreeSet;

    /// Half of the ids beyond 32 bits.
    fn wide(id: u64) -> u64 {
        if id < 1_000 { id } else { (1 << 32) + id }
    }

    #[test]
    fn every_form_holds_what_a_set_holds() {
        let random = SimRandom::new(3);
        let (mut posting, mut set) = (Posting::One(5), BTreeSet::from([5]));
        for step in 0..12_000 {
            let mut id = wide(random.below(2_000));
            // Grows far beyond an array, then shrinks to one and grows again.
            let grows = step % 6_000 < 3_000;
            if grows == (random.below(10) > 0) {
                posting.insert(id);
                set.insert(id);
            } else {
                id = set.range(id..).next().copied().unwrap_or(id);
                // One, or some of those that follow it and one that is not there.
                let counts = if grows { [1; 4] } else { [1, 1, 5, 400] };
                let count = counts[random.below(4) as usize];
                let mut gone: Vec<u64> = set.range(id..).take(count).copied().collect();
                gone.push(wide(3_000));
                let last = set.iter().all(|id| gone.contains(id));
                assert_eq!(posting.remove_all(&gone), last);
                let first = *set.first().unwrap();
                set.retain(|id| !gone.contains(id));
                if last {
                    // Nobody uses the list any more.
                    (posting, set) = (Posting::One(first), BTreeSet::from([first]));
                }
            }
            assert_eq!(posting.len(), set.len() as u64);
            assert_eq!(posting.contains(id), set.contains(&id));
        }
        let mut all = Ids::default();
        posting.add_to(&mut all);
        assert!(all.iter().eq(set.iter().copied()));
        assert!(posting.meets(&all));
        posting.take_from(&mut all);
        assert!(all.len() == 0 && !posting.meets(&all));
    }

    #[test]
    fn a_sparse_list_stays_an_array_until_it_is_long() {
        let random = SimRandom::new(4);
        let (mut posting, mut set) = (Posting::One(0), BTreeSet::from([0]));
        for at in 1..SPARSE_MAX as u64 + 10 {
            // Two shards, one ahead of the other.
            let id = at * 40 + u64::from(at % 2 == 0) * 2_000 + random.below(20);
            posting.insert(id);
            set.insert(id);
            let is_array = matches!(posting, Posting::Array(_));
            assert_eq!(is_array, set.len() <= SPARSE_MAX, "{} ids", set.len());
        }
        let mut all = Ids::default();
        posting.add_to(&mut all);
        assert!(all.iter().eq(set.iter().copied()));
    }

    #[test]
    fn a_list_of_one_takes_two_words() {
        // The documented memory per series depends on this size.
        assert_eq!(size_of::<Option<Posting>>(), 16);
    }
}
