//! Random expressions over random series, evaluated here and by Prometheus' own engine.
//!
//! Values to 1e-9, labels, order where Prometheus does not leave it to chance, warnings, infos and
//! errors must be the same. Needs Go 1.26 for `tests/promql/oracle`; says so and passes without it.
//!
//! `PROMQL_ORACLE_EXPRESSIONS` sets how many, `PROMQL_ORACLE_SEED` the first seed: a seed stands
//! for one set of series with 100 expressions.

mod compare;
mod data;
mod expression;
mod generate;
mod latewood;
mod prometheus;
mod query;

use compare::difference;
use expression::shrink;
use generate::Generator;
use latewood::Latewood;
use prometheus::Prometheus;
use query::Query;
use rand::SeedableRng;
use rand::rngs::StdRng;

const EXPRESSIONS: u64 = 3_000;
/// Expressions over one set of series.
const OF_SEED: u64 = 100;
/// How often Prometheus may answer until a difference counts: it adds up in the order of maps.
const ATTEMPTS: usize = 5;
/// Attempts to make an expression shorter.
const SHRINKS: usize = 1_000;

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
        Err(_) => default,
    }
}

#[test]
fn answers_are_those_of_prometheus() {
    let program = match prometheus::build() {
        Ok(program) => program,
        Err(why) => return println!("passed over: {why}"),
    };
    let first = setting("PROMQL_ORACLE_SEED", 1);
    let seeds = setting("PROMQL_ORACLE_EXPRESSIONS", EXPRESSIONS).div_ceil(OF_SEED);
    let mut oracle = Prometheus::start(&program);
    let mut found = Vec::new();
    for seed in first..first + seeds {
        run(seed, &mut oracle, &mut found);
    }
    let total = seeds * OF_SEED;
    println!(
        "{} of {total} expressions differ, seeds from {first}",
        found.len()
    );
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Compares the expressions of one seed.
fn run(seed: u64, oracle: &mut Prometheus, found: &mut Vec<String>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let series = data::series(&mut rng);
    oracle.load(&series);
    let latewood = Latewood::new(&series);
    for _ in 0..OF_SEED {
        let query = Query::random(&mut rng);
        let expr = Generator { rng: &mut rng }.expr();
        let mut differs = |text: &str| {
            let ours = latewood.answer(&query, text);
            let mut last = None;
            for _ in 0..ATTEMPTS {
                last = Some(difference(
                    &query,
                    text,
                    &ours,
                    &oracle.answer(&query, text),
                )?);
            }
            last
        };
        if differs(&expr.text()).is_some() {
            let short = shrink(&expr, SHRINKS, |text| differs(text).is_some()).text();
            let why = differs(&short).unwrap_or_default();
            found.push(format!(
                "seed {seed}, {query:?}\n{}\n{short}\n{why}",
                expr.text()
            ));
        }
    }
}
