//! What selectors found of late: dashboards and rules ask for the same series every few seconds, and to
//! find, name and sort a thousand of them takes longer than an instant query needs for their samples.
//!
//! Invariants: what is given is what the database finds for the same matchers and span now
//! ([`Db::names_version`]), whoever asks; whether a user may read it, the caller finds out. All together
//! takes at most a 64th of the memory budget, 16 to 256 MiB; what was not asked for longest goes first.
//!
//! Tested below, by `labelled/tests.rs` and by `tests/http/repeated.rs`.

use latewood_engine::{Db, NamesVersion, SeriesRef};
use latewood_promql::labels::Labels;
use latewood_wire::selector::{Matcher, Test};
use parking_lot::Mutex;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Bytes of all that is held, about: the least has some 50,000 series.
const BYTES: RangeInclusive<u64> = 16 << 20..=256 << 20;
/// What part of the memory budget it is.
const PART: u64 = 64;
/// Selectors that are held.
const ENTRIES_MAX: usize = 128;
/// Bytes of a selector beside its words, about.
const ENTRY_BYTES: usize = 128;

/// A series and how it looks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Named {
    /// The series.
    pub(crate) series: SeriesRef,
    /// Its labels.
    pub(crate) labels: Labels,
}

/// Selectors and what they found.
#[derive(Default)]
pub(crate) struct Recent(Mutex<Held>);

#[derive(Default)]
struct Held {
    /// Changes after which all of it was found.
    changes: u64,
    /// The one that was asked for last is the last one.
    entries: Vec<Entry>,
}

struct Entry {
    words: Box<[u8]>,
    found: Found,
    bytes: usize,
}

/// Series in the order of their labels.
#[derive(Clone)]
pub(crate) struct Found {
    pub(crate) named: Arc<[Named]>,
    /// What they take.
    pub(crate) bytes: usize,
}

impl Found {
    pub(crate) fn new(named: Vec<Named>) -> Self {
        let each = |one: &Named| size_of::<Named>() + one.labels.len_bytes() + one.series.key.len();
        Self {
            bytes: named.iter().map(each).sum(),
            named: named.into(),
        }
    }
}

impl Recent {
    /// What a selector finds, if it was looked for since the last change.
    fn get(&self, version: NamesVersion, matchers: &[Matcher]) -> Option<Found> {
        let words = words(version, matchers);
        let mut held = self.0.lock();
        if held.changes != version.changes {
            return None;
        }
        let at = held.entries.iter().position(|one| one.words == words)?;
        held.entries[at..].rotate_left(1);
        held.entries.last().map(|entry| entry.found.clone())
    }

    /// What a selector finds in a span, by a look or with `find`, which may leave out what has no sample there.
    ///
    /// # Errors
    /// Those of `find`.
    pub(crate) fn get_or_find<E>(
        &self,
        db: &Db,
        matchers: &[Matcher],
        span: (i64, i64),
        find: impl FnOnce() -> Result<Vec<Named>, E>,
    ) -> Result<Found, E> {
        let before = db.names_version(span);
        if let Some(found) = before.and_then(|version| self.get(version, matchers)) {
            return Ok(found);
        }
        let found = Found::new(find()?);
        // What changed meanwhile may be in it or not.
        if let Some(version) = before.filter(|_| db.names_version(span) == before) {
            self.keep(version, matchers, &found, bytes_max(db));
        }
        Ok(found)
    }

    /// Keeps what a selector found, if it is not too much.
    fn keep(&self, version: NamesVersion, matchers: &[Matcher], found: &Found, bytes_max: usize) {
        let words = words(version, matchers);
        let entry = Entry {
            bytes: found.bytes + words.len() + ENTRY_BYTES,
            words,
            found: found.clone(),
        };
        // One alone does not take the place of all others.
        if entry.bytes > bytes_max / 2 {
            return;
        }
        // What goes is dropped behind the lock.
        let mut gone = Vec::new();
        let mut held = self.0.lock();
        if held.changes != version.changes {
            held.changes = version.changes;
            gone.append(&mut held.entries);
        }
        let same = held.entries.iter().position(|one| one.words == entry.words);
        gone.extend(same.map(|same| held.entries.remove(same)));
        held.entries.push(entry);
        let mut bytes: usize = held.entries.iter().map(|entry| entry.bytes).sum();
        let mut most = held.entries.len().saturating_sub(ENTRIES_MAX);
        bytes -= held.entries[..most]
            .iter()
            .map(|entry| entry.bytes)
            .sum::<usize>();
        while bytes > bytes_max {
            bytes -= held.entries[most].bytes;
            most += 1;
        }
        gone.extend(held.entries.drain(..most));
        drop(held);
    }
}

