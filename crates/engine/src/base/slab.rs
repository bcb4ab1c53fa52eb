//! Values by number, in pages of a few places that take memory by the values in them.
//!
//! A page is a mask of the places that are filled, and their values in order. The value of a place
//! is found by the number of filled places before it. That number is the place itself where a page
//! has no gap, as most have: such a lookup is that of a vector.
//!
//! A value stays where it was put until a neighbour of its page comes or goes. On the path of new
//! series, which come in the order of their places, nothing moves: a page that goes on where
//! values stand gets the memory of all of its places at once, so that growth never copies what is
//! there and never pauses a writer. Other pages grow and shrink with their values.
//!
//! Invariants of a page:
//! 1. It has as many values as its mask has bits set.
//! 2. More than half of its memory is in use since it last lost a value. Without values it has none.
//!
//! Tested by random changes beside a map, and by the memory of sparse and of dense slabs.

use super::pages::{self, Pages};
use latewood_codec::prefetch;
use std::ops::Range;

/// Places of a page: the bits of its mask.
const PAGE_PLACES: usize = u64::BITS as usize;

/// Bytes of a page, at most: the allocator's largest small size. What is larger
/// gets pages of the system's to itself, one more than it needs.
const PAGE_BYTES_MAX: usize = 14 * 1024;

/// Bytes that come from memory together.
const CACHE_LINE_BYTES: usize = 64;

/// A growing array of places for values.
pub(crate) struct Slab<T> {
    pages: Pages<Page<T>>,
}

/// Places side by side.
struct Page<T> {
    /// A bit for each place that has a value.
    filled: u64,
    values: Vec<T>,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            pages: Pages::default(),
        }
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            filled: 0,
            values: Vec::new(),
        }
    }
}

impl<T> pages::Page for Page<T> {
    fn is_empty(&self) -> bool {
        self.values.is_empty()
    }
}

impl<T> Page<T> {
    /// Where in `values` the value of a place is, if it has one. Without gaps the value may be
    /// missing: the index is then past the end.
    #[inline]
    fn find(&self, place: usize) -> Option<usize> {
        if self.has_no_gap() {
            Some(place)
        } else {
            self.find_between_gaps(place)
        }
    }

    /// Out of line: a population count is long where the processor is not known to have it.
    #[cold]
    fn find_between_gaps(&self, place: usize) -> Option<usize> {
        (self.filled >> place & 1 == 1).then(|| self.rank(place))
    }

    /// Whether the filled places are the first ones.
    #[inline]
    fn has_no_gap(&self) -> bool {
        self.filled & self.filled.wrapping_add(1) == 0
    }

    /// The number of filled places before `place`.
    fn rank(&self, place: usize) -> usize {
        (self.filled & ((1 << place) - 1)).count_ones() as usize
    }

    /// Puts a value at a place that has none.
    fn put(&mut self, place: usize, value: T) {
        if self.has_no_gap() && place == self.values.len() {
            self.values.push(value);
        } else {
            self.values.insert(self.rank(place), value);
        }
        self.filled |= 1 << place;
    }
}

/// What tells the places of a page's values, called for each of them in order.
fn places(number: usize, filled: u64) -> impl FnMut() -> usize {
    let mut left = filled;
    move || {
        let place = left.trailing_zeros() as usize;
        left &= left.wrapping_sub(1);
        number * PAGE_PLACES + place
    }
}

