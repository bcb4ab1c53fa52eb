//! From matchers to the series that pass them all.
//!
//! Begins with the wanted matcher that the fewest series can pass, narrows by
//! the other wanted ones, the smaller first, and takes away what is unwanted
//! last. Where little is left, each series is looked up in the other lists
//! instead of merging whole lists.

use super::inverted::Inverted;
use super::posting::Posting;
use latewood_model::{Matcher, Test};
use roaring::RoaringBitmap;

/// A list is so much cheaper to merge, per series, than a look into one.
const MERGE_ADVANTAGE: u64 = 16;

/// What one matcher asks of the index.
enum Ask<'a> {
    /// One of these lists.
    Any(Vec<&'a Posting>),
    /// This set.
    Set(&'a RoaringBitmap),
}

impl Ask<'_> {
    /// The most series it can mean.
    fn len(&self) -> u64 {
        match self {
            Self::Any(lists) => lists.iter().map(|list| list.len()).sum(),
            Self::Set(set) => set.len(),
        }
    }

    /// The series it means.
    fn to_set(&self) -> RoaringBitmap {
        match self {
            Self::Any(lists) => {
                let mut set = RoaringBitmap::new();
                lists.iter().for_each(|list| list.add_to(&mut set));
                set
            }
            Self::Set(set) => (*set).clone(),
        }
    }

    fn contains(&self, id: u32) -> bool {
        match self {
            Self::Any(lists) => lists.iter().any(|list| list.contains(id)),
            Self::Set(set) => set.contains(id),
        }
    }

    /// Whether so few are found that each is better looked up.
    fn is_long_beside(&self, found: &RoaringBitmap) -> bool {
        let lookups = match self {
            Self::Any(lists) => found.len().saturating_mul(lists.len() as u64),
            Self::Set(_) => found.len(),
        };
        lookups.saturating_mul(MERGE_ADVANTAGE) < self.len()
    }

    /// Leaves in `found` what it means, too.
    fn narrow(&self, found: &mut RoaringBitmap) {
        if self.is_long_beside(found) {
            *found = found.iter().filter(|&id| self.contains(id)).collect();
            return;
        }
        match self {
            Self::Set(set) => *found &= *set,
            Self::Any(lists) => match lists[..] {
                [Posting::Bitmap(ids)] => *found &= &**ids,
                _ => *found &= self.to_set(),
            },
        }
    }

    /// Takes from `found` what it means.
    fn exclude(&self, found: &mut RoaringBitmap) {
        if self.is_long_beside(found) {
            *found = found.iter().filter(|&id| !self.contains(id)).collect();
            return;
        }
        match self {
            Self::Any(lists) => lists.iter().for_each(|list| list.take_from(found)),
            Self::Set(set) => *found -= *set,
        }
    }
}

impl Inverted {
    /// The series that pass all `matchers`; all series without one.
    pub(crate) fn select(&self, matchers: &[Matcher]) -> RoaringBitmap {
        let (mut wanted, mut unwanted) = (Vec::new(), Vec::new());
        for Matcher { name, test } in matchers {
            let lists = |values: &[Box<[u8]>]| {
                let lists = values.iter().filter_map(|value| self.posting(name, value));
                Ask::Any(lists.collect())
            };
            let set = || match self.name(name) {
                Some(name) => Ask::Set(&name.series),
                None => Ask::Any(Vec::new()),
            };
            match test {
                Test::AnyOf(values) => wanted.push(lists(values)),
                Test::Present => wanted.push(set()),
                Test::NoneOf(values) => unwanted.push(lists(values)),
                Test::Absent => unwanted.push(set()),
            }
        }
        wanted.sort_by_cached_key(Ask::len);
        let mut asks = wanted.iter();
        let mut found = match asks.next() {
            Some(first) => first.to_set(),
            None => self.series().clone(),
        };
        for ask in asks {
            ask.narrow(&mut found);
        }
        for ask in &unwanted {
            ask.exclude(&mut found);
        }
        found
    }
}
