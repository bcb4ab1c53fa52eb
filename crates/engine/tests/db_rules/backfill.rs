//! Rules with BACKFILL: the history of a source, in slices, before reads, through restarts.

use crate::db_rules::support::{
    DESTINATION, SOURCE, add, closed, everything, kept, last, latest, query, spec,
};
use crate::db_support::{DIR, append, last_wins, options, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::io::waiting::{no_wait, until};
use latewood_engine::{Db, ErrorKind, Options, RangeQuery, RuleSpec};
use latewood_model::{Aggregator, SeriesOptions};
use std::path::Path;
use std::time::Instant;

fn sums() -> RuleSpec {
    spec(Aggregator::Sum, 10, 0)
}

/// Slices of a few samples.
fn open_slicing(disk: &SimDisk) -> Db {
    let options = Options {
        backfill_samples: 8,
        ..options(2)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap()
}

/// A source with a sample every 5 ms from 0 to 995, in files, and a rule of sums over 10 ms.
fn with_history(db: &Db) {
    let small = SeriesOptions {
        chunk_size_bytes: 48,
        ..SeriesOptions::default()
    };
    db.create(SOURCE, &small).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let samples: Vec<(i64, f64)> = (0..200).map(|n| (n * 5, 1.0)).collect();
    add(db, &samples);
    db.flush().unwrap();
    db.create_rule_with_history(SOURCE, DESTINATION, sums())
        .unwrap();
}

fn left(db: &Db) -> (u64, Vec<(i64, i64)>) {
    let state = db.rule_states(SOURCE).unwrap().remove(0);
    (state.backfill_buckets, state.backfill)
}

fn rows(db: &Db, from: i64, to: i64) -> Vec<(i64, f64)> {
    let span = RangeQuery {
        from,
        to,
        ..everything(None)
    };
    query(db, DESTINATION, &span).unwrap()
}

#[test]
fn the_history_is_computed_slice_by_slice_from_the_oldest_on() {
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    assert_eq!(left(&db), (99, vec![(0, 989)]));
    let mut before = 99;
    let mut slices = 0;
    while db.backfill_step().unwrap() {
        let (buckets, spans) = left(&db);
        if buckets > 0 {
            assert!(buckets < before && spans.len() == 1 && spans[0].1 == 989);
        }
        (before, slices) = (buckets, slices + 1);
    }
    assert!(slices > 4, "{slices}");
    assert_eq!(left(&db), (0, vec![]));
    assert_eq!(kept(&db), closed(&db, sums()));
    assert_eq!(kept(&db).len(), 99);
    assert_eq!(last(&db, DESTINATION), Some((990, 2.0)), "it is open");
    add(&db, &[(1_000, 7.0)]);
    assert_eq!(kept(&db).last(), Some(&(990, 2.0)));
}

#[test]
fn a_reader_computes_what_it_asks_for_and_no_more() {
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    assert_eq!(rows(&db, 500, 519), [(500, 2.0), (510, 2.0)]);
    assert_eq!(left(&db), (97, vec![(0, 499), (520, 989)]));
    let newest = db.last_sample(DESTINATION).unwrap().unwrap();
    assert_eq!(newest.timestamp, 980);
    let (_, spans) = left(&db);
    assert!(spans[1].1 < 980 && spans[1].1 > 900, "{spans:?}");
    // LATEST is of the open bucket.
    assert_eq!(latest(&db, DESTINATION).len(), 100);
    assert_eq!(left(&db).0, 0);
}

#[test]
fn a_part_is_never_read_as_the_whole() {
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    let all = everything(None);
    let held = no_wait();
    let refused = query(&db, DESTINATION, &all).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away);
    assert_eq!(
        refused.to_string(),
        "the rows from 0 to 989 are still being computed from the history of the source: ask \
         again later"
    );
    assert_eq!(left(&db).0, 99, "nothing was begun");
    // One slice is enough for these.
    assert_eq!(rows(&db, 500, 500), [(500, 2.0)]);
    drop(held);
    let over = until(Instant::now());
    let refused = query(&db, DESTINATION, &all).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away);
    let begun = left(&db).0;
    assert!(begun < 98 && begun > 50, "a slice was computed: {begun}");
    assert!(db.copy(DESTINATION, b"copy", false).is_err());
    drop(over);
    assert_eq!(query(&db, DESTINATION, &all).unwrap().len(), 99);
}

