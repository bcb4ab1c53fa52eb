//! Rules over a database on a simulated disk, evaluated at times that the tests choose.

mod bench;
mod beside;
mod corrections;
mod gone;
mod load;
mod parts;
mod random;

use super::due::Task;
use super::group::{Health, LiveGroup, ShownRule};
use super::manager::Manager;
use super::reader::{RuleReader, append};
use crate::base::clock::now_ms;
use crate::intake::EngineIntake;
use crate::labelled::Views;
use crate::options::testing::{follow, shared};
use crate::state::{Rules as Settings, Shared};
use latewood_promql::engine::Query;
use latewood_promql::labels::Labels;
use latewood_rules::evaluate::{Row, evaluate};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const MINUTE_MS: i64 = 60_000;

/// A server with one rule file.
struct World {
    dir: TempDir,
    shared: Arc<Shared>,
    manager: Manager,
    intake: EngineIntake,
    /// Now, on a whole minute: senders may not be far ahead of the clock.
    now_ms: i64,
}

fn write(dir: &Path, text: &str) {
    std::fs::write(dir.join("rules.yml"), text).unwrap();
}

fn manager_of(dir: &Path, shared: &Shared, change: impl FnOnce(&mut Settings)) -> Manager {
    let mut settings = shared.settings.rules.clone();
    settings.files = vec![dir.join("*.yml").display().to_string()];
    change(&mut settings);
    Manager::new(&settings, &shared.settings.promql).unwrap()
}

impl World {
    fn new(text: &str) -> Self {
        Self::with(text, |_| {})
    }

    fn with(text: &str, change: impl FnOnce(&mut Settings)) -> Self {
        let (dir, shared) = (tempfile::tempdir().unwrap(), shared());
        write(dir.path(), text);
        Self {
            manager: manager_of(dir.path(), &shared, change),
            intake: Manager::intake(&shared),
            dir,
            shared,
            now_ms: now_ms() / MINUTE_MS * MINUTE_MS,
        }
    }

    /// The time `minutes` after now.
    fn minute(&self, minutes: i64) -> i64 {
        self.now_ms + minutes * MINUTE_MS
    }

    /// Writes one sample of a series.
    fn sample(&mut self, labels: &[(&str, &str)], minutes: i64, value: f64) {
        let row = Row {
            labels: Labels::from_pairs(labels.iter().copied()),
            at_ms: self.minute(minutes),
            value,
        };
        assert_eq!(
            append(&mut self.intake, &self.shared.db, &[row], 0..1),
            Ok(vec![])
        );
    }

    fn group(&self) -> Arc<LiveGroup> {
        self.manager.groups()[0].clone()
    }

    /// Evaluates the first group.
    fn turn(&mut self, minutes: i64) {
        let (group, at_ms) = (self.group(), self.minute(minutes));
        let Self {
            manager,
            shared,
            intake,
            ..
        } = self;
        manager.turn(shared, intake, &group, at_ms, 0);
    }

    /// What a query finds.
    fn ask(&self, text: &str, minutes: i64) -> Vec<String> {
        let at_ms = self.minute(minutes);
        let views = Views::new(RuleReader {
            shared: Arc::clone(&self.shared),
            deadline: Instant::now() + Duration::from_secs(60),
            is_retired: Arc::default(),
        });
        let query = Query::new(text).unwrap();
        let settings = &self.manager.options.settings;
        let found = evaluate(&query, at_ms, settings, &views).unwrap();
        let found = found.iter();
        found
            .map(|(labels, value)| format!("{labels} {value}"))
            .collect()
    }

    fn rule(&self, at: usize) -> ShownRule {
        self.group().shown().rules[at].clone()
    }

    /// Does what is due until a series that nobody writes any more was marked.
    fn end_left(&mut self) {
        loop {
            let (at_ms, task) = self.manager.next(|| i64::MAX / 4).unwrap();
            let is_left = matches!(task, Task::Left { .. });
            if is_left {
                let Self {
                    manager,
                    shared,
                    intake,
                    ..
                } = self;
                return manager.perform(shared, intake, at_ms, task);
            }
        }
    }
}

const RECORD: &str = "
groups:
- name: machines
  interval: 1m
  rules:
  - record: job:t:max
    expr: max by (job) (t)
    labels: {team: db}
  - record: job:t:twice
    expr: 2 * job:t:max
";

