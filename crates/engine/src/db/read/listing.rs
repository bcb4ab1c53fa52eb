//! Lists of label names and values: of the series in memory, from the index, and behind it of those whose
//! labels are in files of parked series.
//!
//! Tested by `tests/labels_model.rs`, `tests/db_labels.rs` and `recovery/tests`.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::index::ids::Ids;
use crate::index::inverted::Inverted;
use crate::series::presence::BROUGHT_MAX;
use latewood_model::{Matcher, Timestamp};
use roaring::RoaringBitmap;
use std::collections::BTreeSet;
use std::ops::ControlFlow;

/// Values visited before the lock of the index is released for writers.
const VALUES_MAX: usize = 4096;

/// Which values of a label pass a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// All values pass, or the label has none.
    All,
    /// These pass, in byte order.
    Some(Vec<Box<[u8]>>),
}

impl Values {
    fn new(passed: BTreeSet<Box<[u8]>>, is_all: bool) -> Self {
        if is_all {
            Self::All
        } else {
            Self::Some(passed.into_iter().collect())
        }
    }
}

/// Whether the caller may see the series with a key.
pub type MaySee<'a> = &'a dyn Fn(&[u8]) -> bool;

/// Keys, names or values, end to end in memory.
#[derive(Clone, Debug, Default)]
pub struct Listed {
    bytes: Vec<u8>,
    /// Offset and length of each.
    places: Vec<(usize, usize)>,
}

impl Listed {
    /// Bytes of overhead for each entry.
    pub const EACH_BYTES: usize = 16;

    /// The number of entries.
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Whether the list is empty.
    pub fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// All entries, in order.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let bytes = &self.bytes;
        self.places
            .iter()
            .map(|&(start, len)| &bytes[start..start + len])
    }

    /// Adds an entry if the list then takes at most `bytes_max` bytes: the entries
    /// and [`Listed::EACH_BYTES`] for each. Returns whether it was added.
    #[must_use]
    pub fn push(&mut self, text: &[u8], bytes_max: usize) -> bool {
        let (start, count) = (self.bytes.len(), self.places.len() + 1);
        let fits = start + text.len() + count * Self::EACH_BYTES <= bytes_max;
        if fits {
            self.bytes.extend_from_slice(text);
            self.places.push((start, text.len()));
        }
        fits
    }

    /// Collects `texts`, which are distinct, in the order given.
    fn collect<'a>(mut texts: impl Iterator<Item = &'a [u8]>, bytes_max: usize) -> Result<Self> {
        let mut listed = Self::default();
        if texts.all(|text| listed.push(text, bytes_max)) {
            return Ok(listed);
        }
        let text = format!("the list exceeds {bytes_max} bytes");
        Err(Error::new(ErrorKind::Limit, text))
    }

    /// The same with the texts that `more` tells, in byte order. These may be told in any order, again
    /// and again.
    fn with(
        self,
        bytes_max: usize,
        more: impl FnOnce(&mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<()>,
    ) -> Result<Self> {
        let (mut told, mut bytes) = (BTreeSet::<Box<[u8]>>::new(), 0);
        more(&mut |text| {
            if !told.contains(text) {
                bytes += text.len() + Self::EACH_BYTES;
                told.insert(text.into());
            }
            // The list is refused.
            if bytes > bytes_max {
                ControlFlow::Break(())
            } else {
                ControlFlow::Continue(())
            }
        })?;
        if told.is_empty() {
            // Sorting must not block writers of the index.
            return Ok(self.sorted());
        }
        let told = told.iter().map(|text| &**text);
        let all: BTreeSet<&[u8]> = self.iter().chain(told).collect();
        Self::collect(all.into_iter(), bytes_max)
    }

    fn sorted(mut self) -> Self {
        let bytes = &self.bytes;
        let text = |&(start, len): &(usize, usize)| &bytes[start..start + len];
        self.places
            .sort_unstable_by(|one, other| text(one).cmp(text(other)));
        self
    }
}

impl Db {
    /// The distinct label names of the series that match all `matchers` and whose
    /// keys pass `may_see`, in byte order. Without matchers and `may_see`, no
    /// series is read. With a span, names that only parked series without samples in it have may be left
    /// out, as in [`Db::select_in`]. Once `cancelled` is true, it returns early, with any names.
    ///
    /// # Errors
    /// `Limit` if the names take more than `bytes_max` bytes, counting
    /// [`Listed::EACH_BYTES`] for each name besides its own; those of [`Db::select`].
    pub fn label_names(
        &self,
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        span: Option<(Timestamp, Timestamp)>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        let among = self.among(matchers, may_see, cancelled)?;
        let index = self.core.whole_index()?;
        let held = index.names_among(among.as_ref(), bytes_max, cancelled)?;
        let filed = index.filed.clone();
        drop(index);
        let filed = self.core.filed_in(filed, span);
        held.with(bytes_max, |each| {
            filed.names(among.as_ref(), cancelled, each)
        })
    }

    /// The distinct values of the label `name`, selected and ordered as in
    /// [`Db::label_names`].
    ///
    /// # Errors
    /// Those of [`Db::label_names`].
    pub fn label_values(
        &self,
        name: &[u8],
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        span: Option<(Timestamp, Timestamp)>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        let among = self.among(matchers, may_see, cancelled)?;
        let index = self.core.whole_index()?;
        let held = index.values_among(name, among.as_ref(), bytes_max, cancelled)?;
        let filed = index.filed.clone();
        drop(index);
        let filed = self.core.filed_in(filed, span);
        held.with(bytes_max, |each| {
            let each = &mut |_, value: &[u8], _: &RoaringBitmap| each(value);
            filed.values(name, among.as_ref(), cancelled, each)
        })
    }

