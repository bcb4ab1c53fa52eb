//! One pass of one rule: what changed is drained, computed slice by slice, written, and said to be
//! done.

use super::faults;
use super::pace::Pace;
use super::plan::{Plan, Planned};
use super::rows::{Comparing, Rows};
use super::state::{Last, Retry};
use super::work::{Known, STEPS_MAX, Taken, Work};
use crate::base::clock::now_ms;
use crate::intake::EngineIntake;
use crate::rules::manager::Manager;
use crate::state::Shared;
use latewood_engine::{Position, ReaderId, ReaderState};
use latewood_rules::correct::compare::Compared;
use latewood_rules::evaluate::crowded;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long a pass works before others have their turn.
const TURN_MAX: Duration = Duration::from_millis(200);
/// The first and the longest wait before a pass that failed is repeated.
const RETRY_MIN: Duration = Duration::from_secs(1);
const RETRY_MAX: Duration = Duration::from_secs(60);

/// How a pass ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::rules) enum Turned {
    /// There was nothing to do.
    Nothing,
    /// There is more to do.
    More,
    /// All changes of the log up to here are worked in.
    Done(Position),
    /// It is repeated.
    Failed(String),
}

const CHANGED: &str = "the group was changed or removed meanwhile";

impl Manager {
    /// Computes again what changed for one rule.
    pub(in crate::rules) fn correct(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        plan: &Plan,
        at: usize,
    ) -> Turned {
        let (begun, began_ms) = (Instant::now(), now_ms());
        let _turn = self.corrections.turn.lock();
        let planned = &plan.rules[at];
        let Ok(reader) = planned.reader else {
            return Turned::Nothing;
        };
        let of = Comparing {
            manager: self,
            shared,
            plan,
            planned,
            group: None,
            deadline: None,
        };
        let turned = self.pass(intake, &of, reader, begun);
        if turned != Turned::Nothing {
            let took = begun.elapsed();
            self.note_turn(planned, reader, &turned, Last { began_ms, took });
        }
        turned
    }

    fn pass(
        &self,
        intake: &mut EngineIntake,
        of: &Comparing<'_>,
        reader: ReaderId,
        begun: Instant,
    ) -> Turned {
        let held = self.with_rule(reader, |rule| rule.work.take());
        let work = match held {
            Some(work) => Ok(Some(work)),
            None => self.find_work(of, reader),
        };
        let mut work = match work {
            Ok(Some(work)) => work,
            Ok(None) => return Turned::Nothing,
            Err(why) => return Turned::Failed(why),
        };
        if faults::is_done_first()
            && let Err(error) = of.shared.db.done(reader, work.position)
        {
            return Turned::Failed(error.to_string());
        }
        while !work.is_empty() {
            if let Err(why) = self.slice(intake, of, &mut work) {
                // All that was drained is drained again.
                return Turned::Failed(why);
            }
            if begun.elapsed() <= TURN_MAX {
                continue;
            }
            work.end_part(of.planned);
            if !work.is_empty() {
                let pending = work.pending(of.planned);
                self.with_rule(reader, |rule| {
                    rule.pending = pending;
                    rule.work = Some(work);
                });
                return Turned::More;
            }
        }
        match self.finish(of, &work) {
            Ok(why) if !why.is_empty() => Turned::Failed(why),
            Ok(_) if work.is_part => Turned::More,
            Ok(_) => Turned::Done(work.position),
            Err(why) => Turned::Failed(why),
        }
    }

    /// Says that the work is done. Returns why steps of it could not be computed, or of other parts
    /// if this is the last one; empty if all could.
    fn finish(&self, of: &Comparing<'_>, work: &Work) -> Result<String, String> {
        // First: whatever is not done is told again.
        for &(from, to) in work.later.spans() {
            self.add_steps(of.shared, of.planned, from, to)?;
        }
        if faults::stops() {
            return Err("the process has ended here".to_owned());
        }
        let done = of.shared.db.done(work.reader, work.position);
        done.map_err(|error| error.to_string())?;
        let later = (work.later.len(&of.planned.grid), work.later.ends());
        Ok(self.with_rule(work.reader, |rule| {
            (rule.pending, rule.owed) = (later, work.owed.clone());
            rule.next_part = work.next_part;
            if !work.failure.is_empty() {
                rule.part_failure.clone_from(&work.failure);
            }
            if work.next_part.is_some() {
                String::new()
            } else {
                std::mem::take(&mut rule.part_failure)
            }
        }))
    }

