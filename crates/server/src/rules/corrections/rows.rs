//! What a rule gives at some steps, and what is stored there: the comparison that the corrector
//! applies and that `verify` lists. Reads only. Tested by `super::tests`.

use super::plan::{Plan, Planned};
use super::sound::Sound;
use crate::labelled::{self, Views, key_of, raw};
use crate::rules::manager::Manager;
use crate::rules::reader::RuleReader;
use crate::state::Shared;
use latewood_engine::{SeriesRef, Sink};
use latewood_promql::engine::Query;
use latewood_promql::labels::Labels;
use latewood_promql::reads::Narrow;
use latewood_promql::source::{Matcher, Source};
use latewood_rules::correct::compare::{Compared, Difference, Pair};
use latewood_rules::correct::given::{Given, Many};
use latewood_rules::correct::steps::whole_from;
use latewood_wire::series_name::SeriesName;
use parking_lot::Mutex;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

/// Series that are read under one share of the exec lock.
const PART_SERIES: usize = 1024;

/// A rule, or one group of it, that is compared.
pub(super) struct Comparing<'a> {
    pub(super) manager: &'a Manager,
    pub(super) shared: &'a Arc<Shared>,
    pub(super) plan: &'a Plan,
    pub(super) planned: &'a Planned,
    /// The labels of a group, where the rule is computed group by group.
    pub(super) group: Option<&'a Labels>,
    /// When reading must end; else as evaluations of rules.
    pub(super) deadline: Option<Instant>,
}

/// A series of a rule at some steps.
#[derive(Debug)]
pub(super) struct SeriesRows {
    pub(super) labels: Labels,
    /// No user made it.
    pub(super) is_of_rule: bool,
    /// What the rule gives, or another one that may write the same series.
    pub(super) given: Vec<Pair>,
    /// Whether the rule itself gives a row at the last step.
    pub(super) is_last_own: bool,
    /// What is stored there, at the step before and at the one behind.
    pub(super) stored: Vec<Pair>,
}

/// All series of a rule at some steps.
pub(super) struct Rows {
    pub(super) compared: Compared,
    /// By labels.
    pub(super) series: Vec<SeriesRows>,
    /// Steps at which the expression fails, and the reason of the last one.
    pub(super) failed: usize,
    pub(super) failure: String,
}

impl Rows {
    /// The series that the rule gives at the step where it gives most.
    pub(super) fn widest(&self) -> usize {
        let mut counts: BTreeMap<i64, usize> = BTreeMap::new();
        for (at_ms, _) in self.series.iter().flat_map(|series| &series.given) {
            *counts.entry(*at_ms).or_default() += 1;
        }
        counts.into_values().max().unwrap_or(0)
    }
}

impl SeriesRows {
    /// What is not as it must be.
    pub(super) fn differences(&self, compared: &Compared) -> Vec<Difference> {
        let compared = Compared {
            removes_between: compared.removes_between && self.is_of_rule,
            ..*compared
        };
        compared.series(&self.given, &self.stored)
    }
}

