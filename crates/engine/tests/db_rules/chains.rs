//! Chains: destinations that are sources of others.

use crate::db_rules::random::Dice;
use crate::db_rules::support::{add, closed_of, everything, held, last, latest, query, spec};
use crate::db_support::{DIR, append, last_wins, open, options, sample};
use latewood_engine::io::Clock;
use latewood_engine::io::sim::{SimClock, SimDisk};
use latewood_engine::io::waiting::{no_wait, until};
use latewood_engine::{Db, ErrorKind, ExpireIf, KeyHook, Options, RangeQuery, RuleSpec};
use latewood_model::{Aggregator, SeriesOptions};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Instant;

/// The levels of a chain; the first is that of [`add`].
const LEVELS: [&[u8]; 4] = [b"source", b"tens", b"hundreds", b"thousands"];

/// Means over ten times the span of the level above.
fn rule(level: usize) -> RuleSpec {
    spec(Aggregator::Avg, [10, 100, 1_000][level], 0)
}

fn small() -> SeriesOptions {
    SeriesOptions {
        chunk_size_bytes: 48,
        ..SeriesOptions::default()
    }
}

fn create(db: &Db, keys: &[&[u8]]) {
    for key in keys {
        db.create(key, &small()).unwrap();
    }
}

/// Sources and destinations in a row.
fn chain(db: &Db) {
    create(db, &LEVELS);
    for (at, pair) in LEVELS.windows(2).enumerate() {
        db.create_rule(pair[0], pair[1], rule(at)).unwrap();
    }
}

/// Slices of a few samples.
fn open_slicing(disk: &SimDisk) -> Db {
    let options = Options {
        backfill_samples: 8,
        ..options(2)
    };
    Db::open(&disk.env(1), Path::new(DIR), options, last_wins()).unwrap()
}

/// Every level, from the last on, is what a query over the level above gives.
fn check(db: &Db) {
    for (at, pair) in LEVELS.windows(2).enumerate().rev() {
        let rows = held(db, pair[1]);
        assert_eq!(rows, closed_of(db, pair[0], rule(at)), "level {at}");
    }
}

/// One sample of its own timestamp as value every 5 ms.
fn steps(from: i64, to: i64) -> Vec<(i64, f64)> {
    let steps = (from..to).step_by(5);
    steps.map(|at| (at, at as f64)).collect()
}

fn rows(db: &Db, key: &[u8], from: i64, to: i64) -> Vec<(i64, f64)> {
    let span = RangeQuery {
        from,
        to,
        ..everything(None)
    };
    query(db, key, &span).unwrap()
}

#[test]
fn a_late_sample_corrects_every_level_before_it_is_read() {
    let db = open(&SimDisk::new()).unwrap();
    chain(&db);
    add(&db, &steps(0, 3_000));
    // The last level is read first.
    assert_eq!(held(&db, LEVELS[3]), [(0, 497.5), (1_000, 1_497.5)]);
    check(&db);
    add(&db, &[(1, 302.5), (1_003, 0.0)]);
    assert_eq!(rows(&db, LEVELS[3], 0, 0), [(0, 498.5)]);
    check(&db);
    db.delete_range(LEVELS[0], 200, 1_099).unwrap();
    assert_eq!(held(&db, LEVELS[2])[..2].last().unwrap().0, 100);
    check(&db);
    db.settle().unwrap();
    for pair in LEVELS.windows(2) {
        let states = db.rule_states(pair[0]).unwrap();
        assert!(
            states.iter().all(|state| state.dirty_buckets == 0),
            "{states:?}"
        );
    }
}

