//! Rules see what readers see: no samples below the floor of the database, whether
//! they are in memory or in blocks.

use crate::db_rules::support::{
    DESTINATION, SOURCE, add, everything, kept, last, latest, query, spec,
};
use crate::db_support::{DIR, last_wins, options};
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::{Clock, Env};
use latewood_engine::{Db, Options};
use latewood_model::{Aggregator, SeriesOptions};
use std::path::Path;
use std::sync::Arc;

const RETENTION_MS: u64 = 10_000;
const BUCKET_MS: i64 = 1_000;

/// A database that keeps ten seconds, its clock, and a round time near its now.
fn tied(aggregator: Aggregator) -> (Db, Arc<SimClock>, i64) {
    let clock = Arc::new(SimClock::default());
    let env = Env {
        clock: clock.clone(),
        ..SimDisk::new().env(1)
    };
    let options = Options {
        retention_ms: RETENTION_MS,
        ..options(2)
    };
    let db = Db::open(&env, Path::new(DIR), options, last_wins()).unwrap();
    db.create(SOURCE, &SeriesOptions::default()).unwrap();
    db.create(DESTINATION, &SeriesOptions::default()).unwrap();
    db.create_rule(SOURCE, DESTINATION, spec(aggregator, BUCKET_MS, 0))
        .unwrap();
    let now = clock.now_ms();
    (db, clock, now - now % BUCKET_MS)
}

/// Lets time pass until nothing before `floor` is kept.
fn expire(db: &Db, clock: &SimClock, floor: i64) {
    let wanted = floor + RETENTION_MS as i64;
    clock.advance_ms((wanted - clock.now_ms()) as u32);
    while db.merge_step().unwrap() {}
}

#[test]
fn no_line_is_drawn_from_a_sample_that_expired() {
    for flushed in [false, true] {
        let (db, clock, now) = tied(Aggregator::Twa);
        let start = now - 9_000;
        add(&db, &[(start - 900, 0.0), (start + 500, 10.0)]);
        if flushed {
            db.flush().unwrap();
        }
        expire(&db, &clock, start);
        assert_eq!(latest(&db, DESTINATION), [(start, 10.0)], "{flushed}");
        add(&db, &[(start + 1_500, 10.0)]);
        assert_eq!(kept(&db), [(start, 10.0)], "{flushed}");
        // As a reader has it who asks the source.
        let asked = everything(Some(spec(Aggregator::Twa, BUCKET_MS, 0)));
        let asked = query(&db, SOURCE, &asked).unwrap();
        assert_eq!(asked[0], (start, 10.0), "{flushed}");
    }
}

#[test]
fn an_open_bucket_that_began_too_early_is_shown_to_nobody() {
    for flushed in [false, true] {
        let (db, clock, now) = tied(Aggregator::Sum);
        let start = now - 9_000;
        add(&db, &[(start + 100, 1.0), (start + 500, 2.0)]);
        if flushed {
            db.flush().unwrap();
        }
        assert_eq!(last(&db, DESTINATION), Some((start, 3.0)), "{flushed}");
        expire(&db, &clock, start + 300);
        assert_eq!(latest(&db, DESTINATION), [], "{flushed}");
        assert_eq!(last(&db, DESTINATION), None, "{flushed}");
        add(&db, &[(start + 1_100, 4.0), (start + 2_100, 8.0)]);
        assert_eq!(kept(&db), [(start + 1_000, 4.0)], "{flushed}");
        let both = [(start + 1_000, 4.0), (start + 2_000, 8.0)];
        assert_eq!(latest(&db, DESTINATION), both, "{flushed}");
    }
}
