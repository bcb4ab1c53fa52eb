//! RANGE-OPTS: what a range query may ask for beyond its span.
//!
//! ```text
//! [LATEST] [FILTER_BY_TS ts...] [FILTER_BY_VALUE min max] [COUNT n]
//! [[ALIGN start|-|end|+|ms] AGGREGATION agg[,agg...] bucket-ms
//!  [BUCKETTIMESTAMP start|-|end|+|mid|~] [EMPTY]]
//! ```
//!
//! As in RedisTimeSeries each option is found by a scan over the words and
//! unknown words are passed over. Options are checked in one order: COUNT,
//! AGGREGATION with EMPTY and BUCKETTIMESTAMP, ALIGN, FILTER_BY_VALUE,
//! FILTER_BY_TS. A word that follows AGGREGATION is its aggregator, so that
//! `AGGREGATION COUNT 10` counts, and one that follows REDUCE a reducer.

use super::args::Args;
use super::call::Call;
use super::fault::Fault;
use latewood_engine::query::{Aggregation, BucketStamp, RangeQuery};
use latewood_model::limits::{AGGREGATORS_MAX, FILTER_BY_TS_MAX};
use latewood_model::{Aggregator, Compatibility};
use latewood_wire::resp::number::{parse_float, parse_i64, parse_timestamp};

const EMPTY_NAME: Fault = Fault::line("ERR TSDB: Empty aggregation type in list");

/// Reads `from to RANGE-OPTS`, beginning at word `at`.
pub(crate) fn parse(call: &Call<'_>, at: usize, reverse: bool) -> Result<RangeQuery, Fault> {
    let (mut query, aggregators) = parse_several(call, at, reverse, 1)?;
    if let (Some(aggregation), Some(aggregators)) =
        (&mut query.aggregation, aggregators.into_iter().next())
    {
        aggregation.aggregators = aggregators;
    }
    Ok(query)
}

/// Reads `from to RANGE-OPTS` for `keys` keys, of which each has a word of
/// aggregators of its own behind AGGREGATION; one query for each.
pub(crate) fn parse_each(
    call: &Call<'_>,
    at: usize,
    reverse: bool,
    keys: usize,
) -> Result<Vec<RangeQuery>, Fault> {
    let (query, aggregators) = parse_several(call, at, reverse, keys)?;
    if query.aggregation.is_none() {
        return Ok(vec![query; keys]);
    }
    let with = |aggregators| {
        let mut query = query.clone();
        if let Some(aggregation) = &mut query.aggregation {
            aggregation.aggregators = aggregators;
        }
        query
    };
    Ok(aggregators.into_iter().map(with).collect())
}

type EachKeys = Vec<Vec<Aggregator>>;

/// The query of all keys, its aggregators aside, and those of each key.
fn parse_several(
    call: &Call<'_>,
    at: usize,
    reverse: bool,
    keys: usize,
) -> Result<(RangeQuery, EachKeys), Fault> {
    let args = call.args;
    if keys > 1 {
        check_aggregators(args, at, keys)?;
    }
    let from = from_timestamp(args.word(at))?;
    let to = to_timestamp(args.word(at + 1))?;
    let options = at + 2;
    let count = count(args, options, keys)?;
    let (mut aggregation, aggregators) = match aggregation(call, options, keys)? {
        Some((aggregation, aggregators)) => (Some(aggregation), aggregators),
        None => (None, Vec::new()),
    };
    let align = align(args, at, (from, to), aggregation.is_some())?;
    if let (Some(aggregation), Some(align)) = (&mut aggregation, align) {
        aggregation.align = align;
    }
    let filter_by_value = filter_by_value(args, options)?;
    let query = RangeQuery {
        latest: args.find("LATEST", options).is_some(),
        from,
        to,
        filter_by_timestamps: filter_by_timestamps(args, options)?,
        filter_by_value,
        count,
        aggregation,
        reverse,
        compatibility: call.compatibility(),
    };
    Ok((query, aggregators))
}

/// The oldest timestamp of a span: milliseconds, or `-` for the beginning.
pub(crate) fn from_timestamp(word: &[u8]) -> Result<i64, Fault> {
    match word {
        b"-" => Ok(0),
        _ => parse_timestamp(word).ok_or(Fault::line("ERR TSDB: wrong fromTimestamp")),
    }
}