#[test]
fn every_level_is_told_to_listeners_and_shows_both_of_its_rules() {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hears = heard.clone();
    let hook = KeyHook::new(move |key| hears.lock().unwrap().push(key.to_vec()));
    let options = Options {
        on_rule_write: Some(hook),
        ..options(2)
    };
    let db = Db::open(&SimDisk::new().env(1), Path::new(DIR), options, last_wins()).unwrap();
    chain(&db);
    add(&db, &steps(0, 2_500));
    db.settle().unwrap();
    let mut told = std::mem::take(&mut *heard.lock().unwrap());
    told.sort();
    told.dedup();
    assert_eq!(told, [LEVELS[2], LEVELS[1], LEVELS[3]]);
    let source = db.source_of(LEVELS[1]).unwrap();
    assert_eq!(source.as_deref(), Some(LEVELS[0]));
    assert_eq!(*db.rules_of(LEVELS[1]).unwrap()[0].destination, *LEVELS[2]);
    let states = db.rule_states(LEVELS[1]).unwrap();
    let sources: Vec<&[u8]> = states.iter().map(|state| &*state.source).collect();
    assert_eq!(sources, [LEVELS[1], LEVELS[0]]);
    // A row that comes out as before changes nothing below.
    add(&db, &[(12, 12.5)]);
    held(&db, LEVELS[3]);
    assert_eq!(*heard.lock().unwrap(), [LEVELS[1]; 0]);
}

#[test]
fn circles_and_long_chains_are_refused() {
    let db = open(&SimDisk::new()).unwrap();
    let keys: Vec<Vec<u8>> = (0..11).map(|n| format!("k{n}").into_bytes()).collect();
    create(&db, &keys.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let tie = |from: usize, to: usize| {
        let made = db.create_rule(&keys[from], &keys[to], rule(0));
        made.map(drop).map_err(|error| {
            assert_eq!(error.kind(), ErrorKind::Invalid);
            error.to_string()
        })
    };
    // Two parts, of four rules and of three.
    for at in [0, 1, 2, 3, 5, 6, 7] {
        tie(at, at + 1).unwrap();
    }
    let circle =
        "the rule would make a circle: the source key is computed from the destination key";
    assert_eq!(tie(4, 0).unwrap_err(), circle);
    assert_eq!(tie(1, 0).unwrap_err(), circle);
    tie(4, 5).unwrap();
    let long = "at most 8 rules can follow one another";
    assert_eq!(tie(8, 9).unwrap_err(), long);
    assert_eq!(tie(9, 0).unwrap_err(), long);
    tie(7, 9).unwrap();
    assert_eq!(tie(9, 10).unwrap_err(), long);
    assert_eq!(
        tie(10, 9).unwrap_err(),
        "the destination key already has a src rule"
    );
    assert_eq!(tie(8, 0).unwrap_err(), circle);
    // Where a part ends, there is room again.
    db.remove(&[&keys[4]]).unwrap();
    tie(8, 10).unwrap();
    tie(3, 5).unwrap();
}

/// All orders of making the rules, with the history of some or of all.
#[test]
fn histories_are_filled_from_the_first_source_on() {
    for (first, second) in [(true, true), (true, false), (false, true)] {
        let db = open_slicing(&SimDisk::new());
        create(&db, &LEVELS[..3]);
        add(&db, &steps(0, 2_500));
        let tie = |at: usize| {
            db.create_rule_with_history(LEVELS[at], LEVELS[at + 1], rule(at))
                .unwrap();
        };
        if first {
            tie(0);
        }
        if second {
            tie(1);
        }
        if !first {
            tie(0);
        }
        assert!(db.backfill_step().unwrap());
        if !second {
            tie(1);
        }
        while db.backfill_step().unwrap() {}
        db.settle().unwrap();
        check_two(&db);
        assert_eq!(held(&db, LEVELS[2]).len(), 24);
    }
}

fn check_two(db: &Db) {
    for at in [1, 0] {
        let rows = held(db, LEVELS[at + 1]);
        assert_eq!(rows, closed_of(db, LEVELS[at], rule(at)), "level {at}");
    }
}

/// Two rules over a history, of which nothing is computed.
fn unfilled() -> Db {
    let db = open_slicing(&SimDisk::new());
    create(&db, &LEVELS[..3]);
    add(&db, &steps(0, 2_500));
    for at in [0, 1] {
        db.create_rule_with_history(LEVELS[at], LEVELS[at + 1], rule(at))
            .unwrap();
    }
    db
}

fn left(db: &Db, key: &[u8]) -> u64 {
    let states = db.rule_states(key).unwrap();
    states[0].backfill_buckets
}

#[test]
fn a_reader_has_what_it_asks_for_computed_at_all_levels() {
    let db = unfilled();
    assert_eq!(rows(&db, LEVELS[2], 1_000, 1_000), [(1_000, 1_047.5)]);
    let of_first = left(&db, LEVELS[0]);
    assert!((150..249).contains(&of_first), "a part of 249: {of_first}");
    let newest = db.last_sample(LEVELS[2]).unwrap().unwrap();
    assert_eq!((newest.timestamp, newest.value), (2_300, 2_347.5));
    assert!(left(&db, LEVELS[0]) > 100, "{}", left(&db, LEVELS[0]));
    // With what is open above: the last bucket of ten.
    assert_eq!(latest(&db, LEVELS[2]).last(), Some(&(2_400, 2_447.5)));
    check_two(&db);
    assert_eq!(left(&db, LEVELS[0]), 0);
}

#[test]
fn an_open_bucket_over_a_history_is_computed_alone() {
    let db = unfilled();
    let open = db.open_bucket(LEVELS[2]).unwrap().unwrap();
    assert_eq!((open.timestamp, open.value), (2_400, 2_447.5));
    assert!(left(&db, LEVELS[0]) > 200, "{}", left(&db, LEVELS[0]));
}

#[test]
fn a_part_is_read_at_no_level() {
    let db = unfilled();
    let all = everything(None);
    let held = no_wait();
    let refused = query(&db, LEVELS[2], &all).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away);
    assert_eq!(left(&db, LEVELS[0]), 249, "nothing was begun");
    drop(held);
    let over = until(Instant::now());
    let refused = query(&db, LEVELS[2], &all).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Away);
    drop(over);
    assert_eq!(query(&db, LEVELS[2], &all).unwrap().len(), 24);
}

