//! Removal and expiry of the two ends of a rule.

use crate::db_rules::support::{
    DESTINATION, SOURCE, add, everything, held, kept, spec, tie, tie_by,
};
use crate::db_support::{DIR, append, last_wins, open, options, sample};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::query::Columns;
use latewood_engine::{Append, Create, Db, Defaults, DropEmpty, ErrorKind, ExpireIf, Options};
use latewood_model::{Aggregator, CompactionPolicy, Sample, SeriesOptions};
use std::path::Path;
use std::sync::Arc;

fn open_at(disk: &SimDisk, clock: &Arc<SimClock>) -> Db {
    let env = Env {
        clock: clock.clone(),
        ..disk.env(1)
    };
    Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap()
}

/// Sets the retention of a series.
fn keep(db: &Db, key: &[u8], retention_ms: u64) {
    let change = |options: &mut SeriesOptions| options.retention_ms = retention_ms;
    db.alter_with(key, change).unwrap();
    db.set_drop_empty(DropEmpty::All);
}

/// Three series that are written to, so that data agree on the time.
fn write_fleet(db: &Db, clock: &SimClock) {
    for key in [b"f1", b"f2", b"f3"] {
        append(db, &[sample(key, clock.now_ms(), 1.0)]).unwrap();
    }
}

/// However a source goes, what closed before is in its destination.
#[test]
fn a_source_that_goes_leaves_what_closed() {
    type End = fn(&Db, &SimClock);
    fn expire(db: &Db, clock: &SimClock) {
        db.expire(SOURCE, clock.now_ms() + 10, ExpireIf::default())
            .unwrap();
        clock.advance_ms(10);
    }
    let ends: [(&str, End); 9] = [
        ("removed", |db, _| {
            assert_eq!(db.remove(&[SOURCE]).unwrap().0, 1);
        }),
        ("renamed onto", |db, _| {
            append(db, &[sample(b"x", 1, 1.0)]).unwrap();
            assert!(db.rename(b"x", SOURCE, true).unwrap().0);
        }),
        ("copied onto", |db, _| {
            append(db, &[sample(b"x", 1, 1.0)]).unwrap();
            assert!(db.copy(b"x", SOURCE, true).unwrap().0);
        }),
        ("expired at once", |db, _| {
            db.expire(SOURCE, 0, ExpireIf::default()).unwrap();
        }),
        ("swept", |db, clock| {
            expire(db, clock);
            db.maintain().unwrap();
        }),
        ("expired and written to", |db, clock| {
            expire(db, clock);
            let batch = [sample(SOURCE, 7, 7.0), sample(SOURCE, 6, 8.0)];
            let outcomes = append(db, &batch).unwrap();
            assert_eq!(outcomes, [Ok(7), Ok(6)]);
        }),
        ("expired and incremented", |db, clock| {
            expire(db, clock);
            let outcome = db.increment(SOURCE, 1.0, Some(7), Create::Defaults);
            assert_eq!(outcome.unwrap().0, Ok(7));
        }),
        ("expired and created", |db, clock| {
            expire(db, clock);
            db.create(SOURCE, &SeriesOptions::default()).unwrap();
        }),
        ("expired and copied onto", |db, clock| {
            append(db, &[sample(b"x", 1, 1.0)]).unwrap();
            expire(db, clock);
            assert!(db.copy(b"x", SOURCE, false).unwrap().0);
        }),
    ];
    for (name, end) in ends {
        let (disk, clock) = (SimDisk::new(), Arc::default());
        let db = open_at(&disk, &clock);
        tie(&db);
        add(&db, &[(5, 1.0), (15, 2.0), (25, 4.0)]);
        end(&db, &clock);
        assert_eq!(kept(&db), [(0, 1.0), (10, 2.0)], "{name}");
        assert_eq!(db.source_of(DESTINATION).unwrap(), None, "{name}");
        let db = open_at(&disk.kill(), &clock);
        assert_eq!(kept(&db), [(0, 1.0), (10, 2.0)], "{name}, restarted");
    }
}

/// An end that expired is not there, though nothing has removed it yet.
#[test]
fn an_end_that_expired_has_no_rule() {
    let sums = spec(Aggregator::Sum, 10, 0);
    for gone in [SOURCE, DESTINATION] {
        let (disk, clock) = (SimDisk::new(), Arc::default());
        let db = open_at(&disk, &clock);
        tie(&db);
        let at_ms = clock.now_ms() + 10;
        db.expire(gone, at_ms, ExpireIf::default()).unwrap();
        clock.advance_ms(10);
        if gone == SOURCE {
            assert_eq!(db.source_of(DESTINATION).unwrap(), None);
            db.create(b"other", &SeriesOptions::default()).unwrap();
            db.create_rule(b"other", DESTINATION, sums).unwrap();
        } else {
            assert_eq!(db.rules_of(SOURCE).unwrap(), []);
        }
        let error = db.delete_rule(SOURCE, DESTINATION).unwrap_err();
        let expected = if gone == SOURCE {
            ErrorKind::NoSuchKey
        } else {
            ErrorKind::NoSuchRule
        };
        assert_eq!(error.kind(), expected);
    }
}

