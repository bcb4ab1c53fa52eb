//! Rows are what their expressions give over the final data, whatever came late.

use super::bench::Bench;
use crate::rules::corrections::faults;
use std::sync::atomic::Ordering;

/// A chain of three rules, of which the first is computed group by group.
pub(super) const CHAIN: &str = "
groups:
- name: chain
  interval: 1m
  rules:
  - record: job:t:sum
    expr: sum by (job) (sum_over_time(t[3m]))
    labels: {team: db}
  - record: t:rows
    expr: count(job:t:sum)
  - record: t:ratio
    expr: job:t:sum / on () group_left () t:rows
";

pub(super) const A: &str = "__name__=t,job=a,host=1";
pub(super) const B: &str = "__name__=t,job=b,host=1";

/// A chain that was evaluated at steps 0 to 10.
pub(super) fn chain() -> Bench {
    let mut bench = Bench::new(CHAIN);
    for step in 0..=10 {
        bench.sample("a", A, step * 60 - 20, step as f64);
        if step < 4 {
            bench.sample("b", B, step * 60 - 10, 0.1);
        }
        bench.turn(step);
    }
    bench.check(0, 10);
    assert_eq!(bench.correct(10), 0, "nothing has changed");
    bench
}

#[test]
fn a_late_sample_is_worked_into_all_levels() {
    let mut bench = chain();
    bench.sample("a", A, 100, 7.5);
    assert!(bench.verify(0, 10) > 0);
    assert!(bench.correct(10) > 0);
    bench.check(0, 10);
    assert_eq!(bench.verify(0, 10), 0);
    assert_eq!(bench.correct(10), 0);
}

#[test]
fn only_the_group_of_a_late_sample_is_computed() {
    let mut bench = chain();
    bench.sample("b", B, 30, 1.0);
    bench.correct(10);
    bench.check(0, 10);
    let plan = bench.manager.corrections.plan();
    assert!(plan.rules[0].narrow().is_some());
}

#[test]
fn what_is_deleted_goes_and_leaves_stale_marks() {
    let mut bench = chain();
    bench.delete("a", 2 * 60, 7 * 60);
    assert!(bench.correct(10) > 0);
    bench.check(0, 10);
    let stale = bench.rows().into_values().filter(|value| value == "stale");
    assert!(stale.count() > 0);
    // And they vanish.
    for step in 2..=7 {
        bench.sample("a", A, step * 60, 1.0);
    }
    bench.correct(10);
    bench.check(0, 10);
}

#[test]
fn a_new_series_may_have_old_samples() {
    let mut bench = chain();
    bench.sample("c", "__name__=t,job=c", 5 * 60, 3.0);
    assert!(bench.correct(10) > 0);
    bench.check(0, 10);
    // Up to the newest step: the live evaluation goes on with it.
    bench.sample("d", "__name__=t,job=d", 600, 3.0);
    bench.correct(10);
    bench.check(0, 10);
    bench.turns(11..=16);
    bench.check(0, 16);
}

#[test]
fn other_labels_and_series_that_go_count_everywhere() {
    let mut bench = chain();
    bench.relabel("a", "__name__=t,job=z");
    assert!(bench.correct(10) > 0);
    bench.check(0, 10);
    bench.remove("b");
    assert!(bench.correct(10) > 0);
    bench.check(0, 10);
    bench.turns(11..=12);
    bench.check(0, 12);
}

#[test]
fn the_live_evaluation_goes_on_beside_corrections() {
    let mut bench = chain();
    for step in 11..=30 {
        // Late by up to five steps, so that both meet at the newest one.
        bench.sample("a", A, step * 60 - 20, 1.0);
        bench.sample("b", B, (step - step % 6) * 60, step as f64);
        if step % 3 == 0 {
            bench.correct(step - 1);
        }
        bench.turn(step);
    }
    bench.correct(30);
    bench.check(0, 30);
}

#[test]
fn what_waits_is_there_after_a_restart() {
    let mut bench = chain();
    bench.sample("a", A, 100, 7.5);
    bench.restart(|disk| disk.crash(3));
    bench.correct(10);
    bench.check(0, 10);
    // And goes on.
    bench.turns(11..=14);
    bench.check(0, 14);
}

#[test]
fn a_crash_between_rows_and_done_repeats_the_pass() {
    let mut bench = chain();
    bench.sample("a", A, 100, 7.5);
    faults::STOPS_IN.set(Some(1));
    bench.correct(10);
    faults::STOPS_IN.set(None);
    bench.restart(|disk| disk.crash(5));
    assert!(bench.correct(10) > 0, "levels above it");
    bench.check(0, 10);
}

