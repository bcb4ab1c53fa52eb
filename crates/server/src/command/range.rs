//! `TS.RANGE key from to RANGE-OPTS` and `TS.REVRANGE`, the same newest first.
//! Reply: an array of rows, each a timestamp and its values.
//!
//! Rows become reply bytes as the engine makes them; nothing is held but the
//! reply. How many rows there are is known at the end, so the array's header
//! is put in front of them then. A reply that grows over its limit ends the
//! query and becomes an error.

use super::registry::{Action, Keys, Spec};
use super::{Call, Fault, Outcome, range_options};
use latewood_engine::query::Sink;
use latewood_model::limits::REPLY_BYTES_MAX;
use latewood_wire::resp::{Protocol, Reply};
use std::ops::ControlFlow;

const SYNTAX: &str = "key from to [LATEST] [FILTER_BY_TS ts ...] [FILTER_BY_VALUE min max] \
                      [COUNT n] [[ALIGN start|end|ms] AGGREGATION agg[,agg...] bucket-ms \
                      [BUCKETTIMESTAMP start|mid|end] [EMPTY]]";

pub(crate) const RANGE: Spec = Spec {
    name: "ts.range",
    arity: -4,
    flags: &["readonly", "module"],
    keys: Keys::ONE,
    group: "timeseries",
    syntax: SYNTAX,
    summary: "Gives the samples, or buckets of samples, of a span of time, oldest first.",
    action: Action::Apply(|call| apply(call, false)),
};

pub(crate) const REVRANGE: Spec = Spec {
    name: "ts.revrange",
    summary: "Gives the samples, or buckets of samples, of a span of time, newest first.",
    action: Action::Apply(|call| apply(call, true)),
    ..RANGE
};

fn apply(call: &mut Call<'_>, reverse: bool) -> Outcome {
    let key = call.args.word(1);
    if !call.shared.db.contains(key) {
        return Err(Fault::line("ERR TSDB: the key does not exist"));
    }
    let query = range_options::parse(call.args, 2, reverse)?;
    let start = call.out.len();
    let mut rows = Rows {
        start,
        count: 0,
        overflowed: false,
        protocol: call.session.protocol,
        out: call.out,
    };
    call.shared.db.range(key, &query, &mut rows)?;
    let (count, overflowed) = (rows.count, rows.overflowed);
    if overflowed {
        return Err(Fault::line(
            "ERR TSDB: the reply is longer than 1 GiB; ask for a shorter span or use COUNT",
        ));
    }
    let mut header = Vec::new();
    Reply::new(&mut header, call.session.protocol).array(count);
    call.out.splice(start..start, header);
    Ok(())
}

/// Writes rows to a reply.
struct Rows<'a> {
    out: &'a mut Vec<u8>,
    /// Where the reply begins.
    start: usize,
    count: usize,
    overflowed: bool,
    protocol: Protocol,
}

impl Sink for Rows<'_> {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], width: usize) -> ControlFlow<()> {
        let mut reply = Reply::new(self.out, self.protocol);
        for (timestamp, values) in timestamps.iter().zip(values.chunks_exact(width.max(1))) {
            reply.array(1 + width);
            reply.integer(*timestamp);
            for value in values {
                reply.double(*value);
            }
        }
        self.count += timestamps.len();
        if self.out.len() - self.start > REPLY_BYTES_MAX {
            self.overflowed = true;
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    }
}
