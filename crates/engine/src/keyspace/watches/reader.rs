//! Readers: what they select, what they have used, and what changed for them.

use crate::log::Position;
use crate::series::watched::{Mark, Span, WatchSet};
use latewood_model::{Labels, SeriesId, Timestamp};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Changes kept for a reader, above which they are joined.
const PENDING_MAX: usize = 16 * 1024;

/// The number of a reader, which the caller gives. It means the same after a restart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReaderId(pub u64);

/// Whether a series with these labels, under this key, is selected. It must return the same each
/// time, and is called under locks: it must not use the database.
pub type Selects = Arc<dyn Fn(&Labels, &[u8]) -> bool + Send + Sync>;

/// A label that a series has, or has not: name and value.
pub(super) type Pair = (Box<[u8]>, Box<[u8]>);

/// Which series a reader reads.
#[derive(Clone)]
pub struct Selector {
    pub(super) pair: Option<Pair>,
    pub(super) selects: Selects,
}

impl Selector {
    /// The series that `selects` says.
    pub fn new(selects: Selects) -> Self {
        let pair = None;
        Self { pair, selects }
    }

    /// As [`Selector::new`]. A series with another value of the label `name` is never selected,
    /// which saves asking.
    pub fn of_pair(name: &[u8], value: &[u8], selects: Selects) -> Self {
        let pair = Some((name.into(), value.into()));
        Self { pair, selects }
    }
}

/// A reader and what it reads.
#[derive(Clone)]
pub struct Watcher {
    /// Its number.
    pub reader: ReaderId,
    /// Its selectors, by whose index changes are told.
    pub selectors: Vec<Selector>,
}

/// A series at the time of a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSeries {
    /// Its number.
    pub id: SeriesId,
    /// Its key.
    pub key: Arc<[u8]>,
    /// Its labels.
    pub labels: Labels,
    /// Samples before it are not visible: retention or the disk budget took them.
    pub floor: Timestamp,
    /// Whether no series has this key and these labels any more.
    pub is_gone: bool,
    /// When it was to expire, milliseconds since the Unix epoch, if it is removed.
    pub expires_at_ms: Option<i64>,
}

/// Samples of a series that changed after a reader had used them. The span may be longer than
/// what changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The index of the selector.
    pub selector: u32,
    /// The series; `None` for any of the selector.
    pub series: Option<Arc<ChangedSeries>>,
    /// The first timestamp, milliseconds.
    pub from: Timestamp,
    /// The last timestamp, milliseconds.
    pub to: Timestamp,
}

/// What [`crate::Db::drain`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// All changes of groups of the log up to here are included, if not said to be done before.
    pub position: Position,
    /// The changes.
    pub changes: Vec<Change>,
}

/// A reader.
pub(super) struct Reader {
    pub(super) selectors: Vec<Selector>,
    pub(super) horizon: Timestamp,
    /// All that follows from changes up to this position of the log is written.
    pub(super) done: u64,
    /// The watch sets it is in.
    pub(super) sets: Vec<WatchSet>,
    pub(super) pending: Vec<Change>,
    /// How many of those pending were returned by the last drain.
    pub(super) drained: usize,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            selectors: Vec::new(),
            horizon: Timestamp::MIN,
            done: 0,
            sets: Vec::new(),
            pending: Vec::new(),
            drained: 0,
        }
    }

    /// Takes note of what is marked and at or below the horizon.
    pub(super) fn take(&mut self, selector: u32, series: Option<&Arc<ChangedSeries>>, mark: &Mark) {
        if mark.newest <= self.done {
            return;
        }
        for &Span { from, to } in mark.spans() {
            if from <= self.horizon {
                self.pending.push(Change {
                    selector,
                    series: series.cloned(),
                    from,
                    to: to.min(self.horizon),
                });
            }
        }
        if self.pending.len() > PENDING_MAX {
            self.join();
        }
    }

    /// Joins all that is pending.
    #[cold]
    fn join(&mut self) {
        self.pending = joined(&self.pending);
        // None of them was returned whole.
        self.drained = 0;
    }
}

/// One change for each selector, of any series, around all of its changes.
pub(super) fn joined(changes: &[Change]) -> Vec<Change> {
    let mut hulls: BTreeMap<u32, Change> = BTreeMap::new();
    for change in changes {
        let hull = hulls.entry(change.selector).or_insert_with(|| Change {
            series: None,
            ..*change
        });
        hull.from = hull.from.min(change.from);
        hull.to = hull.to.max(change.to);
    }
    hulls.into_values().collect()
}
