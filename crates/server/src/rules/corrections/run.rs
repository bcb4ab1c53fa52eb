//! The thread of corrections: pass after pass, and whoever waits for fresh rows first.
//!
//! After a pass it rests until it has taken no more than its share of one core. Tested by
//! `super::tests`, which turn by turn do what this thread does.

use super::plan::Plan;
use super::state::{Corrections, Ticket};
use super::turn::Turned;
use crate::base::clock::now_ms;
use crate::intake::EngineIntake;
use crate::rules::manager::Manager;
use crate::state::Shared;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How often is looked for changes.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How long rules that had their pass wait for others that have more to do: those may take hours.
const WAIT_MAX: Duration = Duration::from_secs(10);

impl Manager {
    /// Corrects rows until the server stops.
    pub(crate) fn run_corrections(&self, shared: &Arc<Shared>) {
        let mut intake = Self::intake(shared);
        while !self.corrections.has_stopped() {
            let is_ready = !shared.db.is_loading() && shared.is_owner();
            let done = if is_ready {
                self.round(shared, &mut intake, now_ms())
            } else {
                self.corrections.forget();
                Err("another node corrects rows, or the database is loading".to_owned())
            };
            if let Err(why) = done {
                self.corrections.refuse_all(&why);
                tracing::debug!(why, "rows of rules are not corrected");
            }
            self.corrections.pause(LOOK_EVERY, false);
        }
    }

    /// One pass of each rule that has something to do, those that others feed behind these. What
    /// changes meanwhile waits for the next round: samples that keep coming a little late do not make
    /// a step be computed over and over again. Where one has more to do for long, as with a backfill,
    /// the others have another pass meanwhile.
    ///
    /// # Errors
    /// Why there is none.
    pub(in crate::rules) fn round(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        now_ms: i64,
    ) -> Result<(), String> {
        // First: until the readers are known, the log is kept, which a full disk has no room for.
        let plan = self.corrections.watch(shared)?;
        if let Some(why) = self.obstacle(shared) {
            return Err(why);
        }
        self.catch_up(shared, &plan, now_ms)?;
        self.serve(shared, intake, &plan);
        let mut has_ended = vec![false; plan.rules.len()];
        let mut waits_since = Instant::now();
        loop {
            self.corrections.look(shared);
            let (mut has_more, mut goes_on) = (false, false);
            for &at in &plan.order {
                if self.corrections.has_stopped() || self.corrections.plan().number != plan.number {
                    return Ok(());
                }
                let Ok(reader) = plan.rules[at].reader else {
                    continue;
                };
                if has_ended[at] || !self.corrections.has_pending(reader) || !self.is_due(reader) {
                    continue;
                }
                let begun = Instant::now();
                let turned = self.correct(shared, intake, &plan, at);
                has_more |= matches!(turned, Turned::More | Turned::Done(_));
                has_ended[at] = turned != Turned::More;
                goes_on |= !has_ended[at];
                if has_ended[at] {
                    self.corrections.state.lock().urgent.remove(&reader);
                }
                self.rest(begun.elapsed());
                self.serve(shared, intake, &plan);
            }
            if !has_more {
                self.corrections.state.lock().urgent.clear();
                return Ok(());
            }
            if goes_on && waits_since.elapsed() > WAIT_MAX {
                has_ended.fill(false);
                waits_since = Instant::now();
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
            // Rows of the rules below it are written by now; a pass that was begun before may
            // know nothing of them.
            let position = ticket.position.max(shared.db.position());
            loop {
                if Instant::now() >= ticket.deadline || self.corrections.has_stopped() {
                    let rule = plan.rules[at].name();
                    return Err(format!(
                        "late samples are still being worked into rows of {rule}"
                    ));
                }
                match self.correct(shared, intake, plan, at) {
                    Turned::Nothing => break,
                    Turned::Done(done) if done >= position => break,
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

    /// Leaves the core to others after work that took `took`.
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

    fn next_ticket(&self) -> Option<Arc<Ticket>> {
        self.state.lock().tickets.pop_front()
    }

    /// There is nothing to wait for.
    fn refuse_all(&self, why: &str) {
        self.state.lock().urgent.clear();
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
            let is_urgent =
                !state.urgent.is_empty() || state.has_stopped || !state.tickets.is_empty();
            if is_urgent || self.changed.wait_until(&mut state, until).timed_out() || !is_rest {
                return;
            }
        }
    }
}
