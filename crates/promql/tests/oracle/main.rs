//! Random expressions over random series, evaluated here and by Prometheus' own engine.
//!
//! Values to 1e-9, labels, order where Prometheus does not leave it to chance, warnings, infos and
//! errors must be the same. Needs Go 1.26 for `tests/promql/oracle`; says so and passes without it.
//! The test `promql` of the server asks the same of a running server.
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
mod run;

use latewood::Latewood;

const EXPRESSIONS: u64 = 3_000;

#[test]
fn answers_are_those_of_prometheus() {
    run::compare(EXPRESSIONS, &mut Latewood::default());
}
