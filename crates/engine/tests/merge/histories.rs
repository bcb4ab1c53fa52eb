//! The cost of merging over long histories: write amplification, files,
//! overlap. Prints its figures; run with `--nocapture`.

use crate::db_support::{append, read, sample};
use crate::merge::world::{Chance, block_files, open_with, small_blocks};
use latewood_engine::Db;
use latewood_engine::io::sim::SimDisk;

struct History {
    disk: SimDisk,
    db: Db,
    flushed_bytes: u64,
    files_max: usize,
    chance: Chance,
}

impl History {
    fn new() -> Self {
        let disk = SimDisk::new();
        Self {
            db: open_with(&disk, small_blocks()).unwrap(),
            disk,
            flushed_bytes: 0,
            files_max: 0,
            chance: Chance(1),
        }
    }

    fn put(&mut self, at: i64) {
        let value = self.chance.below(100_000) as f64 / 8.0;
        append(&self.db, &[sample(b"s", at, value)]).unwrap()[0].unwrap();
    }

    fn flush(&mut self) {
        let before = block_files(&self.disk).1;
        self.db.flush().unwrap();
        self.flushed_bytes += block_files(&self.disk).1 - before;
        while self.db.merge_step().unwrap() {}
        self.files_max = self.files_max.max(block_files(&self.disk).0);
    }

    /// Bytes written to blocks for each byte that a flush wrote.
    fn report(&self, name: &str) -> f64 {
        // All of it: no read meets more late blocks.
        read(&self.db, b"s").unwrap();
        let stats = self.db.merge_stats();
        let amplification = 1.0 + stats.bytes_written as f64 / self.flushed_bytes as f64;
        // The database counts the catalogue as flushed too.
        assert!(stats.write_amplification() <= amplification);
        let files = stats.base_blocks + stats.late_blocks;
        assert_eq!(block_files(&self.disk).0 as u64, files);
        assert!(stats.reads_late_blocks_max <= 12, "{stats:?}");
        println!(
            "{name}: {} bytes flushed, amplification {amplification:.2}, at most {} files, a read meets {} late blocks, \
             {} base merges, {} late merges, {} folds",
            self.flushed_bytes,
            self.files_max,
            stats.reads_late_blocks_max,
            stats.base_merges,
            stats.late_merges,
            stats.folds,
        );
        amplification
    }
}

/// Flushes of a thousand samples, `percent` of them late by anything.
fn late_history(percent: u64, name: &str) -> (f64, usize) {
    let mut history = History::new();
    let mut newest = 0;
    for _ in 0..150 {
        for _ in 0..1_000 {
            let is_late = newest > 0 && history.chance.below(100) < percent;
            let at = if is_late {
                history.chance.below(newest as u64) as i64
            } else {
                newest += 100;
                newest
            };
            history.put(at);
        }
        history.flush();
    }
    (history.report(name), history.files_max)
}

#[test]
fn in_order_a_byte_is_written_a_few_times() {
    let (amplification, files) = late_history(0, "in order");
    assert!(amplification < 3.5 && files < 80, "{amplification} {files}");
}

#[test]
fn ten_percent_late_costs_little_more() {
    let (amplification, files) = late_history(10, "10 % late");
    assert!(amplification < 6.0 && files < 90, "{amplification} {files}");
}

#[test]
fn ninety_nine_percent_late_stays_bounded() {
    let (amplification, files) = late_history(99, "99 % late");
    assert!(
        amplification < 12.0 && files < 90,
        "{amplification} {files}"
    );
}

#[test]
fn a_backfill_in_reverse_stays_bounded() {
    let mut history = History::new();
    let mut at = 100_000_000;
    for _ in 0..150 {
        for _ in 0..1_000 {
            history.put(at);
            at -= 100;
        }
        history.flush();
    }
    let amplification = history.report("reverse backfill");
    assert!(amplification < 9.0 && history.files_max < 90);
}

#[test]
fn a_lone_late_sample_a_day_makes_no_heap_of_files() {
    let mut history = History::new();
    for day in 1..=1_200i64 {
        for hour in 0..24 {
            history.put(day * 86_400_000 + hour * 3_600_000);
        }
        let back = history.chance.below(day as u64) as i64;
        history.put(back * 86_400_000 + 1_234);
        history.flush();
    }
    let amplification = history.report("a lone late sample a day");
    assert!(history.files_max < 60, "{} files", history.files_max);
    assert!(amplification < 10.0, "{amplification}");
}
