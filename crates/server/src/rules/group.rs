//! A group under evaluation: what its rules have done, and how readers see them.
//!
//! Invariants: whoever evaluates the group holds `run`, so it never runs twice at a time; `shown` is
//! never held while something is evaluated, so readers wait for nobody. A group that is retired is
//! not evaluated again, and what is under way ends soon and writes nothing.

use super::delays::Delays;
use super::figures::GroupFigures;
use super::grid::Grid;
use super::owners::{Owners, RuleId};
use latewood_promql::labels::Labels;
use latewood_rules::evaluate::{Active, Running, State, Step};
use latewood_rules::{Group, Kind, Rule};
use parking_lot::Mutex;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::time::Duration;

/// Evaluations after which the states of alerts are restored: what alerts read may be written by
/// other rules.
pub(super) const RESTORES_AFTER: u32 = 2;

/// A group under evaluation.
pub(crate) struct LiveGroup {
    /// The file that it is in.
    pub(crate) file: String,
    /// As it was read.
    pub(crate) group: Group,
    pub(crate) figures: GroupFigures,
    /// How late the samples come that its rules read, in their order.
    pub(crate) delays: Vec<Arc<Delays>>,
    pub(super) grid: Grid,
    /// The first time at which it was not evaluated.
    next_ms: AtomicI64,
    pub(super) is_retired: Arc<AtomicBool>,
    pub(super) run: Mutex<Run>,
    shown: Mutex<Shown>,
}

/// What its rules have done.
pub(super) struct Run {
    pub(super) running: Running,
    pub(super) rules: Vec<RuleRun>,
    /// Series of rules that are gone.
    pub(super) left: Vec<(RuleId, Labels)>,
    /// Evaluations so far, while states of alerts are to be restored.
    pub(super) restores_after: Option<u32>,
}

/// What one rule has done beside that.
pub(super) struct RuleRun {
    pub(super) id: RuleId,
    /// When Alertmanagers were told of an alert, milliseconds.
    pub(super) sent: BTreeMap<Labels, i64>,
    /// The time of the newest rows, milliseconds: all steps up to it were evaluated or wait to be
    /// computed again. Not known after a start.
    pub(super) newest_ms: Option<i64>,
}

/// A group as readers see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Shown {
    /// How long the last evaluation took.
    pub(crate) took: Duration,
    /// The same of each rule, together.
    pub(crate) rules_took: Duration,
    /// When the last evaluation began, milliseconds; 0 if there was none.
    pub(crate) began_ms: i64,
    /// The time that it was for, milliseconds.
    pub(crate) at_ms: i64,
    /// Rows of the last evaluation.
    pub(crate) samples: usize,
    /// How long restoring the states of alerts took.
    pub(crate) restore_took: Duration,
    /// In the order of the group.
    pub(crate) rules: Vec<ShownRule>,
}

/// A rule as readers see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct ShownRule {
    pub(crate) health: Health,
    /// Why the last evaluation failed; empty if it did not.
    pub(crate) error: String,
    /// How long the last evaluation took.
    pub(crate) took: Duration,
    /// When it began, milliseconds; 0 if there was none.
    pub(crate) began_ms: i64,
    /// Also those that were resolved lately.
    pub(crate) alerts: Arc<[Active]>,
}

/// How the last evaluation of a rule ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Health {
    /// There was none.
    #[default]
    Unknown,
    Good,
    Bad,
}

impl Health {
    /// As in the HTTP API.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unknown => "unknown",
            Self::Good => "ok",
            Self::Bad => "err",
        }
    }
}

impl ShownRule {
    /// The state of an alerting rule: the highest one of its alerts.
    pub(crate) fn state(&self) -> &'static str {
        if self.began_ms == 0 {
            return "unknown";
        }
        let highest = self.alerts.iter().map(|alert| alert.state).max();
        highest.unwrap_or(State::Inactive).name()
    }

    /// The alerts that are pending or fire.
    pub(crate) fn active(&self) -> impl Iterator<Item = &Active> {
        let alerts = self.alerts.iter();
        alerts.filter(|alert| alert.resolved_at_ms.is_none())
    }
}

impl LiveGroup {
    /// A group that was not evaluated yet. Where it `restores`, the states of its alerts are
    /// continued from what is stored.
    pub(super) fn new(
        (file, group): (String, Group),
        interval_ms: i64,
        owners: &Owners,
        restores: bool,
    ) -> Self {
        let name = |rule: &Rule| format!("rule {} of group {} in {file}", rule.name, group.name);
        let rules = group.rules.iter().map(|rule| RuleRun {
            id: owners.add(&name(rule)),
            sent: BTreeMap::new(),
            newest_ms: None,
        });
        let run = Run {
            rules: rules.collect(),
            running: Running::new(group.clone()),
            left: Vec::new(),
            restores_after: restores.then_some(0),
        };
        let shown = Shown {
            rules: vec![ShownRule::default(); group.rules.len()],
            ..Shown::default()
        };
        Self {
            grid: Grid::new(&file, &group.name, group.interval_ms.unwrap_or(interval_ms)),
            delays: group.rules.iter().map(|_| Arc::default()).collect(),
            file,
            group,
            figures: GroupFigures::default(),
            next_ms: AtomicI64::new(i64::MAX),
            is_retired: Arc::default(),
            run: Mutex::new(run),
            shown: Mutex::new(shown),
        }
    }

    /// File and name, as Prometheus' metrics have them.
    pub(crate) fn key(&self) -> String {
        format!("{};{}", self.file, self.group.name)
    }

    /// How often it is evaluated, milliseconds.
    pub(crate) fn interval_ms(&self) -> i64 {
        self.grid.interval_ms()
    }

