//! Evaluation of matchers: the series that pass them all.
//!
//! Begins with the positive matcher that the fewest series can pass, narrows by the
//! other positive ones, the smaller first, and excludes by the negative ones last.
//! If few series are left, each is looked up in the other lists instead of merging
//! whole lists.

use super::ids::Ids;
use super::inverted::Inverted;
use super::posting::Posting;
use latewood_model::{Matcher, Test};

/// Cost of one lookup in a list, in series of a merged list.
const MERGE_ADVANTAGE: u64 = 16;

/// The lists or sets of one matcher.
enum Ask<'a> {
    /// The union of these lists.
    Any(Vec<&'a Posting>),
    Set(&'a Ids),
}

impl Ask<'_> {
    /// The maximum number of series it can match.
    fn len(&self) -> u64 {
        match self {
            Self::Any(lists) => lists.iter().map(|list| list.len()).sum(),
            Self::Set(set) => set.len(),
        }
    }

    /// The series it matches.
    fn to_set(&self) -> Ids {
        match self {
            Self::Any(lists) => {
                let mut set = Ids::default();
                lists.iter().for_each(|list| list.add_to(&mut set));
                set
            }
            Self::Set(set) => (*set).clone(),
        }
    }

    fn contains(&self, id: u64) -> bool {
        match self {
            Self::Any(lists) => lists.iter().any(|list| list.contains(id)),
            Self::Set(set) => set.contains(id),
        }
    }

    /// Whether `found` is so small that lookups are cheaper than a merge.
    fn is_long_beside(&self, found: &Ids) -> bool {
        let lookups = match self {
            Self::Any(lists) => found.len().saturating_mul(lists.len() as u64),
            Self::Set(_) => found.len(),
        };
        lookups.saturating_mul(MERGE_ADVANTAGE) < self.len()
    }

    /// Keeps in `found` only the series it matches.
    fn narrow(&self, found: &mut Ids) {
        if self.is_long_beside(found) {
            *found = found.iter().filter(|&id| self.contains(id)).collect();
            return;
        }
        match self {
            Self::Set(set) => found.keep_only(set),
            Self::Any(lists) => match lists[..] {
                [Posting::Bitmap(ids)] => found.keep_only(ids),
                _ => found.keep_only(&self.to_set()),
            },
        }
    }

    /// Removes from `found` the series it matches.
    fn exclude(&self, found: &mut Ids) {
        if self.is_long_beside(found) {
            *found = found.iter().filter(|&id| !self.contains(id)).collect();
            return;
        }
        match self {
            Self::Any(lists) => lists.iter().for_each(|list| list.take_from(found)),
            Self::Set(set) => found.remove_all(set),
        }
    }
}

impl Inverted {
    /// The maximum number of series that pass all `matchers`: takes no memory, and reads no file, so
    /// all series whose labels are filed may pass.
    pub(crate) fn select_max(&self, matchers: &[Matcher]) -> u64 {
        let most = |Matcher { name, test }: &Matcher| match test {
            Test::AnyOf(values) => {
                let lists = values.iter().filter_map(|value| self.posting(name, value));
                Some(lists.map(Posting::len).sum())
            }
            Test::Present => Some(self.name(name).map_or(0, |name| name.series.len())),
            Test::NoneOf(_) | Test::Absent => None,
        };
        let fewest = matchers.iter().filter_map(most).min();
        fewest.unwrap_or_else(|| self.series().len()) + self.filed.len()
    }

    /// The series that pass all `matchers`, of those whose labels are in memory; all of these if there
    /// are no matchers.
    pub(crate) fn select(&self, matchers: &[Matcher]) -> Ids {
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
