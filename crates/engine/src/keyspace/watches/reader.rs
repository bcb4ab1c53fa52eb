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

/// The name and the value of a label.
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
    /// The index of the selector; [`Change::STEPS`] where the times are those of steps.
    pub selector: u32,
    /// The series; `None` for any of the selector.
    pub series: Option<Arc<ChangedSeries>>,
    /// The first timestamp, milliseconds.
    pub from: Timestamp,
    /// The last timestamp, milliseconds.
    pub to: Timestamp,
}

impl Change {
    /// The selector of steps that must be computed again whatever changed in what they read: those
    /// of [`crate::Db::add_pending`].
    pub const STEPS: u32 = u32::MAX;
    /// All selectors, where nobody has said yet how many there are.
    pub(super) const ALL: u32 = u32::MAX - 1;
}

/// What is known of a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderState {
    /// Its number.
    pub reader: ReaderId,
    /// The newest time it has used, milliseconds; the smallest timestamp if none.
    pub horizon: Timestamp,
    /// Steps before it are not to be touched, milliseconds; the smallest timestamp if not said.
    pub since: Timestamp,
    /// Changes that are not done.
    pub pending: usize,
}

/// What [`crate::Db::drain`] returns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drained {
    /// All changes of groups of the log up to here are included, if not said to be done before.
    pub position: Position,
    /// The changes.
    pub changes: Vec<Change>,
}

/// A change that is not done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pending {
    pub(super) change: Change,
    /// The position in the log of the newest of what it holds.
    pub(super) at: u64,
}

/// A reader.
pub(super) struct Reader {
    pub(super) selectors: Vec<Selector>,
    pub(super) horizon: Timestamp,
    /// See [`ReaderState::since`].
    pub(super) since: Timestamp,
    /// All that follows from changes up to this position of the log is written.
    pub(super) done: u64,
    /// The watch sets it is in.
    pub(super) sets: Vec<WatchSet>,
    pub(super) pending: Vec<Pending>,
    /// How many of those pending were returned by the last drain.
    pub(super) drained: usize,
}

impl Reader {
    pub(super) fn new() -> Self {
        Self {
            selectors: Vec::new(),
            horizon: Timestamp::MIN,
            since: Timestamp::MIN,
            done: 0,
            sets: Vec::new(),
            pending: Vec::new(),
            drained: 0,
        }
    }

    /// Uses what is up to `at`. Its first step is the first time it uses.
    pub(super) fn raise(&mut self, at: Timestamp) {
        self.horizon = self.horizon.max(at);
        if self.since == Timestamp::MIN {
            self.since = at;
        }
    }

    /// It has these selectors from now on.
    pub(super) fn set_selectors(&mut self, selectors: Vec<Selector>) {
        let count = selectors.len() as u32;
        self.selectors = selectors;
        self.sets.clear();
        let of_all = |pending: &Pending| pending.change.selector == Change::ALL;
        if self.pending.iter().any(of_all) {
            let each = |pending: Pending| {
                let selectors = match pending.change.selector {
                    Change::ALL => 0..=count.saturating_sub(1),
                    selector => selector..=selector,
                };
                selectors.map(move |selector| {
                    let mut pending = pending.clone();
                    pending.change.selector = selector;
                    pending
                })
            };
            self.pending = std::mem::take(&mut self.pending)
                .into_iter()
                .flat_map(each)
                .collect();
            self.drained = 0;
        }
    }

    /// Anything it has used may be gone, up to the group of the log at `at`.
    pub(super) fn with_all_gone(&self, at: u64) -> Vec<Pending> {
        let change = Change {
            selector: Change::ALL,
            series: None,
            from: Timestamp::MIN,
            to: self.horizon,
        };
        let mut pending = self.pending.clone();
        pending.push(Pending { change, at });
        pending
    }

    /// How it is now.
    pub(super) fn state(&self, reader: ReaderId) -> ReaderState {
        ReaderState {
            reader,
            horizon: self.horizon,
            since: self.since,
            pending: self.pending.len(),
        }
    }

    /// All that is pending.
    pub(super) fn changes(&self) -> Vec<Change> {
        let changes = self.pending.iter().map(|pending| pending.change.clone());
        changes.collect()
    }

    /// Takes note of what is marked and at or below the horizon.
    pub(super) fn take(&mut self, selector: u32, series: Option<&Arc<ChangedSeries>>, mark: &Mark) {
        if mark.newest <= self.done {
            return;
        }
        for &Span { from, to } in mark.spans() {
            if from <= self.horizon {
                let change = Change {
                    selector,
                    series: series.cloned(),
                    from,
                    to: to.min(self.horizon),
                };
                let at = mark.newest;
                self.pending.push(Pending { change, at });
            }
        }
        self.bound();
    }

    /// Steps are to be computed again, says the log at `at`. A replay does not join them: it may
    /// come to one of two that are done.
    pub(super) fn take_steps(&mut self, span: Span, at: u64, is_replay: bool) {
        let joins_from = if is_replay {
            self.pending.len()
        } else {
            self.drained
        };
        let undrained = self.pending[joins_from..].iter_mut();
        let mut steps = undrained.filter(|held| held.change.selector == Change::STEPS);
        let met = steps.find(|held| {
            let Change { from, to, .. } = held.change;
            span.gap(Span { from, to }) <= 1
        });
        if let Some(held) = met {
            held.change.from = held.change.from.min(span.from);
            held.change.to = held.change.to.max(span.to);
            held.at = held.at.max(at);
            return;
        }
        let change = Change {
            selector: Change::STEPS,
            series: None,
            from: span.from,
            to: span.to,
        };
        self.pending.push(Pending { change, at });
        self.bound();
    }

    /// Joins what came since the last drain, if it is too much: what that returned stays as it is
    /// until it is done.
    fn bound(&mut self) {
        if self.pending.len() - self.drained > PENDING_MAX {
            let fresh = self.pending.split_off(self.drained);
            self.pending.extend(joined(&fresh));
        }
    }

    /// All that is pending counts as returned from here on; what is too much is joined.
    pub(super) fn drain(&mut self) {
        if self.pending.len() > PENDING_MAX {
            self.pending = joined(&self.pending);
        }
        self.drained = self.pending.len();
    }
}

/// One change for each selector, of any series, around all of its changes. Steps are joined only
/// where they meet, unless they are very many: those between were asked for by nobody.
pub(super) fn joined(changes: &[Pending]) -> Vec<Pending> {
    let is_steps = |pending: &&Pending| pending.change.selector == Change::STEPS;
    let mut steps: Vec<Pending> = changes.iter().filter(is_steps).cloned().collect();
    steps.sort_unstable_by_key(|pending| pending.change.from);
    steps.dedup_by(|next, held| {
        let meet = next.change.from <= held.change.to.saturating_add(1);
        if meet {
            held.change.to = held.change.to.max(next.change.to);
            held.at = held.at.max(next.at);
        }
        meet
    });
    let keeps_steps = steps.len() <= PENDING_MAX / 2;
    let mut hulls: BTreeMap<u32, Pending> = BTreeMap::new();
    let others = changes.iter().filter(|one| !(keeps_steps && is_steps(one)));
    for Pending { change, at } in others {
        let hull = hulls.entry(change.selector).or_insert_with(|| Pending {
            change: Change {
                series: None,
                ..*change
            },
            at: *at,
        });
        hull.change.from = hull.change.from.min(change.from);
        hull.change.to = hull.change.to.max(change.to);
        hull.at = hull.at.max(*at);
    }
    let steps = steps.into_iter().filter(|_| keeps_steps);
    hulls.into_values().chain(steps).collect()
}
