//! Concurrent writers, readers, flushes and merges.

use crate::db_support::{append, read, sample};
use crate::merge::world::{open_with, small_blocks};
use latewood_engine::io::sim::SimDisk;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

/// Timestamps of a series: every second one in order, the others late.
const SAMPLES: i64 = 12_000;

#[test]
fn readers_see_every_acknowledged_sample_while_blocks_change_behind_them() {
    let disk = SimDisk::new();
    let db = open_with(&disk, small_blocks()).unwrap();
    let (written, done) = (AtomicI64::new(0), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for step in 0..SAMPLES {
                append(&db, &[sample(b"s", step * 2, step as f64)]).unwrap();
                if step >= 3_000 {
                    let late = step - 3_000;
                    append(&db, &[sample(b"s", late * 2 + 1, late as f64 + 0.5)]).unwrap();
                }
                written.store(step, Ordering::SeqCst);
                if step % 500 == 499 {
                    db.flush().unwrap();
                }
            }
            done.store(true, Ordering::SeqCst);
        });
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                db.merge_step().unwrap();
            }
            db.merge().unwrap();
        });
        for _ in 0..2 {
            scope.spawn(|| {
                while !done.load(Ordering::SeqCst) {
                    let least = written.load(Ordering::SeqCst);
                    if least == 0 {
                        continue;
                    }
                    let rows = read(&db, b"s").unwrap();
                    let even = rows.iter().filter(|row| row.timestamp % 2 == 0).count();
                    let odd = rows.len() - even;
                    assert!(even as i64 >= least, "{even} of {least}");
                    assert!(odd as i64 >= least - 3_000, "{odd} of {least}");
                    assert!(rows.is_sorted_by(|a, b| a.timestamp < b.timestamp));
                    assert!(
                        rows.iter()
                            .all(|row| row.value == row.timestamp as f64 / 2.0)
                    );
                }
            });
        }
    });
    let rows = read(&db, b"s").unwrap();
    assert_eq!(rows.len() as i64, SAMPLES + SAMPLES - 3_000);
    let stats = db.merge_stats();
    assert!(stats.folds > 0 && stats.failures == 0, "{stats:?}");
}
