//! What the log costs: encoding, appending, replaying, syncing.
//!
//! `cargo bench -p latewood-engine --bench log [DIRECTORY]` prints one line a
//! figure, medians of several runs. Syncs alternate with a raw write and
//! fdatasync of as many bytes into a zero-written file, so that both meet the
//! same disk in the same mood. DIRECTORY (default: the system's temporary
//! directory) decides which disk is measured.

use latewood_engine::io::{Disk, Env, File, disk::RealDisk};
use latewood_engine::log::{GroupBuilder, Log, LogOptions, Position, Record, RecordIter, Replay};
use latewood_model::{DuplicatePolicy, SeriesId};
use std::hint::black_box;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

const RUNS: usize = 7;
const ROUND: u64 = 50;

type Anything = Result<(), Box<dyn std::error::Error>>;

fn main() -> Anything {
    // Cargo passes `--bench`; a directory is anything that is no flag.
    let root = std::env::args()
        .skip(1)
        .find(|argument| !argument.starts_with('-'))
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(root)?;
    encode();
    append(&dir.path().join("append"))?;
    replay(&dir.path().join("replay"))?;
    for bytes in [215, 4096, 65_536] {
        sync(&dir.path().join(format!("sync-{bytes}")), bytes)?;
    }
    waiters(&dir.path().join("waiters"))
}

/// One round of samples: as many series as a pipeline holds commands.
fn fill(group: &mut GroupBuilder, round: u64, shape: Shape) {
    group.begin(0);
    for i in 0..ROUND {
        let n = round * ROUND + i;
        let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
        let (id, value) = match shape {
            Shape::Round => (i, (2000 + mixed % 500) as f64 / 100.0),
            Shape::Random => (mixed % 1_000_000, (2000 + mixed % 500) as f64 / 100.0),
            Shape::Noise => (i, (n as f64).sqrt()),
        };
        let id = SeriesId(id);
        let timestamp = 1_700_000_000_000 + (round * 1000) as i64;
        group.sample(id, timestamp, value, DuplicatePolicy::Last);
    }
}

#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Devices in their order, two decimals.
    Round,
    /// A million series at random, two decimals.
    Random,
    /// Devices in their order, full-precision values.
    Noise,
}

fn encode() {
    const ROUNDS: u64 = 40_000;
    for shape in [Shape::Round, Shape::Random, Shape::Noise] {
        let mut group = GroupBuilder::new();
        let mut bytes = 0;
        let ns = median((0..RUNS).map(|_| {
            let started = Instant::now();
            bytes = 0;
            for round in 0..ROUNDS {
                fill(&mut group, round, shape);
                bytes += black_box(&group).len_bytes() as u64;
            }
            started.elapsed()
        }));
        let samples = (ROUNDS * ROUND) as f64;
        println!(
            "encode {shape:?}: {:.2} ns a sample, {:.2} bytes a sample",
            ns as f64 / samples,
            bytes as f64 / samples
        );
    }
}

fn append(dir: &Path) -> Anything {
    const GROUPS: u64 = 200_000;
    let env = Env::real();
    let (log, _) = Log::open(&env, dir, &LogOptions::default(), &Count::new(1))?;
    let mut group = GroupBuilder::new();
    fill(&mut group, 1, Shape::Round);
    let mut times = Vec::new();
    for run in 0..RUNS {
        log.background_tick()?;
        let started = Instant::now();
        for _ in 0..GROUPS {
            log.append(&mut group)?;
        }
        // The first run warms the file's pages up.
        if run > 0 {
            times.push(started.elapsed());
        }
        log.trim(log.written())?;
        log.append(&mut group)?;
    }
    let ns = median(times) as f64 / GROUPS as f64;
    println!(
        "append: {ns:.1} ns a group of {} bytes, {:.2} ns a sample",
        group.len_bytes() + 24,
        ns / ROUND as f64
    );
    Ok(())
}

/// Adds samples up, as the least work that looks at every one.
struct Count {
    workers: usize,
    samples: AtomicU64,
    sum: AtomicU64,
}

impl Count {
    fn new(workers: usize) -> Self {
        Self {
            workers,
            samples: AtomicU64::new(0),
            sum: AtomicU64::new(0),
        }
    }
}

impl Replay for Count {
    fn workers(&self) -> usize {
        self.workers
    }

