//! A set of series.
//!
//! Ids have 48 bits. Those below 2^32 are in a bitmap of their own: it is all there is until a
//! database has given that many, and a set of it costs no more than with ids of 32 bits.
//!
//! Invariant: `near` has the ids below 2^32, `far` the others. Tested below and with the index.

use crate::base::partition::{PARTITION_BITS, first_of};
use roaring::{RoaringBitmap, RoaringTreemap};

/// A set of series ids.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ids {
    near: RoaringBitmap,
    far: RoaringTreemap,
}

impl Ids {
    /// The ids, which ascend.
    pub(crate) fn from_ascending(ids: impl Iterator<Item = u64>) -> Self {
        let mut set = Self::default();
        for id in ids {
            match u32::try_from(id) {
                // What ascends is put behind the last.
                Ok(id) => drop(set.near.try_push(id)),
                Err(_) => drop(set.far.insert(id)),
            }
        }
        set
    }

    /// Adds an id; returns whether it is new.
    #[inline]
    pub(crate) fn insert(&mut self, id: u64) -> bool {
        match u32::try_from(id) {
            Ok(id) => self.near.insert(id),
            Err(_) => self.far.insert(id),
        }
    }

    /// Removes an id; returns whether it was there.
    pub(crate) fn remove(&mut self, id: u64) -> bool {
        match u32::try_from(id) {
            Ok(id) => self.near.remove(id),
            Err(_) => self.far.remove(id),
        }
    }

    #[inline]
    pub(crate) fn contains(&self, id: u64) -> bool {
        match u32::try_from(id) {
            Ok(id) => self.near.contains(id),
            Err(_) => self.far.contains(id),
        }
    }

    pub(crate) fn len(&self) -> u64 {
        self.near.len() + self.far.len()
    }

    /// All ids, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = u64> {
        self.near.iter().map(u64::from).chain(&self.far)
    }

    pub(crate) fn is_disjoint(&self, other: &Self) -> bool {
        self.near.is_disjoint(&other.near) && self.far.is_disjoint(&other.far)
    }

    /// Adds ids of a partition, by their low bits.
    pub(crate) fn add_partition(&mut self, partition: u32, lows: &RoaringBitmap) {
        let first = first_of(partition).0;
        self.add_all(&Self::from_ascending(
            lows.iter().map(|low| first + u64::from(low)),
        ));
    }

    /// The low bits of its ids in a partition.
    pub(crate) fn in_partition(&self, partition: u32) -> RoaringBitmap {
        let first = first_of(partition).0;
        // Sets by the high half of the ids; the lower one is that of `near`.
        let (high, first) = ((first >> u32::BITS) as u32, first as u32);
        let all = match high {
            0 => Some(&self.near),
            _ => self
                .far
                .bitmaps()
                .find(|set| set.0 == high)
                .map(|set| set.1),
        };
        let last = first | ((1 << PARTITION_BITS) - 1);
        let ids = all.into_iter().flat_map(|all| all.range(first..=last));
        ids.map(|id| id - first).collect()
    }

    /// Adds all ids of `other`.
    pub(crate) fn add_all(&mut self, other: &Self) {
        self.near |= &other.near;
        self.far |= &other.far;
    }

    /// Keeps only ids of `other`.
    pub(crate) fn keep_only(&mut self, other: &Self) {
        self.near &= &other.near;
        self.far &= &other.far;
    }

    /// Removes all ids of `other`.
    pub(crate) fn remove_all(&mut self, other: &Self) {
        self.near -= &other.near;
        self.far -= &other.far;
    }

    /// Estimated bytes of memory that it owns.
    pub(crate) fn memory_bytes(&self) -> usize {
        let far = self.far.bitmaps().map(|(_, ids)| bitmap_bytes(ids));
        bitmap_bytes(&self.near) + far.sum::<usize>()
    }
}

impl FromIterator<u64> for Ids {
    fn from_iter<I: IntoIterator<Item = u64>>(ids: I) -> Self {
        let mut set = Self::default();
        set.extend(ids);
        set
    }
}

impl Extend<u64> for Ids {
    fn extend<I: IntoIterator<Item = u64>>(&mut self, ids: I) {
        let far = &mut self.far;
        let near = ids.into_iter().filter_map(|id| match u32::try_from(id) {
            Ok(id) => Some(id),
            Err(_) => {
                far.insert(id);
                None
            }
        });
        self.near.extend(near);
    }
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

    #[test]
    fn ids_of_all_sizes_are_one_set() {
        let all = [3, u64::from(u32::MAX), 1 << 32, (1 << 48) - 1];
        let set = Ids::from_ascending(all.into_iter());
        assert!(set.iter().eq(all) && set.len() == 4);
        assert_eq!(all.into_iter().rev().collect::<Ids>(), set);
        // The low 32 bits of another.
        assert!(!set.contains(0) && set.contains(1 << 32));
        let mut some: Ids = [0, 1 << 32].into_iter().collect();
        assert!(!some.is_disjoint(&set));
        assert!(!some.insert(1 << 32) && some.remove(0) && !some.remove(3 << 32));
        let mut rest = set.clone();
        rest.remove_all(&some);
        assert!(rest.iter().eq([3, u64::from(u32::MAX), (1 << 48) - 1]));
        assert!(rest.is_disjoint(&some));
        rest.add_all(&some);
        assert_eq!(rest, set);
        rest.keep_only(&some);
        assert_eq!(rest, some);
    }

    #[test]
    fn the_ids_of_a_partition_come_and_go_by_their_low_bits() {
        for partition in [0, 7, (1 << 16) - 1, 1 << 16, u32::MAX] {
            let lows: RoaringBitmap = [0, 9, 65_535].into_iter().collect();
            let others = partition.saturating_sub(1)..=partition.saturating_add(1);
            let mut set = Ids::default();
            others.for_each(|other| {
                set.insert(first_of(other).0 + u64::from(other == partition));
            });
            set.remove(first_of(partition).0 + 1);
            set.add_partition(partition, &lows);
            assert_eq!(set.in_partition(partition), lows);
            let all = lows
                .iter()
                .map(|low| first_of(partition).0 + u64::from(low));
            assert!(all.into_iter().all(|id| set.contains(id)));
            assert!(set.in_partition(partition ^ 1 << 20).is_empty());
        }
    }
}
