//! What is kept of changes is bounded, for a series and for all readers together, and nothing is lost
//! by that.

use super::{READER, labelled, of_m, watch};
use crate::db_support::{append, open, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Change, Create, Db, ReaderId, Watcher};
use std::collections::BTreeMap;

/// What is kept of all readers together.
const ALL_MAX: usize = 512 * 1024;

fn covers(changes: &[Change], at: i64) -> bool {
    let mut spans = changes.iter().map(|change| change.from..=change.to);
    spans.any(|span| span.contains(&at))
}

#[test]
fn changes_of_a_series_are_joined_and_a_very_late_one_stays_apart() {
    let db = open(&SimDisk::new()).unwrap();
    watch(&db, vec![of_m()]);
    db.create(b"a", &labelled(&[(b"metric", b"m")])).unwrap();
    append(&db, &[sample(b"a", 1_000_000, 1.0)]).unwrap();
    db.begin_evaluation(READER, 1_000_000).unwrap();
    let late: Vec<i64> = [5]
        .into_iter()
        .chain((0..200).map(|n| 900_000 + 70 * n))
        .collect();
    for &at in &late {
        append(&db, &[sample(b"a", at, 1.0)]).unwrap();
        assert_eq!(db.readers()[0].pending, 1, "of one series");
    }
    let first = db.drain(READER).unwrap().changes;
    assert!(first.len() <= 4, "{first:?}");
    assert!(late.iter().all(|&at| covers(&first, at)), "{first:?}");
    assert!(!covers(&first, 6) && !covers(&first, 899_999), "{first:?}");
    // What was drained stays as it is, whatever meets it.
    append(&db, &[sample(b"a", 900_001, 1.0)]).unwrap();
    assert_eq!(db.readers()[0].pending, 2);
    let second = db.drain(READER).unwrap();
    assert_eq!(second.changes[..first.len()], first);
    append(&db, &[sample(b"a", 900_002, 1.0)]).unwrap();
    db.done(READER, second.position).unwrap();
    let last = db.drain(READER).unwrap().changes;
    let spans: Vec<_> = last.iter().map(|change| (change.from, change.to)).collect();
    assert_eq!(spans, [(900_002, 900_002)]);
}

#[test]
fn a_series_that_changes_its_look_twice_is_told_under_each() {
    let db = open(&SimDisk::new()).unwrap();
    watch(&db, vec![of_m()]);
    let zone = |zone: &[u8]| labelled(&[(b"metric", b"m"), (b"zone", zone)]);
    db.create(b"a", &zone(b"1")).unwrap();
    append(&db, &[sample(b"a", 10, 1.0)]).unwrap();
    db.begin_evaluation(READER, 100).unwrap();
    for name in [b"2", b"1", b"2"] {
        db.alter(b"a", &zone(name)).unwrap();
        append(&db, &[sample(b"a", 20, 1.0)]).unwrap();
        db.readers();
    }
    let changes = db.drain(READER).unwrap().changes;
    let mut told: BTreeMap<_, usize> = BTreeMap::new();
    for change in &changes {
        let series = change.series.as_ref().unwrap();
        let look = (series.labels.as_bytes().to_vec(), series.is_gone);
        *told.entry(look).or_default() += 1;
    }
    assert_eq!(told.len(), 4, "two looks that came and went: {changes:?}");
}

#[test]
fn very_many_that_look_the_same_are_told_whole_once() {
    const SERIES: i64 = 3_000;
    let db = open(&SimDisk::new()).unwrap();
    watch(&db, vec![of_m()]);
    db.begin_evaluation(READER, SERIES).unwrap();
    let alike = labelled(&[(b"__name__", b"x"), (b"metric", b"m")]);
    let create = Create::With(&alike);
    for number in 0..SERIES {
        let key = format!("s{number}");
        for at in [number, SERIES + 1] {
            let one = Append {
                create,
                ..sample(key.as_bytes(), at, 1.0)
            };
            append(&db, &[one]).unwrap();
        }
    }
    let changes = db.drain(READER).unwrap().changes;
    assert_eq!(untold(&changes, SERIES), None);
    let count = changes.len();
    assert!(count <= SERIES as usize + 1, "{count}");
}

/// Which of `series`, each with a change at its number, no change tells.
fn untold(changes: &[Change], series: i64) -> Option<i64> {
    let mut of_series: BTreeMap<&[u8], Vec<&Change>> = BTreeMap::new();
    for change in changes {
        let key = change.series.as_ref().map(|series| &*series.key);
        of_series
            .entry(key.unwrap_or_default())
            .or_default()
            .push(change);
    }
    let is_told = |number: i64| {
        let key = format!("s{number}");
        [key.as_bytes(), b""].iter().any(|key| {
            let mut changes = of_series.get(*key).into_iter().flatten();
            changes.any(|change| (change.from..=change.to).contains(&number))
        })
    };
    (0..series).find(|&number| !is_told(number))
}

fn write(db: &Db, series: std::ops::Range<i64>, value: f64) {
    let options = labelled(&[(b"metric", b"m")]);
    let create = Create::With(&options);
    let keys: Vec<_> = series
        .map(|number| (number, format!("s{number}")))
        .collect();
    for keys in keys.chunks(500) {
        let batch = keys.iter().map(|(number, key)| Append {
            create,
            ..sample(key.as_bytes(), *number, value)
        });
        append(db, &batch.collect::<Vec<_>>()).unwrap();
    }
}

#[test]
fn all_readers_together_keep_no_more_than_the_bound_and_lose_nothing() {
    const SERIES: i64 = 6_000;
    const READERS: usize = 100;
    let db = open(&SimDisk::new()).unwrap();
    let readers: Vec<_> = (0..READERS as u64).map(ReaderId).collect();
    let watchers = readers.iter().map(|&reader| Watcher {
        reader,
        selectors: vec![of_m()],
    });
    db.watch(watchers.collect()).unwrap();
    write(&db, 0..SERIES, 1.0);
    let all: Vec<_> = readers.iter().map(|&reader| (reader, SERIES)).collect();
    db.begin_evaluations(&all).unwrap();
    let pending = || {
        let states = db.readers();
        states.iter().map(|state| state.pending).collect::<Vec<_>>()
    };
    write(&db, 0..SERIES / 2, 2.0);
    assert_eq!(
        pending(),
        [SERIES as usize / 2; READERS],
        "each series apart"
    );
    let first = db.drain(readers[0]).unwrap();
    write(&db, SERIES / 2..SERIES, 2.0);
    let kept = pending();
    assert!(kept.iter().sum::<usize>() <= ALL_MAX, "{kept:?}");
    assert!(
        kept.contains(&(SERIES as usize)),
        "some are not joined: {kept:?}"
    );
    for &reader in &readers {
        let changes = db.drain(reader).unwrap().changes;
        assert_eq!(untold(&changes, SERIES), None, "of {reader:?}");
        if reader == readers[0] {
            let count = first.changes.len();
            assert_eq!(changes[..count], first.changes, "what was drained stays");
        }
    }
    // Nothing that is drained is done: now there is no place for what comes apart.
    write(&db, 0..SERIES, 3.0);
    let kept: usize = pending().iter().sum();
    assert!(kept <= ALL_MAX + ALL_MAX / 4, "{kept}");
    for &reader in &readers {
        let drained = db.drain(reader).unwrap();
        assert_eq!(untold(&drained.changes, SERIES), None, "of {reader:?}");
        db.done(reader, drained.position).unwrap();
    }
    assert_eq!(pending(), [0; READERS]);
}
