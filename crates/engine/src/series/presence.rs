//! Where a series is: *awake*, in memory; *parked*, in files alone; or *gone*.
//!
//! A place of the slab without a series says nothing about the series: it may be parked. So who
//! takes absence for removal, or walks over all series, asks for the [`Presence`], and who changes
//! a series wakes it first ([`crate::keyspace::park`]). Only who looks for what awake series alone
//! have, such as a head, looks into the slab; the house rules demand that it says so.
//!
//! Invariants:
//! 1. A series is awake, parked or gone: never two of these. One that is gone never returns.
//! 2. A parked series is what its row says: it has no head, frozen or not, no late operation, no
//!    dirty, failed or in-flight bucket, no history left, and a key. It answers as if it were awake.
//! 3. Its row in the files is as good as the one that is at hand here, if one is.
//!
//! Tested by `recovery/tests/parked.rs` and the model test.

use super::{Marks, Series};
use crate::series::rules::{Link, Source};
use crate::series::shard::ShardState;
use crate::series::stored::Persisted;
use crate::storage::block::CurrentBlocks;
use crate::storage::files::row::SeriesRow;
use latewood_model::{SeriesId, Timestamp};
use roaring::RoaringTreemap;
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use std::sync::Arc;

/// Where a series is. See the module.
pub(crate) enum Presence<'a> {
    Awake(&'a Series),
    /// As it would be awake.
    Parked(Box<Series>),
    /// Parked, and its row was not read: it has nothing of what is asked for.
    Filed,
    Gone,
}

impl Presence<'_> {
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Self::Gone)
    }

    /// The series, unless it is gone or was not read.
    pub(crate) fn series(&self) -> Option<&Series> {
        match self {
            Self::Awake(series) => Some(series),
            Self::Parked(series) => Some(series),
            Self::Filed | Self::Gone => None,
        }
    }
}

/// A parked series.
#[derive(Clone)]
pub(crate) struct Parked {
    pub(crate) row: SeriesRow,
    /// The rule that writes to it. Its row does not say so yet.
    pub(crate) link: Option<Link>,
    /// The numbers of its own rules, in their order.
    numbers: Vec<u64>,
}

/// Rows at hand of a shard that are in files too, at most: no more are brought together.
pub(crate) const BROUGHT_MAX: usize = 1024;

/// Series whose newest samples are known, of a shard: on the time three have to agree.
const NEWEST_MAX: usize = 4;

/// The parked series of a shard, by their places.
#[derive(Default)]
pub(crate) struct ParkedSeries {
    /// Those that a file of parked series holds.
    filed: RoaringTreemap,
    /// Rows at hand.
    held: BTreeMap<usize, Box<Parked>>,
    /// Places of rows at hand that are in files too, the oldest first; some may be gone.
    brought: VecDeque<usize>,
    /// The newest samples of those in files that have the newest ones, with their places.
    newest: Vec<(Timestamp, usize)>,
    /// Those that are gone, but whose newest row a file of parked series has: no file says so yet.
    gone: RoaringTreemap,
}