#[test]
fn a_restart_goes_on_where_it_was() {
    let mut disk = SimDisk::new();
    let db = open_slicing(&disk);
    with_history(&db);
    assert!(db.backfill_step().unwrap());
    let before = left(&db);
    drop(db);
    // From the log.
    disk = disk.kill();
    let db = open_slicing(&disk);
    assert_eq!(left(&db), before);
    assert!(db.backfill_step().unwrap());
    assert!(left(&db).0 < before.0);
    // From files.
    db.flush().unwrap();
    let before = left(&db);
    db.close().unwrap();
    let db = open_slicing(&disk);
    assert_eq!(left(&db), before);
    while db.backfill_step().unwrap() {}
    assert_eq!(kept(&db), closed(&db, sums()));
}

#[test]
fn late_samples_and_deletions_meanwhile_count() {
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    assert!(db.backfill_step().unwrap());
    add(&db, &[(3, 5.0), (503, 5.0), (1_200, 1.0)]);
    db.delete_range(SOURCE, 700, 729).unwrap();
    while db.backfill_step().unwrap() {}
    assert_eq!(kept(&db), closed(&db, sums()));
    assert_eq!(rows(&db, 0, 0), [(0, 7.0)]);
    assert_eq!(rows(&db, 700, 739), [(730, 2.0)]);
    assert_eq!(rows(&db, 990, 990), [(990, 2.0)]);
}

#[test]
fn a_row_of_a_user_stays() {
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    append(&db, &[sample(DESTINATION, 300, -1.0)]).unwrap()[0].unwrap();
    db.delete_range(DESTINATION, 400, 409).unwrap();
    db.settle().unwrap();
    assert_eq!(left(&db).0, 0);
    assert_eq!(rows(&db, 290, 310), [(290, 2.0), (300, -1.0), (310, 2.0)]);
    assert_eq!(rows(&db, 400, 409), []);
}

#[test]
fn the_whole_history_is_there_before_its_source_goes_and_a_rule_that_ends_leaves_it() {
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    assert!(db.backfill_step().unwrap());
    db.remove(&[SOURCE]).unwrap();
    assert_eq!(kept(&db).len(), 99);
    let db = open_slicing(&SimDisk::new());
    with_history(&db);
    assert_eq!(rows(&db, 0, 9), [(0, 2.0)]);
    db.delete_rule(SOURCE, DESTINATION).unwrap();
    assert_eq!(kept(&db), [(0, 2.0)]);
    assert!(!db.backfill_step().unwrap());
}

/// What has expired since the rule was made counts until it is computed.
#[test]
fn history_that_expires_meanwhile_is_kept_for_the_rule() {
    let db = open_slicing(&SimDisk::new());
    let small = |retention_ms| SeriesOptions {
        chunk_size_bytes: 48,
        retention_ms,
        ..SeriesOptions::default()
    };
    db.create(SOURCE, &small(500)).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    // The rows of an earlier rule.
    let rows = [480, 490, 500].map(|at| sample(DESTINATION, at, 7.0));
    assert!(append(&db, &rows).unwrap().iter().all(Result::is_ok));
    let samples: Vec<(i64, f64)> = (0..200).map(|n| (n * 5, 1.0)).collect();
    add(&db, &samples);
    db.create_rule_with_history(SOURCE, DESTINATION, sums())
        .unwrap();
    add(&db, &[(1_400, 1.0)]);
    db.flush().unwrap();
    db.merge().unwrap();
    // It is about to be deleted for good.
    db.alter(SOURCE, &small(0)).unwrap();
    // Of a bucket that had lost samples when the rule was made the row stays.
    let rows = kept(&db);
    assert_eq!(rows[..3], [(480, 7.0), (490, 7.0), (500, 2.0)]);
    assert_eq!(rows.last(), Some(&(990, 2.0)));
    assert_eq!(rows.len(), 52);
}

#[test]
fn a_source_without_closed_buckets_has_no_history() {
    let db = open_slicing(&SimDisk::new());
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    db.create_rule_with_history(SOURCE, DESTINATION, sums())
        .unwrap();
    assert_eq!(left(&db), (0, vec![]));
    db.delete_rule(SOURCE, DESTINATION).unwrap();
    add(&db, &[(3, 1.0)]);
    db.create_rule_with_history(SOURCE, DESTINATION, sums())
        .unwrap();
    assert_eq!((left(&db), kept(&db)), ((0, vec![]), vec![]));
    assert_eq!(last(&db, DESTINATION), Some((0, 1.0)));
    add(&db, &[(11, 1.0)]);
    assert_eq!(kept(&db), [(0, 1.0)]);
}
