//! Asking a server that answers PromQL what it holds.

use serde_json::Value;

use crate::error::{Error, Result};
use crate::http::Http;
use crate::lines::{CpuLoad, FIELDS, START_MS, STEP_MS};

const QUERY: &str = "/api/v1/query";

/// Values of all fields.
///
/// # Errors
/// When a question fails.
pub(super) fn values(http: &Http, load: &CpuLoad) -> Result<u64> {
    let mut held = 0;
    for field in FIELDS {
        let question = format!("sum(count_over_time(cpu_{field}[{}]))", range(load));
        let answer = ask(http, load, &question)?;
        let count = answer["data"]["result"][0]["value"][1].as_str();
        // No result at all means that there is none.
        held += count.map_or(Ok(0), |count| count.parse().map_err(|_| odd(&question)))?;
    }
    Ok(held)
}

/// All samples of a field of a host.
///
/// # Errors
/// When the question fails.
pub(super) fn series(
    http: &Http,
    load: &CpuLoad,
    host: u32,
    field: usize,
) -> Result<Vec<(i64, f64)>> {
    let name = FIELDS[field];
    let question = format!("cpu_{name}{{hostname=\"host_{host}\"}}[{}]", range(load));
    let answer = ask(http, load, &question)?;
    let rows = answer["data"]["result"][0]["values"].as_array();
    let sample = |row: &Value| {
        let value = row[1].as_str()?.parse().ok()?;
        Some(((row[0].as_f64()? * 1e3).round() as i64, value))
    };
    let samples = rows.and_then(|rows| rows.iter().map(sample).collect());
    samples.ok_or_else(|| odd(&question))
}

/// The last lines are asked for, and everything up to the first.
fn ask(http: &Http, load: &CpuLoad, question: &str) -> Result<Value> {
    let time = (load.end_ms() / 1_000).to_string();
    // VictoriaMetrics would otherwise remember answers; Prometheus does not know the word.
    let query = [("query", question), ("time", &time), ("nocache", "1")];
    http.get_json(QUERY, &query)
}

fn range(load: &CpuLoad) -> String {
    format!("{}s", (load.end_ms() - START_MS + STEP_MS) / 1_000)
}

fn odd(question: &str) -> Error {
    Error::new(format!("{question} has an answer of another form"))
}
