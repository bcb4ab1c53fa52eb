//! The bounds of metadata, and how often its file is written.

use super::*;
use crate::io::sim::{Op, SimClock, SimDisk};

fn counter(help: &str) -> Told<'_> {
    Told {
        kind: Some("counter"),
        help: Some(help),
        unit: None,
    }
}

fn bytes(store: &MetadataStore) -> usize {
    let all = store.after("", usize::MAX);
    all.iter().map(|(name, one)| name.len() + one.bytes()).sum()
}

#[test]
fn the_last_word_counts_and_what_is_not_said_stays() {
    let store = MetadataStore::default();
    store.note("m", counter("a"));
    let unit = Some("seconds");
    store.note(
        "m",
        Told {
            unit,
            ..Told::default()
        },
    );
    store.note(
        "m",
        Told {
            kind: Some("gauge"),
            ..Told::default()
        },
    );
    let found = store.get("m").unwrap();
    assert_eq!(
        (&*found.kind, &*found.help, &*found.unit),
        ("gauge", "a", "seconds")
    );
    assert_eq!(store.get("other"), None);
}

#[test]
fn what_is_too_much_is_left_out() {
    let store = MetadataStore::default();
    let long = "x".repeat(TEXT_BYTES_MAX + 1);
    store.note("m", counter(&long));
    store.note(&long, counter("a"));
    assert_eq!(store.stats().metrics, 0);
    assert_eq!(store.stats().left_out, 2);
    let long = &long[1..];
    for at in 0..METRICS_MAX {
        store.note(&format!("m{at}"), counter(long));
    }
    assert!(bytes(&store) <= BYTES_MAX && store.stats().left_out > 2);
    // Longer texts of metrics that are there count as well.
    let store = MetadataStore::default();
    for at in 0..METRICS_MAX {
        store.note(&format!("m{at}"), counter(""));
    }
    assert_eq!(store.stats().left_out, 0);
    for at in 0..METRICS_MAX {
        store.note(&format!("m{at}"), counter(long));
    }
    assert!(bytes(&store) <= BYTES_MAX && store.stats().left_out > 0);
    let held = store.held.lock();
    assert_eq!(held.metrics.len(), METRICS_MAX);
    assert!((file::encode(&held.metrics).len() as u64) < file::FILE_BYTES_MAX);
}

#[test]
fn metrics_without_series_give_way_where_there_is_no_room() {
    let store = MetadataStore::default();
    for at in 0..METRICS_MAX {
        store.note(&format!("m{at}"), counter("a"));
    }
    store.make_room(0, |names| vec![false; names.len()]);
    assert_eq!(store.stats().metrics, METRICS_MAX as u64);
    store.note("new", counter("a"));
    assert_eq!(store.get("new"), None);
    store.make_room(0, |names| {
        names.iter().map(|name| name.ends_with('7')).collect()
    });
    assert!(store.stats().metrics < METRICS_MAX as u64);
    assert!(store.get("m7").is_some() && store.get("m8").is_none());
    store.note("new", counter("a"));
    assert!(store.get("new").is_some());
    let counted = store.held.lock().bytes;
    assert_eq!(counted, bytes(&store));
    assert_eq!(store.stats().left_out, 1);
}

#[test]
fn a_metric_that_is_told_anew_all_the_time_costs_few_writes() {
    let clock = Arc::new(SimClock::default());
    let (disk, dir) = (SimDisk::new(), Path::new("/db"));
    let env = Env {
        clock: clock.clone(),
        ..disk.env(1)
    };
    env.disk.create_dir_all(dir).unwrap();
    let store = MetadataStore::default();
    let turns = |count: usize, help: &str| {
        let before = disk.count(Op::Create);
        for at in 0..count {
            store.note("m", counter(&format!("{help}{at}")));
            store.save_if_due(&env, dir).unwrap();
            clock.advance_ms(100);
        }
        disk.count(Op::Create) - before
    };
    assert_eq!(turns(100, "a"), 10);
    let long = "x".repeat(TEXT_BYTES_MAX - 10);
    for at in 0..1024 {
        store.note(&format!("m{at}"), counter(&long));
    }
    // 4 MiB each.
    assert!(turns(1000, "b") <= 27);
    clock.advance_ms(10_000);
    store.save_if_due(&env, dir).unwrap();
    let read = read(&env, dir).unwrap().unwrap();
    assert_eq!(&*read["m"].help, "b999");
    store.note("m", counter("c"));
    store.save(&env, dir).unwrap();
    assert_eq!(&*file::read(&env, dir).unwrap().unwrap()["m"].help, "c");
}
