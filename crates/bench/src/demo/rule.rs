//! A recording rule over the year: the mean temperature of each station, a row a day. Its rows are
//! made when a third of the year is there. In the end, after late uploads and a kill, the server
//! compares each row with what the expression gives. Tested by each demo.

use super::year::{END_S, START_S};
use crate::base::address::Address;
use crate::base::error::{Error, Result};
use crate::base::http::Http;
use crate::server::tool;

/// The label of its rows is not one that it reads.
pub(super) const FILE: &str = "\
groups:
- name: weather
  interval: 1d
  rules:
  - record: station:temp:mean
    expr: avg by (station) (avg_over_time({measure=\"temp\"}[1d]))
    labels: {measure: mean}
";
const RECORD: &str = "station:temp:mean";
const DAY_S: i64 = 86_400;

/// Has the rows of the year made, as far as there are samples. Returns how many.
pub(super) fn begin(http: &Address) -> Result<usize> {
    tool(&command("backfill", http))?;
    let rows = rows(http)?;
    println!("   A recording rule, {RECORD}, has {rows} rows: the mean of each day.");
    Ok(rows)
}

/// Waits until all samples are worked in, and has each row compared; `before` were there after the
/// first part.
///
/// # Errors
/// Where a row differs, or one is missing.
pub(super) fn check(http: &Address, stations: usize, before: usize) -> Result<()> {
    println!("\n7. The rows of the recording rule, after late uploads and the kill:");
    let rows = rows(http)?;
    let days = usize::try_from((END_S - START_S) / DAY_S).unwrap_or_default();
    // The first day is not whole at each station.
    if rows < stations * (days - 1) {
        return Err(Error::new(format!("{RECORD} has only {rows} rows")));
    }
    println!("   {rows}, {before} of them since the first part.");
    let verify = command("verify", http);
    let said = tool(&verify)?;
    println!("   latewood {}", verify.join(" "));
    println!("   {}", said.trim().replace('\n', "\n   "));
    Ok(())
}

/// What does something with the rows of the year.
fn command(what: &str, http: &Address) -> Vec<String> {
    let time = |seconds: i64| seconds.to_string();
    let words = [
        "rules",
        what,
        "--from",
        &time(START_S),
        "--to",
        &time(END_S),
        "--url",
        &format!("http://{http}"),
    ];
    words.map(str::to_owned).to_vec()
}

/// The rows of the year, once all that was acknowledged is worked in.
fn rows(http: &Address) -> Result<usize> {
    let (end, rows) = (END_S.to_string(), format!("{RECORD}[{}s]", END_S - START_S));
    let parameters = [("query", &*rows), ("time", &*end), ("fresh", "1")];
    let answer = Http::new(http).get_json("/api/v1/query", &parameters)?;
    let series = answer["data"]["result"].as_array().into_iter().flatten();
    let values = series.filter_map(|one| one["values"].as_array());
    Ok(values.map(Vec::len).sum())
}
