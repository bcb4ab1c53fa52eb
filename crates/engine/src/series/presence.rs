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
//! 3. Its row in the series files is as good as the one here.
//!
//! Nothing parks a series yet, but tests do: `recovery/tests/parked.rs`.

use super::{Marks, Series};
use crate::series::rules::{Link, Source};
use crate::series::shard::ShardState;
use crate::series::stored::Persisted;
use crate::storage::block::CurrentBlocks;
use crate::storage::files::row::SeriesRow;
use latewood_model::SeriesId;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Where a series is. See the module.
pub(crate) enum Presence<'a> {
    Awake(&'a Series),
    /// As it would be awake.
    Parked(Box<Series>),
    Gone,
}

impl Presence<'_> {
    pub(crate) fn is_there(&self) -> bool {
        !matches!(self, Self::Gone)
    }

    /// The series, unless it is gone.
    pub(crate) fn series(&self) -> Option<&Series> {
        match self {
            Self::Awake(series) => Some(series),
            Self::Parked(series) => Some(series),
            Self::Gone => None,
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

/// The parked series of a shard, by their places.
pub(crate) type ParkedSeries = BTreeMap<usize, Box<Parked>>;

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
        !self.parked.is_empty()
            && self
                .parked
                .contains_key(&(id.0 as usize >> self.stride_log2))
    }

    /// Gives a destination its end of a rule. Returns whether it is there and had none.
    pub(crate) fn tie(&mut self, destination: SeriesId, link: Link) -> bool {
        let place = destination.0 as usize >> self.stride_log2;
        if let Some(series) = self.slab.get_mut(place)
            && series.link().is_none()
        {
            series.set_link(Some(link));
        } else if let Some(parked) = self.parked.get_mut(&place)
            && parked.link.is_none()
        {
            parked.link = Some(link);
        } else {
            return false;
        }
        self.guarded += 1;
        true
    }

    /// The series that are awake or parked. Linear in the pages.
    pub(crate) fn count_there(&self) -> usize {
        self.slab.len() + self.parked.len()
    }
}

#[cfg(test)]
impl Series {
    /// As a parked series, with this row; `None` if it must stay awake.
    pub(crate) fn parked(&self, row: SeriesRow) -> Option<Parked> {
        let is_frozen = self
            .stored
            .as_ref()
            .is_some_and(|stored| stored.frozen.is_some());
        let is_busy = self.has_head() || is_frozen || self.settling;
        if is_busy || self.marks.is_outdated() || self.marks.is_owned() {
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
