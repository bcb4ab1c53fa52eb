//! A server whose rules are corrected, and the same data in a database that got it in order.
//!
//! Time is that of the tests: step 0 is an hour before the clock of the simulated machine.

use super::{MINUTE_MS, manager_of, write};
use crate::intake::EngineIntake;
use crate::labelled::{self, Views, raw};
use crate::messaging::Mailboxes;
use crate::options::testing::{open_on, shared, shared_over};
use crate::rules::Manager;
use crate::rules::corrections::turn::Turned;
use crate::rules::corrections::{Chosen, Status};
use crate::rules::group::LiveGroup;
use crate::rules::reader::RuleReader;
use crate::state::Rules as Settings;
use crate::state::Shared;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Scratch, Sink};
use latewood_model::{DuplicatePolicy, Labels as Held, SeriesOptions};
use latewood_promql::labels::Labels;
use latewood_promql::source::{STALE_BITS, is_stale};
use latewood_rules::Kind;
use latewood_rules::evaluate::evaluate;
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The clock of the simulated machine, which stands still.
const NOW_MS: i64 = 1_700_000_000_000;

/// Times by key, with values.
type Samples = BTreeMap<i64, f64>;

/// Rows by series and step, as text: values with all bits, stale marks as such.
pub(super) type Rows = BTreeMap<(String, i64), String>;

/// A series that users write.
#[derive(Clone)]
pub(super) struct Sent {
    pub(super) labels: Labels,
    pub(super) samples: Samples,
}

pub(super) struct Bench {
    dir: TempDir,
    change: fn(&mut Settings),
    pub(super) disk: SimDisk,
    pub(super) shared: Arc<Shared>,
    pub(super) manager: Manager,
    intake: EngineIntake,
    /// The time of step 0, milliseconds.
    pub(super) first_ms: i64,
    /// What users have written, by key.
    pub(super) sent: BTreeMap<String, Sent>,
}

fn shared_of(disk: &SimDisk) -> Arc<Shared> {
    let shared = shared_over(open_on(disk, false), Mailboxes::default());
    // Each test turns the wheels itself.
    shared.db.pause_merging();
    shared
}

pub(super) fn labels(text: &str) -> Labels {
    let pairs = text.split(',').filter_map(|pair| pair.split_once('='));
    Labels::from_pairs(pairs)
}

fn options(labels: &Labels) -> SeriesOptions {
    SeriesOptions {
        labels: Held::new(labels.bytes()).unwrap(),
        duplicate_policy: Some(DuplicatePolicy::Last),
        ..SeriesOptions::default()
    }
}

struct Read(Vec<(i64, f64)>);

impl Sink for Read {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        self.0
            .extend(timestamps.iter().copied().zip(values.iter().copied()));
        ControlFlow::Continue(())
    }
}

fn put(shared: &Shared, key: &str, labels: &Labels, at_ms: i64, value: f64) {
    let options = options(labels);
    let append = Append {
        key: key.as_bytes(),
        timestamp: at_ms,
        value,
        on_duplicate: None,
        create: Create::Sent(&options),
    };
    let mut scratch = Scratch::new();
    shared.db.append(&[append], &mut scratch).unwrap();
    assert!(scratch.outcomes()[0].is_ok(), "{:?}", scratch.outcomes()[0]);
}

impl Bench {
    pub(super) fn new(text: &str) -> Self {
        Self::with(text, |_| {})
    }

    pub(super) fn with(text: &str, change: fn(&mut Settings)) -> Self {
        let (dir, disk) = (tempfile::tempdir().unwrap(), SimDisk::new());
        write(dir.path(), text);
        let shared = shared_of(&disk);
        let manager = Self::manager(&dir, &shared, change);
        let group = manager.groups()[0].clone();
        let first_ms = group.grid.after(NOW_MS - 60 * MINUTE_MS) - manager.offset_ms(&group);
        Self {
            intake: Manager::intake(&shared),
            change,
            dir,
            disk,
            shared,
            manager,
            first_ms,
            sent: BTreeMap::new(),
        }
    }

    fn manager(dir: &TempDir, shared: &Shared, change: fn(&mut Settings)) -> Manager {
        manager_of(dir.path(), shared, |settings| {
            settings.correction_cpu_percent = 100;
            change(settings);
        })
    }

    /// The time of the rows of a step.
    pub(super) fn step(&self, step: i64) -> i64 {
        self.first_ms + step * MINUTE_MS
    }

    /// Seconds after step 0.
    pub(super) fn sample(&mut self, key: &str, text: &str, at_s: i64, value: f64) {
        self.sample_ms(key, text, at_s * 1000, value);
    }

