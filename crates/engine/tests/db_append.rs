//! Single properties of appends through `Db`, one per test.

use crate::db_support::{append, last_wins, open, options, read, sample, timestamps};
use crate::model::chance::Chance;
use crate::model::ops::{Op, Write};
use crate::model::oracle::Oracle;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, ErrorKind, Excess, Refusal, Stats};
use latewood_model::{DuplicatePolicy, Ignore, Labels, Sample, SeriesOptions};
use std::collections::BTreeSet;
use std::path::Path;

fn fresh() -> Db {
    open(&SimDisk::new()).unwrap()
}

#[test]
fn a_batch_is_the_same_as_its_samples_one_by_one() {
    for seed in 1..=60 {
        let chance = Chance::new(seed);
        let defaults = chance.defaults();
        let open = |shards| {
            let env = SimDisk::new().env(seed);
            Db::open(&env, Path::new("/db"), options(shards), defaults.clone()).unwrap()
        };
        let (whole, single) = (open(4), open(1));
        let mut oracle = Oracle {
            defaults: defaults.clone(),
            ..Oracle::default()
        };
        for _ in 0..12 {
            let op = chance.op(&oracle);
            op.foretell(&mut oracle);
            let Op::Append(writes) = op else { continue };
            let batch: Vec<_> = writes.iter().map(Write::as_append).collect();
            let together = append(&whole, &batch).unwrap();
            for (one, outcome) in batch.iter().zip(together) {
                let alone = append(&single, std::slice::from_ref(one)).unwrap();
                assert_eq!(alone, [outcome], "seed {seed}: {one:?}");
            }
        }
        let bits = |db: &Db, key: &[u8]| -> Option<Vec<(i64, u64)>> {
            let samples = read(db, key).ok()?;
            Some(
                samples
                    .iter()
                    .map(|s| (s.timestamp, s.value.to_bits()))
                    .collect(),
            )
        };
        for _ in 0..40 {
            let key = chance.key();
            assert_eq!(bits(&whole, &key), bits(&single, &key), "seed {seed}");
        }
        assert_eq!(whole.len(), single.len(), "seed {seed}");
    }
}

#[test]
fn outcomes_come_in_the_order_of_the_batch() {
    let db = fresh();
    let keys: Vec<Vec<u8>> = (0..50).map(|n| format!("k{n}").into_bytes()).collect();
    let batch: Vec<_> = (0..500)
        .map(|n| sample(&keys[n * 7 % 50], n as i64, 0.0))
        .collect();
    let outcomes = append(&db, &batch).unwrap();
    assert!(outcomes.into_iter().eq((0..500).map(Ok)));
}

#[test]
fn a_sample_that_may_not_create_finds_what_an_earlier_one_created() {
    let db = fresh();
    let never = |timestamp| Append {
        create: Create::Never,
        ..sample(b"k", timestamp, 1.0)
    };
    let outcomes = append(&db, &[never(1), sample(b"k", 2, 1.0), never(3)]).unwrap();
    assert_eq!(outcomes, [Err(Refusal::NoSuchKey), Ok(2), Ok(3)]);
    assert_eq!(timestamps(&db, b"k"), [2, 3]);
}

