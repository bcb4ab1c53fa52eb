//! Queries by label: what they find, and that they follow every change.

use crate::db_support::{append, open, sample};
use latewood_engine::io::sim::SimDisk;
use latewood_engine::{Cancelled, Db, ErrorKind, Listed, Values};
use latewood_model::{Labels, Matcher, SeriesOptions, Test};
use std::sync::atomic::{AtomicU64, Ordering};

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
    let found = db.select(matchers).unwrap().into_iter();
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
    let found = db.select(&[is("site", "east")]).unwrap();
    let labels = db.labels(&found[0]).unwrap().unwrap();
    let pairs: Vec<_> = labels.iter().collect();
    assert_eq!(pairs, [(&b"site"[..], &b"east"[..]), (b"a", b"b")]);
    db.remove(&[b"a", b"d"]).unwrap();
    assert_eq!(db.labels(&found[0]).unwrap(), None);
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
        .label_values_where(name.as_bytes(), test, None, None)
        .unwrap()
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
        let values = |bytes_max| db.label_values(b"one", matchers, None, None, bytes_max, None);
        let names = |bytes_max| db.label_names(matchers, None, None, bytes_max, None);
        let needed = 10 * (1 + Listed::EACH_BYTES);
        assert_eq!(values(needed).unwrap().len(), 10);
        assert_eq!(values(needed - 1).unwrap_err().kind(), ErrorKind::Limit);
        let needed = 3 + Listed::EACH_BYTES;
        assert!(names(needed).unwrap().iter().eq([b"one"]));
        assert_eq!(names(needed - 1).unwrap_err().kind(), ErrorKind::Limit);
    }
    assert!(
        db.label_values(b"two", &[], None, None, 0, None)
            .unwrap()
            .is_empty()
    );
}

/// A read and the size of what it returns.
type Sized<'a> = (&'a str, &'a dyn Fn(Cancelled<'_>) -> usize);

/// Has `read` cancelled at one of its looks: it returns more than where nobody wants it from the
/// start, and less than the whole.
fn end_within((name, read): Sized<'_>) {
    let looks = AtomicU64::new(0);
    let cancelled_at = |look| {
        looks.store(0, Ordering::Relaxed);
        read(Some(&|| looks.fetch_add(1, Ordering::Relaxed) >= look))
    };
    let nothing = cancelled_at(0);
    let whole = cancelled_at(u64::MAX);
    let all = looks.load(Ordering::Relaxed);
    assert_eq!(read(None), whole, "{name}");
    let parts = [1, 2, 3].map(|quarter| cancelled_at(all * quarter / 4));
    let is_within = |size: &usize| nothing < *size && *size < whole;
    assert!(
        parts.iter().any(is_within),
        "{name}: {nothing}, {parts:?}, {whole} at {all} looks"
    );
}

#[test]
fn a_long_read_ends_once_nobody_wants_it() {
    let db = open(&SimDisk::new()).unwrap();
    for n in 0..5000 {
        let key = format!("{n}");
        db.create(key.as_bytes(), &labelled(&[("one", &key), (&key, "x")]))
            .unwrap();
        append(&db, &[sample(key.as_bytes(), 1, 1.0)]).unwrap();
    }
    // Late ones have each chunk decoded to count the samples.
    for at in (2..50_000).chain((2..50_000).step_by(60)) {
        append(&db, &[sample(b"0", at, at as f64)]).unwrap();
    }
    let series = db.select(&[]).unwrap();
    let (all, one) = ([], [Matcher::new(b"one", Test::Present)]);
    let values = |matchers: &[Matcher], cancelled: Cancelled<'_>| {
        let values = db.label_values(b"one", matchers, None, None, usize::MAX, cancelled);
        values.unwrap().len()
    };
    let reads: [Sized<'_>; 8] = [
        ("series", &|until| {
            db.select_until(&one, until).unwrap().len()
        }),
        ("newest samples", &|until| {
            db.latest(series.clone(), Some(usize::MAX), until)
                .unwrap()
                .len()
        }),
        ("groups", &|until| {
            db.group_by(series.clone(), b"one", until).unwrap().len()
        }),
        ("names", &|until| {
            let names = db.label_names(&all, None, None, usize::MAX, until);
            names.unwrap().len()
        }),
        ("values", &|until| values(&all, until)),
        ("values of some", &|until| values(&one, until)),
        ("dump", &|until| {
            db.dump_within(b"0", usize::MAX, until).unwrap().len()
        }),
        ("samples", &|until| {
            db.info_until(b"0", until).unwrap().total_samples as usize
        }),
    ];
    reads.into_iter().for_each(end_within);
}
