//! Values by number, in pages.
//!
//! A value stays where it was put: the slab grows by whole pages, so that
//! growth never copies what is there and never pauses a writer. A page whose
//! last value goes gives its memory back.

use crate::base::spread::Spread;
use latewood_codec::prefetch;

/// Bytes of a page, at most: the allocator's largest small size. What is larger
/// gets pages of the system's to itself, one more than it needs.
const PAGE_BYTES: usize = 14 * 1024;

/// Bytes that come from memory together.
const CACHE_LINE_BYTES: usize = 64;

/// Pages side by side: far more places than a shard has series.
const NEAR_PAGES: usize = 1 << 22;

/// A growing array of places for values.
pub(crate) struct Slab<T> {
    pages: Spread<Page<T>, NEAR_PAGES>,
}

/// Places side by side; no memory while none is filled.
struct Page<T> {
    places: Vec<Option<T>>,
    filled: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self {
            pages: Spread::default(),
        }
    }
}

impl<T> Default for Page<T> {
    fn default() -> Self {
        Self {
            places: Vec::new(),
            filled: 0,
        }
    }
}

impl<T> Slab<T> {
    const PAGE_PLACES: usize = PAGE_BYTES / size_of::<Option<T>>();

    /// One more than the highest place there is.
    pub(crate) fn places(&self) -> usize {
        self.pages.end() * Self::PAGE_PLACES
    }

    pub(crate) fn get(&self, place: usize) -> Option<&T> {
        let page = self.pages.get(place / Self::PAGE_PLACES)?;
        page.places.get(place % Self::PAGE_PLACES)?.as_ref()
    }

    /// Asks for the memory of a place, of as much as `T` keeps what is used most
    /// in: the two cache lines that its beginning may lie in.
    #[inline]
    pub(crate) fn prefetch(&self, place: usize) {
        let page = self.pages.get(place / Self::PAGE_PLACES);
        if let Some(at) = page.and_then(|page| page.places.get(place % Self::PAGE_PLACES)) {
            let at = std::ptr::from_ref(at).cast::<u8>();
            prefetch(at);
            prefetch(at.wrapping_add(CACHE_LINE_BYTES));
        }
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut T> {
        let page = self.pages.get_mut(place / Self::PAGE_PLACES)?;
        page.places.get_mut(place % Self::PAGE_PLACES)?.as_mut()
    }

    /// Puts `value` at `place`; what stood there comes back.
    pub(crate) fn insert(&mut self, place: usize, value: T) -> Option<T> {
        let page = self.pages.ensure(place / Self::PAGE_PLACES);
        if page.places.is_empty() {
            page.places.resize_with(Self::PAGE_PLACES, || None);
        }
        let old = page.places[place % Self::PAGE_PLACES].replace(value);
        page.filled += usize::from(old.is_none());
        old
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let number = place / Self::PAGE_PLACES;
        let page = self.pages.get_mut(number)?;
        let old = page.places.get_mut(place % Self::PAGE_PLACES)?.take()?;
        page.filled -= 1;
        if page.filled == 0 {
            self.pages.reset(number);
        }
        Some(old)
    }

    /// The number of values. Linear in the pages.
    pub(crate) fn len(&self) -> usize {
        self.pages.iter().map(|(_, page)| page.filled).sum()
    }

    /// The values in order, each with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.iter_from(0)
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        self.pages.iter_mut().flat_map(|(number, page)| {
            let places = (number * Self::PAGE_PLACES..).zip(&mut page.places);
            places.filter_map(|(place, value)| Some((place, value.as_mut()?)))
        })
    }

    /// The same from a place on. Places without a value cost a look for each
    /// page at most, where whole pages have none.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = (usize, &T)> {
        let pages = self.pages.iter_from(place / Self::PAGE_PLACES);
        let all = pages.flat_map(|(number, page)| {
            let places = (number * Self::PAGE_PLACES..).zip(&page.places);
            places.filter_map(|(place, value)| Some((place, value.as_ref()?)))
        });
        all.skip_while(move |(at, _)| *at < place)
    }

    /// The values of the first page with values from `page` on, and the number of the page behind
    /// it; `None` if there is none.
    pub(crate) fn page_from(&self, page: usize) -> Option<(usize, impl Iterator<Item = &T>)> {
        let mut pages = self.pages.iter_from(page);
        let (number, page) = pages.find(|(_, page)| page.filled > 0)?;
        Some((number + 1, page.places.iter().flatten()))
    }

    /// All values, in order.
    pub(crate) fn values(&self) -> impl Iterator<Item = &T> {
        let pages = self.pages.iter();
        pages.flat_map(|(_, page)| page.places.iter().flatten())
    }

    /// Bytes of memory of the pages, what the values own aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        let filled = self
            .pages
            .iter()
            .filter(|(_, page)| page.filled > 0)
            .count();
        self.pages.memory_bytes() + filled * Self::PAGE_PLACES * size_of::<Option<T>>()
    }

    pub(crate) fn clear(&mut self) {
        self.pages = Spread::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_fill_in_any_order() {
        let mut slab = Slab::default();
        // Pages hold 597 strings.
        for place in [2_000, 3, 0, 1_000] {
            assert!(slab.insert(place, place.to_string()).is_none());
        }
        let held = |slab: &Slab<String>| slab.values().cloned().collect::<Vec<_>>();
        assert_eq!(held(&slab), ["0", "3", "1000", "2000"]);
        let places = |slab: &Slab<String>, from| -> Vec<usize> {
            slab.iter_from(from).map(|(place, _)| place).collect()
        };
        assert_eq!(places(&slab, 0), [0, 3, 1_000, 2_000]);
        assert_eq!(places(&slab, 4), [1_000, 2_000]);
        assert!(places(&slab, 2_001).is_empty());
        assert_eq!(slab.len(), 4);
        let full = slab.memory_bytes();
        assert_eq!(slab.remove(1_000).unwrap(), "1000");
        assert!(slab.memory_bytes() < full, "an empty page holds nothing");
        assert!(slab.get(1_000).is_none() && slab.remove(9_999).is_none());
        assert!(slab.insert(3, "again".to_owned()).is_some());
        assert_eq!(held(&slab), ["0", "again", "2000"]);
        // A place of an id of 48 bits.
        let far = 1 << 44;
        assert!(slab.insert(far, "far".to_owned()).is_none());
        assert_eq!(places(&slab, 2_001), [far]);
        assert_eq!(slab.page_from(4).map(|(_, page)| page.count()), Some(1));
        assert!(slab.memory_bytes() < 2 * full && slab.get(far - 1).is_none());
        assert_eq!(slab.remove(far).as_deref(), Some("far"));
        assert!(slab.page_from(4).is_none() && slab.places() < far);
    }
}