#[test]
fn steps_that_nobody_evaluated_are_computed() {
    let mut bench = chain();
    for step in 11..=20 {
        bench.sample("a", A, step * 60 - 20, 1.0);
    }
    // The machine slept.
    bench.turn(15);
    bench.correct(15);
    bench.check(0, 15);
    // The server was down.
    bench.restart(|disk| disk.crash(9));
    bench.correct(18);
    bench.check(0, 18);
    bench.turns(19..=20);
    bench.correct(20);
    bench.check(0, 20);
}

#[test]
fn steps_missed_too_long_ago_are_counted() {
    let mut bench = Bench::with(CHAIN, |settings| settings.catch_up_ms = 5 * 60_000);
    for step in 0..=20 {
        bench.sample("a", A, step * 60, 1.0);
    }
    bench.turns(0..=2);
    bench.turn(20);
    bench.correct(20);
    let figures = bench.manager.correction_figures();
    // Of three rules: 15 is the oldest that is computed.
    assert_eq!(figures.skipped_steps.load(Ordering::Relaxed), 3 * 12);
    let rows = bench.rows();
    let has = |step| rows.contains_key(&("{__name__=\"t:rows\"}".to_owned(), step));
    assert!(has(2) && !has(3) && !has(14) && has(15) && has(20));
    let (steps, rules) = bench.backfill(0, 20);
    assert_eq!((steps, rules), (63, 3));
    bench.correct(20);
    bench.check(0, 20);
}

#[test]
fn a_limit_and_matching_errors_have_no_rows() {
    let text = "
groups:
- name: g
  interval: 1m
  limit: 2
  rules:
  - {record: all, expr: t}
  - {record: joined, expr: 't * on (job) u'}
";
    let mut bench = Bench::new(text);
    for step in 0..=12 {
        for (key, of) in [("a", A), ("b", B), ("u", "__name__=u,job=a")] {
            bench.sample(key, of, step * 60, 1.0);
        }
        bench.turn(step);
    }
    bench.check(0, 12);
    bench.sample("c", "__name__=t,job=c", 2 * 60, 1.0);
    bench.sample("v", "__name__=u,job=a,host=2", 3 * 60, 1.0);
    bench.correct(12);
    bench.check(0, 12);
    assert!(bench.rows().values().any(|value| value == "stale"));
    bench.remove("v");
    bench.delete("c", 0, 1000);
    bench.correct(12);
    bench.check(0, 12);
}

#[test]
fn a_rule_that_looks_ahead_is_evaluated_again_when_that_has_passed() {
    let text = "
groups:
- name: g
  interval: 1m
  rules:
  - {record: later, expr: t offset -3m}
";
    let mut bench = Bench::new(text);
    for step in 0..=12 {
        bench.sample("a", A, step * 60 - 1, step as f64);
        bench.turn(step);
        bench.correct(step);
    }
    // The last three have not seen what is to come.
    for step in 13..=15 {
        bench.sample("a", A, step * 60 - 1, step as f64);
        bench.turn(step);
    }
    bench.correct(15);
    bench.sample("a", A, 5 * 60, 99.0);
    bench.correct(15);
    let (mut rows, mut wanted) = (bench.rows(), bench.wanted(0, 15));
    rows.retain(|of, _| of.1 <= 12);
    wanted.retain(|of, _| of.1 <= 12);
    assert_eq!(rows, wanted);
}

#[test]
fn expressions_that_ask_for_the_time_of_the_query_are_right_too() {
    let text = "
groups:
- name: g
  interval: 1m
  query_offset: 30s
  rules:
  - {record: first, expr: 'sum(t @ end() + 0 * step())'}
  - {record: nested, expr: 'sum(avg by (job) (t))'}
  - {record: sums, expr: 'max_over_time(sum_over_time(t[10m])[5m:1m])'}
  - {record: plain, expr: 'avg_over_time(t[10m])'}
";
    let mut bench = Bench::new(text);
    for step in 0..=30 {
        for (at, key) in ["a", "b", "c", "d"].iter().enumerate() {
            let of = format!("__name__=t,job={key}");
            bench.sample(key, &of, step * 60 - 1, 0.1 * (step + at as i64) as f64);
        }
        bench.turn(step);
    }
    bench.check(0, 30);
    bench.delete("a", 5 * 60, 12 * 60);
    bench.sample("b", "", 8 * 60 + 7, 1.0 / 3.0);
    bench.correct(30);
    bench.check(0, 30);
}

