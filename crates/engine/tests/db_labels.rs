//! Queries by label: what they find, and that they follow every change.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod db_support;

use db_support::{append, open, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Cancelled, Db, ErrorKind, Listed, SeriesRef, Values};
use latewood_model::{Labels, Matcher, SeriesOptions, Test};
use std::sync::atomic::AtomicBool;

fn labelled(pairs: &[(&str, &str)]) -> SeriesOptions {
    let pairs = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
    SeriesOptions {
        labels: Labels::new(pairs).unwrap(),
        ..SeriesOptions::default()
    }
}

fn is(name: &str, value: &str) -> Matcher {
    Matcher::new(name.as_bytes(), Test::AnyOf(vec![value.as_bytes().into()]))
}

fn is_not(name: &str, value: &str) -> Matcher {
    Matcher::new(name.as_bytes(), Test::NoneOf(vec![value.as_bytes().into()]))
}

fn keys(db: &Db, matchers: &[Matcher]) -> Vec<String> {
    let found = db.select(matchers).into_iter();
    found
        .map(|series| String::from_utf8_lossy(&series.key).into_owned())
        .collect()
}

/// Four thermometers and a series without labels.
fn fill(db: &Db) {
    let place = |site, kind| labelled(&[("site", site), ("kind", kind)]);
    db.create(b"d", &place("north", "air")).unwrap();
    db.create(b"a", &place("north", "soil")).unwrap();
    db.create(b"c", &place("south", "air")).unwrap();
    db.create(b"b", &labelled(&[("site", "south")])).unwrap();
    db.create(b"e", &SeriesOptions::default()).unwrap();
}

fn check_filled(db: &Db) {
    assert_eq!(keys(db, &[is("site", "north")]), ["a", "d"]);
    assert_eq!(keys(db, &[is("kind", "air"), is("site", "north")]), ["d"]);
    assert_eq!(
        keys(db, &[is("site", "south"), is_not("kind", "air")]),
        ["b"]
    );
    assert_eq!(keys(db, &[Matcher::new(b"kind", Test::Absent)]), ["b", "e"]);
    assert_eq!(
        keys(db, &[Matcher::new(b"kind", Test::Present)]),
        ["a", "c", "d"]
    );
    assert_eq!(keys(db, &[]), ["a", "b", "c", "d", "e"]);
    assert!(keys(db, &[is("site", "east")]).is_empty());
    assert!(keys(db, &[is("north", "site")]).is_empty());
}

#[test]
fn matchers_find_series_before_and_after_a_restart() {
    let disk = SimDisk::new();
    let db = open(&disk).unwrap();
    fill(&db);
    check_filled(&db);
    db.close().unwrap();
    check_filled(&open(&disk).unwrap());
}

#[test]
fn labels_follow_alter_remove_and_flush() {
    let db = open(&SimDisk::new()).unwrap();
    fill(&db);
    db.alter(b"a", &labelled(&[("site", "east"), ("a", "b")]))
        .unwrap();
    assert_eq!(keys(&db, &[is("site", "north")]), ["d"]);
    assert_eq!(keys(&db, &[is("site", "east")]), ["a"]);
    let found = db.select(&[is("site", "east")]);
    let labels = db.labels(&found[0]).unwrap();
    let pairs: Vec<_> = labels.iter().collect();
    assert_eq!(pairs, [(&b"site"[..], &b"east"[..]), (b"a", b"b")]);
    db.remove(&[b"a", b"d"]).unwrap();
    assert_eq!(db.labels(&found[0]), None);
    assert_eq!(keys(&db, &[is("kind", "air")]), ["c"]);
    db.flush_all().unwrap();
    assert!(keys(&db, &[]).is_empty());
    fill(&db);
    check_filled(&db);
}

