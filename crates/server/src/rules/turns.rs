//! What a thread does when a group is due.

use super::due::Task;
use super::group::Health;
use super::group::{LiveGroup, RESTORES_AFTER, Run, ShownRule};
use super::manager::Manager;
use super::owners::RuleId;
use super::reader::{RuleStorage, append};
use super::restore;
use crate::base::clock::now_ms;
use crate::intake::{EngineIntake, InPause, Way};
use crate::observe::{Protocol, Route};
use crate::state::Shared;
use latewood_promql::labels::Labels;
use latewood_promql::source::STALE_BITS;
use latewood_rules::Kind;
use latewood_rules::evaluate::{Failure, Row};
use std::cmp::Reverse;
use std::sync::Arc;
use std::sync::atomic::Ordering as Atomic;
use std::time::{Duration, Instant};

/// Threads that evaluate groups.
pub(crate) const THREADS: usize = 4;
/// How soon a clock that was set is looked at.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// Bytes of the disk that rules leave to others.
const FREE_BYTES_MIN: u64 = 64 << 20;

impl Manager {
    /// Evaluates groups when they are due, until the server stops.
    pub(crate) fn run(&self, shared: &Arc<Shared>) {
        let mut intake = Self::intake(shared);
        while let Some((at_ms, task)) = self.next(now_ms) {
            self.perform(shared, &mut intake, at_ms, task);
        }
    }

    /// What writes the rows of rules.
    pub(super) fn intake(shared: &Arc<Shared>) -> EngineIntake {
        let way = Way::new(Protocol::Rules, Route::Rules);
        EngineIntake::new(Arc::clone(shared), way, "rules", None, InPause::Refuse)
    }

    /// Waits for what is due next by `clock`; `None` once the server stops.
    pub(super) fn next(&self, clock: fn() -> i64) -> Option<(i64, Task)> {
        let mut groups = self.groups.lock();
        loop {
            if groups.turns.has_stopped() {
                return None;
            }
            let now_ms = clock();
            groups.turns.see(now_ms);
            let wait = match groups.turns.due.peek() {
                Some(Reverse(due)) if due.at_ms <= now_ms => {
                    let due = groups.turns.due.pop()?.0;
                    return Some((due.at_ms, due.task));
                }
                Some(Reverse(due)) => {
                    LOOK_EVERY.min(Duration::from_millis(due.at_ms.abs_diff(now_ms)))
                }
                None => LOOK_EVERY,
            };
            self.changed.wait_for(&mut groups, wait);
        }
    }

    /// Does what was due at `at_ms`, and has the group come again.
    pub(super) fn perform(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        at_ms: i64,
        task: Task,
    ) {
        let group = match task {
            Task::Left { series, at_ms } => {
                self.end_series(shared, intake, series, at_ms);
                return self.protect(shared);
            }
            Task::Evaluate(group) if group.is_retired() => return,
            Task::Evaluate(group) => group,
        };
        let (newest_ms, missed) = group.grid.newest(at_ms, now_ms());
        if shared.db.is_loading() || !shared.is_owner() {
            self.corrections.forget();
            group.forget(&self.owners);
        } else {
            self.turn(shared, intake, &group, newest_ms, missed);
        }
        let next_ms = newest_ms + group.interval_ms();
        self.protect(shared);
        group.goes_on_at(next_ms);
        self.groups.lock().turns.put(next_ms, Task::Evaluate(group));
        self.changed.notify_one();
    }

    /// One evaluation of a group, unless something stands against it.
    pub(super) fn turn(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        group: &LiveGroup,
        at_ms: i64,
        mut missed: u64,
    ) {
        group
            .figures
            .iterations
            .fetch_add(missed + 1, Atomic::Relaxed);
        let evaluated = match self.obstacle(shared) {
            Some(why) => Err(why),
            None => self.evaluate(shared, intake, group, at_ms),
        };
        if let Err(why) = evaluated {
            missed += 1;
            let error = format!("rules are not evaluated: {why}");
            group.show(|shown| {
                for rule in &mut shown.rules {
                    (rule.health, rule.error) = (Health::Bad, error.clone());
                }
            });
        }
        group.figures.missed.fetch_add(missed, Atomic::Relaxed);
    }

