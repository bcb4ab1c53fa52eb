//! How long a start takes by series: `cargo bench --bench startup -- [series]`.
//!
//! Makes series with six labels and a few samples each, flushes them, writes
//! one more sample to each tenth, and opens the directory some times.

use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, Scratch};
use latewood_model::{Labels, SeriesOptions};
use std::time::Instant;

const OPENS: usize = 5;
const BATCH: usize = 1_000;

fn main() {
    let wanted = std::env::args().find_map(|argument| argument.parse().ok());
    let series: usize = wanted.unwrap_or(1_000_000);
    let dir = tempfile::tempdir().expect("a folder for the database");
    let open = || {
        let options = Options {
            background: false,
            ..Options::default()
        };
        Db::open(&Env::real(), dir.path(), options, Defaults::default()).expect("it opens")
    };
    let db = open();
    let keys: Vec<String> = (0..series).map(key_of).collect();
    for (number, key) in keys.iter().enumerate() {
        db.create(key.as_bytes(), &options_of(number))
            .expect("a new series");
    }
    for round in 0..4 {
        write(&db, keys.iter(), round);
    }
    let begun = Instant::now();
    db.flush().expect("the disk takes it");
    let flushed = begun.elapsed();
    write(&db, keys.iter().step_by(10), 4);
    db.close().expect("the log takes it");
    println!("{series} series flushed in {:.2} s", flushed.as_secs_f64());
    let mut took: Vec<f64> = (0..OPENS)
        .map(|_| {
            let begun = Instant::now();
            let db = open();
            let took = begun.elapsed().as_secs_f64();
            assert_eq!(db.len(), series);
            took
        })
        .collect();
    took.sort_unstable_by(f64::total_cmp);
    println!("opened in {:.2} s, median of {took:.2?}", took[OPENS / 2]);
}

fn key_of(number: usize) -> String {
    format!(
        "cpu.usage.{number}{{host=host_{},core={}}}",
        number / 16,
        number % 16
    )
}

fn options_of(number: usize) -> SeriesOptions {
    let (host, core) = (format!("host_{}", number / 16), (number % 16).to_string());
    let rack = (number / 640).to_string();
    let pairs = [
        ("host", host.as_str()),
        ("core", &core),
        ("rack", &rack),
        ("region", ["eu-west-1", "us-east-1"][number / 100_000 % 2]),
        ("os", "linux"),
        ("metric", "usage"),
    ];
    let pairs = pairs.map(|(name, value)| (name.as_bytes(), value.as_bytes()));
    SeriesOptions {
        labels: Labels::new(pairs).expect("few and short"),
        ..SeriesOptions::default()
    }
}

fn write<'a>(db: &Db, keys: impl Iterator<Item = &'a String>, round: i64) {
    let mut scratch = Scratch::new();
    let samples = keys.map(|key| Append {
        key: key.as_bytes(),
        timestamp: 1_700_000_000_000 + round * 10_000,
        value: (key.len() as i64 + round) as f64 / 10.0,
        on_duplicate: None,
        create: Create::Never,
    });
    let samples: Vec<_> = samples.collect();
    for batch in samples.chunks(BATCH) {
        db.append(batch, &mut scratch).expect("the log takes it");
    }
}
