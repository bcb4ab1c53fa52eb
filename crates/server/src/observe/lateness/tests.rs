//! Counts beside a model that keeps every sample, and bounds.

use super::*;
use crate::observe::AGE_BOUNDS_MS;
use latewood_engine::io::sim::SimRandom;
use std::collections::HashMap;

/// Some minute of some year.
const NOW_MS: i64 = 1_800_000_000_000;

/// A late sample: its minute, route, sender, metric and age.
struct Sample {
    minute: i64,
    route: Route,
    sender: u64,
    metric: u64,
    age_ms: u64,
}

fn address(sender: u64) -> String {
    format!("10.0.0.{sender}")
}

fn metric(metric: u64) -> String {
    format!("metric_{metric}")
}

/// Ages of all magnitudes.
fn some_age_ms(random: &SimRandom) -> u64 {
    let bits = random.below(42);
    (1 << bits) + random.below(1 << bits)
}

/// Counts batches of `minutes` minutes; the late samples, and how many others came by route.
fn fill(lateness: &Lateness, random: &SimRandom, minutes: i64) -> (Vec<Sample>, Vec<u64>) {
    let (mut all, mut on_time) = (Vec::new(), vec![0; Route::ALL.len()]);
    for batch in 0..2_000 {
        let now_ms = NOW_MS + batch * minutes * MINUTE_MS / 2_000;
        let route = Route::ALL[random.below(Route::ALL.len() as u64) as usize];
        let sender = random.below(20);
        let samples = random.below(30);
        let late: Vec<Sample> = (0..random.below(samples + 1))
            .map(|_| Sample {
                minute: minute_of(now_ms),
                route,
                sender,
                metric: random.below(50),
                age_ms: some_age_ms(random),
            })
            .collect();
        on_time[route as usize] += samples - late.len() as u64;
        lateness.arrived(route, samples, &Ages::default(), now_ms);
        let origin = Origin {
            route,
            address: &address(sender),
            user: b"me",
        };
        let keys: Vec<_> = late
            .iter()
            .map(|one| format!("{}{{host=\"a\"}}", metric(one.metric)))
            .collect();
        let noted = keys.iter().zip(&late);
        lateness.late(
            &origin,
            now_ms,
            noted.map(|(key, one)| (key.as_bytes(), one.age_ms)),
        );
        all.extend(late);
    }
    (all, on_time)
}

/// The exact quantile of sorted ages before which `on_time` samples of age 0 lie.
fn exact(ages: &[u64], on_time: u64, share: f64) -> u64 {
    let wanted = (share * (on_time + ages.len() as u64) as f64)
        .ceil()
        .max(1.0) as u64;
    match wanted.checked_sub(on_time + 1) {
        None => 0,
        Some(at) => ages[at as usize],
    }
}

/// Compares a sum with the samples it should be of.
fn check(sum: &LateSum, samples: &[&Sample], on_time: u64, what: &str) {
    let mut ages: Vec<u64> = samples.iter().map(|one| one.age_ms).collect();
    ages.sort_unstable();
    assert_eq!(sum.late, ages.len() as u64, "{what}");
    assert_eq!(sum.max_ms, ages.last().copied().unwrap_or(0), "{what}");
    if ages.is_empty() {
        return assert_eq!((sum.age_ms(0.99), sum.delay_ms(0.99)), (0, 0), "{what}");
    }
    for share in [0.01, 0.5, 0.9, 0.99, 0.999, 1.0] {
        for (told, on_time) in [(sum.age_ms(share), 0), (sum.delay_ms(share), on_time)] {
            let exact = exact(&ages, on_time, share);
            // Beyond 2^40 ms the largest one is told.
            let most = if exact >= 1 << 40 {
                sum.max_ms as f64
            } else {
                exact as f64 * (1.0 + QUANTILE_ERROR)
            };
            let is_right = told >= exact && told as f64 <= most;
            assert!(is_right, "{what}: {share} is {exact}, not {told}");
        }
    }
}

