//! Steps that a changed sample may change.

use super::Memory;
use crate::oracle::generate::Generator;
use latewood_promql::engine::{Query, Settings};
use latewood_promql::reads::{Reads, Window};
use latewood_promql::source::passes;
use latewood_promql::tree::Type;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 12;
const EXPRESSIONS: usize = 120;
/// Steps at which an expression is evaluated: before the first sample to behind the last one.
const STEPS: i64 = 70;
const STEP_MS: i64 = 60_000;

/// The steps of a random grid, so that they meet samples and miss them.
fn steps(rng: &mut StdRng) -> impl Iterator<Item = i64> + Clone + use<> {
    let start_ms = -300_000 + rng.random_range(0..2) * rng.random_range(0..STEP_MS);
    (0..STEPS).map(move |step| start_ms + step * STEP_MS)
}

#[test]
fn changed_steps_are_predicted() {
    let settings = Settings::default();
    let (mut dirty, mut changed, mut checked) = (0_usize, 0_usize, 0_usize);
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let before = Memory::random(&mut rng);
        for _ in 0..EXPRESSIONS {
            let text = Generator { rng: &mut rng }.expr().text();
            let Ok(query) = Query::new(&text) else {
                continue;
            };
            let is_rule = matches!(query.expr().ty(), Type::Scalar | Type::Vector);
            let Ok(reads) = Reads::of(query.expr(), &settings) else {
                continue;
            };
            if !is_rule {
                continue;
            }
            checked += 1;
            let (after, samples) = before.changed(&mut rng, |labels| {
                reads
                    .reads
                    .iter()
                    .any(|read| passes(&read.matchers, labels))
            });
            let is_dirty = |at_ms: i64| {
                samples.iter().any(|(labels, sample_ms)| {
                    reads.reads.iter().any(|read| {
                        let steps = read.window.dirty(*sample_ms);
                        passes(&read.matchers, labels)
                            && steps.is_some_and(|steps| steps.contains(&at_ms))
                    })
                })
            };
            for at_ms in steps(&mut rng) {
                let differs = before.answer(&query, at_ms, &settings)
                    != after.answer(&query, at_ms, &settings);
                let is_dirty = is_dirty(at_ms);
                dirty += usize::from(is_dirty);
                changed += usize::from(differs);
                assert!(
                    is_dirty || !differs,
                    "seed {seed}: {text} at {at_ms} changed with {samples:?}, and only {reads:?} \
                     was predicted\n{:?}\n{:?}",
                    before.answer(&query, at_ms, &settings),
                    after.answer(&query, at_ms, &settings)
                );
            }
        }
    }
    println!("{checked} expressions: {changed} steps changed, {dirty} were predicted");
    assert!(checked > 1_000 && changed > 1_000);
}

fn moving(back_max_ms: i64, back_min_ms: i64) -> Window {
    Window::Moving {
        back_max_ms,
        back_min_ms,
    }
}

fn windows(text: &str) -> Vec<Window> {
    let query = Query::new(text).unwrap();
    let reads = Reads::of(query.expr(), &Settings::default()).unwrap();
    reads.reads.into_iter().map(|read| read.window).collect()
}

const S: i64 = 1000;
const M: i64 = 60 * S;

