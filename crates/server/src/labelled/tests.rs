//! What readers by label find and see.

use super::*;
use crate::options::testing::shared as test_shared;
use crate::state::Shared;
use latewood_engine::{Append, Create, ExpireIf, Scratch};
use latewood_model::Labels as Held;
use latewood_model::SeriesOptions;
use latewood_promql::parse_selector as parse;
use std::sync::Arc;

type Series<'a> = (&'a str, &'a [(&'a str, &'a str)]);

fn filled(series: &[Series<'_>]) -> Arc<Shared> {
    let shared = test_shared();
    for (key, labels) in series {
        let labels = labels.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        let options = SeriesOptions {
            labels: Held::new(labels).unwrap(),
            ..SeriesOptions::default()
        };
        shared.db.create(key.as_bytes(), &options).unwrap();
    }
    shared
}

/// What a selector finds, each as `name=value,...`.
fn found(shared: &Shared, selector: &str) -> Vec<String> {
    let matchers = parse(selector).unwrap();
    let found = select(&shared.db, &matchers, None, None).unwrap();
    let mut found = named(&shared.db, found, false, &mut |_| ControlFlow::Continue(())).unwrap();
    retain_matching(&mut found, &[matchers]);
    let show = |one: &Named| {
        let pairs = one
            .labels
            .iter()
            .map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join(",")
    };
    found.iter().map(show).collect()
}

const SOME: &[Series<'_>] = &[
    ("cpu{host=\"a\"}", &[("__name__", "cpu"), ("host", "a")]),
    ("cpu{host=\"b\"}", &[("__name__", "cpu"), ("host", "b")]),
    ("mem", &[("__name__", "mem")]),
    ("sensor:1", &[("host", "a")]),
    ("sensor:2", &[]),
];

#[test]
fn a_series_without_a_metric_shows_its_key() {
    let shared = filled(SOME);
    assert_eq!(found(&shared, "sensor:1"), ["__name__=sensor:1,host=a"]);
    assert_eq!(found(&shared, "sensor:2{host=\"\"}"), ["__name__=sensor:2"]);
    assert!(found(&shared, "sensor:2{host=\"a\"}").is_empty());
    assert_eq!(
        found(&shared, "{host=\"a\"}"),
        ["__name__=cpu,host=a", "__name__=sensor:1,host=a"]
    );
    assert_eq!(found(&shared, "{__name__!=\"\"}").len(), 5);
    assert_eq!(found(&shared, "{__name__=~\"sensor.*\"}").len(), 2);
    assert_eq!(
        found(&shared, "{__name__!=\"\",__name__!~\"sensor.*|cpu\"}"),
        ["__name__=mem"]
    );
    // The key of a series that has a metric is none.
    assert!(found(&shared, "{\"cpu{host=\\\"a\\\"}\"}").is_empty());
    assert_eq!(found(&shared, "cpu{host=\"a\"}").len(), 1);
}

#[test]
fn every_matcher_agrees_with_a_look_at_each_series() {
    let shared = filled(SOME);
    let all = found(&shared, "{__name__=~\".*\",__name__!=\"\"}");
    assert_eq!(all.len(), SOME.len());
    let value = |series: &str, name: &str| {
        let mut pairs = series.split(',').filter_map(|pair| pair.split_once('='));
        pairs
            .find(|pair| pair.0 == name)
            .map_or("", |pair| pair.1)
            .to_owned()
    };
    for name in ["__name__", "host", "nothing"] {
        for operator in ["=", "!=", "=~", "!~"] {
            for wanted in [
                "", "a", "b", "a|b", "a?", ".*", ".+", "cpu", "sensor:1", "[ms].*", "x|",
            ] {
                let matcher = format!("{{__name__!=\"\",{name}{operator}\"{wanted}\"}}");
                let matchers = parse(&matcher).unwrap();
                let passes = |series: &&String| matchers[1].passes(value(series, name).as_bytes());
                let wanted: Vec<_> = all.iter().filter(passes).cloned().collect();
                assert_eq!(found(&shared, &matcher), wanted, "{matcher}");
            }
        }
    }
}

#[test]
fn series_that_look_the_same_are_told_apart_by_their_keys() {
    let shared = filled(&[
        ("m{a=\"1\"}", &[("__name__", "m"), ("a", "1")]),
        ("copy", &[("a", "1"), ("__name__", "m")]),
        ("other", &[("a", "2"), ("__name__", "m")]),
    ]);
    assert_eq!(
        found(&shared, "m"),
        [
            "__key__=copy,__name__=m,a=1",
            "__key__=m{a=\"1\"},__name__=m,a=1",
            "__name__=m,a=2"
        ]
    );
    assert_eq!(found(&shared, "m{a=\"2\"}"), ["__name__=m,a=2"]);
    assert_eq!(
        found(&shared, "m{__key__=\"copy\"}"),
        ["__key__=copy,__name__=m,a=1"]
    );
    assert_eq!(found(&shared, "m{__key__=\"\"}"), ["__name__=m,a=2"]);
    assert_eq!(found(&shared, "m{__key__!~\"c.*\"}").len(), 2);
}

#[test]
fn names_that_are_refused_are_not_named_by_halves() {
    let shared = test_shared();
    for number in 0..3_000 {
        let value = format!("{number:01000}");
        let options = SeriesOptions {
            labels: Held::new([(&b"a"[..], value.as_bytes())]).unwrap(),
            ..SeriesOptions::default()
        };
        let key = format!("k{number}");
        shared.db.create(key.as_bytes(), &options).unwrap();
    }
    let all = select(&shared.db, &parse("{a!=\"\"}").unwrap(), None, None).unwrap();
    let mut asked = 0;
    // The first million bytes are refused; the next would not be.
    let named = named(&shared.db, all, false, &mut |_| {
        asked += 1;
        if asked == 1 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    });
    assert_eq!((named.unwrap(), asked), (Vec::new(), 1));
}

/// As queries look for series, twice in a row: how many were found, and whether the second look was spared.
fn found_in(shared: &Shared, span: (i64, i64)) -> (usize, bool) {
    let matchers = parse("m").unwrap();
    let look = || {
        let mut is_new = false;
        let found = shared.recent.get_or_find(&shared.db, &matchers, span, || {
            is_new = true;
            let found = select(&shared.db, &matchers, Some(span), None)?;
            named(&shared.db, found, true, &mut |_| ControlFlow::Continue(()))
        });
        (found.unwrap().named, is_new)
    };
    let (first, again) = (look(), look());
    assert_eq!(first.0, again.0);
    assert!(first.1 || !again.1, "nothing changed between them");
    (first.0.len(), !again.1)
}

#[test]
fn what_was_found_is_found_again_without_a_look_until_something_changes() {
    let shared = test_shared();
    let (db, soon, late) = (&shared.db, (0, 2_000), (1_000_000, 2_000_000));
    let options = SeriesOptions {
        labels: Held::new([(&b"__name__"[..], &b"m"[..]), (b"a", b"1")]).unwrap(),
        ..SeriesOptions::default()
    };
    let mut name = SeriesName::new();
    key_of(&mut name, &shown(&options.labels, b"")).unwrap();
    let add = |key: &[u8], timestamp| {
        let append = Append {
            key,
            timestamp,
            value: 1.0,
            on_duplicate: None,
            create: Create::Sent(&options),
        };
        let mut scratch = Scratch::default();
        db.append(&[append], &mut scratch).unwrap();
        assert!(scratch.outcomes()[0].is_ok());
    };
    assert_eq!(found_in(&shared, soon), (0, true));
    add(name.key(), 1);
    assert_eq!(found_in(&shared, soon), (1, true));
    assert_eq!(found_in(&shared, late), (1, true));
    db.rename(name.key(), b"m2", false).unwrap();
    db.copy(b"m2", b"m3", false).unwrap();
    assert_eq!(found_in(&shared, soon), (2, true));
    db.remove(&[b"m3"]).unwrap();
    db.rename(b"m2", name.key(), false).unwrap();
    db.flush().unwrap();
    db.park_idle().unwrap();
    db.park_idle().unwrap();
    assert_eq!(db.parked_len(), 1);
    // One that rests is left out of spans without samples of it, by turns.
    for _ in 0..2 {
        assert_eq!(found_in(&shared, soon), (1, true));
        assert_eq!(found_in(&shared, late), (0, true));
    }
    add(name.key(), 1_500_000);
    assert_eq!(found_in(&shared, late), (1, true));
    // What expires goes by time alone.
    db.expire(name.key(), i64::MAX / 2, ExpireIf::default())
        .unwrap();
    assert_eq!(found_in(&shared, late), (1, false));
}

/// What is left out for having no sample in the span changes no name.
#[test]
fn a_series_that_rests_outside_of_the_span_still_looks_the_same() {
    let shared = test_shared();
    let db = &shared.db;
    let options = SeriesOptions {
        labels: Held::new([(&b"__name__"[..], &b"m"[..]), (b"a", b"1")]).unwrap(),
        ..SeriesOptions::default()
    };
    let mut name = SeriesName::new();
    key_of(&mut name, &shown(&options.labels, b"")).unwrap();
    let add = |key: &[u8], timestamp, create| {
        let append = Append {
            key,
            timestamp,
            value: 1.0,
            on_duplicate: None,
            create,
        };
        let mut scratch = Scratch::default();
        db.append(&[append], &mut scratch).unwrap();
        assert!(scratch.outcomes()[0].is_ok());
    };
    add(name.key(), 1, Create::Sent(&options));
    db.flush().unwrap();
    db.park_idle().unwrap();
    db.park_idle().unwrap();
    assert_eq!(db.parked_len(), 1);
    add(b"copy", 1_000, Create::With(&options));
    let names = |selector: &str, span| {
        let matchers = parse(selector).unwrap();
        let found = select(db, &matchers, Some(span), None).unwrap();
        let len = found.len();
        let hold = &mut |_| ControlFlow::Continue(());
        let mut named = named(db, found, true, hold).unwrap();
        retain_matching(&mut named, &[matchers]);
        let keys = named
            .iter()
            .map(|one| one.labels.get_bytes(KEY.as_bytes()).to_vec());
        (len, keys.collect::<Vec<_>>())
    };
    assert_eq!(names("m", (500, 2_000)), (1, vec![b"copy".to_vec()]));
    assert_eq!(names("m", (0, 2_000)).1, [b"copy", name.key()]);
    let by_key = "m{__key__=\"copy\"}";
    assert_eq!(names(by_key, (500, 2_000)), (2, vec![b"copy".to_vec()]));
}

#[test]
fn a_name_that_is_there_twice_and_bytes_that_are_no_text() {
    let labels = [(&b"x"[..], &b"1"[..]), (b"x", b"2"), (b"a", b"\xff")];
    let set = shown(&Held::new(labels).unwrap(), b"key\xfe");
    let pairs: Vec<_> = set.iter().collect();
    assert_eq!(
        pairs,
        [("__name__", "key\\xfe"), ("a", "\\xff"), ("x", "1")]
    );
    assert_eq!(shown(&Held::default(), b""), Labels::default());
}

#[test]
fn bytes_that_are_no_text_are_found_as_they_are_shown() {
    let shared = test_shared();
    for (key, value) in [(b"bin\xfe", b"a\xff"), (b"bin\xff", b"a\xff")] {
        let options = SeriesOptions {
            labels: Held::new([(&b"v"[..], &value[..])]).unwrap(),
            ..SeriesOptions::default()
        };
        shared.db.create(key, &options).unwrap();
    }
    let (first, second) = ("__name__=bin\\xfe,v=a\\xff", "__name__=bin\\xff,v=a\\xff");
    for (selector, wanted) in [
        (r#"{v="a\\xff"}"#, vec![first, second]),
        (r#"{v="a\xff"}"#, vec![first, second]),
        (r#"{v=~"a.+"}"#, vec![first, second]),
        (r#"{v!="",v!="a\\xff"}"#, vec![]),
        (r#"{__name__="bin\xff"}"#, vec![second]),
        (r#"{__name__="bin\\xff"}"#, vec![second]),
        (r#"{__name__=~"bin.*fe"}"#, vec![first]),
        (r#"{__name__!="bin\xff",v!=""}"#, vec![first]),
        // What could be an escape is none of those two.
        (r#"{v!="",v!="\\x61\\xff"}"#, vec![first, second]),
        (r#"{v!="",v!~"\\\\x61.|b"}"#, vec![first, second]),
    ] {
        assert_eq!(found(&shared, selector), wanted, "{selector}");
    }
}

#[test]
fn matchers_look_at_what_is_shown_of_a_name_that_is_there_twice() {
    let shared = filled(&[
        ("twice", &[("x", "1"), ("x", "2")]),
        ("once", &[("x", "1")]),
        ("named", &[("__name__", "m"), ("__name__", "n"), ("x", "2")]),
    ]);
    let (twice, once) = ("__name__=twice,x=1", "__name__=once,x=1");
    let named = "__name__=m,x=2";
    for (selector, wanted) in [
        ("{x=\"1\"}", vec![once, twice]),
        ("{x=\"2\"}", vec![named]),
        ("{x=~\"2|3\"}", vec![named]),
        ("{x=~\"1|3\"}", vec![once, twice]),
        ("{x=~\".+\"}", vec![named, once, twice]),
        // Left out where either is named.
        ("{x!=\"\",x!=\"2\"}", vec![once]),
        ("{x!=\"\",x!=\"1\"}", vec![named]),
        ("{x!=\"\",x!~\"2|3\"}", vec![once]),
        ("m", vec![named]),
        ("n", vec![]),
    ] {
        assert_eq!(found(&shared, selector), wanted, "{selector}");
    }
}

#[test]
fn label_sets_are_ordered_as_prometheus_orders_them() {
    let set = |pairs: &[(&str, &str)]| {
        let pairs = pairs.iter().map(|(n, v)| (n.as_bytes(), v.as_bytes()));
        shown(&Held::new(pairs).unwrap(), b"")
    };
    let ascending = [
        set(&[("a", "1")]),
        set(&[("a", "1"), ("b", "1")]),
        set(&[("a", "1"), ("c", "0")]),
        set(&[("a", "2")]),
        set(&[("aa", "1")]),
    ];
    assert!(ascending.is_sorted());
}
