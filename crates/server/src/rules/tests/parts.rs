//! Long backfills: in parts, between which late samples are worked in, and how they are cancelled.

use super::bench::Bench;
use super::corrections::A;
use crate::rules::corrections::faults;
use crate::rules::corrections::turn::Turned;
use std::sync::atomic::Ordering;

const PLAIN: &str = "
groups:
- name: g
  interval: 1m
  rules:
  - {record: top, expr: 'max(max_over_time(t[3m]))'}
";

/// The first step of a backfill up to step 3 that has 20,000.
const FIRST: i64 = -19_996;

/// A rule that was evaluated at steps 0 to 3, and older samples.
fn plain() -> Bench {
    let mut bench = Bench::new(PLAIN);
    for step in (FIRST..0).step_by(250).chain(0..=3) {
        bench.sample("a", A, step * 60, step as f64);
    }
    bench.turns(0..=3);
    bench.correct(3);
    bench
}

fn top(bench: &Bench, step: i64) -> Option<String> {
    let rows = bench.rows();
    rows.get(&("{__name__=\"top\"}".to_owned(), step)).cloned()
}

fn computed(bench: &Bench) -> u64 {
    let figures = bench.manager.correction_figures();
    figures.steps.load(Ordering::Relaxed)
}

#[test]
fn a_long_backfill_goes_on_after_a_restart() {
    let mut bench = plain();
    assert_eq!(bench.backfill(FIRST, 3), (20_000, 1));
    // In the second part, as slices have 500 steps.
    faults::STOPS_IN.set(Some(15));
    bench.correct(3);
    faults::STOPS_IN.set(None);
    bench.restart(|disk| disk.crash(11));
    bench.correct(3);
    assert!(computed(&bench) < 20_000, "it began anew");
    assert_eq!(bench.status().pending_steps, 0);
    assert!(top(&bench, FIRST).is_some());
    assert_eq!(bench.verify(FIRST, 3), 0);
}

#[test]
fn late_samples_are_worked_in_between_the_parts_of_a_backfill() {
    let mut bench = plain();
    bench.backfill(FIRST, 3);
    while bench.status().pending_steps == 0 {
        assert_eq!(bench.pass(), Turned::More);
    }
    assert!(bench.status().is_pending);
    bench.sample("a", A, 61, 777.0);
    while top(&bench, 2).as_deref() != Some("777.0") {
        assert_eq!(bench.pass(), Turned::More, "a part is not all");
    }
    let pending = bench.status().pending_steps;
    assert!((1..20_000).contains(&pending), "{pending}");
    while bench.pass() == Turned::More {}
    assert_eq!(bench.status().pending_steps, 0);
    assert_eq!(bench.verify(FIRST, 3), 0);
}

#[test]
fn steps_that_cannot_be_computed_hold_up_no_other_part() {
    let text = PLAIN.replace("max(max_over_time(t[3m]))", "t");
    let mut bench = Bench::with(&text, |settings| settings.series_max = 1);
    for step in FIRST..=3 {
        bench.sample("a", A, step * 60, 1.0);
        if step < FIRST + 6_000 {
            bench.sample("b", "__name__=t,job=b", step * 60, 1.0);
        }
    }
    bench.turns(0..=3);
    bench.correct(3);
    bench.backfill(FIRST, 3);
    bench.correct(3);
    let steps: Vec<i64> = bench.rows().into_keys().map(|of| of.1).collect();
    assert!(
        steps.iter().all(|step| *step >= FIRST + 6_000),
        "{:?}",
        steps.first()
    );
    assert!(steps.len() >= 13_000, "{}", steps.len());
    let status = bench.status();
    assert!(status.pending_steps >= 5_000, "{}", status.pending_steps);
    assert!(
        status.failure.contains("--max-rule-series"),
        "{}",
        status.failure
    );
}

#[test]
fn a_backfill_is_cancelled_and_late_samples_are_not() {
    let mut bench = plain();
    bench.backfill(FIRST, 3);
    while bench.status().pending_steps == 0 {
        bench.pass();
    }
    bench.sample("a", A, 61, 777.0);
    bench.sample("a", A, -7 * 60, 778.0);
    let (steps, rules) = bench.cancel();
    assert!(rules == 1 && (1_000..20_000).contains(&steps), "{steps}");
    assert_eq!(bench.cancel(), (0, 0), "what changed stays");
    bench.correct(3);
    assert_eq!(top(&bench, 2).as_deref(), Some("777.0"));
    assert_eq!(top(&bench, -6).as_deref(), Some("778.0"));
    assert_eq!(bench.status().pending_steps, 0);
    // It does not come back.
    let rows = bench.rows();
    bench.restart(|disk| disk.crash(7));
    bench.correct(3);
    assert_eq!(bench.rows(), rows);
    assert_eq!(top(&bench, -250), None);
}