#[test]
fn latest_shows_what_is_open_at_every_level() {
    let db = open(&SimDisk::new()).unwrap();
    chain(&db);
    assert_eq!(latest(&db, LEVELS[3]), []);
    add(&db, &[(3, 1.0)]);
    for key in &LEVELS[1..] {
        assert_eq!((held(&db, key), latest(&db, key)), (vec![], vec![(0, 1.0)]));
    }
    add(&db, &steps(10, 1_995));
    add(&db, &[(2_003, 7.0)]);
    // The row of the newest closed one, and of what is open above, in two buckets.
    assert_eq!(held(&db, LEVELS[2]).last(), Some(&(1_800, 1_847.5)));
    let rows = latest(&db, LEVELS[2]);
    assert_eq!(
        rows[18..],
        [(1_800, 1_847.5), (1_900, 1_947.25), (2_000, 7.0)]
    );
    assert_eq!(held(&db, LEVELS[3]).len(), 1);
    let rows = latest(&db, LEVELS[3]);
    assert_eq!(rows[1..], [(1_000, 1_497.475), (2_000, 7.0)]);
    assert_eq!(last(&db, LEVELS[3]), Some((2_000, 7.0)));
    // As if all were closed.
    let before = latest(&db, LEVELS[3]);
    add(&db, &[(20_000, 0.0), (30_000, 0.0), (40_000, 0.0)]);
    assert_eq!(held(&db, LEVELS[3])[..3], before);
}

/// A row of a user counts below as the row that it is, until it is computed again.
#[test]
fn rows_of_users_between_count_below() {
    let db = open(&SimDisk::new()).unwrap();
    chain(&db);
    add(&db, &steps(0, 2_500));
    append(&db, &[sample(LEVELS[1], 20, 1_000.0)]).unwrap()[0].unwrap();
    check_below(&db);
    assert_eq!(rows(&db, LEVELS[1], 20, 20), [(20, 1_000.0)]);
    db.delete_range(LEVELS[1], 30, 59).unwrap();
    check_below(&db);
    assert_eq!(rows(&db, LEVELS[2], 0, 99).len(), 1);
    add(&db, &[(21, 0.0)]);
    check_below(&db);
    assert_eq!(rows(&db, LEVELS[1], 20, 20), [(20, 15.0)]);
}

