//! Series that are parked answer as if they were awake.
//!
//! The same is done to two databases, of which one parks series in between; then both answer the
//! same, bit by bit, whatever was merged, flushed, killed and started again meanwhile, and their
//! files are sound. Faults that take parked series for gone are planted at the places where that
//! would lose data, and must be found.

use super::twins::{Blind, Pair, Parks, READER, WHOLE, answers};
use crate::format::rule::RuleSpec;
use crate::io::Clock;
use crate::io::sim::SimRandom;
use crate::{Append, AppendTo, Create, Db, ExpireIf, Position, Result, Scratch};
use latewood_model::{Aggregator, DuplicatePolicy, Labels, SeriesId, SeriesOptions};
use std::fmt::Debug;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// They are followed by files of what changed.
const CHANGES: u64 = 0;
/// Where ids of the second partition begin.
const FAR: u64 = 1 << 40;

fn put(db: &Db, key: &[u8], timestamp: i64, create: Create<'_>) -> String {
    let append = Append {
        key,
        timestamp,
        value: timestamp as f64 / 8.0,
        on_duplicate: Some(DuplicatePolicy::Last),
        create,
    };
    let mut scratch = Scratch::new();
    db.append(&[append], &mut scratch).unwrap();
    format!("{:?}", scratch.outcomes())
}

fn put_by_reference(db: &Db, key: &[u8], timestamp: i64) -> String {
    let Ok(series) = db.resolve(key) else {
        return "no key".to_owned();
    };
    park_one(db, series.id);
    let append = AppendTo {
        series: &series,
        timestamp,
        value: 0.25,
        on_duplicate: Some(DuplicatePolicy::Last),
    };
    let mut scratch = Scratch::new();
    db.append_resolved(&[append], &mut scratch).unwrap();
    format!("{:?}", scratch.outcomes())
}

fn park_one(db: &Db, id: SeriesId) {
    let core = &db.parts().core;
    if core.options.parks {
        core.park(&mut core.shards.lock_of(id), id);
    }
}

/// What was answered, without the position.
fn said<T: Debug>(done: Result<(T, Position)>) -> String {
    format!(
        "{:?}",
        done.map(|(done, _)| done)
            .map_err(|error| error.to_string())
    )
}

/// Has both do something that succeeds.
fn done_by(pair: &Pair, work: impl Fn(&Db) -> Result<()>) {
    pair.both(|db| work(db).unwrap());
}

fn settle_and_flush(pair: &Pair) {
    done_by(pair, Db::settle);
    done_by(pair, Db::flush);
}

fn done(done: Result<Position>) -> String {
    said(done.map(|position| ((), position)))
}

fn options(site: &[u8], retention_ms: u64) -> SeriesOptions {
    SeriesOptions {
        labels: Labels::new([(&b"site"[..], site)]).unwrap(),
        retention_ms,
        ..SeriesOptions::default()
    }
}

fn sums(bucket_ms: i64) -> RuleSpec {
    RuleSpec {
        aggregator: Aggregator::Sum,
        bucket_ms,
        align: 0,
    }
}

/// Series in two partitions, with late blocks, deletions, a chain of rules and expiry times.
fn filled(parks: Parks, blind: Option<Blind>) -> Pair {
    let mut pair = Pair::new(parks, blind);
    let create = |db: &Db, key: &[u8], options: &SeriesOptions| done(db.create(key, options));
    pair.both(|db| {
        let keys = [&b"near"[..], b"near-too", b"raw", b"gone"];
        keys.map(|key| create(db, key, &options(b"north", 0)))
    });
    done_by(&pair, Db::flush);
    for twin in &pair.0 {
        let published = twin.db().parts().core.publish(&mut |manifest| {
            manifest.next_id = FAR;
            Ok(())
        });
        published.unwrap();
    }
    pair.reopen(WHOLE);
    pair.both(|db| {
        let keys = [&b"minute"[..], b"hour", b"far"];
        let made = keys.map(|key| create(db, key, &options(b"south", 0)));
        let kept = create(db, b"kept", &options(b"south", 400_000));
        let rules = [
            db.create_rule(b"raw", b"minute", sums(60_000)),
            db.create_rule(b"minute", b"hour", sums(600_000)),
        ];
        (made, kept, rules.map(done))
    });
    for from in [0, 500_000, 1_000_000, 200_000] {
        for at in (from..from + 300_000).step_by(1_000) {
            for key in [&b"near"[..], b"near-too", b"raw", b"far", b"kept"] {
                pair.both(|db| put(db, key, at, Create::Never));
            }
        }
        pair.both(|db| {
            db.delete_range(b"far", from + 10_000, from + 20_000)
                .unwrap()
                .0
        });
        // A flush of what is late follows one of what is not.
        settle_and_flush(&pair);
    }
    done_by(&pair, Db::flush);
    pair
}

