//! An intake over a database on a simulated disk.

use super::*;
use crate::options::testing::shared;
use latewood_engine::{RangeQuery, Sink};
use latewood_model::{DuplicatePolicy, Matcher, Test};
use std::ops::ControlFlow;
use std::sync::atomic::Ordering;

fn intake(shared: &Arc<Shared>) -> EngineIntake {
    EngineIntake::new(
        Arc::clone(shared),
        Way::new(Protocol::Influx, Route::InfluxTcp),
        "influx",
        None,
        InPause::Wait,
    )
}

fn at(ms: i64) -> Moment {
    Moment::whole(ms)
}

/// Brings a sample of `metric{host="a"}` as a decoder does.
fn bring(intake: &mut EngineIntake, metric: &str, when: Moment, value: f64, line: u32) {
    let raw = format!("{metric} host=a ");
    let row = intake
        .follow(raw.as_bytes())
        .map(|(row, _)| row)
        .or_else(|| intake.find(raw.as_bytes()))
        .unwrap_or_else(|| intake.add(raw.as_bytes()));
    let slot = intake.field(row, 0, b"").map_or_else(
        || {
            let mut name = SeriesName::new();
            name.begin(metric.as_bytes());
            name.label(b"host", b"a");
            name.finish().unwrap();
            intake.learn(row, b"", &name)
        },
        Ok,
    );
    match slot {
        Ok(slot) => intake.sample(slot, when, value, line),
        Err(refused) => intake.refuse(line, refused.reason, format_args!("{}", refused.text)),
    }
}

#[derive(Default)]
struct Rows(Vec<(i64, f64)>);

impl Sink for Rows {
    fn rows(&mut self, timestamps: &[i64], values: &[f64], _width: usize) -> ControlFlow<()> {
        let samples = timestamps.iter().zip(values);
        self.0.extend(samples.map(|(time, value)| (*time, *value)));
        ControlFlow::Continue(())
    }
}

fn stored(shared: &Shared, key: &str) -> Vec<(i64, f64)> {
    let mut rows = Rows::default();
    let query = RangeQuery {
        to: i64::MAX,
        ..RangeQuery::default()
    };
    shared.db.range(key.as_bytes(), &query, &mut rows).unwrap();
    rows.0
}

fn labelled(shared: &Shared, name: &[u8], value: &[u8]) -> Vec<SeriesRef> {
    let test = Test::AnyOf(vec![value.into()]);
    shared.db.select(&[Matcher::new(name, test)]).unwrap()
}

#[test]
fn a_new_series_gets_its_labels_and_keeps_the_last_value() {
    let shared = shared();
    let mut intake = intake(&shared);
    for round in 0..3 {
        bring(&mut intake, "cpu", at(1000), f64::from(round), 1);
        bring(&mut intake, "mem", at(2000), 7.0, 2);
        let report = intake.finish();
        assert_eq!((report.samples, report.refused()), (2, 0));
    }
    assert_eq!(stored(&shared, "cpu{host=\"a\"}"), [(1000, 2.0)]);
    let info = shared.db.info(b"cpu{host=\"a\"}").unwrap();
    assert_eq!(info.options.duplicate_policy, Some(DuplicatePolicy::Last));
    let found = labelled(&shared, b"__name__", b"mem");
    assert_eq!(found.len(), 1);
    assert_eq!(*found[0].key, *b"mem{host=\"a\"}");
    let counters = shared.protocols.intake.of(Protocol::Influx);
    assert_eq!(counters.samples.load(Ordering::Relaxed), 6);
}

#[test]
fn many_samples_go_in_several_batches_in_their_order() {
    let shared = shared();
    let mut intake = intake(&shared);
    let samples = 3 * APPEND_BATCH_MAX as i64 + 5;
    for number in 0..samples {
        bring(&mut intake, "cpu", at(number), number as f64, 1);
    }
    assert_eq!(intake.finish().samples, samples as u64);
    let stored = stored(&shared, "cpu{host=\"a\"}");
    assert_eq!(stored.len(), samples as usize);
    assert!(stored.iter().all(|(time, value)| *time as f64 == *value));
}

#[test]
fn a_series_that_went_away_comes_again_with_its_labels() {
    let shared = shared();
    let mut intake = intake(&shared);
    let key = "cpu{host=\"a\"}";
    bring(&mut intake, "cpu", at(1), 1.0, 1);
    intake.finish();
    for round in 2..4 {
        match round {
            2 => drop(shared.db.remove(&[key.as_bytes()]).unwrap()),
            _ => drop(shared.db.flush_all().unwrap()),
        }
        bring(&mut intake, "cpu", at(round), 2.0, 1);
        bring(&mut intake, "cpu", at(round + 10), 3.0, 2);
        let report = intake.finish();
        assert_eq!((report.samples, report.refused()), (2, 0), "{report:?}");
        assert_eq!(stored(&shared, key), [(round, 2.0), (round + 10, 3.0)]);
        let found = labelled(&shared, b"host", b"a");
        assert_eq!(found.len(), 1);
    }
}

