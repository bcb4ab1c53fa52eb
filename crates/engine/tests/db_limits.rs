//! Limits of series and queries: refused in words, counted, and harmless.

use crate::db_support::{DIR, append, last_wins, options, sample, timestamps};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, ErrorKind, Excess, Options, Refusal};
use latewood_model::SeriesOptions;
use latewood_model::limits::KEY_BYTES_MAX;
use std::path::Path;

const TOO_MANY: Refusal = Refusal::Limit(Excess::Series);

fn open(disk: &SimDisk, series_max: u64) -> Db {
    let options = Options {
        series_max,
        ..options(2)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap()
}

#[test]
fn no_way_makes_more_series_than_there_may_be() {
    let disk = SimDisk::new();
    let db = open(&disk, 2);
    let batch = [
        sample(b"a", 1, 1.0),
        sample(b"b", 1, 1.0),
        sample(b"c", 1, 1.0),
    ];
    let outcomes = append(&db, &batch).unwrap();
    let refused = outcomes.iter().filter(|outcome| **outcome == Err(TOO_MANY));
    assert_eq!(refused.count(), 1, "{outcomes:?}");
    let made: Vec<&[u8]> = batch.iter().map(|append| append.key).collect();
    let there: Vec<&[u8]> = made.into_iter().filter(|key| db.contains(key)).collect();
    assert_eq!(there.len(), 2);

    let plain = SeriesOptions::default();
    let dump = db.dump(there[0]).unwrap();
    let dump = latewood_engine::Dump::parse(&dump).unwrap();
    let refused = [
        db.create(b"d", &plain).unwrap_err().kind(),
        db.copy(there[0], b"d", false).unwrap_err().kind(),
        db.restore(b"d", dump, None, false).unwrap_err().kind(),
    ];
    assert_eq!(refused, [ErrorKind::Limit; 3]);
    assert!(!db.contains(b"d"));
    assert_eq!(db.refused().series.count, 4);
    // Existing series accept samples; removing one allows a new one.
    append(&db, &[sample(there[0], 2, 2.0)]).unwrap();
    assert_eq!(timestamps(&db, there[0]), [1, 2]);
    db.remove(&[there[1]]).unwrap();
    assert_eq!(append(&db, &[sample(b"d", 1, 1.0)]).unwrap(), [Ok(1)]);
    db.set_series_max(0);
    assert_eq!(append(&db, &[sample(b"e", 1, 1.0)]).unwrap(), [Ok(1)]);
    drop(db);
    // More than there may be come back.
    let db = open(&disk, 1);
    assert_eq!(db.stats().series, 3);
    assert_eq!(
        append(&db, &[sample(b"f", 1, 1.0)]).unwrap(),
        [Err(TOO_MANY)]
    );
    assert_eq!(append(&db, &[sample(b"e", 2, 1.0)]).unwrap(), [Ok(2)]);
}

#[test]
fn keys_that_are_too_long_are_counted() {
    let disk = SimDisk::new();
    let db = open(&disk, 0);
    let long = vec![b'k'; KEY_BYTES_MAX + 1];
    let plain = SeriesOptions::default();
    let too_long = Append {
        create: Create::With(&plain),
        ..sample(&long, 1, 1.0)
    };
    assert!(append(&db, &[too_long, sample(b"k", 1, 1.0)]).unwrap()[0].is_err());
    assert!(db.create(&long, &plain).is_err());
    assert!(db.copy(b"k", &long, false).is_err());
    assert!(db.rename(b"k", &long, false).is_err());
    assert_eq!(db.refused().keys.count, 4);
    assert_eq!(db.stats().series, 1);
}

#[test]
fn a_query_about_too_many_series_is_refused() {
    let db = open(&SimDisk::new(), 0);
    assert!(db.check_query(1_000_000).is_ok());
    db.set_query_series_max(10);
    assert!(db.check_query(10).is_ok());
    let refused = db.check_query(11).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Limit);
    assert_eq!(
        refused.to_string(),
        "the filter matches 11 series, more than the 10 that max-query-series allows"
    );
    let refused = db.refused().queries;
    assert_eq!(refused.count, 1);
    assert!(refused.last_ms.is_some() && db.refused().series.last_ms.is_none());
}
