//! The series of one shard, by local number.
//!
//! A series stays where it was put: the slab grows by whole pages, so that
//! growth never copies what is there and never pauses a writer.

use super::Series;

const PAGE_SERIES: usize = 256;

/// A growing array of places for series.
#[derive(Default)]
pub(crate) struct Slab {
    pages: Vec<Vec<Option<Series>>>,
}

impl Slab {
    /// One more than the highest place ever filled.
    pub(crate) fn places(&self) -> usize {
        self.pages.len() * PAGE_SERIES
    }

    pub(crate) fn get(&self, place: usize) -> Option<&Series> {
        self.pages
            .get(place / PAGE_SERIES)?
            .get(place % PAGE_SERIES)?
            .as_ref()
    }

    pub(crate) fn get_mut(&mut self, place: usize) -> Option<&mut Series> {
        self.pages
            .get_mut(place / PAGE_SERIES)?
            .get_mut(place % PAGE_SERIES)?
            .as_mut()
    }

    /// Puts `series` at `place`; what stood there comes back.
    pub(crate) fn insert(&mut self, place: usize, series: Series) -> Option<Series> {
        let page = place / PAGE_SERIES;
        while self.pages.len() <= page {
            self.pages.push((0..PAGE_SERIES).map(|_| None).collect());
        }
        self.pages[page][place % PAGE_SERIES].replace(series)
    }

    pub(crate) fn remove(&mut self, place: usize) -> Option<Series> {
        let page = self.pages.get_mut(place / PAGE_SERIES)?;
        page.get_mut(place % PAGE_SERIES)?.take()
    }

    /// The number of pages.
    pub(crate) fn pages(&self) -> usize {
        self.pages.len()
    }

    /// The series of one page; none of a page that is no longer there.
    pub(crate) fn page(&self, page: usize) -> impl Iterator<Item = &Series> {
        self.pages.get(page).into_iter().flatten().flatten()
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
        assert!(slab.get(256).is_none() && slab.remove(9_999).is_none());
        assert!(slab.insert(3, named("again")).is_some());
        assert_eq!(held(&slab), ["0", "again", "700"]);
    }
}
