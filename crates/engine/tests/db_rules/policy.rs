//! Rules created by the compaction policy together with a series.

use crate::db_rules::random::{Dice, seeds};
use crate::db_rules::support::{everything, held, query, spec};
use crate::db_support::{DIR, append, last_wins, options, sample};
use latewood_engine::io::sim::{Fault, SimDisk, Trouble};
use latewood_engine::{Append, Create, Db, Defaults, KeyHook, Options, Result, RuleInfo};
use latewood_model::limits::LABELS_MAX;
use latewood_model::{Aggregator, CompactionPolicy, Encoding, Labels, SeriesOptions};
use std::path::Path;
use std::sync::{Arc, Mutex};

fn compacting(text: &str) -> Defaults {
    Defaults {
        compactions: CompactionPolicy::parse(text).unwrap(),
        ..last_wins()
    }
}

fn open(disk: &SimDisk, text: &str) -> Result<Db> {
    Db::open(&disk.env(1), Path::new(DIR), options(4), compacting(text))
}

fn rule(destination: &[u8], aggregator: Aggregator, bucket_ms: i64, align: i64) -> RuleInfo {
    RuleInfo {
        destination: destination.into(),
        spec: spec(aggregator, bucket_ms, align),
    }
}

fn labels(pairs: &[(&str, &str)]) -> Labels {
    let pairs = pairs.iter();
    Labels::new(pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()))).unwrap()
}

#[test]
fn a_write_brings_destinations_and_rules_that_outlive_a_restart() {
    let disk = SimDisk::new();
    let text = "sum:10m:0;max:1s:2s:7m";
    let mut defaults = compacting(text);
    defaults.series.encoding = Encoding::Uncompressed;
    defaults.series.chunk_size_bytes = 256;
    let db = Db::open(&disk.env(1), Path::new(DIR), options(4), defaults).unwrap();
    let own = SeriesOptions {
        retention_ms: 500,
        chunk_size_bytes: 64,
        labels: labels(&[("time_bucket", "x")]),
        ..SeriesOptions::default()
    };
    let create = Create::With(&own);
    let first = Append {
        create,
        ..sample(b"k", 3, 1.0)
    };
    let batch = [first, sample(b"k", 5, 2.0), sample(b"k", 12, 4.0)];
    assert_eq!(append(&db, &batch).unwrap(), [Ok(3), Ok(5), Ok(12)]);
    let (outcome, _) = db.increment(b"i", 2.0, Some(9), create).unwrap();
    assert_eq!(outcome, Ok(9));
    db.create(b"plain", &own).unwrap();
    drop(db);
    let disk = disk.kill();
    // Without the policy: what is there stays.
    let db = open(&disk, "").unwrap();
    let rules = [
        rule(b"k_SUM_10", Aggregator::Sum, 10, 0),
        rule(b"k_MAX_1000_7", Aggregator::Max, 1000, 7),
    ];
    assert_eq!(db.rules_of(b"k").unwrap(), rules);
    assert_eq!(db.rules_of(b"i").unwrap().len(), 2);
    assert_eq!(db.rules_of(b"plain").unwrap(), []);
    assert_eq!(db.len(), 7);
    assert_eq!(held(&db, b"k_SUM_10"), [(0, 3.0)]);
    let expected = SeriesOptions {
        retention_ms: 2000,
        chunk_size_bytes: 256,
        encoding: Encoding::Uncompressed,
        labels: labels(&[
            ("time_bucket", "x"),
            ("aggregation", "MAX"),
            ("time_bucket", "1000"),
        ]),
        ..SeriesOptions::default()
    };
    assert_eq!(db.info(b"k_MAX_1000_7").unwrap().options, expected);
    assert_eq!(db.info(b"k").unwrap().options, own);
    append(&db, &[sample(b"later", 1, 1.0)]).unwrap();
    assert_eq!(db.rules_of(b"later").unwrap(), []);
}

#[test]
fn refused_samples_bring_nothing() {
    let db = open(&SimDisk::new(), "sum:10m:0").unwrap();
    let long = vec![b'k'; 100_000];
    let never = Append {
        create: Create::Never,
        ..sample(b"k", 1, 1.0)
    };
    let batch = [sample(b"k", -1, 1.0), never, sample(&long, 1, 1.0)];
    let outcomes = append(&db, &batch).unwrap();
    assert!(
        outcomes.iter().all(|outcome| outcome.is_err()),
        "{outcomes:?}"
    );
    let (outcome, _) = db.increment(b"k", 1.0, Some(-1), Create::Defaults).unwrap();
    assert!(outcome.is_err());
    assert_eq!(db.len(), 0);
}