    /// When it is evaluated first: not later than it would have been without a reload.
    pub(super) fn first_ms(&self, now_ms: i64) -> i64 {
        let after_ms = self.grid.after(now_ms);
        self.next_ms
            .fetch_min(after_ms, Ordering::Relaxed)
            .min(after_ms)
    }

    /// It was evaluated at all times before.
    pub(super) fn goes_on_at(&self, next_ms: i64) {
        self.next_ms.store(next_ms, Ordering::Relaxed);
    }

    /// How it is now.
    pub(crate) fn shown(&self) -> Shown {
        self.shown.lock().clone()
    }

    pub(super) fn show(&self, change: impl FnOnce(&mut Shown)) {
        change(&mut self.shown.lock());
    }

    /// Whether it does what `group` says, so that it can go on.
    pub(super) fn is_same(&self, group: &Group, interval_ms: i64) -> bool {
        let own = &self.group;
        let is_same = |(a, b): (&Rule, &Rule)| {
            let texts = [a, b].map(|rule| rule.query.expr().to_string());
            (&a.name, &a.kind) == (&b.name, &b.kind) && texts[0] == texts[1]
        };
        own.name == group.name
            && self.interval_ms() == group.interval_ms.unwrap_or(interval_ms)
            && (own.limit, own.query_offset_ms) == (group.limit, group.query_offset_ms)
            && own.rules.len() == group.rules.len()
            && own.rules.iter().zip(&group.rules).all(is_same)
    }

    pub(super) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Acquire)
    }

    /// Ends it. Returns the series of its rules, which others may take over from now on.
    pub(super) fn retire(&self, owners: &Owners) -> Vec<(RuleId, Labels)> {
        self.is_retired.store(true, Ordering::Release);
        let mut run = self.run.lock();
        let mut left = std::mem::take(&mut run.left);
        for (at, rule) in run.rules.iter().enumerate() {
            owners.remove(rule.id);
            left.extend(run.running.seen(at).map(|labels| (rule.id, labels.clone())));
        }
        left
    }

    /// Goes on where another version of the same group ends: each rule with the first one that has
    /// the same name and labels.
    pub(super) fn continue_from(&mut self, old: &Self, owners: &Owners) {
        old.is_retired.store(true, Ordering::Release);
        let (mut old_run, mut run) = (old.run.lock(), self.run.lock());
        let mut by_name: HashMap<_, VecDeque<usize>> = HashMap::new();
        let mut continued = Vec::new();
        for (at, rule) in old.group.rules.iter().enumerate() {
            let held = by_name.entry((&rule.name, rule.labels())).or_default();
            held.push_back(at);
        }
        for (at, rule) in self.group.rules.iter().enumerate() {
            let same = by_name.get_mut(&(&rule.name, rule.labels()));
            let Some(from) = same.and_then(VecDeque::pop_front) else {
                continue;
            };
            owners.remove(run.rules[at].id);
            let held = &mut old_run.rules[from];
            run.rules[at] = RuleRun {
                id: held.id,
                sent: std::mem::take(&mut held.sent),
                newest_ms: None,
            };
            let is_alert = matches!(rule.kind, Kind::Alert(_));
            continued.push((at, from));
            let alerts = old_run.running.alerts(from).filter(|_| is_alert).cloned();
            let seen = old_run.running.seen(from).cloned();
            run.running.restore(at, alerts, seen);
        }
        run.left = std::mem::take(&mut old_run.left);
        for from in by_name.into_values().flatten() {
            let id = old_run.rules[from].id;
            owners.remove(id);
            let seen = old_run.running.seen(from);
            run.left.extend(seen.map(|labels| (id, labels.clone())));
        }
        run.restores_after = old_run.restores_after;
        drop(run);
        if self.grid == old.grid {
            // A time at which the evaluation was cut short comes again.
            self.goes_on_at(old.next_ms.load(Ordering::Relaxed));
        }
        self.figures.continue_from(&old.figures);
        let was = old.shown();
        self.show(|shown| {
            (shown.took, shown.began_ms, shown.at_ms) = (was.took, was.began_ms, was.at_ms);
            for &(at, from) in &continued {
                let (rule, old) = (&mut shown.rules[at], &was.rules[from]);
                if matches!(self.group.rules[at].kind, Kind::Alert(_)) {
                    (rule.began_ms, rule.alerts) = (old.began_ms, Arc::clone(&old.alerts));
                }
            }
        });
        for (at, from) in continued {
            if self.group.rules[at].text == old.group.rules[from].text {
                self.delays[at] = Arc::clone(&old.delays[from]);
            }
        }
    }

    /// Forgets what its rules did, as another node goes on with them.
    pub(super) fn forget(&self, owners: &Owners) {
        let mut run = self.run.lock();
        run.rules.iter_mut().for_each(|rule| rule.newest_ms = None);
        if run.restores_after == Some(0) {
            return;
        }
        for (at, rule) in run.rules.iter().enumerate() {
            drop(owners.release(rule.id, run.running.seen(at).cloned().collect()));
        }
        run.running = Running::new(self.group.clone());
        run.rules.iter_mut().for_each(|rule| rule.sent.clear());
        run.left.clear();
        run.restores_after = Some(0);
        let rules = vec![ShownRule::default(); self.group.rules.len()];
        self.show(|shown| {
            *shown = Shown {
                rules,
                ..Shown::default()
            }
        });
    }
}

impl ShownRule {
    /// After a step.
    pub(super) fn of(step: Option<&Step>, took: Duration, began_ms: i64) -> Self {
        let failure = step.and_then(|step| step.failure.as_ref());
        Self {
            health: if failure.is_some() {
                Health::Bad
            } else {
                Health::Good
            },
            error: failure.map_or_else(String::new, ToString::to_string),
            took,
            began_ms,
            alerts: Arc::default(),
        }
    }
}
