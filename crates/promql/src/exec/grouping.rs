//! Which series an aggregation puts together.

use crate::exec::matching::names;
use crate::exec::tally::Tally;
use crate::exec::{Context, Result, Series};
use crate::labels::{Labels, is_metadata};
use crate::tree::Aggregate;
use foldhash::fast::RandomState;
use std::collections::{BTreeSet, HashMap};

/// `by (...)` or `without (...)`.
#[derive(Clone, Debug)]
pub(crate) struct Grouping {
    /// Sorted, each once.
    labels: Vec<String>,
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
        let labels: BTreeSet<&String> = node.grouping.iter().collect();
        Self {
            labels: labels.into_iter().cloned().collect(),
            is_without: node.is_without,
        }
    }

    /// The same that also keeps `label`; `without` keeps it anyway.
    pub(crate) fn keeping(&self, label: &str) -> Self {
        let mut kept = self.clone();
        if !self.is_without {
            kept.labels.push(label.to_owned());
            kept.labels.sort_unstable();
            kept.labels.dedup();
        }
        kept
    }

    /// The only labels that it looks at; `None` where it looks at all.
    pub(crate) fn named(&self) -> Option<Vec<String>> {
        (!self.is_without).then(|| self.labels.clone())
    }

    /// The labels of the group of a series.
    pub(crate) fn labels(&self, of: &Labels) -> Labels {
        of.without(|name| self.drops(name))
    }

    fn drops(&self, name: &[u8]) -> bool {
        let is_named = names(&self.labels, name);
        if self.is_without {
            is_named || is_metadata(name)
        } else {
            !is_named
        }
    }

    /// Puts series together.
    pub(crate) fn groups(&self, series: &[Series], ctx: &Context<'_>) -> Result<Groups> {
        let mut tally = Tally::new(ctx);
        // By the packed bytes of their labels.
        let mut places: HashMap<Vec<u8>, usize, RandomState> = HashMap::default();
        let mut groups = Groups::default();
        let mut packed = Vec::new();
        let keeps_any = self.is_without || !self.labels.is_empty();
        for (at, series) in series.iter().enumerate() {
            packed.clear();
            if keeps_any {
                (series.labels).put_without(|name| self.drops(name), &mut packed);
            }
            tally.add(MEMBER_BYTES)?;
            let place = match places.get(&*packed) {
                Some(place) => *place,
                None => {
                    let (labels, place) = (self.labels(&series.labels), groups.members.len());
                    tally.add(GROUP_BYTES + labels.own_bytes() + packed.len())?;
                    places.insert(packed.clone(), place);
                    groups.members.push(Vec::new());
                    groups.series.push(Series::new(labels));
                    place
                }
            };
            groups.members[place].push(at);
            groups.series[place].drops_name |= series.drops_name;
            groups.of.push(place);
        }
        tally.settle()?;
        Ok(groups)
    }
}