/// Everything that is done to parked series one after the other.
fn scenario(parks: Parks, blind: Option<Blind>) {
    let mut pair = filled(parks, blind);
    pair.compare();
    pair.park_all();
    // Without an expiry time nothing looks whether a source has expired.
    pair.both(|db| done(db.alter(b"raw", &options(b"west", 0))));
    pair.compare();
    done_by(&pair, Db::flush);
    pair.park_all();
    pair.both(|db| done(db.create_rule(b"near", b"minute", sums(30_000))));
    pair.park_all();
    pair.both(|db| done(db.create_rule(b"hour", b"raw", sums(30_000))));
    pair.park_all();
    done_by(&pair, Db::merge);
    pair.compare();
    for file_bytes_min in [WHOLE, CHANGES, WHOLE] {
        pair.park_all();
        pair.both(|db| {
            [&b"near-too"[..], b"kept"].map(|key| put(db, key, 5_000_000, Create::Never))
        });
        done_by(&pair, Db::flush);
        pair.compare();
        pair.park_all();
        pair.reopen(file_bytes_min);
        done_by(&pair, Db::merge);
        pair.reopen(file_bytes_min);
        pair.compare();
    }
    log_tail(&mut pair);
    pair.kill(CHANGES);
    done_by(&pair, Db::flush);
    pair.compare();
    rows_and_expiry(&mut pair);
    pair.park_all();
    pair.both(|db| done(db.flush_all()));
    pair.compare();
    pair.both(|db| put(db, b"near", 1, Create::With(&options(b"new", 0))));
    pair.kill(WHOLE);
    pair.compare();
    let parked = pair.0[1].parked;
    assert!(parked > 60, "only {parked} were parked");
    let linked = pair.0[1].linked;
    assert!(
        parks != Parks::InFiles || linked > 20,
        "only {linked} ends of rules were in files"
    );
}

/// Leaves records of every kind in the log, about series that are parked when it is replayed.
fn log_tail(pair: &mut Pair) {
    pair.reopen(CHANGES);
    pair.both(|db| {
        let to = options(b"east", 0);
        [
            put(db, b"near", 100_500, Create::Never),
            put(db, b"near-too", 6_000_000, Create::Never),
            put(db, b"raw", 1_900_000, Create::Never),
            put(db, b"raw", 100_500, Create::Never),
            done(db.alter(b"kept", &to)),
            said(db.delete_range(b"far", 510_000, 550_000)),
            said(db.rename(b"far", b"farther", false)),
            said(db.remove(&[b"gone"])),
            said(db.copy(b"near", b"copy", false)),
            said(db.expire(b"kept", i64::MAX / 2, ExpireIf::default())),
        ]
    });
    pair.kill(CHANGES);
    // Its source is parked, and that of its source has a dirty bucket.
    pair.both(|db| answers(db, b"hour"));
    pair.compare();
    settle_and_flush(pair);
    pair.park_all();
    pair.kill(CHANGES);
    pair.both(|db| {
        [
            done(db.create_rule_with_history(b"near", b"near-too", sums(120_000))),
            said(db.rename(b"copy", b"farther", true)),
        ]
    });
    done_by(pair, Db::settle);
    pair.park_all();
    pair.kill(CHANGES);
    pair.compare();
    pair.both(|db| done(db.delete_rule(b"near", b"near-too")));
    pair.kill(CHANGES);
}