    /// The values of the label `name` that pass `test`. Each value is tested once, and once for each
    /// file of parked series that has it, regardless of the number of its series. With a span, values
    /// that only parked series without samples in it have may be left out, as in [`Db::select_in`].
    /// Once `cancelled` is true, it returns early, with any values.
    ///
    /// # Errors
    /// Those of [`Db::select`].
    pub fn label_values_where(
        &self,
        name: &[u8],
        test: impl Fn(&[u8]) -> bool,
        span: Option<(Timestamp, Timestamp)>,
        cancelled: Cancelled<'_>,
    ) -> Result<Values> {
        let came = self.core.parked_keys.came();
        let (mut passed, mut is_all) = (BTreeSet::<Box<[u8]>>::new(), true);
        let mut tell = |value: &[u8]| {
            if !test(value) {
                is_all = false;
            } else if !passed.contains(value) {
                passed.insert(value.into());
            }
        };
        let pairs: Option<Vec<u32>> = {
            let index = self.core.whole_index()?;
            let pairs = index.name(name).into_iter().flat_map(|name| &name.pairs);
            index.filed.is_empty().then(|| pairs.collect())
        };
        if let Some(pairs) = pairs {
            for some in pairs
                .chunks(VALUES_MAX)
                .take_while(|_| !is_cancelled(cancelled))
            {
                let index = self.core.index.inverted.read();
                // The number may belong to another pair by now.
                let pairs = some.iter().map(|&pair| index.pair(pair));
                pairs
                    .filter(|pair| pair.0 == name)
                    .for_each(|pair| tell(pair.1));
            }
            if self.core.parked_keys.came() == came {
                return Ok(Values::new(passed, is_all));
            }
        }
        // A series that parks or wakes meanwhile is in the one or the other: both are of one moment.
        // Tests may take long, so they do not hold the lock.
        let index = self.core.whole_index()?;
        let pairs = index.name(name).into_iter().flat_map(|name| &name.pairs);
        let held = Listed::collect(pairs.map(|pair| index.pair(pair).1), usize::MAX)?;
        let filed = index.filed.clone();
        drop(index);
        held.iter()
            .take_while(|_| !is_cancelled(cancelled))
            .for_each(&mut tell);
        let filed = self.core.filed_in(filed, span);
        filed.values(name, None, cancelled, &mut |_, value, _| {
            tell(value);
            ControlFlow::Continue(())
        })?;
        Ok(Values::new(passed, is_all))
    }

    /// The series that match; `None` if all do.
    fn among(
        &self,
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        cancelled: Cancelled<'_>,
    ) -> Result<Option<Ids>> {
        // Expired series have no labels, but for those that wait for a block. A failure halts the log, which reports it to
        // every writer.
        let _ = self.rules.sweep_expired();
        if matchers.is_empty() && may_see.is_none() {
            return Ok(None);
        }
        let found = self.core.select_ids(matchers, None, cancelled)?;
        let Some(may_see) = may_see else {
            return Ok(Some(found));
        };
        let (mut left, mut seen) = (found.iter(), Ids::default());
        loop {
            // Some at a time: the keys of parked series come to memory for this.
            let some = Ids::from_ascending(left.by_ref().take(BROUGHT_MAX));
            if some.len() == 0 || is_cancelled(cancelled) {
                return Ok(Some(seen));
            }
            let some = self.resolve_ids(&some, cancelled)?.into_iter();
            let some = some.filter(|series| may_see(&series.key));
            seen.extend(some.map(|series| series.id.0));
        }
    }
}

impl Inverted {
    fn names_among(
        &self,
        among: Option<&Ids>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        let names = self.names().take_while(|_| !is_cancelled(cancelled));
        let names = names.filter(|(_, name)| match among {
            Some(among) => !name.series.is_disjoint(among),
            None => true,
        });
        Listed::collect(names.map(|(name, _)| name), bytes_max)
    }

    fn values_among(
        &self,
        name: &[u8],
        among: Option<&Ids>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        let Some(pairs) = self.name(name).map(|name| &name.pairs) else {
            return Ok(Listed::default());
        };
        let value = |pair| self.pair(pair).1;
        let is_wanted = || !is_cancelled(cancelled);
        match among {
            // Fewer series than values: look up the value of each series.
            Some(among) if among.len() < pairs.len() => {
                let theirs = among.iter().take_while(|_| is_wanted());
                let theirs = theirs.flat_map(|id| self.pairs_of(id));
                let named: BTreeSet<u32> = theirs.filter(|&pair| pairs.contains(pair)).collect();
                Listed::collect(named.into_iter().map(value), bytes_max)
            }
            Some(among) => {
                let carried =
                    |&pair: &u32| self.posting_of(pair).is_some_and(|list| list.meets(among));
                let pairs = pairs.iter().take_while(|_| is_wanted());
                Listed::collect(pairs.filter(carried).map(value), bytes_max)
            }
            None => {
                let pairs = pairs.iter().take_while(|_| is_wanted());
                Listed::collect(pairs.map(value), bytes_max)
            }
        }
    }
}
