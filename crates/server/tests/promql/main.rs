//! Random expressions over random series, evaluated by a running server and by Prometheus' own
//! engine, as the test `oracle` of `latewood-promql` does without a server.
//!
//! The series are sent by remote write, in disorder: many samples come late, some into blocks, some
//! before a merge. Needs Go 1.26; says so and passes without it. `PROMQL_ORACLE_EXPRESSIONS` and
//! `PROMQL_ORACLE_SEED` mean the same as there.
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

#[allow(dead_code, reason = "shared with the tests of HTTP")]
#[path = "../http/client.rs"]
mod client;
#[path = "../../../promql/tests/oracle/compare.rs"]
mod compare;
#[path = "../../../promql/tests/oracle/data.rs"]
mod data;
#[path = "../../../promql/tests/oracle/expression.rs"]
mod expression;
#[path = "../../../promql/tests/oracle/generate/mod.rs"]
mod generate;
#[allow(dead_code, reason = "shared with the tests of the protocol")]
#[path = "../resp/harness.rs"]
mod harness;
#[path = "../../../promql/tests/oracle/prometheus.rs"]
mod prometheus;
#[path = "../http/protobuf.rs"]
mod protobuf;
#[path = "../../../promql/tests/oracle/query.rs"]
mod query;
#[path = "../../../promql/tests/oracle/run.rs"]
mod run;
mod subject;

use subject::Running;

const EXPRESSIONS: u64 = 1_000;

#[test]
fn a_server_answers_as_prometheus() {
    run::compare(EXPRESSIONS, &mut Running::start());
}
