//! What changed in what a reader has used: whatever differs between what it read and what it would
//! read now is in the changes that are drained, and hardly anything else.

mod bounds;
mod crashes;
mod random;
mod steps;
mod view;

use crate::db_support::{append, last_wins, open, options, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{
    Append, Change, Create, Db, ErrorKind, ExpireIf, ReaderId, Scratch, Selector, Watcher,
};
use latewood_model::{Labels, SeriesOptions};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use view::{uncovered, view};

const READER: ReaderId = ReaderId(7);

fn labelled(pairs: &[(&[u8], &[u8])]) -> SeriesOptions {
    SeriesOptions {
        labels: Labels::new(pairs.iter().copied()).unwrap(),
        ..SeriesOptions::default()
    }
}

fn has(labels: &Labels, name: &[u8], value: &[u8]) -> bool {
    labels.iter().any(|pair| pair == (name, value))
}

/// All series with `metric="m"`.
fn of_m() -> Selector {
    let selects = Arc::new(|labels: &Labels, _: &[u8]| has(labels, b"metric", b"m"));
    Selector::of_pair(b"metric", b"m", selects)
}

fn watch(db: &Db, selectors: Vec<Selector>) {
    let reader = READER;
    db.watch(vec![Watcher { reader, selectors }]).unwrap();
}

/// Drains, and says that it is done.
fn drained(db: &Db) -> Vec<(Vec<u8>, bool, i64, i64)> {
    let drained = db.drain(READER).unwrap();
    db.done(READER, drained.position).unwrap();
    let mut all: Vec<_> = drained.changes.iter().map(short).collect();
    all.sort();
    all
}

fn short(change: &Change) -> (Vec<u8>, bool, i64, i64) {
    let series = change.series.as_ref();
    let key = series.map_or_else(Vec::new, |series| series.key.to_vec());
    let is_gone = series.is_none_or(|series| series.is_gone);
    (key, is_gone, change.from, change.to)
}

/// Series `a` and `b` are watched up to 100, `other` is not.
fn watched() -> Db {
    let db = open(&SimDisk::new()).unwrap();
    watch(&db, vec![of_m()]);
    for key in [&b"a"[..], b"b"] {
        db.create(key, &labelled(&[(b"metric", b"m"), (b"key", key)]))
            .unwrap();
    }
    db.create(b"other", &labelled(&[(b"metric", b"n")]))
        .unwrap();
    for key in [&b"a"[..], b"b", b"other"] {
        append(&db, &[sample(key, 10, 1.0), sample(key, 90, 1.0)]).unwrap();
    }
    db.begin_evaluation(READER, 100).unwrap();
    db
}

#[test]
fn late_samples_and_corrections_are_told_and_new_ones_are_not() {
    let db = watched();
    assert_eq!(drained(&db), []);
    append(&db, &[sample(b"a", 101, 1.0), sample(b"other", 50, 1.0)]).unwrap();
    assert_eq!(drained(&db), [], "nobody has used these");
    append(&db, &[sample(b"a", 50, 1.0), sample(b"b", 90, 2.0)]).unwrap();
    let both = [
        (b"a".to_vec(), false, 50, 50),
        (b"b".to_vec(), false, 90, 90),
    ];
    assert_eq!(drained(&db), both);
    append(&db, &[sample(b"b", 95, 1.0)]).unwrap();
    let in_order = [(b"b".to_vec(), false, 95, 95)];
    assert_eq!(
        drained(&db),
        in_order,
        "newer than its series, not than the reader"
    );
    db.delete_range(b"b", 20, 1_000).unwrap();
    assert_eq!(drained(&db), [(b"b".to_vec(), false, 20, 95)]);
    db.increment(b"b", 1.0, Some(10), Create::Never)
        .unwrap()
        .0
        .unwrap();
    assert_eq!(drained(&db), [(b"b".to_vec(), false, 10, 10)]);
}

#[test]
fn the_first_samples_of_a_new_series_may_be_old() {
    let db = watched();
    let options = labelled(&[(b"metric", b"m")]);
    let late = Append {
        create: Create::With(&options),
        ..sample(b"new", 3, 1.0)
    };
    append(&db, &[late]).unwrap();
    assert_eq!(drained(&db), [(b"new".to_vec(), false, 3, 3)]);
}

#[test]
fn another_look_is_told_under_both() {
    let db = watched();
    let whole = |key: &[u8], is_gone| (key.to_vec(), is_gone, 10, 90);
    db.rename(b"a", b"z", false).unwrap();
    assert_eq!(drained(&db), [whole(b"a", true), whole(b"z", false)]);
    db.alter(b"z", &labelled(&[(b"metric", b"n")])).unwrap();
    assert_eq!(drained(&db), [whole(b"z", true)], "it is selected no more");
    db.alter(b"z", &labelled(&[(b"metric", b"m")])).unwrap();
    assert_eq!(drained(&db), [whole(b"z", false)]);
    db.copy(b"z", b"copy", false).unwrap();
    assert_eq!(drained(&db), [whole(b"copy", false)]);
    db.copy(b"other", b"copy", true).unwrap();
    assert_eq!(drained(&db), [whole(b"copy", true)]);
    db.remove(&[b"z"]).unwrap();
    assert_eq!(drained(&db), [whole(b"z", true)]);
    append(&db, &[sample(b"b", 50, 1.0)]).unwrap();
    db.expire(b"b", 1, ExpireIf::default()).unwrap();
    assert_eq!(drained(&db), [(b"b".to_vec(), true, 10, 90)]);
    db.flush_all().unwrap();
    let [(_, _, i64::MIN, 100), ..] = drained(&db)[..] else {
        panic!("anything may be gone");
    };
}

#[test]
fn changes_come_again_until_they_are_done() {
    let db = watched();
    append(&db, &[sample(b"a", 50, 1.0)]).unwrap();
    let first = db.drain(READER).unwrap();
    append(&db, &[sample(b"a", 60, 1.0)]).unwrap();
    let second = db.drain(READER).unwrap();
    assert_eq!((first.changes.len(), second.changes.len()), (1, 2));
    append(&db, &[sample(b"a", 70, 1.0)]).unwrap();
    db.done(READER, second.position).unwrap();
    assert_eq!(drained(&db), [(b"a".to_vec(), false, 70, 70)]);
    let unknown = db.drain(ReaderId(8)).unwrap_err();
    assert_eq!(unknown.kind(), ErrorKind::Invalid);
}

#[test]
fn each_reader_hears_of_what_it_has_used() {
    let db = watched();
    let newer = ReaderId(8);
    let watcher = |reader| Watcher {
        reader,
        selectors: vec![of_m()],
    };
    db.watch(vec![watcher(READER), watcher(newer)]).unwrap();
    db.begin_evaluation(newer, 200).unwrap();
    append(&db, &[sample(b"a", 150, 1.0), sample(b"a", 50, 1.0)]).unwrap();
    assert_eq!(drained(&db), [(b"a".to_vec(), false, 50, 50)]);
    assert_eq!(db.drain(newer).unwrap().changes.len(), 2);
    db.watch(vec![watcher(READER)]).unwrap();
    append(&db, &[sample(b"a", 160, 1.0), sample(b"a", 60, 1.0)]).unwrap();
    assert_eq!(drained(&db), [(b"a".to_vec(), false, 60, 60)]);
}

#[test]
fn horizons_and_changes_outlive_a_restart() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    db.create(b"a", &labelled(&[(b"metric", b"m")])).unwrap();
    append(&db, &[sample(b"a", 90, 1.0)]).unwrap();
    db.begin_evaluation(READER, 100).unwrap();
    append(&db, &[sample(b"a", 10, 1.0)]).unwrap();
    assert_eq!(drained(&db), [(b"a".to_vec(), false, 10, 10)]);
    append(&db, &[sample(b"a", 20, 1.0)]).unwrap();
    db.drain(READER).unwrap();
    append(&db, &[sample(b"a", 40, 1.0)]).unwrap();
    db.flush().unwrap();
    append(&db, &[sample(b"a", 60, 1.0)]).unwrap();
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    append(&db, &[sample(b"a", 80, 1.0), sample(b"a", 101, 1.0)]).unwrap();
    let mut told = Vec::new();
    for (_, _, from, to) in drained(&db) {
        told.extend(from..=to);
    }
    for at in [20, 40, 60, 80] {
        assert!(told.contains(&at), "{at} is not told");
    }
    assert!(!told.contains(&10) && !told.contains(&101), "{told:?}");
    db.close().unwrap();
    let db = open(&disk).unwrap();
    watch(&db, vec![of_m()]);
    assert_eq!(drained(&db), [], "all is done");
}