    /// The same, milliseconds after step 0.
    pub(super) fn sample_ms(&mut self, key: &str, text: &str, after_ms: i64, value: f64) {
        let at_ms = self.first_ms + after_ms;
        let sent = self.sent.entry(key.to_owned()).or_insert_with(|| Sent {
            labels: labels(text),
            samples: Samples::new(),
        });
        // As everywhere, NaN does not take the place of a number.
        if !value.is_nan() || !sent.samples.contains_key(&at_ms) {
            sent.samples.insert(at_ms, value);
        }
        put(&self.shared, key, &sent.labels, at_ms, value);
    }

    /// Deletes the samples between two times, seconds after step 0.
    pub(super) fn delete(&mut self, key: &str, from_s: i64, to_s: i64) {
        let (from, to) = (self.first_ms + from_s * 1000, self.first_ms + to_s * 1000);
        self.shared
            .db
            .delete_range(key.as_bytes(), from, to)
            .unwrap();
        let sent = self.sent.get_mut(key).unwrap();
        sent.samples.retain(|at, _| !(from..=to).contains(at));
    }

    pub(super) fn relabel(&mut self, key: &str, text: &str) {
        let new = labels(text);
        let held = Held::new(new.bytes()).unwrap();
        let altered = self
            .shared
            .db
            .alter_with(key.as_bytes(), |options| options.labels = held.clone());
        altered.unwrap();
        self.sent.get_mut(key).unwrap().labels = new;
    }

    pub(super) fn remove(&mut self, key: &str) {
        self.shared.db.remove(&[key.as_bytes()]).unwrap();
        self.sent.remove(key);
    }

    /// Evaluates all groups at a step.
    pub(super) fn turn(&mut self, step: i64) {
        for group in self.manager.groups() {
            let at_ms = self.step(step) + self.manager.offset_ms(&group);
            if group.grid.after(at_ms - 1) == at_ms {
                self.manager
                    .turn(&self.shared, &mut self.intake, &group, at_ms, 0);
            }
        }
    }

    /// Evaluates all groups at steps.
    pub(super) fn turns(&mut self, steps: std::ops::RangeInclusive<i64>) {
        steps.for_each(|step| self.turn(step));
    }

    /// One round of corrections, as of a step. Returns the rows that it wrote or deleted.
    pub(super) fn correct(&mut self, step: i64) -> u64 {
        use std::sync::atomic::Ordering::Relaxed;
        let figures = || {
            let figures = self.manager.correction_figures();
            figures.rows_written.load(Relaxed) + figures.rows_deleted.load(Relaxed)
        };
        let before = figures();
        let at_ms = self.step(step);
        let round = self.manager.round(&self.shared, &mut self.intake, at_ms);
        assert_eq!(round, Ok(()));
        figures() - before
    }

    /// One pass of the first rule.
    pub(super) fn pass(&mut self) -> Turned {
        let plan = self.manager.corrections.plan();
        self.manager
            .correct(&self.shared, &mut self.intake, &plan, 0)
    }

    /// How the first rule is corrected.
    pub(super) fn status(&self) -> Status {
        let group = self.manager.groups()[0].clone();
        self.manager.corrections_of(&group, 0)
    }

    /// Starts again, after what `to` makes of the disk.
    pub(super) fn restart(&mut self, to: impl FnOnce(&SimDisk) -> SimDisk) {
        self.shared.db.sync().unwrap();
        self.disk = to(&self.disk);
        self.shared = shared_of(&self.disk);
        self.intake = Manager::intake(&self.shared);
        self.manager = Self::manager(&self.dir, &self.shared, self.change);
    }

    /// Other rules from now on.
    pub(super) fn reload(&mut self, text: &str) {
        write(self.dir.path(), text);
        self.manager.reload().unwrap();
    }

    fn is_recorded(&self, metric: &str) -> bool {
        let groups = self.manager.groups();
        let mut rules = groups.iter().flat_map(|group| &group.group.rules);
        rules.any(|rule| rule.name == metric)
    }

    /// All rows of rules.
    pub(super) fn rows(&self) -> Rows {
        rows_of(&self.shared, self.first_ms, |metric| {
            self.is_recorded(metric)
        })
    }

    /// The rows that rules have to have from one step to another, over the final data.
    pub(super) fn wanted(&self, first: i64, last: i64) -> Rows {
        let fresh = shared();
        let mut all: Vec<(i64, &String, f64)> = Vec::new();
        for (key, sent) in &self.sent {
            all.extend(sent.samples.iter().map(|(at, value)| (*at, key, *value)));
        }
        all.sort_by_key(|one| one.0);
        for (at, key, value) in all {
            put(&fresh, key, &self.sent[key].labels, at, value);
        }
        // Each rule after those that it reads.
        let plan = self.manager.corrections.plan();
        for &at in &plan.order {
            let planned = &plan.rules[at];
            self.evaluate(&fresh, &planned.group, planned.at, first, last);
        }
        rows_of(&fresh, self.first_ms, |metric| self.is_recorded(metric))
    }

