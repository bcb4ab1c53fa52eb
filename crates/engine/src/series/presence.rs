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
//! 4. Of those in files it is known which are linked: sources of compaction rules, and destinations.
//!    The others are not read for what rules ask.
//!
//! Tested by `recovery/tests/parked.rs` and the model test.

use super::{Marks, Series};
use crate::series::rules::Source;
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
    /// Parked, and its row was not read: it is no end of a compaction rule, which was asked for.
    Filed,
    Gone,
}

impl Presence<'_> {
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
}

/// Which ends of compaction rules a series is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Linked {
    pub(crate) is_source: bool,
    pub(crate) is_destination: bool,
}

/// Rows at hand of a shard that are in files too, at most: no more are brought together.
pub(crate) const BROUGHT_MAX: usize = 1024;

/// Series whose newest samples are known, of a shard: on the time three have to agree.
const NEWEST_MAX: usize = 4;

/// Changes after which a set of places is made small again: most are runs.
const LOOSE_MAX: usize = if cfg!(test) { 8 } else { 4096 };

/// The parked series of a shard, by their places.
#[derive(Default)]
pub(crate) struct ParkedSeries {
    /// Those that a file of parked series holds.
    filed: RoaringTreemap,
    /// Those of these that are sources of compaction rules, and destinations.
    sources: RoaringTreemap,
    destinations: RoaringTreemap,
    /// Rows at hand.
    held: BTreeMap<usize, Box<Parked>>,
    /// Places of rows at hand that are in files too, the oldest first; some may be gone.
    brought: VecDeque<usize>,
    /// The newest samples of those in files that have the newest ones, with their places.
    newest: Vec<(Timestamp, usize)>,
    /// Those that are gone, but whose newest row a file of parked series has: no file says so yet.
    gone: RoaringTreemap,
    /// Changes of `filed` since it was made small.
    loose: usize,
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

    /// Whether it is parked and its row not at hand.
    pub(crate) fn is_away(&self, place: usize) -> bool {
        self.is_filed(place) && self.held(place).is_none()
    }

    /// Which ends of compaction rules it is.
    pub(crate) fn linked(&self, place: usize) -> Linked {
        match self.held(place).filter(|_| !self.is_filed(place)) {
            Some(parked) => Linked {
                is_source: parked.row.source.is_some(),
                is_destination: parked.row.link.is_some(),
            },
            None => Linked {
                is_source: self.sources.contains(place as u64),
                is_destination: self.destinations.contains(place as u64),
            },
        }
    }

    /// The places of those that have compaction rules, or are in memory alone, from a place on, in
    /// order.
    pub(crate) fn sources_from(&self, place: usize) -> impl Iterator<Item = usize> + use<'_> {
        ascending(self.only_held_from(place), places_in(&self.sources, place))
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
        ascending(self.only_held_from(place), places_in(&self.filed, place))
    }

    fn only_held_from(&self, place: usize) -> impl Iterator<Item = usize> + use<'_> {
        let held = self.held.range(place..).map(|(place, _)| *place);
        held.filter(|place| !self.is_filed(*place))
    }

    /// Its row, if it is at hand, to change it.
    fn held_mut(&mut self, place: usize) -> Option<&mut Parked> {
        self.held.get_mut(&place).map(|parked| &mut **parked)
    }

    /// A file of parked series holds it from now on; when its newest sample was.
    pub(crate) fn note_filed(&mut self, place: usize, newest: Option<Timestamp>, linked: Linked) {
        self.filed.insert(place as u64);
        self.note_loose();
        if linked.is_source {
            self.sources.insert(place as u64);
        }
        if linked.is_destination {
            self.destinations.insert(place as u64);
        }
        self.newest.extend(newest.map(|at| (at, place)));
        if self.newest.len() > NEWEST_MAX {
            self.newest.sort_unstable_by_key(|&(at, _)| Reverse(at));
            self.newest.truncate(NEWEST_MAX);
        }
    }

    /// Notes a change of `filed`.
    fn note_loose(&mut self) {
        self.loose += 1;
        if self.loose == LOOSE_MAX {
            self.loose = 0;
            self.filed.optimize();
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
            self.note_loose();
            self.sources.remove(place as u64);
            self.destinations.remove(place as u64);
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
        let places = [&self.filed, &self.sources, &self.destinations, &self.gone];
        let places = places.iter().map(|places| places.serialized_size());
        places.sum::<usize>() + held.sum::<usize>()
    }
}