#[test]
fn steps_are_final_once_what_they_were_made_of_may_be_gone() {
    let mut bench = chain();
    let before = bench.rows();
    let altered = bench
        .shared
        .db
        .alter_with(b"a", |options| options.retention_ms = 6 * 60_000);
    altered.unwrap();
    // Samples before 9:40 - 6:00 are gone, and with them all that steps 0 to 6 were made of.
    bench.sample("a", A, 5 * 60, 1.0);
    bench.correct(10);
    let rows = bench.rows();
    let of = |step: i64| {
        let mut rows = [&before, &rows].map(|rows| {
            let rows = rows.iter().filter(|(of, _)| of.1 == step);
            rows.map(|(of, value)| (of.clone(), value.clone()))
                .collect::<Vec<_>>()
        });
        let second = std::mem::take(&mut rows[1]);
        std::mem::take(&mut rows[0]) == second
    };
    assert!((0..=6).all(of), "final");
    assert!(!of(7), "corrected");
    let figures = bench.manager.correction_figures();
    assert!(figures.final_steps.load(Ordering::Relaxed) > 0);
    let group = bench.manager.groups()[0].clone();
    let status = bench.manager.corrections_of(&group, 0);
    assert_eq!(status.final_ms, Some(bench.step(6) + 40_000 - 1));
}

#[test]
fn rows_may_be_final_by_their_age() {
    let mut bench = Bench::with(CHAIN, |settings| settings.correct_back_ms = 60_000);
    bench.sample("a", A, 0, 1.0);
    bench.turns(0..=3);
    let before = bench.rows();
    bench.sample("a", A, 10, 1.0);
    bench.correct(3);
    assert_eq!(bench.rows(), before);
}

#[test]
fn nothing_is_computed_of_what_is_damaged() {
    let mut bench = chain();
    bench.shared.db.flush().unwrap();
    let blocks = bench.shared.db.blocks();
    assert!(!blocks.is_empty());
    bench.restart(|disk| {
        let disk = disk.kill();
        for block in &blocks {
            let mut bytes = disk.bytes(block).unwrap();
            let middle = bytes.len() / 2;
            bytes.truncate(middle);
            disk.set_bytes(block, bytes).unwrap();
        }
        disk
    });
    bench.sample("a", A, 100, 7.5);
    assert_eq!(bench.correct(10), 0);
    let group = bench.manager.groups()[0].clone();
    let failure = bench.manager.corrections_of(&group, 0).failure;
    assert!(failure.contains("damaged"), "{failure}");
}

#[test]
fn rules_that_cannot_be_corrected_say_why() {
    let text = "
groups:
- name: g
  interval: 1m
  rules:
  - {record: fixed, expr: t @ 600}
  - {record: own, expr: 'max({job=\"a\"})'}
  - {alert: Hot, expr: t > 100}
  - {record: plain, expr: t}
  - {record: twin, expr: t, labels: {of: a}}
  - {record: twin, expr: t + 1, labels: {of: b}}
";
    let mut bench = Bench::new(text);
    bench.sample("a", A, 0, 1.0);
    bench.turn(0);
    bench.correct(0);
    let group = bench.manager.groups()[0].clone();
    let reasons: Vec<_> = (0..6)
        .map(|at| bench.manager.corrections_of(&group, at).reason)
        .collect();
    assert!(
        reasons[0].contains("fixed time of \"t\" (@)"),
        "{}",
        reasons[0]
    );
    assert!(reasons[1].contains("__name__!=\"own\""), "{}", reasons[1]);
    assert_eq!(reasons[2], "alerts are not corrected");
    assert_eq!(reasons[3..], ["", "", ""]);
}

#[test]
fn two_rules_of_one_metric_do_not_take_each_others_rows() {
    let text = "
groups:
- name: g
  interval: 1m
  rules:
  - {record: both, expr: 't{job=\"a\"}'}
  - {record: both, expr: 't{job=\"b\"}'}
";
    let mut bench = Bench::new(text);
    for step in 0..=9 {
        bench.sample("a", A, step * 60, 1.0);
        bench.sample("b", B, step * 60, 2.0);
        bench.turn(step);
    }
    bench.sample("a", A, 5 * 60 - 1, 3.0);
    bench.delete("b", 100, 300);
    bench.correct(9);
    bench.check(0, 9);
}

#[test]
fn another_expression_begins_anew_and_a_backfill_reaches_back() {
    let mut bench = chain();
    bench.reload(&CHAIN.replace("sum_over_time(t[3m])", "max_over_time(t[3m])"));
    bench.turns(11..=12);
    bench.sample("a", A, 3 * 60, 50.0);
    let before = bench.rows();
    bench.correct(12);
    assert_eq!(before, bench.rows(), "older rows are those of another rule");
    bench.backfill(0, 12);
    bench.correct(12);
    bench.check(0, 12);
}