/// Rows go through a chain that is parked, and a parked series expires.
fn rows_and_expiry(pair: &mut Pair) {
    for at in [2_500_000, 3_700_000, 300_500] {
        settle_and_flush(pair);
        pair.park_all();
        pair.both(|db| put(db, b"raw", at, Create::Never));
        done_by(pair, Db::settle);
        pair.compare();
    }
    let at_ms = pair.0[0].clock.now_ms() + 1_000;
    pair.both(|db| said(db.expire(b"kept", at_ms, ExpireIf::default())));
    done_by(pair, Db::flush);
    pair.park_all();
    pair.0.iter().for_each(|twin| twin.clock.advance_ms(2_000));
    pair.both(|db| db.len());
    done_by(pair, Db::maintain);
    pair.both(|db| db.stats().series_expired);
    pair.both(|db| db.contains(b"kept"));
    pair.park_all();
    pair.both(|db| put_by_reference(db, b"near", 7_000_000));
    pair.both(|db| put_by_reference(db, b"minute", 60_000));
    done_by(pair, Db::flush);
    pair.reopen(WHOLE);
    pair.compare();
}

#[test]
fn parked_series_answer_as_if_they_were_awake() {
    scenario(Parks::AtHand, None);
    scenario(Parks::InFiles, None);
}

/// The lines of a function in the text of a file; all without one.
fn lines_of(text: &str, function: &str) -> Range<u32> {
    if function.is_empty() {
        return 0..u32::MAX;
    }
    let lines = || (1..).zip(text.lines());
    let named = [format!("fn {function}("), format!("fn {function}<")];
    let (from, head) = lines()
        .find(|(_, line)| named.iter().any(|named| line.contains(named)))
        .expect("it is there");
    let indent = &head[..head.len() - head.trim_start().len()];
    let end = format!("{indent}}}");
    let (to, _) = lines()
        .find(|(at, line)| *at > from && **line == *end)
        .expect("it ends");
    from..to
}

/// Files with functions of them, and their texts.
macro_rules! plants {
    ($($file:literal $function:literal)*) => {
        [$(($file, $function, include_str!(concat!("../../", $file)))),*]
    };
}

/// Those that a scenario finds nothing wrong with if they take parked series for gone.
fn unfound<'a>(
    parks: Parks,
    plants: &[(&'static str, &'a str, &str)],
) -> Vec<(&'static str, &'a str)> {
    let is_found = |file, function, text| {
        let blind = (file, lines_of(text, function));
        catch_unwind(AssertUnwindSafe(|| scenario(parks, Some(blind)))).is_err()
    };
    let plants = plants.iter();
    let unfound = plants.filter(|(file, function, text)| !is_found(*file, function, text));
    unfound
        .map(|&(file, function, _)| (file, function))
        .collect()
}

#[test]
fn every_planted_fault_is_found() {
    let plants = plants! {
        "background/merge/living.rs" "living"
        "background/flush/partition.rs" "cut"
        "recovery/rebuild.rs" "live_partitions"
        "recovery/rules.rs" "tie_rules"
        "recovery/rules.rs" "rules_in_memory"
        "recovery/apply.rs" "wake"
        "rules/link.rs" "is_held"
        "rules/chain.rs" "check_chain"
        "rules/chain.rs" "source_of"
        "rules/rows.rs" ""
        "rules/expiry.rs" ""
        "db/read/many.rs" "look"
        "db/read/series.rs" "there_from"
        "db/read/series.rs" "visit_keys"
        "db/read/select.rs" "resolve_ids"
        "db/read/select.rs" "resolve_parked"
        "db/read/rule_states.rs" "scan_rules"
    };
    assert_eq!(unfound(Parks::AtHand, &plants), []);
    let plants = plants! {
        "background/flush/partition.rs" "beside"
        "recovery/apply.rs" "wake"
        "rules/expiry.rs" ""
        "rules/chain.rs" "source_of"
        "rules/rows.rs" ""
        "db/read/rule_states.rs" "scan_rules"
        "db/read/many.rs" "look"
        "db/read/series.rs" "there_from"
        "db/read/series.rs" "visit_keys"
        "db/read/select.rs" "resolve_parked"
    };
    assert_eq!(unfound(Parks::InFiles, &plants), []);
}