#[test]
fn counts_are_those_of_a_model() {
    for seed in 1..=5 {
        println!("seed {seed}");
        let (random, lateness) = (SimRandom::new(seed), Lateness::default());
        let (all, on_time) = fill(&lateness, &random, 60);
        let now_ms = NOW_MS + 59 * MINUTE_MS;
        let mut by_route: HashMap<&str, LateSum> = HashMap::new();
        let mut by_minute: HashMap<(i64, &str), u64> = HashMap::new();
        lateness.each(now_ms, MINUTES, |minute| {
            let name = minute.route.name();
            let sum = by_route.entry(name).or_default();
            sum.samples += minute.samples;
            if let Some(late) = minute.late {
                sum.add(&late.ages);
                let of = |one: &&Sample| (one.minute, one.route) == (minute.number, minute.route);
                let mut bands = vec![0; AGE_BOUNDS_MS.len() + 1];
                for one in all.iter().filter(of) {
                    bands[AGE_BOUNDS_MS.partition_point(|bound_ms| *bound_ms < one.age_ms)] += 1;
                }
                assert_eq!(late.bands.counts(), bands);
                by_minute.insert((minute.number, name), late.ages.late());
            }
        });
        for route in Route::ALL {
            let samples: Vec<_> = all.iter().filter(|one| one.route == route).collect();
            let (name, on_time) = (route.name(), on_time[route as usize]);
            let sum = by_route.remove(name).unwrap_or_default();
            assert_eq!(sum.samples, on_time + samples.len() as u64, "{name}");
            check(&sum, &samples, on_time, name);
            assert_eq!(lateness.total(route), samples.len() as u64);
            for minute in minute_of(NOW_MS)..=minute_of(now_ms) {
                let expected = samples.iter().filter(|one| one.minute == minute).count();
                let told = by_minute.get(&(minute, name)).copied().unwrap_or(0);
                assert_eq!(told, expected as u64, "{name}");
            }
        }
        let whole: Vec<_> = all.iter().collect();
        check(
            &lateness.sum(now_ms, MINUTES),
            &whole,
            on_time.iter().sum(),
            "all",
        );
        let (rows, others) = lateness.metrics(now_ms, MINUTES);
        assert_eq!((rows.len(), others.late), (50, 0));
        for row in &rows {
            let samples = all
                .iter()
                .filter(|one| *metric(one.metric).as_bytes() == *row.name);
            check(&row.sum, &samples.collect::<Vec<_>>(), 0, "metric");
        }
        assert!(rows.is_sorted_by(|a, b| a.sum.late >= b.sum.late));
        let (rows, others) = lateness.senders(now_ms, MINUTES);
        assert_eq!((rows.len(), others.late), (20, 0));
        for row in &rows {
            let (told, user) = Origin::parts(&row.name);
            assert_eq!(user, "me");
            let samples = all.iter().filter(|one| address(one.sender) == told);
            check(&row.sum, &samples.collect::<Vec<_>>(), 0, "sender");
        }
    }
}

#[test]
fn what_is_older_than_two_hours_is_forgotten() {
    let lateness = Lateness::default();
    let (random, origin) = (SimRandom::new(3), origin_of(Route::Resp));
    fill(&lateness, &random, 60);
    let now_ms = NOW_MS + 59 * MINUTE_MS + 2 * 3_600_000 + BLOCK_MINUTES * MINUTE_MS;
    assert_eq!(lateness.sum(now_ms, MINUTES).late, 0);
    assert!(lateness.metrics(now_ms, MINUTES).0.is_empty());
    let ages = Ages::default();
    // The place of a minute is used again, and the clock may go back.
    for now_ms in [now_ms, NOW_MS] {
        lateness.arrived(Route::Resp, 3, &ages, now_ms);
        lateness.late(&origin, now_ms, [(&b"k"[..], 7)].into_iter());
        let sum = lateness.sum(now_ms, 1);
        assert!(sum.samples >= 3 && sum.late >= 1, "{sum:?}");
    }
    assert_eq!(lateness.sum(now_ms, 1).late, 1);
}

