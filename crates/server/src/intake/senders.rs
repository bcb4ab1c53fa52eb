//! Who sent the samples that wait, for the counts of late ones.
//!
//! A connection has one sender, a request has one, but datagrams of many are one batch. Invariants:
//! the runs ascend, only the last one may have no samples, and it is that of what comes next; the
//! samples that go from the existing series to the others do so in the order of their runs. Tested by
//! `tests.rs`.

use super::report::Sender;
use super::{EngineIntake, Pending, key_of};
use crate::observe::{Origin, Route};
use latewood_engine::Scratch;
use std::net::IpAddr;

/// Samples that one sender sent one after the other, up to the next run.
struct Run {
    /// Samples that waited when it began: of existing series, and of others.
    known: usize,
    fresh: usize,
    sender: Sender,
}

/// The runs of what waits.
pub(super) struct Senders {
    route: Route,
    runs: Vec<Run>,
    last: Option<IpAddr>,
    /// Samples of other series that were taken to be applied: those that wait again are numbered
    /// behind them.
    taken: usize,
    /// Samples whose series had been removed: their places among those of other series, and the
    /// places of their runs.
    renewed: Vec<(usize, usize)>,
}

/// Which samples that waited are applied.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    /// Those of existing series.
    Known,
    /// Those of others, from this one on.
    Fresh(usize),
}

impl Senders {
    /// No sender yet.
    pub(super) fn new(route: Route) -> Self {
        Self {
            route,
            runs: Vec::new(),
            last: None,
            taken: 0,
            renewed: Vec::new(),
        }
    }

    /// Nothing waits any more.
    pub(super) fn applied(&mut self) {
        let gone = self.runs.len().saturating_sub(1);
        self.runs.drain(..gone);
        self.renewed.clear();
        self.taken = 0;
        for run in &mut self.runs {
            (run.known, run.fresh) = (0, 0);
        }
    }

    /// Takes the samples of other series that wait, to apply them; the number of the first.
    pub(super) fn take_fresh(&mut self, count: usize) -> usize {
        let first = self.taken;
        self.taken += count;
        first
    }

    /// Notes that a sample which waited becomes sample `fresh` of those that wait to be created.
    pub(super) fn renew(&mut self, waited: Waited, index: usize, fresh: usize) {
        let run = self.run_of_waited(waited, index);
        self.renewed.push((self.taken + fresh, run));
    }

    /// The place of the run that a sample which waited is of.
    fn run_of(&self, index: usize, begin: impl Fn(&Run) -> usize) -> usize {
        let after = self.runs.partition_point(|run| begin(run) <= index);
        after.saturating_sub(1)
    }

    /// The same of sample `index` of those that are applied.
    fn run_of_waited(&self, waited: Waited, index: usize) -> usize {
        let Waited::Fresh(from) = waited else {
            return self.run_of(index, |run| run.known);
        };
        let fresh = from + index;
        match self.renewed.binary_search_by_key(&fresh, |one| one.0) {
            Ok(place) => self.renewed[place].1,
            Err(_) => self.run_of(fresh, |run| run.fresh),
        }
    }

    pub(super) fn route(&self) -> Route {
        self.route
    }

    /// Who sends now.
    pub(super) fn current(&self) -> Option<Sender> {
        self.runs.last().map(|run| run.sender.clone())
    }
}

impl EngineIntake {
    /// Says that `user` at `address` sends what comes from now on.
    pub(crate) fn sent_by(&mut self, address: IpAddr, user: &[u8]) {
        let senders = &mut self.senders;
        let is_same = senders
            .runs
            .last()
            .is_some_and(|run| *run.sender.user == *user);
        if is_same && senders.last == Some(address) {
            return;
        }
        senders.last = Some(address);
        let (known, fresh) = (self.known.len(), self.fresh.len());
        let is_empty = |run: &mut Run| (run.known, run.fresh) == (known, fresh);
        senders.runs.pop_if(is_empty);
        senders.runs.push(Run {
            known,
            fresh,
            sender: Sender {
                address: address.to_canonical().to_string(),
                user: user.into(),
            },
        });
    }

    /// Notes who sent the first of what is refused: a sample that waited, or else what is being
    /// read.
    #[cold]
    pub(super) fn note_sender(&mut self, waited: Option<(Waited, usize)>) {
        if self.report.sender.is_none() {
            let senders = &self.senders;
            self.report.sender = match waited {
                None => senders.current(),
                Some((waited, index)) => {
                    let run = senders.runs.get(senders.run_of_waited(waited, index));
                    run.map(|run| run.sender.clone())
                }
            };
        }
    }

    /// Counts the late ones among samples that were applied.
    #[inline]
    pub(super) fn count_late(&self, waited: Waited, waiting: &[Pending], scratch: &Scratch) {
        if !scratch.late().is_empty() {
            self.count_late_of_runs(waited, waiting, scratch);
        }
    }

    #[cold]
    fn count_late_of_runs(&self, waited: Waited, waiting: &[Pending], scratch: &Scratch) {
        let senders = &self.senders;
        let late = scratch.late().iter();
        let mut late: Vec<_> = late
            .map(|one| (senders.run_of_waited(waited, one.index as usize), one))
            .collect();
        // A sort that keeps the order of what has one sender.
        late.sort_by_key(|(run, _)| *run);
        for of_one in late.chunk_by(|(one, _), (other, _)| one == other) {
            let Some(run) = senders.runs.get(of_one[0].0) else {
                continue;
            };
            let origin = Origin {
                route: senders.route,
                address: &run.sender.address,
                user: &run.sender.user,
            };
            let of_one = of_one.iter().map(|(_, one)| {
                let slot = waiting[one.index as usize].slot as usize;
                (key_of(&self.series[slot].place), one.age_ms)
            });
            let lateness = &self.shared.observe.lateness;
            lateness.late(&origin, self.now_ms, of_one.clone());
            lateness.late_by_label(&self.shared.db, self.now_ms, of_one);
        }
    }
}