    /// Drains what changed, and says which steps that makes dirty.
    pub(super) fn drained(
        &self,
        of: &Comparing<'_>,
        reader: ReaderId,
    ) -> Result<Option<(Work, Known)>, String> {
        let (db, planned) = (&of.shared.db, of.planned);
        let drained = db.drain(reader).map_err(|error| error.to_string())?;
        if drained.changes.is_empty() {
            return Ok(None);
        }
        // After the drain: an evaluation that it knows of has ended.
        let newest = {
            let run = planned.group.run.lock();
            if planned.group.is_retired() {
                return Ok(None);
            }
            run.rules[planned.at].newest_ms
        };
        let (Some(newest), Some(state)) = (newest, db.reader(reader)) else {
            return Ok(None);
        };
        let known = self.known(of, newest, &state);
        let work = Work::new(reader, drained.position, &drained.changes, of, &known);
        Ok(Some((work, known)))
    }

    /// Drains what changed, if that makes steps dirty.
    fn find_work(&self, of: &Comparing<'_>, reader: ReaderId) -> Result<Option<Work>, String> {
        let (db, planned) = (&of.shared.db, of.planned);
        let Some((mut work, known)) = self.drained(of, reader)? else {
            return Ok(None);
        };
        if work.is_empty() && work.final_steps == 0 && !work.later.is_empty() {
            // All of it waits for what it looks ahead to.
            let pending = work.pending(planned);
            self.with_rule(reader, |rule| rule.pending = pending);
            return Ok(None);
        }
        if work.since > known.since {
            let raised = db.set_since(reader, work.since);
            raised.map_err(|error| error.to_string())?;
        }
        let final_steps = &self.corrections.figures.final_steps;
        final_steps.fetch_add(work.final_steps, Ordering::Relaxed);
        // It rises only.
        let begun = db.begin_evaluations(&[(reader, known.newest)]);
        begun.map_err(|error| error.to_string())?;
        if !work.whole.is_empty() || !work.asked.is_empty() {
            work.pace = Pace::new(of.series_about(), STEPS_MAX);
        }
        let next_part = self.with_rule(reader, |rule| rule.next_part);
        work.take_part(planned, next_part);
        let pending = work.pending(planned);
        self.with_rule(reader, |rule| {
            rule.pending = pending;
            if work.since > known.since {
                rule.final_to = Some(work.since);
            }
        });
        Ok(Some(work))
    }

    fn known(&self, of: &Comparing<'_>, newest: i64, state: &ReaderState) -> Known {
        let (db, settings) = (&of.shared.db, &self.settings);
        let now_ms = db.now_ms();
        let back_ms = settings.correct_back_ms as i64;
        Known {
            newest,
            since: state.since,
            now_ms,
            back_to: (back_ms > 0).then(|| now_ms.saturating_sub(back_ms)),
            owed: self.with_rule(state.reader, |rule| rule.owed.clone()),
        }
    }

    /// Computes and writes the next steps. Those that cannot be computed now are put off, alone if
    /// there is time to find out which they are, and the others are not kept waiting.
    ///
    /// # Errors
    /// What keeps all steps from being computed.
    fn slice(
        &self,
        intake: &mut EngineIntake,
        of: &Comparing<'_>,
        work: &mut Work,
    ) -> Result<(), String> {
        if faults::stops() {
            return Err("the process has ended here".to_owned());
        }
        let Some(taken) = work.take(of.planned) else {
            return Ok(());
        };
        let Taken { from, to, .. } = taken;
        let of = Comparing {
            group: taken.group.as_ref(),
            ..*of
        };
        let begun = Instant::now();
        let mut spans = vec![(from, to)];
        while let Some((from, to)) = spans.pop() {
            let newest = of.planned.group.run.lock().rules[of.planned.at].newest_ms;
            let compared = Compared {
                grid: of.planned.grid,
                from,
                to,
                newest: newest.unwrap_or(to),
                since: work.since,
                removes_between: true,
            };
            match self.rows(&of, compared) {
                Ok(rows) => {
                    if of.group.is_none() {
                        work.pace.saw(rows.series.len());
                    }
                    self.apply(intake, &of, work.reader, rows)?;
                }
                Err(_) if of.planned.group.is_retired() => return Err(CHANGED.to_owned()),
                Err(_) if from < to && begun.elapsed() < TURN_MAX => {
                    let interval_ms = compared.grid.interval_ms;
                    let middle = from + (to - from) / interval_ms / 2 * interval_ms;
                    spans.extend([(middle + interval_ms, to), (from, middle)]);
                }
                Err(why) => {
                    let one = Taken {
                        group: None,
                        from,
                        to,
                        ..taken
                    };
                    work.put_off(of.planned, &one, why);
                }
            }
        }
        Ok(())
    }

