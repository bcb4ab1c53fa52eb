//! A hash table that grows in small steps.
//!
//! A single table of millions of entries moves all of them when it is full, and
//! the insertion waits. Here entries are spread over many tables by their hash,
//! and each table moves only its own share.
//!
//! An entry keeps half of its hash, its *tag*. With it a table grows without
//! reading the keys of its entries, which lie all over the memory, and nearly
//! every comparison with another key is saved.
//!
//! Tables without locks were tried beside it (`benches/maps.rs`, a million keys,
//! one thread and two): papaya, which allocates every entry, takes four times
//! the processor time for an insertion, and gains a fifth for a lookup where
//! neighbours follow each other, nothing where they do not; scc takes twice the
//! time for an insertion and half as much again for a lookup. One table a lock
//! is a little quicker than many and pauses its writers for all it moves.
//!
//! [`Table::touch`] prefetches for lookups of many keys: independent reads let the
//! processor fetch the memory of several keys at once.

use hashbrown::HashTable;

/// What a table holds.
pub(crate) trait Tagged {
    /// The bits of its tag that an entry keeps. With few of them, entries of a part that has far
    /// more are compared with each other's keys.
    const KEPT: u32 = u32::MAX;

    /// The kept bits of the tag of the entry's key.
    fn tag(&self) -> u32;
}

/// Entries by tag and whatever tells those of one tag apart.
pub(crate) struct Table<T> {
    parts: Box<[HashTable<T>]>,
}

/// The half of `hash` to keep.
pub(crate) fn tag_of(hash: u64) -> u32 {
    hash as u32
}

impl<T: Tagged> Table<T> {
    /// No entries. `parts`, a power of two up to 65,536, is the share of the
    /// table that is moved at a time; each takes 32 bytes.
    pub(crate) fn new(parts: usize) -> Self {
        debug_assert!(parts.is_power_of_two() && parts <= 1 << 16);
        Self {
            parts: (0..parts).map(|_| HashTable::new()).collect(),
        }
    }

    /// The entry of `tag` that is the one.
    #[inline]
    pub(crate) fn find(&self, tag: u32, is_it: impl Fn(&T) -> bool) -> Option<&T> {
        let kept = tag & T::KEPT;
        self.parts[self.part(tag)].find(spread(kept), |entry| entry.tag() == kept && is_it(entry))
    }

    /// The same, to change it.
    pub(crate) fn find_mut(&mut self, tag: u32, is_it: impl Fn(&T) -> bool) -> Option<&mut T> {
        let (part, kept) = (self.part(tag), tag & T::KEPT);
        self.parts[part].find_mut(spread(kept), |entry| entry.tag() == kept && is_it(entry))
    }

    /// Some entry of `tag`, nearly always the only one.
    #[inline]
    pub(crate) fn touch(&self, tag: u32) -> Option<&T> {
        self.find(tag, |_| true)
    }

    /// Adds an entry of `tag` that is not there.
    pub(crate) fn insert(&mut self, tag: u32, entry: T) {
        debug_assert_eq!(entry.tag(), tag & T::KEPT);
        let hash = spread(entry.tag());
        let part = self.part(tag);
        self.parts[part].insert_unique(hash, entry, |entry| spread(entry.tag()));
    }

    /// Takes the entry of `tag` that is the one out. Gives memory back once
    /// little of it is used.
    pub(crate) fn remove(&mut self, tag: u32, is_it: impl Fn(&T) -> bool) -> Option<T> {
        let (index, kept) = (self.part(tag), tag & T::KEPT);
        let part = &mut self.parts[index];
        let found = part.find_entry(spread(kept), |entry| entry.tag() == kept && is_it(entry));
        let (entry, _) = found.ok()?.remove();
        if part.len() < part.capacity() / 4 {
            part.shrink_to(0, |entry| spread(entry.tag()));
        }
        Some(entry)
    }

    /// Reserves memory for `entries` more, so that adding them moves none.
    pub(crate) fn reserve(&mut self, entries: usize) {
        // Hashes spread entries evenly, but for some: four times the deviation.
        let each = entries / self.parts.len();
        let each = each + 4 * each.isqrt();
        for part in &mut self.parts {
            part.reserve(each, |entry| spread(entry.tag()));
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(HashTable::len).sum()
    }

    /// How many entries there is room for.
    pub(crate) fn capacity(&self) -> usize {
        self.parts.iter().map(HashTable::capacity).sum()
    }

    /// Forgets all entries, and gives their memory back.
    pub(crate) fn clear(&mut self) {
        self.parts.fill_with(HashTable::new);
    }

    /// Bytes of memory taken for entries, what they own aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.parts.iter().map(HashTable::allocation_size).sum()
    }

    #[inline]
    fn part(&self, tag: u32) -> usize {
        // Other bits than those that find the place within the part.
        (spread(tag) >> 40) as usize & (self.parts.len() - 1)
    }
}

/// The hash for one of the tables, which uses its lowest and topmost bits.
#[inline]
pub(crate) fn spread(tag: u32) -> u64 {
    u64::from(tag).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Entry(u32);

    impl Tagged for Entry {
        fn tag(&self) -> u32 {
            // Two entries of each tag.
            self.0 / 2
        }
    }

    #[test]
    fn entries_of_one_tag_are_told_apart_and_memory_comes_back() {
        let mut table = Table::new(64);
        for number in 0..50_000 {
            table.insert(number / 2, Entry(number));
        }
        let full = table.memory_bytes();
        assert_eq!(table.len(), 50_000);
        for number in 0..50_000 {
            let found = table.find(number / 2, |entry| entry.0 == number);
            assert_eq!(found.map(|entry| entry.0), Some(number));
        }
        assert!(table.find(7, |entry| entry.0 == 16).is_none());
        for number in 100..50_000 {
            assert!(
                table
                    .remove(number / 2, |entry| entry.0 == number)
                    .is_some()
            );
        }
        assert!(table.remove(50, |entry| entry.0 == 100).is_none());
        assert_eq!(table.len(), 100);
        assert!(table.memory_bytes() < full / 10);
        assert_eq!(table.touch(10).map(Tagged::tag), Some(10));
    }

    #[test]
    fn parts_are_about_alike() {
        let mut table = Table::new(64);
        // Tags of one shard of the database are alike in their lowest bits.
        (0..64_000).for_each(|number| table.insert(number << 3, Entry(number << 4)));
        let sizes = table.parts.iter().map(HashTable::len);
        let (least, most) = (sizes.clone().min(), sizes.max());
        assert!(
            least > Some(700) && most < Some(1_300),
            "{least:?} {most:?}"
        );
    }
}