    fn evaluate(&self, fresh: &Arc<Shared>, group: &LiveGroup, at: usize, first: i64, last: i64) {
        let rule = &group.group.rules[at];
        let Kind::Record { labels: added } = &rule.kind else {
            return;
        };
        let mut before: Vec<Labels> = Vec::new();
        for step in first..=last {
            let at_ms = self.step(step);
            let views = Views::new(RuleReader {
                shared: Arc::clone(fresh),
                deadline: Instant::now() + Duration::from_secs(60),
                is_retired: Arc::default(),
            });
            let settings = &self.manager.options.settings;
            let found = evaluate(&rule.query, at_ms, settings, &views).unwrap_or_default();
            let mut rows: Vec<(Labels, f64)> = found
                .into_iter()
                .map(|(labels, value)| {
                    let added = added.iter().map(|(name, value)| (&**name, &**value));
                    let own = [("__name__", &*rule.name)];
                    let pairs = labels.iter().chain(own).chain(added);
                    (Labels::from_pairs(pairs), value)
                })
                .collect();
            let limit = group.group.limit;
            let is_over = limit > 0 && rows.len() > limit;
            rows.sort_by(|a, b| a.0.cmp(&b.0));
            let is_twice = rows.windows(2).any(|two| two[0].0 == two[1].0);
            if is_over || is_twice {
                rows.clear();
            }
            let now: Vec<Labels> = rows.iter().map(|row| row.0.clone()).collect();
            for labels in before.into_iter().filter(|labels| !now.contains(labels)) {
                rows.push((labels, f64::from_bits(STALE_BITS)));
            }
            before = now;
            for (labels, value) in rows {
                put(fresh, &labels.to_string(), &labels, at_ms, value);
            }
        }
    }

    /// Checks that all rows are what they have to be.
    pub(super) fn check(&self, first: i64, last: i64) {
        if let Some(wrong) = self.wrong(first, last) {
            panic!("{wrong}");
        }
    }

    /// What is not as it has to be.
    pub(super) fn wrong(&self, first: i64, last: i64) -> Option<String> {
        let (rows, wanted) = (self.rows(), self.wanted(first, last));
        if rows == wanted {
            return None;
        }
        let is_in = |all: &Rows, row: (&(String, i64), &String)| all.get(row.0) == Some(row.1);
        let more: Vec<_> = rows
            .iter()
            .filter(|row| !is_in(&wanted, *row))
            .take(5)
            .collect();
        let less: Vec<_> = wanted
            .iter()
            .filter(|row| !is_in(&rows, *row))
            .take(5)
            .collect();
        Some(format!("there is {more:?}\nand not {less:?}"))
    }

    /// Has steps computed anew. Returns how many steps of how many rules.
    pub(super) fn backfill(&mut self, first: i64, last: i64) -> (u64, usize) {
        let span = (self.step(first), self.step(last));
        let begun = self
            .manager
            .backfill(&self.shared, &Chosen::default(), span);
        let begun = begun.unwrap();
        (begun.steps, begun.rules)
    }

    /// Drops what was asked for. Returns how many steps of how many rules.
    pub(super) fn cancel(&mut self) -> (u64, usize) {
        let dropped = self.manager.cancel(&self.shared, &Chosen::default());
        let dropped = dropped.unwrap();
        (dropped.steps, dropped.rules)
    }

    /// How many differences `verify` lists between two steps.
    pub(super) fn verify(&self, first: i64, last: i64) -> usize {
        let mut found = 0;
        let compared = self.manager.verify(
            &self.shared,
            &Chosen::default(),
            (self.step(first), self.step(last)),
            Instant::now() + Duration::from_secs(60),
            &mut |_| {
                found += 1;
                Ok(())
            },
        );
        assert!(compared.is_ok(), "{compared:?}");
        found
    }
}

fn rows_of(shared: &Shared, first_ms: i64, is_wanted: impl Fn(&str) -> bool) -> Rows {
    let all = latewood_promql::parse_selector("{__name__=~\".+\"}").unwrap();
    let mut rows = Rows::new();
    let found = labelled::select(&shared.db, &all, None, None).unwrap();
    for named in
        labelled::named(&shared.db, found, false, &mut |_| ControlFlow::Continue(())).unwrap()
    {
        if !is_wanted(named.labels.metric()) {
            continue;
        }
        let mut read = Read(Vec::new());
        let query = raw(i64::MIN, i64::MAX);
        shared
            .db
            .range(&named.series.key, &query, &mut read)
            .unwrap();
        for (at_ms, value) in read.0 {
            let text = match value {
                value if is_stale(value) => "stale".to_owned(),
                value if value.is_nan() => "NaN".to_owned(),
                value => format!("{value:?}"),
            };
            let step = at_ms - first_ms;
            assert_eq!(step % MINUTE_MS, 0, "a row between steps");
            rows.insert((named.labels.to_string(), step / MINUTE_MS), text);
        }
    }
    rows
}
