//! Increments, renames, copies, dumps and expiry times.

use crate::model::chance::Chance;
use crate::model::ops::Answer;
use crate::model::oracle::Oracle;
use latewood_engine::{Create, Db, Dump, ErrorKind, ExpireIf, Expiry, Restored, Result};

/// Times so far away that no run comes near them.
const FAR_MS: i64 = 1 << 60;

/// A call that concerns keys, or the newest sample of one.
#[derive(Clone, Debug)]
pub(crate) enum Change {
    Increment(Vec<u8>, f64, i64),
    Rename(Vec<u8>, Vec<u8>, bool),
    Copy(Vec<u8>, Vec<u8>, bool),
    /// DUMP of the first, RESTORE as the second.
    Restore(Vec<u8>, Vec<u8>, bool),
    /// At a time far away; at once for 0.
    Expire(Vec<u8>, i64),
    Persist(Vec<u8>),
}

impl Chance {
    pub(crate) fn change(&self, oracle: &Oracle) -> Change {
        let (from, to) = (self.held_key(oracle), self.key());
        let replace = self.one_in(2);
        match self.below(12) {
            0..3 => {
                let newest = oracle.series.get(&from).and_then(|series| series.newest());
                let after = self.below(5) as i64 - 1;
                let timestamp = newest.unwrap_or(0).saturating_add(after);
                Change::Increment(from, self.below(9) as f64 - 4.0, timestamp.max(0))
            }
            3..5 => Change::Rename(from, to, replace),
            5..8 => Change::Copy(from, to, replace),
            8..10 => Change::Restore(from, to, replace),
            10 if self.one_in(6) => Change::Expire(from, 0),
            10 => Change::Expire(from, FAR_MS + self.below(9) as i64),
            _ => Change::Persist(from),
        }
    }
}

impl Change {
    pub(crate) fn apply(&self, db: &Db) -> Result<Answer> {
        let count = |done: bool| Answer::Count(u64::from(done));
        match self {
            Self::Increment(key, delta, at) => db
                .increment(key, *delta, Some(*at), Create::Defaults)
                .map(|(outcome, _)| Answer::Outcomes(vec![outcome])),
            Self::Rename(from, to, replace) => {
                db.rename(from, to, *replace).map(|(done, _)| count(done))
            }
            Self::Copy(from, to, replace) => {
                db.copy(from, to, *replace).map(|(done, _)| count(done))
            }
            Self::Restore(from, to, replace) => {
                let bytes = db.dump(from)?;
                let dump = Dump::parse(&bytes).unwrap();
                db.restore(to, dump, None, *replace)
                    .map(|(restored, _)| count(restored == Restored::Made))
            }
            Self::Expire(key, at_ms) => db
                .expire(key, *at_ms, ExpireIf::default())
                .map(|(expiry, _)| count(expiry == Expiry::Set)),
            Self::Persist(key) => db.persist(key).map(|(done, _)| count(done)),
        }
    }

    pub(crate) fn foretell(&self, oracle: &mut Oracle) -> Answer {
        let count = |done: bool| Answer::Count(u64::from(done));
        let source = match self {
            Self::Increment(key, delta, at) => {
                return Answer::Outcomes(vec![oracle.increment(key, *delta, *at)]);
            }
            Self::Rename(key, ..)
            | Self::Copy(key, ..)
            | Self::Restore(key, ..)
            | Self::Expire(key, _)
            | Self::Persist(key) => key,
        };
        let Some(series) = oracle.series.get_mut(source) else {
            return Answer::Refused(ErrorKind::NoSuchKey);
        };
        let mut made = match self {
            Self::Expire(key, 0) => {
                oracle.series.remove(key);
                return count(false);
            }
            Self::Expire(_, at_ms) => {
                series.expires_at_ms = Some(*at_ms);
                return count(true);
            }
            Self::Persist(_) => return count(series.expires_at_ms.take().is_some()),
            _ => series.clone(),
        };
        if let Self::Restore(..) = self {
            made.expires_at_ms = None;
        }
        // Copies are made by commands.
        made.is_sent &= matches!(self, Self::Rename(..));
        if let Self::Rename(from, to, replace)
        | Self::Copy(from, to, replace)
        | Self::Restore(from, to, replace) = self
        {
            if oracle.series.contains_key(to) && !replace {
                return count(false);
            }
            if let Self::Rename(..) = self {
                oracle.series.remove(from);
            }
            oracle.series.insert(to.clone(), made);
        }
        count(true)
    }

    /// The keys it can change.
    pub(crate) fn keys(&self) -> Vec<Vec<u8>> {
        match self {
            Self::Rename(from, to, _) => vec![from.clone(), to.clone()],
            Self::Copy(_, key, _)
            | Self::Restore(_, key, _)
            | Self::Increment(key, ..)
            | Self::Expire(key, _)
            | Self::Persist(key) => vec![key.clone()],
        }
    }
}