/// Those of `places` from a place on.
fn places_in(places: &RoaringTreemap, from: usize) -> impl Iterator<Item = usize> + use<'_> {
    let mut places = places.iter();
    places.advance_to(from as u64);
    places.map(|place| place as usize)
}

/// Places of two lists that ascend and share none, in order.
pub(crate) fn ascending(
    one: impl Iterator<Item = usize>,
    other: impl Iterator<Item = usize>,
) -> impl Iterator<Item = usize> {
    let (mut one, mut other) = (one.peekable(), other.peekable());
    std::iter::from_fn(move || {
        let next = one.peek().copied().unwrap_or(usize::MAX);
        other.next_if(|place| *place < next).or_else(|| one.next())
    })
}

impl Parked {
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
            late: row.late,
        };
        series.restore(row.id, persisted, blocks);
        if let Some(source) = row.source {
            series.set_rules(Source::restore(*source));
        }
        if row.link.is_some() {
            series.set_link(row.link);
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

    /// Whether the row of a series must be read before the log is applied to it.
    #[inline]
    pub(crate) fn is_away(&self, id: SeriesId) -> bool {
        // awake: nothing has to be read, which of most series is known at once.
        self.series(id).is_none() && self.parked.is_away(id.0 as usize >> self.stride_log2)
    }

    /// Sets the source of the rule that writes to an awake series.
    pub(crate) fn set_link(&mut self, destination: SeriesId, source: Option<SeriesId>) {
        self.tie(destination, source);
        self.note_changed(destination);
    }

    /// The same as a start finds it, also for one whose row is in memory alone. Files of awake series
    /// do not say it.
    pub(crate) fn tie(&mut self, destination: SeriesId, source: Option<SeriesId>) {
        let place = destination.0 as usize >> self.stride_log2;
        // awake: else its row is looked for.
        if let Some(series) = self.slab.get_mut(place) {
            self.guarded -= usize::from(series.source().is_some());
            self.guarded += usize::from(source.is_some());
            if series.source() != source && series.marks.is_woken() {
                // The file of parked series names another one.
                series.marks.note_changed();
            }
            series.set_link(source);
        } else if let Some(parked) = self.parked.held_mut(place) {
            parked.row.link = source;
        }
    }
}

impl Series {
    /// Which ends of compaction rules it is.
    pub(crate) fn linked(&self) -> Linked {
        Linked {
            is_source: self.rules().is_some(),
            is_destination: self.source().is_some(),
        }
    }

    /// Whether nothing of it is in memory alone, nothing is left to do for its rules, and nobody works
    /// on it.
    pub(crate) fn is_at_rest(&self) -> bool {
        let stored = self.stored.as_ref();
        let is_frozen = stored.is_some_and(|stored| stored.frozen.is_some());
        let is_busy = self.has_head() || is_frozen || self.ready || self.queued;
        let has_work =
            |source: &Source| source.has_work() || source.has_failed() || source.has_history();
        let is_busy = is_busy || self.rules().is_some_and(has_work);
        !is_busy && !self.marks.is_outdated()
    }
}

#[cfg(test)]
impl Series {
    /// As a parked series, with this row; `None` if it must stay awake.
    pub(crate) fn parked(&self, row: SeriesRow) -> Option<Parked> {
        let parked = Parked { row };
        (self.is_at_rest() && parked.may_rest()).then_some(parked)
    }
}

#[cfg(test)]
impl Parked {
    /// Whether nothing is left to do for it.
    pub(crate) fn may_rest(&self) -> bool {
        let source = self.row.source.as_ref();
        !self.row.unnamed && !source.is_some_and(|source| source.has_work())
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