#[test]
fn what_is_refused_names_its_line_key_and_time_and_the_rest_is_kept() {
    let shared = shared();
    let mut intake = intake(&shared);
    let microseconds = intake.now_ms() * 1000;
    bring(&mut intake, "cpu", at(5), 1.0, 1);
    bring(&mut intake, "cpu", at(microseconds), 1.0, 2);
    bring(&mut intake, "cpu", at(-1), 1.0, 3);
    bring(&mut intake, "cpu", at(6), 1.0, 4);
    let report = intake.finish();
    assert_eq!((report.samples, report.refused()), (2, 2));
    let lines: Vec<_> = report.lines.iter().map(|l| (l.number, l.reason)).collect();
    assert_eq!(lines, [(2, Reason::Future), (3, Reason::Timestamp)]);
    let text = &report.lines[0].text;
    assert!(
        text.contains(&format!("cpu{{host=\"a\"}} at {microseconds}")),
        "{text}"
    );
    assert_eq!(stored(&shared, "cpu{host=\"a\"}").len(), 2);
}

#[test]
fn a_series_that_keeps_what_it_has_refuses_duplicates_by_line() {
    let shared = shared();
    let options = SeriesOptions {
        duplicate_policy: Some(DuplicatePolicy::Block),
        ..SeriesOptions::default()
    };
    shared.db.create(b"cpu{host=\"a\"}", &options).unwrap();
    let mut intake = intake(&shared);
    for line in 1..4 {
        bring(&mut intake, "cpu", at(1), f64::from(line), line);
    }
    let report = intake.finish();
    let lines: Vec<_> = report.lines.iter().map(|l| (l.number, l.reason)).collect();
    assert_eq!(lines, [(2, Reason::Duplicate), (3, Reason::Duplicate)]);
    assert_eq!(stored(&shared, "cpu{host=\"a\"}"), [(1, 1.0)]);
}

#[test]
fn ages_are_counted_by_how_far_samples_lie_behind_the_clock() {
    let shared = shared();
    let mut intake = intake(&shared);
    let now_ms = intake.now_ms();
    for age_ms in [-500, 0, 1000, 1001, 3_600_000, 3_600_001, now_ms] {
        bring(&mut intake, "cpu", at(now_ms - age_ms), 1.0, 1);
    }
    intake.finish();
    let counters = shared.protocols.intake.of(Protocol::Influx);
    let ages: Vec<_> = counters.ages.read().0.collect();
    assert_eq!(ages, [3, 1, 0, 0, 1, 1, 0, 0, 0, 1]);
}

#[test]
fn what_rounding_merges_is_counted() {
    let shared = shared();
    let mut intake = intake(&shared);
    let rounded = Moment {
        ms: 1,
        is_rounded: true,
    };
    for when in [at(1), at(1), rounded, rounded, at(2), at(2)] {
        bring(&mut intake, "cpu", when, 1.0, 1);
    }
    assert_eq!(intake.finish().merged, 2);
}

#[test]
fn a_user_writes_only_where_it_may() {
    let shared = shared();
    let rules = ["on", "+ts.add", "%W~cpu*"].map(|rule| rule.as_bytes().to_vec());
    let user = User::new(b"sender", 1, shared.runtime.users.catalogue())
        .with(&rules)
        .unwrap();
    let (sender, user) = ("influx", Some(Arc::new(user)));
    let mut intake = EngineIntake::new(
        Arc::clone(&shared),
        Way::new(Protocol::Influx, Route::InfluxTcp),
        sender,
        user,
        InPause::Wait,
    );
    bring(&mut intake, "cpu", at(1), 1.0, 1);
    bring(&mut intake, "mem", at(1), 1.0, 2);
    bring(&mut intake, "mem", at(2), 1.0, 3);
    let report = intake.finish();
    assert_eq!(report.samples, 1);
    let lines: Vec<_> = report.lines.iter().map(|l| (l.number, l.reason)).collect();
    assert_eq!(lines, [(2, Reason::Permission), (3, Reason::Permission)]);
    assert!(!shared.db.contains(b"mem{host=\"a\"}"));
    // What is refused line after line is told once.
    let log = shared.runtime.users.log.newest(9);
    assert_eq!((log.len(), log[0].count), (1, 1));
    assert_eq!(log[0].client, "proto=influx");
    bring(&mut intake, "mem", at(3), 1.0, 1);
    intake.finish();
    assert_eq!(shared.runtime.users.log.newest(9)[0].count, 2);
}

