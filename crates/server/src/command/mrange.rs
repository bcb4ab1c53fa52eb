//! `TS.MRANGE from to RANGE-OPTS [WITHLABELS | SELECTED_LABELS name...]
//! [EXCLUDEEMPTY] FILTER expr... [GROUPBY label REDUCE reducer]` and
//! `TS.MREVRANGE`, the same newest first.
//!
//! Reply: an array of `[key, labels, rows]` by key, in RESP3 a map from key to
//! `[labels, {aggregators: [...]}, rows]`. What is sent in parts is one moment
//! of each series: all are looked at before the first is sent. Grouped replies
//! are made in [`groups`].

mod groups;
mod parse;

use super::label_options::Shown;
use super::registry::{Action, Keys, Spec};
use super::rows::{self, Shape};
use super::{Call, Fault, Outcome, mget};
use crate::shared::Shared;
use crate::stream::{self, Stream};
use latewood_engine::RangeQuery;
use latewood_engine::query::Found;
use latewood_wire::resp::{Protocol, Reply};

const SYNTAX: &str = "from to [LATEST] [FILTER_BY_TS ts ...] [FILTER_BY_VALUE min max] \
                      [WITHLABELS | SELECTED_LABELS name ...] [COUNT n] \
                      [[ALIGN start|end|ms] AGGREGATION agg[,agg...] bucket-ms \
                      [BUCKETTIMESTAMP start|mid|end] [EMPTY]] [EXCLUDEEMPTY] \
                      FILTER expression ... [GROUPBY label REDUCE reducer]";

pub(crate) const MRANGE: Spec = Spec {
    name: "ts.mrange",
    arity: -4,
    flags: &["readonly", "module"],
    keys: Keys::NONE,
    group: "timeseries",
    syntax: SYNTAX,
    summary: "Gives a span of time of each series that passes a filter, oldest first.",
    action: Action::Apply(|call| apply(call, false)),
};

pub(crate) const MREVRANGE: Spec = Spec {
    name: "ts.mrevrange",
    summary: "Gives a span of time of each series that passes a filter, newest first.",
    action: Action::Apply(|call| apply(call, true)),
    ..MRANGE
};

/// Samples that are read for one part of a reply, unless one series has more.
const PART_SAMPLES: u64 = 32 * 1024;
/// The same where they become buckets, which are few.
const PART_SAMPLES_IN_BUCKETS: u64 = 256 * 1024;
/// Series of one part of a reply.
const PART_SERIES: usize = 512;
/// Series that a thread takes at a time.
const PIECE_SERIES: usize = 16;

fn apply(call: &mut Call<'_>, reverse: bool) -> Outcome {
    let request = parse::request(call.args, reverse)?;
    let series = call.select(&request.matchers)?;
    if let Some(group_by) = request.group_by {
        return groups::apply(call, &series, request.query, request.shown, group_by);
    }
    let (db, query) = (&call.shared.db, request.query);
    let mut found = db.views(&series, &query, request.shown.any());
    if request.exclude_empty {
        let mut filled = Vec::new();
        for series in found {
            if !series.view.is_empty(&query)? {
                filled.push(series);
            }
        }
        found = filled;
    }
    mget::begin(&mut call.reply(), found.len());
    let reply = Ranges {
        found: found.into_iter(),
        query,
        shown: request.shown,
    };
    stream::begin(call, reply);
    Ok(())
}

/// The series that are not written yet.
struct Ranges {
    found: std::vec::IntoIter<Found>,
    query: RangeQuery,
    shown: Shown,
}

impl Stream for Ranges {
    fn more(&mut self, shared: &Shared, protocol: Protocol, out: &mut Vec<u8>) -> bool {
        let samples_max = match self.query.aggregation {
            Some(_) => PART_SAMPLES_IN_BUCKETS,
            None => PART_SAMPLES,
        };
        let (mut part, mut samples) = (Vec::new(), 0);
        while part.len() < PART_SERIES && samples < samples_max {
            let Some(series) = self.found.next() else {
                break;
            };
            samples += series.view.samples();
            part.push(series);
        }
        let (query, shown) = (&self.query, &self.shown);
        shared.db.spread(samples, |spread| {
            if !spread.is_parallel() {
                for series in part {
                    append(out, shared, protocol, series, query, shown);
                }
                return;
            }
            let mut part = part.into_iter();
            let pieces = std::iter::from_fn(|| {
                let piece: Vec<Found> = part.by_ref().take(PIECE_SERIES).collect();
                (!piece.is_empty()).then_some(piece)
            });
            let replies = spread.map(pieces.collect(), |piece: Vec<Found>| {
                let mut reply = Vec::new();
                for series in piece {
                    append(&mut reply, shared, protocol, series, query, shown);
                }
                reply
            });
            for reply in replies {
                out.extend_from_slice(&reply);
            }
        });
        self.found.len() > 0
    }
}

/// Appends one series. The reply's header is written: an error stands where
/// the rows would.
fn append(
    out: &mut Vec<u8>,
    shared: &Shared,
    protocol: Protocol,
    series: Found,
    query: &RangeQuery,
    shown: &Shown,
) {
    let mut reply = Reply::new(out, protocol);
    let resp3 = protocol == Protocol::Resp3;
    mget::entry(&mut reply, &series.key, if resp3 { 3 } else { 2 });
    shown.write(&mut reply, &series.labels);
    if resp3 {
        let aggregation = query.aggregation.as_ref();
        let aggregators = aggregation.map_or(&[][..], |aggregation| &aggregation.aggregators);
        reply.map(1);
        reply.bulk("aggregators");
        reply.array(aggregators.len());
        for aggregator in aggregators {
            reply.bulk(aggregator.name());
        }
    }
    let start = out.len();
    let rows = rows::append(out, protocol, Shape::Flat, |sink| {
        series.view.run(query, sink)
    });
    or_error(out, shared, start, protocol, rows);
}

/// Puts the error of a part of a reply in the place of what it wrote.
fn or_error(
    out: &mut Vec<u8>,
    shared: &Shared,
    start: usize,
    protocol: Protocol,
    written: Result<(), Fault>,
) {
    if let Err(fault) = written {
        let refused = &shared.observe.refused;
        fault.limit().inspect(|&limit| refused.note(limit));
        out.truncate(start);
        Reply::new(out, protocol).error(fault.text("ts.mrange").as_bytes());
    }
}
