//! The load: the cpu-only shape of the Time Series Benchmark Suite (TSBS).
//!
//! Every host has ten tags and, every ten seconds, a line with ten random walks from 0 to 100. In
//! order, lines come by time, all hosts of a moment one after the other; a late line comes at a
//! place uniform between its own and the end. No timestamp repeats, so all must be held.

use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

/// Names of the values of a line.
pub(crate) const FIELDS: [&str; 10] = [
    "usage_user",
    "usage_system",
    "usage_idle",
    "usage_nice",
    "usage_iowait",
    "usage_irq",
    "usage_softirq",
    "usage_steal",
    "usage_guest",
    "usage_guest_nice",
];
/// Names of the tags of a host.
pub(crate) const TAGS: [&str; 10] = [
    "hostname",
    "region",
    "datacenter",
    "rack",
    "os",
    "arch",
    "team",
    "service",
    "service_version",
    "service_environment",
];
/// Time of the first lines: the beginning of 2016, as in the suite.
pub(crate) const START_MS: i64 = 1_451_606_400_000;
/// Time between two lines of a host.
pub(crate) const STEP_MS: i64 = 10_000;

const REGIONS: [(&str, u32); 5] = [
    ("us-east-1", 5),
    ("us-west-2", 3),
    ("eu-central-1", 2),
    ("eu-west-1", 3),
    ("ap-northeast-1", 2),
];

/// All lines of a load.
#[derive(Debug)]
pub(crate) struct CpuLoad {
    tags: Vec<[String; 10]>,
    rows: u32,
    values: Vec<u8>,
}

/// Lines that are sent together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Batch {
    pub(crate) lines: Vec<u32>,
    pub(crate) new_hosts: Vec<u32>,
}

impl CpuLoad {
    /// A load of `rows` lines for each of `hosts`; the same seed gives the same lines.
    pub(crate) fn new(hosts: u32, rows: u32, seed: u64) -> Self {
        let mut rng = SmallRng::seed_from_u64(seed);
        let tags = (0..hosts).map(|host| tags(host, &mut rng)).collect();
        let count = hosts as usize * FIELDS.len();
        let mut state: Vec<f64> = (0..count).map(|_| rng.random_range(0.0..100.0)).collect();
        let mut values = Vec::with_capacity(count * rows as usize);
        for _ in 0..rows {
            for value in &mut state {
                // The suite walks with a normal step of 1; a sum of three has nearly its shape.
                let step: f64 = (0..3).map(|_| rng.random_range(-1.0..1.0)).sum();
                *value = (*value + step).clamp(0.0, 100.0);
                values.push(*value as u8);
            }
        }
        CpuLoad { tags, rows, values }
    }

    pub(crate) fn hosts(&self) -> u32 {
        self.tags.len() as u32
    }

    pub(crate) fn lines(&self) -> u32 {
        self.rows * self.hosts()
    }

    pub(crate) fn values(&self) -> u64 {
        self.values.len() as u64
    }

    pub(crate) fn host(&self, line: u32) -> u32 {
        line % self.hosts()
    }

    /// Host and field of every series.
    pub(crate) fn all_series(&self) -> impl Iterator<Item = (u32, usize)> {
        (0..self.hosts()).flat_map(|host| (0..FIELDS.len()).map(move |field| (host, field)))
    }

    /// The tags of a host, in the order of `TAGS`.
    pub(crate) fn tags(&self, host: u32) -> &[String; 10] {
        &self.tags[host as usize]
    }

    pub(crate) fn timestamp_ms(&self, line: u32) -> i64 {
        START_MS + i64::from(line / self.hosts()) * STEP_MS
    }

    pub(crate) fn end_ms(&self) -> i64 {
        START_MS + i64::from(self.rows.saturating_sub(1)) * STEP_MS
    }

    /// The values of a line, in the order of `FIELDS`.
    pub(crate) fn fields(&self, line: u32) -> &[u8] {
        &self.values[line as usize * FIELDS.len()..][..FIELDS.len()]
    }

    /// All samples of a field of a host, by time.
    pub(crate) fn series(&self, host: u32, field: usize) -> Vec<(i64, f64)> {
        let sample = |line| (self.timestamp_ms(line), f64::from(self.fields(line)[field]));
        let lines = (0..self.rows).map(|row| row * self.hosts() + host);
        lines.map(sample).collect()
    }

