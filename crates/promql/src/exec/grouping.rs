//! Which series an aggregation puts together.

use crate::exec::tally::Tally;
use crate::exec::{Context, Result, Series};
use crate::labels::{Labels, METADATA};
use crate::tree::Aggregate;
use std::collections::{BTreeSet, HashMap};

/// `by (...)` or `without (...)`.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    labels: BTreeSet<String>,
    is_without: bool,
}

/// The groups of the series of an input, in the order of their first series.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) series: Vec<Series>,
    /// The series of each, by place.
    pub(crate) members: Vec<Vec<usize>>,
    /// The group of each series.
    pub(crate) of: Vec<usize>,
}

/// Bytes of a series in its group, in vectors that grow.
const MEMBER_BYTES: usize = 4 * size_of::<usize>();
/// Bytes of a group: its series, its members, its place in the map.
const GROUP_BYTES: usize = 8 * size_of::<Series>();

impl Grouping {
    pub(crate) fn new(node: &Aggregate) -> Self {
        Self {
            labels: node.grouping.iter().cloned().collect(),
            is_without: node.is_without,
        }
    }

    /// The same that also keeps `label`; `without` keeps it anyway.
    pub(crate) fn keeping(&self, label: &str) -> Self {
        let mut kept = self.clone();
        if !self.is_without {
            kept.labels.insert(label.to_owned());
        }
        kept
    }

    /// The only labels that it looks at; `None` where it looks at all.
    pub(crate) fn named(&self) -> Option<Vec<String>> {
        (!self.is_without).then(|| self.labels.iter().cloned().collect())
    }

    /// The labels of the group of a series.
    pub(crate) fn labels(&self, of: &Labels) -> Labels {
        let named = |name: &str| self.labels.contains(name);
        if self.is_without {
            of.without(|name| named(name) || METADATA.contains(&name))
        } else {
            of.without(|name| !named(name))
        }
    }

    /// Puts series together.
    pub(crate) fn groups(&self, series: &[Series], ctx: &Context<'_>) -> Result<Groups> {
        let mut tally = Tally::new(ctx);
        let mut places: HashMap<Labels, usize> = HashMap::new();
        let mut groups = Groups::default();
        for (at, series) in series.iter().enumerate() {
            let labels = self.labels(&series.labels);
            let next = groups.members.len();
            tally.add(MEMBER_BYTES)?;
            if !places.contains_key(&labels) {
                tally.add(GROUP_BYTES + labels.own_bytes())?;
            }
            let place = *places.entry(labels.clone()).or_insert(next);
            if place == next {
                groups.members.push(Vec::new());
                groups.series.push(Series::new(labels));
            }
            groups.members[place].push(at);
            groups.series[place].drops_name |= series.drops_name;
            groups.of.push(place);
        }
        tally.settle()?;
        Ok(groups)
    }
}
