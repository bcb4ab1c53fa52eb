//! `GET /api/v1/status/tsdb`: how many series there are by metric, label and pair.
//!
//! With `match[]` of the series that match, with `focusLabel` also by the values of that label, as
//! in VictoriaMetrics. Only what the user may read is counted. Linear in the labels of the series.
//!
//! Tested by `tests/http/promql.rs`.

use super::asked::Unreadable;
use super::envelope::respond_in_thread;
use super::parameters::Parameters;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::http::labelled::Named;
use crate::observe::Endpoint;
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_promql::labels::METRIC;
use serde_json::{Value, json};
use std::collections::HashMap;

/// Entries of each list, unless `limit` or `topN` says otherwise.
const TOP: usize = 10;
/// The most that may be asked for.
const TOP_MAX: usize = 10_000;

/// The handler.
pub(crate) async fn cardinality(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Labels, request, |asked, parameters| {
        let top = top(parameters)?;
        let mut selectors = parameters.selectors()?;
        if selectors.is_empty() {
            // No matcher lets all series pass.
            selectors.push(Vec::new());
        }
        let named = asked.find(&selectors, Unreadable::PassOver)?;
        let focus = parameters.first("focusLabel");
        Ok(Counts::of(&named).shown(named.len(), focus, top))
    })
    .await
}

/// How long the lists may be.
fn top(parameters: &Parameters) -> Result<usize, Answer> {
    let given = match parameters.first("limit") {
        "" => parameters.first("topN"),
        limit => limit,
    };
    match given.parse::<usize>() {
        _ if given.is_empty() => Ok(TOP),
        Ok(top) if (1..=TOP_MAX).contains(&top) => Ok(top),
        Ok(top) if top > TOP_MAX => Err(Answer::bad(format!("limit must not exceed {TOP_MAX}"))),
        _ => Err(Answer::bad("limit must be a positive number")),
    }
}

/// Series of each value of each label.
#[derive(Default)]
struct Counts<'a>(HashMap<&'a str, HashMap<&'a str, u64>>);

impl<'a> Counts<'a> {
    fn of(named: &'a [Named]) -> Self {
        let mut counts = Self::default();
        for (name, value) in named.iter().flat_map(|one| one.labels.iter()) {
            *counts.0.entry(name).or_default().entry(value).or_default() += 1;
        }
        counts
    }

    fn shown(&self, series: usize, focus: &str, top: usize) -> Value {
        let empty = HashMap::new();
        let by_value = |label: &str| {
            let values = self.0.get(label).unwrap_or(&empty).iter();
            largest(
                values.map(|(value, count)| ((*value).to_owned(), *count)),
                top,
            )
        };
        let by_label = |of: fn(&HashMap<&str, u64>) -> u64| {
            let labels = self.0.iter();
            largest(
                labels.map(|(name, values)| ((*name).to_owned(), of(values))),
                top,
            )
        };
        let pairs = self.0.iter().flat_map(|(name, values)| {
            let pair = move |(value, count): (&&str, &u64)| (format!("{name}={value}"), *count);
            values.iter().map(pair)
        });
        let pair_count: usize = self.0.values().map(HashMap::len).sum();
        let bytes = |values: &HashMap<&str, u64>| {
            values.keys().map(|value| value.len() as u64).sum::<u64>()
        };
        let mut shown = json!({
            "headStats": {"numSeries": series, "numLabelPairs": pair_count},
            "totalSeries": series,
            "totalLabelValuePairs": pair_count,
            "seriesCountByMetricName": by_value(METRIC),
            "labelValueCountByLabelName": by_label(|values| values.len() as u64),
            "seriesCountByLabelName": by_label(|values| values.values().sum()),
            "memoryInBytesByLabelName": by_label(bytes),
            "seriesCountByLabelValuePair": largest(pairs, top),
        });
        if !focus.is_empty() {
            shown["seriesCountByFocusLabelValue"] = by_value(focus);
        }
        shown
    }
}

/// The `top` largest of counts.
fn largest(counts: impl Iterator<Item = (String, u64)>, top: usize) -> Value {
    let mut counts: Vec<_> = counts.collect();
    counts.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    counts.truncate(top);
    let show = |(name, value): &(String, u64)| json!({"name": name, "value": value});
    counts.iter().map(show).collect()
}
