//! The series of one shard, by local number.
//!
//! A series stays where it was put: the slab grows by whole pages, so that
//! growth never copies what is there and never pauses a writer. Places are not
//! used again, but a page whose last series goes gives its memory back.

use super::Series;

const PAGE_SERIES: usize = 256;

/// A growing array of places for series.
#[derive(Default)]
pub(crate) struct Slab {
    pages: Vec<Page>,
}

/// Places side by side; no memory while none is filled.
#[derive(Default)]
struct Page {
    places: Vec<Option<Series>>,
    filled: usize,
}

impl Slab {
    /// One more than the highest place there is.
    pub(crate) fn places(&self) -> usize {
        self.pages.len() * PAGE_SERIES
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Series> {
        let page = self.pages.get(place / PAGE_SERIES)?;
        page.places.get(place % PAGE_SERIES)?.as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Series> {
        let page = self.pages.get_mut(place / PAGE_SERIES)?;
        page.places.get_mut(place % PAGE_SERIES)?.as_mut()
    }

    /// Puts `series` at `place`; what stood there comes back.
    pub(crate) fn insert(&mut self, place: usize, series: Series) -> Option<Series> {
        let index = place / PAGE_SERIES;
        if self.pages.len() <= index {
            self.pages.resize_with(index + 1, Page::default);
        }
        let page = &mut self.pages[index];
        if page.places.is_empty() {
            page.places.resize_with(PAGE_SERIES, || None);
        }
        let old = page.places[place % PAGE_SERIES].replace(series);
        page.filled += usize::from(old.is_none());
        old
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<Series> {
        let page = self.pages.get_mut(place / PAGE_SERIES)?;
        let old = page.places.get_mut(place % PAGE_SERIES)?.take()?;
        page.filled -= 1;
        if page.filled == 0 {
            page.places = Vec::new();
        }
        Some(old)
    }

    /// The number of pages.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The series of one page; none of a page that is no longer there.
    pub(crate) fn page(&self, page: usize) -> impl Iterator<Item = &Series> {
        let page = self.pages.get(page).into_iter();
        page.flat_map(|page| page.places.iter().flatten())
    }

    /// Forgets all series.
    pub(crate) fn clear(&mut self) {
        self.pages.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::SeriesOptions;

    fn named(name: &str) -> Series {
        Series::new(name.as_bytes().into(), SeriesOptions::default())
    }

    #[test]
    fn places_fill_in_any_order() {
        let mut slab = Slab::default();
        for place in [700, 3, 0, 256] {
            assert!(slab.insert(place, named(&place.to_string())).is_none());
        }
        let held = |slab: &Slab| -> Vec<String> {
            let all = (0..slab.pages()).flat_map(|page| slab.page(page));
            all.map(|series| String::from_utf8_lossy(&series.key).into())
                .collect()
        };
        assert_eq!(held(&slab), ["0", "3", "256", "700"]);
        assert_eq!(&*slab.remove(256).unwrap().key, b"256");
        assert!(
            slab.pages[1].places.is_empty(),
            "an empty page holds nothing"
        );
        assert!(slab.get(256).is_none() && slab.remove(9_999).is_none());
        assert!(slab.insert(3, named("again")).is_some());
        assert_eq!(held(&slab), ["0", "again", "700"]);
    }
}
