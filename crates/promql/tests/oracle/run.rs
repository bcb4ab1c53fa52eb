//! Whoever answers, beside Prometheus.

use crate::oracle::compare::{Answer, difference};
use crate::oracle::data::{self, Series};
use crate::oracle::expression::shrink;
use crate::oracle::generate::Generator;
use crate::oracle::prometheus::{self, Prometheus};
use crate::oracle::query::Query;
use rand::SeedableRng;
use rand::rngs::StdRng;

/// Expressions over one set of series.
const OF_SEED: u64 = 100;
/// How often Prometheus may answer until a difference counts: it adds up in the order of maps.
const ATTEMPTS: usize = 5;
/// Attempts to make an expression shorter.
const SHRINKS: usize = 1_000;

/// What is compared with Prometheus.
pub(crate) trait Subject {
    /// Replaces all series.
    fn load(&mut self, all: &[Series], rng: &mut StdRng);

    /// Evaluates a query.
    fn answer(&mut self, query: &Query, text: &str) -> Answer;
}

fn setting(name: &str, default: u64) -> u64 {
    match std::env::var(name) {
        Ok(text) => text
            .parse()
            .unwrap_or_else(|_| panic!("{name} must be a number")),
        Err(_) => default,
    }
}

/// Compares `expressions` expressions, unless the environment says otherwise.
pub(crate) fn compare(expressions: u64, subject: &mut dyn Subject) {
    if std::env::var("LEFT_OUT").is_ok_and(|tools| tools.split(' ').any(|tool| tool == "go")) {
        return println!("left out: go is missing or too old");
    }
    let first = setting("PROMQL_ORACLE_SEED", 1);
    let seeds = setting("PROMQL_ORACLE_EXPRESSIONS", expressions).div_ceil(OF_SEED);
    let mut oracle = Prometheus::start(&prometheus::build());
    let mut found = Vec::new();
    for seed in first..first + seeds {
        run(seed, &mut oracle, subject, &mut found);
    }
    let total = seeds * OF_SEED;
    println!(
        "{} of {total} expressions differ, seeds from {first}",
        found.len()
    );
    assert!(found.is_empty(), "{}", found.join("\n\n"));
}

/// Compares the expressions of one seed.
fn run(seed: u64, oracle: &mut Prometheus, subject: &mut dyn Subject, found: &mut Vec<String>) {
    let mut rng = StdRng::seed_from_u64(seed);
    let series = data::series(&mut rng);
    oracle.load(&series);
    // Expressions do not depend on how the subject takes the series.
    subject.load(&series, &mut StdRng::seed_from_u64(seed));
    for _ in 0..OF_SEED {
        let query = Query::random(&mut rng);
        let expr = Generator { rng: &mut rng }.expr();
        let mut differs = |text: &str| {
            let ours = subject.answer(&query, text);
            let mut last = None;
            for _ in 0..ATTEMPTS {
                let theirs = oracle.answer(&query, text);
                last = Some(difference(&query, text, &ours, &theirs)?);
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
