//! The reply to TS.MRANGE with GROUPBY: one entry for each value of a label,
//! in the order of the values' bytes, called `label=value`.
//!
//! A series without the label is in no group; one that carries it several
//! times is in that of its first value. In RESP2 a group's labels are the one
//! it is made by, `__reducer__` and `__source__`, the keys joined by commas; in
//! RESP3 reducers and sources have places of their own and the last two labels
//! are only shown where they are selected.

use super::parse::GroupBy;
use super::{PART_SAMPLES, or_error};
use crate::client::{Part, Stream};
use crate::command::call::{Call, Outcome};
use crate::command::label_options::Shown;
use crate::command::mget;
use crate::command::reply_limit::ReplyLimit;
use crate::command::rows::{self, Shape};
use crate::command::work::{self, LOOP_SAMPLES_MAX};
use latewood_engine::{ErrorKind, RangeQuery, SeriesRef, Spread};
use latewood_wire::resp::{Protocol, Reply};

/// Series that are read for one part of a reply, unless one group has more.
const PART_SERIES: usize = 4096;
/// Groups of one part of a reply.
const PART_GROUPS: usize = 64;
/// Rows that are written before it is looked whether the reply is too long.
const ROWS_AT_ONCE: usize = 2048;

/// Groups `series` and begins the reply.
pub(super) fn apply(
    call: &mut Call<'_>,
    series: Vec<SeriesRef>,
    samples: u64,
    question: Question,
) -> Outcome {
    let about = work::of_series(&question.query, series.len(), samples);
    let is_long = call.work_in(work::span_of(&question.query), about) > LOOP_SAMPLES_MAX;
    let groups = call
        .shared
        .db
        .group_by(series, &question.by.label, call.cancelled)?;
    mget::begin(&mut call.reply(), groups.len());
    let groups = groups.into_iter();
    call.begin_stream(Grouped {
        groups,
        question,
        is_long,
    });
    Ok(())
}

/// The groups that are not written yet.
struct Grouped {
    groups: std::vec::IntoIter<(Box<[u8]>, Vec<SeriesRef>)>,
    question: Question,
    /// All of them together are too much for an event loop.
    is_long: bool,
}

/// What is asked of every group.
pub(super) struct Question {
    query: RangeQuery,
    shown: Shown,
    by: GroupBy,
}

impl Stream for Grouped {
    fn more(&mut self, to: Part<'_>, out: &mut Vec<u8>) -> bool {
        let shared = to.shared;
        let (mut part, mut series) = (Vec::new(), 0);
        let (mut samples, mut work) = (0, 0u64);
        while part.len() < PART_GROUPS && series < PART_SERIES && work < PART_SAMPLES {
            let Some(group) = self.groups.next() else {
                break;
            };
            series += group.1.len();
            let about = shared.db.samples_about(&group.1, &self.question.query);
            samples += about;
            let query = &self.question.query;
            work = work::of_rows(query, about, query.filled_rows_max()).saturating_add(work);
            part.push(group);
        }
        let question = &self.question;
        let replies = shared.db.spread(samples, |spread| {
            spread.map(part, |(value, series)| {
                let mut reply = Vec::new();
                question.append(&mut reply, to, &value, &series, spread);
                reply
            })
        });
        for reply in replies {
            out.extend_from_slice(&reply);
        }
        self.groups.len() > 0
    }

    fn is_long(&self) -> bool {
        self.is_long
    }
}

impl Question {
    pub(super) fn new(query: RangeQuery, shown: Shown, by: GroupBy) -> Self {
        Self { query, shown, by }
    }

    /// Appends the group of the series that have the label's `value`.
    fn append(
        &self,
        out: &mut Vec<u8>,
        part: Part<'_>,
        value: &[u8],
        series: &[SeriesRef],
        spread: Spread,
    ) {
        let (label, reducer) = (&*self.by.label, self.by.reducer);
        let mut reply = Reply::new(out, part.protocol);
        let resp3 = part.protocol == Protocol::Resp3;
        let name = [label, b"=", value].concat();
        mget::entry(&mut reply, &name, if resp3 { 4 } else { 2 });
        let keys: Vec<&[u8]> = series.iter().map(|series| &*series.key).collect();
        let sources = if self.shown.any() {
            keys.join(&b","[..])
        } else {
            Vec::new()
        };
        let pairs = [
            (label, value),
            (b"__reducer__", reducer.name().as_bytes()),
            (b"__source__", &sources),
        ];
        let all = if resp3 { 1 } else { pairs.len() };
        self.shown.write_pairs(&mut reply, &pairs, all);
        if resp3 {
            reply.map(1);
            reply.key("reducers").array(1);
            reply.bulk(reducer.name());
            reply.map(1);
            reply.key("sources").array(keys.len());
            for key in keys {
                reply.bulk(key);
            }
        }
        let start = out.len();
        let mut is_long = false;
        let written = rows::append(out, part, Shape::Flat, 0, |sink| {
            let db = &part.shared.db;
            let reduced = db.reduce(series, &self.query, reducer, spread, part.cancelled);
            let rows = reduced.inspect_err(|error| is_long = error.kind() == ErrorKind::Limit)?;
            let values = rows.values.chunks(ROWS_AT_ONCE);
            let mut rows = rows.timestamps.chunks(ROWS_AT_ONCE).zip(values);
            // A sink that has enough is no error.
            let _ = rows.try_for_each(|(timestamps, values)| sink.rows(timestamps, values, 1));
            Ok(())
        });
        let written = if is_long {
            Err(ReplyLimit::of(part.shared).fault(None))
        } else {
            written
        };
        or_error(out, part, start, written);
    }
}
