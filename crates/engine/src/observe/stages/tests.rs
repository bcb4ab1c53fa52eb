//! Each stage shows where its case occurs, and nowhere else.

use crate::io::sim::SimDisk;
use crate::keyspace::creation::Create;
use crate::observe::stages::{Stage, Stages};
use crate::{Append, AppendTo, Db, Defaults, Options, RuleSpec, Scratch};
use latewood_model::{Aggregator, DuplicatePolicy, SeriesOptions};
use std::path::Path;

/// A database of one shard that times every batch, with a known series `k`.
fn timed_db(policy: DuplicatePolicy) -> Db {
    let options = Options {
        background: false,
        shards: 1,
        ..Options::default()
    };
    let defaults = Defaults {
        duplicate_policy: policy,
        ..Defaults::default()
    };
    let db = Db::open(&SimDisk::new().env(1), Path::new("/db"), options, defaults).unwrap();
    db.create(b"k", &SeriesOptions::default()).unwrap();
    db.stages().set_sampling(1);
    db
}

/// Appends samples at these timestamps to one series, as one batch.
fn append(db: &Db, key: &[u8], timestamps: impl IntoIterator<Item = i64>) {
    let batch: Vec<_> = timestamps
        .into_iter()
        .map(|timestamp| Append {
            key,
            timestamp,
            value: 1.5,
            on_duplicate: None,
            create: Create::Defaults,
        })
        .collect();
    db.append(&batch, &mut Scratch::new()).unwrap();
}

/// How often each stage happened, those that did.
fn events(stages: &Stages) -> Vec<(Stage, u64)> {
    let figures = stages.figures();
    let happened = figures.iter().filter(|figures| figures.events > 0);
    happened
        .map(|figures| (figures.stage, figures.events))
        .collect()
}

fn count(stages: &Stages, stage: Stage) -> u64 {
    stages.figures()[stage as usize].events
}

#[test]
fn a_known_series_takes_only_the_way_of_a_known_series() {
    let db = timed_db(DuplicatePolicy::Block);
    append(&db, b"k", 1..=10);
    let expected = [
        (Stage::SeriesId, 10),
        (Stage::SeriesLookup, 10),
        // That of the shard and that of the log.
        (Stage::LockWait, 2),
        (Stage::SampleAppend, 10),
        (Stage::LogEncode, 10),
        (Stage::LogWrite, 1),
    ];
    let mut found = events(db.stages());
    // The tail's memory grows now and then, which is counted.
    found.retain(|(stage, _)| *stage != Stage::CacheUpkeep);
    assert_eq!(found, expected);
    assert!(count(db.stages(), Stage::CacheUpkeep) < 10);
}

#[test]
fn a_series_by_reference_is_neither_hashed_nor_looked_up_by_key() {
    let db = timed_db(DuplicatePolicy::Block);
    let series = db.resolve(b"k").unwrap();
    let batch: Vec<_> = (1..=10)
        .map(|timestamp| AppendTo {
            series: &series,
            timestamp,
            value: 1.5,
            on_duplicate: None,
        })
        .collect();
    db.append_resolved(&batch, &mut Scratch::new()).unwrap();
    for (stage, events) in [
        (Stage::SeriesId, 0),
        (Stage::SeriesLookup, 10),
        (Stage::LockWait, 2),
        (Stage::SampleAppend, 10),
        (Stage::LogEncode, 10),
        (Stage::LogWrite, 1),
    ] {
        assert_eq!(count(db.stages(), stage), events, "{}", stage.name());
    }
}

#[test]
fn a_new_series_shows_in_its_own_stages() {
    let db = timed_db(DuplicatePolicy::Block);
    append(&db, b"new", 1..=3);
    let stages = db.stages();
    for stage in [
        Stage::SeriesCreation,
        Stage::TableInsert,
        Stage::IndexInsert,
    ] {
        assert_eq!(count(stages, stage), 1, "{}", stage.name());
    }
    // Three samples and the series.
    assert_eq!(count(stages, Stage::LogEncode), 4);
    assert_eq!(count(stages, Stage::IndexBatch), 0);
    db.maintain().unwrap();
    // The series that was there before waited, too.
    assert_eq!(count(stages, Stage::IndexBatch), 2);
}

