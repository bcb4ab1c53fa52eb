//! Interned strings: each is stored once and has a number.
//!
//! Numbers are small and reused after their string is released, so arrays indexed
//! by number stay dense while labels are added and removed.

use super::ids::bitmap_bytes;
use super::packed::Packed;
use crate::base::table::{Table, Tagged, tag_of};
use foldhash::fast::FixedState;
use roaring::RoaringBitmap;
use std::hash::{BuildHasher, Hasher};

/// Parts of the table that grow separately.
const PARTS: usize = 256;
/// Size of a head, which is stored before its string.
const HEAD_BYTES: usize = 4;

/// Strings by number and numbers by string. Each has a *head*, a number that is
/// part of its identity: for the value of a label pair, the number of the name.
pub(crate) struct Symbols {
    table: Table<Entry>,
    strings: Packed,
    /// Numbers below `next` that name no string: nearly all, once most series have parked.
    free: RoaringBitmap,
    next: u32,
    state: FixedState,
    /// A buffer that is reused.
    joined: Vec<u8>,
}

struct Entry {
    /// The tag of head and string.
    tag: u32,
    number: u32,
}

impl Tagged for Entry {
    #[inline]
    fn tag(&self) -> u32 {
        self.tag
    }
}

impl Symbols {
    /// An empty table. `seed` makes the hash differ from process to process.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            table: Table::new(PARTS),
            strings: Packed::default(),
            free: RoaringBitmap::new(),
            next: 0,
            state: FixedState::with_seed(seed),
            joined: Vec::new(),
        }
    }

    /// The number of a string, if it is interned.
    pub(crate) fn find(&self, head: u32, string: &[u8]) -> Option<u32> {
        self.find_tagged(self.tag(head, string), head, string)
    }

    /// The number of a string; a new one if it is not interned.
    pub(crate) fn intern(&mut self, head: u32, string: &[u8]) -> u32 {
        self.intern_tagged(self.tag(head, string), head, string)
    }

    /// As `intern`, for a caller that has the string's tag.
    pub(crate) fn intern_tagged(&mut self, tag: u32, head: u32, string: &[u8]) -> u32 {
        debug_assert!(tag == self.tag(head, string));
        if let Some(number) = self.find_tagged(tag, head, string) {
            return number;
        }
        let number = self.free.min().unwrap_or(self.next);
        self.free.remove(number);
        self.next = self.next.max(number + 1);
        self.joined.clear();
        self.joined.extend_from_slice(&head.to_le_bytes());
        self.joined.extend_from_slice(string);
        self.strings.set(number as usize, &self.joined);
        self.table.insert(tag, Entry { tag, number });
        number
    }

    /// Releases string `number`; the number may be reused.
    pub(crate) fn release(&mut self, number: u32) {
        let Some((head, string)) = self.string(number) else {
            return;
        };
        let tag = self.tag(head, string);
        let removed = self.table.remove(tag, |entry| entry.number == number);
        if removed.is_some() {
            self.strings.set(number as usize, &[]);
            self.free.insert(number);
        }
    }

    /// String `number` with its head, if it exists.
    #[inline]
    pub(crate) fn string(&self, number: u32) -> Option<(u32, &[u8])> {
        let (head, string) = self
            .strings
            .get(number as usize)
            .split_first_chunk::<HEAD_BYTES>()?;
        Some((u32::from_le_bytes(*head), string))
    }

    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.strings.memory_bytes() + bitmap_bytes(&self.free)
    }

    fn find_tagged(&self, tag: u32, head: u32, string: &[u8]) -> Option<u32> {
        let is_it = |entry: &Entry| self.is(entry.number, head, string);
        self.table.find(tag, is_it).map(|entry| entry.number)
    }

    #[inline]
    pub(crate) fn is(&self, number: u32, head: u32, string: &[u8]) -> bool {
        self.string(number) == Some((head, string))
    }

    #[inline]
    pub(crate) fn tag(&self, head: u32, string: &[u8]) -> u32 {
        let mut hasher = self.state.build_hasher();
        hasher.write_u32(head);
        hasher.write(string);
        tag_of(hasher.finish())
    }

    /// The number of a string with this tag, nearly always the only one.
    #[inline]
    pub(crate) fn candidate(&self, tag: u32) -> Option<u32> {
        self.table.touch(tag).map(|entry| entry.number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_kept_once_and_numbers_used_again() {
        let mut symbols = Symbols::new(1);
        let numbers: Vec<u32> = (0..1_000)
            .map(|n| symbols.intern(n % 2, format!("name {n}").as_bytes()))
            .collect();
        assert_eq!(symbols.intern(1, b"name 7"), numbers[7]);
        assert_eq!(symbols.len(), 1_000);
        assert_eq!(symbols.find(0, b"name 7"), None, "another head");
        for number in &numbers[..990] {
            symbols.release(*number);
        }
        assert_eq!(symbols.len(), 10);
        assert_eq!(symbols.find(1, b"name 7"), None);
        assert_eq!(symbols.find(1, b"name 993"), Some(numbers[993]));
        for n in 0..990 {
            assert!(symbols.intern(0, format!("other {n}").as_bytes()) < 1_000);
        }
        assert_eq!(symbols.string(numbers[993]), Some((1, &b"name 993"[..])));
    }
}
