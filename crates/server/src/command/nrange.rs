//! `TS.NRANGE numkeys key... from to RANGE-OPTS` and `TS.NREVRANGE` give
//! several series side by side, as RedisTimeSeries 8.10 does.
//!
//! Reply: an array of rows `[timestamp, [value, ...]]`, one for every timestamp
//! that any of the keys has; the values follow the keys, NaN where one has
//! none. With AGGREGATION and several keys each key has a word of aggregators
//! of its own, `AGGREGATION min,max avg 60000`, and as many values.

use super::keys::{Access, Run};
use super::registry::{Action, Keys, Spec};
use super::rows::{self, Shape};
use super::{Call, Fault, Outcome, range_options};
use latewood_engine::RangeQuery;
use latewood_engine::query::{Columns, join};
use latewood_wire::resp::number::parse_i64;

const SYNTAX: &str = "numkeys key ... from to [LATEST] [FILTER_BY_TS ts ...] \
                      [FILTER_BY_VALUE min max] [COUNT n] [[ALIGN start|end|ms] \
                      AGGREGATION agg[,agg...] ... bucket-ms \
                      [BUCKETTIMESTAMP start|mid|end] [EMPTY]]";

pub(crate) const NRANGE: Spec = Spec {
    name: "ts.nrange",
    arity: -5,
    flags: &["readonly", "module"],
    keys: Keys(&[Run::counted(1, Access::ByFlags)]),
    group: "timeseries",
    syntax: SYNTAX,
    summary: "Gives a span of time of several series side by side, oldest first.",
    action: Action::Apply(|call| apply(call, false)),
};

pub(crate) const NREVRANGE: Spec = Spec {
    name: "ts.nrevrange",
    summary: "Gives a span of time of several series side by side, newest first.",
    action: Action::Apply(|call| apply(call, true)),
    ..NRANGE
};

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
    let queries = range_options::parse_each(args, 2 + numkeys, reverse, numkeys)?;
    let db = &call.shared.db;
    let mut found = Vec::new();
    for (key, query) in args.from(2).zip(&queries) {
        found.push((db.view(key, query)?, query));
    }
    let samples = found.iter().map(|(view, _)| view.samples()).sum();
    let columns = db.spread(samples, |spread| {
        spread.map(found, |(view, query)| {
            let mut columns = Columns::default();
            view.run(query, &mut columns).map(|()| columns)
        })
    });
    let columns: Vec<Columns> = columns.into_iter().collect::<Result<_, _>>()?;
    let widths: Vec<usize> = queries.iter().map(width).collect();
    let protocol = call.session.protocol;
    rows::append(call.out, protocol, Shape::Nested, |sink| {
        join(&columns, &widths, reverse, queries[0].count, sink);
        Ok(())
    })
}

fn width(query: &RangeQuery) -> usize {
    let aggregation = query.aggregation.as_ref();
    aggregation.map_or(1, |aggregation| aggregation.aggregators.len())
}