impl ParkedSeries {
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.filed.is_empty() && self.held.is_empty()
    }

    /// The number of parked series. Linear in the rows at hand.
    pub(crate) fn len(&self) -> usize {
        let only_here = self.held.keys().filter(|place| !self.is_filed(**place));
        self.filed.len() as usize + only_here.count()
    }

    pub(crate) fn contains(&self, place: usize) -> bool {
        self.is_filed(place) || self.held.contains_key(&place)
    }

    /// Whether a file of parked series holds its row.
    pub(crate) fn is_filed(&self, place: usize) -> bool {
        self.filed.contains(place as u64)
    }

    /// Its row, if it is at hand.
    pub(crate) fn held(&self, place: usize) -> Option<&Parked> {
        self.held.get(&place).map(|parked| &**parked)
    }

    /// How many of these places have a row in a file of parked series that counts, those of awake
    /// series aside.
    pub(crate) fn count_counting(&self, places: &Range<usize>) -> u64 {
        let places = places.start as u64..places.end as u64;
        self.filed.range_cardinality(places.clone()) + self.gone.range_cardinality(places)
    }

    /// A series is gone, and no file says so yet: the newest one that mentions it has it as parked.
    pub(crate) fn note_gone(&mut self, place: usize) {
        self.gone.insert(place as u64);
    }

    /// A file says that it is gone, or is about to.
    pub(crate) fn forget_gone(&mut self, place: usize) {
        self.gone.remove(place as u64);
    }

    /// Whether it is gone, and no file says so yet: see [`ParkedSeries::note_gone`].
    pub(crate) fn is_gone(&self, place: usize) -> bool {
        self.gone.contains(place as u64)
    }

    /// The places of parked series from a place on, in order.
    pub(crate) fn iter_from(&self, place: usize) -> impl Iterator<Item = usize> + use<'_> {
        let mut filed = self.filed.iter();
        filed.advance_to(place as u64);
        let mut filed = filed.map(|place| place as usize).peekable();
        let held = self.held.range(place..).map(|(place, _)| *place);
        let mut only_held = held.filter(|place| !self.is_filed(*place)).peekable();
        std::iter::from_fn(move || {
            let next = only_held.peek().copied().unwrap_or(usize::MAX);
            filed
                .next_if(|place| *place < next)
                .or_else(|| only_held.next())
        })
    }

    /// Those whose rows are at hand, from a place on, in order.
    pub(crate) fn held_from(&self, place: usize) -> impl Iterator<Item = (usize, &Parked)> {
        let held = self.held.range(place..);
        held.map(|(place, parked)| (*place, &**parked))
    }

    /// Its row, if it is at hand, to change it.
    fn held_mut(&mut self, place: usize) -> Option<&mut Parked> {
        self.held.get_mut(&place).map(|parked| &mut **parked)
    }

    /// A file of parked series holds it from now on; when its newest sample was.
    pub(crate) fn note_filed(&mut self, place: usize, newest: Option<Timestamp>) {
        self.filed.insert(place as u64);
        self.newest.extend(newest.map(|at| (at, place)));
        if self.newest.len() > NEWEST_MAX {
            self.newest.sort_unstable_by_key(|&(at, _)| Reverse(at));
            self.newest.truncate(NEWEST_MAX);
        }
    }

    /// The newest samples of those that have the newest ones: of series that woke since, none.
    pub(crate) fn newest(&self) -> impl Iterator<Item = Timestamp> {
        let held = self.held.iter();
        let only_held = held.filter(|(place, _)| !self.is_filed(**place));
        let only_held = only_held.filter_map(|(_, parked)| parked.row.newest);
        self.newest.iter().map(|&(at, _)| at).chain(only_held)
    }

    /// Keeps a row at hand. One that is in no file stays until its series wakes.
    pub(crate) fn hold(&mut self, place: usize, parked: Parked) {
        if self.is_filed(place) {
            self.brought.push_back(place);
        }
        self.held.insert(place, Box::new(parked));
        while self.brought.len() > BROUGHT_MAX {
            if let Some(place) = self.brought.pop_front()
                && self.is_filed(place)
            {
                self.held.remove(&place);
            }
        }
    }

    /// A series is parked no more; its row, if that is at hand.
    pub(crate) fn remove(&mut self, place: usize) -> Option<Parked> {
        if self.filed.remove(place as u64) {
            self.newest.retain(|&(_, held)| held != place);
        }
        self.held.remove(&place).map(|parked| *parked)
    }

    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Bytes of memory it takes.
    pub(crate) fn memory_bytes(&self) -> usize {
        let held = self.held.values().map(|parked| {
            let row = &parked.row;
            size_of::<Parked>() + row.key.len() + row.options.labels.as_bytes().len()
        });
        self.filed.serialized_size() + self.gone.serialized_size() + held.sum::<usize>()
    }
}

