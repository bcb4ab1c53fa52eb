//! Brokers that are killed.

use crate::{Cluster, append_at_last, make, read_all};
use latewood_cluster::kafka::{Kafka, KafkaError};

/// Starts all brokers again, also when a test fails.
struct Killed<'a>(&'a Cluster);

impl Drop for Killed<'_> {
    fn drop(&mut self) {
        self.0.script(&["start"]);
    }
}

#[test]
fn appends_go_on_when_a_broker_is_killed() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let logs: Vec<_> = (0..3)
        .map(|_| make(&client, "killed", 3, &[("min.insync.replicas", "2")]))
        .collect();
    let strict = make(&client, "strict", 3, &[("min.insync.replicas", "3")]);
    for log in logs.iter().chain([&strict]) {
        client.append(log, &[0]).unwrap();
    }
    let killed = Killed(&cluster);
    cluster.script(&["kill", "2"]);
    for n in 1..20 {
        for log in &logs {
            append_at_last(&client, log, &[n]);
        }
    }
    for log in &logs {
        let mut values = read_all(&client, log);
        // What was not answered was appended again.
        values.dedup();
        assert_eq!(values, (0..20).map(|n| vec![n]).collect::<Vec<_>>());
    }
    // Nothing is appended with fewer replicas than the topic asks for, and that is said.
    let unavailable = (0..600).any(|_| {
        let error = client.append(&strict, &[1]).unwrap_err();
        let is_said = |text: &String| text.contains("NotEnoughReplicas");
        matches!(&error, KafkaError::Unavailable(text) if is_said(text))
    });
    assert!(unavailable);
    let before = client.bounds(&strict).unwrap();
    client.append(&strict, &[1]).unwrap_err();
    assert_eq!(client.bounds(&strict).unwrap(), before);
    drop(killed);
    append_at_last(&client, &strict, &[2]);
}
