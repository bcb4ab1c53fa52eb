//! Which label names and values there are.

use super::inverted::Inverted;
use crate::db::Db;
use latewood_model::Matcher;
use roaring::RoaringBitmap;
use std::collections::BTreeSet;

/// Values that are looked at before writers of the index get their turn.
const VALUES_MAX: usize = 4096;

/// Which values of a label pass a test.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    /// All there are, or there are none.
    All,
    /// These, in no order.
    Some(Vec<Box<[u8]>>),
}

/// Whether the caller may see the series under a key.
pub type MaySee<'a> = &'a dyn Fn(&[u8]) -> bool;

impl Db {
    /// The label names of the series that pass all `matchers` and whose keys
    /// pass `may_see`, sorted, each once. Without either, looks at no series.
    pub fn label_names(&self, matchers: &[Matcher], may_see: Option<MaySee<'_>>) -> Vec<Box<[u8]>> {
        let among = self.among(matchers, may_see);
        self.core.index.current().names_among(among.as_ref())
    }

    /// The values of the label `name` of the same series, sorted, each once.
    pub fn label_values(
        &self,
        name: &[u8],
        matchers: &[Matcher],
        may_see: Option<MaySee<'_>>,
    ) -> Vec<Box<[u8]>> {
        let among = self.among(matchers, may_see);
        self.core.index.current().values_among(name, among.as_ref())
    }

    /// Which values of the label `name` pass `test`. Each is looked at once,
    /// however many series carry it.
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
                // A number may mean another pair by now.
                if held != name {
                    continue;
                }
                match test(value) {
                    true => passed.push(value.into()),
                    false => is_all = false,
                }
            }
        }
        match is_all {
            true => Values::All,
            false => Values::Some(passed),
        }
    }

    /// The series that count; `None` if all do.
    fn among(&self, matchers: &[Matcher], may_see: Option<MaySee<'_>>) -> Option<RoaringBitmap> {
        // What has expired has no labels. A failure halts the log, which tells
        // every writer.
        let _ = self.core.sweep_expired();
        if matchers.is_empty() && may_see.is_none() {
            return None;
        }
        let found = self.core.index.current().select(matchers);
        let Some(may_see) = may_see else {
            return Some(found);
        };
        let seen = self.core.resolve(&found).into_iter();
        let seen = seen.filter(|series| may_see(&series.key));
        Some(seen.map(|series| series.id.0).collect())
    }
}

impl Inverted {
    fn names_among(&self, among: Option<&RoaringBitmap>) -> Vec<Box<[u8]>> {
        let names = self.names().filter(|(_, name)| match among {
            Some(among) => !name.series.is_disjoint(among),
            None => true,
        });
        let mut names: Vec<Box<[u8]>> = names.map(|(name, _)| name.into()).collect();
        names.sort_unstable();
        names
    }

    fn values_among(&self, name: &[u8], among: Option<&RoaringBitmap>) -> Vec<Box<[u8]>> {
        let Some(pairs) = self.name(name).map(|name| &name.pairs) else {
            return Vec::new();
        };
        let mut values: Vec<Box<[u8]>> = match among {
            // Fewer series than values: ask each for its own.
            Some(among) if among.len() < pairs.len() => {
                let theirs = among.iter().flat_map(|id| self.pairs_of(id));
                let named: BTreeSet<u32> = theirs.filter(|&pair| pairs.contains(pair)).collect();
                named.iter().map(|&pair| self.pair(pair).1.into()).collect()
            }
            _ => pairs
                .iter()
                .filter(|&pair| match among {
                    Some(among) => self.posting_of(pair).is_some_and(|list| list.meets(among)),
                    None => true,
                })
                .map(|pair| self.pair(pair).1.into())
                .collect(),
        };
        values.sort_unstable();
        values
    }
}
