//! Single properties of rules, one per test.

use crate::db_rules::support::{
    DESTINATION, SOURCE, add, everything, held, kept, last, latest, query,
};
use crate::db_rules::support::{spec, tie};
use crate::db_support::{DIR, append, last_wins, open, options, read, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, Defaults, ErrorKind, KeyHook, Options};
use latewood_model::{Aggregator, DuplicatePolicy, SeriesOptions};
use std::path::Path;
use std::sync::{Arc, Mutex};

fn tied() -> Db {
    let db = open(&SimDisk::new()).unwrap();
    tie(&db);
    db
}

#[test]
fn a_bucket_is_written_once_a_later_one_opens() {
    let db = tied();
    add(&db, &[(5, 1.0), (9, 2.0)]);
    assert_eq!(kept(&db), []);
    assert_eq!(latest(&db, DESTINATION), [(0, 3.0)]);
    add(&db, &[(31, 6.0)]);
    assert_eq!(kept(&db), [(0, 3.0)]);
    assert_eq!(latest(&db, DESTINATION), [(0, 3.0), (30, 6.0)]);
    assert_eq!(last(&db, DESTINATION), Some((30, 6.0)));
    assert_eq!(last(&db, SOURCE), Some((31, 6.0)), "a source has no LATEST");
}

#[test]
fn late_samples_and_corrections_change_their_bucket() {
    let db = tied();
    add(&db, &[(5, 1.0), (15, 1.0), (35, 2.0)]);
    assert_eq!(kept(&db), [(0, 1.0), (10, 1.0)]);
    add(&db, &[(6, 3.0), (5, 10.0), (25, 7.0)]);
    assert_eq!(kept(&db), [(0, 13.0), (10, 1.0), (20, 7.0)]);
}

#[test]
fn a_rule_leaves_what_was_full_before_alone() {
    let db = open(&SimDisk::new()).unwrap();
    append(&db, &[sample(SOURCE, 5, 1.0), sample(SOURCE, 12, 2.0)]).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    assert_eq!(latest(&db, DESTINATION), [], "nothing came in since");
    add(&db, &[(21, 5.0), (31, 6.0)]);
    assert_eq!(kept(&db), [(20, 5.0)], "the bucket of 12 got nothing since");
    add(&db, &[(6, 10.0)]);
    assert_eq!(kept(&db), [(0, 11.0), (20, 5.0)]);
}

#[test]
fn a_bucket_a_rule_was_made_in_counts_whole() {
    let db = open(&SimDisk::new()).unwrap();
    append(&db, &[sample(SOURCE, 12, 2.0), sample(SOURCE, 15, 3.0)]).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    add(&db, &[(17, 4.0), (21, 5.0)]);
    assert_eq!(kept(&db), [(10, 9.0)]);
}

#[test]
fn late_samples_reach_a_bucket_no_newer_sample_opened() {
    let db = open(&SimDisk::new()).unwrap();
    append(&db, &[sample(SOURCE, 12, 2.0), sample(SOURCE, 15, 3.0)]).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    add(&db, &[(13, 1.0)]);
    assert_eq!(latest(&db, DESTINATION), [(10, 6.0)]);
    add(&db, &[(21, 1.0)]);
    assert_eq!(kept(&db), [(10, 6.0)]);
}

/// Dirty buckets from before the creation of a second rule belong to the first.
#[test]
fn a_second_rule_takes_no_late_sample_from_the_first() {
    let db = open(&SimDisk::new()).unwrap();
    append(&db, &[sample(SOURCE, 12, 1.0), sample(SOURCE, 17, 1.0)]).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    for key in [DESTINATION, b"second"] {
        db.create(key, &SeriesOptions::default()).unwrap();
        db.create_rule(SOURCE, key, sums).unwrap();
        if key == DESTINATION {
            add(&db, &[(15, 2.0)]);
        }
    }
    assert_eq!(latest(&db, DESTINATION), [(10, 4.0)]);
    assert_eq!(latest(&db, b"second"), [], "nothing came in since");
    add(&db, &[(25, 5.0)]);
    assert_eq!(kept(&db), [(10, 4.0)]);
    assert_eq!(held(&db, b"second"), []);
}

#[test]
fn policies_of_the_destination_do_not_concern_rules() {
    for policy in [DuplicatePolicy::Block, DuplicatePolicy::Min] {
        let disk = SimDisk::new();
        let db = open(&disk).unwrap();
        db.create(SOURCE, &SeriesOptions::default()).unwrap();
        let mut strict = SeriesOptions {
            duplicate_policy: Some(policy),
            ..SeriesOptions::default()
        };
        strict.ignore.max_time_diff_ms = 1_000;
        strict.ignore.max_value_diff = 1_000.0;
        db.create(DESTINATION, &strict).unwrap();
        let sums = spec(Aggregator::Sum, 10, 0);
        db.create_rule(SOURCE, DESTINATION, sums).unwrap();
        add(&db, &[(5, 1.0), (15, 1.0), (25, 2.0), (35, 2.0), (6, 3.0)]);
        let expected = [(0, 4.0), (10, 1.0), (20, 2.0)];
        assert_eq!(kept(&db), expected);
        db.close().unwrap();
        assert_eq!(kept(&open(&disk).unwrap()), expected, "after a restart");
    }
}