#[test]
fn a_destination_that_cannot_be_is_left_out_and_told_of() {
    let (told, left_out) = (Arc::default(), Arc::default());
    let hook = |list: &Arc<Mutex<Vec<Vec<u8>>>>| {
        let list = list.clone();
        Some(KeyHook::new(move |key| {
            list.lock().unwrap().push(key.to_vec());
        }))
    };
    let options = Options {
        on_created: hook(&told),
        on_not_compacted: hook(&left_out),
        ..options(4)
    };
    let defaults = compacting("sum:10m:0;min:10m:0;sum:10m:1s");
    let db = Db::open(&SimDisk::new().env(1), Path::new(DIR), options, defaults).unwrap();
    db.create(b"k_SUM_10", &SeriesOptions::default()).unwrap();
    append(&db, &[sample(b"k", 1, 1.0), sample(b"k", 11, 1.0)]).unwrap();
    let rules = [rule(b"k_MIN_10", Aggregator::Min, 10, 0)];
    assert_eq!(db.rules_of(b"k").unwrap(), rules);
    assert_eq!(db.source_of(b"k_SUM_10").unwrap(), None);
    assert_eq!(held(&db, b"k_SUM_10"), []);
    assert_eq!(*told.lock().unwrap(), [&b"k"[..], b"k_MIN_10"]);
    assert_eq!(*left_out.lock().unwrap(), [b"k_SUM_10", b"k_SUM_10"]);

    let many = vec![(&b"a"[..], &b"b"[..]); LABELS_MAX - 1];
    let full = SeriesOptions {
        labels: Labels::new(many).unwrap(),
        ..SeriesOptions::default()
    };
    let labelled = Append {
        create: Create::With(&full),
        ..sample(b"full", 1, 1.0)
    };
    assert_eq!(append(&db, &[labelled]).unwrap(), [Ok(1)]);
    assert_eq!(db.rules_of(b"full").unwrap(), []);
    assert_eq!(left_out.lock().unwrap().len(), 5);
}

const KEYS: [&[u8]; 6] = [
    b"a",
    b"b",
    b"a_SUM_10",
    b"b_SUM_10",
    b"a_MAX_20",
    b"b_SUM_10_MAX_20",
];
const POLICY: &str = "sum:10m:0;max:20m:0";

/// What anyone can see of the series of [`KEYS`].
fn visible(db: &Db) -> Vec<String> {
    let series = KEYS.iter().map(|key| {
        let rows = query(db, key, &everything(None)).ok();
        format!("{rows:?} {:?}", db.rules_of(key).ok())
    });
    series.chain([db.len().to_string()]).collect()
}

#[test]
fn a_batch_does_what_its_samples_do_alone() {
    for seed in seeds(200) {
        let dice = Dice::new(seed);
        let (whole, alone) = (
            open(&SimDisk::new(), POLICY).unwrap(),
            open(&SimDisk::new(), POLICY).unwrap(),
        );
        for _ in 0..1 + dice.below(4) {
            let mut batch = Vec::new();
            for _ in 0..1 + dice.below(12) {
                let key = dice.below(6) as usize;
                // No user's sample meets one of a rule, at 0, 10, 20 ...
                let at = dice.below(20) as i64 * 10 + if key < 2 { 0 } else { 3 };
                let create = match dice.below(2) {
                    0 => Create::Never,
                    _ => Create::Defaults,
                };
                batch.push(Append {
                    create,
                    ..sample(KEYS[key], at, dice.below(100) as f64)
                });
            }
            let outcomes = append(&whole, &batch).unwrap();
            for (one, outcome) in batch.iter().zip(outcomes) {
                let expected = append(&alone, &[*one]).unwrap();
                assert_eq!([outcome], expected[..], "seed {seed}: {one:?}");
            }
            assert_eq!(visible(&whole), visible(&alone), "seed {seed}");
        }
    }
}

#[test]
fn threads_that_create_one_series_make_its_compactions_once() {
    let options = Options {
        segment_bytes: 1024 * 1024,
        ..options(4)
    };
    let disk = SimDisk::new();
    let db = Db::open(&disk.env(1), Path::new(DIR), options, compacting(POLICY)).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4 {
            let db = &db;
            scope.spawn(move || {
                for key in 0..100 {
                    let key = format!("k{key}");
                    append(db, &[sample(key.as_bytes(), 10 * thread, 1.0)]).unwrap()[0].unwrap();
                }
            });
        }
    });
    assert_eq!(db.len(), 300);
    for key in 0..100 {
        let key = format!("k{key}");
        assert_eq!(db.rules_of(key.as_bytes()).unwrap().len(), 2, "{key}");
        let sums = held(&db, format!("{key}_SUM_10").as_bytes());
        assert_eq!(sums, [(0, 1.0), (10, 1.0), (20, 1.0)], "{key}");
    }
}

/// Every series comes back with all its compactions or not at all, wherever
/// the power goes; and those hold what queries give.
#[test]
fn a_crash_leaves_whole_sets() {
    for seed in seeds(60) {
        let dice = Dice::new(seed);
        let mut disk = SimDisk::new();
        let mut made = 0;
        for life in 0..4 {
            let db = open(&disk, POLICY).unwrap();
            check_whole(&db, made, seed);
            disk.plan(Fault {
                op: None,
                after: dice.below(60),
                trouble: Trouble::PowerCut,
            });
            for _ in 0..40 {
                made += dice.below(2);
                let key = format!("s{made}");
                let batch = [0, 1, 2].map(|_| sample(key.as_bytes(), dice.below(50) as i64, 1.0));
                let written = append(&db, &batch).map(drop);
                if written.and_then(|()| db.sync()).is_err() || dice.below(30) == 0 {
                    break;
                }
            }
            drop(db);
            disk = disk.crash(seed * 10 + life);
        }
        check_whole(&open(&disk, POLICY).unwrap(), made, seed);
    }
}

fn check_whole(db: &Db, made: u64, seed: u64) {
    let mut series = 0;
    for number in 0..=made {
        let key = format!("s{number}");
        let Ok(rules) = db.rules_of(key.as_bytes()) else {
            continue;
        };
        series += 3;
        assert_eq!(rules.len(), 2, "seed {seed}, {key}");
        for rule in rules {
            let mut closed = query(db, key.as_bytes(), &everything(Some(rule.spec))).unwrap();
            closed.pop();
            let kept = held(db, &rule.destination);
            assert_eq!(kept, closed, "seed {seed}, {key}, {rule:?}");
        }
    }
    assert_eq!(db.len(), series, "seed {seed}");
}