#[test]
fn refused_samples_leave_no_trace_and_say_why() {
    let db = fresh();
    let long = vec![b'k'; 65_537];
    let block = |value| Append {
        on_duplicate: Some(DuplicatePolicy::Block),
        ..sample(b"k", 5, value)
    };
    let batch = [
        sample(b"k", -1, 1.0),
        sample(&long, 5, 1.0),
        block(1.0),
        block(2.0),
    ];
    let outcomes = append(&db, &batch).unwrap();
    let limit = Refusal::Limit(Excess::KeyBytes);
    let expected = [
        Err(Refusal::InvalidTimestamp),
        Err(limit),
        Ok(5),
        Err(Refusal::Duplicate),
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(db.len(), 1);
    assert_eq!(read(&db, b"k").unwrap(), [Sample::new(5, 1.0)]);
    assert_eq!(
        Refusal::InvalidTimestamp.to_string(),
        "invalid timestamp, must be a nonnegative integer"
    );
    assert!(Refusal::Duplicate.to_string().contains("BLOCK mode"));
    assert_eq!(
        Refusal::OlderThanRetention.to_string(),
        "Timestamp is older than retention"
    );
}

#[test]
fn the_ends_of_time_can_be_written() {
    let db = fresh();
    let batch = [i64::MAX, 0, i64::MAX - 1].map(|t| sample(b"k", t, t as f64));
    append(&db, &batch).unwrap();
    assert_eq!(timestamps(&db, b"k"), [0, i64::MAX - 1, i64::MAX]);
    assert_eq!(db.delete_range(b"k", i64::MIN, i64::MAX).unwrap().0, 3);
    assert_eq!(db.last_sample(b"k").unwrap(), None);
    assert_eq!(append(&db, &[sample(b"k", 0, 1.0)]).unwrap(), [Ok(0)]);
}

#[test]
fn what_is_past_the_retention_is_gone_for_good() {
    let db = fresh();
    let with = |retention_ms| SeriesOptions {
        retention_ms,
        ..SeriesOptions::default()
    };
    db.create(b"k", &with(100)).unwrap();
    let batch = [0, 50, 100, 0, 1000, 899, 900].map(|t| sample(b"k", t, 1.0));
    let outcomes = append(&db, &batch).unwrap();
    assert_eq!(outcomes[3], Ok(0), "exactly as old as the retention");
    assert_eq!(outcomes[5], Err(Refusal::OlderThanRetention));
    assert_eq!(timestamps(&db, b"k"), [900, 1000]);
    assert_eq!(db.info(b"k").unwrap().total_samples, 2);
    db.alter(b"k", &with(0)).unwrap();
    assert_eq!(timestamps(&db, b"k"), [900, 1000]);
    assert_eq!(db.delete_range(b"k", 950, 2000).unwrap().0, 1);
    assert_eq!(timestamps(&db, b"k"), [900]);
}

#[test]
fn ignore_drops_near_samples_under_last_only() {
    let db = fresh();
    let options = SeriesOptions {
        ignore: Ignore {
            max_time_diff_ms: 10,
            max_value_diff: 0.5,
        },
        ..SeriesOptions::default()
    };
    db.create(b"k", &options).unwrap();
    let batch = [
        sample(b"k", 100, 1.0),
        sample(b"k", 105, 1.25),
        sample(b"k", 100, 1.5),
        sample(b"k", 106, f64::NAN),
        sample(b"k", 117, 1.0),
        Append {
            on_duplicate: Some(DuplicatePolicy::Max),
            ..sample(b"k", 118, 1.0)
        },
    ];
    let outcomes = append(&db, &batch).unwrap();
    assert_eq!(outcomes, [100, 100, 100, 106, 117, 118].map(Ok));
    assert_eq!(timestamps(&db, b"k"), [100, 106, 117, 118]);
}

#[test]
fn a_sample_ahead_of_the_clock_is_not_ignored_when_it_comes_again() {
    let db = fresh();
    let options = SeriesOptions {
        retention_ms: 1000,
        ..SeriesOptions::default()
    };
    db.create(b"k", &options).unwrap();
    let ahead_ms = i64::MAX / 2;
    for timestamp in [ahead_ms, ahead_ms + 1, ahead_ms + 1] {
        let one = Append {
            on_duplicate: Some(DuplicatePolicy::Last),
            ..sample(b"k", timestamp, 1.0)
        };
        assert_eq!(append(&db, &[one]).unwrap(), [Ok(timestamp)]);
    }
    assert_eq!(db.stats().samples_ignored, 0);
}

#[test]
fn a_deletion_counts_what_a_reader_could_see() {
    let db = fresh();
    for step in 0..40i64 {
        let batch: Vec<_> = (0..100)
            .map(|n| sample(b"k", (n * 40 + step * 17) % 4000, 1.0))
            .collect();
        append(&db, &batch).unwrap();
    }
    let seen = timestamps(&db, b"k");
    let inside = seen.iter().filter(|t| (1000..=2500).contains(*t)).count();
    assert!(inside > 100, "{inside}");
    assert_eq!(db.delete_range(b"k", 1000, 2500).unwrap().0, inside as u64);
    assert_eq!(db.delete_range(b"k", 1000, 2500).unwrap().0, 0);
    assert_eq!(db.delete_range(b"k", 10, 5).unwrap().0, 0);
    assert_eq!(timestamps(&db, b"k").len(), seen.len() - inside);
    let missing = db.delete_range(b"other", 0, 1).unwrap_err();
    assert_eq!(missing.kind(), ErrorKind::NoSuchKey);
}

#[test]
fn a_scan_sees_every_series_while_others_come_and_go() {
    let db = fresh();
    let name = |kind: &str, n: usize| format!("{kind}{n}").into_bytes();
    for n in 0..300 {
        append(&db, &[sample(&name("stays", n), 1, 1.0)]).unwrap();
        append(&db, &[sample(&name("goes", n), 1, 1.0)]).unwrap();
    }
    let (mut seen, mut cursor, mut round) = (BTreeSet::new(), 0, 0);
    loop {
        cursor = db
            .scan(cursor, 7, &mut |key| {
                seen.insert(key.to_vec());
            })
            .unwrap();
        if cursor == 0 {
            break;
        }
        db.remove(&[&name("goes", 299 - round % 300)]).unwrap();
        append(&db, &[sample(&name("comes", round), 1, 1.0)]).unwrap();
        round += 1;
    }
    assert!((0..300).all(|n| seen.contains(&name("stays", n))));
}

#[test]
fn a_batch_longer_than_a_segment_is_split_and_comes_back() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let value = |n: i64| (n as f64 + 0.1) / 0.7;
    let batch: Vec<_> = (0..30_000).map(|n| sample(b"k", n * n, value(n))).collect();
    let outcomes = append(&db, &batch).unwrap();
    assert!(outcomes.iter().all(Result::is_ok));
    drop(db);
    let db = open(&disk).unwrap();
    assert_eq!(timestamps(&db, b"k").len(), batch.len());
}