#[test]
fn users_may_write_to_a_destination_after_its_rule() {
    let db = tied();
    add(&db, &[(5, 1.0), (15, 1.0)]);
    append(
        &db,
        &[sample(DESTINATION, 0, 100.0), sample(DESTINATION, 3, 7.0)],
    )
    .unwrap();
    assert_eq!(kept(&db), [(0, 100.0), (3, 7.0)]);
    add(&db, &[(6, 1.0)]);
    assert_eq!(kept(&db), [(0, 2.0), (3, 7.0)]);
}

#[test]
fn deleted_samples_leave_their_buckets() {
    let db = tied();
    add(&db, &[(5, 1.0), (6, 2.0), (15, 1.0), (25, 2.0), (35, 3.0)]);
    db.delete_range(SOURCE, 6, 15).unwrap();
    assert_eq!(kept(&db), [(0, 1.0), (20, 2.0)]);
    db.delete_range(SOURCE, 35, 35).unwrap();
    assert_eq!(kept(&db), [(0, 1.0)], "the bucket of 25 is open again");
    assert_eq!(latest(&db, DESTINATION), [(0, 1.0), (20, 2.0)]);
    add(&db, &[(31, 1.0)]);
    assert_eq!(kept(&db), [(0, 1.0), (20, 2.0)]);
    db.delete_range(SOURCE, 0, i64::MAX).unwrap();
    assert_eq!(kept(&db), []);
    assert_eq!(latest(&db, DESTINATION), []);
    add(&db, &[(41, 1.0), (51, 1.0)]);
    assert_eq!(kept(&db), [(40, 1.0)]);
}

#[test]
fn samples_of_a_bucket_outlive_the_retention() {
    let db = open(&SimDisk::new()).unwrap();
    let short = SeriesOptions {
        retention_ms: 22,
        chunk_size_bytes: 48,
        ..SeriesOptions::default()
    };
    db.create(SOURCE, &short).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 1_000, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    let samples: Vec<(i64, f64)> = (0..1_001).map(|at| (at, 1.0)).collect();
    add(&db, &samples);
    assert_eq!(held(&db, SOURCE).len(), 23);
    assert_eq!(kept(&db), [(0, 1_000.0)]);
    add(&db, &[(999, 5.0)]);
    assert_eq!(kept(&db), [(0, 1_004.0)], "a correction counts all of them");
    let error = db.delete_range(SOURCE, 990, 995).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Invalid);
    assert!(error.to_string().contains("beyond the series retention"));
}

#[test]
fn rows_past_the_retention_of_the_destination_are_dropped() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    let short = SeriesOptions {
        retention_ms: 20,
        ..SeriesOptions::default()
    };
    db.create(DESTINATION, &short).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    add(
        &db,
        &[
            (5, 1.0),
            (15, 1.0),
            (25, 2.0),
            (35, 3.0),
            (45, 4.0),
            (55, 5.0),
        ],
    );
    add(&db, &[(6, 3.0), (44, 1.0)]);
    assert_eq!(kept(&db), [(20, 2.0), (30, 3.0), (40, 5.0)]);
}

#[test]
fn the_time_weighted_average_follows_its_neighbours() {
    let db = open(&SimDisk::new()).unwrap();
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    let twa = spec(Aggregator::Twa, 10, 0);
    db.create_rule(SOURCE, DESTINATION, twa).unwrap();
    let closed = |db: &Db| {
        let mut rows = query(db, SOURCE, &everything(Some(twa))).unwrap();
        rows.pop();
        rows
    };
    add(
        &db,
        &[
            (5, 1.0),
            (8, 3.0),
            (15, 1.0),
            (25, 2.0),
            (45, 7.0),
            (55, 1.0),
        ],
    );
    assert_eq!(kept(&db), closed(&db));
    add(&db, &[(33, 2.0)]);
    assert_eq!(
        kept(&db),
        closed(&db),
        "25 and 45 have another neighbour now"
    );
    db.delete_range(SOURCE, 33, 33).unwrap();
    assert_eq!(kept(&db), closed(&db));
    add(&db, &[(26, 9.0)]);
    assert_eq!(kept(&db), closed(&db));
    add(&db, &[(51, 4.0)]);
    assert_eq!(kept(&db), closed(&db), "the line of 45 now leads to 51");
}

