//! `TS.CREATERULE source destination AGGREGATION aggregator bucket-ms [align] [BACKFILL]`
//! and `TS.DELETERULE source destination`: compaction rules. Reply: OK.
//!
//! The words are checked before the keys, as in RedisTimeSeries. AGGREGATION is
//! looked for behind the keys, which may be called like it.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::keys::{Access, Run};
use super::range_options;
use super::spec::{Keys, Spec};
use crate::messaging::Class;
use latewood_engine::RuleSpec;
use latewood_wire::resp::number::parse_timestamp;

const BOTH: Keys = Keys(&[
    Run::at(1, Access::ReadUpdate),
    Run::at(2, Access::ReadUpdate),
]);

pub(crate) const CREATERULE: Spec = Spec::of_group("timeseries", &["write", "denyoom", "module"])
    .named("ts.createrule", create)
    .words(
        -6,
        "source-key destination-key AGGREGATION aggregator bucket-ms [align-ms] [BACKFILL]",
    )
    .keys(BOTH)
    .about("Create a compaction rule");

pub(crate) const DELETERULE: Spec = Spec::of_group("timeseries", &["write", "module"])
    .named("ts.deleterule", delete)
    .words(3, "source-key destination-key")
    .keys(BOTH)
    .about("Delete a compaction rule");

fn create(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    // Behind the words that must be there.
    let is_asked = args.len() > 6 && args.is(args.len() - 1, "BACKFILL");
    let len = args.len() - usize::from(is_asked);
    if len > 7 {
        return Err(Fault::Arity);
    }
    if (3..args.len() - 1).any(|at| args.is(at, "BACKFILL")) {
        return Fault::refuse("ERR TSDB: BACKFILL must be the last argument");
    }
    let (aggregation, each) = range_options::aggregation(call, 3, 1)?.ok_or(Fault::Arity)?;
    let Some(&[aggregator]) = each.first().map(Vec::as_slice) else {
        return Fault::refuse("ERR TSDB: CREATERULE requires exactly one aggregation type");
    };
    let align = match args.get(6).filter(|_| len > 6) {
        Some(word) => {
            parse_timestamp(word).ok_or(Fault::line("ERR TSDB: Couldn't parse alignTimestamp"))?
        }
        None => 0,
    };
    let (source, destination) = (args.word(1), args.word(2));
    let spec = RuleSpec {
        aggregator,
        bucket_ms: aggregation.bucket_ms,
        align,
    };
    let db = &call.shared.db;
    let position = if is_asked || db.defaults().rule_backfill {
        db.create_rule_with_history(source, destination, spec)?
    } else {
        db.create_rule(source, destination, spec)?
    };
    call.session.wrote(position);
    let shared = call.shared;
    shared.changed(Class::Module, "ts.createrule:src", source);
    shared.changed(Class::Module, "ts.createrule:dest", destination);
    call.ok()
}

fn delete(call: &mut Call<'_>) -> Outcome {
    let (source, destination) = (call.args.word(1), call.args.word(2));
    let position = call.shared.db.delete_rule(source, destination)?;
    call.session.wrote(position);
    let shared = call.shared;
    shared.changed(Class::Module, "ts.deleterule:src", source);
    shared.changed(Class::Module, "ts.deleterule:dest", destination);
    call.ok()
}
