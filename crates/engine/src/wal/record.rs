//! One record of the log and how records are read back out of a group.
//!
//! A record begins with a tag byte. Bit 0 clear is a sample: bit 1 says that
//! its timestamp equals the one before, bits 2-3 how its series follows (the
//! same; as far away as last time; a step given), bits 4-7 the value's form
//! ([`super::value`]). Bit 0 set is a control record of the kind in bits 1-7;
//! one kind sets the duplicate policy of the samples that follow. Every group
//! starts from series 0, step 0, timestamp 0 and policy BLOCK, so it can be
//! read on its own. The bytes are described in `docs/format/wal.md`; writing
//! is in [`super::group`], and both are tested together in
//! `tests/wal_group.rs`.

use super::group::alike::Created;
use super::value::take_value;
use super::varint::{take, unzigzag};
use crate::error::{Error, ErrorKind, Result};
use crate::rules::RuleSpec;
use latewood_model::limits::KEY_BYTES_MAX;
use latewood_model::{
    Aggregator, DuplicatePolicy, Encoding, Ignore, Labels, SeriesId, SeriesOptions, Timestamp,
};
use std::borrow::Cow;

/// The tag bit of control records; their kind stands above it.
pub(crate) const CONTROL: u8 = 1;
/// Where a control record's kind stands in its tag.
pub(crate) const CONTROL_SHIFT: u32 = 1;
/// The tag bit of a sample at the timestamp of the one before.
pub(crate) const SAME_TIMESTAMP: u8 = 1 << 1;
/// The two tag bits that say how a sample's series follows.
pub(crate) const SERIES_BITS: u8 = 3 << 2;
/// The series of the sample before.
pub(crate) const SERIES_SAME: u8 = 0;
/// As far from the series before as that was from its own.
pub(crate) const SERIES_STEP: u8 = 1 << 2;
/// A new step follows.
pub(crate) const SERIES_NEW_STEP: u8 = 2 << 2;
/// Where a sample's value form stands in its tag.
pub(crate) const FORM_SHIFT: u32 = 4;

/// What the records of a group refer back to.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    pub(crate) id: u32,
    /// The newest step between two series; wraps.
    pub(crate) step: u32,
    pub(crate) timestamp: i64,
    pub(crate) policy: DuplicatePolicy,
}

impl Default for Context {
    fn default() -> Self {
        Self {
            id: 0,
            step: 0,
            timestamp: 0,
            policy: DuplicatePolicy::Block,
        }
    }
}

/// The kinds of control records, as stored.
pub(crate) mod kind {
    pub(crate) const CREATE: u8 = 0;
    pub(crate) const ALTER: u8 = 1;
    pub(crate) const DELETE_RANGE: u8 = 2;
    pub(crate) const DELETE_SERIES: u8 = 3;
    pub(crate) const RENAME: u8 = 4;
    pub(crate) const FLUSH_ALL: u8 = 5;
    /// The duplicate policy of the samples that follow.
    pub(crate) const POLICY: u8 = 6;
    pub(crate) const CREATE_RULE: u8 = 7;
    pub(crate) const DELETE_RULE: u8 = 8;
    pub(crate) const RULE_TAKE: u8 = 9;
    pub(crate) const RULE_DONE: u8 = 10;
    pub(crate) const EXPIRE: u8 = 11;
    pub(crate) const BUILD: u8 = 12;
    /// A creation as its difference from the one before.
    pub(crate) const CREATE_ALIKE: u8 = 13;
}

/// The tag of a record that sets the policy.
pub(crate) const POLICY_TAG: u8 = CONTROL | kind::POLICY << CONTROL_SHIFT;