/// The newest timestamp of a span: milliseconds, or `+` for the end.
pub(crate) fn to_timestamp(word: &[u8]) -> Result<i64, Fault> {
    match word {
        b"+" => Ok(i64::MAX),
        _ => parse_timestamp(word).ok_or(Fault::line("ERR TSDB: wrong toTimestamp")),
    }
}

/// `keys` words behind AGGREGATION are aggregators, whatever they are called,
/// and one behind REDUCE is a reducer.
fn count(args: Args<'_>, from: usize, keys: usize) -> Result<Option<u64>, Fault> {
    let aggregation = args.find("AGGREGATION", from);
    let reduce = args.find("REDUCE", from);
    let is_option = |&at: &usize| {
        let names_aggregators =
            aggregation.is_some_and(|word| (word + 1..=word + keys).contains(&at));
        args.is(at, "COUNT") && !names_aggregators && reduce != Some(at - 1)
    };
    let Some(at) = (from..args.len()).find(is_option) else {
        return Ok(None);
    };
    let word = args
        .get(at + 1)
        .ok_or(Fault::line("ERR TSDB: COUNT argument is missing"))?;
    let count = parse_i64(word).ok_or(Fault::line("ERR TSDB: Couldn't parse COUNT"))?;
    match u64::try_from(count) {
        Ok(count) if count > 0 => Ok(Some(count)),
        _ => Fault::refuse("ERR TSDB: Invalid COUNT value"),
    }
}

/// The aggregation without its aggregators, and those of each of `keys` keys.
pub(crate) fn aggregation(
    call: &Call<'_>,
    from: usize,
    keys: usize,
) -> Result<Option<(Aggregation, EachKeys)>, Fault> {
    let args = call.args;
    const BAD: Fault = Fault::line("ERR TSDB: Couldn't parse AGGREGATION");
    let Some(at) = args.find("AGGREGATION", from) else {
        return Ok(None);
    };
    // The last word of aggregators.
    let last = at + keys;
    if args.len() <= last {
        return Err(BAD);
    }
    let bucket_ms = args.get(last + 1).and_then(parse_i64).ok_or(BAD)?;
    if args.word(last).is_empty() && call.compatibility() == Compatibility::V8_10 {
        return Err(EMPTY_NAME);
    }
    let names = (at + 1..=last).map(|i| aggregators(args.word(i)));
    let names = names.collect::<Result<Vec<_>, _>>()?;
    if bucket_ms <= 0 {
        return Fault::refuse("ERR TSDB: bucketDuration must be greater than zero");
    }
    let empty = empty(args, from, last - 1)?;
    let aggregation = Aggregation {
        aggregators: Vec::new(),
        bucket_ms,
        align: 0,
        stamp: bucket_stamp(args, from, last - 1)?,
        empty,
    };
    Ok(Some((aggregation, names)))
}

/// Refuses AGGREGATION without a word of aggregators for each of `keys` keys, before anything
/// else, as RedisTimeSeries does.
fn check_aggregators(args: Args<'_>, from: usize, keys: usize) -> Result<(), Fault> {
    const NUMBER: Fault =
        Fault::line("ERR TSDB: the number of AGGREGATION arguments must be equal to numkeys");
    let Some(at) = args.find("AGGREGATION", from) else {
        return Ok(());
    };
    for key in 1..=keys {
        let names = args.get(at + key).ok_or(NUMBER)?;
        if parse_i64(names).is_some() {
            return Err(NUMBER);
        }
        aggregators(names)?;
    }
    match args.get(at + keys + 1) {
        Some(word) if Aggregator::of_name(word).is_some() => Err(NUMBER),
        _ => Ok(()),
    }
}

fn aggregators(names: &[u8]) -> Result<Vec<Aggregator>, Fault> {
    let mut aggregators = Vec::new();
    for name in names.split(|byte| *byte == b',') {
        if aggregators.len() == AGGREGATORS_MAX {
            return Fault::refuse("ERR TSDB: Too many aggregation types");
        }
        if name.is_empty() && names.contains(&b',') {
            return Err(EMPTY_NAME);
        }
        let aggregator =
            Aggregator::of_name(name).ok_or(Fault::line("ERR TSDB: Unknown aggregation type"))?;
        aggregators.push(aggregator);
    }
    Ok(aggregators)
}

