//! What late samples cost after a merge: nothing. The same samples take about the same
//! space, in whichever order they came.

use crate::db_support::{DIR, append, last_wins, options, sample};
use latewood_engine::Db;
use latewood_engine::io::sim::{SimDisk, SimRandom};
use std::path::Path;

const SERIES: u64 = 8;
const SAMPLES: usize = 4_000;

/// A reading in tenths that moves a little, as sensors' do.
fn value(series: u64, at: usize) -> f64 {
    let noise = (at as u64 ^ series).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 61;
    200.0 + (at as f64 / 50.0).sin().mul_add(30.0, noise as f64).round() / 10.0
}

/// Bytes of base blocks after a merge, `flushes` flushes before it. A sample in
/// `late_percent` of a hundred comes at a random time after its turn.
fn kept(late_percent: u64, flushes: usize) -> u64 {
    let disk = SimDisk::new();
    let db = Db::open(&disk.env(1), Path::new(DIR), options(2), last_wins()).unwrap();
    let random = SimRandom::new(7);
    let mut turns: Vec<(u64, usize)> = (0..SAMPLES)
        .map(|at| {
            let is_late = random.below(100) < late_percent;
            let later = random.below((SAMPLES - at) as u64);
            (at as u64 + if is_late { later } else { 0 }, at)
        })
        .collect();
    turns.sort_unstable();
    for some in turns.chunks(SAMPLES / flushes) {
        for series in 0..SERIES {
            let key = format!("k{series}");
            for part in some.chunks(50) {
                let one = |&(_, at): &(u64, usize)| {
                    sample(key.as_bytes(), at as i64 * 10_000, value(series, at))
                };
                let batch: Vec<_> = part.iter().map(one).collect();
                append(&db, &batch).unwrap();
            }
        }
        db.flush().unwrap();
    }
    db.merge().unwrap();
    let stats = db.merge_stats();
    assert_eq!(stats.late_bytes, 0);
    stats.base_bytes
}

#[test]
fn the_same_samples_take_the_same_space_in_whichever_order_they_came() {
    for flushes in [1, 5] {
        let in_order = kept(0, flushes);
        for late_percent in [10, 99] {
            let late = kept(late_percent, flushes);
            let more = late as f64 / in_order as f64;
            println!("{flushes} flushes, {late_percent} % late: {late} for {in_order} bytes");
            assert!(
                more < 1.05,
                "{late_percent} % late: {more:.3} times the bytes"
            );
        }
    }
}
