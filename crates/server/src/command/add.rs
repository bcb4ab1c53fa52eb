//! `TS.ADD key timestamp|* value CREATE-OPTS [ON_DUPLICATE policy]` adds one
//! sample and creates the series if it is missing. Reply: the timestamp.
//!
//! Nearly all of these commands never come here: `net/group.rs` takes the
//! plain ones off the wire and applies them many at a time. The result is the
//! same; a test compares the two on random pipelines.
//!
//! The value is checked before the timestamp. CREATE-OPTS are refused only when
//! the series is missing and ON_DUPLICATE only when it exists, as in
//! RedisTimeSeries. The series may be created or removed between that check and
//! the append, which is given both cases: a created one gets the sample under
//! ON_DUPLICATE, for a removed one the check is repeated.

use super::call::{Call, Outcome};
use super::fault::{Fault, refusal_text};
use super::series_options::{self, LabelValues};
use super::spec::{Keys, Spec};
use crate::base::clock::now_ms;
use crate::messaging::Class;
use crate::observe::Limit;
use crate::state::Shared;
use latewood_engine::{Append, Create, Refusal, Scratch, Stage, shown_key};
use latewood_wire::resp::number::{parse_i64, parse_timestamp, parse_value};

/// The event of a sample, of TS.MADD too.
pub(crate) const EVENT: &str = "ts.add";

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["write", "denyoom", "module"])
    .named("ts.add", |call| {
        apply(call, parse_value, LabelValues::Filterable)
    })
    .words(
        -4,
        "key timestamp|* value [RETENTION ms] [ENCODING COMPRESSED|UNCOMPRESSED] \
             [CHUNK_SIZE bytes] [DUPLICATE_POLICY policy] [ON_DUPLICATE policy] \
             [IGNORE max-time-diff max-value-diff] [LABELS name value ...]",
    )
    .keys(Keys::ONE)
    .about("Append a sample to a time series");

/// Adds a sample whose value `number` reads and whose labels have such values.
pub(super) fn apply(
    call: &mut Call<'_>,
    number: fn(&[u8]) -> Option<f64>,
    values: LabelValues,
) -> Outcome {
    let outcome = add(call, number, values);
    // RedisTimeSeries tells of a sample that was refused, too.
    let key = call.args.word(1);
    call.shared.changed(Class::Module, EVENT, key);
    outcome
}

fn add(call: &mut Call<'_>, number: fn(&[u8]) -> Option<f64>, values: LabelValues) -> Outcome {
    let args = call.args;
    let key = args.word(1);
    let read = sample_of(args.word(2), number(args.word(3)), now_ms);
    let (timestamp, value) = read.map_err(Fault::line)?;
    check_time(call.shared, key, timestamp).map_err(|line| Fault::Line(line.into()))?;
    let db = &call.shared.db;
    let mut scratch = Scratch::new();
    scratch.lend(call.session.timing.take());
    let is_new = loop {
        let is_new = !db.contains(key);
        let policy = series_options::duplicate_policy(args, 4, "ON_DUPLICATE");
        let created;
        let (on_duplicate, create) = if is_new {
            created = series_options::parse(args, 4, values, &db.defaults().series)?;
            (policy.unwrap_or_default(), Create::With(&created))
        } else {
            (policy?, Create::Never)
        };
        let append = Append {
            key,
            timestamp,
            value,
            on_duplicate,
            create,
        };
        scratch.timer().end_for(Stage::Parse, 1);
        let position = db.append(&[append], &mut scratch)?;
        call.session.wrote(position);
        let has_gone = matches!(scratch.outcomes().first(), Some(Err(Refusal::NoSuchKey)));
        if is_new || !has_gone {
            let observe = &call.shared.observe;
            let arrival = observe.note_ages(&[append]);
            let sender = call.session.sender();
            observe.note_batch(&arrival, &[append], (&scratch, db), sender);
            break is_new;
        }
    };
    match scratch.outcomes().first() {
        Some(Ok(timestamp)) => {
            // The engine tells of series that bring compactions along.
            if is_new && db.defaults().compactions.compactions().is_empty() {
                call.shared.events.created(key);
            }
            call.reply().integer(*timestamp);
            call.session.timing.note_replies(scratch.give_back(), 1);
        }
        Some(Err(refusal)) => return Err(Fault::Line(refusal_text(refusal, key, db))),
        None => {
            return Fault::refuse("ERR TSDB: internal error: no result for the sample");
        }
    }
    Ok(())
}

/// Reads a timestamp and a value; the error is the line of the reply.
#[inline]
pub(crate) fn sample(
    timestamp: &[u8],
    value: &[u8],
    now_ms: impl FnOnce() -> i64,
) -> Result<(i64, f64), &'static str> {
    sample_of(timestamp, parse_value(value), now_ms)
}

#[inline]
fn sample_of(
    timestamp: &[u8],
    value: Option<f64>,
    now_ms: impl FnOnce() -> i64,
) -> Result<(i64, f64), &'static str> {
    let value = value.ok_or("ERR TSDB: invalid value")?;
    let timestamp = match parse_timestamp(timestamp) {
        Some(timestamp) => timestamp,
        None if timestamp == b"*" => now_ms(),
        None => return Err(bad_timestamp(timestamp)),
    };
    Ok((timestamp, value))
}

/// Reads a timestamp; `None` stands for `*`, the clock.
pub(crate) fn timestamp_or_star(timestamp: &[u8]) -> Result<Option<i64>, &'static str> {
    match parse_timestamp(timestamp) {
        None if timestamp == b"*" => Ok(None),
        None => Err(bad_timestamp(timestamp)),
        timestamp => Ok(timestamp),
    }
}

/// Refuses a timestamp further from the clock than `--redis-future-limit` and `--redis-past-limit`
/// allow; the error is the line of the reply.
#[inline]
pub(super) fn check_time(shared: &Shared, key: &[u8], timestamp: i64) -> Result<(), String> {
    let limits = shared.settings.time_limits;
    if limits.admits(timestamp, now_ms) {
        return Ok(());
    }
    shared.observe.refused.note(Limit::Time);
    let (why, key) = (limits.refusal(timestamp > now_ms()), shown_key(key));
    Err(format!("ERR TSDB: {why}, for key '{key}' at {timestamp}"))
}

#[cold]
fn bad_timestamp(timestamp: &[u8]) -> &'static str {
    match parse_i64(timestamp) {
        Some(_) => "ERR TSDB: invalid timestamp, must be a nonnegative integer",
        None => "ERR TSDB: invalid timestamp",
    }
}