/// A source that expired gives its destination up for good once another has
/// it: a crash before it is swept gives the rule back to nobody.
#[test]
fn an_expired_source_takes_no_destination_back() {
    for other in [&b"a"[..], b"b", b"c", b"d"] {
        let (disk, clock) = (SimDisk::new(), Arc::default());
        let db = open_at(&disk, &clock);
        tie(&db);
        db.create(other, &SeriesOptions::default()).unwrap();
        db.expire(SOURCE, clock.now_ms() + 10, ExpireIf::default())
            .unwrap();
        clock.advance_ms(10);
        let sums = spec(Aggregator::Sum, 10, 0);
        db.create_rule(other, DESTINATION, sums).unwrap();
        let db = open_at(&disk.kill(), &clock);
        db.maintain().unwrap();
        let source = db.source_of(DESTINATION).unwrap();
        assert_eq!(source.as_deref(), Some(other));
        append(&db, &[sample(other, 5, 1.0), sample(other, 15, 2.0)]).unwrap();
        assert_eq!(kept(&db), [(0, 1.0)]);
    }
}

/// A shorter retention hides samples; the open bucket still counts them.
#[test]
fn a_shorter_retention_leaves_the_open_bucket_whole() {
    for retention_ms in [0, 40] {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        let source = |retention_ms| SeriesOptions {
            retention_ms,
            ..SeriesOptions::default()
        };
        db.create(SOURCE, &source(retention_ms)).unwrap();
        db.create(DESTINATION, &SeriesOptions::default()).unwrap();
        let sums = spec(Aggregator::Sum, 100, 0);
        db.create_rule(SOURCE, DESTINATION, sums).unwrap();
        add(&db, &[(5, 1.0), (50, 2.0), (90, 4.0)]);
        db.alter(SOURCE, &source(20)).unwrap();
        assert_eq!(held(&db, SOURCE), [(90, 4.0)]);
        add(&db, &[(120, 8.0)]);
        assert_eq!(kept(&db), [(0, 7.0)], "from {retention_ms}");
        db.alter(SOURCE, &source(1_000)).unwrap();
        assert_eq!(held(&db, SOURCE), [(120, 8.0)], "nothing comes back");
        let db = open(&disk.kill()).unwrap();
        assert_eq!(held(&db, SOURCE), [(120, 8.0)]);
        assert_eq!(kept(&db), [(0, 7.0)]);
    }
}

/// Adding to a source costs a record, not a walk over its buckets.
#[test]
fn an_increment_of_a_source_works_nothing_off() {
    let db = open(&SimDisk::new()).unwrap();
    tie(&db);
    add(&db, &[(5, 1.0), (15, 2.0)]);
    let before = db.position().0;
    let outcome = db.increment(SOURCE, 1.0, Some(25), Create::Never);
    assert_eq!(outcome.unwrap().0, Ok(25));
    assert_eq!(db.position().0, before + 1);
    assert_eq!(kept(&db), [(0, 1.0), (10, 2.0)]);
    let outcome = db.increment(DESTINATION, 1.0, Some(10), Create::Never);
    assert_eq!(outcome.unwrap().0, Ok(10));
    assert_eq!(kept(&db), [(0, 1.0), (10, 3.0)]);
}

/// A retention that has taken nothing yet keeps nobody from deleting.
#[test]
fn deleting_the_first_bucket_waits_for_no_retention() {
    let db = open(&SimDisk::new()).unwrap();
    let source = SeriesOptions {
        retention_ms: 1_000,
        ..SeriesOptions::default()
    };
    db.create(SOURCE, &source).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    // The first bucket begins long before time does.
    let sums = spec(Aggregator::Sum, 5_000, 100);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    add(&db, &[(5, 1.0), (6, 2.0), (500, 4.0)]);
    assert_eq!(db.delete_range(SOURCE, 0, 5).unwrap().0, 1);
    assert_eq!(kept(&db), [(0, 2.0)]);
    add(&db, &[(1_500, 1.0)]);
    let error = db.delete_range(SOURCE, 0, 600).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
}

/// Reads over many series find destinations as fresh as reads of one.
#[test]
fn reads_over_many_series_find_what_closed() {
    let db = open(&SimDisk::new()).unwrap();
    tie(&db);
    let found: Vec<_> = db.select(&[]).unwrap();
    let destination = found
        .iter()
        .position(|one| *one.key == *DESTINATION)
        .unwrap();
    add(&db, &[(5, 1.0), (15, 2.0)]);
    let newest = db.latest(found.clone(), None, None).unwrap();
    assert_eq!(newest[destination].sample, Some(Sample::new(0, 1.0)));
    add(&db, &[(25, 4.0)]);
    let views = db.views(&found, &everything(None), false);
    let view = views[destination].view.clone();
    let mut rows = Columns::default();
    view.run(&everything(None), &mut rows).unwrap();
    assert_eq!(rows.timestamps, [0, 10]);
}