/// One thing that happened, as the log tells it.
#[derive(Clone, Debug, PartialEq)]
pub enum Record<'a> {
    /// A sample arrived and was to be resolved under `policy`.
    Sample {
        /// Its series.
        id: SeriesId,
        /// When it was measured, milliseconds.
        timestamp: Timestamp,
        /// What was measured, bit for bit.
        value: f64,
        /// The rule for a second sample at this timestamp.
        policy: DuplicatePolicy,
    },
    /// A series came to be; before its first sample.
    Create {
        /// Its number from now on.
        id: SeriesId,
        /// Its key.
        key: Cow<'a, [u8]>,
        /// Its options and labels.
        options: Box<SeriesOptions>,
    },
    /// A series got new options.
    Alter {
        /// The series.
        id: SeriesId,
        /// All its options from now on.
        options: Box<SeriesOptions>,
    },
    /// The samples of a span of time are gone.
    DeleteRange {
        /// The series.
        id: SeriesId,
        /// The first timestamp of the span.
        from: Timestamp,
        /// The last timestamp of the span.
        to: Timestamp,
    },
    /// A series is gone.
    DeleteSeries {
        /// The series.
        id: SeriesId,
    },
    /// A series has another key.
    Rename {
        /// The series.
        id: SeriesId,
        /// Its key from now on.
        key: &'a [u8],
    },
    /// A series expires at another time than before, or not at all.
    Expire {
        /// The series.
        id: SeriesId,
        /// Milliseconds since the Unix epoch, above 0; `None` for never.
        at_ms: Option<i64>,
    },
    /// A compaction rule came to be.
    CreateRule {
        /// The series it reads.
        id: SeriesId,
        /// The series it writes.
        destination: SeriesId,
        /// What it does.
        spec: RuleSpec,
    },
    /// A compaction rule ended.
    DeleteRule {
        /// The series it read.
        id: SeriesId,
        /// The series it wrote.
        destination: SeriesId,
    },
    /// Somebody began to work off the marks of a source.
    RuleTake {
        /// The source.
        id: SeriesId,
        /// Late marks, too.
        all: bool,
    },
    /// What was taken last is in the destinations.
    RuleDone {
        /// The source.
        id: SeriesId,
    },
    /// A series without a key came to be. It takes samples, and is there for
    /// readers once a rename gives it a key; one that never gets one is dropped.
    Build {
        /// Its number from now on.
        id: SeriesId,
        /// Its options and labels.
        options: Box<SeriesOptions>,
    },
    /// Every series is gone.
    FlushAll,
}

/// The records of one group, in order.
///
/// Ends after the first error: what follows cannot be told apart.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    bytes: &'a [u8],
    context: Context,
    created: Created,
}

impl<'a> RecordIter<'a> {
    /// Reads the records of `payload`, the bytes of a group behind its header.
    pub fn new(payload: &'a [u8]) -> Self {
        Self {
            bytes: payload,
            context: Context::default(),
            created: Created::none(),
        }
    }

    #[inline]
    fn sample(&mut self, tag: u8) -> Option<Record<'a>> {
        let context = &mut self.context;
        match tag & SERIES_BITS {
            SERIES_SAME => {}
            SERIES_STEP => context.id = context.id.wrapping_add(context.step),
            SERIES_NEW_STEP => {
                // Steps wrap, so every one fits 32 bits with a sign.
                context.step = i32::try_from(unzigzag(take(&mut self.bytes)?)).ok()? as u32;
                context.id = context.id.wrapping_add(context.step);
            }
            _ => return None,
        }
        if tag & SAME_TIMESTAMP == 0 {
            let delta = unzigzag(take(&mut self.bytes)?);
            context.timestamp = context.timestamp.wrapping_add(delta);
        }
        let value = take_value(&mut self.bytes, tag >> FORM_SHIFT)?;
        Some(Record::Sample {
            id: SeriesId(context.id),
            timestamp: context.timestamp,
            value,
            policy: context.policy,
        })
    }

    /// Takes a policy and goes on with the record behind it.
    #[cold]
    fn policy_then_next(&mut self) -> Option<Result<Record<'a>>> {
        let policy = self.bytes.split_first().and_then(|(&number, rest)| {
            self.bytes = rest;
            DuplicatePolicy::from_number(number)
        });
        // A policy stands before a sample: no writer ends a group with one,
        // or puts two in a row.
        let follows = self.bytes.first().is_some_and(|tag| tag & CONTROL == 0);
        match policy {
            Some(policy) if follows => {
                self.context.policy = policy;
                self.next()
            }
            _ => {
                self.bytes = &[];
                Some(Err(damaged()))
            }
        }
    }

    fn create_alike(&mut self) -> Option<Record<'a>> {
        let id = self.created.take(&mut self.bytes)?;
        Some(Record::Create {
            id,
            key: self.created.key().to_vec().into(),
            options: Box::new(self.created.options()?),
        })
    }

    fn control(&mut self, kind: u8) -> Option<Record<'a>> {
        match kind {
            kind::FLUSH_ALL => return Some(Record::FlushAll),
            kind::CREATE_ALIKE => return self.create_alike(),
            _ => {}
        }
        let id = take_id(&mut self.bytes)?;
        Some(match kind {
            kind::CREATE => {
                let key = take_key(&mut self.bytes)?;
                let options = take_options(&mut self.bytes)?;
                self.created.note(id, key, &options);
                let key = key.into();
                Record::Create { id, key, options }
            }
            kind::ALTER => Record::Alter {
                id,
                options: take_options(&mut self.bytes)?,
            },
            kind::DELETE_RANGE => Record::DeleteRange {
                id,
                from: unzigzag(take(&mut self.bytes)?),
                to: unzigzag(take(&mut self.bytes)?),
            },
            kind::DELETE_SERIES => Record::DeleteSeries { id },
            kind::RENAME => Record::Rename {
                id,
                key: take_key(&mut self.bytes)?,
            },
            kind::CREATE_RULE => Record::CreateRule {
                id,
                destination: take_id(&mut self.bytes)?,
                spec: take_rule(&mut self.bytes)?,
            },
            kind::DELETE_RULE => Record::DeleteRule {
                id,
                destination: take_id(&mut self.bytes)?,
            },
            kind::RULE_TAKE => Record::RuleTake {
                id,
                all: take_flag(&mut self.bytes)?,
            },
            kind::RULE_DONE => Record::RuleDone { id },
            kind::BUILD => Record::Build {
                id,
                options: take_options(&mut self.bytes)?,
            },
            kind::EXPIRE => Record::Expire {
                id,
                at_ms: match i64::try_from(take(&mut self.bytes)?).ok()? {
                    0 => None,
                    at_ms => Some(at_ms),
                },
            },
            _ => return None,
        })
    }
}

