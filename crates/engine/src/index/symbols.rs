//! Interned strings: each is kept once and has a number.
//!
//! Numbers are small and used again once their string is released, so what is
//! kept by number stays dense while labels come and go.

use super::packed::Packed;
use crate::tag::{self, spread};
use foldhash::fast::FixedState;
use hashbrown::HashTable;
use std::hash::BuildHasher;

/// Strings by number and numbers by string.
pub(crate) struct Symbols {
    table: HashTable<Entry>,
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

impl Symbols {
    /// No strings. `seed` makes the hash differ from process to process.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            table: HashTable::new(),
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
        debug_assert!(!string.is_empty());
        let tag = self.tag(string);
        if let Some(number) = self.find_tagged(tag, string) {
            return number;
        }
        let number = self.free.pop().unwrap_or(self.next);
        self.next = self.next.max(number + 1);
        self.strings.set(number, string);
        let entry = Entry { tag, number };
        self.table
            .insert_unique(spread(tag), entry, |entry| spread(entry.tag));
        number
    }

    /// Forgets string `number`; another may get its number.
    pub(crate) fn release(&mut self, number: u32) {
        let tag = self.tag(self.strings.get(number));
        let same = |entry: &Entry| entry.number == number;
        if let Ok(entry) = self.table.find_entry(spread(tag), same) {
            entry.remove();
            self.strings.set(number, &[]);
            self.free.push(number);
        }
        if self.table.len() < self.table.capacity() / 8 {
            self.table.shrink_to(0, |entry| spread(entry.tag));
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
        self.table.allocation_size() + self.strings.memory_bytes() + self.free.capacity() * 4
    }

    fn find_tagged(&self, tag: u32, string: &[u8]) -> Option<u32> {
        let strings = &self.strings;
        let same = |entry: &Entry| entry.tag == tag && strings.get(entry.number) == string;
        self.table.find(spread(tag), same).map(|entry| entry.number)
    }

    fn tag(&self, string: &[u8]) -> u32 {
        tag::of(self.state.hash_one(string))
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
