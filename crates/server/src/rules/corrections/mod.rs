//! Rows of recording rules that are computed again once samples change that they were made of.
//!
//! ```text
//! plan    which rules are corrected, who reads what, in which order
//! begin   before a live evaluation: the horizon of its rules, steps that were missed
//! work    what changed -> steps, whole or of groups; which of them are final
//! rows    what the rule gives at steps, against what is stored: the comparison
//! write   rows and gaps, beside the live evaluation
//! turn    one pass of one rule: drain, compare, write, done
//! run     the thread: pass after pass, with rests; whoever waits for fresh rows first
//! ask     verify, backfill, fresh rows and what is told of each rule
//! ```
//!
//! Invariants:
//! 1. A reader's horizon is logged before its rule reads, and so is what it missed or failed at: a
//!    step up to the horizon has its rows, or is pending.
//! 2. What was drained is done only once all its rows are written.
//! 3. The newest step that is corrected is never newer than the last one that the live evaluation
//!    has ended: a change that it did not see is not overwritten by rows that it still has to write.
//! 4. Steps before `since` of a reader are never touched.
//!
//! One thread computes. Locks: a group's `run` before those here, of which `state` is never held
//! while the database is used. Tested by `tests`.

mod ask;
mod begin;
pub(super) mod faults;
mod plan;
mod rows;
mod run;
mod turn;
mod work;
mod write;

pub(crate) use ask::{Chosen, Found, Status, Verifying};
pub(super) use plan::Plan;

use crate::state::Shared;
use latewood_engine::{ReaderId, ReaderState};
use parking_lot::{Condvar, Mutex};
use run::Ticket;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};
use work::Work;

/// Counted of corrections since the start.
#[derive(Debug, Default)]
pub(crate) struct Figures {
    /// Rows that were written.
    pub(crate) rows_written: AtomicU64,
    /// Rows that were there and are none.
    pub(crate) rows_deleted: AtomicU64,
    /// Steps that were computed again.
    pub(crate) steps: AtomicU64,
    /// Steps that changed and are final: they keep their rows.
    pub(crate) final_steps: AtomicU64,
    /// Passes that failed; they are repeated.
    pub(crate) failures: AtomicU64,
    /// Steps that were missed too long ago to be computed.
    pub(crate) skipped_steps: AtomicU64,
    /// Time that passes took, nanoseconds.
    pub(crate) took_ns: AtomicU64,
}

/// What is known of corrections.
#[derive(Default)]
pub(super) struct Corrections {
    plan: Mutex<Arc<Plan>>,
    /// The number of the plan whose readers the database knows; 0 if there is none.
    watched: Mutex<u64>,
    /// Held by a pass, and by whoever changes what is pending from outside: a drain is answered by
    /// its own `done` alone.
    turn: Mutex<()>,
    state: Mutex<State>,
    /// Told when there is something to do.
    changed: Condvar,
    pub(super) figures: Figures,
}

#[derive(Default)]
struct State {
    rules: HashMap<ReaderId, RuleState>,
    /// Who waits for fresh rows.
    tickets: VecDeque<Arc<Ticket>>,
    /// A backfill is under way: there are no rests.
    is_urgent: bool,
    has_stopped: bool,
}

/// What passes came to, of one rule.
#[derive(Default)]
struct RuleState {
    /// What is left of the last drain.
    work: Option<Work>,
    last: Option<Last>,
    rows_written: u64,
    rows_deleted: u64,
    /// Why the last pass failed; empty if it did not.
    failure: String,
    /// Not before.
    retry: Option<Retry>,
    /// Steps that the last drain found, and both ends.
    pending: (u64, Option<(i64, i64)>),
    /// Where the reader is, when it was looked at last.
    reader: Option<ReaderState>,
    /// Steps are final before it.
    final_to: Option<i64>,
}

/// The last pass.
#[derive(Clone, Copy)]
struct Last {
    began_ms: i64,
    took: Duration,
}

#[derive(Clone, Copy)]
struct Retry {
    at: Instant,
    wait: Duration,
}

impl Corrections {
    /// The plan that is in force.
    pub(super) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.lock())
    }

    /// These are the rules from now on.
    pub(super) fn set_plan(&self, make: impl FnOnce(u64) -> Plan) {
        let mut plan = self.plan.lock();
        let number = plan.number + 1;
        *plan = Arc::new(make(number));
        drop(plan);
        self.changed.notify_all();
    }

    /// Tells the database who reads what, unless it knows.
    ///
    /// # Errors
    /// Those of the log.
    fn watch(&self, shared: &Shared) -> Result<Arc<Plan>, String> {
        let mut watched = self.watched.lock();
        let plan = self.plan();
        if *watched != plan.number {
            let readers = shared.db.watch(plan.watchers());
            readers.map_err(|error| error.to_string())?;
            *watched = plan.number;
            let mut state = self.state.lock();
            let is_there = |reader: &ReaderId| {
                plan.order
                    .iter()
                    .any(|at| plan.rules[*at].reader.as_ref() == Ok(reader))
            };
            state.rules.retain(|reader, _| is_there(reader));
            state.rules.values_mut().for_each(|rule| rule.work = None);
        }
        Ok(plan)
    }

    /// Another node owns the log: its readers are those of that node.
    pub(super) fn forget(&self) {
        *self.watched.lock() = 0;
        let mut state = self.state.lock();
        state.rules.values_mut().for_each(|rule| rule.work = None);
    }

    pub(super) fn stop(&self) {
        self.state.lock().has_stopped = true;
        self.changed.notify_all();
    }
}
