//! Writes that can be applied to a database, to its oracle, or in part.

use crate::model::keyspace::Change;
use crate::model::oracle::Oracle;
use latewood_engine::{Append, Create, Db, Defaults, ErrorKind, Outcome, Refusal, Result, Scratch};
use latewood_model::{DuplicatePolicy, SeriesOptions};

/// What a sample asks for where its key holds nothing.
#[derive(Clone, Debug)]
pub(crate) enum Creation {
    Never,
    Defaults,
    With(SeriesOptions),
    /// As a sender makes series.
    Sent(SeriesOptions),
}

/// One sample of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Write {
    pub(crate) key: Vec<u8>,
    pub(crate) timestamp: i64,
    pub(crate) value: f64,
    pub(crate) on_duplicate: Option<DuplicatePolicy>,
    pub(crate) creation: Creation,
}

impl Write {
    pub(crate) fn as_append(&self) -> Append<'_> {
        Append {
            key: &self.key,
            timestamp: self.timestamp,
            value: self.value,
            on_duplicate: self.on_duplicate,
            create: match &self.creation {
                Creation::Never => Create::Never,
                Creation::Defaults => Create::Defaults,
                Creation::With(options) => Create::With(options),
                Creation::Sent(options) => Create::Sent(options),
            },
        }
    }
}

/// A call that changes the database.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Append(Vec<Write>),
    Create(Vec<u8>, SeriesOptions),
    Alter(Vec<u8>, SeriesOptions),
    DeleteRange(Vec<u8>, i64, i64),
    Remove(Vec<Vec<u8>>),
    /// Background work, in the course of which these end.
    End(Vec<Vec<u8>>),
    FlushAll,
    SetDefaults(Defaults),
    Change(Change),
}

/// What a call answered.
#[derive(Debug, PartialEq)]
pub(crate) enum Answer {
    Done,
    Count(u64),
    Outcomes(Vec<Outcome>),
    Refused(ErrorKind),
}

impl Op {
    /// Applies it to a database. Only a failure of the log is an error here.
    pub(crate) fn apply(&self, db: &Db, scratch: &mut Scratch) -> Result<Answer> {
        let answer = match self {
            Self::Append(writes) => {
                let batch: Vec<_> = writes.iter().map(Write::as_append).collect();
                let done = db.append(&batch, scratch);
                done.map(|_| Answer::Outcomes(scratch.outcomes().to_vec()))
            }
            Self::Create(key, options) => db.create(key, options).map(|_| Answer::Done),
            Self::Alter(key, options) => db.alter(key, options).map(|_| Answer::Done),
            Self::DeleteRange(key, from, to) => db
                .delete_range(key, *from, *to)
                .map(|(count, _)| Answer::Count(count)),
            Self::Remove(keys) => {
                let keys: Vec<&[u8]> = keys.iter().map(Vec::as_slice).collect();
                db.remove(&keys).map(|(count, _)| Answer::Count(count))
            }
            Self::End(_) => {
                let before = db.stats().series_ended;
                db.maintain()
                    .map(|()| Answer::Count(db.stats().series_ended - before))
            }
            Self::FlushAll => db.flush_all().map(|_| Answer::Done),
            Self::Change(change) => change.apply(db),
            Self::SetDefaults(defaults) => db.set_defaults(defaults.clone()).map(|()| Answer::Done),
        };
        match answer {
            Err(error) => match error.kind() {
                ErrorKind::Io | ErrorKind::Halted | ErrorKind::Unknown => Err(error),
                kind => Ok(Answer::Refused(kind)),
            },
            answer => answer,
        }
    }

    /// Applies it to the oracle and says what the database must answer.
    pub(crate) fn foretell(&self, oracle: &mut Oracle) -> Answer {
        match self {
            Self::Append(writes) => {
                let writes = writes.iter();
                Answer::Outcomes(writes.map(|w| oracle.append(&w.as_append())).collect())
            }
            Self::Create(key, _) if oracle.series.contains_key(key) => {
                Answer::Refused(ErrorKind::KeyExists)
            }
            Self::Create(key, options) => {
                oracle.insert(key, options.clone());
                Answer::Done
            }
            Self::Alter(key, options) => match oracle.series.get_mut(key) {
                Some(series) => {
                    series.alter(options);
                    Answer::Done
                }
                None => Answer::Refused(ErrorKind::NoSuchKey),
            },
            Self::DeleteRange(key, from, to) => match oracle.series.get_mut(key) {
                Some(series) => Answer::Count(series.delete(*from, *to)),
                None => Answer::Refused(ErrorKind::NoSuchKey),
            },
            Self::Remove(keys) | Self::End(keys) => {
                let removed = keys
                    .iter()
                    .filter(|key| oracle.series.remove(*key).is_some());
                Answer::Count(removed.count() as u64)
            }
            Self::FlushAll => {
                oracle.series.clear();
                Answer::Done
            }
            Self::Change(change) => change.foretell(oracle),
            Self::SetDefaults(defaults) => {
                oracle.defaults = defaults.clone();
                Answer::Done
            }
        }
    }

    /// Compares an answer with the one foretold.
    pub(crate) fn check(&self, answer: &Answer, foretold: &Answer) {
        if let (Self::Append(writes), Answer::Outcomes(found), Answer::Outcomes(wanted)) =
            (self, answer, foretold)
        {
            assert_eq!(found.len(), wanted.len());
            for (index, write) in writes.iter().enumerate() {
                assert_eq!(found[index], wanted[index], "sample {index}: {write:?}");
            }
        }
        assert_eq!(answer, foretold, "{self:?}");
    }

    /// The same without the samples that were refused since the disk did not read what
    /// they would have been compared with.
    pub(crate) fn without_unread(self, answer: Answer) -> (Self, Answer) {
        match (self, answer) {
            (Self::Append(writes), Answer::Outcomes(outcomes)) => {
                let both = writes.into_iter().zip(outcomes);
                let (writes, outcomes) = both
                    .filter(|(_, outcome)| *outcome != Err(Refusal::Damaged))
                    .unzip();
                (Self::Append(writes), Answer::Outcomes(outcomes))
            }
            other => other,
        }
    }

    /// The keys it can change.
    pub(crate) fn keys(&self, oracle: &Oracle) -> Vec<Vec<u8>> {
        let mut keys = match self {
            Self::Append(writes) => writes.iter().map(|write| write.key.clone()).collect(),
            Self::Create(key, _) | Self::Alter(key, _) | Self::DeleteRange(key, _, _) => {
                vec![key.clone()]
            }
            Self::Remove(keys) | Self::End(keys) => keys.clone(),
            Self::FlushAll => oracle.series.keys().cloned().collect(),
            Self::Change(change) => change.keys(),
            Self::SetDefaults(_) => Vec::new(),
        };
        keys.sort_unstable();
        keys.dedup();
        keys
    }

    /// The parts of it that a power cut may have let through for `key`, the
    /// likely ones first.
    pub(crate) fn parts(&self, key: &[u8]) -> Vec<Option<Self>> {
        match self {
            Self::Append(writes) => {
                let mine = writes.iter().filter(|write| write.key == key);
                let mine: Vec<Write> = mine.cloned().collect();
                let lengths = std::iter::once(mine.len()).chain(0..mine.len());
                lengths
                    .map(|n| Some(Self::Append(mine[..n].to_vec())))
                    .collect()
            }
            Self::Remove(_) | Self::End(_) => {
                vec![Some(Self::Remove(vec![key.to_vec()])), None]
            }
            whole => vec![Some(whole.clone()), None],
        }
    }
}