#[test]
fn windows_are_those_of_the_operators() {
    for (text, expected) in [
        ("x", moving(5 * M, 0)),
        ("x offset 1m", moving(6 * M, M)),
        ("x offset -1h", moving(-55 * M, -60 * M)),
        ("x smoothed", moving(5 * M, -5 * M)),
        ("rate(x[10m])", moving(10 * M, 0)),
        ("rate(x[10m] offset 1m)", moving(11 * M, M)),
        ("rate(x[10m] anchored)", moving(15 * M, 0)),
        ("rate(x[10m] smoothed)", moving(15 * M, -5 * M)),
        ("x @ start()", moving(5 * M, 0)),
        ("x @ end() offset 2m", moving(7 * M, 2 * M)),
        ("max_over_time(x[1h:1m])", moving(65 * M - 1, 0)),
        (
            "max_over_time(x[1h:1m] offset 5m)",
            moving(70 * M - 1, 5 * M),
        ),
        (
            "max_over_time((x offset 2m)[1h:])",
            moving(67 * M - 1, 2 * M),
        ),
        ("max_over_time(x[1h:] @ end())", moving(65 * M - 1, 0)),
        ("max_over_time(rate(x[2m])[10m:1m])", moving(12 * M - 1, 0)),
        ("max_over_time((x @ end())[1h:])", moving(5 * M, 0)),
        (
            "max_over_time(max_over_time(x[2m:])[3m:])",
            moving(10 * M - 2, 0),
        ),
    ] {
        assert_eq!(windows(text)[0], expected, "{text}");
    }
    let fixed = |after_ms, to_ms| Window::Fixed { after_ms, to_ms };
    assert_eq!(windows("x @ 600")[0], fixed(300 * S, 600 * S));
    assert_eq!(
        windows("rate(x[1m] @ 600 offset 10s)")[0],
        fixed(530 * S, 590 * S)
    );
    let inner = windows("max_over_time(x[10m:] @ 600)");
    assert_eq!(inner, [fixed(-300 * S + 1, 600 * S)]);
    let joined = windows("x + on() y offset 1m");
    assert_eq!(joined, [moving(5 * M, 0), moving(6 * M, M)]);
}

#[test]
fn the_selector_of_info_is_read_too() {
    let query = Query::new("info(x offset 1m, {env=\"prod\"})").unwrap();
    let reads = Reads::of(query.expr(), &Settings::default()).unwrap().reads;
    assert_eq!(reads.len(), 2);
    assert_eq!(reads[1].window, moving(6 * M, M));
    let matchers = reads[1].matchers.iter();
    let names: Vec<_> = matchers.map(|matcher| &*matcher.name).collect();
    assert_eq!(names, [&b"__name__"[..], b"env"]);
}

#[test]
fn times_of_the_query_and_what_lies_ahead_are_told() {
    let of = |text: &str| {
        let query = Query::new(text).unwrap();
        Reads::of(query.expr(), &Settings::default()).unwrap()
    };
    for text in [
        "x @ start()",
        "x + step()",
        "rate(x[5m] @ end())",
        "x[1h:1m] @ end()",
    ] {
        let text = if text.ends_with("[1h:1m] @ end()") {
            format!("max_over_time({text})")
        } else {
            text.to_owned()
        };
        assert!(of(&text).uses_query_times, "{text}");
    }
    let plain = of("rate(x[5m]) + time()");
    assert!(!plain.uses_query_times && !plain.look_ahead() && !plain.has_fixed());
    assert_eq!(of("x offset -1h").ahead_ms(), 60 * M);
    assert!(of("rate(x[10m] smoothed)").look_ahead());
    assert!(of("x @ 600").has_fixed());
    // At no time can it be evaluated: an instant query has no step.
    let query = Query::new("rate(x[step()])").unwrap();
    assert!(Reads::of(query.expr(), &Settings::default()).is_err());
}

/// The first and the last dirty step are changed by a sample that decides: the ends are exact.
#[test]
fn both_ends_are_exact() {
    for text in [
        "count_over_time(x[10m])",
        "x",
        "x offset 1m",
        "x offset -2m",
        "max_over_time(x[10m] offset 1m)",
    ] {
        let query = Query::new(text).unwrap();
        let settings = Settings::default();
        let reads = Reads::of(query.expr(), &settings).unwrap();
        let labels = latewood_promql::labels::Labels::from_pairs([("__name__", "x")]);
        let (none, one) = (
            Memory::default(),
            Memory(vec![(labels, vec![(7 * M, 1.0)])]),
        );
        let dirty = reads.reads[0].window.dirty(7 * M).unwrap();
        for (at_ms, is_dirty) in [
            (dirty.start - 1, false),
            (dirty.start, true),
            (dirty.end - 1, true),
            (dirty.end, false),
        ] {
            let differs =
                none.answer(&query, at_ms, &settings) != one.answer(&query, at_ms, &settings);
            assert_eq!(differs, is_dirty, "{text} at {at_ms}");
        }
    }
}
