//! A hash table of short entries that is nearly full at any size.
//!
//! Tables that double are half empty for half of the time, and all parts of a spread one double at once.
//! This one grows by a quarter, so that an entry takes 10 bytes on average, and 12 at most: where there
//! are tens of millions, that counts. Entries are a tag and a number of 32 bits each in one word; open
//! addressing, the next free place after the one that the tag names (Knuth, The Art of Computer
//! Programming 3, 6.4, algorithms L and R). Spread over parts by their tag, each of which moves only its own.
//!
//! Invariant: no word is `EMPTY`, and between an entry and the place that its tag names no place is free.
//! Tested below.

use crate::base::table::spread;

/// No entry: neither is the number `u32::MAX`.
const EMPTY: u64 = u64::MAX;
/// Places of a part that are in use at most, of a hundred.
const FULL_PERCENT: usize = 85;
/// A part grows by this share of itself, and by this many.
const GROWTH_SHARE: usize = 4;
const GROWTH: usize = 8;

/// Numbers by tag. A tag may be there several times.
pub(crate) struct Dense {
    parts: Box<[Part]>,
}

#[derive(Default)]
struct Part {
    places: Box<[u64]>,
    len: usize,
}

impl Dense {
    /// Without entries, in a number of parts that is a power of two up to 256.
    pub(crate) fn new(parts: usize) -> Self {
        debug_assert!(parts.is_power_of_two() && parts <= 256);
        Self {
            parts: (0..parts).map(|_| Part::default()).collect(),
        }
    }

    /// A number of this tag.
    #[inline]
    pub(crate) fn find(&self, tag: u32) -> Option<u32> {
        let part = &self.parts[self.part(tag)];
        part.probe(tag)
            .map(|at| part.places[at])
            .take_while(|word| *word != EMPTY)
            .find(|word| tag_of(*word) == tag)
            .map(|word| word as u32)
    }

    /// Adds a number below `u32::MAX`.
    pub(crate) fn insert(&mut self, tag: u32, number: u32) {
        debug_assert!(number < u32::MAX);
        let part = self.part(tag);
        let part = &mut self.parts[part];
        if (part.len + 1) * 100 > part.places.len() * FULL_PERCENT {
            part.resize(part.places.len() + part.places.len() / GROWTH_SHARE + GROWTH);
        }
        part.put(u64::from(tag) << u32::BITS | u64::from(number));
    }

    /// Takes a number of this tag out; returns whether it was there. Gives memory back once little
    /// of it is used.
    pub(crate) fn remove(&mut self, tag: u32, number: u32) -> bool {
        let part = self.part(tag);
        let part = &mut self.parts[part];
        let wanted = u64::from(tag) << u32::BITS | u64::from(number);
        let mut probed = part.probe(tag);
        let found = probed.find(|&at| part.places[at] == wanted || part.places[at] == EMPTY);
        let Some(at) = found.filter(|&at| part.places[at] != EMPTY) else {
            return false;
        };
        part.free(at);
        if part.len < part.places.len() / 8 {
            part.resize(part.len + part.len / GROWTH_SHARE + GROWTH);
        }
        true
    }

    pub(crate) fn len(&self) -> usize {
        self.parts.iter().map(|part| part.len).sum()
    }

    /// Forgets all entries, and gives their memory back.
    pub(crate) fn clear(&mut self) {
        self.parts.fill_with(Part::default);
    }

    /// Bytes of memory taken for entries.
    pub(crate) fn memory_bytes(&self) -> usize {
        let places = self.parts.iter().map(|part| part.places.len());
        places.sum::<usize>() * size_of::<u64>()
    }

    #[inline]
    fn part(&self, tag: u32) -> usize {
        // The lowest bits of those that are good; the place within the part is named by the highest.
        (spread(tag) >> 32) as usize & (self.parts.len() - 1)
    }
}

impl Part {
    /// The places where a tag can be, from the one that it names on, each once.
    #[inline]
    fn probe(&self, tag: u32) -> impl Iterator<Item = usize> + use<> {
        let count = self.places.len();
        let home = home(tag, count);
        (home..count).chain(0..home)
    }

