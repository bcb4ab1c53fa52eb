//! `TS.NRANGE numkeys key... from to RANGE-OPTS` and `TS.NREVRANGE` give
//! several series side by side, as RedisTimeSeries 8.10 does.
//!
//! Reply: an array of rows `[timestamp, [value, ...]]`, one for every timestamp
//! that any of the keys has; the values follow the keys, NaN where one has
//! none. With AGGREGATION and several keys each key has a word of aggregators
//! of its own, `AGGREGATION min,max avg 60000`, and as many values.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::keys::{Access, Run};
use super::reply_limit::ReplyLimit;
use super::rows::{self, Shape};
use super::spec::{Keys, Spec};
use super::{range_options, work};
use latewood_engine::query::{Columns, Sink, join};
use latewood_engine::{Cancelled, RangeQuery, View, is_cancelled};
use latewood_model::limits::NRANGE_KEYS_MAX;
use latewood_wire::resp::number::parse_i64;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

const SYNTAX: &str = "numkeys key ... from to [LATEST] [FILTER_BY_TS ts ...] \
                      [FILTER_BY_VALUE min max] [COUNT n] [[ALIGN start|end|ms] \
                      AGGREGATION agg[,agg...] ... bucket-ms \
                      [BUCKETTIMESTAMP start|mid|end] [EMPTY]]";

pub(crate) const NRANGE: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.nrange", |call| apply(call, false))
    .words(-5, SYNTAX)
    .keys(Keys(&[Run::counted(1, Access::ByFlags)]))
    .about("Query a range across multiple time series in forward direction, returning the results pivoted by timestamp (one value column per key)");

pub(crate) const NREVRANGE: Spec = NRANGE
    .named("ts.nrevrange", |call| apply(call, true))
    .about("Query a range across multiple time series in reverse direction, returning the results pivoted by timestamp (one value column per key)");

fn apply(call: &mut Call<'_>, reverse: bool) -> Outcome {
    let args = call.args;
    let numkeys = parse_i64(args.word(1)).and_then(|count| usize::try_from(count).ok());
    let numkeys = numkeys
        .filter(|count| *count > 0)
        .ok_or(Fault::line("ERR TSDB: numkeys must be a positive integer"))?;
    // The keys and the span have to be there.
    if numkeys > args.len() - 4 {
        return Err(Fault::Arity);
    }
    if numkeys > NRANGE_KEYS_MAX {
        let text = format!("ERR TSDB: numkeys must be at most {NRANGE_KEYS_MAX}");
        return Fault::refuse(text);
    }
    let queries = range_options::parse_each(call, 2 + numkeys, reverse, numkeys)?;
    let db = &call.shared.db;
    db.check_query(numkeys)?;
    look(call, Vec::new(), queries, reverse)
}

/// Looks at the keys that have no view yet, and reads all of them.
fn look(
    call: &mut Call<'_>,
    mut views: Vec<View>,
    queries: Vec<RangeQuery>,
    reverse: bool,
) -> Outcome {
    let mut about = 0_u64;
    while let Some(query) = queries.get(views.len()) {
        let view = call
            .shared
            .db
            .view(call.args.word(2 + views.len()), query)?;
        about = about
            .saturating_add(work::of_view(query, &view))
            .saturating_add(work::SAMPLES_PER_SERIES);
        views.push(view);
        if call.leaves(about) {
            return call.finish(work::UNKNOWN, move |call| {
                look(call, views, queries, reverse)
            });
        }
    }
    call.finish(about, move |call| join_rows(call, views, &queries, reverse))
}

/// Reads the views, and writes their rows side by side.
fn join_rows(
    call: &mut Call<'_>,
    views: Vec<View>,
    queries: &[RangeQuery],
    reverse: bool,
) -> Outcome {
    let db = &call.shared.db;
    let samples = views.iter().map(View::samples).sum();
    let found = views.into_iter().zip(queries).collect();
    let cancelled = call.cancelled;
    let limit = ReplyLimit::of(call.shared);
    let bytes = AtomicUsize::new(0);
    let columns = db.spread(samples, |spread| {
        spread.map(found, |(view, query)| {
            let mut held = Held {
                columns: Columns::default(),
                bytes: &bytes,
                limit,
                refused: None,
                cancelled,
            };
            view.run(query, &mut held)?;
            match held.refused {
                Some(rows) => Err(limit.fault(Some(rows))),
                None => Ok(held.columns),
            }
        })
    });
    let columns: Vec<Columns> = columns.into_iter().collect::<Result<_, Fault>>()?;
    let widths: Vec<usize> = queries.iter().map(width).collect();
    rows::append(call.out, call.part(), Shape::Nested, 0, |sink| {
        join(&columns, &widths, reverse, queries[0].count, sink);
        Ok(())
    })
}

fn width(query: &RangeQuery) -> usize {
    let aggregation = query.aggregation.as_ref();
    aggregation.map_or(1, |aggregation| aggregation.aggregators.len())
}

/// The rows of one key. Those of all keys together take no more memory than a
/// reply may have.
struct Held<'a> {
    columns: Columns,
    /// What all keys hold.
    bytes: &'a AtomicUsize,
    limit: ReplyLimit,
    /// It would be more: how many rows this key has at least.
    refused: Option<u64>,
    cancelled: Cancelled<'a>,
}

impl Held<'_> {
    /// Breaks unless `rows` rows of `width` values fit beside the `held` bytes.
    fn fit(&mut self, held: usize, rows: u64, width: usize) -> ControlFlow<()> {
        let bytes = rows.saturating_mul(bytes_of_row(width) as u64);
        if bytes > self.limit.bytes.saturating_sub(held) as u64 {
            let before = self.columns.timestamps.len() as u64;
            self.refused = Some(rows.saturating_add(before));
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}

impl Sink for Held<'_> {
    fn is_cancelled(&self) -> bool {
        is_cancelled(self.cancelled)
    }

    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        let more = timestamps.len() * bytes_of_row(width);
        let held = self.bytes.fetch_add(more, Ordering::Relaxed);
        self.fit(held, timestamps.len() as u64, width)?;
        self.columns.rows(timestamps, values, width)
    }

    fn announce(&mut self, count: u64, width: usize) -> ControlFlow<()> {
        self.fit(self.bytes.load(Ordering::Relaxed), count, width)
    }
}

fn bytes_of_row(width: usize) -> usize {
    size_of::<i64>() + width * size_of::<f64>()
}