/// 64 names that take all rows with `count` late samples each.
fn crowd(lateness: &Lateness, now_ms: i64, count: u64) {
    for name in 0..ROWS_MAX as u64 {
        let name = metric(name);
        let late = (0..count).map(|_| (name.as_bytes(), 5));
        lateness.late(&origin_of(Route::Resp), now_ms, late);
    }
}

/// Counts `count` late samples of one metric in each of the 10 minutes of `blocks`.
fn steady(lateness: &Lateness, blocks: std::ops::Range<i64>, count: u64) {
    for block in blocks {
        let now_ms = NOW_MS + block * BLOCK_MINUTES * MINUTE_MS;
        let late = (0..count).map(|_| (&b"steady"[..], 5));
        lateness.late(&origin_of(Route::Resp), now_ms, late);
    }
}

/// How many of them its row shows after `block`, if it has one.
fn shown(lateness: &Lateness, block: i64) -> Option<u64> {
    let now_ms = NOW_MS + block * BLOCK_MINUTES * MINUTE_MS;
    let (rows, _) = lateness.metrics(now_ms, 60);
    let mut rows = rows.iter();
    rows.find(|row| *row.name == *b"steady")
        .map(|row| row.sum.late)
}

#[test]
fn a_row_counts_on_while_its_blocks_are_forgotten() {
    let lateness = Lateness::default();
    steady(&lateness, 0..30, 7);
    let now_ms = NOW_MS + 30 * BLOCK_MINUTES * MINUTE_MS;
    let (rows, _) = lateness.metrics(now_ms, 60);
    assert_eq!((rows[0].sum.late, rows[0].total), (6 * 7, 30 * 7));
}

#[test]
fn a_burst_hides_what_comes_all_the_time_for_half_an_hour_at_most() {
    let lateness = Lateness::default();
    crowd(&lateness, NOW_MS, 200);
    steady(&lateness, 0..4, 150);
    assert!(shown(&lateness, 3) > Some(150), "{:?}", shown(&lateness, 3));
    // An hour after it, the least that comes is more.
    let lateness = Lateness::default();
    crowd(&lateness, NOW_MS, 200);
    steady(&lateness, 7..8, 3);
    assert!(shown(&lateness, 7) >= Some(1), "{:?}", shown(&lateness, 7));
}

#[test]
fn a_clock_that_was_ahead_hides_nothing() {
    let lateness = Lateness::default();
    crowd(&lateness, NOW_MS + 86_400_000, 100);
    steady(&lateness, 0..6, 90);
    assert!(shown(&lateness, 5) > Some(400), "{:?}", shown(&lateness, 5));
}

#[test]
fn arrivals_are_counted_by_minute_and_age() {
    let (lateness, mut ages) = (Lateness::default(), Ages::default());
    ages.note(500);
    ages.note(500_000);
    lateness.arrived(Route::Otlp, 1, &ages, NOW_MS);
    let mut seen = Vec::new();
    lateness.each(NOW_MS + MINUTE_MS, 2, |minute| {
        seen.push((minute.number, minute.route, minute.samples, minute.arrival));
    });
    let mut arrival = vec![0; AGE_BOUNDS_MS.len() + 1];
    (arrival[0], arrival[4]) = (1, 1);
    assert_eq!(seen, [(minute_of(NOW_MS), Route::Otlp, 1, arrival)]);
}

fn origin_of(route: Route) -> Origin<'static> {
    Origin {
        route,
        address: "10.0.0.1",
        user: b"me",
    }
}

