//! Range queries that give the bits of an instant query at each of their steps.

use super::Memory;
use crate::oracle::generate::Generator;
use latewood_promql::Times;
use latewood_promql::engine::{Query, Settings, Value};
use latewood_promql::labels::Labels;
use latewood_promql::reads::Reads;
use latewood_promql::tree::Type;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use std::collections::BTreeMap;

const SEEDS: u64 = 12;
const EXPRESSIONS: usize = 200;
const STEP_MS: i64 = 60_000;

type Bits = BTreeMap<Labels, u64>;

fn bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        value.to_bits()
    }
}

#[test]
fn a_range_query_gives_what_each_step_gives() {
    let settings = Settings {
        shares_sums: false,
        ..Settings::default()
    };
    let (mut stepwise, mut checked) = (0, 0);
    for seed in 1..=SEEDS {
        println!("seed {seed}");
        let mut rng = StdRng::seed_from_u64(seed);
        let memory = Memory::random(&mut rng);
        for _ in 0..EXPRESSIONS {
            let text = Generator { rng: &mut rng }.expr().text();
            let Ok(query) = Query::new(&text) else {
                continue;
            };
            let is_rule = matches!(query.expr().ty(), Type::Scalar | Type::Vector);
            let Ok(reads) = Reads::of(query.expr(), &settings) else {
                continue;
            };
            if !is_rule || reads.is_stepwise() {
                stepwise += usize::from(is_rule);
                continue;
            }
            let start_ms = rng.random_range(0..20) * STEP_MS;
            let times = Times {
                start_ms,
                end_ms: start_ms + 30 * STEP_MS,
                step_ms: STEP_MS,
            };
            let mut found: BTreeMap<i64, Bits> = BTreeMap::new();
            let made = query.range(times, &settings, &memory, &mut |labels, column| {
                for step in column.present() {
                    let at_ms = start_ms + step as i64 * STEP_MS;
                    let of = found.entry(at_ms).or_default();
                    of.insert(labels.clone(), bits(column.values[step]));
                }
                Ok(())
            });
            if made.is_err() {
                // Such a span is taken apart.
                continue;
            }
            checked += 1;
            for step in 0..=30 {
                let at_ms = start_ms + step * STEP_MS;
                let wanted: Bits = match query.instant(at_ms, &settings, &memory).unwrap().value {
                    Value::Vector(rows) => rows,
                    Value::Scalar(value) => vec![(Labels::default(), value)],
                    other => panic!("{text} gave {other:?}"),
                }
                .into_iter()
                .map(|(labels, value)| (labels, bits(value)))
                .collect();
                let found = found.remove(&at_ms).unwrap_or_default();
                assert_eq!(found, wanted, "seed {seed}: {text} at {at_ms}");
            }
        }
    }
    println!("{checked} expressions, and {stepwise} that are evaluated step by step");
    assert!(checked > 500);
}
