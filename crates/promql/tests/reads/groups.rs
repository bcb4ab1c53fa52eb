//! Groups that a changed sample may change.

use super::Memory;
use latewood_promql::engine::{Query, Settings};
use latewood_promql::labels::Labels;
use latewood_promql::reads::Narrow;
use latewood_promql::source::passes;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use rand::{RngExt, SeedableRng};

const SEEDS: u64 = 10;
const EXPRESSIONS: usize = 60;
const STEP_MS: i64 = 120_000;
const STEPS: i64 = 30;

const FUNCTIONS: [&str; 9] = [
    "rate(#[5m])",
    "increase(#[10m] anchored)",
    "max_over_time(#[3m] offset 1m)",
    "quantile_over_time(0.9, #[5m])",
    "#",
    "-abs(#) * 2",
    "max_over_time(rate(#[2m])[10m:1m])",
    "clamp(#, 0, time())",
    "timestamp(#)",
];
const AGGREGATIONS: [&str; 7] = [
    "sum by (%) (#)",
    "avg by (%) (#)",
    "(topk by (%) (2, #))",
    "quantile by (%) (0.5, #)",
    "count by (%) (#)",
    "limitk by (%) (1, #)",
    "stddev by (%) (#)",
];

fn random(rng: &mut StdRng) -> String {
    let mut pick = |from: &[&str]| (*from.choose(rng).expect("not empty")).to_owned();
    let metric = pick(&[
        "m",
        "n",
        "c_total",
        "sparse",
        "h_bucket",
        "up",
        "m{b=\"x\"}",
    ]);
    let by = pick(&["a", "b", "a, b", "job", "none", "", "le, job", "b, b"]);
    let aggregation = pick(&AGGREGATIONS).replace('%', &by);
    let function = pick(&FUNCTIONS).replace('#', &metric);
    aggregation.replace('#', &function)
}

#[test]
fn changed_groups_are_predicted() {
    let settings = Settings::default();
    let (mut changed, mut groups) = (0, 0);
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let before = Memory::random(&mut rng);
        for _ in 0..EXPRESSIONS {
            let text = random(&mut rng);
            let query = Query::new(&text).unwrap();
            let narrow = Narrow::of(query.expr()).unwrap_or_else(|why| panic!("{text}: {why}"));
            let (after, samples) =
                before.changed(&mut rng, |labels| passes(&narrow.selector.matchers, labels));
            let selected = samples.iter();
            let selected = selected.filter(|(labels, _)| passes(&narrow.selector.matchers, labels));
            let predicted: Vec<Labels> = selected.map(|(labels, _)| narrow.group(labels)).collect();
            for at_ms in (0..STEPS).map(|step| step * STEP_MS + rng.random_range(0..2)) {
                let old = before.answer(&query, at_ms, &settings);
                let new = after.answer(&query, at_ms, &settings);
                // A step that failed or fails is computed whole.
                let (Ok(old), Ok(new)) = (old, new) else {
                    continue;
                };
                let differ = old.iter().filter(|row| !new.contains(row));
                let differ = differ.chain(new.iter().filter(|row| !old.contains(row)));
                for (labels, _) in differ {
                    changed += 1;
                    let group = narrow.group(labels);
                    assert!(
                        predicted.contains(&group),
                        "seed {seed}: {text} at {at_ms}: {group}"
                    );
                }
                for group in predicted.iter().take(2) {
                    groups += 1;
                    let rows = after.answer(&narrow.query(query.expr(), group), at_ms, &settings);
                    let of_group = new
                        .iter()
                        .filter(|(labels, _)| narrow.group(labels) == *group);
                    let of_group: Vec<_> = of_group.cloned().collect();
                    assert_eq!(
                        rows,
                        Ok(of_group),
                        "seed {seed}: {text} at {at_ms}: {group}"
                    );
                }
            }
        }
    }
    println!("{changed} rows changed, {groups} groups computed by themselves");
    assert!(changed > 500 && groups > 1_000);
}

#[test]
fn what_may_touch_other_groups_is_computed_whole() {
    for (text, why) in [
        ("x", "it is not an aggregation by labels"),
        (
            "sum without (a) (x)",
            "the labels of its groups are not named by `by`",
        ),
        (
            "count_values by (a) (\"v\", x)",
            "the labels of its groups are not named by `by`",
        ),
        (
            "topk by (a) (scalar(y), x)",
            "the argument of the aggregation is not a number",
        ),
        (
            "sum by (__name__) (x)",
            "its groups depend on the name of the metric",
        ),
        (
            "sum by (a) ({b=\"1\"})",
            "its selector may match several metrics",
        ),
        ("sum by (a) (x / y)", "it joins series"),
        ("sum by (a) (x and on (a) y)", "it joins series"),
        (
            "sum by (a) (sum by (a, b) (x))",
            "it has several aggregations",
        ),
        (
            "sum by (a) (absent(x))",
            "a function may change the labels of groups",
        ),
        (
            "sum by (a) (vector(1))",
            "a function may change the labels of groups",
        ),
        (
            "sum by (a) (label_replace(x, \"a\", \"1\", \"b\", \".*\"))",
            "a function may change the labels of groups",
        ),
        (
            "sum by (a) (histogram_quantile(0.9, x))",
            "a function may change the labels of groups",
        ),
        (
            "sum by (a) (info(x))",
            "a function may change the labels of groups",
        ),
        (
            "sum by (a) (clamp_max(x, scalar(y)))",
            "an argument of a function is not a number",
        ),
        ("1 - sum by (a) (x)", "it is not an aggregation by labels"),
    ] {
        let query = Query::new(text).unwrap();
        assert_eq!(Narrow::of(query.expr()).unwrap_err().0, why, "{text}");
    }
}
