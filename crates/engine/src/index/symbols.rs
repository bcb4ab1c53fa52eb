//! Interned strings: each is kept once and has a number.
//!
//! Numbers are small and used again once their string is released, so what is
//! kept by number stays dense while labels come and go.

use super::packed::Packed;
use crate::table::{Table, Tagged, tag_of};
use foldhash::fast::FixedState;
use std::hash::BuildHasher;
use std::hint::black_box;

/// Parts of the table that grow on their own.
const PARTS: usize = 256;

/// Strings by number and numbers by string.
pub(crate) struct Symbols {
    table: Table<Entry>,
    strings: Packed,
    /// Numbers below `next` that name no string.
    free: Vec<u32>,
    next: u32,
    state: FixedState,
}

struct Entry {
    /// Of the string.
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
    /// No strings. `seed` makes the hash differ from process to process.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            table: Table::new(PARTS),
            strings: Packed::default(),
            free: Vec::new(),
            next: 0,
            state: FixedState::with_seed(seed),
        }
    }

    /// The number of `string`, if it is known.
    pub(crate) fn find(&self, string: &[u8]) -> Option<u32> {
        self.find_tagged(self.tag(string), string)
    }

    /// The number of `string`, which is not empty; a new one if it is unknown.
    pub(crate) fn intern(&mut self, string: &[u8]) -> u32 {
        self.intern_tagged(self.tag(string), string)
    }

    /// The same for who has the string's tag.
    pub(crate) fn intern_tagged(&mut self, tag: u32, string: &[u8]) -> u32 {
        debug_assert!(!string.is_empty() && tag == self.tag(string));
        if let Some(number) = self.find_tagged(tag, string) {
            return number;
        }
        let number = self.free.pop().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        self.strings.set(number, string);
        self.table.insert(Entry { tag, number });
        number
    }

    /// Forgets string `number`; another may get its number.
    pub(crate) fn release(&mut self, number: u32) {
        let tag = self.tag(self.strings.get(number));
        let removed = self.table.remove(tag, |entry| entry.number == number);
        if removed.is_some() {
            self.strings.set(number, &[]);
            self.free.push(number);
        }
    }

    /// String `number`; empty where there is none.
    pub(crate) fn string(&self, number: u32) -> &[u8] {
        self.strings.get(number)
    }

    /// The number of strings.
    pub(crate) fn len(&self) -> usize {
        self.table.len()
    }

    /// Bytes of memory it holds.
    pub(crate) fn memory_bytes(&self) -> usize {
        self.table.memory_bytes() + self.strings.memory_bytes() + self.free.capacity() * 4
    }

    fn find_tagged(&self, tag: u32, string: &[u8]) -> Option<u32> {
        let strings = &self.strings;
        let is_it = |entry: &Entry| strings.get(entry.number) == string;
        self.table.find(tag, is_it).map(|entry| entry.number)
    }

    /// The tag of a string.
    pub(crate) fn tag(&self, string: &[u8]) -> u32 {
        tag_of(self.state.hash_one(string))
    }

    /// Fetches the memory that interning strings of these tags needs.
    pub(crate) fn touch(&self, tags: &[u32]) {
        let found = tags.iter().filter_map(|&tag| self.table.touch(tag));
        black_box(found.fold(0, |all, entry| all ^ entry.number));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_kept_once_and_numbers_used_again() {
        let mut symbols = Symbols::new(1);
        let numbers: Vec<u32> = (0..1_000)
            .map(|n| symbols.intern(format!("name {n}").as_bytes()))
            .collect();
        assert_eq!(symbols.intern(b"name 7"), numbers[7]);
        assert_eq!(symbols.len(), 1_000);
        for number in &numbers[..990] {
            symbols.release(*number);
        }
        assert_eq!(symbols.len(), 10);
        assert_eq!(symbols.find(b"name 7"), None);
        assert_eq!(symbols.find(b"name 993"), Some(numbers[993]));
        for n in 0..990 {
            assert!(symbols.intern(format!("other {n}").as_bytes()) < 1_000);
        }
        assert_eq!(symbols.string(numbers[993]), b"name 993");
    }
}
