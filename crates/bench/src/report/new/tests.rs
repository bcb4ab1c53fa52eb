//! What the page says of pauses and rates.

use super::*;
use serde_json::json;

/// A run of 50 series with the longest write of `max_us`; `whole_seconds` by the clock on the
/// wall, if it was looked at.
fn grow(max_us: f64, whole_seconds: Option<f64>) -> GrowRun {
    let pauses = json!({"p50_us": 1.0, "p99_us": 2.0, "p999_us": 3.0, "max_us": max_us});
    let run = json!({
        "series": 50, "seconds": 1.0, "cpu_seconds": 1e-6, "pauses": pauses,
        "whole_seconds": whole_seconds,
    });
    serde_json::from_value(run).unwrap()
}

#[test]
fn the_longest_write_is_that_of_all_runs() {
    let text = grown(&[10.0, 4_000.0, 20.0].map(|max_us| grow(max_us, Some(2.0))));
    assert!(text.contains("| 1 | 2 | 3 | 4000 | 20 |"), "{text}");
    assert!(text.contains("longest of all runs"), "{text}");
    let text = grown(&[10.0, 4_000.0, 20.0].map(|max_us| grow(max_us, None)));
    assert!(text.contains("| 1 | 2 | 3 | 20 | 20 |"), "{text}");
}

#[test]
fn the_rate_of_samples_has_their_making_in_it() {
    let run = |whole_seconds: Option<f64>| -> NewRun {
        let pauses = json!({"p50_us": 1.0, "p99_us": 2.0, "p999_us": 3.0, "max_us": 4.0});
        let run = json!({
            "kind": "New", "scattered": false, "labels": 6, "threads": 1, "repeat": 0,
            "samples": 1_000_000, "seconds": 0.4, "drain_seconds": 0.1, "cpu_seconds": 1.0,
            "pauses": pauses, "whole_seconds": whole_seconds,
        });
        serde_json::from_value(run).unwrap()
    };
    let page = |run| {
        let report = json!({
            "machine": crate::machine::Machine::look("new"), "series": 1, "runs": [run],
            "grown": [], "idle": [], "wire": [], "before": [],
        });
        super::page(&serde_json::from_value(report).unwrap(), "new")
    };
    let whole = page(run(Some(0.8)));
    assert!(
        whole.contains("| 1.00 | 1000 | 0 | 0 | 1.25 | 3 |"),
        "{whole}"
    );
    assert!(whole.contains("by the clock on the wall"), "{whole}");
    let without = page(run(None));
    assert!(
        without.contains("| 1.00 | 1000 | 0 | 0 | 2.00 | 3 |"),
        "{without}"
    );
    assert!(!without.contains("by the clock on the wall"), "{without}");
}