#[test]
fn labels_longer_than_a_segment_are_refused_and_harm_nothing() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    let long = vec![b'v'; 100_000];
    let options = SeriesOptions {
        labels: Labels::new([(&b"name"[..], &long[..])]).unwrap(),
        ..SeriesOptions::default()
    };
    let too_long = Append {
        create: Create::With(&options),
        ..sample(b"long", 1, 1.0)
    };
    let outcomes = append(&db, &[too_long, sample(b"k", 1, 1.0)]).unwrap();
    assert!(matches!(outcomes[..], [Err(Refusal::Limit(_)), Ok(1)]));
    assert_eq!(
        db.create(b"long", &options).unwrap_err().kind(),
        ErrorKind::Limit
    );
    assert_eq!(
        db.alter(b"k", &options).unwrap_err().kind(),
        ErrorKind::Limit
    );
    assert!(!db.contains(b"long"));
    append(&db, &[sample(b"k", 2, 1.0)]).unwrap();
    drop(db);
    assert_eq!(timestamps(&open(&disk).unwrap(), b"k"), [1, 2]);
}

#[test]
fn creating_twice_and_asking_for_nothing_are_told_apart() {
    let db = Db::open(
        &SimDisk::new().env(1),
        Path::new("/db"),
        options(1),
        last_wins(),
    )
    .unwrap();
    let plain = SeriesOptions::default();
    db.create(b"k", &plain).unwrap();
    assert_eq!(
        db.create(b"k", &plain).unwrap_err().kind(),
        ErrorKind::KeyExists
    );
    assert_eq!(
        db.alter(b"x", &plain).unwrap_err().kind(),
        ErrorKind::NoSuchKey
    );
    assert_eq!(db.info(b"x").unwrap_err().kind(), ErrorKind::NoSuchKey);
    assert_eq!(
        db.last_sample(b"x").unwrap_err().kind(),
        ErrorKind::NoSuchKey
    );
    assert_eq!(db.remove(&[b"k", b"x", b"k"]).unwrap().0, 1);
    let odd = SeriesOptions {
        chunk_size_bytes: 49,
        ..plain
    };
    assert_eq!(
        db.create(b"k", &odd).unwrap_err().kind(),
        ErrorKind::Invalid
    );
    assert!(db.is_empty());
}

#[test]
fn a_nan_that_a_sum_made_refuses_numbers_wherever_it_was_made() {
    let db = fresh();
    let with = |policy, timestamp, value| Append {
        on_duplicate: Some(policy),
        ..sample(b"k", timestamp, value)
    };
    let sum = |timestamp| with(DuplicatePolicy::Sum, timestamp, f64::NEG_INFINITY);
    let raw = [sample(b"k", 1, f64::INFINITY), sum(1)];
    assert_eq!(append(&db, &raw).unwrap(), [Ok(1), Ok(1)]);
    // Enough to seal what came before.
    let more: Vec<_> = (10..2000).map(|t| sample(b"k", t, 1.0)).collect();
    append(&db, &more).unwrap();
    let min = with(DuplicatePolicy::Min, 1, 5.0);
    assert_eq!(append(&db, &[min]).unwrap(), [Err(Refusal::Duplicate)]);

    db.remove(&[b"k"]).unwrap();
    append(&db, &[sample(b"k", 2, f64::INFINITY)]).unwrap();
    append(&db, &more).unwrap();
    let late = [sum(2), with(DuplicatePolicy::Max, 2, 5.0)];
    assert_eq!(
        append(&db, &late).unwrap(),
        [Ok(2), Err(Refusal::Duplicate)]
    );
    assert!(read(&db, b"k").unwrap()[0].value.is_nan());
}

#[test]
fn late_counts_every_accepted_sample_older_than_the_newest() {
    let db = fresh();
    let samples = [10, 20, 10, 20, 15].map(|at| sample(b"k", at, 1.0));
    let samples = samples.map(|one| Append {
        on_duplicate: Some(DuplicatePolicy::Last),
        ..one
    });
    for outcome in append(&db, &samples).unwrap() {
        outcome.unwrap();
    }
    let stats = db.stats();
    let counted = |stats: &Stats| {
        (
            stats.samples_in_order,
            stats.samples_late,
            stats.samples_duplicate,
        )
    };
    assert_eq!(
        counted(&stats),
        (2, 2, 1),
        "10 again replaces a sample and is older than 20 all the same"
    );
    // Newer than all that is left, though a deletion makes it wait among late ones.
    db.delete_range(b"k", 20, 20).unwrap();
    append(&db, &[sample(b"k", 18, 1.0)]).unwrap();
    assert_eq!(counted(&db.stats()), (3, 2, 1));
}