impl Parked {
    /// The series of a row; `number` returns the number of each of its rules.
    pub(crate) fn new(row: SeriesRow, mut number: impl FnMut() -> u64) -> Self {
        let rules = row.source.iter().flat_map(|source| &source.rules);
        Self {
            numbers: rules.map(|_| number()).collect(),
            link: None,
            row,
        }
    }

    /// The series that the row was made of.
    pub(crate) fn into_series(self, blocks: &Arc<CurrentBlocks>) -> Series {
        let row = self.row;
        let mut series = Series::new(row.key, &row.options);
        series.marks = Marks::new(row.made_by);
        let persisted = Persisted {
            newest: row.newest,
            newest_value: row.last_value,
            flushed_last: row.flushed_last,
            holds_nan: row.holds_nan,
        };
        series.restore(row.id, persisted, blocks);
        if let Some(source) = row.source {
            let mut numbers = self.numbers.into_iter();
            let number = || numbers.next().expect("each of its rules has a number");
            series.set_rules(Source::restore(*source, number));
        }
        if self.link.is_some() {
            series.set_link(self.link);
        }
        series
    }
}

impl ShardState {
    /// Whether the series `id`, which belongs to this shard, is parked.
    #[inline]
    pub(crate) fn is_parked(&self, id: SeriesId) -> bool {
        !self.parked.is_empty() && self.parked.contains(id.0 as usize >> self.stride_log2)
    }

    /// Gives a destination its end of a rule. Returns whether it is there and had none.
    pub(crate) fn tie(&mut self, destination: SeriesId, link: Link) -> bool {
        let place = destination.0 as usize >> self.stride_log2;
        if let Some(series) = self.slab.get_mut(place)
            && series.link().is_none()
        {
            series.set_link(Some(link));
        } else if let Some(parked) = self.parked.held_mut(place)
            && parked.link.is_none()
        {
            parked.link = Some(link);
        } else {
            return false;
        }
        self.guarded += 1;
        true
    }
}

impl Series {
    /// Whether nothing of it is in memory alone, nobody works on it, and nobody has it for itself.
    pub(crate) fn is_at_rest(&self) -> bool {
        let stored = self.stored.as_ref();
        let is_frozen = stored.is_some_and(|stored| stored.frozen.is_some());
        let is_busy = self.has_head() || is_frozen || self.settling || self.ready || self.queued;
        !is_busy && !self.marks.is_outdated() && !self.marks.is_owned()
    }
}

#[cfg(test)]
impl Series {
    /// As a parked series, with this row; `None` if it must stay awake.
    pub(crate) fn parked(&self, row: SeriesRow) -> Option<Parked> {
        if !self.is_at_rest() {
            return None;
        }
        let rules = self.rules().map_or(&[][..], Source::rules).iter();
        let mut numbers = rules.map(|rule| rule.number);
        let parked = Parked {
            link: self.link(),
            ..Parked::new(row, || numbers.next().expect("the row has the same rules"))
        };
        parked.may_rest().then_some(parked)
    }
}

#[cfg(test)]
impl Parked {
    /// Whether nothing is left to do for it.
    pub(crate) fn may_rest(&self) -> bool {
        let source = self.row.source.clone();
        let source = source.map(|source| Source::restore(*source, || 0));
        let has_work =
            |source: Source| source.has_work() || source.has_failed() || source.has_history();
        !self.row.unnamed && !source.is_some_and(has_work)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_goes_as_a_whole_file_is_begun_is_not_gone_twice() {
        let mut state = ShardState::default();
        for place in [1, 2] {
            state.removed.push(SeriesId(place));
            state.parked.note_gone(place as usize);
        }
        // The whole file says it of the first; an older file still has the second.
        state.forget_removed(&(0..8), |id| id.0 == 2);
        assert_eq!(state.removed, [SeriesId(2)]);
        assert!(!state.parked.is_gone(1) && state.parked.is_gone(2));
    }
}
