//! `TS.QUERYINDEX expr...` gives the keys of the series that pass the filter,
//! in the order of their bytes. Reply: an array, in RESP3 a set.

use super::call::{Call, Outcome};
use super::filter;
use super::spec::Spec;
use crate::client::{Part, Stream};
use latewood_engine::SeriesRef;
use latewood_wire::resp::Reply;

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.queryindex", apply)
    .words(-2, "expression ...")
    .about("Get all time series keys matching a filter list");

/// Keys of one part of the reply.
const PART_KEYS: usize = 2048;

fn apply(call: &mut Call<'_>) -> Outcome {
    let matchers = filter::matchers(call.args.from(1))?;
    call.finish(call.work_of_finding(&matchers), move |call| {
        let series = call.select(&matchers)?;
        call.reply().set(series.len());
        call.begin_stream(KeyStream(series.into_iter()));
        Ok(())
    })
}

/// The series whose keys are not written yet.
struct KeyStream(std::vec::IntoIter<SeriesRef>);

impl Stream for KeyStream {
    fn more(&mut self, part: Part<'_>, out: &mut Vec<u8>) -> bool {
        let mut reply = Reply::new(out, part.protocol);
        for series in self.0.by_ref().take(PART_KEYS) {
            reply.bulk(&*series.key);
        }
        self.0.len() > 0
    }
}
