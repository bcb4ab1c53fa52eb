//! `GET /api/v1/status/lateness`: how late samples came, by protocol, metric, sender or a chosen label.
//!
//! The figures are those of [`crate::observe::Lateness`]. Whoever may run PING sees protocols;
//! names of metrics and values of labels need TS.QUERYLABELS, senders CLIENT LIST. Metrics that the user
//! may not read are part of `others`, and so are all values for who may not read every key. The answer is bounded: two hours of minutes, and 64 rows.
//!
//! Tested by `tests/http/lateness.rs`.

use super::asked::Asked;
use super::envelope::respond_in_thread;
use super::parameters::Parameters;
use crate::base::clock::now_ms;
use crate::http::answer::Answer;
use crate::http::context::Context;
use crate::labelled;
use crate::observe::{
    AGE_BOUNDS_MS, BLOCK_MINUTES, Endpoint, HOUR_MINUTES, LateSum, Lateness, MINUTE_MS, MINUTES,
    Origin, QUANTILE_ERROR, ROWS_MAX, RankedRow, Route,
};
use axum::extract::{Request, State};
use axum::response::Response;
use latewood_model::named;
use latewood_wire::prometheus::time::parse_duration;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

const ROWS: usize = 20;
/// The command for names of metrics, and that for senders.
const METRIC_COMMAND: &str = "ts.querylabels";
const SENDER_COMMAND: &str = "client|list";
const PARAMETERS: [&str; 4] = ["by", "limit", "span", "protocol"];

pub(crate) async fn lateness(State(context): State<Context>, request: Request) -> Response {
    respond_in_thread(&context, Endpoint::Lateness, request, data).await
}

named! {
    /// What the rows are about.
    enum By {
        Protocol => "protocol",
        Metric => "metric",
        Sender => "sender",
        Label => "label",
    }
}

impl By {
    fn parse(parameters: &Parameters) -> Result<Self, Answer> {
        match parameters.first("by") {
            "" => Ok(Self::Protocol),
            name => (Self::ALL.into_iter().find(|by| by.name() == name))
                .ok_or_else(|| Answer::bad("by must be protocol, metric, sender or label")),
        }
    }
}

fn data(asked: &Asked, parameters: &Parameters) -> Result<Value, Answer> {
    parameters.only(&PARAMETERS)?;
    let by = By::parse(parameters)?;
    let minutes = span_minutes(parameters)?;
    let limit = limit(parameters)?;
    let route = route(parameters, by)?;
    match by {
        By::Protocol => {}
        By::Metric | By::Label => asked.demand(METRIC_COMMAND)?,
        By::Sender => asked.demand(SENDER_COMMAND)?,
    }
    let (shared, now_ms) = (asked.shared(), now_ms());
    let lateness = &shared.observe.lateness;
    let read = Read::of(lateness, now_ms, minutes, route);
    let first = now_ms.div_euclid(MINUTE_MS) - minutes as i64 + 1;
    let mut label = lateness.label().filter(|_| asked.may_run(METRIC_COMMAND));
    let mut rows_start = first;
    let (rows, others) = match by {
        By::Protocol => (read.protocols(), None),
        _ => {
            rows_start = first.div_euclid(BLOCK_MINUTES) * BLOCK_MINUTES;
            let (rows, others) = match by {
                By::Sender => lateness.senders(now_ms, minutes),
                By::Label => {
                    let found = lateness.label_values(now_ms, minutes);
                    let text = "late samples are counted by no label: see --lateness-label";
                    let (name, ranked) = found.ok_or_else(|| Answer::bad(text))?;
                    label = Some(name);
                    ranked
                }
                _ => lateness.metrics(now_ms, minutes),
            };
            let may_see = |row: &RankedRow| match by {
                By::Sender => true,
                By::Label => asked.may_read_all_by(METRIC_COMMAND),
                _ => asked.may_read_by(METRIC_COMMAND, &row.name),
            };
            let (rows, others) = top(rows, others, limit, may_see);
            let rows = rows.iter().map(|row| shown_row(by, row)).collect();
            (rows, Some(figures(&others, false)))
        }
    };
    let rows: Vec<_> = rows.into_iter().take(limit).collect();
    let uptime_ms = shared.lifetime.started.elapsed().as_millis() as i64;
    Ok(json!({
        "now": now_ms,
        "countedSince": now_ms - uptime_ms,
        "start": first * MINUTE_MS,
        "spanMs": minutes as i64 * MINUTE_MS,
        "quantileError": QUANTILE_ERROR,
        "total": figures(&read.total, true),
        "by": by.name(),
        "label": label.as_deref(),
        "rowsStart": rows_start * MINUTE_MS,
        "rows": rows,
        "others": others,
        "heatMap": read.heat_map(),
    }))
}

fn span_minutes(parameters: &Parameters) -> Result<usize, Answer> {
    let text = parameters.first("span");
    if text.is_empty() {
        return Ok(HOUR_MINUTES);
    }
    let span_ms = parse_duration(text).map_err(|error| Answer::parameter("span", error))?;
    match usize::try_from(span_ms.div_euclid(MINUTE_MS)) {
        Ok(minutes) if (1..=MINUTES).contains(&minutes) => Ok(minutes),
        _ => Err(Answer::bad("span must be from 1m to 2h")),
    }
}

fn limit(parameters: &Parameters) -> Result<usize, Answer> {
    match parameters.first("limit").parse() {
        Ok(limit) if (1..=ROWS_MAX).contains(&limit) => Ok(limit),
        _ if parameters.first("limit").is_empty() => Ok(ROWS),
        _ => Err(Answer::bad(format!("limit must be from 1 to {ROWS_MAX}"))),
    }
}