#[test]
fn rows_are_series_and_end_where_there_is_no_row() {
    let mut world = World::new(RECORD);
    world.sample(&[("__name__", "t"), ("job", "a")], 0, 3.0);
    world.turn(0);
    let row = "{__name__=\"job:t:max\", job=\"a\", team=\"db\"} 3".to_owned();
    assert_eq!(world.ask("job:t:max", 0), std::slice::from_ref(&row));
    // The second rule has seen the row of the first one.
    assert_eq!(world.ask("job:t:twice", 0).len(), 1);
    assert_eq!(world.rule(1).health, Health::Good);
    assert_eq!(world.manager.series(), 2);
    // The samples are too old, which ends the rows at once.
    world.turn(6);
    assert_eq!(world.ask("job:t:max", 5), Vec::<String>::new());
    assert_eq!(world.ask("job:t:max", 4), [row]);
    assert_eq!(world.ask("job:t:max", 6), Vec::<String>::new());
    assert_eq!(world.manager.series(), 0);
    let shown = world.group().shown();
    assert_eq!((shown.samples, shown.at_ms), (0, world.minute(6)));
    let group = world.group();
    assert_eq!(group.figures.evaluations.load(Ordering::Relaxed), 4);
}

#[test]
fn a_rule_that_fails_says_why_and_the_others_go_on() {
    let text = "
groups:
- name: g
  limit: 1
  rules:
  - {record: many, expr: t}
  - {record: wrong, expr: 't * on () t'}
  - {record: one, expr: sum(t)}
";
    let mut world = World::new(text);
    world.sample(&[("__name__", "t"), ("job", "a")], 0, 1.0);
    world.sample(&[("__name__", "t"), ("job", "b")], 0, 2.0);
    world.turn(0);
    let errors: Vec<_> = world
        .group()
        .shown()
        .rules
        .into_iter()
        .map(|rule| rule.error)
        .collect();
    assert_eq!(errors[0], "exceeded limit of 1 with 2 series");
    assert!(errors[1].contains("many-to-many"), "{}", errors[1]);
    assert_eq!(errors[2], "");
    assert_eq!(world.ask("one", 0), ["{__name__=\"one\"} 3"]);
    assert_eq!(world.group().figures.failures.load(Ordering::Relaxed), 2);
}

#[test]
fn a_rule_has_no_more_series_than_the_server_allows() {
    let text = "groups: [{name: g, rules: [{record: many, expr: t}]}]";
    let mut world = World::with(text, |settings| settings.series_max = 1);
    world.sample(&[("__name__", "t"), ("job", "a")], 0, 1.0);
    world.turn(0);
    assert_eq!(world.rule(0).error, "");
    world.sample(&[("__name__", "t"), ("job", "b")], 0, 2.0);
    world.turn(1);
    let error = world.rule(0).error;
    assert!(error.contains("--max-rule-series"), "{error}");
    // Nothing is said of rows that were there: the step can be evaluated again.
    assert_eq!(world.ask("many", 1).len(), 1);
}

#[test]
fn a_series_of_a_rule_stays_its_own_when_rows_cannot_be_written() {
    let mut world = World::new("groups: [{name: g, rules: [{record: double, expr: 2 * t}]}]");
    world.sample(&[("__name__", "t")], -30, 3.0);
    world.turn(-30);
    // It ends, and begins again where nothing can be written.
    world.turn(-20);
    world.sample(&[("__name__", "t")], -10, 4.0);
    let until = Instant::now() + Duration::from_secs(3600);
    world.shared.pause.begin(until, false);
    world.turn(-10);
    assert!(!world.rule(0).error.is_empty());
    world.shared.pause.end();
    let refused = world.shared.db.delete_range(b"double", 0, i64::MAX);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("series is written by rule"), "{text}");
}

#[test]
fn a_pause_of_writes_holds_no_rule_up() {
    let mut world = World::new(RECORD);
    world.sample(&[("__name__", "t"), ("job", "a")], 0, 3.0);
    let until = Instant::now() + Duration::from_secs(3600);
    world.shared.pause.begin(until, false);
    world.turn(0);
    assert!(!world.rule(0).error.is_empty());
    assert_eq!(world.manager.reload(), Ok((1, 2)));
    world.shared.pause.end();
    world.turn(1);
    assert_eq!(world.rule(0).error, "");
    assert_eq!(world.ask("job:t:max", 1).len(), 1);
}

