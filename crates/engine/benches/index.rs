//! What labels cost: memory per idle series, creating series, selecting them.
//!
//! `cargo bench -p latewood-engine --bench index [SERIES [DIRECTORY]]` creates
//! that many series (a million) of six labels, as the Time Series Benchmark
//! Suite has them: a host of its own and five labels of 3 to 1,000 values. It
//! prints what memory of the process they take once they are indexed, and the
//! times of selections, medians of several runs. Memory is anonymous memory,
//! so that the mapped log, which the kernel may drop, does not count.

use latewood_engine::io::Env;
use latewood_engine::{Append, Create, Db, Defaults, Options, Scratch};
use latewood_model::{Labels, Matcher, SeriesOptions, Test};
use rustix::time::{ClockId, clock_gettime};
use std::path::{Path, PathBuf};
use std::time::Instant;

const RUNS: usize = 7;
/// Series of one batch: a pipeline of 50 TS.ADD.
const BATCH: u64 = 50;

type Anything<T = ()> = Result<T, Box<dyn std::error::Error>>;

fn main() -> Anything {
    let mut arguments = std::env::args().skip(1).filter(|a| !a.starts_with('-'));
    let series = arguments.next().map_or(Ok(1_000_000), |n| n.parse())?;
    let root = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let dir = tempfile::tempdir_in(root)?;
    idle(&dir.path().join("idle"), series)?;
    for labels in [0, 6] {
        let name = format!("written-{labels}");
        written(&dir.path().join(name), series, labels)?;
    }
    Ok(())
}

/// The labels of series `number`, the first `count` of them.
fn labels(number: u64, count: usize) -> Anything<SeriesOptions> {
    // Scattered, as hosts are over racks.
    let mixed = (number.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 33) as usize;
    let regions = ["eu-west-1", "us-east-1", "ap-south-1"];
    let systems = ["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"];
    let pairs = [
        ("hostname", format!("host_{number}")),
        ("region", regions[mixed % 3].to_owned()),
        ("datacenter", format!("dc-{}", mixed / 3 % 27)),
        ("rack", format!("{}", mixed / 81 % 1_000)),
        ("os", systems[mixed / 7 % 3].to_owned()),
        ("team", format!("team-{}", mixed / 11 % 50)),
    ];
    let pairs = pairs.iter().take(count);
    Ok(SeriesOptions {
        labels: Labels::new(pairs.map(|(n, v)| (n.as_bytes(), v.as_bytes())))?,
        ..SeriesOptions::default()
    })
}

fn key(number: u64) -> Vec<u8> {
    format!("cpu:usage_user:{number:07}").into_bytes()
}

fn open(dir: &Path) -> Anything<Db> {
    let options = Options::default();
    Ok(Db::open(&Env::real(), dir, options, Defaults::default())?)
}

/// Memory of series without samples, and selections among them.
fn idle(dir: &Path, series: u64) -> Anything {
    let db = open(dir)?;
    let before = anonymous_bytes()?;
    for number in 0..series {
        db.create(&key(number), &labels(number, 6)?)?;
    }
    db.maintain()?;
    let bytes = (anonymous_bytes()? - before) as f64 / series as f64;
    let memory = db.memory();
    println!("{series} idle series of 6 labels: {bytes:.0} bytes of memory each");
    println!(
        "  of these: series and keys {:.0}, key map {:.0}, label index {:.0}",
        memory.series.total_bytes() as f64 / series as f64,
        memory.key_map_bytes as f64 / series as f64,
        memory.index_bytes as f64 / series as f64,
    );
    selections(&db, series);
    db.close()?;
    let begun = Instant::now();
    let db = open(dir)?;
    db.maintain()?;
    let seconds = begun.elapsed().as_secs_f64();
    println!("open and index again: {seconds:.2} s");
    db.close()?;
    Ok(())
}

fn is(name: &str, value: &str) -> Matcher {
    Matcher::new(name.as_bytes(), Test::AnyOf(vec![value.as_bytes().into()]))
}

fn is_not(name: &str, value: &str) -> Matcher {
    let value = value.as_bytes().into();
    Matcher::new(name.as_bytes(), Test::NoneOf(vec![value]))
}

fn selections(db: &Db, series: u64) {
    let host = is("hostname", &format!("host_{}", series / 2));
    let queries: [(&str, Vec<Matcher>); 5] = [
        ("hostname=", vec![host]),
        ("rack=", vec![is("rack", "500")]),
        (
            "rack= region= os!=",
            vec![
                is("region", "eu-west-1"),
                is("rack", "500"),
                is_not("os", "Ubuntu16.10"),
            ],
        ),
        (
            "region= os=",
            vec![is("region", "eu-west-1"), is("os", "Ubuntu16.10")],
        ),
        ("region=", vec![is("region", "eu-west-1")]),
    ];
    for (name, matchers) in &queries {
        let (found, micros) = median_micros(|| db.select(matchers).map_or(0, |found| found.len()));
        println!("select {name}: {found} series in {micros:.1} us");
    }
    let values = || db.label_values(b"rack", &queries[4].1, None, None, usize::MAX, None);
    let (found, micros) = median_micros(|| values().map_or(0, |listed| listed.len()));
    println!("values of rack where region=: {found} in {micros:.0} us");
}

fn median_micros(mut run: impl FnMut() -> usize) -> (usize, f64) {
    let mut found = 0;
    let mut micros: Vec<f64> = (0..RUNS)
        .map(|_| {
            let begun = Instant::now();
            found = run();
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    micros.sort_by(f64::total_cmp);
    (found, micros[RUNS / 2])
}

/// How fast one writer creates series by their first samples, log on, until
/// the last is indexed.
fn written(dir: &Path, series: u64, label_count: usize) -> Anything {
    let db = open(dir)?;
    let mut scratch = Scratch::new();
    let begun_cpu = cpu_seconds(ClockId::ProcessCPUTime);
    let (mut wall, mut making) = (0.0, 0.0);
    for start in (0..series).step_by(BATCH as usize) {
        // Keys and labels are the client's work.
        let making_begun = cpu_seconds(ClockId::ThreadCPUTime);
        let new: Vec<_> = (start..series.min(start + BATCH))
            .map(|number| Ok((key(number), labels(number, label_count)?)))
            .collect::<Anything<_>>()?;
        making += cpu_seconds(ClockId::ThreadCPUTime) - making_begun;
        let first = |(key, options)| Append {
            key,
            timestamp: 1_700_000_000_000,
            value: 21.5,
            on_duplicate: None,
            create: Create::With(options),
        };
        let begun = Instant::now();
        let batch: Vec<_> = new
            .iter()
            .map(|(key, options)| first((&key[..], options)))
            .collect();
        db.append(&batch, &mut scratch)?;
        wall += begun.elapsed().as_secs_f64();
    }
    let begun = Instant::now();
    db.maintain()?;
    wall += begun.elapsed().as_secs_f64();
    let cpu = cpu_seconds(ClockId::ProcessCPUTime) - begun_cpu - making;
    println!(
        "new series of {label_count} labels by their first sample: {:.2} M/s, CPU {:.0} ns each",
        series as f64 / wall / 1e6,
        cpu / series as f64 * 1e9,
    );
    db.close()?;
    Ok(())
}

fn cpu_seconds(clock: ClockId) -> f64 {
    let time = clock_gettime(clock);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn anonymous_bytes() -> Anything<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.trim().strip_suffix(" kB"));
    Ok(kilobytes.ok_or("no RssAnon")?.trim().parse::<u64>()? * 1024)
}