fn check_below(db: &Db) {
    for at in [2, 1] {
        let rows = held(db, LEVELS[at + 1]);
        assert_eq!(rows, closed_of(db, LEVELS[at], rule(at)), "level {at}");
    }
}

/// What closed reaches the levels below before one between goes, however it goes.
#[test]
fn a_level_between_goes_and_the_ends_stay() {
    type End = fn(&Db, &SimClock);
    let ends: [(&str, End); 4] = [
        ("removed", |db, _| {
            assert_eq!(db.remove(&[LEVELS[1]]).unwrap().0, 1)
        }),
        ("renamed over", |db, _| {
            append(db, &[sample(b"x", 1, 1.0)]).unwrap();
            assert!(db.rename(b"x", LEVELS[1], true).unwrap().0);
        }),
        ("expired", |db, clock| {
            let at_ms = clock.now_ms() + 10;
            db.expire(LEVELS[1], at_ms, ExpireIf::default()).unwrap();
            clock.advance_ms(10);
            db.maintain().unwrap();
        }),
        ("untied", |db, _| {
            for pair in LEVELS[..3].windows(2) {
                db.delete_rule(pair[0], pair[1]).unwrap();
            }
        }),
    ];
    for (name, end) in ends {
        let (disk, clock) = (SimDisk::new(), Arc::<SimClock>::default());
        let mut env = disk.env(1);
        env.clock = clock.clone();
        let db = Db::open(&env, Path::new(DIR), options(2), last_wins()).unwrap();
        chain(&db);
        add(&db, &steps(0, 2_105));
        end(&db, &clock);
        let expected: Vec<_> = (0..20)
            .map(|n| (n * 100, n as f64 * 100.0 + 47.5))
            .collect();
        assert_eq!(held(&db, LEVELS[2]), expected, "{name}");
        assert_eq!(db.source_of(LEVELS[2]).unwrap(), None, "{name}");
        assert_eq!(held(&db, LEVELS[3]), [(0, 497.5)], "{name}");
        // The rest goes on.
        append(&db, &[sample(LEVELS[2], 0, 0.0)]).unwrap()[0].unwrap();
        assert_eq!(held(&db, LEVELS[3]), [(0, 492.75)], "{name}");
        add(&db, &[(3_000, 1.0)]);
        drop(db);
        let db = open(&disk.kill()).unwrap();
        assert_eq!(held(&db, LEVELS[3]), [(0, 492.75)], "{name}, restarted");
    }
}

#[test]
fn a_level_under_another_name_and_a_copy_of_it() {
    let db = open(&SimDisk::new()).unwrap();
    chain(&db);
    add(&db, &steps(0, 2_500));
    assert!(db.copy(LEVELS[1], b"copy", false).unwrap().0);
    assert_eq!(held(&db, b"copy"), held(&db, LEVELS[1]));
    assert!(db.rules_of(b"copy").unwrap().is_empty());
    assert_eq!(db.source_of(b"copy").unwrap(), None);
    assert!(db.rename(LEVELS[1], b"other", false).unwrap().0);
    add(&db, &[(3, 900.0)]);
    assert_eq!(held(&db, b"other"), closed_of(&db, LEVELS[0], rule(0)));
    assert_eq!(held(&db, LEVELS[2]), closed_of(&db, b"other", rule(1)));
}

