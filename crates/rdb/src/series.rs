//! A series of RedisTimeSeries as its module saves it.
//!
//! ```text
//! key, retention, chunk bytes, options, last timestamp, last value, samples, duplicate policy,
//! has source [source], IGNORE time, IGNORE value, labels {name, value}...,
//! rules {destination, bucket, alignment, aggregator, open bucket, holds values, state}...,
//! chunks {...}...
//! ```
//! Older versions have less of this: each field says below since when it is there.

use crate::bytes::{Bytes, KEY_BYTES_MAX};
use crate::chunk::{Chunk, Samples};
use crate::error::{Error, Result};
use latewood_model::limits::{
    CHUNK_SIZE_BYTES_MAX, CHUNK_SIZE_BYTES_MIN, LABEL_BYTES_MAX, LABELS_MAX,
};
use latewood_model::{Aggregator, DuplicatePolicy, Encoding, Ignore, Labels, SeriesOptions};
use std::io::Read;

/// The newest version of the format that is known.
pub(crate) const VERSION_MAX: u64 = 9;
/// The option of a series without compression.
pub(crate) const UNCOMPRESSED: u64 = 1;
/// The option of one with it.
pub(crate) const COMPRESSED: u64 = 2;
/// Aggregators by their numbers, from 1 on.
const AGGREGATORS: [Aggregator; 15] = [
    Aggregator::Min,
    Aggregator::Max,
    Aggregator::Sum,
    Aggregator::Avg,
    Aggregator::Count,
    Aggregator::First,
    Aggregator::Last,
    Aggregator::Range,
    Aggregator::StdP,
    Aggregator::StdS,
    Aggregator::VarP,
    Aggregator::VarS,
    Aggregator::Twa,
    Aggregator::CountNan,
    Aggregator::CountAll,
];
/// Duplicate policies by their numbers, from 1 on; 0 is none.
pub(crate) const POLICIES: [DuplicatePolicy; 6] = [
    DuplicatePolicy::Block,
    DuplicatePolicy::Last,
    DuplicatePolicy::First,
    DuplicatePolicy::Min,
    DuplicatePolicy::Max,
    DuplicatePolicy::Sum,
];
/// Rules of a series, and bytes of the keys they write to.
const RULES_MAX: u64 = 10_000;
const RULE_KEY_BYTES_MAX: usize = 1 << 20;
/// The text of older versions in the state of a rule.
const STATE_BYTES_MAX: usize = 64;
/// Samples that are read at once.
const BATCH: u64 = 4096;

/// What a series is, without its samples.
#[derive(Clone, Debug)]
pub struct Series {
    /// The key it had when it was saved.
    pub key: Vec<u8>,
    /// Options and labels.
    pub options: SeriesOptions,
    /// Its newest timestamp, as it says itself; `None` in the oldest versions.
    pub last_timestamp: Option<i64>,
    /// Samples, as it says itself; `None` in the oldest versions.
    pub samples: Option<u64>,
    /// The key whose rule writes to it.
    pub source: Option<Vec<u8>>,
    /// Its rules.
    pub rules: Vec<Rule>,
}

/// A compaction rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The key it writes to.
    pub destination: Vec<u8>,
    /// Width of its buckets, milliseconds.
    pub bucket_ms: u64,
    /// A boundary between two of them, milliseconds.
    pub align_ms: u64,
    /// What becomes of a bucket.
    pub aggregator: Aggregator,
}

/// Reads the samples of a series, chunk by chunk.
pub struct SeriesReader<'a, R> {
    bytes: &'a mut Bytes<R>,
    is_compressed: bool,
    /// Chunks to come; samples of the oldest versions.
    left: u64,
    has_chunks: bool,
    /// The chunk that is read.
    chunk: Option<Chunk>,
    is_done: bool,
    newest: Option<i64>,
}

impl<'a, R: Read> SeriesReader<'a, R> {
    /// Reads all but the samples of a value of `version`.
    pub(crate) fn begin(bytes: &'a mut Bytes<R>, version: u64) -> Result<(Series, Self)> {
        if version > VERSION_MAX {
            let text = format!(
                "a series has version {version} of its format; {VERSION_MAX} is the newest known"
            );
            return bytes.damaged(text);
        }
        let key = bytes.text(KEY_BYTES_MAX)?;
        let (series, options) = header(bytes, key, version)?;
        let left = bytes.unsigned()?;
        let reader = Self {
            bytes,
            is_compressed: options & UNCOMPRESSED == 0,
            left,
            has_chunks: version >= 2,
            chunk: None,
            is_done: false,
            newest: None,
        };
        Ok((series, reader))
    }