    /// The lines in the order they are sent, `late_share` of them late.
    pub(crate) fn order(&self, late_share: f64, seed: u64) -> Vec<u32> {
        let mut rng = SmallRng::seed_from_u64(seed ^ 0x6c61_7465);
        let end = f64::from(self.lines());
        let mut place = |line: u32| {
            if rng.random::<f64>() < late_share {
                rng.random_range(f64::from(line)..end)
            } else {
                f64::from(line)
            }
        };
        let mut placed: Vec<_> = (0..self.lines()).map(|line| (place(line), line)).collect();
        placed.sort_by(|a, b| a.0.total_cmp(&b.0));
        placed.into_iter().map(|(_, line)| line).collect()
    }

    /// The share of lines that come after a newer one of their host.
    pub(crate) fn late_share(&self, order: &[u32]) -> f64 {
        let mut newest = vec![None; self.tags.len()];
        let mut late = 0;
        for &line in order {
            let newest = &mut newest[self.host(line) as usize];
            late += u32::from(*newest > Some(line));
            *newest = (*newest).max(Some(line));
        }
        f64::from(late) / order.len().max(1) as f64
    }

    /// Deals `order` out to `workers` by host, in batches of at most `size` lines.
    pub(crate) fn batches(&self, order: &[u32], workers: usize, size: usize) -> Vec<Vec<Batch>> {
        let mut dealt: Vec<Vec<Batch>> = vec![Vec::new(); workers];
        let mut known = vec![false; self.tags.len()];
        for &line in order {
            let host = self.host(line);
            let batches = &mut dealt[host as usize % workers];
            let mut batch = batches.pop_if(|last| last.lines.len() < size);
            let batch = batch.get_or_insert_default();
            batch.lines.push(line);
            if !std::mem::replace(&mut known[host as usize], true) {
                batch.new_hosts.push(host);
            }
            batches.push(std::mem::take(batch));
        }
        dealt
    }
}

fn tags(host: u32, rng: &mut SmallRng) -> [String; 10] {
    let (region, centres) = REGIONS[rng.random_range(0..REGIONS.len())];
    let mut one_of = |names: &[&str]| (*names.choose(rng).unwrap_or(&"")).to_owned();
    let [os, arch, team, environment] = [
        one_of(&["Ubuntu16.10", "Ubuntu16.04LTS", "Ubuntu15.10"]),
        one_of(&["x64", "x86"]),
        one_of(&["SF", "NYC", "LON", "CHI"]),
        one_of(&["production", "staging", "test"]),
    ];
    let centre = char::from(b'a' + rng.random_range(0..centres) as u8);
    [
        format!("host_{host}"),
        region.to_owned(),
        format!("{region}{centre}"),
        rng.random_range(0..100).to_string(),
        os,
        arch,
        team,
        rng.random_range(0..20).to_string(),
        rng.random_range(0..2).to_string(),
        environment,
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_line_and_new_host_is_sent_once_and_as_late_as_asked() {
        let load = CpuLoad::new(10, 1_000, 7);
        for share in [0.0, 0.1, 0.5] {
            let order = load.order(share, 7);
            let late = load.late_share(&order);
            assert!((late - share).abs() < 0.05, "{share}: {late}");
            let (mut lines, mut hosts) = (Vec::new(), Vec::new());
            for batch in load.batches(&order, 2, 32).concat() {
                assert!(batch.lines.len() <= 32);
                lines.extend(batch.lines);
                hosts.extend(batch.new_hosts);
            }
            lines.sort_unstable();
            hosts.sort_unstable();
            assert!(lines.into_iter().eq(0..10_000) && hosts.into_iter().eq(0..10));
        }
    }

    #[test]
    fn a_series_has_the_values_of_its_lines() {
        let load = CpuLoad::new(3, 50, 5);
        let series = load.series(2, 4);
        assert_eq!(series.len(), 50);
        let line = 10 * 3 + 2;
        let wanted = (load.timestamp_ms(line), f64::from(load.fields(line)[4]));
        assert_eq!(series[10], wanted);
        assert_eq!(load.end_ms(), series[49].0);
    }
}