#[test]
fn two_rules_do_not_write_the_same_series() {
    let text = "
groups:
- name: g
  rules:
  - {record: x, expr: vector(1)}
  - {record: x, expr: vector(2)}
";
    let mut world = World::new(text);
    world.turn(0);
    assert_eq!(world.ask("x", 0), ["{__name__=\"x\"} 1"]);
    let error = world.rule(1).error;
    assert!(error.contains("writes this series too"), "{error}");
}

#[test]
fn a_reload_goes_on_where_the_rules_were() {
    let alert = "  - {alert: Hot, expr: t > 1, for: 1h}\n";
    let text = format!("groups:\n- name: g\n  rules:\n{alert}");
    let mut world = World::new(&text);
    for minutes in 0..4 {
        world.sample(&[("__name__", "t")], minutes, 2.0);
    }
    world.turn(0);
    let (first, since) = (world.group(), world.minute(0));
    assert_eq!(world.manager.reload(), Ok((1, 1)));
    assert!(Arc::ptr_eq(&first, &world.group()), "nothing has changed");
    // A rule before it.
    let longer = "groups:\n- name: g\n  rules:\n  - {record: r, expr: vector(1)}\n";
    write(world.dir.path(), &format!("{longer}{alert}"));
    assert_eq!(world.manager.reload(), Ok((1, 2)));
    assert!(first.is_retired());
    // Readers see it all the time.
    assert_eq!(world.rule(1).state(), "pending");
    world.turn(1);
    let rule = world.rule(1);
    assert_eq!(rule.state(), "pending");
    assert_eq!(rule.alerts[0].active_at_ms, since);
    // A file that is wrong changes nothing.
    write(world.dir.path(), "groups:\n- name: g\n  rulez: []\n");
    let why = world.manager.reload().unwrap_err();
    assert!(why.contains("rules.yml: 3:3: "), "{why}");
    assert!(!world.manager.last_read().1);
    world.turn(2);
    assert_eq!(world.rule(1).alerts[0].active_at_ms, since);
}

#[test]
fn a_time_at_which_a_reload_came_is_not_lost() {
    let rule =
        |value| format!("groups: [{{name: g, rules: [{{record: r, expr: vector({value})}}]}}]");
    let world = World::new(&rule(1));
    let first = world.group();
    let (at_ms, task) = world.manager.next(|| i64::MAX / 4).unwrap();
    write(world.dir.path(), &rule(2));
    assert_eq!(world.manager.reload(), Ok((1, 1)));
    let (again_ms, again) = world.manager.next(|| i64::MAX / 4).unwrap();
    assert_eq!(again_ms, at_ms);
    let group = |task| match task {
        Task::Evaluate(group) => group,
        Task::Left { .. } => panic!("a group"),
    };
    assert!(Arc::ptr_eq(&group(task), &first));
    assert!(Arc::ptr_eq(&group(again), &world.group()));
}

#[test]
fn a_clock_that_is_set_back_holds_no_group_up() {
    let world = World::new(RECORD);
    let seen = |now_ms| world.manager.groups.lock().turns.see(now_ms);
    seen(now_ms());
    // Not long enough to be more than a correction.
    seen(now_ms() - MINUTE_MS / 2);
    seen(1_000_000);
    let (at_ms, _) = world.manager.next(|| 1_000_000 + MINUTE_MS).unwrap();
    assert!(
        (1_000_000..=1_000_000 + MINUTE_MS).contains(&at_ms),
        "{at_ms}"
    );
}

#[test]
fn other_nodes_hear_which_files_this_one_has() {
    let mut world = World::new(RECORD);
    let (node, _clock) = follow(&world.shared);
    let own = || node.standing().members[0].digests[1];
    let before = own();
    world.manager.told_by(&node);
    let first = own();
    assert_eq!(crate::state::differing(before, first), ["rules"]);
    write(world.dir.path(), &RECORD.replace("2 *", "3 *"));
    world.manager.reload().unwrap();
    assert_eq!(crate::state::differing(first, own()), ["rules"]);
    write(world.dir.path(), RECORD);
    world.manager.reload().unwrap();
    assert_eq!(own(), first);
    // What is not read changes nothing.
    write(world.dir.path(), "groups: [{}]");
    world.manager.reload().unwrap_err();
    assert_eq!(own(), first);
    world.manager =
        crate::rules::Manager::new(&Settings::default(), &world.shared.settings.promql).unwrap();
    world.manager.told_by(&node);
    assert_eq!(own(), before);
}

