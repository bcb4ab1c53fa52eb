//! What is known of corrections, and who waits for them. Tested by `super::tests`.

use super::plan::Plan;
use super::work::Work;
use crate::rules::reader::protect_made;
use crate::state::Shared;
use latewood_engine::Position;
use latewood_engine::{ReaderId, ReaderState};
use latewood_rules::correct::steps::Steps;
use parking_lot::{Condvar, Mutex};
use std::collections::{HashMap, HashSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

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
pub(in crate::rules) struct Corrections {
    pub(super) plan: Mutex<Arc<Plan>>,
    /// The number of the plan whose readers the database knows; 0 if there is none.
    pub(super) watched: Mutex<u64>,
    /// Held by a pass, and by whoever changes what is pending from outside: a drain is answered by
    /// its own `done` alone.
    pub(super) turn: Mutex<()>,
    pub(super) state: Mutex<State>,
    /// Told when there is something to do.
    pub(super) changed: Condvar,
    pub(in crate::rules) figures: Figures,
}

#[derive(Default)]
pub(super) struct State {
    pub(super) rules: HashMap<ReaderId, RuleState>,
    /// Who waits for fresh rows.
    pub(super) tickets: VecDeque<Arc<Ticket>>,
    /// Rules of which a backfill is under way: there are no rests.
    pub(super) urgent: HashSet<ReaderId>,
    pub(super) has_stopped: bool,
}

/// What passes came to, of one rule.
#[derive(Default)]
pub(super) struct RuleState {
    /// What is left of the last drain.
    pub(super) work: Option<Work>,
    pub(super) last: Option<Last>,
    pub(super) rows_written: u64,
    pub(super) rows_deleted: u64,
    /// Why the last pass failed; empty if it did not.
    pub(super) failure: String,
    /// Not before.
    pub(super) retry: Option<Retry>,
    /// Where the next part of what was asked for begins.
    pub(super) next_part: Option<i64>,
    /// Why steps of a part could not be computed; told after the last one.
    pub(super) part_failure: String,
    /// Steps that samples changed and that are pending as steps, as far as that is known.
    pub(super) owed: Steps,
    /// Steps that the last drain found, and both ends.
    pub(super) pending: (u64, Option<(i64, i64)>),
    /// Where the reader is, when it was looked at last.
    pub(super) reader: Option<ReaderState>,
    /// Steps are final before it.
    pub(super) final_to: Option<i64>,
}

/// The last pass.
#[derive(Clone, Copy)]
pub(super) struct Last {
    pub(super) began_ms: i64,
    pub(super) took: Duration,
}

#[derive(Clone, Copy)]
pub(super) struct Retry {
    pub(super) at: Instant,
    pub(super) wait: Duration,
}

impl Corrections {
    /// The plan that is in force.
    pub(in crate::rules) fn plan(&self) -> Arc<Plan> {
        Arc::clone(&self.plan.lock())
    }

    /// These are the rules from now on.
    pub(in crate::rules) fn set_plan(&self, make: impl FnOnce(u64) -> Plan) {
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
    pub(super) fn watch(&self, shared: &Shared) -> Result<Arc<Plan>, String> {
        let mut watched = self.watched.lock();
        let plan = self.plan();
        if *watched != plan.number {
            let readers = shared.db.watch(plan.watchers());
            readers.map_err(|error| error.to_string())?;
            let protected = protect_made(shared, &plan);
            protected.map_err(|error| error.to_string())?;
            *watched = plan.number;
            let mut state = self.state.lock();
            let readers = plan.rules.iter();
            let readers: HashSet<ReaderId> = readers
                .filter_map(|planned| planned.reader.as_ref().ok().copied())
                .collect();
            state.rules.retain(|reader, _| readers.contains(reader));
            state.rules.values_mut().for_each(|rule| rule.work = None);
        }
        Ok(plan)
    }

    /// Another node owns the log: its readers are those of that node.
    pub(in crate::rules) fn forget(&self) {
        *self.watched.lock() = 0;
        let mut state = self.state.lock();
        state.rules.values_mut().for_each(|rule| rule.work = None);
    }

    pub(in crate::rules) fn stop(&self) {
        self.state.lock().has_stopped = true;
        self.changed.notify_all();
    }
}

/// Somebody who waits until rows are fresh.
pub(super) struct Ticket {
    /// Rules whose rows are read, with those below them, in the order of corrections.
    pub(super) rules: Vec<usize>,
    /// The number of the plan that they are from.
    pub(super) plan: u64,
    /// All changes up to here count.
    pub(super) position: Position,
    pub(super) deadline: Instant,
    answer: Mutex<Option<Result<(), String>>>,
    answered: Condvar,
}

impl Ticket {
    pub(super) fn new(rules: Vec<usize>, plan: u64, position: Position, deadline: Instant) -> Self {
        Self {
            rules,
            plan,
            position,
            deadline,
            answer: Mutex::default(),
            answered: Condvar::new(),
        }
    }

    pub(super) fn answer(&self, answer: Result<(), String>) {
        *self.answer.lock() = Some(answer);
        self.answered.notify_all();
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// Why rows are not fresh.
    pub(super) fn wait(&self) -> Result<(), String> {
        let mut answer = self.answer.lock();
        loop {
            if let Some(answer) = answer.take() {
                return answer;
            }
            if self
                .answered
                .wait_until(&mut answer, self.deadline)
                .timed_out()
            {
                return answer.take().unwrap_or_else(|| {
                    Err("late samples are still being worked into rows of rules".to_owned())
                });
            }
        }
    }
}
