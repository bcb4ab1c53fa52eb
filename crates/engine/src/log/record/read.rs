//! Reading records back out of a group.
//!
//! Nothing here trusts a byte: a group that passes its checksum and holds no
//! known record is damage, as one of a newer version would be. Tested in
//! `tests/log_group.rs`.

use crate::base::error::{Error, ErrorKind, Result};
use crate::format::rule::RuleSpec;
use crate::format::value::take_value;
use crate::format::varint::{take, take_bytes, unzigzag};
use crate::log::created::Created;
use crate::log::record::{
    CONTROL, CONTROL_SHIFT, Context, Cut, EXPIRED, Ended, FORM_SHIFT, GroupForm, POLICY_TAG,
    Record, SAME_TIMESTAMP, SERIES_BITS, SERIES_NEW_STEP, SERIES_SAME, SERIES_STEP, kind,
};
use latewood_model::limits::KEY_BYTES_MAX;
use latewood_model::{
    Aggregator, DuplicatePolicy, Encoding, Ignore, Labels, MadeBy, SeriesId, SeriesOptions,
    Timestamp,
};

/// The records of one group, in order.
///
/// Ends after the first error: what follows cannot be told apart.
#[derive(Clone, Debug)]
pub struct RecordIter<'a> {
    bytes: &'a [u8],
    context: Context,
    created: Created,
    form: GroupForm,
}

impl<'a> RecordIter<'a> {
    /// Reads the records of `payload`, the bytes of a group behind its header, which names their
    /// form.
    pub fn new(payload: &'a [u8], form: GroupForm) -> Self {
        Self {
            form,
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
            SERIES_STEP => context.id = self.form.step(context.id, context.step)?,
            SERIES_NEW_STEP => {
                context.step = self.form.take_step(&mut self.bytes)?;
                context.id = self.form.step(context.id, context.step)?;
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
        let (id, made_by) = self.created.take(&mut self.bytes, self.form)?;
        Some(Record::Create {
            id,
            made_by,
            key: self.created.key().to_vec().into(),
            options: Box::new(self.created.options()?),
        })
    }

    fn ended(&mut self) -> Option<Record<'a>> {
        let ended = Ended {
            first: self.take_id()?,
            stride_log2: u8::try_from(take(&mut self.bytes)?).ok()?,
            bits: take_bytes(&mut self.bytes)?,
        };
        ended.is_sane().then_some(Record::Ended(ended))
    }

    fn take_id(&mut self) -> Option<SeriesId> {
        self.form.id(take(&mut self.bytes)?).map(SeriesId)
    }

    fn take_maker(&mut self) -> Option<MadeBy> {
        if self.form == GroupForm::Narrow {
            return Some(MadeBy::Create);
        }
        let (&number, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        MadeBy::from_number(number)
    }

    fn control(&mut self, kind: u8) -> Option<Record<'a>> {
        match kind {
            kind::FLUSH_ALL => Some(Record::FlushAll),
            kind::CREATE_ALIKE => self.create_alike(),
            kind::CUT => self.cut(),
            kind::ENDED => self.ended(),
            kind::FLOOR => self.floor(),
            kind::HORIZON => Some(Record::Horizon {
                reader: take(&mut self.bytes)?,
                at: unzigzag(take(&mut self.bytes)?),
            }),
            kind::DONE => Some(Record::Done {
                reader: take(&mut self.bytes)?,
                position: take(&mut self.bytes)?,
            }),
            kind::PENDING => Some(Record::Pending {
                reader: take(&mut self.bytes)?,
                state: take_bytes(&mut self.bytes)?,
            }),
            kind::STEPS => Some(Record::Steps {
                reader: take(&mut self.bytes)?,
                from: unzigzag(take(&mut self.bytes)?),
                to: unzigzag(take(&mut self.bytes)?),
            }),
            kind::SINCE => Some(Record::Since {
                reader: take(&mut self.bytes)?,
                at: unzigzag(take(&mut self.bytes)?),
            }),
            kind => self.of_series(kind),
        }
    }

    /// A record that begins with the series it is about.
    fn of_series(&mut self, kind: u8) -> Option<Record<'a>> {
        let id = self.take_id()?;
        Some(match kind {
            kind::CREATE => {
                let key = take_key(&mut self.bytes)?;
                let options = take_options(&mut self.bytes)?;
                let made_by = self.take_maker()?;
                self.created.note(id, key, made_by, &options);
                Record::Create {
                    id,
                    key: key.into(),
                    made_by,
                    options,
                }
            }
            kind::ALTER => Record::Alter {
                id,
                options: take_options(&mut self.bytes)?,
            },
            kind::DELETE_RANGE => {
                let from = unzigzag(take(&mut self.bytes)?);
                match unzigzag(take(&mut self.bytes)?) {
                    EXPIRED => Record::Expired { id, before: from },
                    to => Record::DeleteRange { id, from, to },
                }
            }
            kind::DELETE_SERIES => Record::DeleteSeries { id },
            kind::RENAME => Record::Rename {
                id,
                key: take_key(&mut self.bytes)?,
            },
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
            kind => return self.of_rule(kind, id),
        })
    }

    /// The same of a source of rules.
    fn of_rule(&mut self, kind: u8, id: SeriesId) -> Option<Record<'a>> {
        Some(match kind {
            kind::CREATE_RULE => Record::CreateRule {
                id,
                destination: self.take_id()?,
                spec: take_rule(&mut self.bytes)?,
            },
            kind::DELETE_RULE => Record::DeleteRule {
                id,
                destination: self.take_id()?,
            },
            kind::RULE_TAKE => Record::RuleTake {
                id,
                all: take_flag(&mut self.bytes)?,
            },
            kind::RULE_DONE => Record::RuleDone { id },
            kind::RULE_LEFT => Record::RuleLeft {
                id,
                destination: self.take_id()?,
                first: unzigzag(take(&mut self.bytes)?),
                last: unzigzag(take(&mut self.bytes)?),
            },
            kind::RULE_HISTORY => Record::RuleHistory {
                id,
                destination: self.take_id()?,
                first: unzigzag(take(&mut self.bytes)?),
                newest: unzigzag(take(&mut self.bytes)?),
            },
            kind::RULE_FILLED => Record::RuleFilled {
                id,
                destination: self.take_id()?,
                first: unzigzag(take(&mut self.bytes)?),
                last: unzigzag(take(&mut self.bytes)?),
            },
            _ => return None,
        })
    }
}

impl RecordIter<'_> {
    fn cut<'a>(&mut self) -> Option<Record<'a>> {
        let cut = Cut {
            first: self.take_id()?,
            flush: take(&mut self.bytes)?,
            stride_log2: u8::try_from(take(&mut self.bytes)?).ok()?,
            count: take(&mut self.bytes)?,
        };
        cut.is_sane().then_some(Record::Cut(cut))
    }

    fn floor<'a>(&mut self) -> Option<Record<'a>> {
        let floor = Timestamp::try_from(take(&mut self.bytes)?).ok()?;
        (floor > 0).then_some(Record::Floor { floor })
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