    /// Adds a word, for which there is a free place.
    fn put(&mut self, word: u64) {
        let mut probed = self.probe(tag_of(word));
        if let Some(at) = probed.find(|&at| self.places[at] == EMPTY) {
            self.places[at] = word;
            self.len += 1;
        }
    }

    /// Frees a place, and brings those behind it nearer to where they belong.
    fn free(&mut self, mut hole: usize) {
        let count = self.places.len();
        let distance = |from: usize, to: usize| (to + count - from) % count;
        let mut at = hole;
        loop {
            at = (at + 1) % count;
            let word = self.places[at];
            if word == EMPTY {
                break;
            }
            if distance(home(tag_of(word), count), at) >= distance(hole, at) {
                self.places[hole] = word;
                hole = at;
            }
        }
        self.places[hole] = EMPTY;
        self.len -= 1;
    }

    fn resize(&mut self, count: usize) {
        let places = vec![EMPTY; count].into_boxed_slice();
        let before = std::mem::replace(&mut self.places, places);
        self.len = 0;
        let words = before.iter().filter(|word| **word != EMPTY);
        words.for_each(|word| self.put(*word));
    }
}

fn tag_of(word: u64) -> u32 {
    (word >> u32::BITS) as u32
}

/// The place that a tag names among `count`.
#[inline]
fn home(tag: u32, count: usize) -> usize {
    (((spread(tag) >> u32::BITS) * count as u64) >> u32::BITS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    /// Numbers that look random: xorshift (Marsaglia 2003).
    fn random(seed: u64) -> impl FnMut(u64) -> u32 {
        let mut state = seed * 2 + 1;
        move |below| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            ((state >> 32) % below) as u32
        }
    }

    #[test]
    fn entries_come_and_go_as_in_a_set() {
        for seed in 0..20 {
            let mut below = random(seed);
            let (mut dense, mut model) = (Dense::new(4), BTreeSet::new());
            // Few tags, many of them twice and more.
            let tags = [3, 50, 100_000][below(3) as usize];
            for step in 0..4_000 {
                let (tag, number) = (below(tags), below(50));
                let grows = step % 1_000 < 700;
                if below(4) < if grows { 3 } else { 1 } {
                    if model.insert((tag, number)) {
                        dense.insert(tag, number);
                    }
                } else {
                    let any = model.range((tag, number)..).next().copied();
                    let (tag, number) = any.unwrap_or((tag, number));
                    let was_there = model.remove(&(tag, number));
                    assert_eq!(dense.remove(tag, number), was_there, "seed {seed}");
                }
                assert_eq!(dense.len(), model.len());
                let found = dense.find(tag);
                let has_any = model.range((tag, 0)..=(tag, u32::MAX)).next().is_some();
                assert_eq!(found.is_some(), has_any, "seed {seed}, step {step}");
                assert!(found.is_none_or(|number| model.contains(&(tag, number))));
            }
            for &(tag, number) in &model {
                assert!(dense.remove(tag, number), "seed {seed}");
            }
            assert_eq!((dense.len(), dense.find(1)), (0, None));
        }
    }

    #[test]
    fn it_is_nearly_full_at_any_size() {
        let mut dense = Dense::new(64);
        for number in 0..200_000u32 {
            dense.insert(number.wrapping_mul(0x85eb_ca6b), number);
            let bytes = dense.memory_bytes();
            assert!(
                number < 20_000 || bytes <= number as usize * 25 / 2,
                "{bytes} for {number}"
            );
        }
        assert!(
            (0..200_000u32)
                .all(|number| dense.find(number.wrapping_mul(0x85eb_ca6b)) == Some(number))
        );
        let full = dense.memory_bytes();
        for number in 1_000..200_000u32 {
            assert!(dense.remove(number.wrapping_mul(0x85eb_ca6b), number));
        }
        assert!(dense.memory_bytes() < full / 8);
        dense.clear();
        assert_eq!((dense.len(), dense.memory_bytes()), (0, 0));
    }
}