    /// What steps of a rule give.
    ///
    /// # Errors
    /// Why they cannot be computed now.
    fn rows(&self, of: &Comparing<'_>, compared: Compared) -> Result<Rows, String> {
        let rows = of.rows(compared)?;
        let (made, most) = (rows.widest(), self.series_max());
        if made > most {
            let why = crowded(made, most);
            let Compared { from, to, .. } = compared;
            return Err(format!(
                "{why}; the rows from {from} to {to} stay as they are"
            ));
        }
        Ok(rows)
    }

    fn apply(
        &self,
        intake: &mut EngineIntake,
        of: &Comparing<'_>,
        reader: ReaderId,
        rows: Rows,
    ) -> Result<(), String> {
        let compared = rows.compared;
        if rows.failed > 0 {
            let (rule, why) = (of.planned.name(), &rows.failure);
            tracing::debug!(rule, why, steps = rows.failed, "steps without rows");
        }
        let Some(written) = of.write(intake, rows)? else {
            return Err(CHANGED.to_owned());
        };
        let figures = &self.corrections.figures;
        let steps = compared.grid.count(compared.from, compared.to);
        for (figure, more) in [
            (&figures.steps, steps),
            (&figures.rows_written, written.rows),
            (&figures.rows_deleted, written.deleted),
        ] {
            figure.fetch_add(more, Ordering::Relaxed);
        }
        self.with_rule(reader, |rule| {
            rule.rows_written += written.rows;
            rule.rows_deleted += written.deleted;
        });
        Ok(())
    }

    pub(super) fn with_rule<T>(
        &self,
        reader: ReaderId,
        change: impl FnOnce(&mut super::state::RuleState) -> T,
    ) -> T {
        change(
            self.corrections
                .state
                .lock()
                .rules
                .entry(reader)
                .or_default(),
        )
    }

    fn note_turn(&self, planned: &Planned, reader: ReaderId, turned: &Turned, last: Last) {
        let figures = &self.corrections.figures;
        let took_ns = u64::try_from(last.took.as_nanos()).unwrap_or(u64::MAX);
        figures.took_ns.fetch_add(took_ns, Ordering::Relaxed);
        let why = match turned {
            Turned::Failed(why) => why.clone(),
            _ => String::new(),
        };
        if !why.is_empty() && !planned.group.is_retired() {
            figures.failures.fetch_add(1, Ordering::Relaxed);
            let rule = planned.name();
            tracing::warn!(rule, why, "rows could not be corrected; it is tried again");
        }
        self.with_rule(reader, |rule| {
            let wait = rule
                .retry
                .map_or(RETRY_MIN, |retry| (retry.wait * 2).min(RETRY_MAX));
            // A pass that goes on has not ended yet.
            if *turned != Turned::More {
                rule.retry = (!why.is_empty()).then(|| Retry {
                    at: Instant::now() + wait,
                    wait,
                });
            }
            rule.failure = if why.is_empty() {
                rule.part_failure.clone()
            } else {
                why
            };
            rule.last = Some(last);
        });
    }

    /// Whether a pass of a rule that failed may be repeated.
    pub(super) fn is_due(&self, reader: ReaderId) -> bool {
        self.with_rule(reader, |rule| {
            rule.retry.is_none_or(|retry| retry.at <= Instant::now())
        })
    }
}
