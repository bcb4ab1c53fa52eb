//! CREATE-OPTS: what a client may choose for a new series.
//!
//! ```text
//! [RETENTION ms] [ENCODING COMPRESSED|UNCOMPRESSED] [CHUNK_SIZE bytes]
//! [DUPLICATE_POLICY policy] [IGNORE max-time-diff max-value-diff]
//! [LABELS {name value}...]
//! ```
//!
//! As in RedisTimeSeries each option is found by a scan over all words and its
//! first place counts; LABELS takes the rest of the line as pairs, words that
//! are read as options too, and drops an odd last one. Options are checked in
//! a fixed order, so that the same wrong line gets the same error. Unlike
//! there, the scan begins after the fixed words: a key may be called
//! RETENTION.

use super::args::Args;
use super::fault::Fault;
use crate::observe::Limit;
use latewood_engine::shown_key;
use latewood_model::{DuplicatePolicy, Encoding, Ignore, LabelError, Labels, SeriesOptions};
use latewood_wire::resp::number::{parse_float, parse_i64};

/// Which values a label may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LabelValues {
    /// Those that RedisTimeSeries takes: its filters could not say the others.
    Filterable,
    /// All that other protocols write.
    Any,
}

/// Reads CREATE-OPTS from word `from` on; what is missing comes from `defaults`.
pub(crate) fn parse(
    args: Args<'_>,
    from: usize,
    values: LabelValues,
    defaults: &SeriesOptions,
) -> Result<SeriesOptions, Fault> {
    let mut options = defaults.clone();
    Given::parse(args, from, values)?.set(&mut options);
    check(&options)?;
    Ok(options)
}

/// The options that a command names.
pub(crate) struct Given {
    labels: Option<Labels>,
    retention_ms: Option<u64>,
    chunk_size_bytes: Option<u32>,
    encoding: Option<Encoding>,
    /// `Some(None)`: that of the server, whatever it will be.
    duplicate_policy: Option<Option<DuplicatePolicy>>,
    ignore: Option<Ignore>,
}

impl Given {
    /// Reads CREATE-OPTS from word `from` on.
    pub(crate) fn parse(args: Args<'_>, from: usize, values: LabelValues) -> Result<Self, Fault> {
        // The first wrong one in this order is the one that is reported.
        Ok(Self {
            labels: labels(args, from, values)?,
            retention_ms: retention(args, from)?,
            chunk_size_bytes: chunk_size(args, from)?,
            encoding: encoding(args, from)?,
            duplicate_policy: policy_of_series(args, from, values)?,
            ignore: ignore(args, from)?,
        })
    }

    /// Puts them into `options` and leaves the others there.
    pub(crate) fn set(self, options: &mut SeriesOptions) {
        if let Some(labels) = self.labels {
            options.labels = labels;
        }
        if let Some(retention_ms) = self.retention_ms {
            options.retention_ms = retention_ms;
        }
        if let Some(chunk_size_bytes) = self.chunk_size_bytes {
            options.chunk_size_bytes = chunk_size_bytes;
        }
        if let Some(encoding) = self.encoding {
            options.encoding = encoding;
        }
        if let Some(policy) = self.duplicate_policy {
            options.duplicate_policy = policy;
        }
        if let Some(ignore) = self.ignore {
            options.ignore = ignore;
        }
    }
}

/// The policy of a series; commands of Latewood's own take `none`, too.
fn policy_of_series(
    args: Args<'_>,
    from: usize,
    values: LabelValues,
) -> Result<Option<Option<DuplicatePolicy>>, Fault> {
    let word = "DUPLICATE_POLICY";
    let at = args.find(word, from).filter(|_| values == LabelValues::Any);
    if at.is_some_and(|at| args.is(at + 1, "NONE")) {
        return Ok(Some(None));
    }
    let policy = duplicate_policy(args, from, word)?;
    Ok(policy.map(Some))
}

/// Reads `word policy`, where `word` is DUPLICATE_POLICY or ON_DUPLICATE.
pub(crate) fn duplicate_policy(
    args: Args<'_>,
    from: usize,
    word: &str,
) -> Result<Option<DuplicatePolicy>, Fault> {
    let Some(at) = args.find(word, from) else {
        return Ok(None);
    };
    let name = args
        .get(at + 1)
        .ok_or(Fault::line("ERR TSDB: Couldn't parse DUPLICATE_POLICY"))?;
    DuplicatePolicy::of_name(name)
        .map(Some)
        .ok_or(Fault::line("ERR TSDB: Unknown DUPLICATE_POLICY"))
}