#[test]
fn forgetting_series_for_their_memory_loses_no_sample() {
    let shared = shared();
    let mut intake = intake(&shared);
    let long = "x".repeat(60_000);
    for number in 0..3000 {
        let raw = format!("{long}{number} ");
        let row = intake.add(raw.as_bytes());
        let mut name = SeriesName::new();
        name.begin(format!("m{}", number % 50).as_bytes());
        name.finish().unwrap();
        let slot = intake.learn(row, b"", &name).unwrap();
        intake.sample(slot, at(number), 1.0, 1);
    }
    assert!(intake.cache.len_bytes() <= CACHE_BYTES_MAX + 100_000);
    assert_eq!(intake.finish().samples, 3000);
    assert_eq!(stored(&shared, "m7").len(), 60);
}

/// Brings a sample of a field of the one row there is.
fn bring_field(intake: &mut EngineIntake, field: &str, tag: &str) -> Result<(), Refused> {
    let row = intake.follow(b"m ").map(|(row, _)| row);
    let row = row.or_else(|| intake.find(b"m "));
    let row = row.unwrap_or_else(|| intake.add(b"m "));
    let slot = learn_field(intake, row, field, tag)?;
    intake.sample(slot, at(1), 1.0, 1);
    Ok(())
}

fn learn_field(
    intake: &mut EngineIntake,
    row: Row,
    field: &str,
    tag: &str,
) -> Result<Slot, Refused> {
    let mut name = SeriesName::new();
    name.begin(field.as_bytes());
    name.label(b"tag", tag.as_bytes());
    name.finish().unwrap();
    intake.learn(row, field.as_bytes(), &name)
}

#[test]
fn refusals_show_the_begin_of_a_long_key_and_all_of_the_reason() {
    let shared = shared();
    let mut intake = intake(&shared);
    let later = at(now_ms() + 10 * 86_400_000);
    let keys = [
        "m".repeat(60_000),
        "\u{20ac}".repeat(20_000),
        "short".to_owned(),
    ];
    for (line, metric) in (1..).zip(&keys) {
        bring(&mut intake, metric, later, 1.0, line);
        intake.refuse(line, Reason::Syntax, format_args!("{metric} is no number"));
    }
    let report = intake.finish();
    let texts: Vec<_> = report.lines.iter().map(|line| &*line.text).collect();
    let begins = ["m".repeat(200), "\u{20ac}".repeat(66)];
    for (at, begin) in [0, 2].into_iter().zip(begins) {
        let told = texts[at].strip_prefix(&format!("{begin}... at "));
        assert!(
            told.is_some_and(|told| told.ends_with("the port's precision?")),
            "{}",
            texts[at]
        );
        assert!(texts[at + 1].len() < 1100 && texts[at + 1].ends_with("..."));
    }
    assert!(
        texts[4].starts_with("short{host=\"a\"} at "),
        "{}",
        texts[4]
    );
    assert_eq!(texts[5], "short is no number");
    let bytes: usize = report.lines.iter().map(|line| line.text.capacity()).sum();
    assert!(bytes < 4096, "{bytes}");
}

#[test]
fn a_row_that_shows_more_and_more_fields_is_forgotten_in_time() {
    let shared = shared();
    let budget = 64 << 20;
    shared.db.set_memory_limit(budget);
    let mut intake = intake(&shared);
    let mut most = 0;
    for number in 0..20_000 {
        let field = format!("{number}{:0600}", 0);
        bring_field(&mut intake, &field, "a").unwrap();
        most = most.max(shared.protocols.remembered.len_bytes());
    }
    let bound = (budget / 16) as usize;
    assert!(most > bound / 2 && most < bound + 8192, "{most} of {bound}");
    assert_eq!(intake.finish().samples, 20_000);
}

#[test]
fn the_new_series_of_one_line_are_bounded_and_the_next_line_is_taken() {
    let shared = shared();
    let mut intake = intake(&shared);
    let tag = "x".repeat(60_000);
    let row = intake.add(b"m ");
    let refused = (0..2_000).find_map(|number| {
        let field = format!("f{number}");
        learn_field(&mut intake, row, &field, &tag).err()
    });
    let refused = refused.expect("a line may be about any number of series");
    assert_eq!(refused.reason, Reason::Limit);
    assert!(
        refused.text.contains("the new series of one line"),
        "{refused}"
    );
    bring_field(&mut intake, "g", &tag).unwrap();
    assert_eq!(intake.finish().samples, 1);
}