#[test]
fn hostile_names_take_bounded_memory_and_hide_no_frequent_one() {
    const NAMES: u64 = 100_000;
    let (lateness, random) = (Lateness::default(), SimRandom::new(9));
    let mut frequent = 0;
    let mut total = 0;
    for number in 0..NAMES {
        // Over two hours, so that every block and minute of every route takes its memory.
        let now_ms = NOW_MS + number as i64 * 2 * 3_600_000 / NAMES as i64;
        let mut origin = origin_of(Route::ALL[number as usize % Route::ALL.len()]);
        let (address, name) = (
            format!("host{number}"),
            format!("{number}{}", "x".repeat(200)),
        );
        origin.address = &address;
        lateness.late(
            &origin,
            now_ms,
            [(name.as_bytes(), some_age_ms(&random))].into_iter(),
        );
        total += 1;
        if number % 20 == 0 {
            let origin = origin_of(Route::Resp);
            lateness.late(
                &origin,
                now_ms,
                [(&b"frequent{a=\"b\"}"[..], 1_000)].into_iter(),
            );
            frequent += 1;
            total += 1;
        }
    }
    let now_ms = NOW_MS + 2 * 3_600_000 - 1;
    let bytes = lateness.len_bytes();
    assert!(bytes < 4 << 20, "{bytes}");
    for (rows, others) in [
        lateness.metrics(now_ms, MINUTES),
        lateness.senders(now_ms, MINUTES),
    ] {
        assert!(rows.len() <= ROWS_MAX);
        let late: u64 = rows.iter().map(|row| row.sum.late).sum();
        assert_eq!(late + others.late, total, "none is lost");
    }
    let (rows, _) = lateness.metrics(now_ms, MINUTES);
    assert_eq!(*rows[0].name, *b"frequent");
    assert_eq!(rows[0].sum.late, frequent);
    // One that comes often only once the table is full gets a row, too.
    for _ in 0..2_000 {
        let late = [(&b"late comer"[..], 5), (&b"another"[..], 5)];
        lateness.late(&origin_of(Route::Resp), now_ms, late.into_iter());
    }
    let (rows, _) = lateness.metrics(now_ms, MINUTES);
    let row = rows.iter().find(|row| *row.name == *b"late comer").unwrap();
    assert!(row.sum.late > 1_900, "{}", row.sum.late);
    assert!(lateness.len_bytes() < 4 << 20);
}

#[test]
fn the_metric_is_what_stands_before_the_labels() {
    for (key, metric) in [
        ("cpu{host=\"a\"}", "cpu"),
        ("cpu", "cpu"),
        ("room:1", "room:1"),
        ("odd{", "odd{"),
        ("{\"a metric\",\"x y\"=\"z\"}", "a metric"),
        ("{odd", "{odd"),
        ("", ""),
    ] {
        assert_eq!(metric_of(key.as_bytes()), metric.as_bytes(), "{key}");
    }
}

#[test]
fn values_of_a_label_take_bounded_memory_until_another_one_is_chosen() {
    let (lateness, now_ms) = (Lateness::default(), NOW_MS + 2 * 3_600_000 - 1);
    let without = lateness.len_bytes();
    lateness.choose_label("site");
    for number in 0..100_000_i64 {
        let at_ms = NOW_MS + number * 72;
        let value = format!("{number:0250}");
        let ages_ms = [u64::try_from(number).unwrap()].into_iter();
        lateness
            .labels
            .lock()
            .values
            .note(value.as_bytes(), ages_ms, minute_of(at_ms));
    }
    let before = lateness.label_values(now_ms, MINUTES).unwrap().1.0;
    assert!(!before.is_empty() && lateness.len_bytes() < without + (1 << 20));
    lateness.choose_label("other");
    assert_eq!(lateness.len_bytes(), without);
    lateness
        .labels
        .lock()
        .values
        .note(b"x", [1].into_iter(), minute_of(now_ms));
    let (rows, _) = lateness.label_values(now_ms, MINUTES).unwrap().1;
    assert!(before.iter().all(|row| row.number < rows[0].number));
}