/// The only protocol of the heat map and the total.
fn route(parameters: &Parameters, by: By) -> Result<Option<Route>, Answer> {
    let name = parameters.first("protocol");
    if name.is_empty() {
        return Ok(None);
    }
    if by != By::Protocol {
        let text = "protocol is supported with by=protocol alone";
        return Err(Answer::bad(text));
    }
    match Route::ALL.iter().find(|route| route.name() == name) {
        Some(route) => Ok(Some(*route)),
        None => Err(Answer::bad(format!(
            "protocol must be one of {}",
            Route::ALL.map(Route::name).join(", ")
        ))),
    }
}

/// The first `limit` rows that may be seen; the others are added to `others`.
fn top(
    rows: Vec<RankedRow>,
    mut others: LateSum,
    limit: usize,
    may_see: impl Fn(&RankedRow) -> bool,
) -> (Vec<RankedRow>, LateSum) {
    let mut seen = Vec::new();
    for row in rows {
        if seen.len() < limit && may_see(&row) {
            seen.push(row);
        } else {
            others.merge(&row.sum);
        }
    }
    (seen, others)
}

fn shown_row(by: By, row: &RankedRow) -> Value {
    let mut shown = figures(&row.sum, false);
    match by {
        By::Sender => {
            let (address, user) = Origin::parts(&row.name);
            shown["sender"] = address.into();
            shown["user"] = user.into();
        }
        By::Label => shown["value"] = labelled::text(&row.name).into(),
        _ => shown["metric"] = String::from_utf8_lossy(&row.name).into(),
    }
    shown
}

/// Late samples; with all samples also their share, and the delay after which all but a few have
/// come.
fn figures(sum: &LateSum, has_samples: bool) -> Value {
    let mut shown = Map::new();
    let mut put = |name: &str, value: Value| shown.insert(name.to_owned(), value);
    put("lateSamples", sum.late.into());
    let ages = json!({
        "p50": sum.age_ms(0.5), "p90": sum.age_ms(0.9), "p99": sum.age_ms(0.99), "max": sum.max_ms,
    });
    put("lateAgeMs", ages);
    if has_samples {
        put("samples", sum.samples.into());
        let delay = json!({"p99": sum.delay_ms(0.99), "p999": sum.delay_ms(0.999)});
        put("delayMs", delay);
    }
    Value::Object(shown)
}

/// Bands and their counts, as the answer has them.
fn pairs(cells: &BTreeMap<usize, u64>) -> Vec<(usize, u64)> {
    cells.iter().map(|(band, count)| (*band, *count)).collect()
}

/// What is read of the minutes.
#[derive(Default)]
struct Read {
    total: LateSum,
    routes: Vec<(Route, LateSum)>,
    minutes: BTreeMap<i64, Cells>,
}

/// One minute of the heat map.
#[derive(Default)]
struct Cells {
    samples: u64,
    late: LateSum,
    /// Samples by band of age.
    late_ages: BTreeMap<usize, u64>,
    arrival_ages: BTreeMap<usize, u64>,
}

/// Adds what is not 0 of `counts`, by band.
fn add_bands(cells: &mut BTreeMap<usize, u64>, counts: &[u64]) {
    for (band, &count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
        *cells.entry(band).or_default() += count;
    }
}

impl Read {
    fn of(lateness: &Lateness, now_ms: i64, minutes: usize, only: Option<Route>) -> Self {
        let mut read = Self::default();
        lateness.each(now_ms, minutes, |minute| {
            if read
                .routes
                .last()
                .is_none_or(|(route, _)| *route != minute.route)
            {
                read.routes.push((minute.route, LateSum::default()));
            }
            if let Some((_, sum)) = read.routes.last_mut() {
                sum.samples += minute.samples;
                minute.late.inspect(|late| sum.add(&late.ages));
            }
            if only.is_some_and(|only| only != minute.route) {
                return;
            }
            let cells = read.minutes.entry(minute.number).or_default();
            cells.samples += minute.samples;
            if let Some(late) = minute.late {
                cells.late.add(&late.ages);
                add_bands(&mut cells.late_ages, late.bands.counts());
            }
            add_bands(&mut cells.arrival_ages, &minute.arrival);
        });
        let shown = read.routes.iter();
        let shown = shown.filter(|(route, _)| only.is_none_or(|only| only == *route));
        shown.for_each(|(_, sum)| read.total.merge(sum));
        read
    }

    /// Most late samples first.
    fn protocols(&self) -> Vec<Value> {
        let mut routes: Vec<_> = self.routes.iter().collect();
        routes.sort_by_key(|(_, sum)| std::cmp::Reverse((sum.late, sum.samples)));
        let row = |(route, sum): &&(Route, LateSum)| {
            let mut shown = figures(sum, true);
            shown["protocol"] = route.name().into();
            shown
        };
        routes.iter().map(row).collect()
    }

    fn heat_map(&self) -> Value {
        let minutes = self.minutes.iter().map(|(number, cells)| {
            json!({
                "start": number * MINUTE_MS,
                "samples": cells.samples,
                "lateSamples": cells.late.late,
                "lateAgeP99Ms": cells.late.age_ms(0.99),
                "lateAges": pairs(&cells.late_ages),
                "arrivalAges": pairs(&cells.arrival_ages),
            })
        });
        json!({
            "stepMs": MINUTE_MS,
            "ageBoundsMs": AGE_BOUNDS_MS,
            "minutes": minutes.collect::<Vec<_>>(),
        })
    }
}