    /// The next samples, a few thousand, ascending and newer than those before; false after the
    /// last.
    ///
    /// # Errors
    /// Damage, and those of the reader.
    pub fn next(&mut self, timestamps: &mut Vec<i64>, values: &mut Vec<f64>) -> Result<bool> {
        let mut samples = Samples {
            timestamps: std::mem::take(timestamps),
            values: std::mem::take(values),
        };
        samples.timestamps.clear();
        samples.values.clear();
        while samples.timestamps.is_empty() && (self.left > 0 || self.chunk.is_some()) {
            if self.has_chunks {
                self.of_chunk(&mut samples)?;
            } else {
                self.without_chunk(&mut samples)?;
            }
        }
        let (first, last) = (samples.timestamps.first(), samples.timestamps.last());
        if first.is_some_and(|&first| self.newest.is_some_and(|newest| first <= newest)) {
            return self.bytes.damaged("the chunks of a series overlap");
        }
        self.newest = last.copied().or(self.newest);
        if last.is_none() && !self.is_done {
            self.is_done = true;
            self.bytes.end_of_fields()?;
        }
        (*timestamps, *values) = (samples.timestamps, samples.values);
        Ok(!timestamps.is_empty())
    }

    fn of_chunk(&mut self, samples: &mut Samples) -> Result<()> {
        let mut chunk = match self.chunk.take() {
            Some(chunk) => chunk,
            None => {
                self.left -= 1;
                self.bytes.chunk(self.is_compressed)?
            }
        };
        if chunk.read(BATCH, samples).is_none() {
            return self.bytes.damaged("a chunk is damaged");
        }
        self.chunk = Some(chunk).filter(|chunk| !chunk.is_empty());
        Ok(())
    }

    /// Passes over the samples that are left.
    ///
    /// # Errors
    /// Damage, and those of the reader.
    pub fn skip(self) -> Result<()> {
        if self.is_done {
            return Ok(());
        }
        self.bytes.skip_fields()
    }

    fn without_chunk(&mut self, samples: &mut Samples) -> Result<()> {
        for _ in 0..self.left.min(BATCH) {
            self.left -= 1;
            let (timestamp, value) = (self.bytes.unsigned()?, self.bytes.double()?);
            if samples.push(timestamp, value.to_bits()).is_none() {
                return self.bytes.damaged("the samples of a series do not ascend");
            }
        }
        Ok(())
    }
}

fn header<R: Read>(bytes: &mut Bytes<R>, key: Vec<u8>, version: u64) -> Result<(Series, u64)> {
    let retention_ms = bytes.unsigned()?;
    let mut chunk_bytes = bytes.unsigned()?;
    if version < 2 {
        // It was a number of samples.
        chunk_bytes = chunk_bytes.saturating_mul(16);
    }
    let options = if version >= 1 {
        bytes.unsigned()?
    } else {
        UNCOMPRESSED
    };
    let (mut last_timestamp, mut samples) = (None, None);
    if version >= 2 {
        last_timestamp = i64::try_from(bytes.unsigned()?).ok();
        bytes.double()?;
        samples = Some(bytes.unsigned()?);
    }
    let policy = if version >= 3 { bytes.unsigned()? } else { 0 };
    let has_source = version >= 2 && bytes.unsigned()? != 0;
    let source = if has_source {
        Some(bytes.text(KEY_BYTES_MAX)?)
    } else {
        None
    };
    let mut ignore = Ignore::default();
    if version >= 8 {
        ignore.max_time_diff_ms = bytes.unsigned()?;
        ignore.max_value_diff = bytes.double()?;
    }
    let labels = labels(bytes)?;
    let rules = rules(bytes, version)?;
    let duplicate_policy = match usize::try_from(policy) {
        Ok(0) => None,
        Ok(number) if number <= POLICIES.len() => Some(POLICIES[number - 1]),
        _ => return bytes.damaged(format!("a series has duplicate policy {policy}")),
    };
    let encoding = if options & UNCOMPRESSED == 0 {
        Encoding::Compressed
    } else {
        Encoding::Uncompressed
    };
    let options_of_series = SeriesOptions {
        labels,
        retention_ms,
        // Old servers took any size.
        chunk_size_bytes: chunk_size(chunk_bytes),
        encoding,
        duplicate_policy,
        ignore,
    };
    let series = Series {
        key,
        options: options_of_series,
        last_timestamp,
        samples,
        source,
        rules,
    };
    Ok((series, options))
}

