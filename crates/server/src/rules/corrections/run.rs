//! The thread of corrections: pass after pass, and whoever waits for fresh rows first.
//!
//! After a pass it rests so long that it takes no more than its share of one core. Tested by
//! `super::tests`, which turn by turn do what this thread does.

use super::Corrections;
use super::plan::Plan;
use super::turn::Turned;
use crate::base::clock::now_ms;
use crate::intake::EngineIntake;
use crate::rules::Manager;
use crate::state::Shared;
use latewood_engine::Position;
use parking_lot::{Condvar, Mutex};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is looked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);

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

    fn answer(&self, answer: Result<(), String>) {
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

impl Manager {
    /// Corrects rows until the server stops.
    pub(crate) fn run_corrections(&self, shared: &Arc<Shared>) {
        let mut intake = Self::intake(shared);
        while !self.corrections.has_stopped() {
            let is_ready = !shared.db.is_loading() && shared.is_owner();
            if !is_ready {
                self.corrections.forget();
            } else if let Err(why) = self.round(shared, &mut intake, now_ms()) {
                tracing::debug!(why, "rows of rules are not corrected");
            }
            self.corrections.pause(LOOK_EVERY, false);
        }
    }

    /// One pass of each rule that has something to do.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::rules) fn round(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        now_ms: i64,
    ) -> Result<(), String> {
        if let Some(why) = self.obstacle(shared) {
            self.corrections.refuse_all(&why);
            return Err(why);
        }
        let plan = self.corrections.watch(shared)?;
        self.catch_up(shared, &plan, now_ms)?;
        self.serve(shared, intake, &plan);
        loop {
            self.corrections.look(shared);
            let mut has_more = false;
            for &at in &plan.order {
                if self.corrections.has_stopped() || self.corrections.plan().number != plan.number {
                    return Ok(());
                }
                let Ok(reader) = plan.rules[at].reader else {
                    continue;
                };
                if !self.corrections.has_pending(reader) || !self.is_due(reader) {
                    continue;
                }
                let begun = Instant::now();
                let turned = self.correct(shared, intake, &plan, at);
                has_more |= matches!(turned, Turned::More | Turned::Done(_));
                self.rest(begun.elapsed());
                self.serve(shared, intake, &plan);
            }
            if !has_more {
                self.corrections.set_urgent(false);
                return Ok(());
            }
        }
    }

    /// Makes what groups missed pending, before they are evaluated for the first time.
    fn catch_up(&self, shared: &Shared, plan: &Plan, now_ms: i64) -> Result<(), String> {
        for group in self.groups() {
            let rules = plan.of(&group);
            let Some(mut run) = group.run.try_lock() else {
                continue;
            };
            let unknown = |at: usize| run.rules[at].newest_ms.is_none();
            if rules
                .iter()
                .any(|planned| planned.reader.is_ok() && unknown(planned.at))
            {
                let next_ms = group.grid.after(now_ms) - self.offset_ms(&group);
                self.add_missed(shared, rules, &mut run, next_ms)?;
            }
        }
        Ok(())
    }

    /// Works for those who wait.
    fn serve(&self, shared: &Arc<Shared>, intake: &mut EngineIntake, plan: &Plan) {
        while let Some(ticket) = self.corrections.next_ticket() {
            ticket.answer(self.freshen(shared, intake, plan, &ticket));
        }
    }

    fn freshen(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        plan: &Plan,
        ticket: &Ticket,
    ) -> Result<(), String> {
        if ticket.plan != plan.number {
            return Err("the rules have just changed: ask again".to_owned());
        }
        for &at in &ticket.rules {
            loop {
                if Instant::now() >= ticket.deadline || self.corrections.has_stopped() {
                    let rule = plan.rules[at].name();
                    return Err(format!(
                        "late samples are still being worked into rows of {rule}"
                    ));
                }
                match self.correct(shared, intake, plan, at) {
                    Turned::Nothing => break,
                    Turned::Done(position) if position >= ticket.position => break,
                    Turned::More | Turned::Done(_) => {}
                    Turned::Failed(why) => {
                        let rule = plan.rules[at].name();
                        return Err(format!("rows of {rule} cannot be corrected: {why}"));
                    }
                }
            }
        }
        Ok(())
    }

    /// Leaves the core to others after work that took so long.
    fn rest(&self, took: Duration) {
        let percent = self.settings.correction_cpu_percent.clamp(1, 100) as u32;
        let rest = took * (100 - percent) / percent;
        self.corrections.pause(rest, true);
    }
}

impl Corrections {
    fn has_stopped(&self) -> bool {
        self.state.lock().has_stopped
    }

    fn set_urgent(&self, is_urgent: bool) {
        self.state.lock().is_urgent = is_urgent;
    }

    fn next_ticket(&self) -> Option<Arc<Ticket>> {
        self.state.lock().tickets.pop_front()
    }

    fn refuse_all(&self, why: &str) {
        while let Some(ticket) = self.next_ticket() {
            ticket.answer(Err(why.to_owned()));
        }
    }

    /// Hands a ticket in.
    pub(super) fn put(&self, ticket: Arc<Ticket>) {
        self.state.lock().tickets.push_back(ticket);
        self.changed.notify_all();
    }

    /// Looks which readers have something to do.
    pub(in crate::rules) fn look(&self, shared: &Shared) {
        let readers = shared.db.readers();
        let mut state = self.state.lock();
        for reader in readers {
            state.rules.entry(reader.reader).or_default().reader = Some(reader);
        }
    }

    fn has_pending(&self, reader: latewood_engine::ReaderId) -> bool {
        let state = self.state.lock();
        state.rules.get(&reader).is_some_and(|rule| {
            rule.work.is_some() || rule.reader.is_some_and(|reader| reader.pending > 0)
        })
    }

    /// Waits, unless there is a reason not to: somebody waits for fresh rows, the server stops, or
    /// there is a backfill. A rest is not ended by more work.
    fn pause(&self, longest: Duration, is_rest: bool) {
        let until = Instant::now() + longest;
        let mut state = self.state.lock();
        loop {
            let is_urgent = state.is_urgent || state.has_stopped || !state.tickets.is_empty();
            if is_urgent || self.changed.wait_until(&mut state, until).timed_out() || !is_rest {
                return;
            }
        }
    }
}
