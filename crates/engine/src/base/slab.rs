//! Values by number, in pages.
//!
//! A value stays where it was put: the slab grows by whole pages, so that
//! growth never copies what is there and never pauses a writer. A page whose
//! last value goes gives its memory back.

use latewood_codec::prefetch;

/// Bytes of a page, at most: the allocator's largest small size. What is larger
/// gets pages of the system's to itself, one more than it needs.
const PAGE_BYTES: usize = 14 * 1024;

/// Bytes that come from memory together.
const CACHE_LINE_BYTES: usize = 64;

/// A growing array of places for values.
pub(crate) struct Slab<T> {
    pages: Vec<Page<T>>,
}

/// Places side by side; no memory while none is filled.
struct Page<T> {
    places: Vec<Option<T>>,
    filled: usize,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { pages: Vec::new() }
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
        self.pages.len() * Self::PAGE_PLACES
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
        let index = place / Self::PAGE_PLACES;
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, Page::default);
        }
        let page = &mut self.pages[index];
        if page.places.is_empty() {
            page.places.resize_with(Self::PAGE_PLACES, || None);
        }
        let old = page.places[place % Self::PAGE_PLACES].replace(value);
        page.filled += usize::from(old.is_none());
        old
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<T> {
        let page = self.pages.get_mut(place / Self::PAGE_PLACES)?;
        let old = page.places.get_mut(place % Self::PAGE_PLACES)?.take()?;
        page.filled -= 1;
        if page.filled == 0 {
            page.places = Vec::new();
        }
        Some(old)
    }

    /// The number of values. Linear in the pages.
    pub(crate) fn len(&self) -> usize {
        self.pages.iter().map(|page| page.filled).sum()
    }

    /// The values in order, each with its place.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (usize, &T)> {
        self.iter_from(0)
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut T)> {
        let pages = self.pages.iter_mut().enumerate();
        pages.flat_map(|(number, page)| {
            let places = (number * Self::PAGE_PLACES..).zip(&mut page.places);
            places.filter_map(|(place, value)| Some((place, value.as_mut()?)))
        })
    }

    /// The same from a place on. Places without a value cost a look for each
    /// page at most, where whole pages have none.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = (usize, &T)> {
        let first = place / Self::PAGE_PLACES;
        let pages = self.pages.iter().enumerate().skip(first);
        let all = pages.flat_map(|(number, page)| {
            let places = (number * Self::PAGE_PLACES..).zip(&page.places);
            places.filter_map(|(place, value)| Some((place, value.as_ref()?)))
        });
        all.skip_while(move |(at, _)| *at < place)
    }

    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The values of one page; none of a page that is no longer there.
    pub(crate) fn page(&self, page: usize) -> impl Iterator<Item = &T> {
        let page = self.pages.get(page).into_iter();
        page.flat_map(|page| page.places.iter().flatten())
    }

    /// Bytes of memory of the pages, what the values own aside.
    pub(crate) fn memory_bytes(&self) -> usize {
        let filled = self.pages.iter().filter(|page| page.filled > 0).count();
        self.pages.capacity() * size_of::<Page<T>>()
            + filled * Self::PAGE_PLACES * size_of::<Option<T>>()
    }

    pub(crate) fn clear(&mut self) {
        self.pages = Vec::new();
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
        let held = |slab: &Slab<String>| -> Vec<String> {
            let all = (0..slab.pages()).flat_map(|page| slab.page(page));
            all.cloned().collect()
        };
        assert_eq!(held(&slab), ["0", "3", "1000", "2000"]);
        let places = |from| slab.iter_from(from).map(|(place, _)| place);
        assert_eq!(places(0).collect::<Vec<_>>(), [0, 3, 1_000, 2_000]);
        assert_eq!(places(4).collect::<Vec<_>>(), [1_000, 2_000]);
        assert_eq!(places(2_001).count(), 0);
        assert_eq!(slab.len(), 4);
        let full = slab.memory_bytes();
        assert_eq!(slab.remove(1_000).unwrap(), "1000");
        assert!(slab.memory_bytes() < full, "an empty page holds nothing");
        assert!(slab.get(1_000).is_none() && slab.remove(9_999).is_none());
        assert!(slab.insert(3, "again".to_owned()).is_some());
        assert_eq!(held(&slab), ["0", "again", "2000"]);
    }
}
