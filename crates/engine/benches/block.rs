//! What reading from blocks costs: whole series and single samples.
//!
//! `cargo bench -p latewood-engine --bench block [DIRECTORY]` writes ten
//! million samples of 500 series, flushes them, opens the database anew, so
//! that memory holds none of them, and reads with one thread. One line a
//! figure, the median of several runs. The files are in the system's page
//! cache. DIRECTORY (default: the system's temporary directory) says where.

use latewood_engine::io::Env;
use latewood_engine::{
    Aggregation, Append, BucketStamp, Create, Db, Defaults, Durability, Options, RangeQuery,
    Scratch, Sink,
};
use latewood_model::Aggregator;
use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const SERIES: usize = 500;
const SAMPLES: usize = 20_000;
const START_MS: i64 = 1_700_000_000_000;
const STEP_MS: i64 = 10_000;
const RUNS: usize = 7;
const LOOKUPS: usize = 50_000;

type Anything<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Anything<()> {
    // Cargo passes `--bench`; a directory is anything that is no flag.
    let root = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(root)?;
    let keys: Vec<String> = (0..SERIES)
        .map(|series| format!("series:{series}"))
        .collect();
    fill(dir.path(), &keys)?;
    let db = open(dir.path())?;
    for (name, query) in [
        (
            "sum and count, from statistics",
            whole(Some(vec![Aggregator::Sum, Aggregator::Count])),
        ),
        (
            "standard deviation, decoded",
            whole(Some(vec![Aggregator::StdP])),
        ),
        ("every sample", whole(None)),
        (
            "every sample, newest first",
            RangeQuery {
                reverse: true,
                ..whole(None)
            },
        ),
    ] {
        let took = median((0..RUNS).map(|_| scan(&db, &keys, &query)))?;
        let samples = (SERIES * SAMPLES) as f64;
        println!(
            "{name}: {:.0} M samples/s",
            samples / took.as_secs_f64() / 1e6
        );
    }
    let took = median((0..RUNS).map(|run| look_up(&db, &keys, run as u64)))?;
    let each = took.as_nanos() / LOOKUPS as u128;
    println!("one sample of a random series and time: {each} ns");
    Ok(())
}

fn open(dir: &Path) -> Anything<Db> {
    let options = Options {
        durability: Durability::Interval,
        ..Options::default()
    };
    Ok(Db::open(&Env::real(), dir, options, Defaults::default())?)
}

fn fill(dir: &Path, keys: &[String]) -> Anything<()> {
    let db = open(dir)?;
    let mut scratch = Scratch::new();
    for sample in 0..SAMPLES as i64 {
        let batch: Vec<Append<'_>> = (0_i64..)
            .zip(keys)
            .map(|(series, key)| Append {
                key: key.as_bytes(),
                timestamp: START_MS + sample * STEP_MS,
                value: ((sample + series) * 7919 % 10_007) as f64 / 100.0,
                on_duplicate: None,
                create: Create::Defaults,
            })
            .collect();
        db.append(&batch, &mut scratch)?;
    }
    db.flush()?;
    db.close()?;
    Ok(())
}

fn whole(aggregators: Option<Vec<Aggregator>>) -> RangeQuery {
    RangeQuery {
        to: i64::MAX,
        aggregation: aggregators.map(|aggregators| Aggregation {
            aggregators,
            bucket_ms: i64::MAX,
            align: 0,
            stamp: BucketStamp::Start,
            empty: false,
        }),
        ..RangeQuery::default()
    }
}

struct Discard(usize);

impl Sink for Discard {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _: usize) -> ControlFlow<()> {
        black_box(values);
        self.0 += timestamps.len();
        ControlFlow::Continue(())
    }
}

fn scan(db: &Db, keys: &[String], query: &RangeQuery) -> Anything<Duration> {
    let mut sink = Discard(0);
    let started = Instant::now();
    for key in keys {
        db.range(key.as_bytes(), query, &mut sink)?;
    }
    let took = started.elapsed();
    let rows = match query.aggregation {
        Some(_) => SERIES,
        None => SERIES * SAMPLES,
    };
    assert_eq!(sink.0, rows, "every sample was read");
    Ok(took)
}

fn look_up(db: &Db, keys: &[String], run: u64) -> Anything<Duration> {
    let mut sink = Discard(0);
    let mut query = whole(None);
    let started = Instant::now();
    for lookup in 0..LOOKUPS as u64 {
        let random = (run * LOOKUPS as u64 + lookup).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 16;
        let key = &keys[random as usize % SERIES];
        query.from = START_MS + (random / SERIES as u64) as i64 % SAMPLES as i64 * STEP_MS;
        query.to = query.from;
        db.range(key.as_bytes(), &query, &mut sink)?;
    }
    let took = started.elapsed();
    assert_eq!(sink.0, LOOKUPS, "every sample was found");
    Ok(took)
}

fn median(runs: impl Iterator<Item = Anything<Duration>>) -> Anything<Duration> {
    let mut times = runs.collect::<Anything<Vec<_>>>()?;
    times.sort_unstable();
    Ok(times[times.len() / 2])
}