#[test]
fn more_changes_than_are_kept_are_joined_and_not_lost() {
    let db = watched();
    let mut all = Vec::new();
    for number in 0..20_000_i64 {
        let (key, at) = (format!("s{number}"), number % 100);
        let options = labelled(&[(b"metric", b"m")]);
        let create = Create::With(&options);
        append(
            &db,
            &[Append {
                create,
                ..sample(key.as_bytes(), at, 1.0)
            }],
        )
        .unwrap();
        all.push((key.into_bytes(), at));
    }
    let changes = db.drain(READER).unwrap().changes;
    assert!(changes.len() < 18_000, "{}", changes.len());
    for (key, at) in all {
        let covers = |change: &&Change| {
            let is_it = change
                .series
                .as_ref()
                .is_none_or(|series| *series.key == *key);
            is_it && (change.from..=change.to).contains(&at)
        };
        assert!(changes.iter().any(|change| covers(&change)), "{at} is lost");
    }
}

/// Whether a run of writers beside an evaluation lost a change. An evaluation that reads before
/// its horizon is set may lose one.
fn race(seed: i64) -> Option<String> {
    let db = Db::open(
        &SimDisk::new().env(1),
        std::path::Path::new("/db"),
        options(4),
        last_wins(),
    );
    let db = db.unwrap();
    watch(&db, vec![of_m()]);
    let is_over = AtomicBool::new(false);
    let selects = |labels: &Labels, _: &[u8]| has(labels, b"metric", b"m");
    let write = |thread: i64| {
        let options = labelled(&[(b"metric", b"m")]);
        let mut scratch = Scratch::new();
        for round in 0..400_i64 {
            let keys: Vec<String> = (0..4).map(|key| format!("{thread}:{key}")).collect();
            let at = (round * 7919 + seed * 31 + thread) % 1_000;
            let create = Create::With(&options);
            let batch = keys.iter().map(|key| Append {
                create,
                ..sample(key.as_bytes(), at, round as f64)
            });
            db.append(&batch.collect::<Vec<_>>(), &mut scratch).unwrap();
        }
    };
    let (mut before, mut at) = (view::View::default(), 0);
    thread::scope(|scope| {
        let writers = [scope.spawn(|| write(0)), scope.spawn(|| write(1))];
        while !is_over.load(Ordering::Relaxed) {
            at = (at + 50).min(999);
            db.begin_evaluation(READER, at).unwrap();
            before = view(&db, at, selects);
            if at == 999 {
                // A correction: it reads behind its drain.
                let drained = db.drain(READER).unwrap();
                before = view(&db, at, selects);
                db.done(READER, drained.position).unwrap();
            }
            let are_over = writers.iter().all(|writer| writer.is_finished());
            is_over.store(are_over, Ordering::Relaxed);
        }
    });
    let changes = db.drain(READER).unwrap().changes;
    let changed = before.changed(&view(&db, at, selects));
    uncovered(&changed, &changes).map(|lost| format!("seed {seed}: {lost:?} is lost"))
}