fn empty(args: Args<'_>, from: usize, aggregation: usize) -> Result<bool, Fault> {
    match args.find("EMPTY", from) {
        None => Ok(false),
        Some(at) if at == aggregation + 3 || at == aggregation + 5 => Ok(true),
        Some(_) => Fault::refuse(
            "ERR TSDB: EMPTY flag should be the 3rd or 5th flag after AGGREGATION flag",
        ),
    }
}

fn bucket_stamp(args: Args<'_>, from: usize, aggregation: usize) -> Result<BucketStamp, Fault> {
    let Some(at) = args.find("BUCKETTIMESTAMP", from) else {
        return Ok(BucketStamp::Start);
    };
    if at != aggregation + 3 && at != aggregation + 4 {
        return Fault::refuse(
            "ERR TSDB: BUCKETTIMESTAMP flag should be the 3rd or 4th flag after AGGREGATION flag",
        );
    }
    let word = args.get(at + 1).ok_or(Fault::Arity)?;
    match word.to_ascii_lowercase().as_slice() {
        b"start" | b"-" => Ok(BucketStamp::Start),
        b"mid" | b"~" => Ok(BucketStamp::Mid),
        b"end" | b"+" => Ok(BucketStamp::End),
        _ => Fault::refuse("ERR TSDB: unknown BUCKETTIMESTAMP parameter"),
    }
}

/// `span` is what the words `at` and `at + 1` say.
fn align(
    args: Args<'_>,
    at: usize,
    span: (i64, i64),
    aggregates: bool,
) -> Result<Option<i64>, Fault> {
    let Some(found) = args.find("ALIGN", at + 2) else {
        return Ok(None);
    };
    let word = args.get(found + 1).ok_or(Fault::Arity)?;
    let lower = word.to_ascii_lowercase();
    let explicit = parse_timestamp(word);
    let (is_start, is_end) = (
        matches!(lower.as_slice(), b"start" | b"-"),
        matches!(lower.as_slice(), b"end" | b"+"),
    );
    if !is_start && !is_end && explicit.is_none() {
        return Fault::refuse("ERR TSDB: unknown ALIGN parameter");
    }
    if !aggregates {
        return Fault::refuse("ERR TSDB: ALIGN parameter can only be used with AGGREGATION");
    }
    if is_start && args.word(at) == b"-" {
        return Fault::refuse(
            "ERR TSDB: start alignment can only be used with explicit start timestamp",
        );
    }
    if is_end && args.word(at + 1) == b"+" {
        return Fault::refuse(
            "ERR TSDB: end alignment can only be used with explicit end timestamp",
        );
    }
    Ok(explicit.or(Some(if is_start { span.0 } else { span.1 })))
}

fn filter_by_value(args: Args<'_>, from: usize) -> Result<Option<(f64, f64)>, Fault> {
    let Some(at) = args.find("FILTER_BY_VALUE", from) else {
        return Ok(None);
    };
    let (Some(min), Some(max)) = (args.get(at + 1), args.get(at + 2)) else {
        return Fault::refuse("ERR TSDB: FILTER_BY_VALUE one or more arguments are missing");
    };
    let min = parse_float(min).ok_or(Fault::line("ERR TSDB: Couldn't parse MIN"))?;
    let max = parse_float(max).ok_or(Fault::line("ERR TSDB: Couldn't parse MAX"))?;
    Ok(Some((min, max)))
}

/// Timestamps up to the first word that is not one, sorted, without duplicates.
fn filter_by_timestamps(args: Args<'_>, from: usize) -> Result<Option<Vec<i64>>, Fault> {
    let Some(at) = args.find("FILTER_BY_TS", from) else {
        return Ok(None);
    };
    let mut timestamps: Vec<i64> = args
        .from(at + 1)
        .map_while(parse_timestamp)
        .take(FILTER_BY_TS_MAX + 1)
        .collect();
    if timestamps.is_empty() {
        return Fault::refuse("ERR TSDB: FILTER_BY_TS one or more arguments are missing");
    }
    if timestamps.len() > FILTER_BY_TS_MAX {
        return Fault::refuse("ERR TSDB: FILTER_BY_TS takes at most 128 timestamps");
    }
    timestamps.sort_unstable();
    timestamps.dedup();
    Ok(Some(timestamps))
}