const KEYS: [&[u8]; 8] = [b"k0", b"k1", b"k2", b"k3", b"k4", b"k5", b"k6", b"k7"];

/// One random change of both.
fn change(pair: &mut Pair, random: &SimRandom) {
    let key = || KEYS[random.below(KEYS.len() as u64) as usize];
    let (one, other, at) = (key(), key(), random.below(1_000_000) as i64);
    let kept = [0, 0, 300_000][random.below(3) as usize];
    let site = [&b"north"[..], b"south"][random.below(2) as usize];
    let options = options(site, kept);
    let file_bytes_min = [WHOLE, CHANGES][random.below(2) as usize];
    match random.below(34) {
        0..=7 => drop(pair.both(|db| put(db, one, at, Create::With(&options)))),
        8..=10 => drop(pair.both(|db| put_by_reference(db, one, at))),
        11 | 12 => drop(pair.both(|db| said(db.delete_range(one, at, at + 50_000)))),
        13 => drop(pair.both(|db| done(db.alter(one, &options)))),
        14 => drop(pair.both(|db| said(db.rename(one, other, true)))),
        15 => drop(pair.both(|db| said(db.copy(one, other, true)))),
        16 => drop(pair.both(|db| said(db.remove(&[one])))),
        17 => {
            let at_ms = pair.0[0].clock.now_ms() + at;
            pair.both(|db| said(db.expire(one, at_ms, ExpireIf::default())));
        }
        18 => pair
            .0
            .iter()
            .for_each(|twin| twin.clock.advance_ms(at as u32 / 4)),
        19 | 20 => {
            drop(pair.both(|db| done(db.create_rule(one, other, sums(at % 3 * 60_000 + 60_000)))))
        }
        21 => drop(pair.both(|db| done(db.create_rule_with_history(one, other, sums(60_000))))),
        22 => drop(pair.both(|db| done(db.delete_rule(one, other)))),
        23 => drop(pair.both(|db| said(db.increment(one, 1.5, Some(at), Create::With(&options))))),
        24 | 25 => settle_and_flush(pair),
        26 => done_by(pair, Db::merge),
        27 => done_by(pair, Db::maintain),
        28 | 29 => done_by(pair, |db| db.begin_evaluation(READER, at)),
        30 | 31 => pair.reopen(file_bytes_min),
        _ => pair.kill(file_bytes_min),
    }
}

#[test]
fn random_changes_of_parked_series_are_those_of_awake_ones() {
    random_changes(Parks::AtHand);
}

#[test]
fn random_changes_of_series_parked_in_files_are_those_of_awake_ones() {
    random_changes(Parks::InFiles);
}

fn random_changes(parks: Parks) {
    let (seed, mut linked) = (crate::io::sim::seed(), 0);
    for run in seed..seed + 20 {
        println!("run {run}");
        let random = SimRandom::new(run);
        let mut pair = Pair::new(parks, None);
        for step in 0..120 {
            if random.below(3) == 0 {
                settle_and_flush(&pair);
            }
            let park = SimRandom::new(random.below(u64::MAX));
            pair.0
                .iter_mut()
                .for_each(|twin| twin.park(&mut || park.below(2) == 0));
            change(&mut pair, &random);
            if step % 10 == 9 {
                pair.compare();
            }
        }
        assert!(
            pair.0[1].parked > 20,
            "only {} were parked",
            pair.0[1].parked
        );
        linked += pair.0[1].linked;
    }
    assert!(
        parks != Parks::InFiles || linked > 100,
        "only {linked} ends of rules were in files"
    );
}