/// Each level holds what its own retention leaves, and the next one what it has got of it.
#[test]
fn a_short_retention_between_takes_no_rows_below() {
    let db = open(&SimDisk::new()).unwrap();
    chain(&db);
    let short = |retention_ms| SeriesOptions {
        retention_ms,
        ..small()
    };
    db.alter(LEVELS[1], &short(300)).unwrap();
    for part in 0..5 {
        add(&db, &steps(part * 1_000, part * 1_000 + 1_000));
        db.settle().unwrap();
        db.flush().unwrap();
        db.merge().unwrap();
    }
    assert!(rows(&db, LEVELS[1], 0, 3_000).is_empty());
    let before = held(&db, LEVELS[2]);
    assert_eq!(before.len(), 49);
    // Too late for the level between: what is below stays.
    add(&db, &[(1_003, 5_000.0)]);
    db.delete_range(LEVELS[0], 1_500, 1_799).unwrap();
    assert_eq!(held(&db, LEVELS[2]), before);
    // A bucket that has expired in part is whole.
    assert_eq!(rows(&db, LEVELS[1], 0, 4_690)[0].0, 4_680);
    add(&db, &[(4_683, 5_000.0)]);
    let row = rows(&db, LEVELS[2], 4_600, 4_600)[0].1;
    let expected = 4_647.5 + ((4_680.0 + 5_000.0 + 4_685.0) / 3.0 - 4_682.5) / 10.0;
    assert!((row - expected).abs() < 1e-6, "{row}, expected {expected}");
    db.alter(LEVELS[1], &short(0)).unwrap();
    assert_eq!(held(&db, LEVELS[2]).len(), 49);
}

#[test]
fn a_chain_goes_on_after_a_kill_at_any_level() {
    // Levels above are worked off, those below are not.
    for (taken, key) in LEVELS.iter().enumerate() {
        let mut disk = SimDisk::new();
        let db = open(&disk).unwrap();
        chain(&db);
        add(&db, &steps(0, 2_500));
        db.flush().unwrap();
        add(&db, &steps(2_500, 3_500));
        add(&db, &[(3, 900.0), (1_700, -5.0)]);
        held(&db, key);
        if taken % 2 == 1 {
            db.flush().unwrap();
        }
        drop(db);
        disk = disk.kill();
        let db = open(&disk).unwrap();
        assert_eq!(held(&db, LEVELS[3]).len(), 3, "{taken}");
        check(&db);
    }
}

/// Many chains, so that sources share turns, with writers, readers and background threads.
#[test]
fn threads_that_work_on_all_levels_agree_in_the_end() {
    let options = Options {
        background: true,
        ..options(2)
    };
    let db = Db::open(&SimDisk::new().env(1), Path::new(DIR), options, last_wins()).unwrap();
    let key = |chain: usize, level: usize| format!("{chain}:{level}").into_bytes();
    let chains = 30;
    for chain in 0..chains {
        for level in 0..4 {
            create(&db, &[&key(chain, level)]);
        }
        for level in 0..3 {
            let (from, to) = (key(chain, level), key(chain, level + 1));
            db.create_rule(&from, &to, rule(level)).unwrap();
        }
    }
    thread::scope(|threads| {
        for thread in 0..2 {
            let (db, dice) = (&db, Dice::new(thread));
            threads.spawn(move || {
                for at in 0..4_000 {
                    let back = dice.below(if dice.one_in(20) { 2_000 } else { 20 });
                    let at = (at as i64 - back as i64).max(0);
                    let of = key(dice.below(chains as u64) as usize, 0);
                    append(db, &[sample(&of, at, dice.below(50) as f64)]).unwrap()[0].unwrap();
                }
            });
            let dice = Dice::new(thread + 2);
            threads.spawn(move || {
                for _ in 0..400 {
                    let level = 1 + dice.below(3) as usize;
                    latest(db, &key(dice.below(chains as u64) as usize, level));
                }
            });
        }
    });
    for chain in 0..chains {
        for level in (0..3).rev() {
            let rows = held(&db, &key(chain, level + 1));
            let expected = closed_of(&db, &key(chain, level), rule(level));
            assert_eq!(rows, expected, "chain {chain}, level {level}");
        }
    }
}