impl Comparing<'_> {
    /// Compares the steps of `from..=to`.
    ///
    /// # Errors
    /// What may pass.
    pub(super) fn rows(&self, mut compared: Compared) -> Result<Rows, String> {
        let rivals = &self.planned.rivals;
        let grids = rivals.iter().map(|rival| self.plan.rules[*rival].grid);
        compared.removes_between = grids.into_iter().all(|grid| {
            grid.interval_ms == compared.grid.interval_ms && grid.has(compared.grid.some_ms)
        });
        let mut given = self.given(self.planned, &compared)?;
        let failed = given.failed.len();
        let failure = given.failed.values().last().cloned().unwrap_or_default();
        let is_last_own = |given: &Given, labels: &Labels| {
            let last = given.rows.get(labels).and_then(|rows| rows.last());
            last.is_some_and(|last| last.0 == compared.to)
        };
        let own = (!rivals.is_empty()).then(|| given.clone());
        for rival in rivals {
            given.add(self.given(&self.plan.rules[*rival], &compared)?);
        }
        let (first, last) = compared.reach();
        let mut stored = self.stored(&given, first, last)?;
        let mut series = Vec::with_capacity(given.rows.len().max(stored.len()));
        for (labels, given) in given.rows {
            let (is_of_rule, stored) = stored.remove(&labels).unwrap_or_default();
            let is_last = given.last().is_some_and(|last| last.0 == compared.to);
            series.push(SeriesRows {
                is_last_own: own
                    .as_ref()
                    .map_or(is_last, |own| is_last_own(own, &labels)),
                labels,
                is_of_rule,
                given,
                stored,
            });
        }
        series.extend(
            stored
                .into_iter()
                .map(|(labels, (is_of_rule, stored))| SeriesRows {
                    labels,
                    is_of_rule,
                    given: Vec::new(),
                    is_last_own: false,
                    stored,
                }),
        );
        Ok(Rows {
            compared,
            series,
            failed,
            failure,
        })
    }

    fn narrow(&self) -> Option<(Narrow<'_>, &Labels)> {
        Some((self.planned.narrow()?, self.group?))
    }

    fn given(&self, planned: &Planned, compared: &Compared) -> Result<Given, String> {
        let rule = planned.rule();
        let part: Option<Query> = self
            .narrow()
            .filter(|_| std::ptr::eq(planned, self.planned))
            .map(|(narrow, group)| narrow.query(rule.query.expr(), group));
        let many = Many {
            rule,
            query: part.as_ref().unwrap_or(&rule.query),
            reads: &planned.reads,
            limit: planned.group.group.limit,
            interval_ms: compared.grid.interval_ms,
            settings: &self.manager.options.settings,
        };
        let damage = Mutex::new(None);
        let mut sources = || {
            let views = Views::new(self.reader());
            let damage = &damage;
            Ok(Box::new(Sound { views, damage }) as Box<dyn Source + '_>)
        };
        let mut given = Given::default();
        let grid = planned.grid;
        if grid.interval_ms != compared.grid.interval_ms {
            // A rival with other steps: those that both have.
            let mut at_ms = compared.from;
            while at_ms <= compared.to {
                if grid.has(at_ms) {
                    given.add(many.evaluate(at_ms, at_ms, &mut sources)?);
                }
                at_ms += compared.grid.interval_ms;
            }
        } else if grid.has(compared.from) {
            given = many.evaluate(compared.from, compared.to, &mut sources)?;
        }
        damage.into_inner().map_or(Ok(given), Err)
    }

    fn reader(&self) -> RuleReader {
        let longest = Instant::now() + self.manager.longest;
        RuleReader {
            shared: Arc::clone(self.shared),
            deadline: self
                .deadline
                .map_or(longest, |deadline| deadline.min(longest)),
            is_retired: Arc::clone(&self.planned.group.is_retired),
        }
    }

    /// What all series of the rule, or of the group, pass.
    fn matchers(&self) -> Vec<Matcher> {
        let outputs = self.planned.outputs.first();
        let mut matchers = outputs.map(|output| output.matchers()).unwrap_or_default();
        if let Some((narrow, group)) = self.narrow() {
            matchers.extend(narrow.matchers(group));
        }
        matchers
    }

    /// How many series the rule may have, about.
    pub(super) fn series_about(&self) -> usize {
        let found = labelled::select(&self.shared.db, &self.matchers(), None, None);
        found.map_or(0, |found| found.len())
    }

    /// The stored rows of all series that the rule may have written. Those that a user made are
    /// not among them, even if they look alike, unless the rule has taken them over.
    /// Each with whether it is one of rules.
    fn stored(
        &self,
        given: &Given,
        from: i64,
        to: i64,
    ) -> Result<BTreeMap<Labels, (bool, Vec<Pair>)>, String> {
        let db = &self.shared.db;
        let matchers = self.matchers();
        let mut name = SeriesName::new();
        let mut found = Vec::new();
        let selected = labelled::select(db, &matchers, None, None);
        for series in selected.map_err(|error| error.to_string())? {
            let labels = db.labels(&series).map_err(|error| error.to_string())?;
            let Some(labels) = labels else {
                continue;
            };
            let shown = labelled::shown(&labels, &series.key);
            let passes = |matcher: &Matcher| matcher.passes(shown.get_bytes(&matcher.name));
            // Another series that looks the same is not one of rules.
            let is_own = key_of(&mut name, &shown).is_ok() && *name.key() == *series.key;
            let is_of_rule = db.is_of_rule(&series).map_err(|error| error.to_string())?;
            let counts = is_of_rule || given.rows.contains_key(&shown);
            if is_own && counts && matchers.iter().all(passes) {
                found.push((shown, is_of_rule, series));
            }
        }
        let mut rows = BTreeMap::new();
        for part in found.chunks(PART_SERIES) {
            let refs: Vec<SeriesRef> = part.iter().map(|one| one.2.clone()).collect();
            let read = self.read(&refs, from, to)?;
            for ((labels, is_of_rule, _), read) in part.iter().zip(read) {
                if !read.is_empty() {
                    rows.insert(labels.clone(), (*is_of_rule, read));
                }
            }
        }
        Ok(rows)
    }

    /// The stored rows of these series.
    pub(super) fn stored_of(
        &self,
        labels: &[&Labels],
        from: i64,
        to: i64,
    ) -> Result<Vec<Vec<Pair>>, String> {
        let mut name = SeriesName::new();
        let mut rows = Vec::with_capacity(labels.len());
        for labels in labels {
            let series = key_of(&mut name, labels).ok();
            let series = series.and_then(|()| self.shared.db.resolve(name.key()).ok());
            rows.push(match series {
                Some(series) => self.read(&[series], from, to)?.pop().unwrap_or_default(),
                None => Vec::new(),
            });
        }
        Ok(rows)
    }

    /// The rows of series; of one that is gone there are none.
    fn read(&self, refs: &[SeriesRef], from: i64, to: i64) -> Result<Vec<Vec<Pair>>, String> {
        let (db, query) = (&self.shared.db, raw(from, to));
        let views = {
            let _shared_lock = self.shared.exec_lock.share_beside_loops();
            db.views(refs, &query, false)
        };
        let mut views = views.into_iter().peekable();
        let mut all = Vec::with_capacity(refs.len());
        for series in refs {
            let mut rows = Collected(Vec::new());
            if let Some(one) = views.next_if(|one| one.key == series.key) {
                let read = one.view.run(&query, &mut rows);
                read.map_err(|error| format!("{}: {error}", labelled::text(&series.key)))?;
            }
            all.push(rows.0);
        }
        Ok(all)
    }

    /// The first step whose inputs are all there, as far as that is known.
    pub(super) fn first_whole(&self) -> i64 {
        let (db, reads) = (&self.shared.db, &self.planned.reads);
        let by_age = match db.retention_ms() as i64 {
            0 => None,
            retention_ms => Some(db.now_ms().saturating_sub(retention_ms)),
        };
        let all = Some(db.floor()).filter(|floor| *floor > 0).max(by_age);
        let of_all = all.map(|floor| whole_from(reads, None, floor));
        let of_each = reads.reads.iter().enumerate().filter_map(|(at, read)| {
            let floor = self.floor(&read.matchers)?;
            Some(whole_from(reads, Some(at), floor))
        });
        of_each.chain(of_all).max().unwrap_or(i64::MIN)
    }

    /// The newest retention floor of the series that a selector finds, milliseconds.
    fn floor(&self, matchers: &[Matcher]) -> Option<i64> {
        let mut matchers = matchers.to_vec();
        if let Some((narrow, group)) = self.narrow() {
            matchers.extend(narrow.matchers(group));
        }
        let db = &self.shared.db;
        // Where it is not known, nothing is whole.
        let Ok(found) = labelled::select(db, &matchers, None, None) else {
            return Some(i64::MAX);
        };
        let floors = found.iter().map(|series| db.floor_of(series));
        floors.filter_map(|floor| floor.ok().flatten()).max()
    }
}

struct Collected(Vec<Pair>);

impl Sink for Collected {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        let rows = timestamps.iter().copied().zip(values.iter().copied());
        self.0.extend(rows);
        ControlFlow::Continue(())
    }
}
