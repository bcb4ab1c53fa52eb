//! `TS.GET key [LATEST]` gives the newest sample of a series. Reply: its
//! timestamp and value, or an empty array where the series has none.
//!
//! LATEST includes the open bucket of a compaction rule; it changes nothing where
//! there is none.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::{Keys, Spec};

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.get", apply)
    .words(-2, "key [LATEST]")
    .keys(Keys::ONE)
    .about("Get the sample with the highest timestamp from a given time series");

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() > 3 {
        return Err(Fault::Arity);
    }
    let db = &call.shared.db;
    let last = if args.is(2, "LATEST") {
        db.last_sample_latest(args.word(1))
    } else {
        db.last_sample(args.word(1))
    };
    if last.is_err() {
        call.shared.events.missed(args.word(1));
    }
    let last = last?;
    if args.len() == 3 && !args.is(2, "LATEST") {
        return Fault::refuse("ERR TSDB: wrong 3rd argument");
    }
    let mut reply = call.reply();
    match last {
        Some(sample) => {
            reply.array(2);
            reply.integer(sample.timestamp);
            reply.double(sample.value);
        }
        None => reply.array(0),
    }
    Ok(())
}