#[test]
fn what_all_senders_are_remembered_by_is_bounded_and_given_back() {
    let shared = shared();
    let budget = 64 << 20;
    shared.db.set_memory_limit(budget);
    let mut intakes: Vec<_> = (0..3).map(|_| intake(&shared)).collect();
    let mut most = 0;
    for round in 0..8_000 {
        for (number, intake) in intakes.iter_mut().enumerate() {
            let metric = format!("m{number}.{round}.{:0300}", 0);
            bring(intake, &metric, at(1), 1.0, 1);
            most = most.max(shared.protocols.remembered.len_bytes());
        }
    }
    // Twice the sixteenth, and what one line took before it was counted.
    let bound = (budget / 16) as usize;
    assert!(
        most > bound && most <= 2 * bound + 4096,
        "{most} of {bound}"
    );
    for intake in &mut intakes {
        assert_eq!(intake.finish().samples, 8_000);
    }
    drop(intakes);
    assert_eq!(shared.protocols.remembered.len_bytes(), 0);
}

#[test]
fn late_samples_of_one_batch_belong_to_who_sent_them() {
    let shared = shared();
    let mut intake = intake(&shared);
    let mut newest = 0;
    for round in 0..3 {
        // The first round creates the series; each has the senders in turn.
        for (sender, count) in [(1, 3), (2, 5), (1, 2), (3, 0), (2, 1)] {
            intake.sent_by([10, 0, 0, sender].into(), b"me");
            newest += 1_000;
            bring(&mut intake, "m", at(newest), 1.0, 1);
            for back in 1..=count {
                bring(&mut intake, "m", at(newest - back), 1.0, 1);
            }
        }
        assert_eq!(intake.finish().samples, 16, "round {round}");
    }
    let lateness = &shared.observe.lateness;
    let (rows, others) = lateness.senders(now_ms(), 2);
    let rows: Vec<_> = rows.iter().map(|row| (&*row.name, row.sum.late)).collect();
    assert_eq!(rows, [(&b"me 10.0.0.2"[..], 18), (&b"me 10.0.0.1"[..], 15)]);
    assert_eq!(others.late, 0);
    let sum = lateness.sum(now_ms(), 2);
    assert_eq!((sum.samples, sum.late, sum.max_ms), (48, 33, 5));
}

#[test]
fn late_samples_of_removed_series_belong_to_who_sent_them() {
    let shared = shared();
    let mut intake = intake(&shared);
    for (series, ms) in [("m", 5_000), ("n", 5_000)] {
        bring(&mut intake, series, at(ms), 1.0, 1);
    }
    assert_eq!(intake.finish().samples, 2);
    let removed = shared.db.remove(&[b"m{host=\"a\"}"]).unwrap();
    assert_eq!(removed.0, 1);
    for (sender, series, ms) in [
        (1, "n", 4_000),
        (2, "m", 9_000),
        (2, "m", 8_000),
        (3, "new", 9_000),
        (3, "new", 8_999),
        (4, "n", 6_000),
    ] {
        intake.sent_by([10, 0, 0, sender].into(), b"me");
        bring(&mut intake, series, at(ms), 1.0, 1);
    }
    assert_eq!(intake.finish().samples, 6);
    let (rows, _) = shared.observe.lateness.senders(now_ms(), 2);
    let mut rows: Vec<_> = rows
        .iter()
        .map(|row| (&*row.name, row.sum.late, row.sum.max_ms))
        .collect();
    rows.sort_unstable();
    let of = |name| (name, 1, 1_000);
    let wanted = [
        of(&b"me 10.0.0.1"[..]),
        of(b"me 10.0.0.2"),
        (b"me 10.0.0.3", 1, 1),
    ];
    assert_eq!(rows, wanted);
}

#[test]
fn a_series_that_goes_between_two_parts_of_a_batch_is_created_again() {
    let shared = shared();
    let mut intake = intake(&shared);
    for (sender, ms) in [(1, 5_000), (1, 6_000), (2, 9_000), (3, 8_000)] {
        intake.sent_by([10, 0, 0, sender].into(), b"me");
        bring(&mut intake, "m", at(ms), 1.0, 1);
    }
    let waiting = std::mem::take(&mut intake.fresh);
    let first = intake.senders.take_fresh(waiting.len());
    intake.apply_fresh_part(&waiting[..2], first);
    // The first part has a reference to it now.
    shared.db.remove(&[b"m{host=\"a\"}"]).unwrap();
    intake.apply_fresh_part(&waiting[2..], first + 2);
    let report = intake.finish();
    assert_eq!((report.samples, report.refused()), (4, 0), "{report:?}");
    // The removal took the first part.
    assert_eq!(
        stored(&shared, "m{host=\"a\"}"),
        [(8_000, 1.0), (9_000, 1.0)]
    );
    assert_eq!(labelled(&shared, b"host", b"a").len(), 1);
    let (rows, _) = shared.observe.lateness.senders(now_ms(), 2);
    let rows: Vec<_> = rows.iter().map(|row| (&*row.name, row.sum.late)).collect();
    assert_eq!(rows, [(&b"me 10.0.0.3"[..], 1)]);
}
