//! `TS.MGET [LATEST] [WITHLABELS | SELECTED_LABELS name...] FILTER expr...`
//! gives the newest sample of each series that passes the filter, by key.
//!
//! Reply: an array of `[key, labels, sample]`, in RESP3 a map from key to
//! `[labels, sample]`. The sample is `[timestamp, value]`, empty where the
//! series has none. All samples are taken before the first is sent.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::filter;
use super::label_options::{self, Shown};
use super::reply_limit::ReplyLimit;
use super::spec::Spec;
use crate::client::{Part, Stream};
use latewood_engine::{ErrorKind, Latest, is_cancelled};
use latewood_model::Matcher;
use latewood_wire::resp::{Protocol, Reply};
use std::hint::black_box;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.mget", apply)
    .words(
        -3,
        "[LATEST] [WITHLABELS | SELECTED_LABELS name ...] FILTER expression ...",
    )
    .about("Get the sample with the highest timestamp from each time series matching a specific filter");

/// Series of one part of the reply.
const PART_SERIES: usize = 512;
/// Series whose keys are fetched together.
const TOGETHER: usize = 32;

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let at = args.find("FILTER", 1).ok_or(Fault::Arity)?;
    let shown = label_options::parse(args, 1)?;
    let matchers = filter::matchers(args.from(at + 1))?;
    let latest = args.first(at).find("LATEST", 1).is_some();
    call.finish(call.work_of_finding(&matchers), move |call| {
        newest(call, &matchers, shown, latest)
    })
}

fn newest(call: &mut Call<'_>, matchers: &[Matcher], shown: Shown, latest: bool) -> Outcome {
    let series = call.select(matchers)?;
    let db = &call.shared.db;
    let limit = ReplyLimit::of(call.shared);
    let label_bytes_max = shown.any().then_some(limit.bytes);
    let found = db.latest(series, label_bytes_max, call.cancelled);
    let mut found = found.map_err(|error| match error.kind() {
        ErrorKind::Limit => limit.fault_of_labels(),
        _ => error.into(),
    })?;
    if latest {
        for series in &mut found {
            if is_cancelled(call.cancelled) {
                break;
            }
            let open = match db.open_bucket(&series.key) {
                // A series that went meanwhile has no open bucket.
                Err(error) if error.kind() == ErrorKind::NoSuchKey => None,
                open => open.map_err(|error| Fault::about(error, &series.key))?,
            };
            series.sample = open.or(series.sample);
        }
    }
    begin(&mut call.reply(), found.len());
    let found = found.into_iter();
    call.begin_stream(Newest { found, shown });
    Ok(())
}

/// The newest samples that are not written yet.
struct Newest {
    found: std::vec::IntoIter<Latest>,
    shown: Shown,
}

impl Stream for Newest {
    fn more(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> bool {
        let mut reply = Reply::new(out, part.protocol);
        for _ in 0..PART_SERIES / TOGETHER {
            // Keys lie all over the memory: looks that do not wait for each
            // other overlap, copies do not.
            let next = self.found.as_slice().iter().take(TOGETHER);
            let first = |series: &Latest| series.key.first().copied().unwrap_or(0);
            black_box(next.fold(0, |all, series| all ^ first(series)));
            self.write_few(&mut reply);
        }
        self.found.len() > 0
    }
}

impl Newest {
    /// Writes the next [`TOGETHER`] series.
    fn write_few(&mut self, reply: &mut Reply<'_>) {
        for series in self.found.by_ref().take(TOGETHER) {
            entry(reply, &series.key, 2);
            self.shown.write(reply, &series.labels);
            match series.sample {
                Some(sample) => reply.sample(sample.timestamp, sample.value),
                None => reply.array(0),
            }
        }
    }
}

/// The header of a reply about `len` series.
pub(crate) fn begin(reply: &mut Reply<'_>, len: usize) {
    match reply.protocol() {
        Protocol::Resp2 => reply.array(len),
        Protocol::Resp3 => reply.map(len),
    }
}

/// The name of a series in such a reply, before the `parts` that it has.
pub(crate) fn entry(reply: &mut Reply<'_>, name: &[u8], parts: usize) {
    match reply.protocol() {
        Protocol::Resp2 => {
            reply.array(1 + parts);
            reply.bulk(name);
        }
        Protocol::Resp3 => {
            reply.bulk(name);
            reply.array(parts);
        }
    }
}
