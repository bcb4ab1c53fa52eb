//! Corrections beside others: compaction rules, readers that wait, users who write the same metric.

use super::bench::Bench;
use super::corrections::{A, chain};
use crate::rules::corrections::Chosen;
use latewood_engine::RuleSpec;
use latewood_model::{Aggregator, Labels as Held, SeriesOptions};
use latewood_promql::parse_selector;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[test]
fn rows_of_compaction_rules_are_samples_like_others() {
    let text = "
groups:
- name: g
  interval: 1m
  rules:
  - {record: 'r:top', expr: 'max_over_time(r[3m])'}
";
    let mut bench = Bench::new(text);
    let rolled = SeriesOptions {
        labels: Held::new([(&b"__name__"[..], &b"r"[..])]).unwrap(),
        ..SeriesOptions::default()
    };
    let db = Arc::clone(&bench.shared);
    db.db.create(b"raw", &SeriesOptions::default()).unwrap();
    db.db.create(b"rolled", &rolled).unwrap();
    let spec = RuleSpec {
        aggregator: Aggregator::Max,
        bucket_ms: 60_000,
        align: 0,
    };
    db.db.create_rule(b"raw", b"rolled", spec).unwrap();
    drop(db);
    for step in 0..=10 {
        bench.sample("raw", "", step * 60 - 1, 1.0);
        bench.turn(step);
    }
    let before = bench.rows();
    assert!(before.len() > 5);
    bench.sample("raw", "", 100, 99.0);
    bench.shared.db.settle().unwrap();
    assert!(bench.correct(10) > 0);
    assert_eq!(bench.verify(0, 10), 0);
    let rows = bench.rows();
    assert_eq!(rows.values().filter(|value| *value == "99.0").count(), 3);
}

#[test]
fn who_reads_is_told_of_what_waits() {
    let mut bench = chain();
    let selectors = |text: &str| vec![parse_selector(text).unwrap()];
    bench.sample("a", A, 100, 7.5);
    bench.manager.corrections.look(&bench.shared);
    let stale = bench
        .manager
        .stale_rules(&bench.shared, &selectors("t:ratio"));
    assert_eq!(stale[0].0, "rule \"job:t:sum\" of group \"chain\"");
    assert_eq!(
        bench
            .manager
            .stale_rules(&bench.shared, &selectors("other")),
        []
    );
    // Somebody waits, and a thread works.
    let soon = Instant::now() + Duration::from_secs(60);
    let Bench {
        shared, manager, ..
    } = &bench;
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| manager.wait_fresh(shared, &selectors("t:ratio"), soon));
        scope.spawn(|| manager.run_corrections(shared));
        assert_eq!(waits.join().unwrap(), Ok(()));
        manager.corrections.stop();
    });
    assert_eq!(
        bench
            .manager
            .stale_rules(&bench.shared, &selectors("t:ratio")),
        []
    );
    bench.check(0, 10);
    let chosen = Chosen {
        rules: vec!["none".to_owned()],
        ..Chosen::default()
    };
    let all = (bench.step(0), bench.step(9));
    let begun = bench.manager.backfill(&bench.shared, &chosen, all);
    assert_eq!(begun.map(|begun| begun.rules), Ok(0));
}

#[test]
fn rows_of_users_under_the_name_of_a_rule_stay_and_those_of_rules_are_kept_from_them() {
    let mut bench = chain();
    // As another server sends them.
    let (theirs, ours) = (
        r#"job:t:sum{from="other",job="a",team="db"}"#,
        r#"job:t:sum{job="a",team="db"}"#,
    );
    for at_s in [120, 300, 360] {
        bench.sample(
            theirs,
            "__name__=job:t:sum,from=other,job=a,team=db",
            at_s,
            9.0,
        );
    }
    bench.sample("a", A, 100, 7.5);
    bench.backfill(0, 10);
    assert!(bench.correct(10) > 0);
    bench.check(0, 10);
    assert_eq!(bench.verify(0, 10), 0);
    bench.restart(|disk| disk.crash(5));
    bench.correct(10);
    let refused = bench.shared.db.delete_range(ours.as_bytes(), 0, i64::MAX);
    let text = refused.unwrap_err().to_string();
    assert!(text.contains("series is written by rule"), "{text}");
    bench.delete(theirs, 360, 360);
    bench.correct(10);
    bench.check(0, 10);
}
