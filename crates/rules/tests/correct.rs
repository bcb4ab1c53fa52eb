//! What a rule gives at many steps at once, beside what it gives at each.

use crate::evaluate::Memory;
use latewood_promql::engine::Settings;
use latewood_promql::reads::Reads;
use latewood_rules::RuleFile;
use latewood_rules::correct::given::{Given, Many};

const MIN: i64 = 60_000;

fn memory() -> Memory {
    let mut memory = Memory::default();
    for (host, minutes) in [("a", 0..30), ("b", 5..8), ("c", 12..20), ("d", 14..16)] {
        for minute in minutes {
            let value = 0.1 * minute as f64 + 0.3;
            memory.set(&format!("t host={host} job=j"), minute * MIN, value);
        }
    }
    memory
}

/// Evaluates steps 0 to 29 of an expression.
fn given(expr: &str, limit: usize, settings: &Settings) -> Result<Given, String> {
    let text = format!(
        "groups: [{{name: g, rules: [{{record: r, expr: '{expr}', labels: {{job: x}}}}]}}]"
    );
    let file = RuleFile::parse(&text, false).unwrap();
    let rule = &file.groups[0].rules[0];
    let reads = Reads::of(rule.query.expr(), settings).unwrap();
    let many = Many {
        rule,
        query: &rule.query,
        reads: &reads,
        limit,
        interval_ms: MIN,
        settings,
    };
    let memory = memory();
    let whole = many.evaluate(0, 29 * MIN, &mut || Ok(Box::new(&memory)))?;
    // Step by step it is the same.
    let mut apart = Given::default();
    for step in 0..30 {
        let one = many.evaluate(step * MIN, step * MIN, &mut || Ok(Box::new(&memory)))?;
        apart.failed.extend(one.failed);
        for (labels, rows) in one.rows {
            apart.rows.entry(labels).or_default().extend(rows);
        }
    }
    assert_eq!(format!("{whole:?}"), format!("{apart:?}"), "{expr}");
    Ok(whole)
}

#[test]
fn many_steps_give_what_each_one_gives() {
    let settings = Settings::default();
    for expr in [
        "t",
        "avg_over_time(t[10m])",
        "sum by (job) (rate(t[5m]))",
        "sum(max by (host) (t))",
        "topk(2, t)",
        "time() - step()",
        "max_over_time(sum_over_time(t[10m])[5m:1m])",
    ] {
        let found = given(expr, 0, &settings).unwrap();
        assert!(!found.rows.is_empty() && found.failed.is_empty(), "{expr}");
    }
}

#[test]
fn a_step_that_fails_has_no_rows_and_the_others_have_theirs() {
    let settings = Settings::default();
    // With the lookback, two series are there from 5 to 12 and from 12 to 24.
    let found = given("t * on (job) t", 0, &settings).unwrap();
    let failed: Vec<i64> = found.failed.keys().map(|at_ms| at_ms / MIN).collect();
    assert_eq!(failed, (5..=23).collect::<Vec<i64>>());
    assert!(!found.rows.is_empty());
    // The label that told series apart is set by the rule.
    let found = given("sum by (host, job) (t)", 2, &settings).unwrap();
    assert!(found.failed.values().all(|why| why.contains("limit of 2")));
    assert_eq!(found.failed.len(), 6);
    let found = given("sum without (host) (t) or t", 0, &settings).unwrap();
    assert!(found.failed.is_empty());
    let found = given("label_replace(t, \"host\", \"\", \"\", \"\")", 0, &settings).unwrap();
    let why = found.failed.values().next().unwrap();
    assert!(why.contains("same labelset"), "{why}");
}

#[test]
fn a_span_that_is_too_long_is_taken_apart() {
    let settings = Settings {
        samples_max: 60,
        ..Settings::default()
    };
    let found = given("t", 0, &settings).unwrap();
    assert!(found.failed.is_empty() && !found.rows.is_empty());
    let settings = Settings {
        samples_max: 1,
        ..Settings::default()
    };
    let why = given("t", 0, &settings).unwrap_err();
    assert!(why.contains("too many samples"), "{why}");
}