#[test]
fn one_of_two_ends_going_ends_the_rule() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    tie(&db);
    assert_eq!(db.rules_of(SOURCE).unwrap().len(), 1);
    assert_eq!(db.source_of(DESTINATION).unwrap().unwrap()[..], *SOURCE);
    add(&db, &[(5, 1.0), (15, 1.0)]);
    db.remove(&[SOURCE]).unwrap();
    assert_eq!(kept(&db), [(0, 1.0)], "what closed before stays");
    assert_eq!(db.source_of(DESTINATION).unwrap(), None);
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    db.create_rule(SOURCE, DESTINATION, sums).unwrap();
    db.remove(&[DESTINATION]).unwrap();
    assert_eq!(db.rules_of(SOURCE).unwrap(), []);
    add(&db, &[(5, 1.0), (15, 1.0), (25, 1.0)]);
    db.close().unwrap();
    let db = open(&disk).unwrap();
    assert_eq!(db.rules_of(SOURCE).unwrap(), []);
    assert_eq!(read(&db, SOURCE).unwrap().len(), 3);
}

#[test]
fn an_ended_rule_writes_no_more() {
    let db = tied();
    add(&db, &[(5, 1.0), (15, 1.0)]);
    db.delete_rule(SOURCE, DESTINATION).unwrap();
    add(&db, &[(25, 1.0), (6, 1.0)]);
    assert_eq!(kept(&db), [(0, 1.0)]);
    let error = db.delete_rule(SOURCE, DESTINATION).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchRule);
    db.flush_all().unwrap();
    let error = db.delete_rule(SOURCE, DESTINATION).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NoSuchKey);
}

#[test]
fn rules_make_no_chains_where_they_are_off() {
    let db = tied();
    let defaults = Defaults {
        chained_rules: false,
        ..last_wins()
    };
    db.set_defaults(defaults).unwrap();
    db.create(b"third", &SeriesOptions::default()).unwrap();
    let sums = spec(Aggregator::Sum, 10, 0);
    let text = |source: &[u8], destination: &[u8]| {
        let error = db.create_rule(source, destination, sums).unwrap_err();
        error.to_string()
    };
    for (source, destination, expected) in [
        (
            SOURCE,
            SOURCE,
            "the source key and destination key should be different",
        ),
        (
            DESTINATION,
            b"third",
            "the source key already has a source rule",
        ),
        (
            b"third",
            SOURCE,
            "the destination key already has a dst rule",
        ),
        (
            b"third",
            DESTINATION,
            "the destination key already has a src rule",
        ),
        (
            SOURCE,
            DESTINATION,
            "the destination key already has a src rule",
        ),
        (
            DESTINATION,
            SOURCE,
            "the source key already has a source rule",
        ),
        (SOURCE, b"none", "the key does not exist"),
    ] {
        assert_eq!(text(source, destination), expected);
    }
    assert_eq!(db.rules_of(SOURCE).unwrap().len(), 1);
}

#[test]
fn the_listener_hears_of_every_destination_written() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let options = Options {
        on_rule_write: Some(KeyHook::new(move |key| {
            hears.lock().unwrap().push(key.to_vec());
        })),
        ..options(2)
    };
    let disk = SimDisk::new();
    let db = Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap();
    tie(&db);
    add(&db, &[(5, 1.0), (6, 1.0)]);
    db.maintain().unwrap();
    assert!(heard.lock().unwrap().is_empty());
    add(&db, &[(15, 1.0)]);
    db.maintain().unwrap();
    db.maintain().unwrap();
    assert_eq!(*heard.lock().unwrap(), [DESTINATION]);
}

#[test]
fn five_rules_over_one_series_agree_with_queries() {
    let db = open(&SimDisk::new()).unwrap();
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    let specs = [
        spec(Aggregator::Avg, 10, 0),
        spec(Aggregator::Max, 100, 0),
        spec(Aggregator::Twa, 60, 7),
        spec(Aggregator::Count, 1_000, 3),
        spec(Aggregator::Last, 1, 0),
    ];
    let keys: Vec<Vec<u8>> = (0..5).map(|rule| format!("rule:{rule}").into()).collect();
    for (key, spec) in keys.iter().zip(specs) {
        db.create(key, &SeriesOptions::default()).unwrap();
        db.create_rule(SOURCE, key, spec).unwrap();
    }
    // Every timestamp once, far out of order.
    let batch: Vec<Append<'_>> = (0..20_000)
        .map(|step| Append {
            create: Create::Never,
            ..sample(SOURCE, step * 7_919 % 20_011, step as f64)
        })
        .collect();
    for some in batch.chunks(3_000) {
        append(&db, some).unwrap();
    }
    for (key, spec) in keys.iter().zip(specs) {
        let mut expected = query(&db, SOURCE, &everything(Some(spec))).unwrap();
        expected.pop();
        assert_eq!(held(&db, key), expected, "{spec:?}");
    }
}

#[test]
fn an_observer_hears_of_work_on_rules() {
    let db = tied();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let notes = heard.clone();
    db.observe(move |work, _| notes.lock().unwrap().push(work));
    add(&db, &[(5, 1.0), (15, 2.0)]);
    assert_eq!(kept(&db), [(0, 1.0)]);
    assert_eq!(*heard.lock().unwrap(), [latewood_engine::Work::Rules]);
}
