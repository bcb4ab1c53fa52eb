//! The labels of the rows of a file, collected from row to row: which rows carry which pair. What
//! comes of it are the entries of its label blocks, in their order. Tested with the files.

use crate::storage::files::row::SeriesRow;
use crate::storage::files::series_file::label_blocks::name_key;
use crate::storage::files::series_file::pages::low_bits;
use foldhash::fast::RandomState;
use hashbrown::HashMap;
use std::collections::BTreeMap;

/// The values of a name, each with the rows that carry it.
type Values = HashMap<Box<[u8]>, Lows, RandomState>;

/// Each value is held once. Rows are noted in the order of their ids.
#[derive(Default)]
pub(super) struct Pairs(BTreeMap<Box<[u8]>, Values>);

/// The rows of a pair, ascending.
pub(super) enum Lows {
    /// Without memory of its own: most values are those of one series.
    One(u16),
    Many(Vec<u16>),
}

impl Lows {
    pub(super) fn as_slice(&self) -> &[u16] {
        match self {
            Self::One(low) => std::slice::from_ref(low),
            Self::Many(lows) => lows,
        }
    }

    fn push(&mut self, low: u16) {
        match self {
            // A series may carry a pair twice.
            _ if self.as_slice().last() == Some(&low) => {}
            Self::One(first) => *self = Self::Many(vec![*first, low]),
            Self::Many(lows) => lows.push(low),
        }
    }
}

impl Pairs {
    pub(super) fn note(&mut self, row: &SeriesRow) {
        let low = low_bits(row.id);
        for (name, value) in row.options.labels.iter() {
            let values = match self.0.get_mut(name) {
                Some(values) => values,
                None => self.0.entry(name.into()).or_default(),
            };
            match values.get_mut(value) {
                Some(lows) => lows.push(low),
                None => drop(values.insert(value.into(), Lows::One(low))),
            }
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> u64 {
        self.0.values().map(|values| values.len() as u64).sum()
    }

    /// The entries of label blocks, in ascending order: of each name what carries it, and then its
    /// values.
    pub(super) fn entries(self) -> impl Iterator<Item = (Vec<u8>, Lows)> {
        self.0.into_iter().flat_map(|(name, values)| {
            let mut values: Vec<_> = values.into_iter().collect();
            values.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
            let lows = values.iter().flat_map(|(_, lows)| lows.as_slice());
            let mut all: Vec<u16> = lows.copied().collect();
            all.sort_unstable();
            all.dedup();
            let name = name_key(&name);
            let first = (name.clone(), Lows::Many(all));
            let of_value = move |(value, lows): (Box<[u8]>, _)| ([&*name, &value].concat(), lows);
            std::iter::once(first).chain(values.into_iter().map(of_value))
        })
    }
}
