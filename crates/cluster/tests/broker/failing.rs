//! Brokers that are killed, and brokers that hang.

use crate::{Cluster, append_at_last, make, new_topic, read_all};
use latewood_cluster::kafka::client::Client;
use latewood_cluster::kafka::options::Access;
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Partition};
use std::time::Duration;

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
    client.append(&strict, &[2]).unwrap_err();
    drop(killed);
    append_at_last(&client, &strict, &[3]);
    assert!(!read_all(&client, &strict).contains(&vec![2]));
}

/// Lets the broker go on, also when a test fails.
struct Paused<'a>(&'a Cluster);

impl Drop for Paused<'_> {
    fn drop(&mut self) {
        self.0.script(&["resume", "3"]);
    }
}

#[test]
fn appends_go_on_when_a_broker_hangs_and_may_have_happened() {
    let cluster = Cluster::take();
    let access = Access {
        limit: Duration::from_secs(2),
        ..Access::default()
    };
    let client = Client::new(&cluster.address(false), &access).unwrap();
    // The broker leads some of them.
    let topic = NewTopic {
        partitions: 3,
        ..new_topic("hangs", 3, &[("min.insync.replicas", "2")])
    };
    client.create(&topic).unwrap();
    let logs = (0..topic.partitions).map(|number| Partition {
        topic: topic.name.clone(),
        number,
    });
    let logs: Vec<_> = logs.collect();
    for log in &logs {
        client.append(log, b"before").unwrap();
    }
    let paused = Paused(&cluster);
    cluster.script(&["pause", "3"]);
    let errors: Vec<_> = logs
        .iter()
        .flat_map(|log| append_at_last(&client, log, b"while"))
        .collect();
    // A request that was sent has no answer; one that was not cannot have happened.
    let is_unknown = |error: &KafkaError| matches!(error, KafkaError::Unknown(_));
    assert!(errors.iter().any(is_unknown), "{errors:?}");
    drop(paused);
    for log in &logs {
        append_at_last(&client, log, b"after");
        let mut values = read_all(&client, log);
        values.dedup();
        assert_eq!(values, [&b"before"[..], b"while", b"after"]);
    }
}