/// The nearest size that a series may have.
fn chunk_size(bytes: u64) -> u32 {
    let (min, max) = (CHUNK_SIZE_BYTES_MIN, CHUNK_SIZE_BYTES_MAX);
    u32::try_from(bytes).unwrap_or(max).clamp(min, max) / 8 * 8
}

fn labels<R: Read>(bytes: &mut Bytes<R>) -> Result<Labels> {
    let count = bytes.unsigned()?;
    if count > LABELS_MAX as u64 {
        let text = format!("a series has {count} labels; at most {LABELS_MAX} are supported");
        return Err(Error::Limit(text));
    }
    let mut left = LABEL_BYTES_MAX;
    let mut pairs = Vec::new();
    for _ in 0..count {
        let name = bytes.text(left)?;
        left -= name.len();
        let value = bytes.text(left)?;
        left -= value.len();
        pairs.push((name, value));
    }
    let pairs = pairs.iter().map(|(name, value)| (&name[..], &value[..]));
    Labels::new(pairs).map_err(|error| Error::Limit(error.to_string()))
}

fn rules<R: Read>(bytes: &mut Bytes<R>, version: u64) -> Result<Vec<Rule>> {
    let count = bytes.unsigned()?;
    if count > RULES_MAX {
        return bytes.damaged(format!("a series has {count} rules"));
    }
    let mut left = RULE_KEY_BYTES_MAX;
    let mut rules = Vec::new();
    for _ in 0..count {
        let destination = bytes.text(left)?;
        left -= destination.len();
        let bucket_ms = bytes.unsigned()?;
        let align_ms = if version >= 6 { bytes.unsigned()? } else { 0 };
        let number = bytes.unsigned()?;
        bytes.unsigned()?;
        if version >= 9 {
            bytes.unsigned()?;
        }
        let place = usize::try_from(number)
            .ok()
            .and_then(|number| number.checked_sub(1));
        let Some(&aggregator) = place.and_then(|place| AGGREGATORS.get(place)) else {
            return bytes.damaged(format!("a rule has aggregator {number}"));
        };
        skip_state(bytes, aggregator, version)?;
        rules.push(Rule {
            destination,
            bucket_ms,
            align_ms,
            aggregator,
        });
    }
    Ok(rules)
}

/// Passes over what a rule knows of its open bucket: the samples say it again.
fn skip_state<R: Read>(bytes: &mut Bytes<R>, aggregator: Aggregator, version: u64) -> Result<()> {
    match aggregator {
        Aggregator::Min | Aggregator::Max | Aggregator::Range => {
            bytes.double()?;
            bytes.double()?;
            // Whether there were values.
            if version < 6 {
                bytes.text(STATE_BYTES_MAX)?;
            }
        }
        Aggregator::Avg => {
            bytes.double()?;
            bytes.double()?;
            if version >= 4 {
                bytes.unsigned()?;
            }
        }
        Aggregator::StdP | Aggregator::StdS | Aggregator::VarP | Aggregator::VarS => {
            bytes.double()?;
            bytes.double()?;
            bytes.unsigned()?;
        }
        Aggregator::First => {
            bytes.double()?;
            if version >= 3 {
                bytes.unsigned()?;
            }
        }
        Aggregator::Twa => {
            bytes.double()?;
            bytes.unsigned()?;
            bytes.double()?;
            for _ in 0..7 {
                bytes.unsigned()?;
            }
        }
        Aggregator::Sum
        | Aggregator::Count
        | Aggregator::CountNan
        | Aggregator::CountAll
        | Aggregator::Last => {
            bytes.double()?;
            if (3..7).contains(&version) {
                bytes.unsigned()?;
            }
        }
    }
    Ok(())
}
