//! Lists of label names and values.

use crate::base::cancelled::{Cancelled, is_cancelled};
use crate::base::error::{Error, ErrorKind, Result};
use crate::db::Db;
use crate::index::ids::Ids;
use crate::index::inverted::Inverted;
use latewood_model::Matcher;
use std::collections::BTreeSet;

/// Values visited before the lock of the index is released for writers.
const VALUES_MAX: usize = 4096;

/// Which values of a label pass a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// All values pass, or the label has none.
    All,
    /// These pass, in no order.
    Some(Vec<Box<[u8]>>),
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
    /// series is read. Once `cancelled` is true, it returns early, with any names.
    ///
    /// # Errors
    /// `Limit` if the names take more than `bytes_max` bytes, counting
    /// [`Listed::EACH_BYTES`] for each name besides its own; those of [`Db::select`].
    pub fn label_names(
        &self,
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        self.listed(matchers, may_see, cancelled, |index, among| {
            index.names_among(among, bytes_max, cancelled)
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
        bytes_max: usize,
        cancelled: Cancelled<'_>,
    ) -> Result<Listed> {
        self.listed(matchers, may_see, cancelled, |index, among| {
            index.values_among(name, among, bytes_max, cancelled)
        })
    }

    /// The values of the label `name` that pass `test`. Each value is tested once,
    /// regardless of the number of its series.
    pub fn label_values_where(&self, name: &[u8], test: impl Fn(&[u8]) -> bool) -> Values {
        let index = &self.core.index;
        let pairs: Vec<u32> = match index.current().name(name) {
            Some(name) => name.pairs.iter().collect(),
            None => return Values::All,
        };
        let (mut passed, mut is_all) = (Vec::new(), true);
        for some in pairs.chunks(VALUES_MAX) {
            let inverted = index.inverted.read();
            for &pair in some {
                let (held, value) = inverted.pair(pair);
                // The number may belong to another pair by now.
                if held != name {
                    continue;
                }
                if test(value) {
                    passed.push(value.into())
                } else {
                    is_all = false
                }
            }
        }
        if is_all {
            Values::All
        } else {
            Values::Some(passed)
        }
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
        let found = self.core.index.current().select(matchers);
        let Some(may_see) = may_see else {
            return Ok(Some(found));
        };
        let seen = self.resolve_ids(&found, cancelled)?.into_iter();
        let seen = seen.take_while(|_| !is_cancelled(cancelled));
        let seen = seen.filter(|series| may_see(&series.key));
        Ok(Some(seen.map(|series| series.id.0).collect()))
    }

    /// What `list` finds in the index among the series selected, in byte order.
    fn listed(
        &self,
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
        cancelled: Cancelled<'_>,
        list: impl FnOnce(&Inverted, Option<&Ids>) -> Result<Listed>,
    ) -> Result<Listed> {
        let among = self.among(matchers, may_see, cancelled)?;
        // Sorting must not block writers of the index: the lock is held for this alone.
        let listed = list(&self.core.index.current(), among.as_ref())?;
        Ok(listed.sorted())
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
