//! Random expressions over random series, evaluated by a running server and by Prometheus' own
//! engine, as the test `oracle` of `latewood-promql` does without a server.
//!
//! The series are sent by remote write, in disorder: many samples come late, some into blocks, some
//! before a merge. Needs Go 1.26; says so and passes without it. `PROMQL_ORACLE_EXPRESSIONS` and
//! `PROMQL_ORACLE_SEED` mean the same as there.

mod subject;

use subject::Running;

const EXPRESSIONS: u64 = 1_000;

#[test]
fn a_server_answers_as_prometheus() {
    crate::oracle::run::compare(EXPRESSIONS, &mut Running::start());
}