#[test]
fn the_series_of_a_removed_group_end_unless_another_rule_has_them() {
    let group = |name: &str, metric: &str| {
        format!("- name: {name}\n  rules:\n  - {{record: {metric}, expr: vector(1)}}\n")
    };
    let both = format!("groups:\n{}{}", group("a", "x"), group("b", "y"));
    let mut world = World::new(&both);
    let (shared, groups) = (world.shared.clone(), world.manager.groups());
    let at_ms = world.minute(-1);
    for group in &groups {
        world
            .manager
            .turn(&shared, &mut world.intake, group, at_ms, 0);
    }
    // Another group takes the series of the second one over.
    write(world.dir.path(), &format!("groups:\n{}", group("c", "y")));
    assert_eq!(world.manager.reload(), Ok((1, 1)));
    world.turn(0);
    world.end_left();
    world.end_left();
    assert_eq!(world.ask("x", 3), Vec::<String>::new());
    assert_eq!(world.ask("y", 3).len(), 1);
    assert_eq!(world.manager.series(), 1);
}

#[test]
fn an_alert_goes_on_after_a_restart() {
    let text = "groups: [{name: g, rules: [{alert: Hot, expr: t > 1, for: 30m}]}]";
    let mut world = World::new(text);
    for minutes in [-60, -20, -1, 0, 1, 2] {
        world.sample(&[("__name__", "t"), ("job", "a")], minutes, 2.0);
    }
    let stored = [
        ("__name__", "ALERTS_FOR_STATE"),
        ("alertname", "Hot"),
        ("job", "a"),
    ];
    let since_s = world.minute(-60) / 1000;
    world.sample(&stored, -20, since_s as f64);
    world.turn(0);
    // Nothing is written before it is known.
    assert_eq!(world.ask("ALERTS", 0), Vec::<String>::new());
    assert_eq!(world.rule(0).state(), "pending");
    world.turn(1);
    world.turn(2);
    assert_eq!(world.rule(0).state(), "firing");
    assert_eq!(world.rule(0).alerts[0].active_at_ms, since_s * 1000);
    assert_eq!(world.ask("ALERTS{alertstate=\"firing\"}", 2).len(), 1);
}

#[test]
fn a_node_that_does_not_own_the_log_evaluates_nothing() {
    let mut world = World::new(RECORD);
    world.sample(&[("__name__", "t"), ("job", "a")], 0, 3.0);
    world.turn(0);
    let (node, _clock) = follow(&world.shared);
    let (at_ms, task) = world.manager.next(|| i64::MAX / 4).unwrap();
    let shared = world.shared.clone();
    world
        .manager
        .perform(&shared, &mut world.intake, at_ms, task);
    assert_eq!(world.rule(0).health, Health::Unknown);
    assert_eq!(world.manager.series(), 0);
    let evaluations = || world.group().figures.evaluations.load(Ordering::Relaxed);
    assert_eq!(evaluations(), 2);
    // An owner goes on.
    node.change(|standing| standing.role = latewood_cluster::node::Role::Owner);
    let group = world.group();
    let at_ms = world.minute(1);
    world
        .manager
        .turn(&shared, &mut world.intake, &group, at_ms, 0);
    assert_eq!(world.manager.series(), 2);
}

#[test]
fn alertmanagers_are_told_of_what_fires_and_again_after_a_while() {
    let text = "
groups:
- name: g
  interval: 1m
  rules:
  - alert: Hot
    expr: t > 1
    annotations: {summary: '{{ $labels.job }} is hot'}
";
    let mut world = World::with(text, |settings| {
        settings.alertmanagers = vec!["http://me:secret@127.0.0.1:9/am".to_owned()];
        settings.resend_delay_ms = 2 * MINUTE_MS as u64;
    });
    let target = |world: &World| {
        let target = &world.manager.notifier.targets()[0];
        assert_eq!(target.url, "http://127.0.0.1:9/am/api/v2/alerts");
        target.queued()
    };
    world.sample(&[("__name__", "t"), ("job", "a")], 0, 2.0);
    for (minutes, queued) in [(0, 1), (1, 1), (2, 1), (3, 2), (4, 2)] {
        world.turn(minutes);
        assert_eq!(target(&world), queued, "{minutes}");
    }
    // It ends, which is told at once.
    world.sample(&[("__name__", "t"), ("job", "a")], 5, 0.0);
    world.turn(5);
    assert_eq!(target(&world), 3);
    assert_eq!(world.rule(0).state(), "inactive");
}
