//! Rules over a source with a damaged chunk: rows that need the chunk are reported
//! and not shown, all others are computed.

use crate::db_rules::support::{DESTINATION, SOURCE, add, everything, kept, query, spec, tie};
use crate::db_support::{DIR, append, last_wins, open, options, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::query::Columns;
use latewood_engine::{
    AppendTo, Create, Db, Durability, Error, ErrorKind, KeyHook, NoticeHook, Options, RangeQuery,
    Refusal, RuleSpec, Scratch,
};
use latewood_model::{Aggregator, SeriesOptions};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

/// The source has a sample each millisecond up to here; its first chunk ends
/// before half of that.
const NEWEST: i64 = 3_999;
/// A timestamp in the damaged chunk, and one in a chunk that is whole.
const LOST: i64 = 55;
pub(crate) const WHOLE: i64 = 3_955;

fn block(disk: &SimDisk) -> PathBuf {
    let dir = Path::new(DIR).join("blocks");
    let names = disk.env(1).disk.list(&dir).unwrap();
    assert_eq!(names.len(), 1);
    dir.join(&names[0])
}

/// A disk whose one block holds the source.
fn flushed() -> SimDisk {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let samples: Vec<_> = (0..=NEWEST)
        .map(|at| sample(SOURCE, at, (at as f64).sqrt()))
        .collect();
    append(&db, &samples).unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    disk
}

/// Turns a bit of the first chunk of the block.
fn damage(disk: &SimDisk) {
    damage_at(disk, 200);
}

fn damage_at(disk: &SimDisk, offset: usize) {
    let path = block(disk);
    let mut bytes = disk.bytes(&path).unwrap();
    bytes[offset] ^= 1;
    disk.set_bytes(&path, bytes).unwrap();
}

/// The same disk, damaged in the index of the block, behind its chunks.
fn without_index(disk: &SimDisk) -> SimDisk {
    let len = disk.bytes(&block(disk)).unwrap().len();
    let damaged = (0..len).rev().map(|offset| {
        let other = disk.kill();
        damage_at(&other, offset);
        other
    });
    let mut found = damaged.filter(|disk| {
        let db = open(disk).unwrap();
        let read = query(&db, SOURCE, &everything(None));
        read.is_err_and(|error| error.to_string().contains("index"))
    });
    found.next().unwrap()
}

fn make_rule(db: &Db, rule: RuleSpec) {
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    db.create_rule(SOURCE, DESTINATION, rule).unwrap();
}

fn sums() -> RuleSpec {
    spec(Aggregator::Sum, 10, 0)
}

/// A source with a damaged chunk, a rule, and a late sample over the damage.
pub(crate) fn dirty() -> (SimDisk, Db) {
    let disk = flushed();
    damage(&disk);
    let db = open(&disk).unwrap();
    make_rule(&db, sums());
    add(&db, &[(LOST, 1.0)]);
    (disk, db)
}

pub(crate) fn between(from: i64, to: i64) -> RangeQuery {
    RangeQuery {
        from,
        to,
        ..everything(None)
    }
}

fn rows(db: &Db, from: i64, to: i64) -> Vec<(i64, f64)> {
    query(db, DESTINATION, &between(from, to)).unwrap()
}

pub(crate) fn says(error: Error, word: &str) {
    assert_eq!(error.kind(), ErrorKind::Corrupt);
    assert!(error.to_string().contains(word), "{error}");
}

/// The error names the source, and says that something is damaged.
fn is_told(error: Error) {
    says(error, "source");
}

fn refusal(db: &Db, from: i64, to: i64) -> Error {
    query(db, DESTINATION, &between(from, to)).unwrap_err()
}

fn is_refused(db: &Db, from: i64, to: i64) {
    is_told(refusal(db, from, to));
}

#[test]
fn other_buckets_are_computed_and_the_damaged_one_is_named() {
    let (_, db) = dirty();
    add(
        &db,
        &[(WHOLE, 1.0), (4_005, 2.0), (4_015, 4.0), (4_025, 8.0)],
    );
    is_refused(&db, 0, i64::MAX);
    is_refused(&db, 50, 50);
    assert_eq!(rows(&db, 0, 49), []);
    let buckets = RangeQuery {
        from: 3_950,
        to: 3_959,
        ..everything(Some(sums()))
    };
    let mut expected = query(&db, SOURCE, &buckets).unwrap();
    expected.extend([(4_000, 2.0), (4_010, 4.0)]);
    assert_eq!(rows(&db, 51, i64::MAX), expected);
    let newest = db.last_sample(DESTINATION).unwrap().unwrap();
    assert_eq!(newest.timestamp, 4_010);
    assert_eq!(db.stats().rules_failed, 1, "each bucket is tried once");
    let state = db.rule_states(SOURCE).unwrap().remove(0);
    assert_eq!(
        (state.dirty_buckets, &state.failed[..]),
        (0, &[(50, 59)][..])
    );
}

/// What lies behind a damaged index is not known; what is newer needs none.
#[test]
fn a_damaged_index_holds_up_no_newer_bucket() {
    let db = open(&without_index(&flushed())).unwrap();
    make_rule(&db, sums());
    add(
        &db,
        &[(LOST, 1.0), (WHOLE, 1.0), (4_005, 2.0), (4_015, 4.0)],
    );
    is_refused(&db, 50, 50);
    is_refused(&db, 3_950, 3_950);
    assert_eq!(rows(&db, 3_960, i64::MAX), [(4_000, 2.0)]);
}

/// Every aggregator does what it does over a source that is whole, where
/// nothing of the damage counts, and everywhere once the damage is deleted.
#[test]
fn the_rest_is_as_without_damage() {
    for aggregator in Aggregator::ALL {
        let disks = [flushed(), flushed()];
        damage(&disks[0]);
        let dbs = disks.each_ref().map(|disk| open(disk).unwrap());
        // Of what it takes.
        let value = |number: f64| match aggregator {
            Aggregator::CountNan => f64::NAN,
            _ => number,
        };
        let of = |samples: &[(i64, f64)]| -> Vec<(i64, f64)> {
            samples
                .iter()
                .map(|&(at, number)| (at, value(number)))
                .collect()
        };
        for db in &dbs {
            make_rule(db, spec(aggregator, 10, 3));
            add(
                db,
                &of(&[(LOST, 1.0), (WHOLE, 2.0), (4_003, 1.0), (4_020, 9.0)]),
            );
            add(db, &of(&[(3_700, 3.0), (4_004, 1.0), (4_041, 2.0)]));
        }
        let [damaged, whole] = &dbs;
        is_refused(damaged, 0, i64::MAX);
        // A number stays where NaN comes late.
        let at_least = if aggregator == Aggregator::CountNan {
            2
        } else {
            4
        };
        let recent = rows(whole, 3_000, i64::MAX);
        assert!(recent.len() >= at_least, "{aggregator:?}: {recent:?}");
        let newer = dbs.each_ref().map(|db| rows(db, 3_000, i64::MAX));
        assert_eq!(newer[0], newer[1], "{aggregator:?}");
        let error = damaged.delete_range(SOURCE, 0, 2_999).unwrap_err();
        assert!(error.to_string().contains("are deleted"), "{error}");
        assert_eq!(whole.delete_range(SOURCE, 0, 2_999).unwrap().0, 3_000);
        assert_eq!(kept(damaged), kept(whole), "{aggregator:?}");
    }
}

#[test]
fn the_series_and_their_rule_can_be_administered() {
    let (_, db) = dirty();
    add(&db, &[(4_005, 2.0), (4_015, 4.0)]);
    for key in [SOURCE, DESTINATION] {
        db.alter(key, &SeriesOptions::default()).unwrap();
    }
    assert_eq!(db.delete_range(DESTINATION, 4_000, 4_000).unwrap().0, 1);
    assert_eq!(db.delete_range(SOURCE, 4_005, 4_005).unwrap().0, 1);
    let error = db.delete_range(SOURCE, 10, 60).unwrap_err();
    assert!(error.to_string().contains("are deleted"), "{error}");
    is_refused(&db, 50, 60);
    db.delete_rule(SOURCE, DESTINATION).unwrap();
    assert_eq!(kept(&db), [], "a rule that is gone needs nothing");
}

#[test]
fn reads_of_many_series_tell_of_the_one() {
    let (_, db) = dirty();
    append(&db, &[sample(b"other", 1, 1.0)]).unwrap();
    let found = db.select(&[]).unwrap();
    is_told(db.latest(found.clone(), None, None).unwrap_err());
    is_told(db.last_sample(DESTINATION).unwrap_err());
    add(&db, &[(4_005, 2.0), (4_015, 4.0)]);
    assert_eq!(db.latest(found.clone(), None, None).unwrap().len(), 3);
    for (from, has_lost) in [(40, true), (3_000, false)] {
        let asked = between(from, i64::MAX);
        for one in db.views(&found, &asked, false) {
            let is_ours = *one.key == *DESTINATION;
            let run = one.view.run(&asked, &mut Columns::default());
            if &*one.key == SOURCE {
                continue;
            } else {
                assert_eq!(run.is_err(), is_ours && has_lost)
            }
            run.err().into_iter().for_each(is_told);
        }
    }
    is_told(db.copy(DESTINATION, b"copy", false).unwrap_err());
    is_told(db.dump(DESTINATION).unwrap_err());
}

/// LATEST tells of an open bucket that cannot be read.
#[test]
fn an_open_bucket_that_is_damaged_is_no_silence() {
    let disk = flushed();
    damage(&disk);
    let db = open(&disk).unwrap();
    make_rule(&db, spec(Aggregator::Last, 100_000, 0));
    add(&db, &[(4_005, 2.0)]);
    let asked = RangeQuery {
        latest: true,
        ..everything(None)
    };
    for found in db.views(&db.select(&[]).unwrap(), &asked, false) {
        let run = found.view.run(&asked, &mut Columns::default());
        assert_eq!(run.unwrap_err().kind(), ErrorKind::Corrupt);
    }
    assert!(db.view(DESTINATION, &asked).is_err());
    assert!(db.last_sample_latest(DESTINATION).is_err());
    assert_eq!(kept(&db), []);
}

#[test]
fn other_samples_of_a_batch_are_taken() {
    let (_, db) = dirty();
    let batch = [
        sample(b"a", 1, 1.0),
        sample(DESTINATION, 50, 1.0),
        sample(DESTINATION, 1_000, 1.0),
        sample(b"b", 1, 1.0),
    ];
    let damaged = Err(Refusal::Damaged);
    assert_eq!(
        append(&db, &batch).unwrap(),
        [Ok(1), damaged, Ok(1_000), Ok(1)]
    );
    let series = [b"a", DESTINATION, b"b"].map(|key| db.resolve(key).unwrap());
    let to = |one: usize, timestamp| AppendTo {
        series: &series[one],
        timestamp,
        value: 2.0,
        on_duplicate: None,
    };
    let mut scratch = Scratch::new();
    let batch = [to(0, 2), to(1, 50), to(1, 2_000), to(2, 2)];
    db.append_resolved(&batch, &mut scratch).unwrap();
    assert_eq!(scratch.outcomes(), [Ok(2), damaged, Ok(2_000), Ok(2)]);
    let increment = |at| db.increment(DESTINATION, 1.0, Some(at), Create::Never);
    assert_eq!(increment(3_000).unwrap().0, Ok(3_000));
    db.delete_range(DESTINATION, 60, i64::MAX).unwrap();
    assert_eq!(increment(3_000).unwrap().0, damaged, "of an unknown newest");
}

#[test]
fn a_restart_forgets_no_damage() {
    for is_flushed in [false, true] {
        let (mut disk, mut db) = dirty();
        add(&db, &[(4_005, 2.0), (4_015, 4.0)]);
        is_refused(&db, 0, i64::MAX);
        for round in 0..3 {
            if is_flushed {
                db.flush().unwrap();
            }
            disk = disk.kill();
            db = open(&disk).unwrap();
            is_refused(&db, 0, i64::MAX);
            assert_eq!(rows(&db, 60, i64::MAX), [(4_000, 2.0)], "round {round}");
        }
        let found = db.delete_range(SOURCE, 0, 2_999);
        assert_eq!(found.unwrap_err().kind(), ErrorKind::Corrupt);
        assert_eq!(kept(&db), [(4_000, 2.0)]);
        let db = open(&disk.kill()).unwrap();
        assert_eq!(kept(&db), [(4_000, 2.0)], "and no damage that is gone");
    }
}

/// What can be read again after a restart is computed then.
#[test]
fn a_block_that_is_mended_is_read_again() {
    for is_flushed in [false, true] {
        let (disk, db) = dirty();
        is_refused(&db, 0, i64::MAX);
        let path = block(&disk);
        if is_flushed {
            db.flush().unwrap();
        }
        drop(db);
        let mut bytes = disk.bytes(&path).unwrap();
        bytes[200] ^= 1;
        disk.set_bytes(&path, bytes).unwrap();
        let db = open(&disk).unwrap();
        let buckets = RangeQuery {
            from: 50,
            to: 59,
            ..everything(Some(sums()))
        };
        assert_eq!(kept(&db), query(&db, SOURCE, &buckets).unwrap());
    }
}

/// Damage holds up no retention, and is forgotten with the samples.
#[test]
fn damage_past_the_retention_is_over() {
    let (_, db) = dirty();
    let short = SeriesOptions {
        retention_ms: 5_000,
        ..SeriesOptions::default()
    };
    db.alter(SOURCE, &short).unwrap();
    is_refused(&db, 0, i64::MAX);
    add(&db, &[(5_050, 1.0)]);
    is_refused(&db, 0, i64::MAX);
    add(&db, &[(5_065, 2.0)]);
    assert_eq!(kept(&db), [(5_050, 1.0)]);
    db.settle().unwrap();
}

/// A database of these options, where the source is damaged, and another source
/// has a closed bucket.
fn beside_another(options: Options) -> (SimDisk, Db) {
    let disk = flushed();
    damage(&disk);
    let db = Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap();
    make_rule(&db, sums());
    let keys: Vec<Vec<u8>> = (0..8).map(|n| format!("s{n}").into_bytes()).collect();
    for key in &keys {
        let sums_of = [key, &b"-sums"[..]].concat();
        for key in [key, &sums_of] {
            db.create(key, &SeriesOptions::default()).unwrap();
        }
        db.create_rule(key, &sums_of, sums()).unwrap();
    }
    add(&db, &[(LOST, 1.0)]);
    for key in &keys {
        append(&db, &[sample(key, 5, 1.0), sample(key, 15, 1.0)]).unwrap();
    }
    (disk, db)
}

#[test]
fn other_sources_are_worked_off() {
    let wrote = Arc::new(Mutex::new(Vec::new()));
    let hears = wrote.clone();
    let (_, db) = beside_another(Options {
        on_rule_write: Some(KeyHook::new(move |key| {
            hears.lock().unwrap().push(key.to_vec());
        })),
        ..options(2)
    });
    for _ in 0..2 {
        is_told(db.settle().unwrap_err());
        assert_eq!(wrote.lock().unwrap().len(), 8, "each other one, once");
    }
}

/// Without background threads, too, damage is no end of maintenance.
#[test]
fn maintenance_goes_on() {
    let (disk, db) = beside_another(Options {
        durability: Durability::Interval,
        ..options(2)
    });
    for at in 0..3 {
        append(&db, &[sample(b"more", at, 1.0)]).unwrap();
        is_told(db.maintain().unwrap_err());
        assert_eq!(db.durable_position(), db.position());
    }
    let db = open(&disk.crash(1)).unwrap();
    let more = query(&db, b"more", &everything(None)).unwrap();
    assert_eq!(more.len(), 3);
}

#[test]
fn the_operator_hears_of_both_keys() {
    let said = Arc::new(Mutex::new(Vec::new()));
    let hears = said.clone();
    let (_, db) = beside_another(Options {
        on_notice: Some(NoticeHook::new(move |line| {
            hears.lock().unwrap().push(line.to_owned());
        })),
        ..options(2)
    });
    for _ in 0..2 {
        db.settle().unwrap_err();
    }
    let said = said.lock().unwrap();
    let words = "rows of destination between 50 and 59 cannot be brought up to date";
    assert!(said.iter().any(|line| line.contains(words)), "{said:?}");
    assert!(
        said.iter()
            .any(|line| line.contains("the block is damaged"))
    );
}

/// Damage of a destination stops neither its own new rows nor other rules.
#[test]
fn a_damaged_destination_stops_nothing_else() {
    let disk = SimDisk::new();
    let one_shard = || Db::open(&disk.env(1), Path::new(DIR), options(1), last_wins()).unwrap();
    let db = one_shard();
    // Its chunk is the first of the block.
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    for key in [SOURCE, b"second"] {
        db.create(key, &SeriesOptions::default()).unwrap();
    }
    db.create_rule(SOURCE, DESTINATION, sums()).unwrap();
    db.create_rule(SOURCE, b"second", sums()).unwrap();
    let samples: Vec<_> = (0..=NEWEST)
        .map(|at| sample(SOURCE, at, (at as f64).sqrt()))
        .collect();
    append(&db, &samples).unwrap();
    assert_eq!(kept(&db).len(), 399);
    db.flush().unwrap();
    db.close().unwrap();
    damage(&disk);
    let db = one_shard();
    says(refusal(&db, 0, i64::MAX), "block");
    // Rows at the beginning and at the end of both go.
    assert_eq!(db.delete_range(SOURCE, 0, 999).unwrap().0, 1_000);
    assert_eq!(db.delete_range(SOURCE, 3_900, NEWEST).unwrap().0, 100);
    add(&db, &[(4_005, 2.0), (4_015, 4.0)]);
    let second = query(&db, b"second", &everything(None)).unwrap();
    assert_eq!((second.len(), second[0].0), (291, 1_000));
    assert_eq!(rows(&db, 4_000, i64::MAX), [(4_000, 2.0)]);
    says(refusal(&db, 1_500, 1_600), "block");
}

/// A rule over a source that is whole has nothing to tell.
#[test]
fn nothing_is_unread_where_nothing_is_damaged() {
    let db = open(&SimDisk::new()).unwrap();
    tie(&db);
    add(&db, &[(5, 1.0), (15, 2.0), (3, 1.0), (25, 1.0)]);
    db.maintain().unwrap();
    assert_eq!(kept(&db), [(0, 2.0), (10, 2.0)]);
    assert_eq!(db.stats().rules_failed, 0);
}
