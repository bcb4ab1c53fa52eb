//! Steps that are computed again, the first step, and rows that replace others.

use super::{READER, drained, labelled, of_m, watch, watched};
use crate::db_support::{append, open, read, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Change, Db, ErrorKind, ReaderId, RuleSpec, Watcher};
use latewood_model::{Aggregator, DuplicatePolicy, Sample, SeriesOptions};

/// The steps that are pending.
fn steps(db: &Db) -> Vec<(i64, i64)> {
    let changes = db.drain(READER).unwrap().changes;
    let steps = changes
        .iter()
        .filter(|change| change.selector == Change::STEPS);
    let steps = steps.inspect(|change| assert!(change.series.is_none()));
    let mut spans: Vec<(i64, i64)> = Vec::new();
    for change in steps {
        // Whether what meets is one change is not said.
        match spans.last_mut() {
            Some(last) if last.1 + 1 == change.from => last.1 = change.to,
            _ => spans.push((change.from, change.to)),
        }
    }
    spans
}

fn since(db: &Db) -> i64 {
    let readers = db.readers();
    let of_it = readers.iter().find(|state| state.reader == READER);
    of_it.unwrap().since
}

#[test]
fn a_batch_of_evaluations_is_one_group_of_the_log() {
    let db = open(&SimDisk::new()).unwrap();
    let readers = (0..1_000).map(ReaderId);
    let watcher = |reader| Watcher {
        reader,
        selectors: vec![of_m()],
    };
    db.watch(readers.clone().map(watcher).collect()).unwrap();
    let written = || db.drain(ReaderId(0)).unwrap().position.0;
    let before = written();
    let all: Vec<_> = readers.map(|reader| (reader, 100)).collect();
    db.begin_evaluations(&all).unwrap();
    assert_eq!(written() - before, 1);
    assert!(db.readers().iter().all(|state| state.horizon == 100));
    let unknown = [(ReaderId(5), 200), (ReaderId(5_000), 200)];
    let error = db.begin_evaluations(&unknown).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(db.readers().iter().all(|state| state.horizon == 100));
    // 1,000 states do not make as many groups.
    let before = written();
    db.flush().unwrap();
    assert!(written() - before < 50);
}

#[test]
fn steps_stay_until_they_are_done_and_outlive_restarts() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    db.begin_evaluation(READER, 1_000).unwrap();
    db.add_pending(READER, 100, 114).unwrap();
    db.add_pending(READER, 115, 129).unwrap();
    db.add_pending(READER, 500, 500).unwrap();
    assert_eq!(steps(&db), [(100, 129), (500, 500)]);
    assert_eq!(db.readers()[0].pending, 2, "neighbours are one");
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(steps(&db), [(100, 129), (500, 500)]);
    let drained = db.drain(READER).unwrap();
    // It meets what was drained, and is not done with it.
    db.add_pending(READER, 501, 510).unwrap();
    db.done(READER, drained.position).unwrap();
    assert_eq!(steps(&db), [(501, 510)]);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(steps(&db), [(501, 510)]);
    db.flush().unwrap();
    db.flush().unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(steps(&db), [(501, 510)], "also where the log before went");
    let drained = db.drain(READER).unwrap();
    db.done(READER, drained.position).unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(steps(&db), []);
}

#[test]
fn the_first_step_is_the_first_evaluation_or_what_is_said() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(since(&db), i64::MIN);
    db.begin_evaluation(READER, 100).unwrap();
    db.begin_evaluation(READER, 200).unwrap();
    assert_eq!(since(&db), 100);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(since(&db), 100);
    db.set_since(READER, 40).unwrap();
    db.flush().unwrap();
    assert_eq!(since(&db), 40);
    db.set_since(READER, 150).unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert!(db.readers().is_empty(), "nobody said who reads");
    watch(&db, vec![of_m()]);
    assert_eq!(since(&db), 150);
    let unknown = ReaderId(99);
    let errors = [
        db.set_since(unknown, 1).unwrap_err(),
        db.add_pending(unknown, 1, 2).unwrap_err(),
    ];
    assert!(errors.iter().all(|it| it.kind() == ErrorKind::Invalid));
}

/// Bits, so that a NaN equals itself.
fn rows(db: &Db, key: &[u8]) -> Vec<(i64, u64)> {
    let samples = read(db, key).unwrap();
    let rows = samples
        .iter()
        .map(|row| (row.timestamp, row.value.to_bits()));
    rows.collect()
}

#[test]
fn rows_replace_whatever_is_there() {
    let stale = f64::from_bits(0x7ff0_0000_0000_0002);
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let options = SeriesOptions {
        duplicate_policy: Some(DuplicatePolicy::Sum),
        retention_ms: 1_000,
        ..labelled(&[(b"metric", b"m")])
    };
    db.create(b"row", &options).unwrap();
    for at in [100, 1_005, 1_010, 1_020, 1_030, 1_100] {
        append(&db, &[sample(b"row", at, 1.0)]).unwrap();
    }
    db.flush().unwrap();
    watch(&db, vec![of_m()]);
    db.begin_evaluation(READER, 1_020).unwrap();
    let gaps = [(1_000, 1_009), (1_040, 1_050)];
    let new = [
        Sample::new(1, 5.0),
        Sample::new(1_010, 2.0),
        Sample::new(1_020, stale),
        Sample::new(1_025, stale),
    ];
    let done = db.replace_rows(b"row", &gaps, &new).unwrap();
    assert_eq!((done.written, done.deleted, done.refused), (3, 1, 1));
    let kept = vec![
        (100, 1.0_f64.to_bits()),
        (1_010, 2.0_f64.to_bits()),
        (1_020, stale.to_bits()),
        (1_025, stale.to_bits()),
        (1_030, 1.0_f64.to_bits()),
        (1_100, 1.0_f64.to_bits()),
    ];
    assert_eq!(rows(&db, b"row"), kept);
    let told = drained(&db);
    for at in [1_005, 1_010, 1_020] {
        let covers = |(_, _, from, to): &(Vec<u8>, bool, i64, i64)| (*from..=*to).contains(&at);
        assert!(told.iter().any(covers), "{at} is not told: {told:?}");
    }
    // A number takes the place of a mark again.
    db.replace_rows(b"row", &[], &[Sample::new(1_020, 7.0)])
        .unwrap();
    assert!(rows(&db, b"row").contains(&(1_020, 7.0_f64.to_bits())));
    let before = rows(&db, b"row");
    db.sync_to(done.position).unwrap();
    db.close().unwrap();
    assert_eq!(rows(&open(&disk).unwrap(), b"row"), before);
}

#[test]
fn rows_are_written_to_no_series_that_is_not_there_or_has_a_compaction_rule() {
    let db = watched();
    let row = [Sample::new(10, 1.0)];
    let missing = db.replace_rows(b"nothing", &[], &row).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoSuchKey);
    let spec = RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms: 10,
        align: 0,
    };
    db.create_rule(b"a", b"other", spec).unwrap();
    let error = db.replace_rows(b"other", &[], &row).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    // Rules of the series itself hear of it.
    db.replace_rows(
        b"a",
        &[(10, 10)],
        &[Sample::new(11, 4.0), Sample::new(95, 1.0)],
    )
    .unwrap();
    db.settle().unwrap();
    let sums = read(&db, b"other").unwrap();
    assert!(sums.contains(&Sample::new(10, 4.0)), "{sums:?}");
}