impl<T> Slab<T> {
    /// One more than the highest place there is.
    pub(crate) fn places(&self) -> usize {
        self.pages.end() * PAGE_PLACES
    }

    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        let page = self.pages.get(place / PAGE_PLACES)?;
        page.values.get(page.find(place % PAGE_PLACES)?)
    }

    /// Asks for the memory of a place, of as much as `T` keeps what is used most
    /// in: the two cache lines that its beginning may lie in.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        let page = self.pages.get(place / PAGE_PLACES);
        if let Some(page) = page
            && let Some(index) = page.find(place % PAGE_PLACES)
        {
            let at = page.values.as_ptr().wrapping_add(index).cast::<u8>();
            prefetch(at);
            prefetch(at.wrapping_add(CACHE_LINE_BYTES));
        }
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let page = self.pages.get_mut(place / PAGE_PLACES)?;
        let index = page.find(place % PAGE_PLACES)?;
        page.values.get_mut(index)
    }

    /// Puts `value` at `place`; what stood there comes back.
    pub(crate) fn insert(&mut self, place: usize, value: T) -> Option<T> {
        const { assert!(PAGE_PLACES * size_of::<T>() <= PAGE_BYTES_MAX) }
        let mut page = self.pages.ensure(place / PAGE_PLACES);
        let index = page.find(place % PAGE_PLACES);
        if let Some(held) = index.and_then(|index| page.values.get_mut(index)) {
            return Some(std::mem::replace(held, value));
        }
        if page.values.len() == page.values.capacity() {
            page = self.grow(place);
        }
        page.put(place % PAGE_PLACES, value);
        None
    }

    /// Makes room for a value at `place`, whose page is full.
    ///
    /// A page that begins behind a value gets the memory of all places: the next ones are likely to
    /// be filled too. Others grow by a quarter: what is unused stays little, and a page that fills
    /// up moves its values as often as an insertion in their middle does.
    #[cold]
    fn grow(&mut self, place: usize) -> &mut Page<T> {
        let goes_on =
            place.is_multiple_of(PAGE_PLACES) && (place == 0 || self.get(place - 1).is_some());
        let page = self.pages.ensure(place / PAGE_PLACES);
        let more = match page.values.len() {
            0 if goes_on => PAGE_PLACES,
            held => (held / 4 + 1).min(PAGE_PLACES - held),
        };
        page.values.reserve_exact(more);
        page
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let number = place / PAGE_PLACES;
        let page = self.pages.get_mut(number)?;
        let index = page.find(place % PAGE_PLACES)?;
        if index >= page.values.len() {
            return None;
        }
        let old = page.values.remove(index);
        page.filled &= !(1 << (place % PAGE_PLACES));
        if page.values.is_empty() {
            self.pages.reset(number);
        } else if page.values.len() <= page.values.capacity() / 2 {
            page.values.shrink_to_fit();
        }
        Some(old)
    }

    /// The number of values. Linear in the pages.
    pub(crate) fn len(&self) -> usize {
        self.pages.iter().map(|(_, page)| page.values.len()).sum()
    }

    /// The values in order, each with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.iter_from(0)
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.pages.iter_mut().flat_map(|(number, page)| {
            let mut place = places(number, page.filled);
            page.values.iter_mut().map(move |value| (place(), value))
        })
    }

    /// The same from a place on. Places without a value cost nothing, blocks of pages without one a look.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = (usize, &T)> {
        self.iter_in(place..usize::MAX)
    }

    /// The same in some places. No page behind them is looked at.
    pub(crate) fn iter_in(&self, wanted: Range<usize>) -> impl Iterator<Item = (usize, &T)> {
        let end = wanted.end.div_ceil(PAGE_PLACES);
        let pages = self.pages.iter_in(wanted.start / PAGE_PLACES, end);
        let all = pages.flat_map(|(number, page)| {
            let mut place = places(number, page.filled);
            page.values.iter().map(move |value| (place(), value))
        });
        let all = all.skip_while(move |(at, _)| *at < wanted.start);
        all.take_while(move |(at, _)| *at < wanted.end)
    }

    /// The values of the first page with values from `page` on, and the number of the page behind
    /// it; `None` if there is none.
    pub(crate) fn page_from(&self, page: usize) -> Option<(usize, impl Iterator<Item = &T>)> {
        let mut pages = self.pages.iter_from(page);
        let (number, page) = pages.find(|(_, page)| page.filled > 0)?;
        Some((number + 1, page.values.iter()))
    }

    /// All values, in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        self.pages.iter().flat_map(|(_, page)| &page.values)
    }

    /// Bytes of memory of the pages, what the values own aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        let places = self.pages.iter().map(|(_, page)| page.values.capacity());
        self.pages.memory_bytes() + places.sum::<usize>() * size_of::<T>()
    }

    pub(crate) fn clear(&mut self) {
        self.pages = Pages::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::io::sim::{SimRandom, seed};
    use std::collections::BTreeMap;

    /// A value as large as a series.
    type Wide = [u64; 20];

    /// Places of ids that are small, and of ids of 48 bits.
    fn spread(number: u64) -> usize {
        number as usize | if number > 700 { 1 << 44 } else { 0 }
    }

    fn all(map: &BTreeMap<usize, String>) -> impl Iterator<Item = (usize, &String)> {
        map.iter().map(|(&place, value)| (place, value))
    }

    fn assert_same(slab: &mut Slab<String>, map: &BTreeMap<usize, String>, from: usize) {
        assert!(slab.iter().eq(all(map)));
        assert!(slab.values().eq(map.values()));
        let behind = || all(map).skip_while(|(place, _)| *place < from);
        assert!(slab.iter_from(from).eq(behind()), "from {from}");
        for to in [from, from + 1, from + 100, 1 << 45] {
            let within = behind().take_while(|(place, _)| *place < to);
            assert!(slab.iter_in(from..to).eq(within), "from {from} to {to}");
        }
        let (mut page, mut paged) = (0, Vec::new());
        while let Some((next, values)) = slab.page_from(page) {
            paged.extend(values);
            page = next;
        }
        assert!(paged.into_iter().eq(map.values()));
        assert_eq!(slab.len(), map.len());
        assert!(slab.places() > map.last_key_value().map_or(0, |(&place, _)| place));
        let to_change = slab.iter_mut().map(|(place, value)| (place, &*value));
        assert!(to_change.eq(all(map)));
    }

    #[test]
    fn random_changes_match_a_map() {
        let random = SimRandom::new(seed());
        let (mut slab, mut map) = (Slab::default(), BTreeMap::new());
        for step in 0..40_000u64 {
            // Pages fill up and empty in turns.
            let removals = if step / 4_000 % 2 == 0 { 1 } else { 5 };
            let place = spread(random.below(1_000));
            if random.below(6) < removals {
                assert_eq!(slab.remove(place), map.remove(&place), "{place} in {step}");
            } else {
                let value = step.to_string();
                let old = map.insert(place, value.clone());
                assert_eq!(slab.insert(place, value), old, "{place} in {step}");
            }
            let other = spread(random.below(1_200));
            slab.prefetch(other);
            assert_eq!(slab.get(other), map.get(&other), "{other} after {step}");
            assert_eq!(slab.get_mut(other), map.get_mut(&other));
            if step % 97 == 0 {
                assert_same(&mut slab, &map, spread(random.below(1_200)));
            }
        }
        for place in std::mem::take(&mut map).into_keys() {
            assert!(slab.remove(place).is_some());
        }
        assert_same(&mut slab, &map, 0);
        assert_eq!(
            slab.memory_bytes(),
            slab.pages.memory_bytes(),
            "empty pages hold nothing"
        );
        slab.clear();
        assert_eq!((slab.memory_bytes(), slab.places()), (0, 0));
    }

    fn bytes_each(slab: &Slab<Wide>) -> usize {
        slab.memory_bytes() / slab.len()
    }

    #[test]
    fn one_value_in_a_hundred_takes_little_more_than_itself() {
        const PLACES: usize = 200_000;
        let random = SimRandom::new(seed());
        // In order, in any order, and what is left of all.
        let (mut ordered, mut scattered, mut left) =
            (Slab::default(), Slab::default(), Slab::default());
        for place in 0..PLACES {
            left.insert(place, Wide::default());
        }
        for place in 0..PLACES {
            if random.below(100) == 0 {
                ordered.insert(place, Wide::default());
                scattered.insert(random.below(PLACES as u64) as usize, Wide::default());
            } else {
                left.remove(place);
            }
        }
        let each = [ordered, scattered, left].map(|slab| bytes_each(&slab));
        println!("{each:?} bytes");
        assert!(each.iter().all(|&bytes| bytes <= 350), "{each:?} bytes");
    }

    #[test]
    fn places_that_are_left_take_next_to_nothing() {
        let mut slab = Slab::default();
        for place in 0..1_000_000 {
            slab.insert(place, Wide::default());
            if let Some(left) = place.checked_sub(1_000) {
                slab.remove(left);
            }
        }
        let own = 1_000 * size_of::<Wide>();
        let beside = slab.memory_bytes() - own;
        assert!(beside < own / 2, "{beside} bytes beside {own}");
        assert_eq!(slab.len(), 1_000);
    }

    #[test]
    fn values_in_order_never_move() {
        let mut slab = Slab::default();
        let mut put = Vec::new();
        for place in 0..10_000 {
            slab.insert(place, Wide::default());
            put.push(std::ptr::from_ref(slab.get(place).unwrap()));
        }
        let held = slab.values().map(std::ptr::from_ref);
        assert!(held.eq(put));
        assert!(bytes_each(&slab) <= size_of::<Wide>() + 2);
    }
}
