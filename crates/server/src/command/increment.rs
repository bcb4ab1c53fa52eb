//! `TS.INCRBY key number [TIMESTAMP timestamp|*] CREATE-OPTS` and `TS.DECRBY`
//! add to the newest value of a series, which is created where it is missing.
//! Reply: the timestamp.
//!
//! CREATE-OPTS are read only when the series is missing, before the number,
//! whose word may even be the first of them; the timestamp comes last. Unlike
//! in RedisTimeSeries, a wrong number or timestamp creates nothing, and
//! TIMESTAMP is looked for behind the number. A series that goes between the
//! look and the increment is looked for again.

use super::add::{check_time, timestamp_or_star};
use super::args::Args;
use super::call::{Call, Outcome};
use super::fault::{Fault, refusal_text};
use super::series_options::{self, LabelValues};
use super::spec::{Keys, Spec};
use crate::messaging::Class;
use latewood_engine::{Create, Refusal};
use latewood_model::Compatibility;
use latewood_wire::resp::number::parse_float;

pub(crate) const INCRBY: Spec = Spec::of_group("timeseries", &["write", "denyoom", "module"])
    .named("ts.incrby", increase)
    .words(
        -3,
        "key number [TIMESTAMP timestamp|*] [RETENTION ms] \
             [ENCODING COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE bytes] [DUPLICATE_POLICY policy] \
             [IGNORE max-time-diff max-value-diff] [LABELS name value ...]",
    )
    .keys(Keys::ONE)
    .about("Increase the value of the latest sample");

pub(crate) const DECRBY: Spec = INCRBY
    .named("ts.decrby", decrease)
    .about("Decrease the value of the latest sample");

fn increase(call: &mut Call<'_>) -> Outcome {
    apply(call, 1.0, "ts.incrby")
}

fn decrease(call: &mut Call<'_>) -> Outcome {
    apply(call, -1.0, "ts.decrby")
}

fn apply(call: &mut Call<'_>, sign: f64, event: &'static str) -> Outcome {
    let args = call.args;
    let key = args.word(1);
    let db = &call.shared.db;
    if call.compatibility() == Compatibility::V8_10 {
        // It checks these before the options of a new series.
        summand(args)?;
    }
    let (is_new, outcome) = loop {
        let is_new = !db.contains(key);
        let created;
        let create = if is_new {
            let defaults = &db.defaults().series;
            created = series_options::parse(args, 2, LabelValues::Filterable, defaults)?;
            Create::With(&created)
        } else {
            Create::Never
        };
        let (delta, timestamp) = summand(args)?;
        if let Some(timestamp) = timestamp {
            let checked = check_time(call.shared, key, timestamp);
            checked.map_err(|line| Fault::Line(line.into()))?;
        }
        let (outcome, position) = db.increment(key, sign * delta, timestamp, create)?;
        call.session.wrote(position);
        if is_new || !matches!(outcome, Err(Refusal::NoSuchKey)) {
            break (is_new, outcome);
        }
    };
    match outcome {
        Ok(timestamp) => {
            // The engine tells of series that bring compactions along.
            if is_new && db.defaults().compactions.compactions().is_empty() {
                call.shared.events.created(key);
            }
            call.shared.changed(Class::Generic, event, key);
            call.integer(timestamp)
        }
        Err(refusal) => Err(Fault::Line(refusal_text(&refusal, key, db))),
    }
}

/// The number to add, and the timestamp where one is given.
fn summand(args: Args<'_>) -> Result<(f64, Option<i64>), Fault> {
    let delta = parse_float(args.word(2))
        .ok_or(Fault::line("ERR TSDB: invalid increase/decrease value"))?;
    let timestamp = match args.find("TIMESTAMP", 3) {
        Some(at) => timestamp_or_star(args.get(at + 1).unwrap_or_default()).map_err(Fault::line)?,
        None => None,
    };
    Ok((delta, timestamp))
}
