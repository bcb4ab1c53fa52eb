//! Runs over history on disk show what they cost until everything is in files.

use super::*;
use crate::machine::Machine;
use serde_json::{Value, json};

/// A run of a million samples in a second, which took a second of processor time, and half of
/// that again until the server rested, after two seconds more.
fn run(late_percent: f64, cpu_seconds: f64, rests: bool) -> Value {
    let mut measured = Measured {
        measured_samples: 1_000_000,
        samples_per_second: 1e6,
        server_cpu_seconds_per_million: cpu_seconds,
        samples_per_server_cpu_second: 1e6 / cpu_seconds,
        ..Measured::default()
    };
    measured.at_rest = rests.then_some(crate::late::AtRest {
        seconds: 2.0 + cpu_seconds,
        server_cpu_seconds: 1.5 * cpu_seconds,
    });
    json!({
        "target": "Latewood", "repeat": 0, "measured": measured,
        "cell": {
            "late_percent": late_percent, "encoding": "compressed", "chunk_size": 4096,
            "pipeline": 50, "connections": 8, "policy": "LAST", "series": 8, "samples": 1,
        },
    })
}

fn made(rests: bool) -> String {
    let report = json!({
        "targets": [], "machine": Machine::look("late"),
        "runs": [run(0.0, 1.0, rests), run(50.0, 1.2, rests)],
        "settings": {
            "repeats": 1, "preload": 5, "warmup": 0, "seed": 1, "rate": 0.0, "client_threads": 1,
        },
    });
    page(
        &serde_json::from_value(report).unwrap(),
        "late-history",
        &[],
    )
}

#[test]
fn history_on_disk_is_shown_settled_and_at_rest() {
    let page = made(true);
    for said in [
        "those that lie over blocks still wait in memory then",
        "| Latewood | 50 | 1,000,000 | 0.0 % |",
        "At rest:",
        "| Latewood | 0 | 333,333 |  | 1,500 |  | 3.0 |",
        "| Latewood | 50 | 312,500 | 6.2 % | 1,800 | 600 | 3.2 |",
    ] {
        assert!(page.contains(said), "{said}: {page}");
    }
}

#[test]
fn runs_that_were_not_waited_for_have_no_such_table() {
    let page = made(false);
    assert!(!page.contains("At rest"), "{page}");
    assert!(page.contains("The clock and the processor time run until late samples are settled."));
}
