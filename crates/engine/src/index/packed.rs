//! Byte strings by number, packed.
//!
//! A million short strings in separate boxes cost more in pointers and in the
//! allocator's headers than in bytes. Here 256 strings with adjacent numbers share
//! one buffer, beside an array of their ends. A change moves the rest of its page:
//! a few KiB at most if strings are short, nothing if they come in ascending order
//! and go in descending order.
//!
//! A string that was never set, or was cleared, is empty. A page of empty strings
//! holds no memory.

use crate::base::pages::{self, Pages};

const PAGE_STRINGS: usize = 256;

/// A growing array of byte strings.
#[derive(Default)]
pub(crate) struct Packed {
    pages: Pages<Page>,
}

#[derive(Default)]
struct Page {
    /// The end of each string, up to the last one at least.
    ends: Vec<u32>,
    bytes: Vec<u8>,
}

impl Packed {
    pub(crate) fn get(&self, number: usize) -> &[u8] {
        match self.pages.get(number / PAGE_STRINGS) {
            Some(page) => page.get(number % PAGE_STRINGS),
            None => &[],
        }
    }

    /// Sets string `number`. Linear in the bytes of its page.
    pub(crate) fn set(&mut self, number: usize, string: &[u8]) {
        let index = number / PAGE_STRINGS;
        if !string.is_empty() {
            self.pages.ensure(index).set(number % PAGE_STRINGS, string);
        } else if let Some(page) = self.pages.get_mut(index) {
            page.set(number % PAGE_STRINGS, string);
            if pages::Page::is_empty(page) {
                self.pages.reset(index);
            }
        }
    }

    pub(crate) fn memory_bytes(&self) -> usize {
        let own = |page: &Page| page.ends.capacity() * 4 + page.bytes.capacity();
        let own = self.pages.iter().map(|(_, page)| own(page));
        self.pages.memory_bytes() + own.sum::<usize>()
    }
}

impl pages::Page for Page {
    fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

impl Page {
    fn get(&self, place: usize) -> &[u8] {
        match self.ends.get(place) {
            Some(&end) => &self.bytes[self.start(place)..end as usize],
            None => &[],
        }
    }

    fn start(&self, place: usize) -> usize {
        place
            .checked_sub(1)
            .map_or(0, |before| self.ends[before] as usize)
    }

    fn set(&mut self, place: usize, string: &[u8]) {
        if place >= self.ends.len() {
            if string.is_empty() {
                return;
            }
            if self.ends.is_empty() {
                self.ends.reserve_exact(PAGE_STRINGS);
            }
            // A page holds 256 strings of at most 256 KiB: its ends fit 32 bits.
            self.ends.resize(place, self.bytes.len() as u32);
            self.bytes.extend_from_slice(string);
            self.ends.push(self.bytes.len() as u32);
        } else {
            let (start, end) = (self.start(place), self.ends[place] as usize);
            self.bytes.splice(start..end, string.iter().copied());
            if string.is_empty() && start == self.bytes.len() {
                self.ends.truncate(place);
            }
            let delta = (string.len() as u32).wrapping_sub((end - start) as u32);
            for end in self.ends.iter_mut().skip(place) {
                *end = end.wrapping_add(delta);
            }
        }
        self.give_back();
    }

    /// Frees memory that the page does not need, at intervals.
    fn give_back(&mut self) {
        if self.bytes.is_empty() {
            *self = Self::default();
            return;
        }
        let full = self.ends.len() == PAGE_STRINGS
            && self.bytes.capacity() - self.bytes.len() > self.bytes.len() / 8;
        if full || self.bytes.capacity() > 4 * self.bytes.len() {
            self.bytes.shrink_to_fit();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::SimRandom;
    use std::collections::BTreeMap;

    fn spread(number: u64) -> usize {
        number as usize | if number > 350 { 1 << 44 } else { 0 }
    }

    #[test]
    fn random_changes_match_a_map() {
        let random = SimRandom::new(7);
        let (mut packed, mut map) = (Packed::default(), BTreeMap::new());
        for step in 0..20_000u32 {
            // The second half is that of ids beyond 32 bits.
            let number = spread(random.below(700));
            let mut string = vec![step as u8; random.below(40) as usize];
            if random.below(3) == 0 || step > 19_000 {
                string.clear();
            }
            packed.set(number, &string);
            map.insert(number, string);
            let other = spread(random.below(1_000));
            let held = map.get(&other).map_or(&[][..], Vec::as_slice);
            assert_eq!(packed.get(other), held, "string {other} after {step}");
        }
        for number in 0..700 {
            packed.set(spread(number), &[]);
        }
        assert_eq!(
            packed.memory_bytes(),
            packed.pages.memory_bytes(),
            "empty pages hold nothing"
        );
    }
}