#[test]
fn values_are_tried_once_each_and_follow_changes() {
    let db = open(&SimDisk::new()).unwrap();
    fill(&db);
    let passing = |name: &str, test: &dyn Fn(&[u8]) -> bool| match db
        .label_values_where(name.as_bytes(), test)
    {
        Values::All => vec!["all".to_owned()],
        Values::Some(values) => {
            let texts = values
                .iter()
                .map(|value| String::from_utf8_lossy(value).into_owned());
            let mut texts: Vec<_> = texts.collect();
            texts.sort();
            texts
        }
    };
    let tried = std::cell::Cell::new(0);
    let counted = |value: &[u8]| {
        tried.set(tried.get() + 1);
        value.starts_with(b"n")
    };
    assert_eq!(passing("site", &counted), ["north"]);
    assert_eq!(tried.get(), 2);
    assert_eq!(passing("kind", &|_| true), ["all"]);
    assert!(passing("kind", &|_| false).is_empty());
    assert_eq!(passing("nothing", &|_| false), ["all"]);
    db.remove(&[b"a", b"d"]).unwrap();
    assert!(passing("site", &|value| value == b"north").is_empty());
    assert_eq!(passing("site", &|value| value == b"south"), ["all"]);
}

#[test]
fn lists_of_names_and_values_are_no_longer_than_asked_for() {
    let db = open(&SimDisk::new()).unwrap();
    for n in 0..10 {
        let value = format!("{n}");
        db.create(value.as_bytes(), &labelled(&[("one", &value)]))
            .unwrap();
    }
    let one = [Matcher::new(b"one", Test::Present)];
    for matchers in [&[][..], &one] {
        let values = |bytes_max| db.label_values(b"one", matchers, None, bytes_max, None);
        let names = |bytes_max| db.label_names(matchers, None, bytes_max, None);
        let needed = 10 * (1 + Listed::EACH_BYTES);
        assert_eq!(values(needed).unwrap().len(), 10);
        assert_eq!(values(needed - 1).unwrap_err().kind(), ErrorKind::Limit);
        let needed = 3 + Listed::EACH_BYTES;
        assert!(names(needed).unwrap().iter().eq([b"one"]));
        assert_eq!(names(needed - 1).unwrap_err().kind(), ErrorKind::Limit);
    }
    assert!(
        db.label_values(b"two", &[], None, 0, None)
            .unwrap()
            .is_empty()
    );
}

/// Sizes of what the reads of many series and of a whole one return.
fn read_sizes(db: &Db, series: &[SeriesRef], cancelled: Cancelled<'_>) -> [usize; 7] {
    let (all, one) = ([], [Matcher::new(b"one", Test::Present)]);
    let values = |matchers: &[Matcher]| {
        let values = db.label_values(b"one", matchers, None, usize::MAX, cancelled);
        values.unwrap().len()
    };
    let info = db.info_until(b"0", cancelled).unwrap();
    [
        db.select_until(&one, cancelled).len(),
        db.latest(series.to_vec(), true, cancelled).unwrap().len(),
        db.group_by(series.to_vec(), b"one", cancelled).len(),
        db.label_names(&all, None, usize::MAX, cancelled)
            .unwrap()
            .len(),
        values(&all) + values(&one),
        db.dump_within(b"0", usize::MAX, cancelled).unwrap().len(),
        info.total_samples as usize,
    ]
}

#[test]
fn a_long_read_ends_once_nobody_wants_it() {
    let db = open(&SimDisk::new()).unwrap();
    for n in 0..10 {
        let key = format!("{n}");
        db.create(key.as_bytes(), &labelled(&[("one", &key)]))
            .unwrap();
        append(&db, &[sample(key.as_bytes(), 1, 1.0)]).unwrap();
    }
    let series = db.select(&[]);
    let whole = read_sizes(&db, &series, Some(&AtomicBool::new(false)));
    assert_eq!(whole, read_sizes(&db, &series, None));
    let [.., dump_bytes, samples] = whole;
    assert_eq!((&whole[..5], samples), (&[10, 10, 10, 1, 20][..], 1));
    let early = read_sizes(&db, &series, Some(&AtomicBool::new(true)));
    assert!(early[5] < dump_bytes);
    assert_eq!((&early[..5], early[6]), (&[0; 5][..], 0));
}