/// Bytes of all that is held at most.
fn bytes_max(db: &Db) -> usize {
    let part = match db.memory_limit() {
        // There is no budget.
        0 => u64::MAX,
        limit_bytes => limit_bytes / PART,
    };
    part.clamp(*BYTES.start(), *BYTES.end()) as usize
}

/// What parked series are looked at, and the matchers of a query in PromQL, without the programs of their
/// expressions, which take far more.
fn words(version: NamesVersion, matchers: &[Matcher]) -> Box<[u8]> {
    let mut words = version.reach.to_le_bytes().to_vec();
    for matcher in matchers {
        let (kind, value) = match &matcher.test {
            Test::Equal(value) => (b'=', &**value),
            Test::NotEqual(value) => (b'!', &**value),
            Test::Match(pattern) => (b'~', pattern.text().as_bytes()),
            Test::NotMatch(pattern) => (b'-', pattern.text().as_bytes()),
        };
        words.push(kind);
        for part in [&*matcher.name, value] {
            words.extend_from_slice(&part.len().to_le_bytes());
            words.extend_from_slice(part);
        }
    }
    words.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use latewood_model::SeriesId;

    const BYTES_MAX: usize = 16 << 20;

    fn matcher(value: &str) -> [Matcher; 1] {
        let test = Test::Equal(value.as_bytes().into());
        [Matcher {
            name: b"__name__".as_slice().into(),
            test,
        }]
    }

    fn found(series: u64) -> Found {
        let one = |id| Named {
            series: SeriesRef {
                id: SeriesId(id),
                key: vec![b'x'; 1000].into(),
            },
            labels: Labels::default(),
        };
        Found::new((0..series).map(one).collect())
    }

    #[test]
    fn what_was_asked_for_longest_ago_goes_first_and_all_takes_little() {
        let (recent, version) = (Recent::default(), NamesVersion::default());
        let name = |number: usize| matcher(&number.to_string());
        for number in 0..ENTRIES_MAX {
            recent.keep(version, &name(number), &found(100), BYTES_MAX);
            assert!(recent.get(version, &name(0)).unwrap().bytes > 100_000);
        }
        for number in 0..2 * ENTRIES_MAX {
            recent.keep(version, &name(number), &found(1), BYTES_MAX);
        }
        let there = |number: usize| recent.get(version, &name(number)).is_some();
        assert!(!there(ENTRIES_MAX - 1) && (ENTRIES_MAX..2 * ENTRIES_MAX).all(there));
        for number in 0..10 {
            recent.keep(version, &name(number), &found(3_000), BYTES_MAX);
        }
        let held = recent.0.lock();
        let bytes: usize = held.entries.iter().map(|entry| entry.bytes).sum();
        assert!(bytes <= BYTES_MAX && bytes > BYTES_MAX / 2, "{bytes}");
        drop(held);
        assert!(there(9) && !there(0));
        // One that is too large, one of another time.
        recent.keep(version, &name(9), &found(10_000), BYTES_MAX);
        assert_eq!(recent.get(version, &name(9)).unwrap().named.len(), 3_000);
    }

    #[test]
    fn what_was_found_before_a_change_is_not_given() {
        let (recent, version) = (Recent::default(), NamesVersion::default());
        recent.keep(version, &matcher("a"), &found(1), BYTES_MAX);
        let other = matcher("b");
        assert!(recent.get(version, &other).is_none());
        let reach = NamesVersion {
            reach: 1,
            ..version
        };
        assert!(
            recent.get(reach, &matcher("a")).is_none()
                && recent.get(version, &matcher("a")).is_some()
        );
        let later = NamesVersion {
            changes: 1,
            ..version
        };
        assert!(recent.get(later, &matcher("a")).is_none());
        recent.keep(later, &other, &found(1), BYTES_MAX);
        assert!(
            recent.get(later, &matcher("a")).is_none() && recent.get(version, &other).is_none()
        );
        assert!(recent.get(later, &other).is_some());
    }
}
