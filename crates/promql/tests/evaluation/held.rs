//! What operators hold is counted before it is there: a query ends at its limit, whatever it builds.

use crate::evaluation::memory::{Memory, labels};
use crate::evaluation::table::{instant, range};
use latewood_promql::engine::{Pool, Query, Settings, Value};
use latewood_promql::source::Samples;
use std::sync::Arc;

/// Bytes that a query may hold.
const LIMIT_BYTES: usize = 1 << 20;

fn limited() -> Settings {
    Settings {
        memory_bytes_max: LIMIT_BYTES,
        ..Settings::default()
    }
}

/// `series` series of one sample, each with another value.
fn many(series: usize) -> Memory {
    let mut memory = Memory::default();
    for at in 0..series {
        let samples = Samples {
            timestamps: vec![0],
            values: vec![at as f64],
        };
        memory.add(labels(&format!("x{{a=\"{at}\",b=\"1\"}}")), samples);
    }
    memory
}

fn is_refused(lines: &[String]) -> bool {
    let why = format!("error: query needs more than {LIMIT_BYTES} bytes of memory");
    lines.len() == 1 && lines[0].starts_with(&why)
}

#[test]
fn samples_of_subqueries_and_columns_are_counted() {
    let memory = Memory::default();
    // 20,000 samples: a column takes 160 KB, its samples 320 KB, sums of them as much.
    let query = "sum_over_time(vector(1)[20s:1ms])";
    assert!(!is_refused(&instant(&memory, query, 0, &limited())));
    // Each operator around it holds a column of its own.
    let query = "sum_over_time((vector(time()) + 1 + 1 + 1)[20s:1ms])";
    assert!(is_refused(&instant(&memory, query, 0, &limited())));
    // A row of a result: 16 bytes for each sample once more.
    let query = "vector(1)[27s:1ms]";
    assert!(is_refused(&instant(&memory, query, 0, &limited())));
    let samples = Samples {
        timestamps: (0..40_000).collect(),
        values: vec![1.0; 40_000],
    };
    let mut memory = Memory::default();
    memory.add(labels("x"), samples);
    assert!(!is_refused(&instant(
        &memory,
        "sum(last_over_time(x[1s]))",
        40_000,
        &limited()
    )));
    assert!(is_refused(&instant(&memory, "x[40s]", 40_000, &limited())));
}

#[test]
fn windows_of_very_many_steps_are_not_held() {
    let settings = Settings {
        memory_bytes_max: 9 * LIMIT_BYTES / 2,
        ..Settings::default()
    };
    // 72,000 windows: 32 bytes each would be 2.2 MiB.
    for function in ["quantile_over_time(0.5, ", "rate(", "sum_over_time("] {
        let query = format!("max_over_time({function}vector(1)[1s:1ms])[72s:1ms])");
        let lines = instant(&Memory::default(), &query, 0, &settings);
        assert!(
            lines.len() == 1 && !lines[0].starts_with("error"),
            "{lines:?}"
        );
    }
}

#[test]
fn a_query_over_its_limit_takes_nothing_from_others() {
    let pool = Arc::new(Pool::new(4 * LIMIT_BYTES));
    let settings = Settings {
        pool: Some(Arc::clone(&pool)),
        ..limited()
    };
    let query = "count_over_time(vector(1)[20000s:1ms])";
    assert!(is_refused(&instant(
        &Memory::default(),
        query,
        0,
        &settings
    )));
    assert_eq!(pool.held_bytes(), 0);
}

#[test]
fn labels_are_counted_before_they_are_made() {
    let memory = many(1);
    // A value of 2^40 bytes: each level doubles it.
    let doubled = (0..40).fold("x".to_owned(), |inner, _| {
        format!("label_replace({inner}, \"a\", \"$1$1\", \"a\", \"(.*)\")")
    });
    assert!(is_refused(&instant(&memory, &doubled, 0, &limited())));
    let joined = (0..40).fold("x".to_owned(), |inner, _| {
        format!("label_join({inner}, \"b\", \"\", \"b\", \"b\")")
    });
    assert!(is_refused(&instant(&memory, &joined, 0, &limited())));
    let memory = many(1000);
    let long = "1".repeat(2000);
    for query in [
        format!("label_replace(x, \"c\", \"{long}\", \"a\", \".*\")"),
        format!("label_join(x, \"c\", \"{long}\", \"a\", \"b\")"),
        format!("count_values(\"{long}\", x)"),
    ] {
        assert!(
            is_refused(&instant(&memory, &query, 0, &limited())),
            "{}",
            &query[..20]
        );
    }
}

#[test]
fn vectors_are_counted_while_they_grow() {
    let memory = many(3000);
    for query in [
        "sort(sort(sort(sort(sort(sort(x))))))",
        "sort_by_label(sort_by_label(sort_by_label(x, \"a\"), \"a\"), \"a\")",
        "topk(3000, topk(3000, topk(3000, x)))",
        "count_values(\"v\", x)",
        "abs(x) or ceil(x)",
        "x * on() group_left() (x > bool 0)",
        "sum by (a) (x)",
    ] {
        let lines = instant(&memory, query, 0, &limited());
        assert!(is_refused(&lines), "{query}: {}", lines[0]);
    }
    // What is counted is given back with the query.
    let query = Query::new("sort(x)").unwrap();
    let settings = Settings::default();
    let outcome = query.instant(0, &settings, &memory).unwrap();
    assert!(matches!(outcome.value, Value::Vector(vector) if vector.len() == 3000));
    // 3,000 series in three vectors, and samples.
    assert!((200_000..1_500_000).contains(&outcome.stats.peak_bytes));
}

#[test]
fn columns_of_many_buckets_are_counted() {
    let mut memory = Memory::default();
    for bound in 0..100 {
        let samples = Samples {
            timestamps: vec![0],
            values: vec![1.0],
        };
        memory.add(labels(&format!("x{{le=\"{bound}\"}}")), samples);
    }
    let query = "histogram_quantile(0.5, x)";
    let lines = range(&memory, query, (0, 3000, 1), &limited());
    assert!(is_refused(&lines), "{}", lines[0]);
}
