//! Inserting series under their labels.
//!
//! New series arrive by the thousand, and their pairs and posting lists are then in
//! no cache. So some series are inserted together: the memory of all their pairs is
//! prefetched before the first is changed, and the waits overlap.
//!
//! Invariant: the result is that of inserting one series after the other; what was
//! looked up ahead is checked again. Tested with the index and by
//! `tests/labels_model.rs`.

use super::{Inverted, Name};
use crate::index::ids::Ids;
use crate::index::posting::Posting;
use latewood_model::Labels;
use std::hint::black_box;

/// Places whose last name is remembered.
const RECENT_MAX: usize = 32;
/// Series inserted together: few enough for the memory they look up to stay in the
/// second-level cache.
const TOGETHER: usize = 64;

/// One label of a series that is being inserted.
struct Part<'a> {
    /// The number of its name.
    name: u32,
    value: &'a [u8],
    /// The tag of its pair.
    tag: u32,
    /// The probable number of its pair.
    candidate: Option<u32>,
}

impl Inverted {
    /// Inserts series under their labels, some at a time: the lookups of one series
    /// do not wait for those of the others.
    pub(super) fn link_all(&mut self, come: &[(u64, &[u8])]) {
        let (mut parts, mut ends, mut numbers) = (Vec::new(), Vec::new(), Vec::new());
        for come in come.chunks(TOGETHER) {
            parts.clear();
            ends.clear();
            for (_, labels) in come {
                self.take_apart(labels, &mut parts);
                ends.push(parts.len());
            }
            self.fetch(&mut parts, &ends);
            let mut start = 0;
            for (&(id, _), &end) in come.iter().zip(&ends) {
                numbers.clear();
                for part in &parts[start..end] {
                    let pair = self.link(id, part);
                    numbers.extend_from_slice(&pair.to_le_bytes());
                }
                self.set_pairs(id, &numbers);
                start = end;
            }
            self.name_all(come, &parts, &ends);
        }
    }

    /// Finds the names of labels, and the tags of their pairs.
    fn take_apart<'a>(&mut self, labels: &'a [u8], parts: &mut Vec<Part<'a>>) {
        for (place, (name, value)) in Labels::pairs_in(labels).enumerate() {
            let name = self.intern_name(place, name);
            parts.push(Part {
                name,
                value,
                tag: self.pairs.tag(name, value),
                candidate: None,
            });
        }
    }

    /// Prefetches the memory of pairs, in order of their place among the labels. If
    /// the pair at a place is in no cache, as for a label that is unique to each
    /// series, the pairs of the other series at that place are not either. Adjacent
    /// lookups of those overlap, which saves more than the order costs.
    fn fetch(&self, parts: &mut [Part<'_>], ends: &[usize]) {
        let mut places = Vec::with_capacity(parts.len());
        let starts = || std::iter::once(0).chain(ends.iter().copied());
        let longest = starts().zip(ends).map(|(start, end)| end - start).max();
        for place in 0..longest.unwrap_or(0) {
            let here = starts().map(|start| start + place).zip(ends);
            places.extend(here.filter(|(at, end)| at < end).map(|(at, _)| at));
        }
        for &at in &places {
            parts[at].candidate = self.pairs.candidate(parts[at].tag);
        }
        let candidates = || places.iter().filter_map(|&at| parts[at].candidate);
        let read = |number| {
            if let Some(posting) = self.postings.get(number as usize) {
                posting.prefetch_end();
            }
            self.pairs.string(number).map_or(0, |(head, _)| head)
        };
        black_box(candidates().fold(0, |all, number| all ^ read(number)));
    }

    /// Inserts a series under one pair; returns the pair's number.
    fn link(&mut self, id: u64, part: &Part<'_>) -> u32 {
        let &Part { name, value, .. } = part;
        let found = part.candidate;
        let pair = match found.filter(|&number| self.pairs.is(number, name, value)) {
            Some(number) => number,
            None => self.pairs.intern_tagged(part.tag, name, value),
        };
        match self.postings.get_mut(pair as usize) {
            Some(posting) => posting.insert(id),
            None => {
                self.postings.insert(pair as usize, Posting::One(id));
                if let Some(name) = self.named.get_mut(name as usize) {
                    name.pairs.insert(pair);
                }
            }
        }
        pair
    }

    /// Inserts series under the names of their labels: as one group if the names
    /// are the same.
    fn name_all(&mut self, come: &[(u64, &[u8])], parts: &[Part<'_>], ends: &[usize]) {
        let parts_of = |at: usize| {
            let start = at.checked_sub(1).map_or(0, |before| ends[before]);
            &parts[start..ends[at]]
        };
        let mut first = 0;
        while first < come.len() {
            let names = parts_of(first);
            let is_alike = |&at: &usize| {
                let theirs = parts_of(at).iter().map(|part| part.name);
                theirs.eq(names.iter().map(|part| part.name))
            };
            let alike = (first + 1..come.len()).take_while(is_alike).count() + 1;
            let mut ids: Vec<u64> = come[first..first + alike]
                .iter()
                .map(|(id, _)| *id)
                .collect();
            ids.sort_unstable();
            let ids = Ids::from_ascending(ids.into_iter());
            for part in names {
                if let Some(name) = self.named.get_mut(part.name as usize) {
                    name.series.add_all(&ids);
                }
            }
            first += alike;
        }
    }

    /// The number of the name at `place` among a series' labels.
    fn intern_name(&mut self, place: usize, name: &[u8]) -> u32 {
        if let Some((recent, number)) = self.recent.get(place)
            && **recent == *name
        {
            return *number;
        }
        let number = self.names.intern(0, name);
        if self.named.get(number as usize).is_none() {
            self.named.insert(number as usize, Name::default());
        }
        match self.recent.get_mut(place) {
            Some(recent) => *recent = (name.into(), number),
            None if place < RECENT_MAX => self.recent.push((name.into(), number)),
            None => {}
        }
        number
    }
}