/// A deletion also removes what has expired; where nothing has, no bucket is
/// left alone for it, not even the first, which begins before the epoch.
#[test]
fn a_deletion_where_nothing_expired_leaves_no_bucket_behind() {
    let db = open(&SimDisk::new()).unwrap();
    let sums = spec(Aggregator::Sum, 10_000, 5_000);
    tie_by(&db, sums);
    let short = SeriesOptions {
        retention_ms: 5_000,
        ..SeriesOptions::default()
    };
    db.alter(SOURCE, &short).unwrap();
    add(&db, &[(10, 1.0), (50, 2.0)]);
    db.delete_range(SOURCE, 50, 50).unwrap();
    add(&db, &[(5_010, 4.0)]);
    assert_eq!(kept(&db), [(0, 1.0)]);
    add(&db, &[(3_000, 7.0)]);
    assert_eq!(kept(&db), [(0, 8.0)]);
}

/// The rows of a destination may be far older than the samples that they are made of.
#[test]
fn a_destination_ends_after_its_sources() {
    let (disk, clock) = (SimDisk::new(), Arc::default());
    let db = open_at(&disk, &clock);
    tie(&db);
    db.create(b"next", &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(DESTINATION, b"next", sums).unwrap();
    add(&db, &[(5, 1.0), (15, 2.0), (25, 4.0)]);
    db.settle().unwrap();
    for key in [DESTINATION, b"next"] {
        keep(&db, key, 1_000);
    }
    write_fleet(&db, &clock);
    db.maintain().unwrap();
    assert_eq!(db.len(), 6);
    keep(&db, SOURCE, 1_000);
    for left in [5, 4, 3] {
        db.maintain().unwrap();
        // The walk may meet a source before what it writes to.
        assert!(db.len() <= left, "{} series, not {left}", db.len());
    }
    let db = open_at(&disk.kill(), &clock);
    assert_eq!(db.len(), 3);
}

/// Where the source comes back, its rule goes on with the rows.
#[test]
fn a_source_stays_as_long_as_its_rows() {
    let (disk, clock) = (SimDisk::new(), Arc::default());
    let db = open_at(&disk, &clock);
    tie(&db);
    db.create(b"next", &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 20, 0);
    db.create_rule(DESTINATION, b"next", sums).unwrap();
    add(&db, &[(5, 1.0), (15, 2.0), (25, 4.0), (35, 8.0)]);
    db.settle().unwrap();
    keep(&db, SOURCE, 1_000);
    keep(&db, DESTINATION, 1_000);
    write_fleet(&db, &clock);
    for _ in 0..3 {
        db.maintain().unwrap();
    }
    assert!(db.contains(SOURCE), "there are rows of its rows");
    let now = clock.now_ms() / 100 * 100;
    add(&db, &[(now, 8.0), (now + 10, 16.0)]);
    assert_eq!(kept(&db).last(), Some(&(now, 8.0)));
    keep(&db, b"next", 1_000);
    clock.advance_ms(86_400_000);
    write_fleet(&db, &clock);
    for _ in 0..4 {
        db.maintain().unwrap();
    }
    for key in [SOURCE, DESTINATION, b"next"] {
        assert!(!db.contains(key), "{key:?}");
    }
}

/// Destinations of a policy that never got a row go behind their source.
#[test]
fn what_a_policy_made_goes_with_its_source() {
    let (disk, clock) = (SimDisk::new(), Arc::new(SimClock::default()));
    let env = Env {
        clock: clock.clone(),
        ..disk.env(1)
    };
    let defaults = Defaults {
        compactions: CompactionPolicy::parse("sum:30d:0;max:30d:1d").unwrap(),
        ..last_wins()
    };
    let options = Options {
        retention_ms: 86_400_000,
        ..options(2)
    };
    let db = Db::open(&env, Path::new(DIR), options, defaults).unwrap();
    let plain = SeriesOptions::default();
    let create = Create::Sent(&plain);
    let sent = |key, at| Append {
        create,
        ..sample(key, at, 1.0)
    };
    append(&db, &[sent(b"pod", clock.now_ms())]).unwrap();
    assert_eq!(db.len(), 3);
    clock.advance_ms(3 * 86_400_000);
    let fleet: [&[u8]; 3] = [b"f1", b"f2", b"f3"];
    let batch = fleet.map(|key| sent(key, clock.now_ms()));
    append(&db, &batch).unwrap();
    while db.merge_step().unwrap() {}
    for _ in 0..2 {
        db.maintain().unwrap();
    }
    // Their own destinations are empty too, and wait for a row.
    assert_eq!(db.len(), 9);
    assert!(!db.contains(b"pod"));
}

/// Where a source has nothing, deleting there changes nothing that others wrote.
#[test]
fn a_deletion_beyond_the_newest_sample_leaves_the_rows_of_others() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    tie(&db);
    add(&db, &[(5, 1.0), (15, 2.0)]);
    append(&db, &[sample(DESTINATION, 100, 7.0)]).unwrap()[0].unwrap();
    assert_eq!(db.delete_range(SOURCE, 50, 200).unwrap().0, 0);
    assert_eq!(kept(&db), [(0, 1.0), (100, 7.0)]);
    drop(db);
    let db = open(&disk).unwrap();
    assert_eq!(kept(&db), [(0, 1.0), (100, 7.0)]);
}