    fn apply(
        &self,
        _worker: usize,
        _at: Position,
        records: RecordIter<'_>,
    ) -> latewood_engine::Result<()> {
        let (mut samples, mut sum) = (0, 0_u64);
        for record in records {
            if let Record::Sample {
                timestamp, value, ..
            } = record?
            {
                samples += 1;
                sum = sum.wrapping_add(timestamp as u64 ^ value.to_bits());
            }
        }
        self.samples.fetch_add(samples, Ordering::Relaxed);
        self.sum.fetch_xor(sum, Ordering::Relaxed);
        Ok(())
    }
}

fn replay(dir: &Path) -> Anything {
    const GROUPS: u64 = 400_000;
    let env = Env::real();
    let options = LogOptions::default();
    let (log, _) = Log::open(&env, dir, &options, &Count::new(1))?;
    let mut group = GroupBuilder::new();
    for round in 0..GROUPS {
        fill(&mut group, round, Shape::Round);
        log.append(&mut group)?;
    }
    log.close()?;
    drop(log);
    for workers in [1, 2] {
        let ns = median((0..RUNS).map(|_| {
            let sink = Count::new(workers);
            let started = Instant::now();
            let opened = Log::open(&env, dir, &options, &sink);
            let took = started.elapsed();
            assert_eq!(
                opened.map(|(_, report)| report.groups >= GROUPS).ok(),
                Some(true)
            );
            took
        }));
        let rate = (GROUPS * ROUND) as f64 / ns as f64 * 1e3;
        println!("replay, {workers} workers: {rate:.1} M samples/s, open and sync included");
    }
    Ok(())
}

/// One commit of a group of about `bytes`, beside the raw write and sync.
fn sync(dir: &Path, bytes: usize) -> Anything {
    const COMMITS: usize = 400;
    let env = Env::real();
    let (log, _) = Log::open(&env, dir, &LogOptions::default(), &Count::new(1))?;
    let mut group = GroupBuilder::new();
    group.begin(0);
    let mut n = 0_u64;
    while group.len_bytes() + 24 < bytes {
        group.sample(
            SeriesId(1),
            n as i64,
            (n as f64).sqrt(),
            DuplicatePolicy::Last,
        );
        n += 1;
    }
    let raw = raw_file(&dir.join("raw"))?;
    let payload = vec![7; group.len_bytes() + 24];
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for commit in 0..COMMITS {
        let started = Instant::now();
        let position = log.append(&mut group)?;
        log.sync_to(position)?;
        ours.push(started.elapsed());
        let started = Instant::now();
        raw.write_at(&payload, (8192 + commit * payload.len()) as u64)?;
        raw.sync()?;
        theirs.push(started.elapsed());
    }
    println!(
        "sync of {} bytes, us p50 / p99: log {}, raw write + fdatasync {}",
        payload.len(),
        percentiles(&mut ours),
        percentiles(&mut theirs)
    );
    Ok(())
}

fn raw_file(path: &Path) -> std::io::Result<Arc<dyn File>> {
    let file = RealDisk.create(path, 64 * 1024 * 1024)?;
    file.sync()?;
    Ok(file)
}

/// How many commits share a sync when many wait.
fn waiters(dir: &Path) -> Anything {
    let env = Env::real();
    let (log, _) = Log::open(&env, dir, &LogOptions::default(), &Count::new(1))?;
    for threads in [1, 8, 64] {
        const COMMITS: u64 = 100;
        let before = log.stats();
        let started = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    let mut group = GroupBuilder::new();
                    for round in 0..COMMITS {
                        fill(&mut group, round, Shape::Round);
                        let synced = log.append(&mut group).and_then(|at| log.sync_to(at));
                        assert!(synced.is_ok());
                    }
                });
            }
        });
        let took = started.elapsed();
        let syncs = log.stats().syncs - before.syncs;
        let commits = threads * COMMITS;
        println!(
            "{threads} waiters: {:.0} commits/s, {:.1} commits a sync",
            commits as f64 / took.as_secs_f64(),
            commits as f64 / syncs as f64
        );
    }
    Ok(())
}

fn median(times: impl IntoIterator<Item = Duration>) -> u128 {
    let mut times: Vec<_> = times.into_iter().collect();
    times.sort_unstable();
    times[times.len() / 2].as_nanos()
}

fn percentiles(times: &mut [Duration]) -> String {
    times.sort_unstable();
    let at = |share: usize| times[(times.len() - 1) * share / 100].as_micros();
    format!("{} / {}", at(50), at(99))
}
