//! Random expressions over random series, evaluated by Latewood and by Prometheus' own engine.
//!
//! Values to 1e-9, labels, order where Prometheus does not leave it to chance, warnings, infos and
//! errors must be the same. Needs the Go of `tests/promql/oracle/go.mod`, unless LEFT_OUT names go.
//! Latewood is the evaluation in memory, or a running server (tests `promql` of the server).
//!
//! `PROMQL_ORACLE_EXPRESSIONS` sets how many, `PROMQL_ORACLE_SEED` the first seed: a seed stands
//! for one set of series with 100 expressions.

pub(crate) mod compare;
pub(crate) mod data;
mod expression;
pub(crate) mod generate;
mod prometheus;
pub(crate) mod query;
pub(crate) mod run;
