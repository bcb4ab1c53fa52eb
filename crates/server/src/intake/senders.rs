//! Who sent the samples that wait, for the counts of late ones.
//!
//! A connection has one sender, a request has one, but datagrams of many are one batch. Invariant:
//! the runs ascend, and the last one is that of what comes next. Tested by `tests.rs`.

use super::{EngineIntake, Pending, key_of};
use crate::observe::{Origin, Route};
use latewood_engine::Scratch;
use std::net::IpAddr;

/// Samples that one sender sent one after the other, up to the next run.
struct Run {
    /// Samples that waited when it began: of existing series, and of others.
    known: usize,
    fresh: usize,
    address: String,
    user: Box<[u8]>,
}

/// The runs of what waits.
pub(super) struct Senders {
    route: Route,
    runs: Vec<Run>,
    last: Option<IpAddr>,
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
    /// Nobody yet.
    pub(super) fn new(route: Route) -> Self {
        let (runs, last) = (Vec::new(), None);
        Self { route, runs, last }
    }

    /// Nothing waits any more.
    pub(super) fn applied(&mut self) {
        let gone = self.runs.len().saturating_sub(1);
        self.runs.drain(..gone);
        for run in &mut self.runs {
            (run.known, run.fresh) = (0, 0);
        }
    }

    pub(super) fn route(&self) -> Route {
        self.route
    }
}

impl EngineIntake {
    /// Says that `user` at `address` sends what comes from now on.
    pub(crate) fn sent_by(&mut self, address: IpAddr, user: &[u8]) {
        let senders = &mut self.senders;
        let is_same = senders.runs.last().is_some_and(|run| *run.user == *user);
        if is_same && senders.last == Some(address) {
            return;
        }
        senders.last = Some(address);
        let (known, fresh) = (self.known.len(), self.fresh.len());
        if (known, fresh) == (0, 0) {
            senders.runs.clear();
        }
        senders.runs.push(Run {
            known,
            fresh,
            address: address.to_canonical().to_string(),
            user: user.into(),
        });
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
        let begin = |run: &Run| match waited {
            Waited::Known => run.known,
            Waited::Fresh(from) => run.fresh.saturating_sub(from),
        };
        let runs = &self.senders.runs;
        for (at, run) in runs.iter().enumerate() {
            let first = if at == 0 { 0 } else { begin(run) };
            let span = first..runs.get(at + 1).map_or(usize::MAX, begin);
            let late = scratch.late().iter();
            let late = late.filter(|one| span.contains(&(one.index as usize)));
            let late = late.map(|one| {
                let slot = waiting[one.index as usize].slot as usize;
                (key_of(&self.series[slot].place), one.age_ms)
            });
            let origin = Origin {
                route: self.senders.route,
                address: &run.address,
                user: &run.user,
            };
            let lateness = &self.shared.observe.lateness;
            lateness.late(&origin, self.now_ms, late);
        }
    }
}