fn check(options: &SeriesOptions) -> Result<(), Fault> {
    options
        .check()
        .map_err(|error| Fault::Line(format!("ERR TSDB: {error}").into()))
}

fn labels(args: Args<'_>, from: usize, values: LabelValues) -> Result<Option<Labels>, Fault> {
    const BAD: Fault = Fault::line("ERR TSDB: Couldn't parse LABELS");
    let Some(at) = args.find("LABELS", from) else {
        return Ok(None);
    };
    let pairs = (args.len() - at - 1) / 2;
    let pair = |i: usize| (args.word(at + 1 + 2 * i), args.word(at + 2 + 2 * i));
    let reserved = |byte: &u8| matches!(byte, b'(' | b')' | b',');
    if values == LabelValues::Filterable && (0..pairs).any(|i| pair(i).1.iter().any(reserved)) {
        return Err(BAD);
    }
    match Labels::new((0..pairs).map(pair)) {
        Ok(labels) => Ok(Some(labels)),
        Err(LabelError::Empty) => Err(BAD),
        Err(error) => {
            let key = shown_key(args.word(1));
            let text = format!("ERR TSDB: {error}, for key '{key}'");
            Err(Fault::Limit(Limit::Labels, text.into()))
        }
    }
}

fn retention(args: Args<'_>, from: usize) -> Result<Option<u64>, Fault> {
    let Some(at) = args.find("RETENTION", from) else {
        return Ok(None);
    };
    let retention_ms = args
        .get(at + 1)
        .and_then(parse_i64)
        .ok_or(Fault::line("ERR TSDB: Couldn't parse RETENTION"))?;
    // RedisTimeSeries sends this one without its code.
    u64::try_from(retention_ms)
        .map(Some)
        .map_err(|_| Fault::line("TSDB: Couldn't parse RETENTION"))
}

fn chunk_size(args: Args<'_>, from: usize) -> Result<Option<u32>, Fault> {
    let Some(at) = args.find("CHUNK_SIZE", from) else {
        return Ok(None);
    };
    let bytes = args
        .get(at + 1)
        .and_then(parse_i64)
        .ok_or(Fault::line("ERR TSDB: Couldn't parse CHUNK_SIZE"))?;
    // What does not fit 32 bits is out of range like any other size.
    let chunk_size_bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
    let options = SeriesOptions {
        chunk_size_bytes,
        ..SeriesOptions::default()
    };
    check(&options).map(|()| Some(chunk_size_bytes))
}

fn encoding(args: Args<'_>, from: usize) -> Result<Option<Encoding>, Fault> {
    if let Some(at) = args.find("ENCODING", from) {
        let name = args.get(at + 1).ok_or(Fault::Arity)?;
        return Encoding::of_name(name)
            .map(Some)
            .ok_or(Fault::line("ERR TSDB: unknown ENCODING parameter"));
    }
    if args.find("UNCOMPRESSED", from).is_some() {
        return Ok(Some(Encoding::Uncompressed));
    }
    let compressed = args.find("COMPRESSED", from);
    Ok(compressed.map(|_| Encoding::Compressed))
}

fn ignore(args: Args<'_>, from: usize) -> Result<Option<Ignore>, Fault> {
    const BAD: Fault = Fault::line("ERR TSDB: Couldn't parse IGNORE");
    let Some(at) = args.find("IGNORE", from) else {
        return Ok(None);
    };
    let time_diff = args.get(at + 1).and_then(parse_i64).ok_or(BAD)?;
    let max_value_diff = args.get(at + 2).and_then(parse_float).ok_or(BAD)?;
    let negative = Fault::line("ERR TSDB: IGNORE arguments cannot be negative");
    match u64::try_from(time_diff) {
        Ok(max_time_diff_ms) if max_value_diff >= 0.0 => Ok(Some(Ignore {
            max_time_diff_ms,
            max_value_diff,
        })),
        _ => Err(negative),
    }
}
