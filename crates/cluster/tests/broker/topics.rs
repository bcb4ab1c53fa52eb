//! Topics: made, described, and made again under their name.

use crate::{Cluster, new_name};
use bytes::{BufMut, BytesMut};
use latewood_cluster::kafka::{Kafka, KafkaError, NewTopic, Partition};
use latewood_cluster::topic::{Replication, new_topic, unsafe_settings};
use std::io::{Read, Write};
use std::net::TcpStream;

#[test]
fn a_topic_is_described_with_its_replicas_and_settings() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let topic = NewTopic {
        partitions: 5,
        ..crate::new_topic("describe", 3, &[("min.insync.replicas", "2")])
    };
    client.create(&topic).unwrap();
    let found = client.describe(&topic.name).unwrap();
    assert_eq!(found.replicas, [3; 5]);
    assert_ne!(found.id, [0; 16]);
    let setting = |name: &str| {
        let mut pairs = found.settings.iter();
        pairs
            .find(|(other, _)| other == name)
            .map(|(_, value)| value.as_str())
    };
    assert_eq!(setting("min.insync.replicas"), Some("2"));
    // One that was not given.
    assert_eq!(setting("cleanup.policy"), Some("delete"));
    // It may be used at once, all of it.
    for number in 0..5 {
        let topic = topic.name.clone();
        assert_eq!(client.append(&Partition { topic, number }, b"a"), Ok(0));
    }
}

#[test]
fn topics_that_cannot_be_made_are_refused() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let there = crate::new_topic("refused", 3, &[]);
    client.create(&there).unwrap();
    for (topic, reason) in [
        (there, "AlreadyExists"),
        (crate::new_topic("replicas", 9, &[]), "ReplicationFactor"),
        (
            crate::new_topic("setting", 3, &[("no.such.setting", "1")]),
            "InvalidConfig",
        ),
        (
            NewTopic {
                name: "no name".into(),
                ..crate::new_topic("", 3, &[])
            },
            "InvalidTopic",
        ),
    ] {
        let error = client.create(&topic).unwrap_err();
        assert!(
            matches!(&error, KafkaError::Refused(text) if text.contains(reason)),
            "{error}"
        );
    }
    let error = client.describe(&new_name("nothing")).unwrap_err();
    assert!(matches!(error, KafkaError::NoSuchTopic(_)), "{error}");
}

#[test]
fn brokers_make_the_topic_of_a_log_as_it_must_be() {
    let cluster = Cluster::take();
    let client = cluster.client();
    for replication in [Replication::Durable, Replication::Any] {
        let topic = new_topic(&new_name("log"), 2, replication);
        client.create(&topic).unwrap();
        let found = client.describe(&topic.name).unwrap();
        assert_eq!(found.replicas, [topic.replicas; 2]);
        assert_eq!(unsafe_settings(&found, replication), [""; 0]);
    }
    // As Kafka makes one by itself.
    let plain = crate::new_topic("plain", 1, &[]);
    client.create(&plain).unwrap();
    let found = unsafe_settings(&client.describe(&plain.name).unwrap(), Replication::Durable);
    assert_eq!(found.len(), 4, "{found:?}");
}

/// Deletes a topic, which the client cannot: `DeleteTopics` 1 to any broker.
fn delete(cluster: &Cluster, name: &str) {
    let mut broker = TcpStream::connect(&cluster.address(false).brokers[0]).unwrap();
    let mut request = BytesMut::new();
    request.put_slice(&[0, 20, 0, 1, 0, 0, 0, 7, 0xff, 0xff]); // key, version, id, no name
    request.put_i32(1);
    request.put_u16(name.len() as u16);
    request.put_slice(name.as_bytes());
    request.put_i32(10_000); // milliseconds
    let length = (request.len() as u32).to_be_bytes();
    broker.write_all(&[&length[..], &request].concat()).unwrap();
    let mut length = [0; 4];
    broker.read_exact(&mut length).unwrap();
    let mut answer = vec![0; u32::from_be_bytes(length) as usize];
    broker.read_exact(&mut answer).unwrap();
    assert!(answer.ends_with(&[0, 0]), "{answer:?}"); // the code of the topic
}

#[test]
fn a_topic_made_again_has_another_id() {
    let cluster = Cluster::take();
    let client = cluster.client();
    let topic = crate::new_topic("again", 3, &[]);
    client.create(&topic).unwrap();
    let before = client.describe(&topic.name).unwrap();
    assert_eq!(client.describe(&topic.name), Ok(before.clone()));
    delete(&cluster, &topic.name);
    // Brokers may hear of it late.
    while client.create(&topic).is_err() {}
    let mut now = client.describe(&topic.name);
    while now.as_ref().is_ok_and(|now| now.id == before.id) {
        now = client.describe(&topic.name);
    }
    assert_eq!(now.unwrap().replicas, before.replicas);
}
