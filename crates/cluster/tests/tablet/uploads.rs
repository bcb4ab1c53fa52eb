//! What checkpoints upload beside what was written to the log: at most twice as much.

use crate::tablet::world::World;
use latewood_cluster::kafka::memory::Faults;
use latewood_cluster::tablet::Tablet;
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Append, Create, Db, Scratch};
use latewood_model::{Labels, SeriesOptions};
use std::time::Duration;

/// How much is written, and by how many series of all between two checkpoints.
struct Load {
    series: u64,
    /// Between two checkpoints one series of this many is written to, each time another.
    one_of: u64,
    /// Samples of each of them between two checkpoints; 0: until the log is long.
    samples: u64,
    checkpoints: u64,
}

/// Bytes since the database was filled, and of the most log between two checkpoints.
#[derive(Debug)]
struct Measured {
    uploaded: u64,
    logged: u64,
    longest_interval: u64,
}

fn key(number: u64) -> String {
    format!("cpu.usage.{number}{{host=host_{}}}", number / 10)
}

fn fill(db: &Db, series: u64) {
    for number in 0..series {
        let host = format!("host_{}", number / 10);
        let site = format!("site_{}", number / 1_000 % 7);
        let pairs = [
            ("host", host.as_str()),
            ("site", site.as_str()),
            ("os", "linux"),
        ];
        let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
        let options = SeriesOptions {
            labels: Labels::new(pairs).unwrap(),
            ..SeriesOptions::default()
        };
        db.create(key(number).as_bytes(), &options).unwrap();
    }
}

fn write(db: &Db, keys: &[String], at: i64) {
    let sample = |(number, key): (usize, &String)| (key.clone(), value(number as u64, at));
    let samples: Vec<_> = keys.iter().enumerate().map(sample).collect();
    for samples in samples.chunks(5_000) {
        let batch: Vec<_> = samples
            .iter()
            .map(|(key, value)| Append {
                key: key.as_bytes(),
                timestamp: at,
                value: *value,
                on_duplicate: None,
                create: Create::Never,
            })
            .collect();
        let mut scratch = Scratch::new();
        db.append(&batch, &mut scratch).unwrap();
        assert!(scratch.outcomes().iter().all(Result::is_ok));
    }
}

/// Two decimals, as of a meter.
fn value(number: u64, at: i64) -> f64 {
    ((number * 7_919 + at as u64 * 104_729) % 100_000) as f64 / 100.0
}

fn save(tablet: &Tablet, db: &Db) {
    db.flush().unwrap();
    tablet.checkpoint(db).unwrap();
    while db.merge_step().unwrap() {}
}

fn measure(load: &Load) -> Measured {
    let (world, disk) = (World::new(1, Faults::default()), SimDisk::new());
    let (tablet, db) = world.open(1, &disk).unwrap();
    fill(&db, load.series);
    save(&tablet, &db);
    let bytes = || (tablet.uploads().total_bytes(), tablet.log().written_bytes());
    let (uploaded, logged) = bytes();
    let (mut at, mut longest_interval) = (0, 0);
    for round in 0..load.checkpoints {
        let numbers = (round % load.one_of..load.series).step_by(load.one_of as usize);
        let keys: Vec<String> = numbers.map(key).collect();
        let begun = tablet.log().written_bytes();
        for sample in 0.. {
            let is_enough = match load.samples {
                0 => tablet.is_log_long(),
                samples => sample == samples,
            };
            if is_enough {
                break;
            }
            at += 1;
            write(&db, &keys, at);
            db.sync().unwrap();
        }
        longest_interval = longest_interval.max(tablet.log().written_bytes() - begun);
        save(&tablet, &db);
    }
    let (uploaded, logged) = (bytes().0 - uploaded, bytes().1 - logged);
    tablet.abandon();
    drop((tablet, db));
    // All of it is in the newest checkpoint.
    let (tablet, db) = world.open(2, &SimDisk::new()).unwrap();
    assert_eq!(db.stats().series, load.series);
    for number in (0..load.series).step_by(load.series as usize / 50) {
        let round = number % load.one_of;
        let is_written = round < load.checkpoints;
        let newest = db.last_sample(key(number).as_bytes()).unwrap();
        assert_eq!(newest.is_some(), is_written, "{number}");
    }
    assert!(tablet.log().drain(Duration::ZERO));
    tablet.abandon();
    Measured {
        uploaded,
        logged,
        longest_interval,
    }
}

/// With `LATEWOOD_SERIES`, of that many series, for each share of them that a checkpoint may find
/// changed, and at the interval of a server: a million take minutes, and gigabytes of memory.
#[test]
fn checkpoints_of_many_series_upload_at_most_twice_the_log() {
    let asked = std::env::var("LATEWOOD_SERIES");
    let asked = asked.map(|series| series.parse().expect("LATEWOOD_SERIES is a number"));
    let (series, samples, shares) = match asked {
        Ok(series) => (series, 0, &[100, 10, 1][..]),
        Err(_) => (100_000, 60, &[100][..]),
    };
    for &one_of in shares {
        let measured = measure(&Load {
            series,
            one_of,
            samples,
            checkpoints: 20,
        });
        println!("one of {one_of}: {measured:?}");
        assert!(measured.uploaded <= 2 * measured.logged, "{measured:?}");
        assert!(measured.longest_interval < 600 << 20, "{measured:?}");
    }
}