#[test]
fn writers_beside_an_evaluation_are_seen_or_told() {
    for seed in 0..8 {
        assert_eq!(race(seed), None);
    }
}

#[test]
fn whoever_gets_or_loses_a_twin_is_told_whole() {
    let db = open(&SimDisk::new()).unwrap();
    watch(&db, vec![of_m()]);
    let alike = labelled(&[(b"__name__", b"x"), (b"metric", b"m")]);
    db.create(b"first", &alike).unwrap();
    append(&db, &[sample(b"first", 10, 1.0), sample(b"first", 90, 1.0)]).unwrap();
    db.begin_evaluation(READER, 100).unwrap();
    assert_eq!(drained(&db), []);
    let whole = [(b"first".to_vec(), false, 10, 90)];
    db.create(b"second", &alike).unwrap();
    append(&db, &[sample(b"second", 200, 1.0)]).unwrap();
    assert_eq!(drained(&db), whole, "the other one has newer samples alone");
    db.alter(b"second", &labelled(&[(b"metric", b"m")]))
        .unwrap();
    assert_eq!(drained(&db), whole);
    db.remove(&[b"second"]).unwrap();
    assert_eq!(drained(&db), []);
    // A key that is shown as the name makes twins too.
    db.create(b"x", &labelled(&[(b"metric", b"m")])).unwrap();
    assert_eq!(drained(&db), whole);
    db.remove(&[b"x"]).unwrap();
    assert_eq!(drained(&db), whole);
    db.create(
        b"other",
        &labelled(&[(b"__name__", b"y"), (b"metric", b"m")]),
    )
    .unwrap();
    assert_eq!(drained(&db), []);
}