    fn evaluate(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        group: &LiveGroup,
        at_ms: i64,
    ) -> Result<(), String> {
        let (begun, began_ms) = (Instant::now(), now_ms());
        let mut run = group.run.lock();
        let row_ms = at_ms - self.offset_ms(group);
        let mut begun_rules = self.begin_group(shared, group, &mut run, row_ms)?;
        let (mut samples, mut rules_took) = (0, Duration::ZERO);
        for rule in 0..group.group.rules.len() {
            if group.is_retired() || shared.lifetime.stopping.load(Atomic::Acquire) {
                return Ok(());
            }
            if run.rules[rule]
                .newest_ms
                .is_some_and(|newest_ms| newest_ms > row_ms)
            {
                // The clock was set back: corrections mend the rows of such a step.
                continue;
            }
            let of = (group, rule);
            self.begin_rule(shared, &mut begun_rules, of, &mut run, row_ms)?;
            let (took, rows) = self.step(shared, intake, group, &mut run, rule, at_ms);
            rules_took += took;
            samples += rows;
        }
        let left = std::mem::take(&mut run.left);
        self.end_series(shared, intake, left, row_ms);
        if let Some(evaluations) = run.restores_after {
            run.restores_after = (evaluations + 1 < RESTORES_AFTER).then_some(evaluations + 1);
            if run.restores_after.is_none() {
                let began = Instant::now();
                restore::restore(self, shared, group, &mut run, now_ms());
                group.show(|shown| shown.restore_took = began.elapsed());
            }
        }
        let took = begun.elapsed();
        self.figures.groups.note(took);
        group.show(|shown| {
            (shown.took, shown.rules_took) = (took, rules_took);
            (shown.began_ms, shown.at_ms, shown.samples) = (began_ms, at_ms, samples);
        });
        Ok(())
    }

    /// Evaluates one rule. Returns how long it took, and its rows.
    fn step(
        &self,
        shared: &Arc<Shared>,
        intake: &mut EngineIntake,
        group: &LiveGroup,
        run: &mut Run,
        at: usize,
        at_ms: i64,
    ) -> (Duration, usize) {
        let (begun, began_ms) = (Instant::now(), now_ms());
        let is_alert = matches!(group.group.rules[at].kind, Kind::Alert(_));
        let mut storage = RuleStorage {
            manager: self,
            shared,
            intake,
            rule: run.rules[at].id,
            deadline: begun + self.longest,
            is_retired: &group.is_retired,
            holds_back: is_alert && run.restores_after.is_some(),
        };
        run.running.step_of(at, at_ms, &self.options, &mut storage);
        let took = begun.elapsed();
        if group.is_retired() || shared.lifetime.stopping.load(Atomic::Acquire) {
            // What was cut short is no failure.
            return (took, 0);
        }
        self.figures.rules.note(took);
        group.figures.evaluations.fetch_add(1, Atomic::Relaxed);
        let step = run.running.last(at);
        let failure = step.and_then(|step| step.failure.as_ref());
        if let Some(failure) = failure {
            group.figures.failures.fetch_add(1, Atomic::Relaxed);
            let (file, name) = (&group.file, &group.group.name);
            let rule = &group.group.rules[at].name;
            tracing::warn!(file, group = name, rule, %failure, "a rule failed");
        }
        let mut shown = ShownRule::of(step, took, began_ms);
        let rows = shown.rows;
        // What is not stored is not told either.
        let is_stored = !matches!(failure, Some(Failure::Storage(_)));
        let row_ms = at_ms - self.offset_ms(group);
        self.ended(shared, group, run, at, row_ms, !is_stored);
        if is_alert {
            shown.alerts = run.running.alerts(at).cloned().collect();
            if is_stored {
                let sent = &mut run.rules[at].sent;
                self.notifier.notify(group, at, &shown.alerts, sent, at_ms);
            }
        }
        group.show(|group| group.rules[at] = shown);
        (took, rows)
    }

    /// Marks those of `series` stale that nobody took over.
    fn end_series(
        &self,
        shared: &Shared,
        intake: &mut EngineIntake,
        series: Vec<(RuleId, Labels)>,
        at_ms: i64,
    ) {
        let still_owned = series
            .into_iter()
            .flat_map(|(id, labels)| self.owners.release(id, vec![labels]));
        let rows: Vec<Row> = still_owned
            .map(|labels| Row {
                labels,
                at_ms,
                value: f64::from_bits(STALE_BITS),
            })
            .collect();
        if rows.is_empty() {
            return;
        }
        if let Err(why) = append(intake, &shared.db, &rows, 0..rows.len()) {
            tracing::warn!(why, "series of removed rules could not be marked stale");
        }
    }

    /// Why no rule can be evaluated now, if there is a reason.
    pub(super) fn obstacle(&self, shared: &Shared) -> Option<String> {
        let mut looked = self.obstacle.lock();
        if let Some((when, found)) = &*looked
            && when.elapsed() < LOOK_EVERY
        {
            return found.clone();
        }
        let found = shared.unready().or_else(|| {
            // Where the system does not say it, writes will.
            let disk = rustix::fs::statvfs(&shared.settings.dir).ok()?;
            let free_bytes = disk.f_bavail.saturating_mul(disk.f_frsize);
            (free_bytes < FREE_BYTES_MIN)
                .then(|| format!("the disk is almost full ({free_bytes} bytes left)"))
        });
        let was_free = looked.as_ref().is_none_or(|(_, found)| found.is_none());
        match &found {
            Some(why) if was_free => tracing::warn!(why, "rules are not evaluated"),
            None if !was_free => tracing::info!("rules are evaluated again"),
            _ => {}
        }
        *looked = Some((Instant::now(), found.clone()));
        found
    }
}
