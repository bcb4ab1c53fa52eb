//! Random expressions over random series, evaluated by a running server and by Prometheus' own
//! engine, as the tests of `latewood-promql` do without a server.
//!
//! The series are sent by remote write, in disorder: many samples come late, some into blocks, some
//! before a merge. What it needs and which variables it reads is said in `oracle`.

mod subject;

use subject::Running;

const EXPRESSIONS: u64 = 1_000;

#[test]
fn a_server_answers_as_prometheus() {
    crate::oracle::run::compare(EXPRESSIONS, &mut Running::start());
}
