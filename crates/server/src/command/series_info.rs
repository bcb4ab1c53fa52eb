//! `TS.INFO key [DEBUG]` describes a series. Reply: a map of fields, in the
//! order of RedisTimeSeries; DEBUG adds the key's name and the chunks.
//!
//! Names and policies are simple strings, labels and keys bulk strings, and
//! ratios doubles in RESP3 but text in RESP2, all as clients expect.

use super::call::{Call, Outcome};
use super::fault::Fault;
use super::spec::{Keys, Spec};
use latewood_engine::{ChunkInfo, RuleInfo, RuleState, SeriesInfo};
use latewood_model::Labels;
use latewood_wire::resp::double::append_resp3;
use latewood_wire::resp::{Protocol, Reply};

pub(crate) const SPEC: Spec = Spec::of_group("timeseries", &["readonly", "module"])
    .named("ts.info", apply)
    .words(-2, "key [DEBUG]")
    .keys(Keys::ONE)
    .about("Returns information and statistics for a time series");

/// Samples of a series whose chunks are looked at in the time of one that is read.
const SAMPLES_PER_UNIT: u64 = 8;

fn apply(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    if args.len() > 3 {
        return Err(Fault::Arity);
    }
    let (db, key) = (&call.shared.db, args.word(1));
    // Beside late samples in memory it looks at every chunk, and decodes what late blocks change.
    let of_chunks = db.samples_of(key).unwrap_or(0) / SAMPLES_PER_UNIT;
    let samples = db.samples_of_info(key).unwrap_or(0).max(of_chunks);
    call.finish(samples, describe)
}

fn describe(call: &mut Call<'_>) -> Outcome {
    let args = call.args;
    let key = args.word(1);
    let db = &call.shared.db;
    let info = db.info_until(key, call.cancelled)?;
    let (source, rules) = (db.source_of(key)?, db.rules_of(key)?);
    let mut filled = db.rule_states(key)?;
    filled.retain(|rule| rule.backfill_buckets > 0);
    let debug = args.is(2, "DEBUG");
    let mut reply = call.reply();
    reply.map(if debug { 16 } else { 14 } + usize::from(!filled.is_empty()));
    fields(&mut reply, &info, source.as_deref(), &rules);
    describe_backfill(&mut reply, &filled);
    if debug {
        reply.simple("keySelfName");
        reply.bulk(key);
        reply.simple("Chunks");
        reply.array(info.chunks.len());
        for chunk in &info.chunks {
            describe_chunk(&mut reply, chunk);
        }
    }
    Ok(())
}

fn fields(reply: &mut Reply<'_>, info: &SeriesInfo, source: Option<&[u8]>, rules: &[RuleInfo]) {
    let options = &info.options;
    let number = |reply: &mut Reply<'_>, name: &str, value: i64| {
        reply.simple(name);
        reply.integer(value);
    };
    number(reply, "totalSamples", signed(info.total_samples));
    number(
        reply,
        "memoryUsage",
        signed(info.memory.total_bytes() as u64),
    );
    number(reply, "firstTimestamp", info.first_timestamp.unwrap_or(0));
    number(reply, "lastTimestamp", info.last_timestamp.unwrap_or(0));
    number(reply, "retentionTime", signed(options.retention_ms));
    number(reply, "chunkCount", signed(info.chunks.len() as u64));
    number(reply, "chunkSize", i64::from(options.chunk_size_bytes));
    reply.simple("chunkType");
    reply.simple(options.encoding.name());
    reply.simple("duplicatePolicy");
    match options.duplicate_policy {
        Some(policy) => reply.simple(policy.name()),
        None => reply.null(),
    }
    reply.simple("labels");
    describe_labels(reply, &options.labels);
    reply.simple("sourceKey");
    match source {
        Some(key) => reply.bulk(key),
        None => reply.null(),
    }
    reply.simple("rules");
    describe_rules(reply, rules);
    number(
        reply,
        "ignoreMaxTimeDiff",
        signed(options.ignore.max_time_diff_ms),
    );
    reply.simple("ignoreMaxValDiff");
    ratio(reply, options.ignore.max_value_diff);
}

/// RESP3: a map; RESP2: an array of pairs, because a name may occur twice.
fn describe_labels(reply: &mut Reply<'_>, labels: &Labels) {
    let as_map = reply.protocol() == Protocol::Resp3;
    if as_map {
        reply.map(labels.len());
    } else {
        reply.array(labels.len());
    }
    for (name, value) in labels.iter() {
        if !as_map {
            reply.array(2);
        }
        reply.bulk(name);
        reply.bulk(value);
    }
}

/// RESP3: a map by destination; RESP2: an array of rules.
fn describe_rules(reply: &mut Reply<'_>, rules: &[RuleInfo]) {
    let as_map = reply.protocol() == Protocol::Resp3;
    if as_map {
        reply.map(rules.len());
    } else {
        reply.array(rules.len());
    }
    for rule in rules {
        if !as_map {
            reply.array(4);
        }
        reply.bulk(&rule.destination);
        if as_map {
            reply.array(3);
        }
        reply.integer(rule.spec.bucket_ms);
        reply.simple(rule.spec.aggregator.name().to_uppercase());
        reply.integer(rule.spec.align);
    }
}

/// Destinations whose rule is still to be computed over some of its history: buckets, the first and
/// the last timestamp. The field is there only as long as there are any.
fn describe_backfill(reply: &mut Reply<'_>, rules: &[RuleState]) {
    if rules.is_empty() {
        return;
    }
    reply.simple("backfill");
    reply.array(rules.len());
    for rule in rules {
        reply.array(4);
        reply.bulk(&rule.destination);
        reply.integer(signed(rule.backfill_buckets));
        reply.integer(rule.backfill.first().map_or(0, |span| span.0));
        reply.integer(rule.backfill.last().map_or(0, |span| span.1));
    }
}

fn describe_chunk(reply: &mut Reply<'_>, chunk: &ChunkInfo) {
    reply.map(5);
    for (name, value) in [
        ("startTimestamp", chunk.start),
        ("endTimestamp", chunk.end),
        ("samples", signed(chunk.samples)),
        ("size", signed(chunk.size_bytes)),
    ] {
        reply.simple(name);
        reply.integer(value);
    }
    reply.simple("bytesPerSample");
    ratio(reply, chunk.size_bytes as f64 / chunk.samples.max(1) as f64);
}

/// A double that is no sample value: RESP2 has its RESP3 text as a bulk string.
fn ratio(reply: &mut Reply<'_>, value: f64) {
    if reply.protocol() == Protocol::Resp3 {
        return reply.double(value);
    }
    let mut text = Vec::new();
    append_resp3(&mut text, value);
    reply.bulk(text);
}

fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}