#[test]
fn a_late_sample_shows_as_staged_and_settled() {
    let db = timed_db(DuplicatePolicy::Last);
    append(&db, b"k", (0..2000).map(|at| at * 10));
    assert_eq!(count(db.stages(), Stage::LateStaging), 0);
    db.stages().reset();
    append(&db, b"k", [5, 25]);
    let stages = db.stages();
    assert_eq!(count(stages, Stage::LateStaging), 2);
    assert_eq!(count(stages, Stage::SampleAppend), 0);
    assert_eq!(count(stages, Stage::DuplicateCheck), 0);
    assert_eq!(count(stages, Stage::CacheUpkeep), 2);
    assert_eq!(count(stages, Stage::Settle), 0);
    db.settle().unwrap();
    assert_eq!(count(stages, Stage::Settle), 1);
}

#[test]
fn a_policy_that_must_look_shows_as_a_check() {
    let db = timed_db(DuplicatePolicy::Block);
    append(&db, b"k", (0..2000).map(|at| at * 10));
    db.stages().reset();
    // Two that are new and one that is there, over what is sealed.
    append(&db, b"k", [5, 25, 50]);
    let stages = db.stages();
    assert_eq!(count(stages, Stage::LateStaging), 2);
    // The look for each, and what became of the one that was refused.
    assert_eq!(count(stages, Stage::DuplicateCheck), 4);
}

#[test]
fn a_full_tail_shows_as_sealed() {
    let db = timed_db(DuplicatePolicy::Block);
    append(&db, b"k", 0..5000);
    let sealed = count(db.stages(), Stage::FrameSeal);
    let samples = u64::from(db.info(b"k").unwrap().chunks.last().unwrap().samples as u32);
    assert!(sealed > 0 && sealed * 512 + samples >= 5000, "{sealed}");
    assert_eq!(count(db.stages(), Stage::SampleAppend), 5000);
}

#[test]
fn the_work_of_rules_shows_for_their_source() {
    let db = timed_db(DuplicatePolicy::Block);
    db.create(b"d", &SeriesOptions::default()).unwrap();
    let spec = RuleSpec {
        aggregator: Aggregator::Avg,
        bucket_ms: 10,
        align: 0,
    };
    db.create_rule(b"k", b"d", spec).unwrap();
    append(&db, b"k", 0..25);
    assert_eq!(count(db.stages(), Stage::RuleUpdate), 25);
    db.settle().unwrap();
    assert_eq!(count(db.stages(), Stage::RuleCompute), 1);
}

#[test]
fn a_flush_and_a_sync_show() {
    let db = timed_db(DuplicatePolicy::Block);
    append(&db, b"k", 0..5000);
    assert_eq!(count(db.stages(), Stage::BlockFlush), 0);
    db.flush().unwrap();
    assert_eq!(count(db.stages(), Stage::BlockFlush), 1);
    append(&db, b"k", 5000..5001);
    let synced = count(db.stages(), Stage::LogSync);
    db.sync().unwrap();
    assert_eq!(count(db.stages(), Stage::SyncWait), 1);
    assert_eq!(count(db.stages(), Stage::LogSync), synced + 1);
}

#[test]
fn nothing_is_counted_while_the_sampling_is_off() {
    let db = timed_db(DuplicatePolicy::Last);
    db.stages().set_sampling(0);
    append(&db, b"k", (0..2000).map(|at| at * 10));
    append(&db, b"new", [5]);
    append(&db, b"k", [5]);
    db.maintain().unwrap();
    db.flush().unwrap();
    db.sync().unwrap();
    assert_eq!(events(db.stages()), []);
}

#[test]
fn the_timed_batches_stand_for_the_others() {
    let db = timed_db(DuplicatePolicy::Block);
    db.stages().set_sampling(10);
    for batch in 0..20_000 {
        append(&db, b"k", [batch * 2, batch * 2 + 1]);
    }
    let figures = db.stages().figures()[Stage::SampleAppend as usize];
    // Distances between timed batches are even from 1 to 19: the sum of 2,000
    // of them is within five of its standard deviations.
    assert!((37_500..42_500).contains(&figures.events), "{figures:?}");
    assert_eq!(figures.events, figures.timed * 10);
    assert!(figures.p50_ns <= figures.p99_ns && figures.share <= 1.0);
    let mean_ns = figures.total_ns as f64 / figures.events as f64;
    assert!((mean_ns - figures.mean_ns).abs() < 0.01, "{figures:?}");
    db.stages().reset();
    assert_eq!(events(db.stages()), []);
}