impl<'a> Iterator for RecordIter<'a> {
    type Item = Result<Record<'a>>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let (&tag, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        let record = match tag {
            POLICY_TAG => return self.policy_then_next(),
            _ if tag & CONTROL == 0 => self.sample(tag),
            _ => self.control(tag >> CONTROL_SHIFT),
        };
        match record {
            Some(record) => Some(Ok(record)),
            None => {
                self.bytes = &[];
                Some(Err(damaged()))
            }
        }
    }
}

#[cold]
fn damaged() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "a log group passes its checksum but holds no known records",
    )
}

fn take_id(bytes: &mut &[u8]) -> Option<SeriesId> {
    Some(SeriesId(u32::try_from(take(bytes)?).ok()?))
}

fn take_flag(bytes: &mut &[u8]) -> Option<bool> {
    match take(bytes)? {
        0 => Some(false),
        1 => Some(true),
        _ => None,
    }
}

fn take_rule(bytes: &mut &[u8]) -> Option<RuleSpec> {
    let spec = RuleSpec {
        aggregator: Aggregator::from_number(u8::try_from(take(bytes)?).ok()?)?,
        bucket_ms: unzigzag(take(bytes)?),
        align: unzigzag(take(bytes)?),
    };
    (spec.bucket_ms > 0).then_some(spec)
}

pub(super) fn take_bytes<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = usize::try_from(take(bytes)?).ok()?;
    let (taken, rest) = bytes.split_at_checked(len)?;
    *bytes = rest;
    Some(taken)
}

fn take_key<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    take_bytes(bytes).filter(|key| key.len() <= KEY_BYTES_MAX)
}

fn take_options(bytes: &mut &[u8]) -> Option<Box<SeriesOptions>> {
    let retention_ms = take(bytes)?;
    let chunk_size_bytes = u32::try_from(take(bytes)?).ok()?;
    let (&[encoding, policy], rest) = bytes.split_first_chunk::<2>()?;
    *bytes = rest;
    let max_time_diff_ms = take(bytes)?;
    let (max_value_diff, rest) = bytes.split_first_chunk::<8>()?;
    *bytes = rest;
    let options = SeriesOptions {
        retention_ms,
        chunk_size_bytes,
        encoding: match encoding {
            0 => Encoding::Compressed,
            1 => Encoding::Uncompressed,
            _ => return None,
        },
        duplicate_policy: match policy.checked_sub(1) {
            None => None,
            Some(number) => Some(DuplicatePolicy::from_number(number)?),
        },
        ignore: Ignore {
            max_time_diff_ms,
            max_value_diff: f64::from_le_bytes(*max_value_diff),
        },
        labels: Labels::from_bytes(take_bytes(bytes)?).ok()?,
    };
    options.check().is_ok().then(|| Box::new(options))
}
